// Where the lights were: from a file, a ball whose circle can be dragged, or estimated; single lights can be moved.

import { attempt, post, say } from "./api.js";
import { h, replace, s, segments, sentence } from "./dom.js";
import { Dome } from "./dome.js";
import { columns, Glance, next } from "./panel.js";

function sourceWords(lights) {
  if (lights.kind === "ball") {
    const where = lights.balls.length ? "" : ", in photographs of its own";
    return `From a ${lights.ball_kind ?? ""} ball${where}`;
  }
  return lights.kind === "estimated" ? "Estimated from the photographs" : `From ${lights.source}`;
}

function accuracyWords(lights) {
  const degrees = lights.accuracy ?? null;
  if (!lights.checked) return "checking their accuracy …";
  if (degrees === null) return "accuracy not known";
  const number =
    lights.kind === "estimated" ? degrees.toFixed(0) : Math.max(0.1, degrees).toFixed(1);
  return `accurate to about ${number}°`;
}

// What is known of one light, after its name.
function lightWords(lights, number) {
  if (number < 0) return "";
  const words = [`: strength ${lights.strengths[number].toFixed(2)}`];
  const error = lights.errors?.[number];
  if (error) words.push(`±${Math.max(error, 0.1).toFixed(1)}°`);
  if (lights.checked) words.push(lights.found_from[number]);
  return words.join(", ");
}

export class LightsStep {
  constructor(capture) {
    this.capture = capture;
    this.selected = null;
    this.dragging = false;
    this.live = null; // lights of a circle that is being dragged
    this.dome = new Dome({
      select: (name) => this.select(name),
      move: (name, to) => this.move(name, to),
      leaveOut: (name) => this.leaveOut(name),
    });
    this.photo = h("img", { class: "photo", alt: "The selected photograph", draggable: false });
    this.over = s("svg", { class: "over" });
    this.box = h("div", { class: "photo-box" }, this.photo, this.over);
    this.frame = h("div", { class: "photo-frame" }, this.box);
    this.strip = h("div", { class: "strip row" });
    this.source = h("div", {});
    this.words = h("div", {});
    this.detail = h("div", { class: "detail" });
    this.glance = new Glance(capture);
    this.element = columns(
      "lights",
      "Lights",
      [this.frame, this.strip],
      [h("h1", {}, "Lights"), this.source, this.words, this.glance.element, this.dome.element],
      [this.detail, next(capture, "mask", "Continue to the mask")],
    );
  }

  get lights() {
    return this.live ?? this.capture.state.lights;
  }

  update(parts) {
    const { state } = this.capture;
    this.glance.update(state);
    if (!state.capture?.files?.length) return;
    this.selected ??= state.capture.files[0];
    if (parts.has("lights")) this.live = null;
    if (state.lights?.kind === "ball" && !state.edits?.circle) this.capture.foundBall = true;
    if (
      ["lights", "edits", "capture", "opening", "looking", "photographs"].some((name) =>
        parts.has(name),
      )
    )
      this.render();
  }

  render() {
    const { state } = this.capture;
    const { lights } = this;
    const files = state.capture.files;
    const at = Math.max(0, files.indexOf(this.selected));
    const address = this.capture.picture("view", at);
    if (
      state.photographs?.some((about) => about.number === at && !about.error) &&
      this.photo.getAttribute("src") !== address
    )
      this.photo.src = address;
    this.showStrip(files, at);
    this.showSource(state, lights);
    this.showWords(state, lights);
    if (lights)
      this.dome.show(lights, {
        selected: this.selected,
        moved: state.edits?.moved_lights ?? {},
      });
    this.dome.element.classList.toggle("empty", !lights);
    this.showDetail(state, lights);
    if (!this.dragging) this.showCircle(state, lights);
  }

  showStrip(files, at) {
    if (this.strip.dataset.key === `${at} ${files.length}`) return;
    this.strip.dataset.key = `${at} ${files.length}`;
    const turn = (by) => this.select(files[(at + by + files.length) % files.length]);
    replace(
      this.strip,
      h(
        "button",
        { type: "button", "aria-label": "Previous photograph", onclick: () => turn(-1) },
        "←",
      ),
      h("p", { class: "small" }, `${this.selected} · ${at + 1} of ${files.length}`),
      h("button", { type: "button", "aria-label": "Next photograph", onclick: () => turn(1) }, "→"),
    );
  }

