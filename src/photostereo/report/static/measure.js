// A line drawn on the surface: how long it is, and the heights along it.

const SVG = "http://www.w3.org/2000/svg";

function vector(name, attributes, text) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  if (text !== undefined) element.textContent = text;
  return element;
}

// Heights over the way, a curve for each result; gaps where nothing is known. Everything is in the user's unit.
function profileChart(along, curves, unit) {
  const [width, height, left, bottom, top] = [264, 146, 46, 30, 22];
  const known = curves.flatMap(({ heights }) => heights.filter((value) => value !== null));
  const chart = vector("svg", {
    viewBox: `0 0 ${width} ${height}`,
    class: "plot profile-plot",
    role: "img",
    "aria-label": "Heights along the line",
  });
  if (known.length < 2) return chart;
  let [low, high] = [Math.min(...known), Math.max(...known)];
  if (high - low < 1e-9) [low, high] = [low - 0.5, high + 0.5];
  const across = (value) => left + ((width - left - 8) * value) / (along[along.length - 1] || 1);
  const up = (value) => height - bottom - ((height - bottom - top) * (value - low)) / (high - low);
  const said = (value) => String(Number(value.toPrecision(3)));
  for (const value of [low, (low + high) / 2, high]) {
    chart.append(vector("path", { class: "grid", d: `M${left} ${up(value)}H${width - 8}` }));
    chart.append(
      vector("text", { x: left - 5, y: up(value) + 4, "text-anchor": "end" }, said(value)),
    );
  }
  for (const share of [0, 0.5, 1]) {
    const value = share * along[along.length - 1];
    chart.append(
      vector(
        "text",
        {
          x: across(value),
          y: height - bottom + 14,
          "text-anchor": ["start", "middle", "end"][2 * share],
        },
        said(value),
      ),
    );
  }
  chart.append(
    vector(
      "text",
      { class: "axis-label", x: (left + width) / 2, y: height - 2, "text-anchor": "middle" },
      `along the line, ${unit}`,
    ),
  );
  chart.append(vector("text", { class: "axis-label", x: 2, y: 10 }, `height, ${unit}`));
  curves.forEach(({ heights, title }, number) => {
    let path = "";
    heights.forEach((value, i) => {
      if (value === null) return;
      const pen = path === "" || heights[i - 1] === null ? "M" : "L";
      path += `${pen}${across(along[i]).toFixed(2)} ${up(value).toFixed(2)}`;
    });
    const tone = `tone-${2 + number}`;
    chart.append(vector("path", { class: `line ${tone}`, d: path }));
    if (curves.length > 1)
      chart.append(
        vector(
          "text",
          { class: `curve-name ${tone}`, x: left + 44 + 92 * number, y: 10 },
          title.length > 13 ? `${title.slice(0, 12)}…` : title,
        ),
      );
  });
  return chart;
}

// Whether an end of the line has no height.
function endsOff({ heights }) {
  return heights[0] === null || heights[heights.length - 1] === null;
}

// What the heights along a line add to its flat length; from end to end only if both are on the object.
function profileFigures({ along, heights }, flat, endsKnown) {
  const known = heights.filter((height) => height !== null);
  const rise = known[known.length - 1] - known[0];
  let walked = 0;
  for (let i = 1; i < heights.length; i += 1) {
    if (heights[i] !== null && heights[i - 1] !== null)
      walked += Math.hypot(along[i] - along[i - 1], heights[i] - heights[i - 1]);
  }
  const whole = heights.every((height) => height !== null);
  return {
    ...(endsKnown
      ? { "Rise from end to end": rise, "Straight, in space": Math.hypot(flat, rise) }
      : {}),
    ...(whole ? { "Along the surface": walked } : {}),
    "Between lowest and highest": Math.max(...known) - Math.min(...known),
  };
}

// Why the length along the surface is not known.
function gapWords(endsKnown) {
  if (endsKnown) {
    return "The line leaves the object in between: its length along the surface is not known.";
  }
  return (
    "An end of the line is off the object, where no height is known. " +
    "Draw it from one point of the object to another."
  );
}

