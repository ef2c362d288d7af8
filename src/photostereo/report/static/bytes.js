// Packed data to typed arrays.

function bytesFromBase64(text) {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i += 1) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

// The codes are little-endian whatever the machine is.
function codesFromBase64(text) {
  const bytes = bytesFromBase64(text);
  const codes = new Uint16Array(bytes.length / 2);
  for (let i = 0; i < codes.length; i += 1) codes[i] = bytes[2 * i] | (bytes[2 * i + 1] << 8);
  return codes;
}