  showSource(state, lights) {
    let kind = lights?.kind ?? "";
    if (state.edits?.lights === "estimate") kind = "estimated";
    else if (state.edits?.circle) kind = "ball";
    const choices = [
      ["ball", "Ball", "A ball beside the object"],
      ["estimated", "Estimated", "From the photographs alone"],
    ];
    if (state.capture.light_file) choices.unshift(["file", "File", state.capture.light_file]);
    const key = JSON.stringify([kind, choices.length]);
    if (this.source.dataset.key === key) return;
    this.source.dataset.key = key;
    replace(
      this.source,
      segments("Found from", choices, kind, (chosen) => this.choose(chosen)),
    );
  }

  choose(kind) {
    if (kind === "file") this.capture.edit({ circle: null, lights: null });
    else if (kind === "estimated") this.capture.edit({ circle: null, lights: "estimate" });
    else if (this.capture.foundBall) this.findAgain();
    else this.mark();
  }

  // The ball that was found in the photographs, instead of a circle drawn by hand.
  findAgain() {
    this.capture.edit({ lights: null, circle: null });
  }

  // A circle to be put on the ball.
  mark() {
    const [width, height] = this.capture.state.opening.full;
    const found = this.lights?.balls?.[0]?.circle;
    this.capture.edit({
      lights: null,
      circle: found ?? [width * 0.8, height * 0.75, height * 0.1],
    });
    if (!found) say("Drag the circle onto the ball and its handle to the outline.");
  }

  showWords(state, lights) {
    const failed = state.looking?.state === "failed" ? state.looking.error : null;
    if (failed && !this.live) {
      replace(
        this.words,
        h("p", { class: "alert problem" }, failed.message),
        h("button", { type: "button", onclick: () => this.mark() }, "Mark the ball"),
      );
      return;
    }
    if (!lights) {
      replace(this.words, h("p", { class: "small" }, "Looking for the lights …"));
      return;
    }
    const degrees = lights.accuracy ?? null;
    const grade = degrees !== null && degrees < 2 ? "good" : "notice";
    replace(
      this.words,
      h("p", { class: "lead" }, sourceWords(lights)),
      h("p", {}, h("span", { class: `badge-line ${grade}` }, accuracyWords(lights))),
      state.edits?.circle && this.capture.foundBall
        ? h("button", { type: "button", onclick: () => this.findAgain() }, "Find the ball again")
        : null,
      lights.strengths_source
        ? h("p", { class: "small" }, `Strengths: ${lights.strengths_source}`)
        : null,
      lights.warnings.map((warning) => h("p", { class: "alert notice" }, sentence(warning.text))),
    );
  }

  showDetail(state, lights) {
    const name = this.selected;
    const number = lights?.files.indexOf(name) ?? -1;
    const moved = state.edits?.moved_lights ?? {};
    const out = !this.capture.used(name);
    const error = lights?.errors?.[number];
    const key = JSON.stringify([
      name,
      out,
      number,
      name in moved,
      error,
      lights?.strengths[number],
      lights?.kind,
      lights?.checked,
    ]);
    if (this.detail.dataset.key === key) return;
    this.detail.dataset.key = key;
    replace(
      this.detail,
      !lights
        ? null
        : [
            h(
              "p",
              { class: "small" },
              h("strong", {}, name),
              out ? " is left out" : lightWords(lights, number),
            ),
            h(
              "div",
              { class: "buttons" },
              h(
                "button",
                { type: "button", onclick: () => this.capture.toggle(name) },
                out ? "Use this light" : "Leave out",
              ),
              name in moved
                ? h("button", { type: "button", onclick: () => this.move(name, null) }, "Undo move")
                : null,
              lights.kind === "file"
                ? null
                : h("button", { type: "button", onclick: () => this.save() }, "Save lights.csv"),
            ),
          ],
    );
  }

  async save() {
    const done = await attempt(() => this.capture.act("save-lights"));
    if (done)
      say(
        `Saved ${done.file} beside the photographs. Use it for other captures with the same lights.`,
        "good",
      );
  }

  select(name) {
    if (this.selected === name) return;
    this.selected = name;
    this.render();
  }

  move(name, to) {
    const moved = { ...(this.capture.state.edits?.moved_lights ?? {}) };
    if (to) moved[name] = to;
    else delete moved[name];
    this.capture.edit({ moved_lights: moved });
  }

  leaveOut(name) {
    this.capture.toggle(name);
  }

