// What every step shows at the side: a quick look at the normals, and findings.

import { h, sentence } from "./dom.js";

export class Glance {
  constructor(capture) {
    this.capture = capture;
    this.image = h("img", {
      alt: "Normals of the quick look: red to the right, green up, blue to the camera",
      hidden: true,
    });
    this.words = h("p", { class: "small" });
    this.element = h(
      "figure",
      { class: "glance" },
      h("div", { class: "glance-frame" }, this.image),
      h("figcaption", {}, h("strong", {}, "Quick look"), this.words),
    );
  }

  update(state) {
    const { glance, looking, opening } = state;
    if (glance && this.version !== glance.version) {
      this.version = glance.version;
      this.image.src = this.capture.picture("glance", 0, glance.version);
      this.image.hidden = false;
    }
    const working = opening?.state === "running" || looking?.state === "running";
    this.element.classList.toggle("working", working);
    this.element.hidden = opening?.state === "failed";
    this.words.textContent = glanceWords(state, working);
  }
}

function glanceWords({ glance, looking, opening }, working) {
  if (looking?.state === "failed") return glance ? "Not updated." : "Nothing to show yet.";
  if (opening?.state === "running") return "Reading the photographs …";
  if (working) return `Working: ${looking.stage ?? "…"}`;
  return glance ? "Low resolution, updated with every correction." : "";
}

export function findings(list, empty = "") {
  if (!list.length) return empty ? h("p", { class: "small" }, empty) : null;
  const words = { problem: "Problem", notice: "Note", good: "Good" };
  return h(
    "ul",
    { class: "findings" },
    list.map((finding) =>
      h(
        "li",
        { class: `finding ${finding.severity}` },
        h("span", { class: "badge" }, words[finding.severity]),
        h("p", {}, sentence(finding.text)),
      ),
    ),
  );
}

// A step's two columns: what is looked at, and what can be set, with the way on below.
export function columns(name, title, stage, panel, onward) {
  return h(
    "section",
    { class: `step ${name}`, "aria-label": title },
    h("div", { class: "stage-area" }, stage),
    h(
      "aside",
      { class: "panel", "aria-label": `${title}: settings` },
      h("div", { class: "panel-scroll" }, panel),
      onward,
    ),
  );
}

export function next(capture, step, words) {
  return h("a", { class: "button primary next", href: `#/c/${capture.id}/${step}` }, words);
}
