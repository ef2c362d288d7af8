// What can be worked out from a patch of normals and heights, once for a view: the outline, sharpened normals,
// curvature and openness to the sky. The light may then move without any of it being done again.

const COVER_FRAGMENT = `${GLSL_HEAD}
uniform sampler2D uNormals;
out vec4 color;
void main() {
  ivec2 at = ivec2(gl_FragCoord.xy);
  ivec2 last = textureSize(uNormals, 0) - 1;
  float sum = 0.0, total = 0.0;
  for (int j = -2; j <= 2; j += 1) {
    for (int i = -2; i <= 2; i += 1) {
      float weight = exp(-0.4 * float(i * i + j * j));
      vec3 found = texelFetch(uNormals, clamp(at + ivec2(i, j), ivec2(0), last), 0).rgb;
      sum += weight * step(0.001, found.r + found.g + found.b);
      total += weight;
    }
  }
  color = vec4(sum / total, 0.0, 0.0, 1.0);
}
`;

// Sums of the known normals along one axis with Gaussian weights; w sums the weights.
const BLUR_FRAGMENT = `${GLSL_HEAD}${GLSL_OCTAHEDRON}
uniform sampler2D uNormals;
uniform float uSigma;
out vec4 color;
void main() {
  ivec2 at = ivec2(gl_FragCoord.xy);
  int reach = int(ceil(3.0 * uSigma));
  vec4 sum = vec4(0.0);
  for (int i = -reach; i <= reach; i += 1) {
    sum += exp(-0.5 * float(i * i) / (uSigma * uSigma)) * knownNormal(uNormals, at + ivec2(i, 0));
  }
  color = sum;
}
`;

// Normal unsharp masking: n + amount · (n − mean of the neighborhood), made unit again.
const SHARPEN_FRAGMENT = `${GLSL_HEAD}${GLSL_OCTAHEDRON}
uniform sampler2D uNormals;
uniform sampler2D uAlong;
uniform float uSigma;
uniform float uAmount;
out vec4 color;

vec3 packedNormal(vec3 n) {
  vec2 p = n.xy / (abs(n.x) + abs(n.y) + abs(n.z));
  vec2 s = vec2(p.x >= 0.0 ? 1.0 : -1.0, p.y >= 0.0 ? 1.0 : -1.0);
  if (n.z < 0.0) p = (1.0 - abs(p.yx)) * s;
  ivec2 c = ivec2((p * 0.5 + 0.5) * 4095.0 + 0.5);
  if (c == ivec2(0)) c = ivec2(4095);
  return vec3(float(c.x >> 4), float(((c.x & 15) << 4) | (c.y >> 8)), float(c.y & 255)) / 255.0;
}

void main() {
  ivec2 at = ivec2(gl_FragCoord.xy);
  vec4 n = knownNormal(uNormals, at);
  if (n.w <= 0.0) { color = vec4(0.0); return; }
  ivec2 last = textureSize(uAlong, 0) - 1;
  int reach = int(ceil(3.0 * uSigma));
  vec4 sum = vec4(0.0);
  for (int j = -reach; j <= reach; j += 1) {
    int row = at.y + j;
    if (row < 0 || row > last.y) continue;
    sum += exp(-0.5 * float(j * j) / (uSigma * uSigma)) * texelFetch(uAlong, ivec2(at.x, row), 0);
  }
  vec3 mean = sum.xyz / sum.w;
  color = vec4(packedNormal(normalize(n.xyz + uAmount * (n.xyz - mean))), 1.0);
}
`;

// Half the divergence of the normals: 1 / R on a ball of radius R, in 1 / pixel of level 0.
const CURVATURE_FRAGMENT = `${GLSL_HEAD}${GLSL_OCTAHEDRON}
uniform sampler2D uNormals;
uniform float uPixel;
out vec4 color;
void main() {
  ivec2 at = ivec2(gl_FragCoord.xy);
  vec4 left = knownNormal(uNormals, at - ivec2(1, 0)), right = knownNormal(uNormals, at + ivec2(1, 0));
  vec4 above = knownNormal(uNormals, at - ivec2(0, 1)), below = knownNormal(uNormals, at + ivec2(0, 1));
  float known = left.w * right.w * above.w * below.w;
  color = vec4(known * (right.x - left.x - below.y + above.y) / (4.0 * uPixel), 0.0, 0.0, 1.0);
}
`;

