// A line drawn on the surface: how long it is, and the heights along it.

const SVG = "http://www.w3.org/2000/svg";

function vector(name, attributes, text) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  if (text !== undefined) element.textContent = text;
  return element;
}

// Heights over the way; gaps where nothing is known. Everything is in the user's unit.
function profileChart(along, heights, unit) {
  const [width, height, left, bottom, top] = [264, 132, 46, 30, 8];
  const known = heights.filter((value) => value !== null);
  const chart = vector("svg", { viewBox: `0 0 ${width} ${height}`, class: "plot profile-plot", role: "img", "aria-label": "Heights along the line" });
  if (known.length < 2) return chart;
  let [low, high] = [Math.min(...known), Math.max(...known)];
  if (high - low < 1e-9) [low, high] = [low - 0.5, high + 0.5];
  const across = (value) => left + ((width - left - 8) * value) / (along[along.length - 1] || 1);
  const up = (value) => height - bottom - ((height - bottom - top) * (value - low)) / (high - low);
  const said = (value) => String(Number(value.toPrecision(3)));
  for (const value of [low, (low + high) / 2, high]) {
    chart.append(vector("path", { class: "grid", d: `M${left} ${up(value)}H${width - 8}` }));
    chart.append(vector("text", { x: left - 5, y: up(value) + 4, "text-anchor": "end" }, said(value)));
  }
  for (const share of [0, 0.5, 1]) {
    const value = share * along[along.length - 1];
    chart.append(vector("text", { x: across(value), y: height - bottom + 14, "text-anchor": ["start", "middle", "end"][2 * share] }, said(value)));
  }
  chart.append(vector("text", { class: "axis-label", x: (left + width) / 2, y: height - 2, "text-anchor": "middle" }, `along the line, ${unit}`));
  let path = "";
  heights.forEach((value, i) => {
    if (value === null) return;
    const pen = path === "" || heights[i - 1] === null ? "M" : "L";
    path += `${pen}${across(along[i]).toFixed(2)} ${up(value).toFixed(2)}`;
  });
  chart.append(vector("path", { class: "line tone-2", d: path }));
  return chart;
}

class Measure {
  constructor(relighter, probe, controls) {
    Object.assign(this, { relighter, probe, controls, name: "measure", line: null, profile: null });
    this.figure = relighter.figure;
    this.box = this.figure.querySelector(".measure");
    this.overlay = this.figure.querySelector(".overlay");
    this.fields = [...this.box.querySelectorAll("[data-end]")];
    this.mark = vector("g", { class: "ruler" });
    this.overlay.append(this.mark);
    relighter.view.watch(() => this.place());
    this.figure.querySelector("[data-tool=measure]").addEventListener("click", () => controls.take(this));
    this.box.addEventListener("input", () => this.fromFields());
    this.box.querySelector("[data-action=save-profile]").addEventListener("click", () => this.save());
    this.box.querySelector("[data-action=clear-line]").addEventListener("click", () => this.set(null));
  }

  taken() {
    this.box.open = true;
  }

  down(place) {
    this.drawing = [place, place];
    this.show(this.drawing);
  }

  move(place) {
    this.drawing[1] = place;
    this.show(this.drawing);
  }

  up(place) {
    this.drawing[1] = place;
    const [a, b] = this.drawing;
    this.drawing = null;
    if (Math.hypot(a[0] - b[0], a[1] - b[1]) * this.relighter.view.scale > 3) this.set([a, b]);
    else this.place();
  }

  cancel() {
    this.drawing = null;
    this.place();
  }

  // Columns and rows of the arrays are whole at the middle of a pixel.
  fromFields() {
    const numbers = this.fields.map((field) => (field.value === "" ? NaN : Number(field.value)));
    const [left, top] = this.relighter.data.origin;
    if (numbers.some((value) => !Number.isFinite(value))) return;
    const [a, b, c, d] = numbers;
    this.set([[a - left + 0.5, b - top + 0.5], [c - left + 0.5, d - top + 0.5]], true);
  }

  async set(line, fromFields) {
    this.line = line;
    this.profile = null;
    this.place();
    this.box.classList.toggle("measured", Boolean(line));
    if (!line) return;
    const [left, top] = this.relighter.data.origin;
    if (!fromFields) {
      const numbers = line.flatMap(([x, y]) => [x + left - 0.5, y + top - 0.5]);
      this.fields.forEach((field, i) => { field.value = String(Math.round(numbers[i] * 100) / 100); });
    }
    const set = this.relighter.shown[0];
    const profile = this.relighter.pyramid.has(set, "depth") ? await this.probe.profile(set, ...line) : null;
    if (this.line !== line) return;
    this.profile = profile;
    this.report();
    this.box.dataset.done = String(Number(this.box.dataset.done || 0) + 1);
  }

  // Flat distance, and what the surface adds to it.
  report() {
    const { units } = this.relighter;
    const [a, b] = this.line;
    const flat = Math.hypot(b[0] - a[0], b[1] - a[1]);
    const rows = [["Distance in the picture", units.length(flat)]];
    const chart = this.box.querySelector(".profile");
    chart.replaceChildren();
    const known = (this.profile?.heights || []).filter((height) => height !== null);
    if (known.length > 1) {
      const { along, heights } = this.profile;
      const [first, last] = [known[0], known[known.length - 1]];
      let walked = 0;
      for (let i = 1; i < heights.length; i += 1) {
        if (heights[i] !== null && heights[i - 1] !== null) walked += Math.hypot(along[i] - along[i - 1], heights[i] - heights[i - 1]);
      }
      rows.push(["Rise from end to end", units.length(last - first)], ["Straight, in space", units.length(Math.hypot(flat, last - first))]);
      rows.push(["Along the surface", units.length(walked)], ["Between lowest and highest", units.length(Math.max(...known) - Math.min(...known))]);
      chart.append(profileChart(along.map((v) => v * units.size), heights.map((v) => (v === null ? null : v * units.size)), units.unit));
    }
    const list = this.box.querySelector("dl");
    list.replaceChildren(...rows.map(([label, value]) => {
      const row = document.createElement("div");
      row.append(Object.assign(document.createElement("dt"), { textContent: label }), Object.assign(document.createElement("dd"), { textContent: value }));
      return row;
    }));
    this.box.querySelector("[data-action=save-profile]").hidden = known.length < 2;
  }

  place() {
    this.show(this.drawing || this.line);
  }

  show(line) {
    this.mark.replaceChildren();
    if (!line) return;
    const [[x1, y1], [x2, y2]] = line.map((end) => this.relighter.view.toCanvas(end));
    this.mark.append(vector("line", { class: "ruler-shade", x1, y1, x2, y2 }), vector("line", { x1, y1, x2, y2 }));
    for (const [cx, cy] of [[x1, y1], [x2, y2]]) this.mark.append(vector("circle", { cx, cy, r: 4.5 }));
  }

  save() {
    const { units, data } = this.relighter;
    const [from, to] = this.line;
    const { along, heights } = this.profile;
    const rows = along.map((value, i) => {
      const share = i / (along.length - 1);
      const [x, y] = [0, 1].map((k) => from[k] + (to[k] - from[k]) * share + data.origin[k] - 0.5);
      return [x, y, value * units.size, heights[i] === null ? "" : heights[i] * units.size].join(",");
    });
    saveText("profile.csv", [`column,row,along (${units.unit}),height (${units.unit})`, ...rows].join("\n") + "\n", "text/csv");
  }
}
