// Results in the viewer; two of them side by side or under a swipe; files to take along.

import { attempt, say } from "./api.js";
import { h, PREVIEW, plural, replace, seconds } from "./dom.js";

const FILES = {
  "mesh.glb": "Mesh with color (GLB)",
  "mesh.ply": "Mesh (PLY)",
  "normals.png": "Normal map (PNG)",
  "albedo.png": "Color (PNG)",
  "depth.tiff": "Depth (TIFF)",
  "depth.npy": "Depth (NumPy)",
  "report.html": "This page (HTML)",
};

export class ResultStep {
  constructor(capture, facts) {
    this.capture = capture;
    this.facts = facts;
    this.view = "one";
    this.bar = h("div", { class: "result-bar row" });
    this.stage = h("div", { class: "result-stage" });
    this.take = h("div", { class: "take" });
    this.element = h(
      "section",
      { class: "step result", "aria-label": "Result" },
      this.bar,
      this.stage,
      this.take,
    );
  }

  get all() {
    const { results = [], preview } = this.capture.state;
    return [...(preview ? [preview] : []), ...results];
  }

  update(parts) {
    if (!["results", "preview", "capture"].some((name) => parts.has(name))) return;
    const { all } = this;
    const newest = all.toSorted((a, b) => b.made - a.made)[0];
    if (
      !all.some((one) => one.key === this.first) ||
      (newest && newest.made > (this.seen ?? 0) && this.view === "one")
    )
      this.first = newest?.key;
    this.seen = newest?.made;
    this.render();
  }

  find(key) {
    return this.all.find((one) => one.key === key);
  }

  render() {
    const { all } = this;
    const one = this.find(this.first);
    if (!one) {
      replace(this.bar);
      replace(this.take);
      replace(
        this.stage,
        h(
          "div",
          { class: "empty-state" },
          h("h1", {}, "No result yet"),
          h("p", {}, "A preview takes seconds."),
          h("a", { class: "button primary", href: `#/c/${this.capture.id}/solve` }, "Go to solve"),
        ),
      );
      this.shown = "";
      return;
    }
    const others = all.filter((entry) => entry.key !== this.first);
    if (!this.find(this.second) || this.second === this.first) this.second = others[0]?.key;
    if (!others.length) this.view = "one";
    const picker = (key, change, label) =>
      h(
        "select",
        { "aria-label": label, onchange: (event) => change(event.target.value) },
        all.map((entry) =>
          h("option", { value: entry.key, selected: entry.key === key }, this.label(entry)),
        ),
      );
    const mode = (key, words) =>
      h(
        "button",
        {
          type: "button",
          "aria-pressed": String(this.view === key),
          disabled: key !== "one" && !others.length,
          onclick: () => {
            this.view = key;
            this.render();
          },
        },
        words,
      );
    replace(
      this.bar,
      picker(
        this.first,
        (key) => {
          this.first = key;
          this.render();
        },
        "Result",
      ),
      this.view === "one"
        ? null
        : [
            h("span", { class: "small" }, "with"),
            picker(
              this.second,
              (key) => {
                this.second = key;
                this.render();
              },
              "Compared with",
            ),
          ],
      h(
        "div",
        { class: "modes row" },
        mode("one", "View"),
        mode("two", "Side by side"),
        mode("swipe", "Swipe"),
      ),
    );
    const key = `${this.view} ${this.first}@${one.made} ${this.view === "one" ? "" : this.second}`;
    if (key !== this.shown) {
      this.shown = key;
      replace(
        this.stage,
        this.view === "swipe"
          ? this.swipe(one, this.find(this.second))
          : [this.frame(one), this.view === "two" ? this.frame(this.find(this.second)) : null],
      );
      this.stage.classList.toggle("two", this.view === "two");
    }
    this.downloads(one);
  }

  label(entry) {
    const words = entry.expected?.words;
    let name = `${entry.name} (${entry.method})`;
    if (entry.preview) name = `Preview (${entry.method})`;
    else if (entry.name.startsWith(entry.method)) name = entry.name;
    const facts = [name, words, entry.outdated ? "other settings" : ""];
    return facts.filter(Boolean).join(" · ");
  }

  frame(entry) {
    return h("iframe", {
      title: `${this.label(entry)} in the viewer`,
      src: `${this.facts.results}/r/${entry.key}/report.html?made=${entry.made}`,
      allow: "fullscreen",
    });
  }

