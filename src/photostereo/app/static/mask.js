// What belongs to the object: automatic, then painted over by hand.

import { attempt, put } from "./api.js";
import { h, replace, segments, sentence } from "./dom.js";
import { MaskCanvas } from "./mask-canvas.js";
import { columns, Glance, next } from "./panel.js";

// Where the mask comes from, if the user has chosen nothing or something.
function maskKind(chosen, file, lights) {
  if (chosen) return ["auto", "full"].includes(chosen) ? chosen : "painted";
  if (file) return "file";
  return lights?.kind === "file" ? "default" : "auto";
}

function maskWords(mask, kind) {
  if (!mask) return "Looking for the object …";
  if (kind === "painted") return "Painted by hand; saved beside the photographs.";
  const note = (mask.notes[0] ?? "")
    .replace(/^no mask file: the mask was /, "")
    .replace(/ \(\d+ % of the frame\)/, "");
  return sentence(note);
}

export class MaskStep {
  constructor(capture) {
    this.capture = capture;
    this.board = new MaskCanvas(() => this.painted());
    this.glance = new Glance(capture);
    this.words = h("div", {});
    this.origin = h("div", {});
    const button = (words, title, onclick) =>
      h("button", { type: "button", title, onclick }, words);
    this.undo = button("Undo", "Ctrl+Z", () => this.board.undo());
    this.redo = button("Redo", "Ctrl+Shift+Z", () => this.board.redo());
    this.size = h("input", {
      type: "range",
      min: "2",
      max: "120",
      value: "28",
      "aria-label": "Size of the brush",
      oninput: () => {
        this.board.size = Number(this.size.value);
      },
    });
    this.tools = segments(
      "Tool",
      [
        ["brush", "Brush", "B: add to the object"],
        ["eraser", "Eraser", "E: remove from the object"],
        ["polygon", "Polygon", "P: click corners, then the first one again; hold Alt to remove"],
      ],
      "brush",
      (tool) => {
        this.board.tool = tool;
      },
    );
    this.strip = h("div", { class: "strip row" });
    this.at = 0;
    const tools = [
      this.tools,
      h("label", { class: "slider" }, h("span", {}, "Brush size"), this.size),
      h(
        "div",
        { class: "buttons" },
        button("Grow", "By one pixel", () => this.board.grow(1)),
        button("Shrink", "By one pixel", () => this.board.grow(-1)),
        this.undo,
        this.redo,
      ),
      h(
        "div",
        { class: "buttons", role: "group", "aria-label": "Zoom" },
        button("−", "Zoom out", () => this.board.zoomBy(0.8)),
        button("Fit", "The whole photograph", () => this.board.fit()),
        button("+", "Zoom in", () => this.board.zoomBy(1.25)),
      ),
    ];
    this.element = columns(
      "mask",
      "Mask",
      [this.board.element, this.strip],
      [h("h1", {}, "Mask"), this.words, this.origin, tools, this.glance.element],
      next(capture, "solve", "Continue to solve"),
    );
    this.keys = (event) => this.key(event);
    window.addEventListener("keydown", this.keys);
  }

  end() {
    window.removeEventListener("keydown", this.keys);
    this.board.end();
    if (this.saving) this.save();
  }

  key(event) {
    if (event.target.closest("input:not([type=range]):not([type=radio]), select, textarea")) return;
    const letter = event.key.toLowerCase();
    if ((event.ctrlKey || event.metaKey) && letter === "z") {
      event.preventDefault();
      if (event.shiftKey) this.board.redo();
      else this.board.undo();
    } else if (!event.ctrlKey && !event.metaKey) {
      const tool = { b: "brush", e: "eraser", p: "polygon" }[letter];
      if (tool) this.tools.querySelector(`[value=${tool}]`).click();
      if (letter === "[" || letter === "]") {
        this.size.value = Number(this.size.value) * (letter === "]" ? 1.2 : 0.83);
        this.board.size = Number(this.size.value);
      }
    }
  }

  update(parts) {
    const { state } = this.capture;
    this.glance.update(state);
    const { opening, mask, edits, capture } = state;
    if (opening?.state !== "done") return;
    this.board.open(opening.small, () => this.capture.picture("view", this.at));
    this.showStrip(capture.files);
    // What was painted here is newer than what comes back, even after it was saved: an earlier stroke may come back late.
    if (mask && mask.version !== this.version && !this.isPainted && !this.board.busy) {
      this.version = mask.version;
      this.board.load(this.capture.picture("mask", 0, mask.version));
    }
    const kind = maskKind(edits?.mask, capture.mask_file, state.lights);
    if (this.origin.dataset.kind !== kind) {
      this.origin.dataset.kind = kind;
      const choices = [
        ["auto", "Automatic", "Find the object in the photographs"],
        ["full", "Whole frame", "Everything is the object"],
      ];
      if (capture.mask_file) choices.unshift(["file", "File", capture.mask_file]);
      replace(
        this.origin,
        segments("Start with", choices, kind, (chosen) => this.begin(chosen)),
      );
    }
    if (parts.has("mask") || parts.has("looking")) {
      const failed = state.looking?.state === "failed" && !mask ? state.looking.error.message : "";
      replace(
        this.words,
        mask ? h("p", { class: "lead" }, `${(100 * mask.share).toFixed(0)} % of the frame`) : null,
        failed ? h("p", { class: "alert problem" }, failed) : null,
        h("p", { class: "small" }, maskWords(mask, kind)),
      );
    }
  }

  showStrip(files) {
    if (this.strip.dataset.at === String(this.at)) return;
    this.strip.dataset.at = String(this.at);
    const turn = (by) => {
      this.at = (this.at + by + files.length) % files.length;
      this.board.show(this.capture.picture("view", this.at));
      this.showStrip(files);
    };
    replace(
      this.strip,
      h(
        "button",
        { type: "button", "aria-label": "Previous photograph", onclick: () => turn(-1) },
        "←",
      ),
      h(
        "p",
        { class: "small" },
        `${files[this.at]} · ${matchMedia("(hover: none)").matches ? "use two fingers to zoom and move" : "scroll to zoom, hold Space and drag to move"}`,
      ),
      h("button", { type: "button", "aria-label": "Next photograph", onclick: () => turn(1) }, "→"),
    );
  }

  begin(kind) {
    clearTimeout(this.saving);
    this.saving = null;
    this.isPainted = false;
    this.board.forget();
    this.capture.edit({ mask: kind === "file" ? null : kind });
  }

  painted() {
    this.isPainted = true;
    clearTimeout(this.saving);
    this.saving = setTimeout(() => this.save(), 350);
  }

  async save() {
    clearTimeout(this.saving);
    const picture = await this.board.png();
    await attempt(() => put(`${this.capture.path}/mask`, picture));
    this.saving = null;
  }
}
