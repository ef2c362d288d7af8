// The first page: recent captures, a folder, dropped photographs, or the example.

import { ask, attempt, post } from "./api.js";
import { h, plural, replace } from "./dom.js";

export class StartPage {
  constructor(facts, sender) {
    this.facts = facts;
    this.sender = sender;
    this.input = h("input", {
      type: "file",
      multiple: true,
      accept: `image/*,${facts.accepts.join(",")}`,
      class: "visually-hidden",
      id: "files",
      "aria-label": "Choose photographs",
      onchange: () => this.send([...this.input.files]),
    });
    this.progress = h("p", { class: "small", role: "status" });
    this.drop = h(
      "div",
      { class: "drop" },
      h("p", { class: "drop-title" }, "Drop photographs or a folder here"),
      h(
        "p",
        { class: "small" },
        "One object, one camera position, and a light that moves between photographs. With a shiny or matte ball beside the object, or photographs of a ball under the same lights, the lights can be measured.",
      ),
      h(
        "div",
        { class: "row" },
        h("label", { class: "button primary", for: "files" }, "Choose photographs"),
        this.input,
        h("button", { type: "button", onclick: () => this.browse(facts.home) }, "Open a folder"),
        h(
          "button",
          { type: "button", class: "example", onclick: (event) => this.example(event.target) },
          "Try the example",
        ),
      ),
      this.progress,
    );
    this.dialog = h("dialog", { class: "browser", "aria-label": "Open a folder" });
    const recent = facts.recent;
    this.element = h(
      "div",
      { class: "start wrap" },
      h(
        "div",
        { class: "hello" },
        h("h1", {}, "From photographs to shape"),
        h(
          "p",
          {},
          "Normals, color and a 3-D surface from photographs under a moving light. Everything stays on this computer.",
        ),
      ),
      this.drop,
      recent.length
        ? h(
            "section",
            { "aria-labelledby": "recent-title" },
            h("h2", { id: "recent-title" }, "Recent"),
            h(
              "ul",
              { class: "recent" },
              recent.map((entry) =>
                h(
                  "li",
                  {},
                  h(
                    "button",
                    {
                      type: "button",
                      class: "recent-entry",
                      onclick: () => this.open(entry.folder),
                    },
                    h("strong", {}, entry.name),
                    h("span", { class: "small" }, h("bdi", {}, entry.folder)),
                  ),
                ),
              ),
            ),
          )
        : null,
      this.dialog,
    );
  }

  go(id) {
    location.hash = `#/c/${id}/photographs`;
  }

  async open(path) {
    const answer = await attempt(() => post("/api/open", { path }));
    if (answer) this.go(answer.id);
  }

  async example(button) {
    button.disabled = true;
    this.progress.textContent = "Preparing the example …";
    const answer = await attempt(() => post("/api/example"));
    button.disabled = false;
    this.progress.textContent = "";
    if (answer) this.go(answer.id);
  }

  send(files) {
    return this.sender.send(files.map((file) => ({ path: file.name, file })));
  }

  async browse(path) {
    const facts = await attempt(() => ask(`/api/browse?path=${encodeURIComponent(path)}`));
    if (!facts) return;
    replace(
      this.dialog,
      h(
        "header",
        {},
        h("h2", {}, "Open a folder"),
        h(
          "button",
          { class: "quiet", "aria-label": "Close", onclick: () => this.dialog.close() },
          "×",
        ),
      ),
      h(
        "form",
        {
          class: "row",
          method: "dialog",
          onsubmit: (event) => {
            event.preventDefault();
            this.browse(event.target.elements.path.value);
          },
        },
        h("input", { name: "path", value: facts.path, "aria-label": "Folder", spellcheck: false }),
        h("button", {}, "Go"),
      ),
      h(
        "ul",
        { class: "folders" },
        facts.parent
          ? h(
              "li",
              {},
              h(
                "button",
                { type: "button", onclick: () => this.browse(facts.parent) },
                "↑ One level up",
              ),
            )
          : null,
        facts.folders.map((name) =>
          h(
            "li",
            {},
            h(
              "button",
              { type: "button", onclick: () => this.browse(`${facts.path}/${name}`) },
              name,
            ),
          ),
        ),
        facts.files.map((name) =>
          h(
            "li",
            { class: "capture-file" },
            h(
              "button",
              {
                type: "button",
                onclick: () => {
                  this.dialog.close();
                  this.open(`${facts.path}/${name}`);
                },
              },
              name,
            ),
          ),
        ),
        facts.folders.length + facts.files.length
          ? null
          : h("li", { class: "small empty" }, "No folders inside"),
      ),
      h(
        "footer",
        { class: "row" },
        h(
          "p",
          { class: "small" },
          facts.photographs
            ? plural(facts.photographs, "photograph")
            : "No photographs in this folder",
        ),
        h(
          "button",
          {
            type: "button",
            class: "primary",
            disabled: !facts.is_capture,
            onclick: () => {
              this.dialog.close();
              this.open(facts.path);
            },
          },
          "Open this folder",
        ),
      ),
    );
    if (!this.dialog.open) this.dialog.showModal();
    (this.dialog.querySelector(".folders button") ?? this.dialog.querySelector("input")).focus();
  }
}
