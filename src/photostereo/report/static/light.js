// A distant light: its direction, how pointer and keys move it, and how it is said in words.

const LOWEST = 4;
const SIDES = [
  "right",
  "upper right",
  "top",
  "upper left",
  "left",
  "lower left",
  "bottom",
  "lower right",
];

class Light {
  constructor(azimuth, elevation) {
    this.azimuth = azimuth;
    this.elevation = elevation;
    this.tint = "#ffffff";
    this.watchers = [];
  }

  watch(callback) {
    this.watchers.push(callback);
    callback(this);
  }

  set(azimuth, elevation) {
    this.azimuth = ((azimuth % 360) + 360) % 360;
    this.elevation = Math.min(90, Math.max(LOWEST, elevation));
    for (const callback of this.watchers) callback(this);
  }

  // The pointer on a unit disc is the light on the hemisphere above it.
  setFromDisc(x, y) {
    const radius = Math.min(Math.hypot(x, y), 1);
    const azimuth = radius < 1e-6 ? this.azimuth : (Math.atan2(y, x) * 180) / Math.PI;
    this.set(azimuth, (Math.acos(radius) * 180) / Math.PI);
  }

  setFromDirection([x, y, z]) {
    this.set(
      (Math.atan2(y, x) * 180) / Math.PI,
      (Math.asin(Math.max(-1, Math.min(1, z))) * 180) / Math.PI,
    );
  }

  // Arrow keys push the light over the hemisphere as the pointer would.
  push(right, up) {
    const [x, y] = this.direction();
    const [a, b] = [x + right, y + up];
    const radius = Math.hypot(a, b);
    const rim = Math.cos((LOWEST * Math.PI) / 180);
    const shrink = radius > rim ? rim / radius : 1;
    this.setFromDisc(a * shrink, b * shrink);
  }

  direction() {
    const a = (this.azimuth * Math.PI) / 180;
    const e = (this.elevation * Math.PI) / 180;
    return [Math.cos(a) * Math.cos(e), Math.sin(a) * Math.cos(e), Math.sin(e)];
  }

  words() {
    if (this.elevation > 78) return "from the camera";
    const side = SIDES[Math.round(this.azimuth / 45) % 8];
    return `from the ${side}, ${Math.round(this.elevation)}° high`;
  }
}
