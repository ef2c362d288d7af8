// A photograph with a mask over it: brush, eraser, polygon, grow and shrink, undo, zoom.

import { h } from "./dom.js";

const STEPS = 40; // of undo
const CLOSE = 10; // pixels of the screen: a click so near the first corner closes a polygon
const TINT = [232, 140, 40];

export class MaskCanvas {
  constructor(onpaint) {
    this.onpaint = onpaint;
    this.tool = "brush";
    this.size = 28;
    this.zoom = 1;
    this.origin = [0, 0];
    this.past = [];
    this.future = [];
    this.strokes = 0;
    this.corners = [];
    this.canvas = h("canvas", {
      tabindex: "0",
      role: "application",
      "aria-label":
        "The mask over a photograph. B is the brush, E the eraser, P the polygon; arrow keys move the brush, Enter paints, plus and minus zoom.",
    });
    this.element = h("div", { class: "mask-stage" }, this.canvas);
    this.width = 0; // of the photographs
    this.height = 0;
    this.mask = document.createElement("canvas");
    this.tint = document.createElement("canvas");
    this.pen = this.mask.getContext("2d", { willReadFrequently: true });
    this.image = new Image();
    this.image.onload = () => this.draw();
    this.listen();
    this.watch = new ResizeObserver(() => {
      this.fit();
    });
    this.watch.observe(this.element);
  }

  end() {
    this.watch.disconnect();
  }

  open([width, height], address) {
    if (this.width === width && this.height === height) return;
    this.width = width;
    this.height = height;
    for (const canvas of [this.mask, this.tint]) {
      canvas.width = width;
      canvas.height = height;
    }
    this.show(address());
    this.fit();
  }

  show(address) {
    this.image.src = address;
  }

  async load(address) {
    const image = new Image();
    const { strokes } = this;
    image.src = address;
    try {
      await image.decode();
    } catch {
      return;
    }
    if (strokes !== this.strokes) return; // something was painted meanwhile, and is newer
    this.pen.clearRect(0, 0, this.width, this.height);
    this.pen.drawImage(image, 0, 0, this.width, this.height);
    const data = this.pen.getImageData(0, 0, this.width, this.height);
    for (let i = 0; i < data.data.length; i += 4) data.data[i + 3] = data.data[i] > 127 ? 255 : 0;
    this.pen.putImageData(data, 0, 0);
    this.retint();
  }

  forget() {
    this.past = [];
    this.future = [];
  }

  png() {
    const whole = document.createElement("canvas");
    [whole.width, whole.height] = [this.width, this.height];
    const pen = whole.getContext("2d");
    const data = this.pen.getImageData(0, 0, this.width, this.height);
    for (let i = 0; i < data.data.length; i += 4) {
      const on = data.data[i + 3] > 127 ? 255 : 0;
      data.data[i] = data.data[i + 1] = data.data[i + 2] = on;
      data.data[i + 3] = 255;
    }
    pen.putImageData(data, 0, 0);
    return new Promise((done) => whole.toBlob(done, "image/png"));
  }

  // Undo.

  remember() {
    this.strokes += 1;
    this.past.push(this.pen.getImageData(0, 0, this.width, this.height));
    if (this.past.length > STEPS) this.past.shift();
    this.future = [];
  }

  undo() {
    this.swap(this.past, this.future);
  }

  redo() {
    this.swap(this.future, this.past);
  }

  swap(from, to) {
    const kept = from.pop();
    if (!kept) return;
    to.push(this.pen.getImageData(0, 0, this.width, this.height));
    this.pen.putImageData(kept, 0, 0);
    this.changed();
  }

  changed() {
    this.strokes += 1;
    this.retint();
    this.onpaint();
  }

  // Tools.

  stroke([x0, y0], [x1, y1], erase) {
    this.pen.globalCompositeOperation = erase ? "destination-out" : "source-over";
    this.pen.strokeStyle = "#fff";
    this.pen.lineCap = this.pen.lineJoin = "round";
    this.pen.lineWidth = this.size / this.scale;
    this.pen.beginPath();
    this.pen.moveTo(x0, y0);
    this.pen.lineTo(x1, y1 + 0.01);
    this.pen.stroke();
    this.pen.globalCompositeOperation = "source-over";
  }

  close(erase) {
    if (this.corners.length > 2) {
      this.remember();
      this.pen.globalCompositeOperation = erase ? "destination-out" : "source-over";
      this.pen.fillStyle = "#fff";
      this.pen.beginPath();
      for (const [x, y] of this.corners) this.pen.lineTo(x, y);
      this.pen.fill();
      this.pen.globalCompositeOperation = "source-over";
      this.changed();
    }
    this.corners = [];
    this.draw();
  }

