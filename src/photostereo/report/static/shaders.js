// GLSL. Axes as everywhere: x right, y up, z to the camera. Texture rows run down.

const GLSL_HEAD = `#version 300 es
precision highp float;
precision highp int;
precision highp sampler2D;
`;

// Normals come as twice 12 bits of an octahedral map in three bytes; black means unknown.
const GLSL_OCTAHEDRON = `
vec4 unpacked(vec3 bytes) {
  ivec3 t = ivec3(bytes * 255.0 + 0.5);
  if (t == ivec3(0)) return vec4(0.0);
  vec2 p = vec2(float((t.r << 4) | (t.g >> 4)), float(((t.g & 15) << 8) | t.b)) / 4095.0 * 2.0 - 1.0;
  float z = 1.0 - abs(p.x) - abs(p.y);
  float fold = max(-z, 0.0);
  p += vec2(p.x >= 0.0 ? -fold : fold, p.y >= 0.0 ? -fold : fold);
  return vec4(normalize(vec3(p, z)), 1.0);
}

// The normal at a pixel; zero, and w = 0, where it is unknown.
vec4 knownNormal(sampler2D normals, ivec2 at) {
  ivec2 size = textureSize(normals, 0);
  if (any(lessThan(at, ivec2(0))) || any(greaterThanEqual(at, size))) return vec4(0.0);
  return unpacked(texelFetch(normals, at, 0).rgb);
}
`;

const GLSL_COLOR = `
vec3 encoded(vec3 linear) {
  vec3 c = clamp(linear, 0.0, 1.0);
  return mix(1.055 * pow(c, vec3(1.0 / 2.4)) - 0.055, 12.92 * c, lessThanEqual(c, vec3(0.0031308)));
}

// Bright values roll off instead of clipping.
vec3 softened(vec3 c) {
  vec3 over = max(c - 0.8, 0.0);
  return min(c, 0.8) + 0.2 * (1.0 - exp(-over / 0.2));
}

// Blinn and Phong, normalized so that gloss narrows a highlight without dimming it.
float highlight(vec3 n, vec3 l, vec3 v, float gloss) {
  float facing = max(dot(n, normalize(l + v)), 0.0);
  return (gloss + 8.0) / 25.13274 * pow(facing, gloss) * max(dot(n, l), 0.0);
}
`;

const GLSL_BACKDROP = `
uniform vec2 uCanvas;
vec3 backdrop() {
  vec2 p = gl_FragCoord.xy / uCanvas - vec2(0.5, 0.55);
  float grain = fract(sin(dot(gl_FragCoord.xy, vec2(12.9898, 78.233))) * 43758.5453) - 0.5;
  vec3 gray = mix(vec3(0.030, 0.032, 0.036), vec3(0.0085, 0.009, 0.0105), smoothstep(0.0, 0.75, length(p)));
  return gray * (1.0 + 0.06 * grain);
}
`;

const FULL_VERTEX = `${GLSL_HEAD}
void main() {
  vec2 corner = vec2(float((gl_VertexID << 1) & 2), float(gl_VertexID & 2));
  gl_Position = vec4(corner * 2.0 - 1.0, 0.0, 1.0);
}
`;

const BACKDROP_FRAGMENT = `${GLSL_HEAD}${GLSL_COLOR}${GLSL_BACKDROP}
out vec4 color;
void main() { color = vec4(encoded(backdrop()), 1.0); }
`;
