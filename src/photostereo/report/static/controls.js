// Pointer, keys and panel of the relighting view.

class Controls {
  constructor(relighter) {
    this.relighter = relighter;
    this.figure = relighter.figure;
    this.tool = null;
    this.pinned = false;
    this.raking = false;
    this.panel = this.figure.querySelector("form.panel");
    const { data, pyramid, exact } = relighter;
    this.figure.classList.toggle("inexact", !exact);
    this.figure.classList.toggle(
      "flat",
      !Object.keys(data.sets).some((name) => pyramid.has(name, "depth")),
    );
    this.modes = [...this.panel.querySelectorAll("[name$=mode]")].filter(
      (mode) => getComputedStyle(mode.parentNode).display !== "none",
    );
    this.followPointer();
    this.followKeys();
    this.followPanel();
    this.followDial();
    this.followMinimap();
    this.followFullScreen();
    this.followDrawers();
    relighter.rig.watch(() => this.showLights());
    for (const [name, value] of Object.entries(relighter.look)) this.change(name, value);
  }

  // Places are in CSS pixels of the canvas.
  aim([x, y]) {
    const { relighter } = this;
    const { ratio } = relighter.stage;
    relighter.pointer = [x * ratio, y * ratio];
    relighter.stage.changed();
    if (this.pinned) return;
    const [width, height] = relighter.view.canvas;
    const half = Math.min(width, height) / 2;
    this.point((x - width / 2) / half, (height / 2 - y) / half);
  }

  // The light over a place on the unit disc; a raking light only walks around.
  point(x, y) {
    const { light } = this.relighter.rig;
    this.stopSweep();
    if (this.raking) light.set((Math.atan2(y, x) * 180) / Math.PI, RAKING_HEIGHT);
    else light.setFromDisc(x, y);
  }

  followPointer() {
    const { view } = this.relighter;
    steerView(this.relighter.canvas, view, {
      hover: (place) => this.aim(place),
      aim: (place) => this.aim(place),
      tap: (place, kind) => {
        if (kind === "mouse") this.pin(!this.pinned);
        else this.aim(place);
      },
      tool: () => this.tool,
    });
    this.figure.querySelector(".toolbar").addEventListener("click", (event) => {
      const action = event.target.closest("button")?.dataset.view;
      const middle = view.canvas.map((side) => side / 2);
      if (action === "nearer") view.zoomAt(1.6, middle);
      else if (action === "farther") view.zoomAt(1 / 1.6, middle);
      else if (action === "whole") view.reset();
      else if (action === "pixels") view.set(1 / (window.devicePixelRatio || 1), view.x, view.y);
    });
  }

  // A tool takes the presses on the picture for itself until it is put away.
  take(tool) {
    const before = this.tool;
    this.tool = before === tool ? null : tool;
    before?.away?.();
    this.tool?.taken?.();
    this.figure.classList.toggle("tooling", Boolean(this.tool));
    for (const button of this.figure.querySelectorAll("[data-tool]")) {
      button.setAttribute("aria-pressed", String(button.dataset.tool === this.tool?.name));
    }
  }

  followKeys() {
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    const { relighter } = this;
    const { view } = relighter;
    document.addEventListener("keydown", (event) => {
      if (
        event.ctrlKey ||
        event.metaKey ||
        event.altKey ||
        event.defaultPrevented ||
        !this.hears(event)
      )
        return;
      const step = steps[event.key];
      const key = event.key.toLowerCase();
      const middle = view.canvas.map((side) => side / 2);
      if (step && event.shiftKey) view.pan(-60 * step[0], 60 * step[1]);
      else if (step) {
        this.stopSweep();
        this.raking = false;
        relighter.rig.light.push(0.08 * step[0], 0.08 * step[1]);
      } else if (key === "+" || key === "=") view.zoomAt(1.25, middle);
      else if (key === "-" || key === "_") view.zoomAt(0.8, middle);
      else if (key === "home" || key === "0") view.reset();
      else if (key === "l") this.setLoupe(!relighter.loupe);
      else if (key === "p" || key === "enter") this.pin(!this.pinned);
      else if (key === " ") this.toggleSweep();
      else if (key === "escape" && this.tool) this.take(this.tool);
      else if (key >= "1" && key <= "9" && this.modes[Number(key) - 1])
        this.change("mode", this.modes[Number(key) - 1].value);
      else {
        const button = this.figure.querySelector(`[data-key="${CSS.escape(key)}"]`);
        if (!button) return;
        button.click();
      }
      event.preventDefault();
    });
  }

