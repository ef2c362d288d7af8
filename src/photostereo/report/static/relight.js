// The relighting view: one result, or two on either side of a divider.

const PRESETS = {
  natural: { mode: "albedo", diffuse: 1, specular: 0.05, gloss: 30, ambient: 0.05 },
  raking: { mode: "clay", diffuse: 1.1, specular: 0.03, gloss: 20, ambient: 0.02 },
  polished: { mode: "clay", diffuse: 0.35, specular: 0.45, gloss: 45, ambient: 0.03 },
};
const MODES = { albedo: 0, clay: 1, normals: 2, error: 3 };
const MAGNIFY = 4;
const LOUPE_SHARE = 0.36;

class Relighter {
  // figure: the element that holds canvas and panel; sets: the textures of each result by name
  constructor(figure, { width, height, cover, albedo, sets, shown }) {
    this.figure = figure;
    this.canvas = figure.querySelector("canvas");
    this.size = [width, height];
    this.common = [cover, albedo];
    this.sets = sets;
    this.textures = new Map();
    this.shown = shown;
    this.split = 0.5;
    this.look = { ...PRESETS.natural };
    this.loupe = false;
    this.pinned = false;
    this.pointer = null;
    this.lamp = new Lamp(135, 42);
    this.stage = new Stage(this.canvas, {
      build: (gl) => this.build(gl),
      draw: (gl, w, h) => this.draw(gl, w, h),
      antialias: false, // the shader smooths the outline itself
    });
    if (!this.stage.gl) return;
    this.followPointer();
    this.followKeys();
    this.followPanel();
    this.lamp.watch(() => this.showLamp());
  }

  get works() {
    return Boolean(this.stage.gl);
  }

  async build(gl) {
    this.textures.clear();
    this.program = makeProgram(gl, FULL_VERTEX, RELIGHT_FRAGMENT);
    this.vertices = gl.createVertexArray();
    const shown = this.shown.map((name) => this.prepare(gl, name));
    const [cover, albedo] = await Promise.all([...this.common.map(loadPicture), ...shown]);
    this.outline = makeTexture(gl, cover, { colour: false, smooth: true });
    this.albedo = makeTexture(gl, albedo, { colour: true });
  }

  // Textures of a result are made when it is first looked at.
  async prepare(gl, name) {
    if (this.textures.has(name)) return;
    const set = this.sets[name];
    const [normals, error] = await Promise.all([set.normals, set.error].filter(Boolean).map(loadPicture));
    this.textures.set(name, {
      normals: makeTexture(gl, normals, { colour: false }),
      error: error ? makeTexture(gl, error, { colour: true }) : null,
    });
  }

  async show(names) {
    await Promise.all(names.map((name) => this.prepare(this.stage.gl, name)));
    this.shown = names;
    this.stage.changed();
  }

  // The object fits into the canvas with a margin: canvas pixels per picture pixel, and its upper left corner.
  fit(width, height) {
    const scale = 0.94 * Math.min(width / this.size[0], height / this.size[1]);
    return { scale, left: (width - this.size[0] * scale) / 2, top: (height - this.size[1] * scale) / 2 };
  }

  draw(gl, width, height) {
    const { program, places } = this.program;
    gl.viewport(0, 0, width, height);
    gl.useProgram(program);
    gl.bindVertexArray(this.vertices);
    gl.disable(gl.DEPTH_TEST);
    gl.enable(gl.SCISSOR_TEST);
    gl.uniform2f(places.uCanvas, width, height);
    gl.uniform3fv(places.uLight, this.lamp.direction());
    const { diffuse, specular, gloss, ambient } = this.look;
    gl.uniform4f(places.uShine, diffuse, specular, gloss, ambient);
    const { scale, left, top } = this.fit(width, height);
    const divider = Math.round(this.shown.length > 1 ? this.split * width : width);
    this.paint(gl, [0, 0, width, height], divider, left, top, scale);
    const box = this.loupeBox(width, height);
    this.figure.querySelector(".loupe-frame").hidden = !box;
    if (box) this.paintLoupe(gl, box, divider, left, top, scale, height);
  }

