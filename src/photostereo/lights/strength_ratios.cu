// The strength of each light by each pixel, one pixel per warp: `strengths.readable_ratios` in CUDA.
//
// Compiled at run time with the constants of `runtime/matte_fits.py` and `strengths.py`: LIT_NOISE, LIT_SHARE, FACING, FEWEST.

#define LANES 32
#define FULL 0xffffffffu

template <typename T>
__device__ T warp_sum(T value) {
    for (int step = LANES / 2; step > 0; step /= 2) value += __shfl_xor_sync(FULL, value, step);
    return value;
}

// seen (pixels, d), strengths (d), lights (3, d), noise (pixels); ratios (d, pixels), NaN if unknown.
extern "C" __global__ void strength_ratios(const float* seen, const double* strengths, const double* lights,
                                           const float* noise, double* ratios, int pixels, int d) {
    const int lane = threadIdx.x % LANES, p = (blockIdx.x * blockDim.x + threadIdx.x) / LANES;
    if (p >= pixels) return;
    const float* row = seen + (size_t)p * d;
    float top = -__int_as_float(0x7f800000);
    for (int j = lane; j < d; j += LANES) top = fmaxf(top, (float)(row[j] / strengths[j]));
    for (int step = LANES / 2; step > 0; step /= 2) top = fmaxf(top, __shfl_xor_sync(FULL, top, step));
    const float floor = LIT_NOISE * sqrtf(noise[p]) + LIT_SHARE * top;
    double xx = 0, xy = 0, xz = 0, yy = 0, yz = 0, zz = 0, bx = 0, by = 0, bz = 0;
    int count = 0;
    for (int j = lane; j < d; j += LANES) {
        const float value = (float)(row[j] / strengths[j]);
        if (!(value > floor)) continue;
        const double x = lights[j], y = lights[d + j], z = lights[2 * d + j];
        xx += x * x, xy += x * y, xz += x * z, yy += y * y, yz += y * z, zz += z * z;
        bx += value * x, by += value * y, bz += value * z;
        ++count;
    }
    xx = warp_sum(xx) + 1e-6, yy = warp_sum(yy) + 1e-6, zz = warp_sum(zz) + 1e-6;
    xy = warp_sum(xy), xz = warp_sum(xz), yz = warp_sum(yz);
    bx = warp_sum(bx), by = warp_sum(by), bz = warp_sum(bz), count = warp_sum(count);
    // The inverse by cofactors.
    const double cxx = yy * zz - yz * yz, cxy = xz * yz - xy * zz, cxz = xy * yz - xz * yy;
    const double cyy = xx * zz - xz * xz, cyz = xy * xz - xx * yz, czz = xx * yy - xy * xy;
    const double scale = 1.0 / (xx * cxx + xy * cxy + xz * cxz);
    const float nx = (float)(scale * (cxx * bx + cxy * by + cxz * bz));
    const float ny = (float)(scale * (cxy * bx + cyy * by + cyz * bz));
    const float nz = (float)(scale * (cxz * bx + cyz * by + czz * bz));
    const float length = sqrtf(nx * nx + ny * ny + nz * nz);
    for (int j = lane; j < d; j += LANES) {
        const double expected = nx * lights[j] + ny * lights[d + j] + nz * lights[2 * d + j];
        const bool told = expected > FACING * length && row[j] > 0 && length > 0 && count > FEWEST;
        ratios[(size_t)j * pixels + p] = told ? row[j] / expected : nan("");
    }
}
