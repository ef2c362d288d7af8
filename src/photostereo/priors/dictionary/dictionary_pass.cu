// One pass over the atoms of a dictionary: the sequential update of `readable.py`, in one launch.
//
//   for each atom i:   g_i <- H_mu(E_i d_i) clipped to q,   d_i <- E_i^T g_i / |E_i^T g_i|,   E_i = R + g_i
//  d_i^T
//
// A *team* of blocks processes each problem (one residual R, dictionary D and code matrix B). A block owns a
// run of patches for the whole pass and keeps their rows of R in shared memory if they fit, so that the atom
// loop never leaves the device and R is read and written once. A row belongs to one warp; a lane holds every
// 32nd value. The blocks of a team exchange only E_i^T g_i for each atom: each block computes its share over
// its own patches, and the shares are added in a fixed order and in double precision, so runs are bitwise
// reproducible.
//
// Compiled at run time with: REAL (float or double), LENGTH (m, the values of a patch), WARPS (per block).

#define LANES 32
#define VALUES ((LENGTH + LANES - 1) / LANES)            // of one row, held by one lane
#define PADDED (VALUES * LANES)                          // length of a row in shared memory
#define TILE (VALUES <= 3 ? 8 : VALUES <= 8 ? 4 : VALUES <= 16 ? 2 : 1)  // rows in flight in one warp
#define HELD(v) (LENGTH % LANES == 0 || lane + LANES * (v) < LENGTH)
#define FULL 0xffffffffu

// Count one more arrival and return the number before it. Release and acquire: all writes of this block before
// the last __syncthreads() are visible to any thread that observes the new count.
__device__ int arrive(int* counter) {
    int before;
    asm volatile("atom.add.acq_rel.gpu.global.s32 %0, [%1], 1;" : "=r"(before) : "l"(counter) : "memory");
    return before;
}

__device__ void wait_for(const int* counter, int target) {
    int seen;
    do {
        asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(counter) : "memory");
    } while (seen < target);
}

template <typename T>
__device__ T warp_sum(T value) {
    for (int step = LANES / 2; step > 0; step /= 2) value += __shfl_xor_sync(FULL, value, step);
    return value;
}

// Add `count` consecutive rows of LENGTH + 1 doubles in order; each thread handles some of the columns.
__device__ void add_rows(const double* rows, int count, double* out) {
    for (int t = threadIdx.x; t <= LENGTH; t += blockDim.x) {
        double sum = 0.0;
#pragma unroll 8
        for (int k = 0; k < count; ++k) sum += __ldcg(rows + (size_t)k * (LENGTH + 1) + t);
        out[t] = sum;
    }
}

// Sum `mine` (global, already written) over the blocks of the team into `total` (shared), in two steps: in
// every group of `group` blocks, the last to arrive adds the rows of the group; then all add the sums of the
// groups.
__device__ void team_sum(double* shares, double* sums, int* arrived, int atom, int team, int group, int
member,
                         double* total, int* is_last) {
    const int groups = (team + group - 1) / group;
    if (group > 1) {
        const int mine = member / group, first = mine * group, size = min(group, team - first);
        if (threadIdx.x == 0) *is_last = arrive(arrived + 1 + mine) == (atom + 1) * size - 1;
        __syncthreads();
        if (*is_last) {
            add_rows(shares + (size_t)first * (LENGTH + 1), size, sums + (size_t)mine * (LENGTH + 1));
            __syncthreads();
            if (threadIdx.x == 0) arrive(arrived);
        }
    } else if (threadIdx.x == 0) {
        arrive(arrived);  // `shares` and `sums` are one array then
    }
    if (threadIdx.x == 0) wait_for(arrived, (atom + 1) * groups);
    __syncthreads();
    add_rows(sums, groups, total);
    __syncthreads();
}

