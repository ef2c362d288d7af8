// GLSL. Axes as everywhere: x right, y up, z to the camera. Texture rows run down.

const GLSL_HEAD = `#version 300 es
precision highp float;
precision highp int;
precision highp sampler2D;
`;

// Normals come as twice 12 bits of an octahedral map in three bytes; black means unknown.
const GLSL_NORMALS = `
uniform sampler2D uNormals;
uniform sampler2D uCover;

// How much of this screen pixel the object covers: its outline is where the blurred mask crosses one half.
float coverAt(vec2 uv) {
  float c = texture(uCover, uv).r;
  float edge = clamp((c - 0.5) / max(fwidth(c), 0.02) + 0.5, 0.0, 1.0);
  vec2 inside = step(vec2(0.0), uv) * step(uv, vec2(1.0));
  return edge * inside.x * inside.y;
}

vec4 knownNormal(ivec2 at, ivec2 size) {
  if (any(lessThan(at, ivec2(0))) || any(greaterThanEqual(at, size))) return vec4(0.0);
  ivec3 t = ivec3(texelFetch(uNormals, at, 0).rgb * 255.0 + 0.5);
  if (t == ivec3(0)) return vec4(0.0);
  vec2 p = vec2(float((t.r << 4) | (t.g >> 4)), float(((t.g & 15) << 8) | t.b)) / 4095.0 * 2.0 - 1.0;
  float z = 1.0 - abs(p.x) - abs(p.y);
  float fold = max(-z, 0.0);
  p += vec2(p.x >= 0.0 ? -fold : fold, p.y >= 0.0 ? -fold : fold);
  return vec4(normalize(vec3(p, z)), 1.0);
}

// Bilinear between the known neighbours; w is the share of known ones.
vec4 normalAt(vec2 uv) {
  ivec2 size = textureSize(uNormals, 0);
  vec2 place = uv * vec2(size) - 0.5;
  ivec2 corner = ivec2(floor(place));
  vec2 f = place - floor(place);
  vec4 sum = knownNormal(corner, size) * (1.0 - f.x) * (1.0 - f.y)
    + knownNormal(corner + ivec2(1, 0), size) * f.x * (1.0 - f.y)
    + knownNormal(corner + ivec2(0, 1), size) * (1.0 - f.x) * f.y
    + knownNormal(corner + ivec2(1, 1), size) * f.x * f.y;
  return sum.w > 0.0 ? vec4(normalize(sum.xyz), sum.w) : vec4(0.0);
}
`;

const GLSL_COLOUR = `
vec3 encoded(vec3 linear) {
  vec3 c = clamp(linear, 0.0, 1.0);
  return mix(1.055 * pow(c, vec3(1.0 / 2.4)) - 0.055, 12.92 * c, lessThanEqual(c, vec3(0.0031308)));
}

// Bright values roll off instead of clipping.
vec3 softened(vec3 c) {
  vec3 over = max(c - 0.8, 0.0);
  return min(c, 0.8) + 0.2 * (1.0 - exp(-over / 0.2));
}

// Blinn and Phong, normalised so that gloss narrows a highlight without dimming it.
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
  vec3 grey = mix(vec3(0.030, 0.032, 0.036), vec3(0.0085, 0.009, 0.0105), smoothstep(0.0, 0.75, length(p)));
  return grey * (1.0 + 0.06 * grain);
}
`;

const FULL_VERTEX = `${GLSL_HEAD}
void main() {
  vec2 corner = vec2(float((gl_VertexID << 1) & 2), float(gl_VertexID & 2));
  gl_Position = vec4(corner * 2.0 - 1.0, 0.0, 1.0);
}
`;

const BACKDROP_FRAGMENT = `${GLSL_HEAD}${GLSL_COLOUR}${GLSL_BACKDROP}
out vec4 colour;
void main() { colour = vec4(encoded(backdrop()), 1.0); }
`;

