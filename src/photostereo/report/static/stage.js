// A canvas that is drawn only when something changed, at the resolution of the screen.

class Stage {
  constructor(canvas, { build, draw, antialias }) {
    this.canvas = canvas;
    this.draw = draw;
    this.waiting = false;
    this.ready = false;
    this.gl = openGl(canvas, antialias);
    if (!this.gl) return;
    const start = () =>
      build(this.gl).then(() => {
        this.ready = true;
        this.measure();
        this.render();
      });
    this.started = start();
    canvas.addEventListener("webglcontextlost", (event) => {
      event.preventDefault();
      this.ready = false;
    });
    canvas.addEventListener("webglcontextrestored", () => {
      this.gl.pixelStorei(this.gl.UNPACK_COLORSPACE_CONVERSION_WEBGL, this.gl.NONE);
      start();
    });
    new ResizeObserver(() => {
      this.measure();
      this.changed();
    }).observe(canvas);
  }

  measure() {
    const box = this.canvas.getBoundingClientRect();
    if (this.width && !box.width) return; // hidden, for instance on paper
    this.ratio = Math.min(window.devicePixelRatio || 1, 2);
    this.width = Math.max(1, Math.round(box.width * this.ratio));
    this.height = Math.max(1, Math.round(box.height * this.ratio));
    if (this.canvas.width !== this.width) this.canvas.width = this.width;
    if (this.canvas.height !== this.height) this.canvas.height = this.height;
  }

  changed() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.render();
    });
  }

  render() {
    if (!this.ready || this.gl.isContextLost()) return;
    this.draw(this.gl, this.width, this.height);
    this.canvas.dataset.frames = String(Number(this.canvas.dataset.frames || 0) + 1);
  }

  // Where an event happened, in canvas pixels from the upper left.
  place(event) {
    const box = this.canvas.getBoundingClientRect();
    return [(event.clientX - box.left) * this.ratio, (event.clientY - box.top) * this.ratio];
  }
}
