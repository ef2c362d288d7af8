// Where one looks: the place in the picture that is in the middle of the canvas, and how large its pixels are.
// Places are in pixels of level 0 from the upper left; the canvas is measured in CSS pixels.

const LARGEST_PIXEL = 96;

class View {
  constructor(width, height) {
    this.width = width;
    this.height = height;
    this.canvas = [1, 1];
    this.watchers = [];
    this.reset();
  }

  watch(callback) {
    this.watchers.push(callback);
  }

  tell() {
    for (const callback of this.watchers) callback(this);
  }

  resize(width, height) {
    this.canvas = [width, height];
    this.tell();
  }

  // The whole object with a margin.
  get fitting() {
    return 0.94 * Math.min(this.canvas[0] / this.width, this.canvas[1] / this.height);
  }

  get scale() {
    return this.zoom ?? this.fitting;
  }

  get fitted() {
    return this.zoom === null;
  }

  reset() {
    this.zoom = null;
    this.x = this.width / 2;
    this.y = this.height / 2;
    this.tell();
  }

  set(zoom, x, y) {
    const smallest = this.fitting;
    if (!(zoom > smallest * 1.001)) {
      this.reset();
      return;
    }
    this.zoom = Math.min(zoom, Math.max(LARGEST_PIXEL, 4 * smallest));
    this.x = Math.min(this.width, Math.max(0, x));
    this.y = Math.min(this.height, Math.max(0, y));
    this.tell();
  }

  /** @param {number[]} pixel */
  toPicture([cx, cy]) {
    return [
      this.x + (cx - this.canvas[0] / 2) / this.scale,
      this.y + (cy - this.canvas[1] / 2) / this.scale,
    ];
  }

  /** @param {number[]} place */
  toCanvas([x, y]) {
    return [
      (x - this.x) * this.scale + this.canvas[0] / 2,
      (y - this.y) * this.scale + this.canvas[1] / 2,
    ];
  }

  // What lies under this place of the canvas stays there.
  zoomAt(factor, place) {
    const [x, y] = this.toPicture(place);
    const before = this.scale;
    const zoom = Math.min(before * factor, Math.max(LARGEST_PIXEL, 4 * this.fitting));
    const turn = before / zoom;
    this.set(zoom, x + (this.x - x) * turn, y + (this.y - y) * turn);
  }

  pan(right, down) {
    if (!this.fitted) this.set(this.zoom, this.x - right / this.scale, this.y - down / this.scale);
  }
}

// Mouse: drag moves, double-click zooms, the wheel zooms once the view has the focus (else the page scrolls).
// Touch: two fingers zoom and move; one moves what is zoomed in, and scrolls the page or turns the light otherwise.
// hand: { hover, aim, tap, tool } of the view; a tool takes presses for itself.
function steerView(canvas, view, hand) {
  const fingers = new Map();
  let begun = null;
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button > 0) return;
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, place(event));
    begun =
      fingers.size === 1
        ? { at: place(event), moved: false, tool: hand.tool() }
        : { moved: true, tool: null };
    begun.tool?.down(view.toPicture(place(event)), event);
  });
  canvas.addEventListener("pointermove", (event) => {
    const now = place(event);
    const before = fingers.get(event.pointerId);
    if (!before) {
      if (event.pointerType === "mouse") hand.hover(now);
      return;
    }
    fingers.set(event.pointerId, now);
    if (fingers.size === 2) {
      const [other] = [...fingers].filter(([id]) => id !== event.pointerId).map(([, at]) => at);
      const span = (a) => Math.max(8, Math.hypot(a[0] - other[0], a[1] - other[1]));
      view.pan((now[0] - before[0]) / 2, (now[1] - before[1]) / 2);
      view.zoomAt(span(now) / span(before), [(now[0] + other[0]) / 2, (now[1] + other[1]) / 2]);
      return;
    }
    if (!begun) return;
    if (begun.tool) {
      begun.tool.move(view.toPicture(now), event);
      return;
    }
    if (!begun.moved && Math.hypot(now[0] - begun.at[0], now[1] - begun.at[1]) < 4) return;
    begun.moved = true;
    if (view.fitted) hand.aim(now);
    else view.pan(now[0] - before[0], now[1] - before[1]);
  });
  canvas.addEventListener("pointerup", (event) => {
    if (!fingers.delete(event.pointerId) || !begun) return;
    if (begun.tool) begun.tool.up(view.toPicture(place(event)), event);
    else if (!begun.moved) hand.tap(place(event), event.pointerType);
    if (!fingers.size) begun = null;
  });
  canvas.addEventListener("pointercancel", (event) => {
    fingers.delete(event.pointerId);
    begun?.tool?.cancel();
    begun = null;
  });
  canvas.addEventListener(
    "wheel",
    (event) => {
      if (document.activeElement !== canvas && !event.ctrlKey && !document.fullscreenElement)
        return;
      event.preventDefault();
      const step = event.deltaMode === 1 ? 30 * event.deltaY : event.deltaY;
      view.zoomAt(Math.exp(-Math.max(-240, Math.min(240, step)) * 0.0025), place(event));
    },
    { passive: false },
  );
  canvas.addEventListener("dblclick", (event) => {
    if (!hand.tool()) view.zoomAt(event.shiftKey ? 0.5 : 2, place(event));
  });
  // Fingers scroll the page over a picture that is shown whole, and move one that is zoomed in.
  view.watch(() => canvas.classList.toggle("zoomed", !view.fitted));
}
