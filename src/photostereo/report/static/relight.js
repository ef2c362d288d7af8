// The relighting view: one result, or two on either side of a divider, seen whole or pixel by pixel.

const MAGNIFY = 4;
const LOUPE_SHARE = 0.36;
const OVERVIEW = 132;

class Relighter {
  // figure: the element that holds canvas and panel; data: the page's; served: where finer tiles are found
  constructor(figure, data, served) {
    this.figure = figure;
    this.canvas = figure.querySelector("canvas");
    this.data = data;
    this.pyramid = new Pyramid(data, served);
    this.units = new Units(data.pixel);
    this.view = new View(data.width, data.height);
    this.rig = new Rig();
    this.shown = data.shown;
    this.split = 0.5;
    this.look = { ...PRESETS.natural, contours: 0 };
    this.loupe = false;
    this.pointer = null;
    this.patches = new Map();
    this.stage = new Stage(this.canvas, {
      build: (gl) => this.build(gl),
      draw: (gl, w, h) => this.draw(gl, w, h),
      antialias: false, // the shader smooths the outline itself
    });
    if (!this.stage.gl) return;
    this.view.watch(() => this.stage.changed());
  }

  get works() {
    return Boolean(this.stage.gl);
  }

  // The first of the results shown that has heights, or the first of all.
  get raised() {
    return this.shown.find((name) => this.pyramid.has(name, "depth")) || this.shown[0];
  }

  get exact() {
    return Boolean(this.stage.gl?.getExtension("EXT_color_buffer_float"));
  }

  async build(gl) {
    this.patches.clear();
    this.finished = null;
    this.vertices = gl.createVertexArray();
    this.program = makeProgram(gl, FULL_VERTEX, LOOK_FRAGMENT);
    this.copier = makeProgram(gl, FULL_VERTEX, COPY_FRAGMENT);
    this.crispener = makeProgram(gl, FULL_VERTEX, CRISPEN_FRAGMENT);
    this.deriver = new Deriver(gl);
    this.store = new TileStore(gl, this.pyramid, () => this.stage.changed());
    this.scales = Object.fromEntries(
      Object.entries(this.data.colors).map(([name, codes]) => [name, scaleTexture(gl, codes)]),
    );
    await this.prepare(this.shown);
  }

  // The coarsest tile of each channel: enough for a first picture.
  async prepare(names) {
    const top = this.pyramid.levels - 1;
    const channels = ["normals", "albedo", "depth"];
    const wanted = names.flatMap((name) =>
      channels
        .filter((c) => this.pyramid.has(name, c))
        .map((c) => this.store.tile(name, c, top, 0, 0)),
    );
    await Promise.all(wanted.map((tile) => tile?.loaded));
  }

  async show(names) {
    this.shown = names;
    for (const [key, patch] of this.patches) {
      if (names.includes(patch.set) || patch.set === "truth") continue;
      patch.drop();
      this.patches.delete(key);
    }
    await this.prepare(names);
    this.stage.changed();
  }

  // Canvas pixels per pixel of level 0, and where its upper left corner is.
  placing() {
    const { ratio, width, height } = this.stage;
    const scale = this.view.scale * ratio;
    return { scale, left: width / 2 - this.view.x * scale, top: height / 2 - this.view.y * scale };
  }

  draw(gl, width, height) {
    const { ratio } = this.stage;
    if (this.view.canvas[0] !== width / ratio || this.view.canvas[1] !== height / ratio)
      this.view.resize(width / ratio, height / ratio);
    gl.bindVertexArray(this.vertices);
    gl.disable(gl.DEPTH_TEST);
    this.complete = true;
    const target = this.look.crispen > 0 ? this.offscreen(gl, width, height) : null;
    const divider = Math.round(this.shown.length > 1 ? this.split * width : width);
    this.paint(gl, "main", target, [0, 0, width, height], divider, this.placing());
    if (target) this.crispen(gl, target, width, height);
    this.paintOverview(gl, width);
    const box = this.loupeBox(width, height);
    this.figure.querySelector(".loupe-frame").hidden = !box;
    if (box) this.paintLoupe(gl, box, divider);
    this.canvas.dataset.sharp = this.complete ? "yes" : "no";
  }

  // A part of a larger picture on a canvas of its size; `whole` is the width of that picture.
  paintBlock(width, height, placing, whole) {
    const { stage, canvas } = this;
    [stage.width, stage.height] = [canvas.width, canvas.height] = [width, height];
    const { gl } = stage;
    gl.bindVertexArray(this.vertices);
    gl.disable(gl.DEPTH_TEST);
    const target = this.look.crispen > 0 ? this.offscreen(gl, width, height) : null;
    const divider = this.shown.length > 1 ? Math.round(this.split * whole + placing.left) : width;
    this.paint(gl, "block", target, [0, 0, width, height], divider, placing);
    if (target) this.crispen(gl, target, width, height);
  }

