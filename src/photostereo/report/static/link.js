// A view as an address: `#light=135,42&zoom=3.5&at=120,88&mode=clay`. Numbers keep all their digits, so that the
// same window shows the same pixels again.

const LOOK_NUMBERS = [
  "diffuse",
  "specular",
  "gloss",
  "ambient",
  "gain",
  "detail",
  "radius",
  "crispen",
  "contours",
];

function viewToText(relighter, controls) {
  const { view, rig, look, shown, split } = relighter;
  const words = new URLSearchParams();
  words.set(
    "light",
    rig
      .state()
      .map(({ azimuth, elevation, tint }) =>
        [azimuth, elevation, ...(tint === "#ffffff" ? [] : [tint.slice(1)])].join(","),
      )
      .join(";"),
  );
  if (!view.fitted) {
    words.set("zoom", String(view.zoom));
    words.set("at", `${view.x},${view.y}`);
  }
  words.set("mode", look.mode);
  const usual = { ...PRESETS.natural, contours: 0 };
  for (const name of LOOK_NUMBERS)
    if (look[name] !== usual[name]) words.set(name, String(look[name]));
  if (controls.pinned) words.set("hold", "1");
  if (shown.length > 1) {
    words.set("sides", shown.join(","));
    words.set("split", String(split));
  }
  return words.toString().replaceAll("%2C", ",").replaceAll("%3B", ";");
}

// What an address says, checked: only numbers, known names and known results come through.
function textToView(text, { sets, modes }) {
  const words = new URLSearchParams(text);
  const numbers = (value, count) => {
    const found = (value || "").split(",").map((part) => (part.trim() === "" ? NaN : Number(part)));
    return found.length === count && found.every(Number.isFinite) ? found : null;
  };
  const lights = (words.get("light") || "")
    .split(";")
    .map((part) => {
      const [azimuth, elevation, tint] = part.split(",");
      const pair = numbers(`${azimuth},${elevation}`, 2);
      return (
        pair && {
          azimuth: ((pair[0] % 360) + 360) % 360,
          elevation: Math.min(90, Math.max(LOWEST, pair[1])),
          tint: `#${tint || "ffffff"}`,
        }
      );
    })
    .filter(Boolean);
  const look = {};
  if (modes.includes(words.get("mode"))) look.mode = words.get("mode");
  for (const name of LOOK_NUMBERS) {
    const found = numbers(words.get(name), 1);
    if (found) [look[name]] = found.map((value) => Math.max(0, value));
  }
  const sides = (words.get("sides") || "").split(",");
  return {
    lights,
    look,
    zoom: numbers(words.get("zoom"), 1)?.[0] ?? null,
    at: numbers(words.get("at"), 2),
    hold: words.get("hold") === "1",
    sides: sides.length === 2 && sides.every((name) => Object.hasOwn(sets, name)) ? sides : null,
    split: numbers(words.get("split"), 1)?.[0] ?? null,
  };
}

class Links {
  constructor(relighter, controls, comparison) {
    this.relighter = relighter;
    this.controls = controls;
    this.comparison = comparison;
    const button = relighter.figure.querySelector("[data-action=link]");
    this.said = relighter.figure.querySelector(".link-words");
    button.addEventListener("click", () => this.share());
    window.addEventListener("hashchange", () => this.restore());
  }

  async share() {
    history.replaceState(null, "", `#${viewToText(this.relighter, this.controls)}`);
    let copied = true;
    try {
      await navigator.clipboard.writeText(location.href);
    } catch {
      copied = false;
    }
    this.said.textContent = copied
      ? "The link to this view was copied."
      : "The address of the page now leads to this view.";
  }

  // Ordinary anchors of the page have no "=".
  restore() {
    const text = location.hash.slice(1);
    if (!/^(light|zoom|at|mode|sides)=/.test(text)) return;
    const { relighter, controls, comparison } = this;
    const modes = controls.modes.map((mode) => mode.value);
    const wanted = textToView(text, { sets: relighter.data.sets, modes });
    controls.stopSweep();
    controls.raking = false;
    controls.pin(wanted.hold);
    if (wanted.lights.length) relighter.rig.set(wanted.lights);
    const look = { ...PRESETS.natural, contours: 0, ...wanted.look };
    for (const [name, value] of Object.entries(look)) controls.change(name, value);
    if (wanted.zoom > 0 && wanted.at) relighter.view.set(wanted.zoom, ...wanted.at);
    else relighter.view.reset();
    if (comparison && wanted.sides) comparison.choose(wanted.sides);
    if (comparison && wanted.split !== null) comparison.move(wanted.split);
  }
}
