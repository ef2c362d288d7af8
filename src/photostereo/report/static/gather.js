// The part of a result that is looked at, gathered from tiles into textures of its own: every shader after this
// finds each pixel's neighbors beside it, across the borders of tiles.

const COPY_FRAGMENT = `${GLSL_HEAD}
uniform sampler2D uTile;
uniform ivec2 uOrigin;   // of the patch, in pixels of its level
uniform ivec2 uCorner;   // of the tile, in pixels of its own level
uniform int uCoarser;    // how many levels the tile is coarser than the patch
out vec4 color;
void main() {
  ivec2 at = ((ivec2(gl_FragCoord.xy) + uOrigin) >> uCoarser) - uCorner;
  color = texelFetch(uTile, min(at, textureSize(uTile, 0) - 1), 0);
}
`;

function makeTarget(gl, width, height, format) {
  const texture = gl.createTexture();
  gl.bindTexture(gl.TEXTURE_2D, texture);
  gl.texStorage2D(gl.TEXTURE_2D, 1, format, width, height);
  for (const name of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER])
    gl.texParameteri(gl.TEXTURE_2D, name, gl.NEAREST);
  for (const name of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T])
    gl.texParameteri(gl.TEXTURE_2D, name, gl.CLAMP_TO_EDGE);
  const frame = gl.createFramebuffer();
  gl.bindFramebuffer(gl.FRAMEBUFFER, frame);
  gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, texture, 0);
  gl.bindFramebuffer(gl.FRAMEBUFFER, null);
  return { texture, frame, width, height };
}

function dropTarget(gl, target) {
  if (!target) return;
  gl.deleteFramebuffer(target.frame);
  gl.deleteTexture(target.texture);
}

// Run a program over all of a target, or over the canvas (null).
function fillTarget(gl, target, { program, places }, uniforms) {
  gl.bindFramebuffer(gl.FRAMEBUFFER, target ? target.frame : null);
  if (target) gl.viewport(0, 0, target.width, target.height);
  gl.useProgram(program);
  uniforms(places);
  gl.drawArrays(gl.TRIANGLES, 0, 3);
  gl.bindFramebuffer(gl.FRAMEBUFFER, null);
}

class Patch {
  constructor(gl, store, copier) {
    this.gl = gl;
    this.store = store;
    this.copier = copier;
    this.targets = {};
    this.derived = {};
    this.key = "";
    this.version = 0;
    this.complete = false;
  }

  // set: which result; level; x, y, width, height: in pixels of that level; channels: what is needed
  gather(set, level, [x, y, width, height], channels) {
    const { gl } = this;
    const key = [set, level, x, y, width, height, channels].join(" ");
    if (key === this.key && this.complete) return false;
    if (width !== this.width || height !== this.height) this.drop();
    this.key = key;
    this.set = set;
    this.level = level;
    this.x = x;
    this.y = y;
    this.width = width;
    this.height = height;
    this.version = this.version + 1;
    this.complete = true;
    gl.enable(gl.SCISSOR_TEST);
    for (const channel of channels) {
      if (!this.store.pyramid.has(set, channel)) continue;
      const format = channel === "albedo" ? gl.SRGB8_ALPHA8 : gl.RGBA8;
      this.targets[channel] ||= makeTarget(gl, width, height, format);
      this.fill(set, channel);
    }
    gl.disable(gl.SCISSOR_TEST);
    return true;
  }

  // From coarse to fine: what has not arrived yet shows as its coarser stand-in.
  fill(set, channel) {
    const { gl, store } = this;
    const target = this.targets[channel];
    const finest = store.pyramid.finest(set, channel);
    gl.bindFramebuffer(gl.FRAMEBUFFER, target.frame);
    gl.viewport(0, 0, this.width, this.height);
    gl.scissor(0, 0, this.width, this.height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    gl.useProgram(this.copier.program);
    gl.uniform2i(this.copier.places.uOrigin, this.x, this.y);
    const wanted = Math.max(this.level, finest);
    const tiles = this.tilesAt(set, channel, wanted);
    const stillComing = tiles.some(({ tile }) => tile && tile.state === "coming");
    if (stillComing) this.complete = false;
    if (stillComing || tiles.some(({ tile }) => !tile || tile.state === "missing")) {
      for (let level = store.pyramid.levels - 1; level > wanted; level -= 1)
        this.copy(this.tilesAt(set, channel, level), level);
    }
    this.copy(tiles, wanted);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
  }

  tilesAt(set, channel, level) {
    const side = this.store.pyramid.tile;
    const span = side * 2 ** (level - this.level);
    const found = [];
    for (let row = Math.floor(this.y / span); row * span < this.y + this.height; row += 1) {
      for (let col = Math.floor(this.x / span); col * span < this.x + this.width; col += 1) {
        found.push({ tile: this.store.tile(set, channel, level, col, row), col, row, span });
      }
    }
    return found;
  }

  copy(tiles, level) {
    const { gl } = this;
    const { places } = this.copier;
    const side = this.store.pyramid.tile;
    gl.uniform1i(places.uCoarser, level - this.level);
    for (const { tile, col, row, span } of tiles) {
      if (tile?.state !== "ready") continue;
      gl.scissor(col * span - this.x, row * span - this.y, span, span);
      gl.uniform2i(places.uCorner, col * side, row * side);
      bindTexture(gl, 0, tile.texture, places.uTile);
      gl.drawArrays(gl.TRIANGLES, 0, 3);
    }
  }

  drop() {
    for (const target of [...Object.values(this.targets), ...Object.values(this.derived)])
      dropTarget(this.gl, target);
    this.targets = {};
    this.derived = {};
    this.key = "";
  }
}
