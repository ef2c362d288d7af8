// The frame around the steps: which capture is open, which step is shown, what is known of each step.

import { ask, Capture, say } from "./api.js";
import { h, replace } from "./dom.js";
import { listenForDrops, Sender } from "./drop.js";
import { LightsStep } from "./lights.js";
import { MaskStep } from "./mask.js";
import { PhotographsStep } from "./photographs.js";
import { ResultStep } from "./result.js";
import { SolveStep } from "./solve.js";
import { StartPage } from "./start.js";

/** @type {[string, string, new (capture: Capture, facts: object) => any][]} */
const STEPS = [
  ["photographs", "Photographs", PhotographsStep],
  ["lights", "Lights", LightsStep],
  ["mask", "Mask", MaskStep],
  ["solve", "Solve", SolveStep],
  ["result", "Result", ResultStep],
];

// The sign of a step that is not its number.
const MARKS = { good: "✓", problem: "!", busy: "" };
// How a step stands: its mark, and the same in words.
const DONE = ["good", "done"];
const WARNINGS = ["notice", "with warnings"];
const OUTDATED = ["notice", "made with other settings"];
const PROBLEM = ["problem", "problem"];
const NOTHING = ["", ""];

function markResults(results = []) {
  if (!results.length) return NOTHING;
  return results.every((result) => result.outdated) ? OUTDATED : DONE;
}

class Frame {
  constructor(facts) {
    this.facts = facts;
    this.main = document.getElementById("main");
    this.sender = new Sender(facts.accepts, (words) => this.progress(words));
    listenForDrops(this.sender);
    this.capture = null;
    this.step = null;
    window.addEventListener("hashchange", () => this.route());
    this.route();
  }

  route() {
    const [, kind, id, name = "photographs"] = location.hash.split("/");
    if (kind !== "c" || !id) {
      this.leave();
      this.show(new StartPage(this.facts, this.sender), "start");
      return;
    }
    if (this.capture?.id !== id) {
      this.leave();
      this.capture = new Capture(id, (changed) => this.changed(changed));
    }
    const entry = STEPS.find(([key]) => key === name) ?? STEPS[0];
    this.show(new entry[2](this.capture, this.facts), entry[0]);
  }

  // How far the copying of photographs is: on the start page, or above any other.
  progress(words) {
    const place = document.getElementById("progress");
    place.textContent = words;
    place.hidden = !words;
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
    if (this.capture && Object.keys(this.capture.state).length)
      this.changed(new Set(Object.keys(this.capture.state)));
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
    const key = JSON.stringify([
      this.capture.id,
      this.name,
      STEPS.map(([name]) => this.mark(name, state)),
    ]);
    if (nav.dataset.key === key && nav.firstChild) return;
    nav.dataset.key = key;
    const active = /** @type {HTMLElement} */ (document.activeElement);
    const focused = nav.contains(active) ? active.dataset.step : null;
    replace(
      nav,
      h(
        "ol",
        {},
        STEPS.map(([key, words], number) => {
          const [mark, said] = this.mark(key, state);
          return h(
            "li",
            {},
            h(
              "a",
              {
                href: `#/c/${this.capture.id}/${key}`,
                "aria-current": key === this.name ? "step" : null,
                "data-step": key,
              },
              h(
                "span",
                { class: `mark ${mark}`, "aria-hidden": "true" },
                MARKS[mark] ?? String(number + 1),
              ),
              h("span", { class: "step-name" }, words),
              said && h("span", { class: "visually-hidden" }, ` (${said})`),
            ),
          );
        }),
      ),
    );
    /** @type {HTMLElement} */
    const again = focused ? nav.querySelector(`[data-step=${focused}]`) : null;
    again?.focus();
  }

  mark(key, state) {
    switch (key) {
      case "photographs":
        return this.markPhotographs(state);
      case "lights":
        return this.markLights(state);
      case "mask":
        return state.mask ? DONE : NOTHING;
      case "solve":
        if (["running", "canceling"].includes(state.job?.state)) return ["busy", "solving"];
        if (state.job?.state === "failed") return ["problem", "failed"];
        return markResults(state.results);
      default:
        return markResults(state.results);
    }
  }

  markPhotographs(state) {
    if (state.opening?.state === "failed" || this.capture.tooFew) return PROBLEM;
    if (state.opening?.state === "running") return ["busy", "working"];
    return state.photographs?.length ? DONE : NOTHING;
  }

  markLights(state) {
    if (state.looking?.state === "failed" && !this.capture.tooFew) return PROBLEM;
    if (state.lights?.checked) return state.lights.warnings.length ? WARNINGS : DONE;
    if (this.capture.tooFew) return NOTHING;
    return [state.opening?.state === "done" ? "busy" : "", ""];
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
