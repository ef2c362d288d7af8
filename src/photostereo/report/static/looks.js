// What the relighting view can show, and the looks that people reach for.

const MODES = {
  albedo: 0,
  clay: 1,
  normals: 2,
  slope: 3,
  depth: 4,
  curvature: 5,
  occlusion: 6,
  error: 7,
  difference: 8,
};
const PLAIN = {
  mode: "clay",
  diffuse: 1,
  specular: 0.05,
  gloss: 30,
  ambient: 0.05,
  gain: 1,
  detail: 0,
  radius: 3,
  crispen: 0,
};

// Specular enhancement and diffuse gain: Malzbender, Gelb, Wolters, Polynomial texture maps, SIGGRAPH 2001.
const PRESETS = {
  natural: { ...PLAIN, mode: "albedo" },
  raking: { ...PLAIN, diffuse: 1.25, specular: 0.02, gloss: 20, ambient: 0.02 },
  polished: { ...PLAIN, diffuse: 0.35, specular: 0.45, gloss: 45, ambient: 0.03 },
  specular: { ...PLAIN, mode: "albedo", diffuse: 0.4, specular: 0.7, gloss: 75, ambient: 0 },
  gain: { ...PLAIN, mode: "albedo", specular: 0, gain: 3 },
  detail: { ...PLAIN, specular: 0.08, detail: 2.5, radius: 3 },
  lights: { ...PLAIN, specular: 0.1, ambient: 0.02 },
};
const RAKING_HEIGHT = 15;
// Diffuse gain darkens what turns from the light, so that a low light leaves little to see.
const GAIN_HEIGHT = 65;
const THREE_LIGHTS = [
  { tint: "#ff5a3c", turn: 0 },
  { tint: "#4fe06f", turn: 120 },
  { tint: "#4a7dff", turn: 240 },
];

// The color scale of a view: its name, its ends, and how its numbers are said.
function scaleOf(mode, data, measure) {
  if (mode === "slope")
    return { name: "ember", low: 0, high: 90, words: (v) => `${Math.round(v)}°`, title: "Slope" };
  if (mode === "error")
    return {
      name: "ember",
      low: 0,
      high: 45,
      words: (v) => `${Math.round(v)}°`,
      title: "Angular error",
    };
  if (mode === "difference")
    return {
      name: "ember",
      low: 0,
      high: data.difference_top,
      words: (v) => `${roundTo(v, 2)}°`,
      title: "Angle between the two",
    };
  if (mode === "curvature") {
    const top = data.curvature_top;
    return {
      name: "weight",
      low: -top,
      high: top,
      words: (v) => measure.curvature(v),
      title: "Curvature: hollow to raised",
    };
  }
  if (mode === "occlusion")
    return {
      name: "sky",
      low: 0.3,
      high: 1,
      words: (v) => `${Math.round(100 * v)} %`,
      title: "Open to the sky",
    };
  if (mode === "depth")
    return {
      name: "depth",
      low: 0,
      high: highest(data, data),
      words: (v) => measure.short(v),
      title: "Height above the lowest point",
    };
  return null;
}

// The highest point of a result above the lowest; of results that are compared, above the lowest of all.
function highest(data, set) {
  return data.heights_top ?? set.high - set.low;
}

function roundTo(value, digits) {
  return Number(value.toPrecision(digits));
}

// The largest of 1, 2, 5 × 10^k that is not above the value.
function roundStep(value) {
  if (!(value > 0)) return 1;
  const decade = 10 ** Math.floor(Math.log10(value));
  return (
    [5, 2, 1].map((factor) => factor * decade).find((step) => step <= value * 1.0001) || decade
  );
}

// Lengths in the unit of the pixel size; without one, in pixels.
class Units {
  constructor({ size = 1, unit = "" } = {}) {
    this.size = size;
    this.unit = unit || (size === 1 ? "px" : "units");
  }

  number(value) {
    const size = Math.abs(value);
    if (size === 0) return "0";
    if (size >= 1e5 || size < 1e-3) return String(Number(value.toPrecision(4))).replace("-", "−");
    return value
      .toFixed(Math.max(0, Math.min(6, 3 - Math.floor(Math.log10(size)))))
      .replace("-", "−");
  }

  length(pixels) {
    return `${this.number(pixels * this.size)} ${this.unit}`;
  }

  // For scales and bars: three digits are enough.
  short(pixels) {
    return `${roundTo(pixels * this.size, 3)} ${this.unit}`;
  }

  curvature(perPixel) {
    return `${String(roundTo(perPixel / this.size, 2)).replace("-", "−")} / ${this.unit}`;
  }
}
