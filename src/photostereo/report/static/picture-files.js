// Pictures with more than 8 bits, written by the page: PNG (16 bits) and OpenEXR (32-bit floats).

const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, n) => {
  let c = n;
  for (let k = 0; k < 8; k += 1) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
  return c >>> 0;
});

function crc32(bytes) {
  let c = 0xffffffff;
  for (const byte of bytes) c = CRC_TABLE[(c ^ byte) & 255] ^ (c >>> 8);
  return (c ^ 0xffffffff) >>> 0;
}

async function deflated(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// samples: Uint8Array or Uint16Array by rows; channels: 1 or 3. Pixels are square, `perMetre` of them to the metre.
async function pngFile(width, height, channels, samples, { perMetre = 0, comment = "" } = {}) {
  const wide = samples.BYTES_PER_ELEMENT;
  const line = width * channels * wide;
  const raw = new Uint8Array(height * (line + 1)); // each row begins with its filter: none
  for (let row = 0; row < height; row += 1) {
    for (let i = 0; i < width * channels; i += 1) {
      const value = samples[row * width * channels + i];
      const at = row * (line + 1) + 1 + i * wide;
      if (wide === 2) raw[at] = value >> 8;
      raw[at + wide - 1] = value & 255;
    }
  }
  const numbers = (...values) => {
    const bytes = new DataView(new ArrayBuffer(4 * values.length));
    for (const [i, value] of values.entries()) bytes.setUint32(4 * i, value);
    return new Uint8Array(bytes.buffer);
  };
  const joined = (...parts) => Uint8Array.from(parts.flatMap((part) => [...part]));
  const words = (text) => new TextEncoder().encode(text);
  const chunk = (kind, body) => {
    const named = new Uint8Array(4 + body.length);
    named.set(words(kind));
    named.set(body, 4);
    return [numbers(body.length), named, numbers(crc32(named))];
  };
  return new Blob(
    [
      Uint8Array.of(137, 80, 78, 71, 13, 10, 26, 10),
      ...chunk("IHDR", joined(numbers(width, height), [8 * wide, channels === 3 ? 2 : 0, 0, 0, 0])),
      ...(perMetre ? chunk("pHYs", joined(numbers(perMetre, perMetre), [1])) : []),
      ...(comment ? chunk("tEXt", words(`Description\0${comment}`)) : []),
      ...chunk("IDAT", await deflated(raw)),
      ...chunk("IEND", new Uint8Array(0)),
    ],
    { type: "image/png" },
  );
}

// planes: Float32Array by name; scan lines without compression.
function exrFile(width, height, planes, { comment = "", perMetre = 0 } = {}) {
  const names = Object.keys(planes).sort();
  const header = [];
  const text = (words) => header.push(...new TextEncoder().encode(words), 0);
  const number = (value) =>
    header.push(value & 255, (value >> 8) & 255, (value >> 16) & 255, (value >>> 24) & 255);
  const float = (value) => header.push(...new Uint8Array(Float32Array.of(value).buffer));
  const attribute = (name, kind, size, write) => {
    text(name);
    text(kind);
    number(size);
    write();
  };
  number(20000630);
  number(2);
  attribute(
    "channels",
    "chlist",
    names.reduce((sum, name) => sum + name.length + 17, 1),
    () => {
      for (const name of names) {
        text(name);
        [2, 0, 1, 1].forEach(number); // 32-bit float; linear; every pixel across and down
      }
      header.push(0);
    },
  );
  const said = [...new TextEncoder().encode(comment)];
  if (said.length) attribute("comments", "string", said.length, () => header.push(...said));
  attribute("compression", "compression", 1, () => header.push(0));
  for (const name of ["dataWindow", "displayWindow"])
    attribute(name, "box2i", 16, () => [0, 0, width - 1, height - 1].forEach(number));
  attribute("lineOrder", "lineOrder", 1, () => header.push(0));
  attribute("pixelAspectRatio", "float", 4, () => float(1));
  attribute("screenWindowCenter", "v2f", 8, () => [0, 0].forEach(float));
  attribute("screenWindowWidth", "float", 4, () => float(1));
  if (perMetre) attribute("xDensity", "float", 4, () => float(perMetre * 0.0254)); // pixels per inch
  header.push(0);
  const line = names.length * width * 4;
  const body = new DataView(new ArrayBuffer(height * (8 + 8 + line)));
  const start = header.length + 8 * height;
  for (let row = 0; row < height; row += 1) {
    body.setBigUint64(8 * row, BigInt(start + row * (8 + line)), true);
    const at = 8 * height + row * (8 + line);
    body.setInt32(at, row, true);
    body.setInt32(at + 4, line, true);
    names.forEach((name, n) => {
      for (let i = 0; i < width; i += 1)
        body.setFloat32(at + 8 + 4 * (n * width + i), planes[name][row * width + i], true);
    });
  }
  return new Blob([Uint8Array.from(header), body.buffer], { type: "image/x-exr" });
}