  grow(by) {
    this.remember();
    const { width, height } = this;
    const data = this.pen.getImageData(0, 0, width, height);
    const from = new Uint8Array(width * height);
    for (let i = 0; i < from.length; i += 1) from[i] = data.data[4 * i + 3] > 127 ? 1 : 0;
    const on = by > 0 ? 1 : 0;
    for (let y = 0; y < height; y += 1) {
      for (let x = 0; x < width; x += 1) {
        const i = y * width + x;
        if (from[i] === on) continue;
        const near =
          (x > 0 && from[i - 1] === on) ||
          (x + 1 < width && from[i + 1] === on) ||
          (y > 0 && from[i - width] === on) ||
          (y + 1 < height && from[i + width] === on);
        if (near) data.data.set(on ? [255, 255, 255, 255] : [0, 0, 0, 0], 4 * i);
      }
    }
    this.pen.putImageData(data, 0, 0);
    this.changed();
  }

  // The view.

  get scale() {
    return this.base * this.zoom;
  }

  fit() {
    if (!this.width) return;
    const box = this.element.getBoundingClientRect();
    const sharp = window.devicePixelRatio || 1;
    this.canvas.width = Math.max(1, Math.round(box.width * sharp));
    this.canvas.height = Math.max(1, Math.round(box.height * sharp));
    this.base = Math.min(box.width / this.width, box.height / this.height);
    this.zoom = 1;
    this.origin = [
      (box.width - this.width * this.base) / 2,
      (box.height - this.height * this.base) / 2,
    ];
    this.draw();
  }

  zoomBy(factor, at) {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = at ?? [box.width / 2, box.height / 2];
    const zoom = Math.min(24, Math.max(1, this.zoom * factor));
    const change = zoom / this.zoom;
    this.origin = [x - (x - this.origin[0]) * change, y - (y - this.origin[1]) * change];
    this.zoom = zoom;
    if (zoom === 1)
      this.origin = [
        (box.width - this.width * this.base) / 2,
        (box.height - this.height * this.base) / 2,
      ];
    this.draw();
  }

  retint() {
    const pen = this.tint.getContext("2d");
    pen.clearRect(0, 0, this.width, this.height);
    pen.fillStyle = `rgb(${TINT.join(" ")})`;
    pen.fillRect(0, 0, this.width, this.height);
    pen.globalCompositeOperation = "destination-out";
    pen.drawImage(this.mask, 0, 0);
    pen.globalCompositeOperation = "source-over";
    this.draw();
  }

  draw() {
    if (this.drawing || !this.width) return;
    this.drawing = requestAnimationFrame(() => {
      this.drawing = null;
      const sharp = window.devicePixelRatio || 1;
      const pen = this.canvas.getContext("2d");
      pen.setTransform(1, 0, 0, 1, 0, 0);
      pen.clearRect(0, 0, this.canvas.width, this.canvas.height);
      pen.setTransform(
        sharp * this.scale,
        0,
        0,
        sharp * this.scale,
        sharp * this.origin[0],
        sharp * this.origin[1],
      );
      if (this.image.complete && this.image.naturalWidth)
        pen.drawImage(this.image, 0, 0, this.width, this.height);
      pen.globalAlpha = 0.42;
      pen.drawImage(this.tint, 0, 0);
      pen.globalAlpha = 1;
      this.outline(pen);
    });
  }

  outline(pen) {
    pen.lineWidth = 1.5 / this.scale;
    pen.strokeStyle = "#fff";
    if (this.corners.length) {
      pen.beginPath();
      for (const [x, y] of this.corners) pen.lineTo(x, y);
      if (this.pointer) pen.lineTo(...this.pointer);
      pen.stroke();
      pen.beginPath();
      pen.arc(...this.corners[0], CLOSE / 2 / this.scale, 0, 7);
      pen.stroke();
    }
    if (!this.pointer || this.tool === "polygon") return;
    for (const { color, extra } of [
      { color: "rgb(0 0 0 / 0.6)", extra: 1 },
      { color: "#fff", extra: 0 },
    ]) {
      pen.strokeStyle = color;
      pen.beginPath();
      pen.arc(this.pointer[0], this.pointer[1], (this.size / 2 + extra) / this.scale, 0, 7);
      pen.stroke();
    }
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    return [
      (event.clientX - box.left - this.origin[0]) / this.scale,
      (event.clientY - box.top - this.origin[1]) / this.scale,
    ];
  }