// The share of a cosine-weighted sky that no higher place nearby hides: the mean of cos² of the horizon's height.
const OCCLUSION_FRAGMENT = `${GLSL_HEAD}
uniform sampler2D uDepth;
uniform float uRise;     // heights per code, in pixels of this level
out vec4 color;
const int STEPS[12] = int[12](1, 2, 3, 4, 6, 8, 11, 15, 20, 27, 36, 48);
float code(ivec2 at) {
  vec3 t = texelFetch(uDepth, at, 0).rgb * 255.0;
  return floor(t.r + 0.5) * 256.0 + floor(t.g + 0.5);
}
void main() {
  ivec2 at = ivec2(gl_FragCoord.xy);
  ivec2 last = textureSize(uDepth, 0) - 1;
  float here = code(at);
  float open = 0.0;
  for (int k = 0; k < 16; k += 1) {
    float angle = float(k) * 0.39269908;
    vec2 way = vec2(cos(angle), sin(angle));
    float steepest = 0.0;
    for (int s = 0; s < 12; s += 1) {
      ivec2 off = ivec2(floor(way * float(STEPS[s]) + 0.5));
      ivec2 there = at + off;
      if (any(lessThan(there, ivec2(0))) || any(greaterThan(there, last))) break;
      float other = code(there);
      if (other > 0.0) steepest = max(steepest, (other - here) * uRise / length(vec2(off)));
    }
    open += 1.0 / (1.0 + steepest * steepest);
  }
  color = vec4(here > 0.0 ? open / 16.0 : 0.0, 0.0, 0.0, 1.0);
}
`;

class Deriver {
  constructor(gl) {
    this.gl = gl;
    // Numbers beyond 8 bits need textures that can hold them; without, those views are not offered.
    this.exact = Boolean(gl.getExtension("EXT_color_buffer_float"));
    const sources = {
      cover: COVER_FRAGMENT,
      blur: BLUR_FRAGMENT,
      sharpen: SHARPEN_FRAGMENT,
      curvature: CURVATURE_FRAGMENT,
      occlusion: OCCLUSION_FRAGMENT,
    };
    this.programs = Object.fromEntries(
      Object.entries(sources).map(([name, text]) => [name, makeProgram(gl, FULL_VERTEX, text)]),
    );
  }

  // Keep or make a target of the patch, and say whether it has to be filled.
  renewed(patch, name, format, key) {
    const old = patch.derived[name];
    if (old && old.width === patch.width && old.height === patch.height) {
      if (old.key === key) return null;
    } else {
      dropTarget(this.gl, old);
      patch.derived[name] = makeTarget(this.gl, patch.width, patch.height, format);
    }
    patch.derived[name].key = key;
    return patch.derived[name];
  }

  cover(patch) {
    const target = this.renewed(patch, "cover", this.gl.RGBA8, patch.version);
    if (target)
      this.fill(target, "cover", (places) =>
        bindTexture(this.gl, 0, patch.targets.normals.texture, places.uNormals),
      );
    return patch.derived.cover.texture;
  }

  // sigma: in pixels of level 0
  normals(patch, amount, sigma) {
    const { gl } = this;
    if (!amount || !this.exact) return patch.targets.normals.texture;
    const spread = Math.min(16, Math.max(0.5, sigma / 2 ** patch.level));
    const key = `${patch.version} ${amount} ${spread}`;
    const target = this.renewed(patch, "sharp", gl.RGBA8, key);
    if (!target) return patch.derived.sharp.texture;
    const along = this.renewed(patch, "along", gl.RGBA32F, key);
    this.fill(along, "blur", (places) => {
      bindTexture(gl, 0, patch.targets.normals.texture, places.uNormals);
      gl.uniform1f(places.uSigma, spread);
    });
    this.fill(target, "sharpen", (places) => {
      bindTexture(gl, 0, patch.targets.normals.texture, places.uNormals);
      bindTexture(gl, 1, along.texture, places.uAlong);
      gl.uniform1f(places.uSigma, spread);
      gl.uniform1f(places.uAmount, amount);
    });
    return target.texture;
  }

  // kind: curvature or occlusion; rise: heights per code in pixels of level 0
  scalar(patch, kind, rise) {
    const { gl } = this;
    const target = this.renewed(patch, kind, gl.R32F, patch.version);
    if (target) {
      this.fill(target, kind, (places) => {
        const source = kind === "curvature" ? patch.targets.normals : patch.targets.depth;
        bindTexture(gl, 0, source.texture, kind === "curvature" ? places.uNormals : places.uDepth);
        if (kind === "curvature") gl.uniform1f(places.uPixel, 2 ** patch.level);
        else gl.uniform1f(places.uRise, rise / 2 ** patch.level);
      });
    }
    return patch.derived[kind].texture;
  }

  fill(target, name, uniforms) {
    fillTarget(this.gl, target, this.programs[name], uniforms);
  }
}