  // Letters and digits are heard wherever the focus is while the view is on the screen, except in fields. Keys that
  // scroll the page or work a control (arrows, space, Enter, Home) are heard on the picture only.
  hears({ target, key }) {
    const { canvas } = this.relighter;
    if (target === canvas) return true;
    if (
      target.closest?.(
        "textarea, select, [contenteditable], input:not([type=range], [type=radio], [type=checkbox]), #surface-view",
      )
    )
      return false;
    const { top, bottom } = this.figure.getBoundingClientRect();
    return key.length === 1 && key !== " " && bottom > 80 && top < window.innerHeight - 80;
  }

  followFullScreen() {
    const button = this.figure.querySelector("[data-action=fullscreen]");
    button.hidden = !document.fullscreenEnabled;
    button.addEventListener("click", () => {
      if (document.fullscreenElement) document.exitFullscreen();
      else this.figure.requestFullscreen().catch(() => {});
    });
  }

  // One drawer of the panel is open at a time; their names are always in sight.
  followDrawers() {
    this.panel.querySelector(".tabs").addEventListener("click", (event) => {
      const name = event.target.closest("button")?.dataset.drawer;
      if (!name) return;
      const on = this.panel.querySelector(`.drawer.${name}`).hidden;
      if ((this.tool?.name === "measure") !== (on && name === "measure"))
        this.figure.querySelector("[data-tool=measure]").click();
      this.open(name, on);
    });
  }

  open(name, on = true) {
    for (const tab of this.panel.querySelectorAll("[data-drawer]")) {
      const opened = on && tab.dataset.drawer === name;
      tab.setAttribute("aria-expanded", String(opened));
      this.panel.querySelector(`.drawer.${tab.dataset.drawer}`).hidden = !opened;
    }
  }

  // Hold the light in a direction.
  shineFrom(direction) {
    this.stopSweep();
    this.raking = false;
    this.relighter.rig.light.setFromDirection(direction);
    this.pin(true);
  }

