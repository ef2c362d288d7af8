// Average neighbors, one row of them at a time (`down`, and `right` from -reach to reach): the loops of `neighbors.py`.
// Compiled at run time with CUTOFF of that module. A pixel belongs to one warp, whose lanes share its photographs.

#define LANES 32
#define FULL 0xffffffffu
#define EACH_PIXEL(p, total)                                                                                  \
    for (long long p = (blockIdx.x * (long long)blockDim.x + threadIdx.x) / LANES; p < total;                 \
         p += (long long)gridDim.x * blockDim.x / LANES)

// Index of the displaced mask pixel; -1 if there is none. `places` are flat; `index` has the rows of the picture.
__device__ int neighbor(const int* index, int place, int height, int width, int down, int right) {
    const int r = place / width + down, c = place % width + right;
    return r >= 0 && r < height && c >= 0 && c < width ? index[r * width + c] : -1;
}

// Mean squared difference between each mask pixel and those of the row; -1 if there is none.
// distance (2 reach + 1, height, width) is -1 outside the mask.
extern "C" __global__ void distances(const float* guide, const int* index, const int* places, float* distance,
                                     int pixels, int photographs, int height, int width, int down, int reach) {
    const int lane = threadIdx.x % LANES;
    EACH_PIXEL(p, pixels)
    for (int right = -reach; right <= reach; ++right) {
        const int other = neighbor(index, places[p], height, width, down, right);
        float total = 0.0f;
        if (other >= 0) {
            for (int k = lane; k < photographs; k += LANES) {
                const float step = guide[p * photographs + k] - guide[(long long)other * photographs + k];
                total += step * step;
            }
            for (int step = LANES / 2; step > 0; step /= 2) total += __shfl_xor_sync(FULL, total, step);
        }
        if (lane == 0)
            distance[(size_t)(right + reach) * height * width + places[p]] = other >= 0 ? total / photographs : -1.0f;
    }
}

// Average the distances over 3 x 3 pixels, convert them to weights, and add the weighted values of the neighbors.
extern "C" __global__ void gather(const float* values, const int* index, const int* places, const float* distance,
                                  const float* noise, float* result, float* total, float* squares, double softness,
                                  int pixels, int count, int height, int width, int down, int reach) {
    const int lane = threadIdx.x % LANES;
    EACH_PIXEL(p, pixels)
    for (int right = -reach; right <= reach; ++right) {
        if (down == 0 && right == 0) continue;
        const float* there = distance + (size_t)(right + reach) * height * width;
        const int place = places[p], row = place / width, column = place % width;
        const int other = neighbor(index, place, height, width, down, right);
        if (other < 0) continue;
        float sum = 0.0f;
        int known = 0;
        for (int r = max(row - 1, 0); r < min(row + 2, height); ++r)
            for (int c = max(column - 1, 0); c < min(column + 2, width); ++c) {
                const float near = there[r * width + c];
                if (near >= 0.0f) sum += near, ++known;
            }
        const float excess = fmaxf(sum / max(known, 1) - 2.0f * noise[p], 0.0f);
        const float soft = (float)softness * noise[p];
        if (!(excess < CUTOFF * soft)) continue;
        const float weight = expf(-excess / soft);
        for (int k = lane; k < count; k += LANES)
            result[p * count + k] += weight * values[(long long)other * count + k];
        if (lane == 0) {
            total[p] += weight;
            squares[p] += weight * weight;
        }
    }
}
