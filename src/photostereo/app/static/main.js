// The frame around the steps: which capture is open, which step is shown, what is known of each step.

import { ask, Capture, say } from "./api.js";
import { h, replace } from "./dom.js";
import { LightsStep } from "./lights.js";
import { MaskStep } from "./mask.js";
import { PhotographsStep } from "./photographs.js";
import { ResultStep } from "./result.js";
import { SolveStep } from "./solve.js";
import { StartPage } from "./start.js";

const STEPS = [
  ["photographs", "Photographs", PhotographsStep],
  ["lights", "Lights", LightsStep],
  ["mask", "Mask", MaskStep],
  ["solve", "Solve", SolveStep],
  ["result", "Result", ResultStep],
];

class Frame {
  constructor(facts) {
    this.facts = facts;
    this.main = document.getElementById("main");
    this.capture = null;
    this.step = null;
    window.addEventListener("hashchange", () => this.route());
    this.route();
  }

  route() {
    const [, kind, id, name = "photographs"] = location.hash.split("/");
    if (kind !== "c" || !id) {
      this.leave();
      this.show(new StartPage(this.facts), "start");
      return;
    }
    if (this.capture?.id !== id) {
      this.leave();
      this.capture = new Capture(id, (changed) => this.changed(changed));
    }
    const entry = STEPS.find(([key]) => key === name) ?? STEPS[0];
    this.show(new entry[2](this.capture, this.facts), entry[0]);
  }

  leave() {
    this.capture?.close();
    this.capture = null;
    document.documentElement.classList.remove("ended");
    document.querySelector("#messages .ended")?.remove();
  }

  show(step, name) {
    this.step?.end?.();
    this.step = step;
    this.name = name;
    document.documentElement.dataset.step = name;
    replace(this.main, step.element);
    this.steps();
    if (this.capture && Object.keys(this.capture.state).length) this.changed(new Set(Object.keys(this.capture.state)));
  }

  changed(parts) {
    this.steps();
    this.step?.update?.(parts);
    document.documentElement.dataset.ready = "yes";
  }

  steps() {
    document.documentElement.classList.toggle("stuck", Boolean(this.capture?.tooFew));
    const where = document.getElementById("where");
    const nav = document.getElementById("steps");
    if (!this.capture) {
      replace(where);
      replace(nav);
      document.title = "photostereo";
      return;
    }
    const state = this.capture.state;
    where.textContent = state.capture?.name ?? "";
    where.title = state.capture?.folder ?? "";
    document.title = `${state.capture?.name ?? "…"} – photostereo`;
    // What is pressed must not be replaced under the pointer: only if something changed.
    const key = JSON.stringify([this.capture.id, this.name, STEPS.map(([name]) => this.mark(name, state))]);
    if (nav.dataset.key === key && nav.firstChild) return;
    nav.dataset.key = key;
    const focused = nav.contains(document.activeElement) ? document.activeElement.dataset.step : null;
    replace(nav, h("ol", {}, STEPS.map(([key, words], number) => {
      const [mark, said] = this.mark(key, state);
      return h("li", {}, h("a", { href: `#/c/${this.capture.id}/${key}`, "aria-current": key === this.name ? "step" : null, "data-step": key },
        h("span", { class: `mark ${mark}`, "aria-hidden": "true" }, mark === "good" ? "✓" : mark === "problem" ? "!" : mark === "busy" ? "" : String(number + 1)),
        h("span", { class: "step-name" }, words), said && h("span", { class: "visually-hidden" }, ` (${said})`)));
    })));
    if (focused) nav.querySelector(`[data-step=${focused}]`)?.focus();
  }

  mark(key, state) {
    const failed = state.looking?.state === "failed" && !this.capture.tooFew;
    if (key === "photographs") {
      if (state.opening?.state === "failed" || this.capture.tooFew) return ["problem", "problem"];
      if (state.opening?.state === "running") return ["busy", "working"];
      return state.photographs?.length ? ["good", "done"] : ["", ""];
    }
    if (key === "lights") return state.lights && (state.lights.checked || failed) ? (failed ? ["problem", "problem"] : state.lights.warnings.length ? ["notice", "with warnings"] : ["good", "done"]) : this.capture.tooFew ? ["", ""] : failed ? ["problem", "problem"] : [state.opening?.state === "done" ? "busy" : "", ""];
    if (key === "mask") return state.mask ? ["good", "done"] : ["", ""];
    if (key === "solve") return ["running", "canceling"].includes(state.job?.state) ? ["busy", "solving"] : state.job?.state === "failed" ? ["problem", "failed"] : state.results?.length ? ["good", "done"] : ["", ""];
    return state.results?.length ? ["good", "done"] : ["", ""];
  }
}

try {
  const facts = await ask("/api/start");
  if (facts.first && !location.hash) location.replace(`#/c/${facts.first}/photographs`);
  new Frame(facts);
  document.documentElement.dataset.ready ||= "yes";
} catch (problem) {
  say(problem.message, "problem");
}
