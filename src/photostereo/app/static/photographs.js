// The contact sheet: every photograph with what was noticed about it; a click leaves it out or takes it back.

import { h, plural, replace } from "./dom.js";
import { columns, findings, Glance, next } from "./panel.js";

export class PhotographsStep {
  constructor(capture) {
    this.capture = capture;
    this.tiles = new Map();
    this.sheet = h("div", { class: "contact", role: "group", "aria-label": "Photographs" });
    this.glance = new Glance(capture);
    this.summary = h("div", { class: "summary" });
    this.notes = h("div", {});
    this.large = h("dialog", { class: "large", "aria-label": "Photograph" });
    this.element = columns(
      "photographs",
      "Photographs",
      [this.sheet, this.large],
      [this.summary, this.glance.element, this.notes],
      next(capture, "lights", "Continue to the lights"),
    );
  }

  update(parts) {
    const { state } = this.capture;
    this.glance.update(state);
    const files = state.capture?.files ?? [];
    const known = new Map((state.photographs ?? []).map((about) => [about.name, about]));
    for (const [number, name] of files.entries()) {
      if (!this.tiles.has(name)) this.add(name, number);
      this.show(name, known.get(name), state.findings?.photographs?.[name] ?? []);
    }
    if (
      parts.has("opening") ||
      parts.has("photographs") ||
      parts.has("edits") ||
      parts.has("findings") ||
      parts.has("looking") ||
      parts.has("capture")
    )
      this.panel(state, files, known);
  }

  add(name, number) {
    const image = h("img", { alt: "", decoding: "async" });
    const badges = h("span", { class: "badges" });
    const button = h(
      "button",
      {
        type: "button",
        class: "tile-button",
        onclick: () => {
          if (!tile.unusable) this.capture.toggle(name);
        },
      },
      h("span", { class: "tile-picture" }, image),
      badges,
      h("span", { class: "tile-name" }, name),
    );
    const zoom = h(
      "button",
      {
        type: "button",
        class: "tile-zoom",
        "aria-label": `Enlarge ${name}`,
        onclick: () => this.enlarge(number),
      },
      "⤢",
    );
    const element = h("div", { class: "tile waiting" }, button, zoom);
    const tile = { element, image, badges, button, number };
    this.tiles.set(name, tile);
    this.sheet.append(element);
  }

  show(name, about, notes) {
    const tile = this.tiles.get(name);
    const used = this.capture.used(name);
    const kept = used && this.capture.fault(name);
    tile.unusable = about?.error || about?.unfit;
    if (about && !about.error && !tile.image.src) {
      tile.image.src = this.capture.picture("thumb", tile.number);
      tile.element.classList.remove("waiting");
    }
    const words = [...notes];
    if (about?.error) words.push("cannot be read");
    else if (about?.unfit) words.push(about.unfit);
    else if (about && !notes.length && about.clipped > 0.03)
      words.push(`${Math.round(100 * about.clipped)} % white`);
    tile.element.classList.toggle("out", !used);
    tile.element.classList.toggle("broken", Boolean(about?.error));
    tile.button.setAttribute("aria-pressed", String(used));
    let state = "Not used; press to use it anyway";
    let word = "not used";
    if (used) {
      state = kept ? "Kept by you; press to leave it out" : "Used; press to leave it out";
      word = kept ? "kept" : "";
    } else if (this.capture.left.has(name)) {
      state = "Left out; press to use it";
      word = "left out";
    }
    if (tile.unusable) state = "Cannot be used";
    tile.button.setAttribute(
      "aria-label",
      `${name}${words.length ? `, ${words.join(", ")}` : ""}. ${state}`,
    );
    tile.button.title = about?.error ?? state.replace("press", "click");
    replace(
      tile.badges,
      word ? h("span", { class: used ? "badge kept" : "badge off" }, word) : null,
      words.map((text) => h("span", { class: "badge" }, text)),
    );
  }

  panel(state, files, known) {
    const { opening, capture } = state;
    const done = known.size;
    const used = files.filter((name) => this.capture.used(name)).length;
    const size = [...known.values()].find((about) => about.size)?.size;
    const facts = [
      [
        used === files.length
          ? plural(files.length, "photograph")
          : `${used} of ${files.length} photographs used`,
        "strong",
      ],
      size
        ? [`${size[0]} × ${size[1]} pixels. Click one to leave it out or to use it.`, "span"]
        : null,
      opening?.state === "running" && files.length
        ? [`Reading ${done} of ${files.length}`, "span"]
        : null,
      capture?.ambient ? [`${capture.ambient}: subtracted as ambient light`, "span"] : null,
      capture?.flat ? [`${capture.flat}: used as flat field`, "span"] : null,
    ].filter(Boolean);
    const failed = opening?.state === "failed";
    this.element.classList.toggle("failed", failed);
    if (failed) {
      replace(
        this.sheet,
        h(
          "div",
          { class: "empty-state" },
          h(
            "h2",
            {},
            opening.error?.code === "no-photographs"
              ? "No photographs in this folder"
              : "This folder cannot be opened",
          ),
          opening.error?.code === "no-photographs"
            ? h(
                "p",
                {},
                "Use JPEG, PNG, TIFF, HEIC or raw photographs of one object, one for each light.",
              )
            : h("p", { class: "alert problem" }, opening.error?.message ?? ""),
          h("a", { class: "button primary", href: "#/" }, "Choose other photographs"),
        ),
      );
      replace(
        this.summary,
        h("h1", {}, "Photographs"),
        h("p", { class: "small" }, state.capture?.folder),
      );
      replace(this.notes);
      return;
    }
    replace(
      this.summary,
      h("h1", {}, "Photographs"),
      facts.map(([words, tag]) => h("p", { class: tag === "strong" ? "lead" : "small" }, words)),
    );
    let notes = h("p", { class: "small" }, "Checking …");
    if (state.looking?.state === "failed") {
      notes = h("p", { class: "alert problem" }, state.looking.error.message);
    } else if (state.findings) notes = findings(state.findings.general);
    replace(this.notes, h("h2", { class: "panel-title" }, "Findings"), notes);
  }

  enlarge(number) {
    const files = this.capture.state.capture.files;
    const at = (number + files.length) % files.length;
    const close = () => this.large.close();
    replace(
      this.large,
      h(
        "header",
        {},
        h("p", {}, files[at]),
        h(
          "div",
          { class: "row" },
          h(
            "button",
            { type: "button", "aria-label": "Previous", onclick: () => this.enlarge(at - 1) },
            "←",
          ),
          h(
            "button",
            { type: "button", "aria-label": "Next", onclick: () => this.enlarge(at + 1) },
            "→",
          ),
          h("button", { type: "button", "aria-label": "Close", onclick: close }, "×"),
        ),
      ),
      h("img", { src: this.capture.picture("view", at), alt: files[at] }),
    );
    this.large.onkeydown = (event) => {
      if (event.key === "ArrowLeft") this.enlarge(at - 1);
      if (event.key === "ArrowRight") this.enlarge(at + 1);
    };
    if (!this.large.open) this.large.showModal();
  }
}