  showCircle(state, lights) {
    const full = state.opening?.full;
    if (!full) return;
    this.box.style.setProperty("--ratio", full[0] / full[1]);
    this.over.setAttribute("viewBox", `-0.5 -0.5 ${full[0]} ${full[1]}`);
    const ball = lights?.balls?.[0];
    const circle = this.circle ?? state.edits?.circle ?? ball?.circle;
    if (
      !circle ||
      state.edits?.lights === "estimate" ||
      (lights && lights.kind !== "ball" && !state.edits?.circle)
    ) {
      replace(this.over);
      return;
    }
    const unit = Math.max(full[0] / (this.over.clientWidth || 800), 0.2);
    const [x, y, r] = circle;
    const spots = ball?.highlights ?? [];
    const shown = lights?.files.indexOf(this.selected) ?? -1;
    const group = s(
      "g",
      {
        class: "ball",
        tabindex: "0",
        role: "slider",
        "aria-label": "Circle of the ball. Arrow keys move it, plus and minus change its radius.",
        "aria-valuetext": `column ${x.toFixed(0)}, row ${y.toFixed(0)}, radius ${r.toFixed(1)}`,
        "aria-valuenow": r.toFixed(1),
      },
      s("circle", { cx: x, cy: y, r, class: "ball-outline-shade", "stroke-width": 4 * unit }),
      s("circle", { cx: x, cy: y, r, class: "ball-outline", "stroke-width": 2 * unit }),
      spots.map((spot, number) =>
        !spot || spot[0] === null
          ? null
          : s("circle", {
              cx: spot[0],
              cy: spot[1],
              r: (number === shown ? 5 : 2.2) * unit,
              class: number === shown ? "spot here" : "spot",
              "stroke-width": 1.6 * unit,
            }),
      ),
      s("circle", {
        cx: x + r * Math.SQRT1_2,
        cy: y - r * Math.SQRT1_2,
        r: 7 * unit,
        class: "ball-handle",
        "stroke-width": 2 * unit,
      }),
    );
    group.addEventListener("pointerdown", (event) => this.drag(event, circle));
    group.addEventListener("keydown", (event) => this.key(event, circle));
    const focused = this.over.contains(document.activeElement);
    replace(this.over, group);
    if (focused) group.focus();
  }

  drag(event, from) {
    event.preventDefault();
    const full = this.capture.state.opening.full;
    const at = (e) => {
      const box = this.over.getBoundingClientRect();
      return [
        ((e.clientX - box.left) * full[0]) / box.width - 0.5,
        ((e.clientY - box.top) * full[1]) / box.height - 0.5,
      ];
    };
    const [x0, y0] = at(event);
    const [x, y, r] = from;
    const resize =
      event.target.classList.contains("ball-handle") ||
      Math.abs(Math.hypot(x0 - x, y0 - y) - r) < r * 0.08;
    const move = (e) => {
      const [px, py] = at(e);
      this.setCircle(
        resize ? [x, y, Math.max(4, Math.hypot(px - x, py - y))] : [x + px - x0, y + py - y0, r],
      );
    };
    const end = () => {
      window.removeEventListener("pointermove", move);
      window.removeEventListener("pointerup", end);
      this.keep();
    };
    window.addEventListener("pointermove", move);
    window.addEventListener("pointerup", end);
  }

  key(event, [x, y, r]) {
    const step = event.shiftKey ? 10 : 1;
    const ways = {
      ArrowLeft: [-step, 0, 0],
      ArrowRight: [step, 0, 0],
      ArrowUp: [0, -step, 0],
      ArrowDown: [0, step, 0],
      "+": [0, 0, step],
      "=": [0, 0, step],
      "-": [0, 0, -step],
    };
    const by = ways[event.key];
    if (!by) return;
    event.preventDefault();
    this.setCircle([x + by[0], y + by[1], Math.max(4, r + by[2])]);
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.keep(), 600);
  }

  // While it is dragged: the highlights and the dome follow, one question at a time.
  setCircle(circle) {
    this.circle = circle;
    this.showCircle(this.capture.state, this.lights);
    this.ask();
  }

  async ask() {
    if (this.asking) return;
    this.asking = true;
    let asked = null;
    while (this.circle && this.circle !== asked) {
      asked = this.circle;
      try {
        const answer = await post(`${this.capture.path}/circle`, { circle: asked });
        if (this.circle) {
          this.live = answer.lights;
          this.render();
        }
      } catch (problem) {
        if (problem.code !== "circle-without-ball" && problem.code !== "canceled" && this.circle)
          say(problem.message, "problem");
      }
    }
    this.asking = false;
  }

  async keep() {
    const { circle } = this;
    this.circle = null;
    if (circle) await this.capture.edit({ circle, lights: null });
  }
}
