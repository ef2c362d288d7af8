// A result at every scale. Level 0 has the pixels of the arrays; a pixel of level k stands for 2^k × 2^k of them.
// The page holds the coarser levels; where `photostereo view` serves it, finer tiles come from the result's folder.

class Pyramid {
  // served: where finer tiles are found, empty in a page that was opened as a file
  constructor({ width, height, tile, levels, held, albedo, sets }, served) {
    this.width = width;
    this.height = height;
    this.tile = tile;
    this.levels = levels;
    this.held = held;
    this.sets = sets;
    this.served = served;
    this.common = { channels: { albedo }, folder: "" };
  }

  size(level) {
    return [Math.ceil(this.width / 2 ** level), Math.ceil(this.height / 2 ** level)];
  }

  grid(level) {
    return this.size(level).map((side) => Math.ceil(side / this.tile));
  }

  owner(set, channel) {
    return channel === "albedo" ? this.common : this.sets[set];
  }

  has(set, channel) {
    return Boolean(this.owner(set, channel)?.channels[channel]);
  }

  // The address of a tile; empty: it shows nothing; null: it cannot be had.
  address(set, channel, level, col, row) {
    const owner = this.owner(set, channel);
    const held = owner.channels[channel][level];
    if (held) return held[row * this.grid(level)[0] + col];
    if (!this.served || owner.folder === null) return null;
    return `${this.served}/${channel}/${encodeURIComponent(owner.folder || "-")}/${level}/${row}/${col}.png`;
  }

  finest(set, channel) {
    for (let level = 0; level < this.levels; level += 1) {
      if (this.address(set, channel, level, 0, 0) !== null) return level;
    }
    return this.levels - 1;
  }
}

// Tiles as textures of one canvas, kept while there is room, and their bytes for those who measure.
const MOST_TILES = 160;

class TileStore {
  constructor(gl, pyramid, arrived) {
    this.gl = gl;
    this.pyramid = pyramid;
    this.arrived = arrived;
    this.tiles = new Map();
    this.clock = 0;
  }

  // The tile, loaded or on its way; null where it cannot be had.
  tile(set, channel, level, col, row) {
    const [cols, rows] = this.pyramid.grid(level);
    if (col < 0 || row < 0 || col >= cols || row >= rows) return null;
    const address = this.pyramid.address(set, channel, level, col, row);
    if (address === null) return null;
    const key = [channel === "albedo" ? "" : set, channel, level, col, row].join(" ");
    let tile = this.tiles.get(key);
    if (!tile) {
      tile = {
        key,
        channel,
        state: address ? "coming" : "empty",
        texture: null,
        width: 0,
        height: 0,
      };
      tile.loaded = address ? this.load(tile, address) : Promise.resolve(tile);
      this.tiles.set(key, tile);
      this.forget();
    }
    tile.used = this.clock += 1;
    return tile;
  }

  async load(tile, address) {
    try {
      const picture = await loadPicture(address);
      if (this.gl.isContextLost()) return tile;
      tile.texture = makeTexture(this.gl, picture, {
        color: tile.channel === "albedo",
        smooth: false,
      });
      [tile.width, tile.height] = [picture.naturalWidth, picture.naturalHeight];
      tile.state = "ready";
    } catch {
      tile.state = "missing"; // a coarser one stands in
    }
    this.arrived();
    return tile;
  }

  forget() {
    if (this.tiles.size <= MOST_TILES) return;
    const oldest = [...this.tiles.values()]
      .filter((tile) => tile.state !== "coming")
      .sort((a, b) => a.used - b.used);
    for (const tile of oldest.slice(0, this.tiles.size - MOST_TILES)) {
      if (tile.texture) this.gl.deleteTexture(tile.texture);
      this.tiles.delete(tile.key);
    }
  }

  // The numbers in a tile, RGBA, read back from the texture: no screen's colors come between.
  bytes(tile) {
    if (tile.state !== "ready" || !tile.texture) return null;
    if (!tile.bytes) {
      const { gl } = this;
      const frame = gl.createFramebuffer();
      gl.bindFramebuffer(gl.FRAMEBUFFER, frame);
      gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, tile.texture, 0);
      tile.bytes = new Uint8Array(tile.width * tile.height * 4);
      gl.readPixels(0, 0, tile.width, tile.height, gl.RGBA, gl.UNSIGNED_BYTE, tile.bytes);
      gl.bindFramebuffer(gl.FRAMEBUFFER, null);
      gl.deleteFramebuffer(frame);
    }
    return tile.bytes;
  }

  // Four bytes of one pixel of a level, or null where they are not here (yet).
  texel(set, channel, level, x, y) {
    const side = this.pyramid.tile;
    const [col, row] = [Math.floor(x / side), Math.floor(y / side)];
    const tile = this.tile(set, channel, level, col, row);
    const bytes = tile && this.bytes(tile);
    if (!bytes) return tile?.state === "empty" ? [0, 0, 0, 255] : null;
    const at = 4 * ((y - row * side) * tile.width + (x - col * side));
    return [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
  }
}

// What the shader does, for one normal; null where it is unknown.
/** @param {ArrayLike<number> & Iterable<number>} pixel */
function unpackNormal([r, g, b]) {
  if (!r && !g && !b) return null;
  let [u, v] = [(((r << 4) | (g >> 4)) / 4095) * 2 - 1, ((((g & 15) << 8) | b) / 4095) * 2 - 1];
  const z = 1 - Math.abs(u) - Math.abs(v);
  const fold = Math.max(-z, 0);
  u += u >= 0 ? -fold : fold;
  v += v >= 0 ? -fold : fold;
  const length = Math.hypot(u, v, z);
  return [u / length, v / length, z / length];
}