  // Both results of a rectangle (counted from the upper left), one on each side of the divider.
  paint(gl, [x, y, w, h], divider, left, top, scale) {
    const { places } = this.program;
    const mode = MODES[this.look.mode];
    gl.uniform4f(places.uView, left, top, 1 / (scale * this.size[0]), 1 / (scale * this.size[1]));
    const edge = Math.min(Math.max(divider, x), x + w);
    const parts = [[this.shown[0], x, edge - x], [this.shown[this.shown.length - 1], edge, x + w - edge]];
    for (const [name, from, wide] of parts) {
      const textures = this.textures.get(name);
      if (wide <= 0 || !textures) continue;
      gl.scissor(from, this.stage.height - y - h, wide, h);
      bindTexture(gl, 0, textures.normals, places.uNormals);
      bindTexture(gl, 1, this.albedo, places.uAlbedo);
      bindTexture(gl, 2, textures.error || this.albedo, places.uPicture);
      // The truth has no error: it is shown as clay.
      gl.uniform1i(places.uMode, mode === MODES.error && !textures.error ? MODES.clay : mode);
      bindTexture(gl, 3, this.outline, places.uCover);
      gl.drawArrays(gl.TRIANGLES, 0, 3);
    }
  }

  // The inset sits in a lower corner, away from the pointer.
  loupeBox(width, height) {
    if (!this.loupe) return null;
    const side = Math.round(Math.min(LOUPE_SHARE * Math.min(width, height), 260 * this.stage.ratio));
    const gap = Math.round(14 * this.stage.ratio);
    const [px, py] = this.pointer || [width / 2, height / 2];
    const near = px > width - side - 3 * gap && py > height - side - 3 * gap;
    return [near ? gap : width - side - gap, height - side - gap, side, side];
  }

  paintLoupe(gl, [x, y, side], divider, left, top, scale, height) {
    const [px, py] = this.pointer || [this.stage.width / 2, height / 2];
    const [cx, cy] = [x + side / 2, y + side / 2];
    const zoom = MAGNIFY;
    const magnified = cx + (divider - px) * zoom;
    this.paint(gl, [x, y, side, side], Math.round(magnified), cx - (px - left) * zoom, cy - (py - top) * zoom, scale * zoom);
    const frame = this.figure.querySelector(".loupe-frame").style;
    const r = this.stage.ratio;
    frame.left = `${x / r}px`;
    frame.top = `${y / r}px`;
    frame.width = frame.height = `${side / r}px`;
  }

  aim(event) {
    this.pointer = this.stage.place(event);
    if (!this.pinned) {
      const half = Math.min(this.stage.width, this.stage.height) / 2;
      const [x, y] = [this.pointer[0] - this.stage.width / 2, this.stage.height / 2 - this.pointer[1]];
      this.lamp.setFromDisc(x / half, y / half);
    }
    this.stage.changed();
  }

  followPointer() {
    const canvas = this.canvas;
    canvas.addEventListener("pointermove", (event) => {
      if (event.pointerType === "mouse" || event.buttons) {
        this.stopSweep();
        this.aim(event);
      }
    });
    canvas.addEventListener("pointerdown", (event) => {
      this.stopSweep();
      canvas.setPointerCapture(event.pointerId);
      this.aim(event);
    });
    canvas.addEventListener("click", (event) => {
      if (event.pointerType === "mouse") this.pin(!this.pinned);
    });
  }

