// A camera that orbits a point: yaw, pitch, distance and the point itself, and the gestures that change them.

const FIELD = (26 * Math.PI) / 180;

function multiply(a, b) {
  const result = new Float32Array(16);
  for (let column = 0; column < 4; column += 1) {
    for (let row = 0; row < 4; row += 1) {
      let sum = 0;
      for (let k = 0; k < 4; k += 1) sum += a[k * 4 + row] * b[column * 4 + k];
      result[column * 4 + row] = sum;
    }
  }
  return result;
}

class OrbitCamera {
  // radius: of a ball that holds the object, which lies around the origin
  constructor(radius) {
    this.radius = radius;
    this.reset();
  }

  reset() {
    this.yaw = -0.42;
    this.pitch = 0.22;
    this.distance = (0.9 * this.radius) / Math.sin(FIELD / 2);
    this.target = [0, 0, 0];
  }

  // From where the photographs were taken.
  face() {
    this.yaw = 0;
    this.pitch = 0;
    this.target = [0, 0, 0];
  }

  orbit(right, up) {
    this.yaw += right;
    this.pitch = Math.max(-1.5, Math.min(1.5, this.pitch + up));
  }

  zoom(factor) {
    const far = (6 * this.radius) / Math.sin(FIELD / 2);
    this.distance = Math.max(0.12 * this.radius, Math.min(far, this.distance * factor));
  }

  // Shares of the view's height.
  pan(right, up) {
    const { x, y } = this.axes();
    const span = 2 * Math.tan(FIELD / 2) * this.distance;
    this.target = this.target.map((value, i) => value - (right * x[i] + up * y[i]) * span);
  }

  // The camera's own axes in the object's frame: x right, y up, z towards the viewer.
  axes() {
    const [sy, cy, sp, cp] = [
      Math.sin(this.yaw),
      Math.cos(this.yaw),
      Math.sin(this.pitch),
      Math.cos(this.pitch),
    ];
    return { x: [cy, 0, -sy], y: [-sp * sy, cp, -sp * cy], z: [cp * sy, sp, cp * cy] };
  }

  eye() {
    const { z } = this.axes();
    return this.target.map((value, i) => value + this.distance * z[i]);
  }

  // A direction given in the camera's axes, in the object's frame.
  turned([a, b, c]) {
    const { x, y, z } = this.axes();
    return [0, 1, 2].map((i) => a * x[i] + b * y[i] + c * z[i]);
  }

  matrix(aspect) {
    const { x, y, z } = this.axes();
    const eye = this.eye();
    const dot = (a) => a[0] * eye[0] + a[1] * eye[1] + a[2] * eye[2];
    const view = [
      x[0],
      y[0],
      z[0],
      0,
      x[1],
      y[1],
      z[1],
      0,
      x[2],
      y[2],
      z[2],
      0,
      -dot(x),
      -dot(y),
      -dot(z),
      1,
    ];
    // In a narrow canvas the width decides what fits.
    const f = Math.min(1, aspect) / Math.tan(FIELD / 2);
    const near = Math.max(
      0.01 * this.radius,
      this.distance - 3 * this.radius - Math.hypot(...this.target),
    );
    const far = this.distance + 3 * this.radius + Math.hypot(...this.target);
    const lens = [
      f / aspect,
      0,
      0,
      0,
      0,
      f,
      0,
      0,
      0,
      0,
      (far + near) / (near - far),
      -1,
      0,
      0,
      (2 * far * near) / (near - far),
      0,
    ];
    return multiply(lens, view);
  }
}

// Mouse: drag orbits, right button or Shift pans, wheel zooms once the view has the focus (else the page scrolls).
// Touch: one finger orbits, two pan and zoom. Keys: arrows, Shift and arrows, plus and minus, Home.
function steerCamera(canvas, camera, changed) {
  const fingers = new Map();

  canvas.addEventListener("contextmenu", (event) => event.preventDefault());
  canvas.addEventListener("pointerdown", (event) => {
    canvas.focus({ preventScroll: true });
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, event);
  });
  for (const end of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(end, (event) => fingers.delete(event.pointerId));
  }
  canvas.addEventListener("pointermove", (event) => {
    const before = fingers.get(event.pointerId);
    if (!before) return;
    const height = canvas.clientHeight || 1;
    const [dx, dy] = [event.clientX - before.clientX, event.clientY - before.clientY];
    if (fingers.size === 2) {
      const other = [...fingers.values()].find((finger) => finger.pointerId !== event.pointerId);
      const span = (finger) =>
        Math.hypot(finger.clientX - other.clientX, finger.clientY - other.clientY);
      if (span(event) > 0) camera.zoom(span(before) / span(event));
      camera.pan(dx / 2 / height, -dy / 2 / height);
    } else if (event.buttons & 2 || event.shiftKey) {
      camera.pan(dx / height, -dy / height);
    } else {
      camera.orbit(-dx * 0.008, dy * 0.008);
    }
    fingers.set(event.pointerId, event);
    changed();
  });
  canvas.addEventListener(
    "wheel",
    (event) => {
      if (document.activeElement !== canvas && !event.ctrlKey) return;
      event.preventDefault();
      camera.zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.003));
      changed();
    },
    { passive: false },
  );
  canvas.addEventListener("dblclick", () => {
    camera.reset();
    changed();
  });
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    const arrow = arrows[event.key];
    if (arrow && event.shiftKey) camera.pan(0.06 * arrow[0], 0.06 * arrow[1]);
    else if (arrow) camera.orbit(0.12 * arrow[0], 0.12 * arrow[1]);
    else if (event.key === "+" || event.key === "=") camera.zoom(0.88);
    else if (event.key === "-" || event.key === "_") camera.zoom(1 / 0.88);
    else if (event.key === "Home" || event.key === "0") camera.reset();
    else return;
    event.preventDefault();
    changed();
  });
}