  listen() {
    const { canvas } = this;
    const fingers = new Map();
    let last = null;
    let panning = null;
    let pinch = null;
    const spread = () => {
      const [a, b] = [...fingers.values()];
      const box = canvas.getBoundingClientRect();
      return {
        apart: Math.hypot(a[0] - b[0], a[1] - b[1]),
        middle: [(a[0] + b[0]) / 2 - box.left, (a[1] + b[1]) / 2 - box.top],
      };
    };
    canvas.addEventListener("pointerdown", (event) => {
      canvas.focus();
      event.preventDefault();
      canvas.setPointerCapture(event.pointerId);
      if (event.pointerType === "touch")
        fingers.set(event.pointerId, [event.clientX, event.clientY]);
      if (fingers.size === 2) {
        // what the first finger began was not meant
        if (last) {
          this.pen.putImageData(this.past.pop(), 0, 0);
          this.retint();
        } else if (this.tool === "polygon") this.corners.pop();
        last = null;
        pinch = spread();
        return;
      }
      if (event.button === 1 || this.space) {
        panning = [event.clientX - this.origin[0], event.clientY - this.origin[1]];
        return;
      }
      if (this.tool === "polygon") {
        const [x, y] = this.at(event);
        const [first] = this.corners;
        if (this.corners.length > 2 && Math.hypot(x - first[0], y - first[1]) * this.scale < CLOSE)
          this.close(event.altKey);
        else this.corners.push([x, y]);
        this.draw();
        return;
      }
      this.remember();
      this.busy = true;
      last = this.at(event);
      this.stroke(last, last, this.erases(event));
      this.retint();
    });
    canvas.addEventListener("pointermove", (event) => {
      this.pointer = this.at(event);
      if (fingers.has(event.pointerId))
        fingers.set(event.pointerId, [event.clientX, event.clientY]);
      if (pinch && fingers.size === 2) {
        const now = spread();
        this.origin = [
          this.origin[0] + now.middle[0] - pinch.middle[0],
          this.origin[1] + now.middle[1] - pinch.middle[1],
        ];
        this.zoomBy(now.apart / pinch.apart, now.middle);
        pinch = now;
        return;
      }
      if (panning) this.origin = [event.clientX - panning[0], event.clientY - panning[1]];
      if (last) {
        this.stroke(last, this.pointer, this.erases(event));
        last = this.pointer;
        this.retint();
      }
      this.draw();
    });
    const end = (event) => {
      fingers.delete(event.pointerId);
      pinch = null;
      panning = null;
      this.busy = false;
      if (last) this.changed();
      last = null;
    };
    canvas.addEventListener("pointerup", end);
    canvas.addEventListener("pointercancel", end);
    canvas.addEventListener("pointerleave", () => {
      this.pointer = null;
      this.draw();
    });
    canvas.addEventListener("dblclick", (event) => {
      if (this.tool === "polygon") this.close(event.altKey);
    });
    canvas.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        const box = canvas.getBoundingClientRect();
        this.zoomBy(Math.exp(-event.deltaY * 0.0015), [
          event.clientX - box.left,
          event.clientY - box.top,
        ]);
      },
      { passive: false },
    );
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("keyup", (event) => {
      if (event.key === " ") this.space = false;
    });
  }

  erases(event) {
    return (this.tool === "eraser") !== event.altKey;
  }

  key(event) {
    const step = (event.shiftKey ? 20 : 4) / this.scale;
    const ways = {
      ArrowLeft: [-step, 0],
      ArrowRight: [step, 0],
      ArrowUp: [0, -step],
      ArrowDown: [0, step],
    };
    if (event.key === " ") {
      this.space = true;
      event.preventDefault();
    }
    if (event.key === "+" || event.key === "=") this.zoomBy(1.25);
    if (event.key === "-") this.zoomBy(0.8);
    if (event.key === "Escape") {
      this.corners = [];
      this.draw();
    }
    if (event.key in ways) {
      event.preventDefault();
      const [x, y] = this.pointer ?? [this.width / 2, this.height / 2];
      this.pointer = [x + ways[event.key][0], y + ways[event.key][1]];
      this.draw();
    }
    if (event.key === "Enter" && this.pointer) {
      event.preventDefault();
      if (this.tool === "polygon") {
        if (event.shiftKey) this.close(event.altKey);
        else this.corners.push(this.pointer);
        this.draw();
        return;
      }
      this.remember();
      this.stroke(this.pointer, this.pointer, this.erases(event));
      this.changed();
    }
  }
}
