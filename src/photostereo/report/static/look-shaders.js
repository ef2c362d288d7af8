// GLSL that turns a patch into the picture: bilinear between pixels from afar, single pixels from near.

const LIGHTS_MOST = 4;

const LOOK_FRAGMENT = `${GLSL_HEAD}${GLSL_OCTAHEDRON}${GLSL_COLOR}${GLSL_BACKDROP}
uniform sampler2D uNormals;
uniform sampler2D uOther;    // normals of another result, to take the angle to
uniform sampler2D uAlbedo;
uniform sampler2D uDepth;
uniform sampler2D uCover;
uniform sampler2D uScalar;
uniform sampler2D uScale;    // 256 colors
uniform vec3 uPatch;         // pixel of the patch = (canvas pixel - uPatch.xy) * uPatch.z, counted from the upper left
uniform float uCrisp;        // how abruptly one pixel gives way to the next: 1 bilinear, large for single pixels
uniform vec3 uLights[${LIGHTS_MOST}];
uniform vec3 uTints[${LIGHTS_MOST}];
uniform int uLightCount;
uniform vec4 uShine;         // diffuse, specular, gloss, ambient
uniform float uGain;
uniform int uMode;
uniform vec2 uRange;         // values at the ends of the scale
uniform vec3 uHeights;       // lowest, per code; step of the contour lines (0: none)
out vec4 color;

struct Taps { ivec2 corner; vec4 weights; };

Taps tapsAt(vec2 place, float crisp) {
  vec2 p = place - 0.5;
  vec2 f = clamp((p - floor(p) - 0.5) * crisp + 0.5, 0.0, 1.0);
  return Taps(ivec2(floor(p)), vec4((1.0 - f.x) * (1.0 - f.y), f.x * (1.0 - f.y), (1.0 - f.x) * f.y, f.x * f.y));
}

ivec2 tap(Taps taps, int i) { return taps.corner + ivec2(i & 1, i >> 1); }

ivec2 inside(ivec2 at) { return clamp(at, ivec2(0), textureSize(uNormals, 0) - 1); }

vec4 normalAt(Taps taps) {
  vec4 sum = vec4(0.0);
  for (int i = 0; i < 4; i += 1) sum += taps.weights[i] * knownNormal(uNormals, tap(taps, i));
  return sum.w > 0.0 ? vec4(normalize(sum.xyz), sum.w) : vec4(0.0);
}

// Colors and numbers of the known pixels only.
vec3 knownMean(sampler2D picture, Taps taps) {
  vec4 sum = vec4(0.0);
  for (int i = 0; i < 4; i += 1) {
    float weight = taps.weights[i] * knownNormal(uNormals, tap(taps, i)).w;
    sum += weight * vec4(texelFetch(picture, inside(tap(taps, i)), 0).rgb, 1.0);
  }
  return sum.rgb / max(sum.w, 1e-6);
}

vec3 albedoAt(Taps taps) { return knownMean(uAlbedo, taps); }

float scalarAt(Taps taps) { return knownMean(uScalar, taps).r; }

// The height, and whether any is known.
vec2 heightAt(Taps taps) {
  vec2 sum = vec2(0.0);
  for (int i = 0; i < 4; i += 1) {
    vec2 bytes = texelFetch(uDepth, inside(tap(taps, i)), 0).rg * 255.0 + 0.5;
    float code = floor(bytes.r) * 256.0 + floor(bytes.g);
    float weight = taps.weights[i] * step(0.5, code) * knownNormal(uNormals, tap(taps, i)).w;
    sum += weight * vec2(uHeights.x + (code - 1.0) * uHeights.y, 1.0);
  }
  return vec2(sum.x / max(sum.y, 1e-6), sum.y);
}

// Degrees to the other result; what it does not know is as wrong as can be seen.
float angleAt(Taps taps) {
  vec2 sum = vec2(0.0);
  for (int i = 0; i < 4; i += 1) {
    vec4 one = knownNormal(uNormals, tap(taps, i)), other = knownNormal(uOther, tap(taps, i));
    // The chord keeps its digits where the cosine has lost them.
    float angle = other.w > 0.0 ? degrees(2.0 * asin(clamp(0.5 * length(one.xyz - other.xyz), 0.0, 1.0))) : 90.0;
    sum += taps.weights[i] * one.w * vec2(angle, 1.0);
  }
  return sum.x / max(sum.y, 1e-6);
}

float smoothCover(vec2 place) {
  Taps taps = tapsAt(place, 1.0);
  float sum = 0.0;
  for (int i = 0; i < 4; i += 1) sum += taps.weights[i] * texelFetch(uCover, inside(tap(taps, i)), 0).r;
  return sum;
}

vec3 scaleColor(float value) {
  float share = clamp((value - uRange.x) / (uRange.y - uRange.x), 0.0, 1.0);
  return texelFetch(uScale, ivec2(int(share * 255.0 + 0.5), 0), 0).rgb;
}

vec3 relit(vec3 n, vec3 paint) {
  vec3 lit = paint * uShine.w;
  for (int i = 0; i < uLightCount; i += 1) {
    // Diffuse gain: brightest where the surface faces the light, as before, but falling off so many times faster.
    float shade = max(1.0 + uGain * (dot(n, uLights[i]) - 1.0), 0.0);
    lit += uTints[i] * (paint * uShine.x * shade + uShine.y * highlight(n, uLights[i], vec3(0.0, 0.0, 1.0), uShine.z));
  }
  return softened(lit);
}

void main() {
  vec2 place = (vec2(gl_FragCoord.x, uCanvas.y - gl_FragCoord.y) - uPatch.xy) * uPatch.z;
  Taps taps = tapsAt(place, uCrisp);
  Taps soft = tapsAt(place, 1.0);
  vec4 n = normalAt(taps);
  float c = smoothCover(place);
  vec2 size = vec2(textureSize(uNormals, 0));
  vec2 within = step(vec2(0.0), place) * step(place, size);
  float rim = clamp((c - 0.5) / max(fwidth(c), 0.02) + 0.5, 0.0, 1.0);
  float cover = mix(rim, n.w, clamp(uCrisp - 1.0, 0.0, 1.0)) * within.x * within.y;
  vec2 height = uHeights.z > 0.0 || uMode == 4 ? heightAt(soft) : vec2(0.0);
  float line = height.x / max(uHeights.z, 1e-6);
  float wide = fwidth(line);
  if (n.w <= 0.0) cover = 0.0;
  if (cover <= 0.0) { color = vec4(encoded(backdrop()), 1.0); return; }
  vec3 lit;
  if (uMode == 0) lit = relit(n.xyz, albedoAt(taps));
  else if (uMode == 1) lit = relit(n.xyz, vec3(0.52, 0.50, 0.47));
  else if (uMode == 2) lit = pow(n.xyz * 0.5 + 0.5, vec3(2.2));
  else if (uMode == 3) lit = scaleColor(degrees(acos(clamp(n.z, -1.0, 1.0))));
  else if (uMode == 4) lit = height.y > 0.0 ? scaleColor(heightAt(taps).x) : vec3(0.02);
  else if (uMode == 5 || uMode == 6) lit = scaleColor(scalarAt(taps));
  else lit = scaleColor(angleAt(taps));
  if (uHeights.z > 0.0 && height.y > 0.0) {
    float off = abs(fract(line - 0.5) - 0.5) / max(wide, 1e-6);
    // Steps closer than three screen pixels would only be a gray veil.
    float ink = (1.0 - smoothstep(0.5, 1.3, off)) * (1.0 - smoothstep(0.25, 0.45, wide));
    float bright = dot(lit, vec3(0.2126, 0.7152, 0.0722));
    lit = mix(lit, bright > 0.18 ? vec3(0.005, 0.006, 0.01) : vec3(0.95, 0.82, 0.55), 0.8 * ink);
  }
  color = vec4(encoded(mix(backdrop(), lit, cover)), 1.0);
}
`;

// Image unsharp masking on the finished picture: its brightness minus a blurred copy, added again.
const CRISPEN_FRAGMENT = `${GLSL_HEAD}
uniform sampler2D uImage;
uniform float uAmount;
uniform float uSigma;
out vec4 color;
void main() {
  ivec2 at = ivec2(gl_FragCoord.xy);
  ivec2 last = textureSize(uImage, 0) - 1;
  const vec3 eye = vec3(0.299, 0.587, 0.114);
  int reach = int(ceil(2.0 * uSigma));
  vec2 sum = vec2(0.0);
  for (int j = -reach; j <= reach; j += 1) {
    for (int i = -reach; i <= reach; i += 1) {
      float weight = exp(-0.5 * float(i * i + j * j) / (uSigma * uSigma));
      sum += weight * vec2(dot(texelFetch(uImage, clamp(at + ivec2(i, j), ivec2(0), last), 0).rgb, eye), 1.0);
    }
  }
  vec3 here = texelFetch(uImage, at, 0).rgb;
  color = vec4(here + uAmount * (dot(here, eye) - sum.x / sum.y), 1.0);
}
`;
