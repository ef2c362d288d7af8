// The lights of a view: one white one, or several colored ones; pointer, keys and sliders move the chosen one.

class Rig {
  constructor() {
    this.watchers = [];
    this.set([{ azimuth: 135, elevation: 42, tint: "#ffffff" }]);
  }

  get light() {
    return this.lights[this.chosen];
  }

  watch(callback) {
    this.watchers.push(callback);
    callback();
  }

  tell() {
    for (const callback of this.watchers) callback();
  }

  set(lights) {
    this.lights = lights.slice(0, LIGHTS_MOST).map(({ azimuth, elevation, tint }) => {
      const light = new Light(azimuth, elevation);
      light.tint = /^#[0-9a-f]{6}$/i.test(tint) ? tint.toLowerCase() : "#ffffff";
      light.watchers.push(() => this.tell());
      return light;
    });
    this.chosen = 0;
    this.tell();
  }

  state() {
    return this.lights.map(({ azimuth, elevation, tint }) => ({ azimuth, elevation, tint }));
  }

  choose(number) {
    this.chosen = Math.max(0, Math.min(this.lights.length - 1, number));
    this.tell();
  }

  add() {
    const fresh = ["#ffffff", "#ff8a3c", "#4f8dff", "#6fe08a"][this.lights.length];
    if (!fresh) return;
    const last = this.lights.length;
    this.set([
      ...this.state(),
      { azimuth: this.light.azimuth + 120, elevation: this.light.elevation, tint: fresh },
    ]);
    this.choose(last);
  }

  remove() {
    if (this.lights.length < 2) return;
    this.set(this.state().filter((_, number) => number !== this.chosen));
  }

  paint(tint) {
    this.light.tint = tint;
    this.tell();
  }

  // Colors of light add up: they are sums of linear values.
  tints() {
    const linear = (code) => (code <= 0.04045 ? code / 12.92 : ((code + 0.055) / 1.055) ** 2.4);
    return this.lights.map(({ tint }) =>
      [1, 3, 5].map((i) => linear(parseInt(tint.slice(i, i + 2), 16) / 255)),
    );
  }
}