// R (problems, patches, LENGTH), D (problems, atoms, LENGTH), B (problems, atoms, patches), mu and q
// (problems): contiguous. shares: 2 x problems x (team + groups) rows of LENGTH + 1 doubles. arrived:
// problems x (1 + groups) zeros. `rows` patches per block; `resident`: whether they are kept in shared
// memory.
extern "C" __global__ void __launch_bounds__(WARPS * LANES, 1)
    dictionary_pass(REAL* R, REAL* D, REAL* B, const REAL* mu_of, const REAL* q_of, double* shares,
                    int* arrived, int patches, int atoms, int team, int group, int rows, int resident,
                    int learn) {
    extern __shared__ double memory[];
    double* total = memory;                                      // LENGTH + 1
    REAL* gathered = (REAL*)(total + LENGTH + 1);                // WARPS x PADDED
    REAL* before = gathered + WARPS * PADDED;                    // rows: the old codes of this atom
    REAL* after = before + rows;                                 // rows: the new codes
    REAL* kept_rows = after + rows;                              // rows x PADDED if resident
    __shared__ int kept_by_warp[WARPS];
    __shared__ int is_last;

    const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    const int problem = blockIdx.x / team, member = blockIdx.x % team, problems = gridDim.x / team;
    const int groups = (team + group - 1) / group;
    const int first = min(member * rows, patches), here = min(rows, patches - first);
    const int per_warp = (here + WARPS - 1) / WARPS;
    const int start = min(warp * per_warp, here), end = min(start + per_warp, here);
    const REAL mu = mu_of[problem], q = q_of[problem];

    R += ((size_t)problem * patches + first) * LENGTH;
    D += (size_t)problem * atoms * LENGTH;
    B += (size_t)problem * atoms * patches + first;
    arrived += problem * (1 + groups);
    const size_t space = (size_t)(team + groups) * (LENGTH + 1);  // of one problem; two in turn, atom by atom

    REAL* slab = resident ? kept_rows : R;
    const int stride = resident ? PADDED : LENGTH;
    if (resident) {
        for (int r = start; r < end; ++r)
            for (int v = 0; v < VALUES; ++v)
                slab[r * PADDED + lane + LANES * v] =
                    HELD(v) ? R[(size_t)r * LENGTH + lane + LANES * v] : REAL(0);
    }

    REAL d[VALUES], next[VALUES], fresh[VALUES];
#pragma unroll
    for (int v = 0; v < VALUES; ++v) d[v] = HELD(v) ? D[lane + LANES * v] : REAL(0);

    for (int atom = 0; atom < atoms; ++atom) {
        REAL* codes = B + (size_t)atom * patches;
        for (int r = start + lane; r < end; r += LANES) before[r] = codes[r];
        __syncwarp();
        REAL toward[VALUES];
#pragma unroll
        for (int v = 0; v < VALUES; ++v) toward[v] = REAL(0);
        int kept = 0;
        for (int base = start; base < end; base += TILE) {
            REAL x[TILE][VALUES], y[TILE];
#pragma unroll
            for (int t = 0; t < TILE; ++t) {
                const REAL* row = slab + (size_t)min(base + t, end - 1) * stride + lane;
                y[t] = REAL(0);
#pragma unroll
                for (int v = 0; v < VALUES; ++v) {
                    x[t][v] = HELD(v) ? row[LANES * v] : REAL(0);
                    y[t] += x[t][v] * d[v];
                }
            }
#pragma unroll
            for (int t = 0; t < TILE; ++t) y[t] = warp_sum(y[t]);
#pragma unroll
            for (int t = 0; t < TILE; ++t) {
                if (base + t >= end) break;
                const REAL old = before[base + t], value = y[t] + old;
                const bool keep = fabs(value) >= mu && value != REAL(0);
                const REAL g = keep ? min(max(value, -q), q) : REAL(0);
                if (lane == 0) after[base + t] = g;
                if (keep) {
                    ++kept;
#pragma unroll
                    for (int v = 0; v < VALUES; ++v) toward[v] += g * (x[t][v] + old * d[v]);
                }
            }
        }
        __syncwarp();
        for (int r = start + lane; r < end; r += LANES) codes[r] = after[r];
        if (atom + 1 < atoms) {
#pragma unroll
            for (int v = 0; v < VALUES; ++v)
                next[v] = HELD(v) ? D[(size_t)(atom + 1) * LENGTH + lane + LANES * v] : REAL(0);
        }

        if (learn) {
#pragma unroll
            for (int v = 0; v < VALUES; ++v) gathered[warp * PADDED + lane + LANES * v] = toward[v];
            if (lane == 0) kept_by_warp[warp] = kept;
            __syncthreads();
            double* share = shares + (size_t)((atom % 2) * problems + problem) * space;
            double* sums = group > 1 ? share + (size_t)team * (LENGTH + 1) : share;
            double* mine = share + (size_t)member * (LENGTH + 1);
            for (int t = threadIdx.x; t <= LENGTH; t += blockDim.x) {
                double sum = 0.0;
                for (int k = 0; k < WARPS; ++k)
                    sum += t < LENGTH ? (double)gathered[k * PADDED + t] : (double)kept_by_warp[k];
                mine[t] = sum;
            }
            __syncthreads();
            team_sum(share, sums, arrived, atom, team, group, member, total, &is_last);

            double squared = 0.0;
#pragma unroll
            for (int v = 0; v < VALUES; ++v)
                if (HELD(v)) squared += total[lane + LANES * v] * total[lane + LANES * v];
            const double length = sqrt(warp_sum(squared));
#pragma unroll
            for (int v = 0; v < VALUES; ++v) {
                if (total[LENGTH] == 0.0)  // no patch uses the atom: e_1
                    fresh[v] = REAL(lane == 0 && v == 0);
                else
                    fresh[v] = length > 0.0 && HELD(v) ? REAL(total[lane + LANES * v] / length) : d[v];
            }
            if (member == 0 && warp == 0) {
#pragma unroll
                for (int v = 0; v < VALUES; ++v)
                    if (HELD(v)) D[(size_t)atom * LENGTH + lane + LANES * v] = fresh[v];
            }
        } else {
#pragma unroll
            for (int v = 0; v < VALUES; ++v) fresh[v] = d[v];
        }

        for (int r = start; r < end; ++r) {
            const REAL old = before[r], g = after[r];
            if (old == REAL(0) && g == REAL(0)) continue;
            REAL* row = slab + (size_t)r * stride + lane;
#pragma unroll
            for (int v = 0; v < VALUES; ++v)
                if (HELD(v)) row[LANES * v] += old * d[v] - g * fresh[v];
        }
#pragma unroll
        for (int v = 0; v < VALUES; ++v) d[v] = next[v];
        __syncwarp();
    }
    if (resident) {
        for (int r = start; r < end; ++r)
            for (int v = 0; v < VALUES; ++v)
                if (HELD(v)) R[(size_t)r * LENGTH + lane + LANES * v] = slab[r * PADDED + lane + LANES * v];
    }
}
