"""Constants of the set network, shared by its compiled and torch implementations.

The network maps the d intensities of one pixel, with d light directions, to a unit normal and its
expected error. Symbols: v, the intensities divided by their root mean square; l, the lights; n, the
current normal; h, the half vector between light and camera. A stage

1. rotates the frame about the viewing axis so that n has azimuth 0,
2. makes one token of :data:`FEATURES` numbers per photograph: l (3), n·l, n·h, l·h, n_z; v, √v, v/(v + 0.4), the log of v
   over n·l; the residual of v from the best matte fit, the strength of that fit, the number of
   photographs, the error expected so far, the compressed misfit, √ of the channels (3),
3. passes every token through two layers, pools them (mean and maximum), adds the pooled values to every token, passes
   them through two more layers and pools again,
4. maps the pool to a correction that is added to n, and to the logarithm of the expected angular error.

A layer is ``hardswish(gain · y / rms(y) + shift)`` with ``y = x W + b``. Rotating an object rotates
its normals, because every stage works in the rotated frame; the order of the photographs and the
scale of the intensities do not matter.

The weights were trained with these numbers; changing one requires retraining.
"""

#: Numbers per token.
FEATURES = 19
#: Logarithm of the expected error (radians) before the first stage: 13°.
UNKNOWN_ERROR = -1.5
#: Offset of the output that is the logarithm of the expected error: 8°.
TYPICAL_ERROR = -2.0
#: Limits of this logarithm: 0.14° and beyond a right angle.
LEAST_LOG_ERROR = -6.0
LARGEST_LOG_ERROR = 1.0
#: Added to the mean square of the intensities: a black pixel stays black.
TINY_INTENSITY = 1e-12
#: Added to the mean square of a layer.
TINY_LAYER = 1e-5
#: First guess of the normal: ridge per photograph.
RIDGE = 0.02
#: It is fitted to v / (v + GUESS_HALF), in which highlights count less.
GUESS_HALF = 0.5
#: Its minimum z: it faces the camera.
LEAST_Z = 1e-3
#: Added to the sum of squared cosines in a matte fit.
MATTE_RIDGE = 1e-3
#: Added to arguments of a square root.
TINY_ROOT = 1e-6
#: Limit of v.
MOST_V = 8.0
#: Limit of √v and of the channels' roots.
MOST_ROOT = 3.0
#: Limit of the matte fit's strength.
MOST_MATTE = 6.0
#: Limit of the misfit.
MOST_MISFIT = 3.0
#: v / (v + HALF_V) is 1/2 at v = HALF_V.
HALF_V = 0.4
#: Likewise the compressed misfit.
HALF_MISFIT = 0.1
#: The log of (v + DARK) over max(n·l, GRAZING) stays finite in shadows...
DARK = 0.02
#: ... and at grazing light.
GRAZING = 0.08
#: Its factor.
LOG_FACTOR = 0.4
#: Its limit, before the factor.
MOST_LOG = 6.0
#: The number of photographs enters as log(d) / 3 − 1, from −0.5 for 4 to 0.8 for 200.
COUNT_FACTOR = 1.0 / 3.0
COUNT_OFFSET = -1.0
