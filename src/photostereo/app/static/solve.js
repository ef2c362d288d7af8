// Preview, Fast, Best; other methods and parameters folded away; progress, time left, cancel, log.

import { ask, attempt } from "./api.js";
import { h, PREVIEW, plural, replace, seconds, sentence } from "./dom.js";
import { next } from "./panel.js";

const CHOICES = [
  [
    "preview",
    "Preview",
    "Seconds",
    "A low-resolution result at once, then refined. Writes nothing beside your photographs.",
  ],
  ["fast", "Fast", "", "Full resolution. Robust to shadows and highlights."],
  [
    "best",
    "Best",
    "",
    "Full resolution. The most accurate method: learned reflectance with a dictionary prior.",
  ],
];

// Processor seconds for a million pixels of a photograph, and seconds for everything else (benchmarks/README.md). The
// share of reading counts whatever the mask; more than four processors help little.
const COSTS = { fast: 0.21, best: 0.44 };
const [OTHERS, READING, BUSY, MOST] = [6, 0.15, 0.8, 4];

export function estimate(kind, [width, height], photographs, share, processors) {
  const values = 1e-6 * width * height * photographs * (READING + (1 - READING) * share);
  const spent = OTHERS + (COSTS[kind] * values) / (BUSY * Math.min(processors, MOST));
  return spent < 115
    ? `About ${10 * Math.ceil(spent / 10)} seconds`
    : `About ${plural(Math.round(spent / 60), "minute")}`;
}

const STAGES = {
  photographs: "Reading the photographs",
  alignment: "Checking for camera movement",
  lights: "Finding the lights",
  mask: "Finding the object",
  "estimating lights": "Estimating the lights",
  survey: "Sampling the photographs",
  neighbors: "Preparing",
  network: "Running the network",
  iterations: "Solving",
  noise: "Estimating the noise",
  colors: "Measuring the colors",
  surface: "Preparing the surface",
  integrate: "Integrating the surface",
  "depth and meshes": "Building the mesh",
  "arrays and pictures": "Writing arrays and pictures",
  mesh: "Building the mesh",
  report: "Writing the page",
};

// What a solve would use.
function inputWords(state, count) {
  const sources = { ball: "from a ball", estimated: "estimated" };
  const lights = sources[state.lights?.kind] ?? "from a file";
  const share = (100 * state.mask.share).toFixed(0);
  return `${plural(count, "photograph")} · lights ${lights} · object ${share} % of the frame`;
}

// Why there can be no solve yet.
function waitingWords(state) {
  if (state.looking?.state === "failed") return state.looking.error.message;
  if (state.opening?.state === "failed") return state.opening.error?.message;
  return "Still checking the photographs …";
}

function jobTitle(job) {
  const isPreview = job.kind === "preview";
  switch (job.state) {
    case "running":
      if (!isPreview) return `Solving with ${job.method}`;
      return job.refining ? "Refining the preview" : "Preview";
    case "canceling":
      return "Stopping …";
    case "done":
      return isPreview ? "The preview is ready" : "Done";
    case "failed":
      return "That did not work";
    default:
      return "Canceled";
  }
}

function progressWords(stage) {
  if (stage.seconds_left) return `${seconds(stage.seconds_left)} left`;
  return stage.total ? `${stage.done} of ${stage.total}` : "";
}

export class SolveStep {
  constructor(capture, facts) {
    this.capture = capture;
    this.facts = facts;
    this.cards = h(
      "div",
      { class: "choices" },
      CHOICES.map(([key, name, time, words]) =>
        h(
          "button",
          {
            type: "button",
            class: `choice-card ${key}`,
            "data-choice": key,
            onclick: () => this.begin(key),
          },
          h("strong", {}, name),
          h("span", { class: "badge-line" }, time),
          h("span", { class: "small" }, words),
        ),
      ),
    );
    this.form = h("form", {
      class: "advanced",
      onsubmit: (event) => {
        event.preventDefault();
        this.beginMethod();
      },
    });
    this.more = h("details", {}, h("summary", {}, "Other methods and parameters"), this.form);
    this.more.addEventListener("toggle", () => this.fill(), { once: true });
    // These stay while progress comes in, so that a click is not lost and the log stays open.
    this.title = h("h2", {});
    this.time = h("span", { class: "small" });
    this.stop = h(
      "button",
      { type: "button", class: "cancel", onclick: () => attempt(() => this.capture.act("cancel")) },
      "Cancel",
    );
    this.words = h("div", { class: "ready-list" });
    this.list = h("ol", { class: "stages" });
    this.onward = h("div", {});
    this.job = h(
      "div",
      { class: "job", hidden: true, role: "region", "aria-label": "Progress" },
      h("header", { class: "row" }, this.title, this.time, this.stop),
      this.words,
      this.list,
      this.onward,
      h(
        "details",
        { class: "log", ontoggle: (event) => this.log(event.target) },
        h("summary", {}, "Log"),
        h("pre", { tabindex: "0" }),
      ),
    );
    this.check = h("div", { class: "ready-list" });
    this.element = h(
      "section",
      { class: "step solve wrap", "aria-label": "Solve" },
      h("h1", {}, "Solve"),
      this.check,
      this.cards,
      this.more,
      this.job,
    );
    this.clock = setInterval(() => this.tick(), 500);
  }

  end() {
    clearInterval(this.clock);
  }

