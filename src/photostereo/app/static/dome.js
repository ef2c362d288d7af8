// The lights above the object as the camera sees them: the middle is the camera, the rim the image plane. Degrees are
// heights above that plane, as on the page of a result.

import { replace, s } from "./dom.js";

const SIZE = 260;
const RIM = 112;

/** @param {number[]} direction */
export function place([x, y, z]) {
  const angle = Math.acos(Math.min(1, z / Math.hypot(x, y, z))) / (Math.PI / 2);
  const flat = Math.hypot(x, y) || 1;
  return [SIZE / 2 + (RIM * angle * x) / flat, SIZE / 2 - (RIM * angle * y) / flat];
}

export function direction(px, py) {
  const [dx, dy] = [(px - SIZE / 2) / RIM, (SIZE / 2 - py) / RIM];
  const far = Math.min(Math.hypot(dx, dy), 0.97);
  const angle = (far * Math.PI) / 2;
  const turn = Math.atan2(dy, dx);
  return [Math.sin(angle) * Math.cos(turn), Math.sin(angle) * Math.sin(turn), Math.cos(angle)];
}

export class Dome {
  // on: { select(name), move(name, direction), leaveOut(name) }
  constructor(on) {
    this.on = on;
    this.marks = s("g");
    this.element = s(
      "svg",
      {
        class: "dome",
        viewBox: `0 0 ${SIZE} ${SIZE}`,
        role: "group",
        "aria-label":
          "The lights above the object. To move a light, drag it, or focus it and use the arrow keys.",
      },
      s(
        "defs",
        {},
        s(
          "radialGradient",
          { id: "sky" },
          s("stop", { offset: "0", class: "sky-center" }),
          s("stop", { offset: "1", class: "sky-rim" }),
        ),
      ),
      s("circle", { cx: SIZE / 2, cy: SIZE / 2, r: RIM, class: "dome-sky" }),
      [30, 60].map((degrees) =>
        s("circle", { cx: SIZE / 2, cy: SIZE / 2, r: (RIM * degrees) / 90, class: "dome-ring" }),
      ),
      [0, 30, 60].map((height) =>
        s(
          "text",
          {
            x: SIZE / 2 + 3,
            y: SIZE / 2 - (RIM * (90 - height)) / 90 + (height ? 11 : -4),
            class: "dome-degrees",
          },
          `${height}°`,
        ),
      ),
      s(
        "text",
        { x: SIZE / 2, y: SIZE - 5, class: "dome-degrees", "text-anchor": "middle" },
        "Height above the image plane",
      ),
      s("path", {
        d: `M${SIZE / 2 - 5} ${SIZE / 2}h10M${SIZE / 2} ${SIZE / 2 - 5}v10`,
        class: "dome-ring",
      }),
      this.marks,
    );
  }

  show(lights, { selected, moved }) {
    if (this.dragging) return;
    const focused = /** @type {SVGElement} */ (document.activeElement)?.dataset?.light;
    const strongest = Math.max(...lights.strengths, 1e-9);
    replace(
      this.marks,
      lights.files.map((name, number) =>
        this.mark(lights, number, strongest, { selected: name === selected, moved: name in moved }),
      ),
    );
    if (focused) this.marks.querySelector(`[data-light="${CSS.escape(focused)}"]`)?.focus();
  }

  mark(lights, number, strongest, { selected, moved }) {
    const name = lights.files[number];
    const [x, y] = place(lights.directions[number]);
    const error = lights.errors?.[number];
    const suspect = lights.suspects.includes(name);
    const radius = 4 + 3.2 * Math.sqrt(lights.strengths[number] / strongest);
    const height = Math.round(
      (Math.asin(Math.min(1, lights.directions[number][2])) * 180) / Math.PI,
    );
    const strength = lights.strengths[number].toFixed(2);
    const words = [`${name}: ${height}° above the image plane`, `strength ${strength}`];
    if (error) words.push(`accurate to about ${Math.max(error, 0.1).toFixed(1)}°`);
    if (moved) words.push("moved by hand");
    const kinds = ["light"];
    if (selected) kinds.push("selected");
    if (suspect) kinds.push("suspect");
    if (moved) kinds.push("moved");
    const group = s(
      "g",
      {
        class: kinds.join(" "),
        tabindex: "0",
        role: "button",
        "aria-pressed": String(selected),
        "aria-label": words.join(", "),
        "data-light": name,
        transform: `translate(${x} ${y})`,
      },
      error
        ? s("circle", { r: Math.max(radius + 2, (RIM * error) / 90), class: "light-error" })
        : null,
      s("circle", { r: 12, class: "light-reach" }),
      s("circle", { r: radius, class: "light-dot" }),
      s("title", {}, words),
    );
    group.addEventListener("pointerdown", (event) => this.drag(event, group, name));
    group.addEventListener("focus", () => this.on.select(name));
    group.addEventListener("keydown", (event) =>
      this.key(event, group, name, lights.directions[number]),
    );
    return group;
  }

  drag(event, group, name) {
    event.preventDefault();
    group.focus();
    this.on.select(name);
    const at = (e) => {
      const box = this.element.getBoundingClientRect();
      return [
        ((e.clientX - box.left) * SIZE) / box.width,
        ((e.clientY - box.top) * SIZE) / box.height,
      ];
    };
    const [x0, y0] = at(event);
    let to = null;
    this.dragging = true;
    const move = (e) => {
      const [x, y] = at(e);
      if (!to && Math.hypot(x - x0, y - y0) < 4) return;
      to = direction(x, y);
      const [px, py] = place(to);
      this.element
        .querySelector(`[data-light="${CSS.escape(name)}"]`)
        ?.setAttribute("transform", `translate(${px} ${py})`);
    };
    const end = () => {
      this.dragging = false;
      window.removeEventListener("pointermove", move);
      window.removeEventListener("pointerup", end);
      if (to) this.on.move(name, to);
    };
    window.addEventListener("pointermove", move);
    window.addEventListener("pointerup", end);
  }

  key(event, group, name, from) {
    const step = ((event.shiftKey ? 5 : 1) * RIM) / 90;
    const ways = {
      ArrowLeft: [-step, 0],
      ArrowRight: [step, 0],
      ArrowUp: [0, -step],
      ArrowDown: [0, step],
    };
    if (event.key === "Delete") this.on.leaveOut(name);
    if (!(event.key in ways)) return;
    event.preventDefault();
    const [x, y] = place(this.nudged?.name === name ? this.nudged.to : from);
    const to = direction(x + ways[event.key][0], y + ways[event.key][1]);
    this.nudged = { name, to };
    const [px, py] = place(to);
    group.setAttribute("transform", `translate(${px} ${py})`);
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => {
      this.nudged = null;
      this.on.move(name, to);
    }, 500);
  }
}