class Measure {
  constructor(relighter, probe, controls) {
    this.relighter = relighter;
    this.probe = probe;
    this.controls = controls;
    this.name = "measure";
    this.line = null;
    this.profiles = [];
    this.figure = relighter.figure;
    this.box = this.figure.querySelector(".measure");
    this.overlay = this.figure.querySelector(".overlay");
    this.fields = [...this.box.querySelectorAll("[data-end]")];
    this.mark = vector("g", { class: "ruler" });
    this.overlay.append(this.mark);
    relighter.view.watch(() => this.place());
    this.figure
      .querySelector("[data-tool=measure]")
      .addEventListener("click", () => controls.take(this));
    this.box.addEventListener("input", (event) =>
      event.target.dataset.known === undefined
        ? this.fromFields()
        : this.calibrate(Number(event.target.value)),
    );
    this.figure.addEventListener("sides", () => this.line && this.set(this.line, true)); // other results, the same line
    this.box
      .querySelector("[data-action=save-profile]")
      .addEventListener("click", () => this.save());
    this.box
      .querySelector("[data-action=clear-line]")
      .addEventListener("click", () => this.set(null));
  }

  taken() {
    this.controls.open("measure");
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
    this.set(
      [
        [a - left + 0.5, b - top + 0.5],
        [c - left + 0.5, d - top + 0.5],
      ],
      true,
    );
  }

  // A line of known length sets the scale of everything that is measured in the page.
  calibrate(millimeters) {
    if (!this.line || !(millimeters > 0)) return;
    const [a, b] = this.line;
    const pixels = Math.hypot(b[0] - a[0], b[1] - a[1]);
    this.relighter.units.size = millimeters / pixels;
    this.relighter.units.unit = "mm";
    this.relighter.view.tell();
    for (const words of /** @type {NodeListOf<HTMLElement>} */ (
      document.querySelectorAll("[data-pixels]")
    )) {
      this.rescale(words, Number(words.dataset.pixels));
    }
    this.figure.dispatchEvent(new CustomEvent("look"));
    this.report();
  }

  // A card of heights up to so many pixels, with round numbers below its color scale.
  rescale(said, pixels) {
    const { units } = this.relighter;
    const bar = said.closest("figure").querySelector(".color-bar");
    const top = pixels * units.size;
    const step = roundStep(top / 3);
    said.textContent = units.short(pixels);
    for (const old of bar.querySelectorAll("text")) old.remove();
    for (let n = 0; n * step <= top; n += 1) {
      const x = 8 + (284 * n * step) / top;
      let anchor = "middle";
      if (x < 20) anchor = "start";
      else if (x > 280) anchor = "end";
      bar.append(
        vector(
          "text",
          { class: "tick", x, y: 25, "text-anchor": anchor },
          `${roundTo(n * step, 3)} ${units.unit}`,
        ),
      );
    }
  }

  async set(line, fromFields) {
    this.line = line;
    this.profiles = [];
    this.place();
    this.box.classList.toggle("measured", Boolean(line));
    if (!line) return;
    const [left, top] = this.relighter.data.origin;
    if (!fromFields) {
      const numbers = line.flatMap(([x, y]) => [x + left - 0.5, y + top - 0.5]);
      this.fields.forEach((field, i) => {
        field.value = numbers[i].toFixed(1);
      });
    }
    const { shown, pyramid, data } = this.relighter;
    const raised = [...new Set(shown)].filter((set) => pyramid.has(set, "depth"));
    const profiles = await Promise.all(
      raised.map(async (set) => ({
        title: data.sets[set].title || "",
        ...(await this.probe.profile(set, ...line)),
      })),
    );
    if (this.line !== line || shown !== this.relighter.shown) return;
    this.profiles = profiles.filter(
      ({ heights }) => heights.filter((height) => height !== null).length > 1,
    );
    this.report();
    this.box.dataset.done = String(Number(this.box.dataset.done || 0) + 1);
  }

