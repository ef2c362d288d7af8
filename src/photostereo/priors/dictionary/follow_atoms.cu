// One pass over the atoms with the new ones known beforehand: patches are independent.
//
//   for each atom i:   g_i <- H_mu(R d_i + g_i) clipped to q,   R += g_i_old d_i - g_i given_i
//
// A warp keeps the rows of ROWS patches in registers from the first atom to the last, a lane every 32nd value, so that
// the residual is read and written once. Warps never synchronize.
//
// Compiled at run time with: REAL (float or double), LENGTH (m, the values of a patch), WARPS (per block).

#define LANES 32
#define VALUES ((LENGTH + LANES - 1) / LANES)            // of one row, held by one lane
#define ROWS (VALUES <= 8 ? 8 : VALUES <= 16 ? 4 : 1)
#define HELD(v) (LENGTH % LANES == 0 || lane + LANES * (v) < LENGTH)
#define FULL 0xffffffffu

// R (patches, LENGTH), D and given (atoms, LENGTH), B (atoms, patches): contiguous.
extern "C" __global__ void __launch_bounds__(WARPS * LANES)
    follow_atoms(REAL* R, const REAL* D, const REAL* given, REAL* B, double threshold, double bound, int patches,
                 int atoms) {
    const REAL mu = threshold, q = bound;
    const int lane = threadIdx.x % LANES;
    const size_t warp = (size_t)blockIdx.x * WARPS + threadIdx.x / LANES, warps = (size_t)gridDim.x * WARPS;
    for (size_t base = warp * ROWS; base < patches; base += warps * ROWS) {
        const bool mine = lane < ROWS && base + lane < patches;  // this lane keeps the code of row `lane`
        REAL x[ROWS][VALUES];
#pragma unroll
        for (int t = 0; t < ROWS; ++t) {
            const bool real = base + t < patches;
#pragma unroll
            for (int v = 0; v < VALUES; ++v)
                x[t][v] = real && HELD(v) ? R[(base + t) * LENGTH + lane + LANES * v] : REAL(0);
        }
        REAL coming = mine ? B[base + lane] : REAL(0);
        for (int atom = 0; atom < atoms; ++atom) {
            const REAL before = coming;
            if (mine && atom + 1 < atoms) coming = B[(size_t)(atom + 1) * patches + base + lane];
            REAL d[VALUES], y[ROWS];
#pragma unroll
            for (int v = 0; v < VALUES; ++v)
                d[v] = HELD(v) ? D[(size_t)atom * LENGTH + lane + LANES * v] : REAL(0);
#pragma unroll
            for (int t = 0; t < ROWS; ++t) {
                y[t] = REAL(0);
#pragma unroll
                for (int v = 0; v < VALUES; ++v) y[t] += x[t][v] * d[v];
            }
#pragma unroll
            for (int step = LANES / 2; step > 0; step /= 2) {
#pragma unroll
                for (int t = 0; t < ROWS; ++t) y[t] += __shfl_xor_sync(FULL, y[t], step);
            }
            REAL own = REAL(0);  // the product of this lane's row
#pragma unroll
            for (int t = 0; t < ROWS; ++t)
                if (lane == t) own = y[t];
            const REAL value = own + before;
            const REAL after = mine && fabs(value) >= mu ? min(max(value, -q), q) : REAL(0);
            const unsigned changed = __ballot_sync(FULL, mine && (before != REAL(0) || after != REAL(0)));
            if (changed == 0) continue;
            if (mine && before != after) B[(size_t)atom * patches + base + lane] = after;
            REAL fresh[VALUES];
#pragma unroll
            for (int v = 0; v < VALUES; ++v)
                fresh[v] = HELD(v) ? given[(size_t)atom * LENGTH + lane + LANES * v] : REAL(0);
#pragma unroll
            for (int t = 0; t < ROWS; ++t) {
                const REAL old = __shfl_sync(FULL, before, t), g = __shfl_sync(FULL, after, t);
                if ((changed >> t) & 1u) {
#pragma unroll
                    for (int v = 0; v < VALUES; ++v) x[t][v] += old * d[v] - g * fresh[v];
                }
            }
        }
#pragma unroll
        for (int t = 0; t < ROWS; ++t) {
            if (base + t >= patches) continue;
#pragma unroll
            for (int v = 0; v < VALUES; ++v)
                if (HELD(v)) R[(base + t) * LENGTH + lane + LANES * v] = x[t][v];
        }
    }
}
