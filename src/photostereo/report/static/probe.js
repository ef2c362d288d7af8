// The numbers behind the picture: normal and height at a place, and along a line. Places are in pixels of level 0 of
// the page's picture, whole numbers at corners of pixels.

class Probe {
  constructor(relighter) {
    this.relighter = relighter;
    this.pyramid = relighter.pyramid;
  }

  get store() {
    return this.relighter.store;
  }

  // At the pixel under a place, from the finest level that is here.
  at(set, [x, y]) {
    if (x < 0 || y < 0 || x >= this.pyramid.width || y >= this.pyramid.height) return null;
    const read = (channel, unpack) => {
      if (!this.pyramid.has(set, channel)) return null;
      for (let level = this.pyramid.finest(set, channel); level < this.pyramid.levels; level += 1) {
        const bytes = this.store.texel(
          set,
          channel,
          level,
          Math.floor(x / 2 ** level),
          Math.floor(y / 2 ** level),
        );
        if (bytes) return unpack(bytes);
      }
      return null;
    };
    return {
      normal: read("normals", unpackNormal),
      height: read("depth", (bytes) => this.height(set, bytes)),
    };
  }

  // Above the lowest point, of results that are compared above the lowest of all, in pixels of level 0.
  height(set, [high, low]) {
    const code = high * 256 + low;
    const { low: bottom, high: top, lift = 0 } = this.relighter.data.sets[set];
    return code ? lift + ((code - 1) * (top - bottom)) / 65534 : null;
  }

  // Heights along a line at steps of one pixel of the finest level: { along, heights, level }.
  async profile(set, from, to) {
    const level = this.pyramid.finest(set, "depth");
    const cell = 2 ** level;
    const length = Math.hypot(to[0] - from[0], to[1] - from[1]);
    const count = Math.min(4096, Math.max(2, Math.round(length / cell) + 1));
    const places = Array.from({ length: count }, (_, i) =>
      [0, 1].map((k) => from[k] + ((to[k] - from[k]) * i) / (count - 1)),
    );
    await Promise.all(this.tilesUnder(set, level, places).map((tile) => tile?.loaded));
    return {
      level,
      along: places.map((_, i) => (length * i) / (count - 1)),
      heights: places.map(([x, y]) => this.between(set, level, x / cell - 0.5, y / cell - 0.5)),
    };
  }

  tilesUnder(set, level, places) {
    const side = this.pyramid.tile * 2 ** level;
    const tiles = new Map();
    for (const [x, y] of places) {
      for (const [dx, dy] of [
        [-1, -1],
        [1, -1],
        [-1, 1],
        [1, 1],
      ]) {
        const [col, row] = [
          Math.floor((x + dx * 2 ** level) / side),
          Math.floor((y + dy * 2 ** level) / side),
        ];
        tiles.set(`${col} ${row}`, this.store.tile(set, "depth", level, col, row));
      }
    }
    return [...tiles.values()];
  }

  // Bilinear between the known heights; null where the nearest pixel is unknown.
  between(set, level, x, y) {
    const [wide, high] = this.pyramid.size(level);
    const [i, j] = [Math.floor(x), Math.floor(y)];
    let [sum, total] = [0, 0];
    for (const [a, b] of [
      [0, 0],
      [1, 0],
      [0, 1],
      [1, 1],
    ]) {
      const weight = (a ? x - i : 1 - x + i) * (b ? y - j : 1 - y + j);
      if (!weight || i + a < 0 || j + b < 0 || i + a >= wide || j + b >= high) continue;
      const bytes = this.store.texel(set, "depth", level, i + a, j + b);
      const height = bytes && this.height(set, bytes);
      if (height === null) continue;
      sum += weight * height;
      total += weight;
    }
    return total > 0.25 ? sum / total : null;
  }
}