  swipe(one, other) {
    const picture = (entry, side) =>
      h("img", {
        class: side,
        draggable: false,
        src: `${this.facts.results}/r/${entry.key}/normals.png?made=${entry.made}`,
        alt: `Normals of ${this.label(entry)}`,
      });
    const top = picture(other, "right");
    const slider = h("input", {
      type: "range",
      min: "0",
      max: "100",
      value: "50",
      "aria-label": "Divider between the two results",
    });
    const move = () => {
      top.style.clipPath = `inset(0 0 0 ${slider.value}%)`;
      line.style.left = `${slider.value}%`;
    };
    const line = h("div", { class: "swipe-line" });
    slider.addEventListener("input", move);
    const pictures = h("div", { class: "swipe-pictures" }, picture(one, "left"), top, line);
    const follow = (event) => {
      if (event.type === "pointermove" && !event.buttons) return;
      const place = pictures.getBoundingClientRect();
      slider.value = String((100 * (event.clientX - place.left)) / place.width);
      move();
    };
    pictures.firstChild.addEventListener("load", (event) =>
      pictures.style.setProperty("--ratio", event.target.naturalWidth / event.target.naturalHeight),
    );
    for (const kind of ["pointerdown", "pointermove"]) pictures.addEventListener(kind, follow);
    const box = h(
      "div",
      { class: "swipe" },
      pictures,
      slider,
      h(
        "div",
        { class: "row swipe-names small" },
        h("span", {}, this.label(one)),
        h("span", {}, this.label(other)),
      ),
    );
    move();
    return box;
  }

  downloads(entry) {
    const path = `${this.capture.path}/file/${encodeURIComponent(entry.name)}`;
    const files = Object.entries(FILES).filter(([name]) => entry.files.includes(name));
    const formats = h(
      "select",
      { "aria-label": "Another format" },
      this.facts.formats.map((name) => h("option", { value: name }, name.toUpperCase())),
    );
    const words = entry.expected?.words;
    const link = (name, label) =>
      h(
        "a",
        {
          class: name === "mesh.glb" ? "button primary" : "button",
          href: `${path}/${name}`,
          download: name,
        },
        label,
      );
    const more = h(
      "details",
      { class: "menu" },
      h("summary", { class: "button" }, "More files and formats"),
      h(
        "div",
        { class: "menu-box" },
        files.filter(([name]) => name !== "mesh.glb").map(([name, label]) => link(name, label)),
        h(
          "div",
          { class: "row" },
          formats,
          h(
            "button",
            { type: "button", onclick: (event) => this.export(event.target, entry, formats.value) },
            "Export",
          ),
        ),
        h(
          "button",
          { type: "button", onclick: () => this.copy(entry.command, "command") },
          "Copy as command",
        ),
        h(
          "button",
          { type: "button", onclick: () => this.copy(entry.python, "Python") },
          "Copy as Python",
        ),
      ),
    );
    more.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        more.open = false;
        more.firstChild.focus();
      }
    });
    replace(
      this.take,
      h(
        "p",
        { class: "take-words" },
        h("strong", {}, this.label(entry).split(" · ")[0]),
        ` · ${seconds(entry.seconds)}`,
        words ? h("span", { class: "small" }, ` · Expected error: ${words}`) : null,
      ),
      entry.outdated
        ? h(
            "p",
            { class: "small outdated" },
            "Made with other photographs, lights or mask than those chosen now. ",
            h("a", { href: `#/c/${this.capture.id}/solve` }, "Solve again"),
          )
        : null,
      entry.preview
        ? h("p", { class: "small" }, `${PREVIEW} Solve to get files.`)
        : [
            files.some(([name]) => name === "mesh.glb")
              ? link("mesh.glb", FILES["mesh.glb"])
              : null,
            more,
            h("button", { type: "button", onclick: () => this.reveal(entry) }, "Show in folder"),
          ],
    );
  }

  async export(button, entry, format) {
    button.disabled = true;
    const done = await attempt(() => this.capture.act("export", { result: entry.name, format }));
    button.disabled = false;
    if (done) say(`${plural(done.files.length, "file")} in ${done.folder}`, "good");
  }

  async reveal(entry) {
    const done = await attempt(() => this.capture.act("reveal", { result: entry.name }));
    if (done && !done.shown) say(entry.folder);
  }

  async copy(text, what) {
    try {
      await navigator.clipboard.writeText(text);
      say(`Copied as ${what}.`, "good");
    } catch {
      say(text);
    }
  }
}
