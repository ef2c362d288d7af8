// The median of each row's values that are not NaN, in one launch: a block sorts a row in shared memory.
//
// Compiled at run time with: LENGTH, a power of two that the rows fit into.

// rows (count, columns), medians (count): NaN where a row has nothing but NaN.
extern "C" __global__ void known_medians(const double* rows, double* medians, int columns) {
    extern __shared__ double values[];
    __shared__ int known;
    if (threadIdx.x == 0) known = 0;
    __syncthreads();
    int mine = 0;
    for (int t = threadIdx.x; t < LENGTH; t += blockDim.x) {
        const double value = t < columns ? rows[(size_t)blockIdx.x * columns + t] : nan("");
        values[t] = isnan(value) ? __longlong_as_double(0x7ff0000000000000LL) : value;  // infinite: behind all others
        mine += !isnan(value);
    }
    atomicAdd(&known, mine);
    // Batcher's bitonic sort.
    for (int size = 2; size <= LENGTH; size *= 2)
        for (int step = size / 2; step > 0; step /= 2) {
            __syncthreads();
            for (int t = threadIdx.x; t < LENGTH; t += blockDim.x) {
                const int other = t ^ step;
                const double a = values[t], b = values[other];
                if (other > t && (a > b) == ((t & size) == 0)) values[t] = b, values[other] = a;
            }
        }
    __syncthreads();
    if (threadIdx.x == 0)
        medians[blockIdx.x] = known ? 0.5 * (values[(known - 1) / 2] + values[known / 2]) : nan("");
}
