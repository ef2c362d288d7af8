// A grid of heights to triangles. Places are in pixels around the middle of the picture; texture rows run down.

function buildHeightfield(grid) {
  const codes = codesFromBase64(grid.codes);
  const cuts = grid.cuts ? bytesFromBase64(grid.cuts) : null;
  const { cols, rows, step } = grid;
  const rise = (grid.high - grid.low) / 65534;
  const middle = (grid.high + grid.low) / 2;
  const places = new Float32Array(cols * rows * 7);
  let reach = 0;
  for (let j = 0; j < rows; j += 1) {
    for (let i = 0; i < cols; i += 1) {
      const at = j * cols + i;
      const [px, py] = [(i + 0.5) * step, (j + 0.5) * step];
      const x = px - grid.width / 2;
      const y = grid.height / 2 - py;
      const z = grid.low + (codes[at] - 1) * rise - middle;
      places.set([x, y, codes[at] ? z : 0, px / grid.width, py / grid.height, i, j], at * 7);
      if (codes[at]) reach = Math.max(reach, x * x + y * y + z * z);
    }
  }
  const triangles = new Uint32Array((cols - 1) * (rows - 1) * 6);
  let used = 0;
  for (let j = 0; j + 1 < rows; j += 1) {
    for (let i = 0; i + 1 < cols; i += 1) {
      const a = j * cols + i;
      const [b, c, d] = [a + 1, a + cols, a + cols + 1];
      if (!codes[a] || !codes[b] || !codes[c] || !codes[d] || cuts?.[a]) continue;
      // Counter-clockwise as the camera of the photographs saw them.
      triangles.set([a, c, b, b, c, d], used);
      used += 6;
    }
  }
  return { places, triangles: triangles.subarray(0, used), radius: Math.sqrt(reach) || 1 };
}
