// GLSL of the three-dimensional view.

const SURFACE_VERTEX = `${GLSL_HEAD}
in vec3 aPosition;
in vec2 aUv;
in vec2 aCell;
uniform mat4 uProject;
uniform float uRelief;
uniform vec2 uShare;     // of the textures that the picture fills
out vec2 vUv;
out vec2 vCell;
out vec3 vPlace;

void main() {
  vec3 place = vec3(aPosition.xy, aPosition.z * uRelief);
  vUv = aUv * uShare;
  vCell = aCell;
  vPlace = place;
  gl_Position = uProject * vec4(place, 1.0);
}
`;

const SURFACE_FRAGMENT = `${GLSL_HEAD}${GLSL_OCTAHEDRON}${GLSL_COLOR}
uniform sampler2D uNormals;
uniform sampler2D uCover;
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
out vec4 color;

// Bilinear between the known neighbors; w is the share of known ones.
vec4 normalAt(vec2 uv) {
  vec2 place = uv * vec2(textureSize(uNormals, 0)) - 0.5;
  ivec2 corner = ivec2(floor(place));
  vec2 f = place - floor(place);
  vec4 sum = knownNormal(uNormals, corner) * (1.0 - f.x) * (1.0 - f.y)
    + knownNormal(uNormals, corner + ivec2(1, 0)) * f.x * (1.0 - f.y)
    + knownNormal(uNormals, corner + ivec2(0, 1)) * (1.0 - f.x) * f.y
    + knownNormal(uNormals, corner + ivec2(1, 1)) * f.x * f.y;
  return sum.w > 0.0 ? vec4(normalize(sum.xyz), sum.w) : vec4(0.0);
}

// How much of this screen pixel the object covers: its outline is where the blurred mask crosses one half.
float coverAt(vec2 uv) {
  float c = texture(uCover, uv).r;
  return clamp((c - 0.5) / max(fwidth(c), 0.02) + 0.5, 0.0, 1.0);
}

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
  color = vec4(encoded(softened(lit)), cover);
}
`;