  // Flat distance, and what the surface adds to it.
  report() {
    const { units } = this.relighter;
    const [a, b] = this.line;
    const flat = Math.hypot(b[0] - a[0], b[1] - a[1]);
    /** @type {[string, string[]][]} */
    const rows = [["Distance in the picture", [this.distance(this.line)]]];
    const chart = this.box.querySelector(".profile");
    chart.replaceChildren();
    const endsKnown = !this.profiles.some(endsOff);
    const gaps = this.profiles.some(({ heights }) => heights.includes(null));
    this.box.querySelector(".measure-words").textContent = gaps ? gapWords(endsKnown) : "";
    if (this.profiles.length) {
      const { along } = this.profiles[0];
      const every = this.profiles.map((profile) => profileFigures(profile, flat, endsKnown));
      const shared = Object.keys(every[0]).filter((label) =>
        every.every((figures) => label in figures),
      );
      const found = every.map((figures) =>
        Object.fromEntries(shared.map((label) => [label, figures[label]])),
      );
      for (const label of Object.keys(found[0])) {
        const named = (figure, i) =>
          found.length > 1
            ? `${this.profiles[i].title}\u2002${units.length(figure)}`
            : units.length(figure);
        rows.push([label, found.map((figures, i) => named(figures[label], i))]);
      }
      const curves = this.profiles.map(({ title, heights }) => ({
        title,
        heights: heights.map((v) => (v === null ? null : v * units.size)),
      }));
      chart.append(
        profileChart(
          along.map((v) => v * units.size),
          curves,
          units.unit,
        ),
      );
    }
    const list = this.box.querySelector("dl");
    list.replaceChildren(
      ...rows.map(([label, values]) => {
        const row = document.createElement("div");
        const value = document.createElement("dd");
        value.append(
          ...values.map((text) =>
            Object.assign(document.createElement("span"), { textContent: text }),
          ),
        );
        row.append(Object.assign(document.createElement("dt"), { textContent: label }), value);
        return row;
      }),
    );
    this.box.querySelector("[data-action=save-profile]").hidden = !this.profiles.length;
  }

  place() {
    this.show(this.drawing || this.line);
  }

  show(line) {
    this.mark.replaceChildren();
    if (!line) return;
    const [[x1, y1], [x2, y2]] = line.map((end) => this.relighter.view.toCanvas(end));
    this.mark.append(
      vector("line", { class: "ruler-shade", x1, y1, x2, y2 }),
      vector("line", { x1, y1, x2, y2 }),
    );
    for (const [cx, cy] of [
      [x1, y1],
      [x2, y2],
    ])
      this.mark.append(vector("circle", { cx, cy, r: 4.5 }));
    this.mark.append(
      vector(
        "text",
        { class: "ruler-words", x: (x1 + x2) / 2, y: (y1 + y2) / 2 - 9 },
        this.distance(line),
      ),
    );
  }

  distance([a, b]) {
    return this.relighter.units.length(Math.hypot(b[0] - a[0], b[1] - a[1]));
  }

  save() {
    const { units, data } = this.relighter;
    const [from, to] = this.line;
    const { along } = this.profiles[0];
    const rows = along.map((value, i) => {
      const share = i / (along.length - 1);
      const [x, y] = [0, 1].map((k) => from[k] + (to[k] - from[k]) * share + data.origin[k] - 0.5);
      return [
        x,
        y,
        value * units.size,
        ...this.profiles.map(({ heights }) => (heights[i] === null ? "" : heights[i] * units.size)),
      ].join(",");
    });
    // A name in quotation marks is text to every reader, whatever it holds.
    const named = ({ title }) =>
      this.profiles.length > 1
        ? `"height by ${title.replaceAll('"', '""')} (${units.unit})"`
        : `height (${units.unit})`;
    const head = ["column", "row", `along (${units.unit})`, ...this.profiles.map(named)].join(",");
    saveText(`${fileName()}-profile.csv`, `${[head, ...rows].join("\n")}\n`, "text/csv");
  }
}