  followKeys() {
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    this.canvas.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const step = steps[event.key];
      const key = event.key.toLowerCase();
      if (step) this.lamp.push(0.08 * step[0], 0.08 * step[1]);
      else if (key === "l") this.setLoupe(!this.loupe);
      else if (key === "p" || key === "enter") this.pin(!this.pinned);
      else if (key === " ") this.toggleSweep();
      else if (key >= "1" && key <= "4" && this.modes[Number(key) - 1]) this.change("mode", this.modes[Number(key) - 1].value);
      else return;
      if (step) this.stopSweep();
      event.preventDefault();
    });
  }

  followPanel() {
    const panel = this.figure.querySelector("form.panel");
    this.modes = [...panel.querySelectorAll("[name$=mode]")];
    panel.addEventListener("submit", (event) => event.preventDefault());
    panel.addEventListener("input", ({ target }) => {
      const kind = target.dataset.look;
      if (kind === "mode") this.change("mode", target.value);
      else if (kind) this.change(kind, Number(target.value));
      else if (target.dataset.lamp) {
        this.stopSweep();
        const value = Number(target.value);
        if (target.dataset.lamp === "azimuth") this.lamp.set(value, this.lamp.elevation);
        else this.lamp.set(this.lamp.azimuth, value);
      } else if (target.dataset.toggle === "loupe") this.setLoupe(target.checked);
      else if (target.dataset.toggle === "pin") this.pin(target.checked);
    });
    panel.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      if (button.dataset.preset) Object.entries(PRESETS[button.dataset.preset]).forEach(([k, v]) => this.change(k, v));
      if (button.dataset.action === "sweep") this.toggleSweep();
    });
    Object.entries(this.look).forEach(([name, value]) => this.change(name, value));
  }

  change(name, value) {
    this.look[name] = value;
    for (const control of this.figure.querySelectorAll(`[data-look="${name}"]`)) {
      if (control.type === "radio") control.checked = control.value === value;
      else control.value = String(value);
    }
    const output = this.figure.querySelector(`[data-value="${name}"]`);
    if (output) output.textContent = String(Math.round(value * 100) / 100);
    this.stage.changed();
  }

  setLoupe(on) {
    this.loupe = on;
    this.figure.querySelector("[data-toggle=loupe]").checked = on;
    this.stage.changed();
  }

  pin(on) {
    this.pinned = on;
    this.figure.querySelector("[data-toggle=pin]").checked = on;
    this.figure.classList.toggle("pinned", on);
  }

  showLamp() {
    const [x, y] = this.lamp.direction();
    const dot = this.figure.querySelector(".dial-lamp");
    dot.setAttribute("cx", String(50 + 42 * x));
    dot.setAttribute("cy", String(50 - 42 * y));
    const ray = this.figure.querySelector(".dial-ray");
    ray.setAttribute("x2", String(50 + 42 * x));
    ray.setAttribute("y2", String(50 - 42 * y));
    const words = this.lamp.words();
    for (const name of ["azimuth", "elevation"]) {
      const slider = this.figure.querySelector(`[data-lamp="${name}"]`);
      slider.value = String(Math.round(this.lamp[name]));
      slider.setAttribute("aria-valuetext", `${Math.round(this.lamp[name])} degrees: light ${words}`);
      this.figure.querySelector(`[data-value="${name}"]`).textContent = `${Math.round(this.lamp[name])}°`;
    }
    this.figure.querySelector(".lamp-words").textContent = `Light ${words}`;
    this.stage.changed();
  }

  toggleSweep() {
    if (this.sweeping) {
      this.stopSweep();
      return;
    }
    this.sweeping = true;
    this.figure.querySelector("[data-action=sweep]").setAttribute("aria-pressed", "true");
    let last = performance.now();
    const turn = (now) => {
      if (!this.sweeping) return;
      this.lamp.set(this.lamp.azimuth + (now - last) * 0.06, this.lamp.elevation);
      last = now;
      requestAnimationFrame(turn);
    };
    requestAnimationFrame(turn);
  }

  stopSweep() {
    if (!this.sweeping) return;
    this.sweeping = false;
    this.figure.querySelector("[data-action=sweep]").setAttribute("aria-pressed", "false");
  }
}
