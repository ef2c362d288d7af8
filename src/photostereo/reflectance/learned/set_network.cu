// The parts of the set network between its matrix products, each in one launch (`torch_network.py`).
//
// Compiled at run time with WIDTH, the numbers per token inside a stage, and TINY_LAYER of `constants.py`.

#define LANES 32
#define VALUES ((WIDTH + LANES - 1) / LANES)  // of one row, held by one lane
#define HELD(v) (WIDTH % LANES == 0 || lane + LANES * (v) < WIDTH)
#define FULL 0xffffffffu

// hardswish(gain * y / rms(y) + shift), y = row + context, row by row in place; a row belongs to one warp.
// rows (count, WIDTH); context (count / per_context, WIDTH), not used if per_context is 0.
extern "C" __global__ void activate(float* rows, const float* context, const float* gain, const float* shift,
                                    int count, int per_context) {
    const int lane = threadIdx.x % LANES, warps = blockDim.x / LANES;
    float g[VALUES], s[VALUES];
#pragma unroll
    for (int v = 0; v < VALUES; ++v) {
        g[v] = HELD(v) ? gain[lane + LANES * v] : 0.0f;
        s[v] = HELD(v) ? shift[lane + LANES * v] : 0.0f;
    }
    for (long long r = (long long)blockIdx.x * warps + threadIdx.x / LANES; r < count;
         r += (long long)gridDim.x * warps) {
        float* row = rows + r * WIDTH + lane;
        const float* added = per_context ? context + r / per_context * WIDTH + lane : nullptr;
        float y[VALUES], total = 0.0f;
#pragma unroll
        for (int v = 0; v < VALUES; ++v) {
            y[v] = HELD(v) ? row[LANES * v] : 0.0f;
            if (per_context && HELD(v)) y[v] += added[LANES * v];
            total += y[v] * y[v];
        }
        for (int step = LANES / 2; step > 0; step /= 2) total += __shfl_xor_sync(FULL, total, step);
        const float scale = rsqrtf(total / WIDTH + TINY_LAYER);
#pragma unroll
        for (int v = 0; v < VALUES; ++v) {
            const float z = y[v] * scale * g[v] + s[v];
            if (HELD(v)) row[LANES * v] = z * fminf(fmaxf(z * (1.0f / 6.0f) + 0.5f, 0.0f), 1.0f);
        }
    }
}

// Mean and maximum of `tokens` consecutive rows: (sets * tokens, WIDTH) to (sets, 2 WIDTH).
extern "C" __global__ void pool(const float* rows, float* out, int sets, int tokens) {
    for (long long k = (long long)blockIdx.x * blockDim.x + threadIdx.x; k < (long long)sets * WIDTH;
         k += (long long)gridDim.x * blockDim.x) {
        const long long set = k / WIDTH;
        const int column = k % WIDTH;
        const float* value = rows + set * tokens * WIDTH + column;
        float total = *value, largest = *value;
        for (int t = 1; t < tokens; ++t) {
            const float next = value[(long long)t * WIDTH];
            total += next;
            largest = fmaxf(largest, next);
        }
        out[set * 2 * WIDTH + column] = total / tokens;
        out[set * 2 * WIDTH + WIDTH + column] = largest;
    }
}
