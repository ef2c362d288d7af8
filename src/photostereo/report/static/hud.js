// What stands over the picture: the scale bar, the color scale, and the numbers under the pointer.

class Hud {
  constructor(relighter, probe) {
    this.relighter = relighter;
    this.probe = probe;
    this.figure = relighter.figure;
    this.bar = this.figure.querySelector(".scale-bar");
    this.words = this.figure.querySelector(".pointer-words");
    this.legend = this.figure.querySelector(".legend-bar");
    relighter.view.watch(() => this.showBar());
    for (const change of ["look", "sides"])
      this.figure.addEventListener(change, () => this.showLegend());
    relighter.canvas.addEventListener("pointermove", (event) => this.showPlace(event));
    relighter.canvas.addEventListener("pointerleave", () => {
      this.at = null;
      this.words.replaceChildren();
    });
    this.figure.addEventListener("look", () => this.at && this.showPlace(this.at)); // the unit may be another
    this.showBar();
    this.showLegend();
  }

  // A round length of about an eighth of the canvas.
  length() {
    const { view, units } = this.relighter;
    const wanted = (Math.min(160, view.canvas[0] / 4) / view.scale) * units.size;
    return roundStep(wanted) / units.size;
  }

  showBar() {
    const { view, units } = this.relighter;
    const pixels = this.length();
    this.bar.style.width = `${pixels * view.scale}px`;
    this.bar.textContent = units.short(pixels);
  }

  showLegend() {
    const { look, data, units } = this.relighter;
    const scale = scaleOf(look.mode, { ...data, ...data.sets[this.relighter.raised] }, units);
    this.legend.hidden = !scale;
    if (!scale) return;
    const codes = data.colors[scale.name];
    const stops = Array.from(
      { length: 16 },
      (_, i) => `#${codes.slice(6 * 17 * i, 6 * 17 * i + 6)}`,
    );
    this.legend.querySelector(".legend-strip").style.background =
      `linear-gradient(to right, ${stops.join(", ")})`;
    this.legend.querySelector(".legend-title").textContent = scale.title;
    const [low, middle, high] = this.legend.querySelectorAll(".legend-ends span");
    low.textContent = scale.words(scale.low);
    middle.textContent = scale.words((scale.low + scale.high) / 2);
    high.textContent = scale.words(scale.high);
  }

  // Pixels are counted as in the arrays: column and row from 0.
  showPlace(event) {
    this.at = event;
    const { view, data, shown, units, split } = this.relighter;
    const box = this.relighter.canvas.getBoundingClientRect();
    const place = view.toPicture([event.clientX - box.left, event.clientY - box.top]);
    const side =
      shown.length > 1 && (event.clientX - box.left) / box.width > split ? shown[1] : shown[0];
    const found = this.probe.at(side, place);
    const parts = [];
    if (found?.normal) {
      const signed = (value) => value.toFixed(3).replace("-", "−");
      parts.push(
        `column ${Math.floor(place[0]) + data.origin[0]}, row ${Math.floor(place[1]) + data.origin[1]}`,
      );
      parts.push(`normal ${found.normal.map(signed).join(" ")}`);
      parts.push(
        `slope ${((Math.acos(Math.min(1, found.normal[2])) * 180) / Math.PI).toFixed(1)}°`,
      );
      if (found.height !== null) parts.push(`height ${units.length(found.height)}`);
    }
    this.words.replaceChildren(
      ...parts.map((text) => Object.assign(document.createElement("span"), { textContent: text })),
    );
  }
}
