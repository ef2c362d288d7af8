// Maps that the page writes itself, from the finest pixels that it can reach: all of them where they fit into the page
// or where it is served, else those of the finest level that it holds.

class Downloads {
  constructor(relighter, probe, box) {
    Object.assign(this, { relighter, probe, box });
    this.said = box.querySelector(".made-words");
    const { pyramid, data } = relighter;
    const set = relighter.shown[0];
    box.classList.toggle("flat", !pyramid.has(set, "depth"));
    const [width, height] = pyramid.size(pyramid.finest(set, "normals"));
    const part = data.origin.some(Boolean) ? `, cut to the object from column ${data.origin[0]}, row ${data.origin[1]}` : "";
    this.said.textContent = `Made by the page from its own ${width} × ${height} pixels${part}:`;
    box.addEventListener("click", (event) => {
      const kind = event.target.closest("[data-make]")?.dataset.make;
      if (kind) this.make(kind);
    });
  }

  async make(kind) {
    const set = this.relighter.shown[0];
    const { units } = this.relighter;
    const stem = kind.replace("-exr", "");
    const channel = { albedo: "albedo", depth: "depth" }[stem] || "normals";
    const { width, height, level, pixels } = await this.pixels(set, channel);
    const options = { perMetre: units.unit === "mm" ? Math.round(1000 / (units.size * 2 ** level)) : 0 };
    const count = width * height;
    const at = (i) => pixels.subarray(4 * i, 4 * i + 4);
    if (stem === "opengl" || stem === "directx") {
      const samples = new Uint16Array(3 * count);
      const turn = [1, stem === "directx" ? -1 : 1, 1];
      for (let i = 0; i < count; i += 1) {
        const normal = unpackNormal(at(i));
        if (normal) normal.forEach((value, k) => { samples[3 * i + k] = Math.round((turn[k] * value * 0.5 + 0.5) * 65535); });
      }
      const comment = `Normals: red x right, green y ${stem === "directx" ? "down (DirectX)" : "up (OpenGL)"}, blue z towards the camera; black outside the mask.`;
      saveBlob(`normals-${stem}.png`, await pngFile(width, height, 3, samples, { ...options, comment }));
    } else if (kind === "normals-exr") {
      const planes = { R: new Float32Array(count), G: new Float32Array(count), B: new Float32Array(count) };
      for (let i = 0; i < count; i += 1) [planes.R[i], planes.G[i], planes.B[i]] = unpackNormal(at(i)) || [0, 0, 0];
      saveBlob("normals.exr", exrFile(width, height, planes, { ...options, comment: "Normals: R x right, G y up, B z towards the camera; 0 outside the mask." }));
    } else if (stem === "albedo") {
      const samples = new Uint8Array(3 * count);
      for (let i = 0; i < count; i += 1) samples.set(at(i).subarray(0, 3), 3 * i);
      saveBlob("albedo.png", await pngFile(width, height, 3, samples, { ...options, comment: "Albedo, sRGB." }));
    } else if (stem === "mask") {
      const samples = Uint8Array.from({ length: count }, (_, i) => (unpackNormal(at(i)) ? 255 : 0));
      saveBlob("mask.png", await pngFile(width, height, 1, samples, options));
    } else if (kind === "depth") {
      const samples = Uint16Array.from({ length: count }, (_, i) => at(i)[0] * 256 + at(i)[1]);
      const { low, high } = this.relighter.data.sets[set];
      const comment = `Height towards the camera: 0 is unknown, 1 the lowest point, 65535 is ${units.length(high - low)} above it.`;
      saveBlob("depth.png", await pngFile(width, height, 1, samples, { ...options, comment }));
    } else {
      const heights = Float32Array.from({ length: count }, (_, i) => {
        const found = this.probe.height(set, at(i));
        return found === null ? NaN : found * units.size;
      });
      saveBlob("depth.exr", exrFile(width, height, { Z: heights }, { ...options, comment: `Height above the lowest point in ${units.unit}; NaN where unknown.` }));
    }
  }

  // All pixels of the finest level, RGBA by rows.
  async pixels(set, channel) {
    const { pyramid, store } = this.relighter;
    const level = pyramid.finest(set, channel);
    const [width, height] = pyramid.size(level);
    const [cols, rows] = pyramid.grid(level);
    const pixels = new Uint8Array(4 * width * height);
    for (let row = 0; row < rows; row += 1) {
      for (let col = 0; col < cols; col += 1) {
        const tile = await store.tile(set, channel, level, col, row).loaded;
        const bytes = store.bytes(tile);
        if (!bytes) continue;
        for (let line = 0; line < tile.height; line += 1) {
          const to = 4 * ((row * pyramid.tile + line) * width + col * pyramid.tile);
          pixels.set(bytes.subarray(4 * line * tile.width, 4 * (line + 1) * tile.width), to);
        }
      }
    }
    return { width, height, level, pixels };
  }
}