  // What a rectangle of the canvas (counted from the upper left) shows of a result, gathered from its tiles.
  patch(gl, role, name, area, { scale, left, top }) {
    const [x, y, w, h] = area;
    const key = `${role} ${name}`;
    if (!this.patches.has(key)) this.patches.set(key, new Patch(gl, this.store, this.copier));
    const level = Math.max(0, Math.min(this.pyramid.levels - 1, Math.round(-Math.log2(scale))));
    const size = scale * 2 ** level;
    // Kernels look beyond the edge; whole steps keep the patch while the view moves a little.
    const [margin, step] = [this.margin(level), 32];
    const range = (from, length, most) => {
      const begin = Math.max(0, Math.floor((from / size - margin) / step) * step);
      const end = Math.min(most, Math.ceil(((from + length) / size + margin) / step) * step);
      return [begin, Math.max(1, end - begin)];
    };
    const [wide, high] = this.pyramid.size(level);
    const [px, pw] = range(x - left, w, wide);
    const [py, ph] = range(y - top, h, high);
    const patch = this.patches.get(key);
    patch.gather(
      name,
      level,
      [Math.min(px, wide - 1), Math.min(py, high - 1), pw, ph],
      this.channels(),
    );
    if (!patch.complete) this.complete = false;
    return patch;
  }

  margin(level) {
    if (this.look.mode === "occlusion") return 52;
    return (
      4 + (this.look.detail ? Math.ceil(Math.min(48, (3 * this.look.radius) / 2 ** level)) : 0)
    );
  }

  channels() {
    const { mode, contours } = this.look;
    const wanted = ["normals"];
    if (mode === "albedo") wanted.push("albedo");
    if (mode === "depth" || mode === "occlusion" || contours > 0) wanted.push("depth");
    return wanted;
  }

  // A rectangle with both results, one on each side of the divider.
  paint(gl, role, target, box, divider, placing) {
    const [x, y, w, h] = box;
    const edge = Math.min(Math.max(divider, x), x + w);
    const last = this.shown[this.shown.length - 1];
    const parts =
      this.look.mode === "difference"
        ? [[this.shown[0], x, w]]
        : [
            [this.shown[0], x, edge - x],
            [last, edge, x + w - edge],
          ];
    parts.forEach(([name, from, wide], side) => {
      if (wide <= 0) return;
      const area = [from, y, wide, h];
      const place = `${role} ${side}`;
      const patch = this.patch(gl, place, name, area, placing);
      if (patch.targets.normals)
        this.paintPart(gl, { role: place, target, area, name, patch, placing });
    });
  }

  paintPart(gl, { role, target, area, name, patch, placing }) {
    const [x, y, w, h] = area;
    const { look } = this;
    let mode = look.mode;
    let other = null;
    if (mode === "error" || mode === "difference") {
      const rival = mode === "error" ? "truth" : this.shown[this.shown.length - 1];
      if (name === rival)
        mode = "clay"; // the truth has no error
      else
        other = this.patch(gl, `${role} beside`, rival, [x, y, w, h], placing).targets.normals
          ?.texture;
    }
    const set = this.data.sets[name];
    const rise = set.high === undefined ? 0 : (set.high - set.low) / 65534;
    if ((mode === "depth" || mode === "occlusion") && !patch.targets.depth) mode = "clay";
    if ((mode === "curvature" || mode === "occlusion") && !this.deriver.exact) mode = "clay";
    const relit = mode === "albedo" || mode === "clay";
    const normals = this.deriver.normals(patch, relit ? look.detail : 0, look.radius);
    const cover = this.deriver.cover(patch);
    const scalar =
      mode === "curvature" || mode === "occlusion" ? this.deriver.scalar(patch, mode, rise) : null;
    const plain = patch.targets.normals.texture;
    const texel = placing.scale * 2 ** patch.level;
    const scale = scaleOf(mode, { ...this.data, ...set }, this.units);
    gl.bindFramebuffer(gl.FRAMEBUFFER, target ? target.frame : null);
    gl.viewport(0, 0, this.stage.width, this.stage.height);
    gl.enable(gl.SCISSOR_TEST);
    gl.scissor(x, this.stage.height - y - h, w, h);
    const { program, places } = this.program;
    gl.useProgram(program);
    gl.uniform2f(places.uCanvas, this.stage.width, this.stage.height);
    gl.uniform3f(
      places.uPatch,
      placing.left + patch.x * texel,
      placing.top + patch.y * texel,
      1 / texel,
    );
    gl.uniform1f(places.uCrisp, Math.max(1, texel / 4));
    gl.uniform3fv(
      places["uLights[0]"],
      this.rig.lights.flatMap((light) => light.direction()),
    );
    gl.uniform3fv(places["uTints[0]"], this.rig.tints().flat());
    gl.uniform1i(places.uLightCount, this.rig.lights.length);
    gl.uniform4f(places.uShine, look.diffuse, look.specular, look.gloss, look.ambient);
    gl.uniform1f(places.uGain, look.gain);
    gl.uniform1i(places.uMode, Math.min(MODES[mode], MODES.error));
    gl.uniform2f(places.uRange, scale ? scale.low : 0, scale ? scale.high : 1);
    gl.uniform3f(places.uHeights, set.lift || 0, rise, patch.targets.depth ? look.contours : 0);
    bindTexture(gl, 0, relit ? normals : plain, places.uNormals);
    bindTexture(gl, 1, other || plain, places.uOther);
    bindTexture(gl, 2, patch.targets.albedo?.texture || plain, places.uAlbedo);
    bindTexture(gl, 3, patch.targets.depth?.texture || plain, places.uDepth);
    bindTexture(gl, 4, cover, places.uCover);
    bindTexture(gl, 5, scalar || plain, places.uScalar);
    bindTexture(gl, 6, this.scales[scale ? scale.name : "ember"], places.uScale);
    gl.drawArrays(gl.TRIANGLES, 0, 3);
    gl.disable(gl.SCISSOR_TEST);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
  }