const RELIGHT_FRAGMENT = `${GLSL_HEAD}${GLSL_NORMALS}${GLSL_COLOUR}${GLSL_BACKDROP}
uniform sampler2D uAlbedo;
uniform sampler2D uPicture;
uniform vec3 uLight;
uniform vec4 uView;      // uv = (pixel - uView.xy) * uView.zw, pixels counted from the upper left
uniform vec4 uShine;     // diffuse, specular, gloss, ambient
uniform int uMode;       // 0 albedo, 1 clay, 2 normals as colours, 3 a ready picture
out vec4 colour;

void main() {
  vec2 uv = (vec2(gl_FragCoord.x, uCanvas.y - gl_FragCoord.y) - uView.xy) * uView.zw;
  float cover = coverAt(uv);
  vec4 n = normalAt(uv);
  if (n.w <= 0.0) cover = 0.0;
  if (cover <= 0.0) { colour = vec4(encoded(backdrop()), 1.0); return; }
  vec3 lit;
  if (uMode == 2) {
    lit = pow(n.xyz * 0.5 + 0.5, vec3(2.2));
  } else if (uMode == 3) {
    vec4 ready = texture(uPicture, uv);
    lit = ready.rgb;
    cover *= smoothstep(0.25, 0.75, ready.a);
  } else {
    vec3 paint = uMode == 0 ? texture(uAlbedo, uv).rgb : vec3(0.52, 0.50, 0.47);
    float shade = max(dot(n.xyz, uLight), 0.0);
    lit = paint * (uShine.w + uShine.x * shade)
      + uShine.y * highlight(n.xyz, uLight, vec3(0.0, 0.0, 1.0), uShine.z);
    lit = softened(lit);
  }
  colour = vec4(encoded(mix(backdrop(), lit, cover)), 1.0);
}
`;

const SURFACE_VERTEX = `${GLSL_HEAD}
in vec3 aPosition;
in vec2 aUv;
in vec2 aCell;
uniform mat4 uProject;
uniform float uRelief;
out vec2 vUv;
out vec2 vCell;
out vec3 vPlace;

void main() {
  vec3 place = vec3(aPosition.xy, aPosition.z * uRelief);
  vUv = aUv;
  vCell = aCell;
  vPlace = place;
  gl_Position = uProject * vec4(place, 1.0);
}
`;

const SURFACE_FRAGMENT = `${GLSL_HEAD}${GLSL_NORMALS}${GLSL_COLOUR}
uniform sampler2D uAlbedo;
uniform vec3 uEye;
uniform vec3 uKey;
uniform vec3 uFill;
uniform float uRelief;
uniform bool uClay;
uniform bool uWire;
in vec2 vUv;
in vec2 vCell;
in vec3 vPlace;
out vec4 colour;

// Lines of the grid, thinned out by powers of two so that they stay about eight pixels apart, and its diagonals.
float wire(vec2 cell) {
  vec3 lines = vec3(cell, cell.x + cell.y);
  vec3 wide = fwidth(lines);
  float level = ceil(log2(max(8.0 * max(wide.x, wide.y), 1.0)));
  float space = exp2(level);
  vec3 off = abs(fract(lines / space + 0.5) - 0.5) * space / max(wide, vec3(1e-6));
  vec3 ink = 1.0 - smoothstep(0.4, 1.2, off);
  return max(max(ink.x, ink.y), 0.45 * ink.z);
}

void main() {
  float cover = coverAt(vUv);
  vec4 found = normalAt(vUv);
  if (found.w <= 0.0 || cover < 0.03) discard;
  // Stretching the heights by s turns a normal (x, y, z) into (s x, s y, z).
  vec3 n = normalize(vec3(found.xy * uRelief, found.z));
  vec3 v = normalize(uEye - vPlace);
  bool front = gl_FrontFacing;
  if (!front) n = -n;
  vec3 paint = uClay ? vec3(0.52, 0.50, 0.47) : texture(uAlbedo, vUv).rgb;
  if (!front) paint = mix(paint, vec3(0.10, 0.11, 0.13), 0.75);
  float key = max(dot(n, uKey), 0.0);
  float fill = 0.5 + 0.5 * dot(n, uFill);
  vec3 lit = paint * (0.95 * key + 0.16 * fill * vec3(0.85, 0.93, 1.1) + 0.04);
  if (front) lit += 0.06 * highlight(n, uKey, v, 28.0);
  if (uWire) lit = mix(lit, uClay ? vec3(0.01, 0.02, 0.03) : vec3(0.9, 0.75, 0.4), 0.7 * wire(vCell));
  colour = vec4(encoded(softened(lit)), cover);
}
`;