  followPanel() {
    const { rig } = this.relighter;
    this.panel.addEventListener("submit", (event) => event.preventDefault());
    this.panel.addEventListener("input", ({ target }) => {
      const kind = target.dataset.look;
      if (kind === "mode") this.change("mode", target.value);
      else if (kind === "contours")
        this.change("contours", target.checked ? this.contourStep() : 0);
      else if (kind) this.change(kind, Number(target.value));
      else if (target.dataset.light) {
        this.stopSweep();
        this.raking = false;
        const value = Number(target.value);
        if (target.dataset.light === "azimuth") rig.light.set(value, rig.light.elevation);
        else rig.light.set(rig.light.azimuth, value);
      } else if (target.dataset.tint !== undefined) rig.paint(target.value);
      else if (target.dataset.step !== undefined) this.change("contours", this.contourStep());
      else if (target.dataset.toggle === "loupe") this.setLoupe(target.checked);
      else if (target.dataset.toggle === "pin") this.pin(target.checked);
      else if (target.dataset.toggle === "sweep") this.toggleSweep();
    });
    this.panel.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      if (button.dataset.preset) this.apply(button.dataset.preset);
      if (button.dataset.action === "add-light") rig.add();
      if (button.dataset.action === "drop-light") rig.remove();
      if (button.dataset.number) rig.choose(Number(button.dataset.number));
    });
  }

  apply(preset) {
    const { rig } = this.relighter;
    this.stopSweep();
    // A light that was lowered to rake goes up again for the next look.
    if (this.raking && preset !== "raking") rig.light.set(rig.light.azimuth, this.heightBefore);
    else if (!this.raking) this.heightBefore = rig.light.elevation;
    this.raking = preset === "raking";
    if (preset === "lights") {
      rig.set(THREE_LIGHTS.map(({ tint, turn }) => ({ tint, azimuth: 90 + turn, elevation: 30 })));
      this.pin(true);
    } else if (rig.lights.length > 1) rig.set([{ ...rig.state()[0], tint: "#ffffff" }]);
    if (this.raking) rig.light.set(rig.light.azimuth, RAKING_HEIGHT);
    if (preset === "gain")
      rig.light.set(rig.light.azimuth, Math.max(rig.light.elevation, GAIN_HEIGHT));
    for (const [name, value] of Object.entries(PRESETS[preset])) this.change(name, value);
  }

  // Twelve steps or so over the heights, or what the slider says, in round numbers of the unit.
  contourStep() {
    const { data, units, raised } = this.relighter;
    const share = Number(this.panel.querySelector("[data-step]").value);
    const range = highest(data, data.sets[raised]);
    return range > 0 ? roundStep((range * units.size) / share) / units.size : 0;
  }

  change(name, value) {
    const { look, stage, units } = this.relighter;
    look[name] = value;
    for (const control of this.figure.querySelectorAll(`[data-look="${name}"]`)) {
      if (control.type === "radio") control.checked = control.value === value;
      else if (control.type === "checkbox") control.checked = value > 0;
      else control.value = String(value);
    }
    const output = this.figure.querySelector(`[data-value="${name}"]`);
    if (output) {
      output.textContent = String(Math.round(value * 100) / 100);
      if (name === "contours") output.textContent = value ? `every ${units.length(value)}` : "";
    }
    this.markPreset();
    this.figure.dispatchEvent(new CustomEvent("look"));
    stage.changed();
  }

  // Press the button of the look that is shown, if it is one of them.
  markPreset() {
    const { look, rig } = this.relighter;
    const fits = (name) =>
      Object.entries(PRESETS[name]).every(([key, value]) => look[key] === value) &&
      (name === "raking") === this.raking &&
      (name === "lights") === rig.lights.length > 1;
    for (const button of this.panel.querySelectorAll("[data-preset]")) {
      button.setAttribute("aria-pressed", String(fits(button.dataset.preset)));
    }
  }

  setLoupe(on) {
    this.relighter.loupe = on;
    this.figure.querySelector("[data-toggle=loupe]").checked = on;
    this.relighter.stage.changed();
  }

  pin(on) {
    this.pinned = on;
    this.figure.querySelector("[data-toggle=pin]").checked = on;
    this.figure.classList.toggle("pinned", on);
  }

  followDial() {
    const dial = this.figure.querySelector(".dial");
    const follow = (event) => {
      const box = dial.getBoundingClientRect();
      const radius = 0.42 * box.width;
      this.point(
        (event.clientX - box.left - box.width / 2) / radius,
        (box.top + box.height / 2 - event.clientY) / radius,
      );
    };
    dial.addEventListener("pointerdown", (event) => {
      dial.setPointerCapture(event.pointerId);
      follow(event);
    });
    dial.addEventListener("pointermove", (event) => {
      if (event.buttons) follow(event);
    });
  }

  followMinimap() {
    const map = this.figure.querySelector(".minimap");
    const follow = (event) => {
      const { view, overview } = this.relighter;
      const box = this.relighter.canvas.getBoundingClientRect();
      const place = [event.clientX - box.left - overview.x, event.clientY - box.top - overview.y];
      view.set(view.scale, place[0] / overview.scale, place[1] / overview.scale);
    };
    map.addEventListener("pointerdown", (event) => {
      map.setPointerCapture(event.pointerId);
      follow(event);
    });
    map.addEventListener("pointermove", (event) => {
      if (event.buttons) follow(event);
    });
  }

  showLights() {
    const { rig, stage } = this.relighter;
    const { light } = rig;
    const [x, y] = light.direction();
    const place = { x: String(50 + 42 * x), y: String(50 - 42 * y) };
    const dot = this.figure.querySelector(".dial-light");
    dot.setAttribute("cx", place.x);
    dot.setAttribute("cy", place.y);
    const ray = this.figure.querySelector(".dial-ray");
    ray.setAttribute("x2", place.x);
    ray.setAttribute("y2", place.y);
    const words = light.words();
    for (const name of ["azimuth", "elevation"]) {
      const slider = this.figure.querySelector(`[data-light="${name}"]`);
      slider.value = String(Math.round(light[name]));
      slider.setAttribute("aria-valuetext", `${Math.round(light[name])} degrees: light ${words}`);
      this.figure.querySelector(`[data-value="${name}"]`).textContent =
        `${Math.round(light[name])}°`;
    }
    this.figure.querySelector(".light-words").textContent = `Light ${words}`;
    this.panel.querySelector("[data-tint]").value = light.tint;
    const chips = [...this.panel.querySelectorAll("[data-number]")];
    for (const [number, chip] of chips.entries()) {
      chip.hidden = number >= rig.lights.length || rig.lights.length < 2;
      chip.setAttribute("aria-pressed", String(number === rig.chosen));
      chip.style.setProperty("--chip", rig.lights[number]?.tint ?? "");
    }
    this.panel.querySelector("[data-action=add-light]").disabled = rig.lights.length >= LIGHTS_MOST;
    this.panel.querySelector("[data-action=drop-light]").hidden = rig.lights.length < 2;
    this.markPreset();
    stage.changed();
  }

  toggleSweep() {
    if (this.sweeping) {
      this.stopSweep();
      return;
    }
    this.sweeping = true;
    this.panel.querySelector("[data-toggle=sweep]").checked = true;
    let last = performance.now();
    const turn = (now) => {
      if (!this.sweeping) return;
      const { light } = this.relighter.rig;
      light.set(light.azimuth + (now - last) * 0.06, light.elevation);
      last = now;
      requestAnimationFrame(turn);
    };
    requestAnimationFrame(turn);
  }

  stopSweep() {
    if (!this.sweeping) return;
    this.sweeping = false;
    this.panel.querySelector("[data-toggle=sweep]").checked = false;
  }
}