  offscreen(gl, width, height) {
    if (this.finished?.width !== width || this.finished?.height !== height) {
      dropTarget(gl, this.finished);
      this.finished = makeTarget(gl, width, height, gl.RGBA8);
    }
    return this.finished;
  }

  crispen(gl, source, width, height) {
    gl.viewport(0, 0, width, height);
    fillTarget(gl, null, this.crispener, (places) => {
      bindTexture(gl, 0, source.texture, places.uImage);
      gl.uniform1f(places.uAmount, this.look.crispen);
      gl.uniform1f(places.uSigma, 1.5 * this.stage.ratio);
    });
  }

  // The whole object in a corner, while only a part of it fills the canvas.
  paintOverview(gl, width) {
    const frame = this.figure.querySelector(".minimap");
    frame.hidden = this.view.fitted;
    if (this.view.fitted) return;
    const { ratio } = this.stage;
    const size = [this.data.width, this.data.height];
    const scale = (OVERVIEW * ratio) / Math.max(...size);
    const [w, h] = size.map((side) => Math.max(1, Math.round(side * scale)));
    const [x, y] = [
      width - w - Math.round(14 * ratio),
      Math.round((this.shown.length > 1 ? 52 : 14) * ratio),
    ];
    this.paint(
      gl,
      "overview",
      null,
      [x, y, w, h],
      this.shown.length > 1 ? x + Math.round(this.split * w) : x + w,
      { scale, left: x, top: y },
    );
    this.overview = { x: x / ratio, y: y / ratio, scale: scale / ratio };
    placeBox(frame, x / ratio, y / ratio, w / ratio, h / ratio);
    const [left, top] = this.view.toPicture([0, 0]);
    const [right, bottom] = this.view.toPicture(this.view.canvas);
    const inside = (value, most) => Math.max(0, Math.min(most, value)) * (scale / ratio);
    const corner = [inside(left, size[0]), inside(top, size[1])];
    placeBox(
      frame.firstElementChild,
      corner[0],
      corner[1],
      inside(right, size[0]) - corner[0],
      inside(bottom, size[1]) - corner[1],
    );
  }

  // The inset sits in a lower corner, away from the pointer.
  loupeBox(width, height) {
    if (!this.loupe) return null;
    const side = Math.round(
      Math.min(LOUPE_SHARE * Math.min(width, height), 260 * this.stage.ratio),
    );
    const gap = Math.round(14 * this.stage.ratio);
    const [px, py] = this.pointer || [width / 2, height / 2];
    const near = px > width - side - 3 * gap && py > height - side - 3 * gap;
    return [near ? gap : width - side - gap, height - side - gap, side, side];
  }

  paintLoupe(gl, box, divider) {
    const [x, y, side] = box;
    const { width, height, ratio } = this.stage;
    const [px, py] = this.pointer || [width / 2, height / 2];
    const [cx, cy] = [x + side / 2, y + side / 2];
    const { scale, left, top } = this.placing();
    const placing = {
      scale: scale * MAGNIFY,
      left: cx - (px - left) * MAGNIFY,
      top: cy - (py - top) * MAGNIFY,
    };
    this.paint(
      gl,
      "loupe",
      null,
      [x, y, side, side],
      Math.round(cx + (divider - px) * MAGNIFY),
      placing,
    );
    placeBox(
      this.figure.querySelector(".loupe-frame"),
      x / ratio,
      y / ratio,
      side / ratio,
      side / ratio,
    );
  }
}

function placeBox(element, left, top, width, height) {
  element.style.left = `${left}px`;
  element.style.top = `${top}px`;
  element.style.width = `${width}px`;
  element.style.height = `${height}px`;
}

// 256 colors, six hexadecimal digits each.
function scaleTexture(gl, codes) {
  const bytes = new Uint8Array(256 * 4);
  for (let i = 0; i < 256; i += 1) {
    const code = parseInt(codes.slice(6 * i, 6 * i + 6), 16);
    bytes.set([code >> 16, (code >> 8) & 255, code & 255, 255], 4 * i);
  }
  const texture = gl.createTexture();
  gl.bindTexture(gl.TEXTURE_2D, texture);
  gl.texImage2D(gl.TEXTURE_2D, 0, gl.SRGB8_ALPHA8, 256, 1, 0, gl.RGBA, gl.UNSIGNED_BYTE, bytes);
  for (const name of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER])
    gl.texParameteri(gl.TEXTURE_2D, name, gl.NEAREST);
  return texture;
}