  update(parts) {
    const { state } = this.capture;
    const running = ["running", "canceling"].includes(state.job?.state);
    const ready = this.capture.ready && state.mask;
    for (const card of this.cards.children) card.disabled = !ready || running;
    for (const button of this.form.querySelectorAll("button")) button.disabled = !ready || running;
    if (parts.has("job") || parts.has("results") || parts.has("preview")) this.progress(state.job);
    const files = (state.capture?.files ?? []).filter((name) => this.capture.used(name)).length;
    for (const kind of ready ? Object.keys(COSTS) : []) {
      this.cards.querySelector(`.${kind} .badge-line`).textContent = estimate(
        kind,
        state.opening.full,
        files,
        state.mask.share,
        this.facts.processors,
      );
    }
    const problems =
      state.findings?.general?.filter((finding) => finding.severity === "problem") ?? [];
    replace(
      this.check,
      h("p", { class: "small" }, ready ? inputWords(state, files) : waitingWords(state)),
      problems.slice(0, 2).map((finding) => h("p", { class: "alert notice" }, finding.text)),
    );
  }

  begin(kind) {
    return attempt(() =>
      kind === "preview"
        ? this.capture.act("preview")
        : this.capture.act("solve", { method: kind }),
    );
  }

  async fill() {
    const facts = await attempt(() => ask("/api/methods"));
    if (!facts) return;
    this.methods = facts.methods;
    this.method = h(
      "select",
      { id: "method", onchange: () => this.parameters() },
      facts.methods.map((method) =>
        h(
          "option",
          { value: method.name, selected: method.name === "dlnet" },
          `${method.name}: ${method.title}`,
        ),
      ),
    );
    this.scale = h(
      "select",
      { id: "scale" },
      [
        [1, "Full"],
        [0.5, "Half"],
        [0.25, "Quarter"],
      ].map(([value, words]) => h("option", { value: String(value) }, words)),
    );
    this.fields = h("div", { class: "fields" });
    replace(
      this.form,
      h(
        "div",
        { class: "row" },
        h("label", { for: "method" }, "Method"),
        this.method,
        h("label", { for: "scale" }, "Resolution"),
        this.scale,
      ),
      this.fields,
      h("button", { class: "primary" }, "Solve with these"),
    );
    this.parameters();
  }

  parameters() {
    const method = this.methods.find((one) => one.name === this.method.value);
    replace(
      this.fields,
      h("p", { class: "small" }, method.assumes),
      method.parameters.map((parameter) =>
        h(
          "label",
          { class: "field" },
          h("span", {}, parameter.name),
          h("input", {
            name: parameter.name,
            placeholder: parameter.default,
            title: parameter.expects,
          }),
          h("span", { class: "small" }, `${parameter.meaning} (${parameter.expects})`),
        ),
      ),
    );
  }

  beginMethod() {
    const parameters = {};
    for (const input of this.fields.querySelectorAll("input"))
      if (input.value.trim()) parameters[input.name] = input.value.trim();
    return attempt(() =>
      this.capture.act("solve", {
        method: this.method.value,
        parameters,
        scale: Number(this.scale.value),
      }),
    );
  }

  progress(job) {
    this.job.hidden = !job;
    if (!job) return;
    const running = ["running", "canceling"].includes(job.state);
    // What is done several times, such as reading, has one line.
    const stages = [];
    for (const stage of job.stages ?? []) {
      const before = stages.find((one) => one.stage === stage.stage);
      if (before && stage.ended) before.began -= stage.ended - stage.began;
      else stages.push({ ...stage });
    }
    const list = stages.map((stage, number) => {
      const current = running && number === stages.length - 1;
      const share = stage.total ? Math.min(1, stage.done / stage.total) : null;
      return h(
        "li",
        { class: current ? "current" : "past" },
        h("span", {}, STAGES[stage.stage] ?? sentence(stage.stage).slice(0, -1)),
        current
          ? h("progress", {
              max: "1",
              ...(share === null ? {} : { value: String(share) }),
              "aria-label": stage.stage,
            })
          : null,
        h(
          "span",
          { class: "small" },
          current ? progressWords(stage) : seconds(stage.ended - stage.began),
        ),
      );
    });
    this.title.textContent = jobTitle(job);
    this.stop.hidden = !running;
    this.stop.disabled = job.state === "canceling";
    replace(
      this.words,
      job.error ? h("p", { class: "alert problem" }, job.error.message) : null,
      job.state === "done" && job.summary?.expected_error
        ? h(
            "p",
            {},
            `Expected error: ${job.summary.expected_error.words}.${job.kind === "preview" ? ` ${PREVIEW}` : ""}`,
          )
        : null,
      (job.summary?.expected_error?.reasons ?? []).map((reason) =>
        h("p", { class: "alert notice" }, reason),
      ),
    );
    replace(this.list, job.state === "done" ? null : list);
    const shown = job.kind === "preview" ? this.capture.state.preview : job.state === "done";
    const key = shown ? job.kind : "";
    if (this.onward.dataset.key !== key)
      replace(
        this.onward,
        shown
          ? next(
              this.capture,
              "result",
              job.kind === "preview" ? "Show the preview" : "Show the result",
            )
          : null,
      );
    this.onward.dataset.key = key;
    this.tick();
  }

  async log(details) {
    if (!details.open) return;
    const facts = await attempt(() => ask(`${this.capture.path}/log`));
    const stages = (this.capture.state.job?.stages ?? []).map(
      (stage) =>
        `${stage.stage}${stage.ended ? `: ${(stage.ended - stage.began).toFixed(1)} s` : " …"}`,
    );
    if (facts)
      details.querySelector("pre").textContent =
        [...stages, ...facts.lines].join("\n") || "Nothing yet.";
  }

  tick() {
    const { job } = this.capture.state;
    const parts = job?.summary?.seconds; // the same number as in the list of results, in the terminal and on the page
    if (job)
      this.time.textContent = seconds(
        parts
          ? Object.values(parts).reduce((sum, part) => sum + part, 0)
          : (job.ended ?? Date.now() / 1000) - job.began,
      );
  }
}
