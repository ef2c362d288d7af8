// Sparse regression on a GPU: the loops of kernels.py and absolute_kernels.py, with one thread or a few
// threads per pixel.
//
// Compiled at run time with INTENSITY (float or double), the type of Y, and DIRECTION, that of L. Y (N, d) and
// L are contiguous; L is (3, d) for all pixels (own = 0) or for each pixel, `own` = 3 d numbers apart. The values of
// a pixel per photograph are in `scratch`, arranged so that neighboring threads read neighboring addresses.

#define EACH_PIXEL(i, count) \
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < (count); i += gridDim.x * blockDim.x)
#define LIGHT(c, j) (double)L[(c) * d + (j)]
#define SHADE(j, x) (LIGHT(0, j) * (x)[0] + LIGHT(1, j) * (x)[1] + LIGHT(2, j) * (x)[2])

// A d-vector of one pixel.
struct Column {
    double* first;
    int stride;
    __device__ double& operator[](int j) const { return first[(size_t)j * stride]; }
};

// A symmetric 3 x 3 matrix (xx, xy, xz, yy, yz, zz) and a right-hand side, summed over photographs.
struct System {
    double a[6] = {0, 0, 0, 0, 0, 0}, b[3] = {0, 0, 0};
    __device__ void add(double w, double l0, double l1, double l2, double y) {
        const double w0 = w * l0, w1 = w * l1, w2 = w * l2;
        a[0] += w0 * l0; a[1] += w0 * l1; a[2] += w0 * l2; a[3] += w1 * l1; a[4] += w1 * l2; a[5] += w2 * l2;
        b[0] += w0 * y; b[1] += w1 * y; b[2] += w2 * y;
    }
    // The inverse of a + shift I by its Cholesky factor, and the solution.
    __device__ void solve(double shift, double c[6], double x[3]) const {
        const double g00 = 1.0 / sqrt(a[0] + shift), l10 = a[1] * g00, l20 = a[2] * g00;
        const double g11 = 1.0 / sqrt(a[3] + shift - l10 * l10), l21 = (a[4] - l10 * l20) * g11;
        const double g22 = 1.0 / sqrt(a[5] + shift - l20 * l20 - l21 * l21);
        const double g10 = -l10 * g00 * g11, g21 = -l21 * g11 * g22, g20 = -(l20 * g00 + l21 * g10) * g22;
        c[0] = g00 * g00 + g10 * g10 + g20 * g20;
        c[1] = g10 * g11 + g20 * g21;
        c[2] = g20 * g22;
        c[3] = g11 * g11 + g21 * g21;
        c[4] = g21 * g22;
        c[5] = g22 * g22;
        x[0] = c[0] * b[0] + c[1] * b[1] + c[2] * b[2];
        x[1] = c[1] * b[0] + c[3] * b[1] + c[4] * b[2];
        x[2] = c[2] * b[0] + c[4] * b[1] + c[5] * b[2];
    }
};

__device__ double largest(const double v[3]) { return fmax(fabs(v[0]), fmax(fabs(v[1]), fabs(v[2]))); }

// Lanes that share the photographs of one pixel in sbl_em, which runs for up to hundreds of iterations.
#ifndef SHARING
#define SHARING 8
#endif

// The sum over the lanes of one pixel, the same bits in all of them.
__device__ void sum_over_lanes(System& system, unsigned lanes) {
    for (int step = SHARING / 2; step > 0; step /= 2) {
        for (int k = 0; k < 6; ++k) system.a[k] += __shfl_xor_sync(lanes, system.a[k], step, SHARING);
        for (int k = 0; k < 3; ++k) system.b[k] += __shfl_xor_sync(lanes, system.b[k], step, SHARING);
    }
}

// Expectation maximization of sparse Bayesian learning; see sbl_em in kernels.py. scratch: 2 x N x d.
// Launched with SHARING threads per pixel.
extern "C" __global__ void sbl_em(const INTENSITY* Y, const DIRECTION* lights, const double* scale, double noise,
                                  double prior_variance, double tol, double settled, int max_iter, double* n,
                                  long long* iterations, float* weights, double* scratch, int count, int d,
                                  int keep, int own) {
    const int i = (blockIdx.x * blockDim.x + threadIdx.x) / SHARING, lane = threadIdx.x % SHARING;
    if (i >= count) return;
    const unsigned lanes = ((1u << SHARING) - 1u) << (threadIdx.x % 32 / SHARING * SHARING);
    const DIRECTION* L = lights + (size_t)i * own;
    const double top = scale[i];
    if (top == 0.0) {
        if (lane < 3) n[3 * i + lane] = 0.0;
        if (lane == 0) iterations[i] = 0;
        for (int j = lane; keep && j < d; j += SHARING) weights[(size_t)i * d + j] = 1.0f;
        return;
    }
    double *y = scratch + (size_t)i * d, *gamma = y + (size_t)count * d;
    System system;
    for (int j = lane; j < d; j += SHARING) {
        y[j] = Y[(size_t)i * d + j] / top;
        gamma[j] = 1.0;
        system.add(1.0 / (1.0 + noise), LIGHT(0, j), LIGHT(1, j), LIGHT(2, j), y[j]);
    }
    double x[3] = {0, 0, 0}, c[6], step = 0.0;
    long long done = -max_iter;
    for (int it = 0; it < max_iter; ++it) {
        sum_over_lanes(system, lanes);
        double z[3];
        system.solve(1.0 / prior_variance, c, z);
        const double moved[3] = {z[0] - x[0], z[1] - x[1], z[2] - x[2]};
        step = largest(moved);
        for (int k = 0; k < 3; ++k) x[k] = z[k];
        if (step < tol) {
            done = it + 1;
            break;
        }
        system = System();
        for (int j = lane; j < d; j += SHARING) {
            const double p0 = LIGHT(0, j), p1 = LIGHT(1, j), p2 = LIGHT(2, j), value = y[j], old = gamma[j];
            const double r = value - (p0 * x[0] + p1 * x[1] + p2 * x[2]);
            const double spread = p0 * (c[0] * p0 + 2.0 * (c[1] * p1 + c[2] * p2)) +
                                  p1 * (c[3] * p1 + 2.0 * c[4] * p2) + p2 * c[5] * p2;
            const double k = old / (old + noise);
            const double g = fmax(k * (k * (r * r + spread) + noise), 1e-10);
            gamma[j] = g;
            system.add(1.0 / (g + noise), p0, p1, p2, value);
        }
    }
    if (lane == 0) {
        for (int k = 0; k < 3; ++k) n[3 * i + k] = x[k] * top;
        iterations[i] = done < 0 && step < settled ? max_iter : done;
    }
    for (int j = lane; keep && j < d; j += SHARING) weights[(size_t)i * d + j] = noise / (noise + gamma[j]);
}

// The weighted system of every pixel at given normals; see reweigh in kernels.py. n (problems, N, 3),
// and the outputs likewise.
extern "C" __global__ void reweigh(const INTENSITY* Y, const DIRECTION* lights, const double* n,
                                   const double* threshold, double* gram, double* moment, double* rest,
                                   int problems, int count, int d, int redescending, int own) {
    EACH_PIXEL(k, problems * count) {
        const int i = k % count;
        const DIRECTION* L = lights + (size_t)i * own;
        const double tau = threshold[i], root = sqrt(tau), *x = n + 3 * (size_t)k;
        System system;
        double energy = 0.0, dual = 0.0;
        for (int j = 0; j < d; ++j) {
            const double y = Y[(size_t)i * d + j], r = y - SHADE(j, x);
            double w = 1.0;
            if (r * r > tau && tau > 0.0) {
                w = redescending ? tau / (r * r) : root / fabs(r);
                dual += redescending ? -tau * log(w) : root * fabs(r) - tau;
            }
            system.add(w, LIGHT(0, j), LIGHT(1, j), LIGHT(2, j), y);
            energy += w * y * y;
        }
        for (int c = 0; c < 6; ++c) gram[6 * (size_t)k + c] = system.a[c];
        for (int c = 0; c < 3; ++c) moment[3 * (size_t)k + c] = system.b[c];
        rest[k] = energy + dual;
    }
}

// Inverse of the matrix whose rows are the three lights of the basis; false if they are dependent.
__device__ bool inverse_rows(const DIRECTION* L, int d, const int basis[3], double inverse[3][3]) {
    double a[3], b[3], c[3];
    for (int k = 0; k < 3; ++k) {
        a[k] = LIGHT(k, basis[0]);
        b[k] = LIGHT(k, basis[1]);
        c[k] = LIGHT(k, basis[2]);
    }
    double det = 0.0;
    for (int k = 0; k < 3; ++k) {
        const int p = (k + 1) % 3, q = (k + 2) % 3;
        inverse[k][0] = b[p] * c[q] - b[q] * c[p];
        inverse[k][1] = c[p] * a[q] - c[q] * a[p];
        inverse[k][2] = a[p] * b[q] - a[q] * b[p];
        det += a[k] * inverse[k][0];
    }
    if (fabs(det) < 1e-9) return false;
    for (int k = 0; k < 3; ++k)
        for (int m = 0; m < 3; ++m) inverse[k][m] /= det;
    return true;
}

// The photograph whose |residual| comes next after that of `last` (-1: the smallest), or -1.
__device__ int next_smallest(Column r, int d, int last) {
    int best = -1;
    for (int j = 0; j < d; ++j) {
        const double value = fabs(r[j]);
        if (last >= 0 && (value < fabs(r[last]) || (value == fabs(r[last]) && j <= last))) continue;
        if (best < 0 || value < fabs(r[best])) best = j;
    }
    return best;
}

__device__ bool nearest_vertex(Column r, const DIRECTION* L, int d, int basis[3], double inverse[3][3]) {
    basis[0] = next_smallest(r, d, -1);
    int &second = basis[1], &third = basis[2];
    for (second = next_smallest(r, d, basis[0]); second >= 0; second = next_smallest(r, d, second))
        for (third = next_smallest(r, d, second); third >= 0; third = next_smallest(r, d, third))
            if (inverse_rows(L, d, basis, inverse)) return true;
    return false;
}

__device__ void fit_basis(Column y, const int basis[3], const double inverse[3][3], double x[3]) {
    for (int c = 0; c < 3; ++c)
        x[c] = inverse[c][0] * y[basis[0]] + inverse[c][1] * y[basis[1]] + inverse[c][2] * y[basis[2]];
}

// Descent along edges to a proven minimizer of sum |y_j - l_j . x|; see _l1_vertex in absolute_kernels.py.
__device__ bool vertex_descent(Column y, const DIRECTION* L, int d, double x[3], Column r, int basis[3]) {
    double inverse[3][3];
    for (int j = 0; j < d; ++j) r[j] = y[j] - SHADE(j, x);
    if (!nearest_vertex(r, L, d, basis, inverse)) return false;
    for (int turn = 0; turn < 4 * d; ++turn) {
        fit_basis(y, basis, inverse, x);
        double g[3] = {0, 0, 0};
        for (int j = 0; j < d; ++j) {
            const double rest = y[j] - SHADE(j, x);
            r[j] = rest;
            if (j == basis[0] || j == basis[1] || j == basis[2]) continue;
            const double sign = rest > 0.0 ? 1.0 : -1.0;
            for (int c = 0; c < 3; ++c) g[c] += sign * LIGHT(c, j);
        }
        double u[3];
        int leaving = 0;
        for (int b = 0; b < 3; ++b) {
            u[b] = -(g[0] * inverse[0][b] + g[1] * inverse[1][b] + g[2] * inverse[2][b]);
            if (fabs(u[b]) > fabs(u[leaving])) leaving = b;
        }
        if (fabs(u[leaving]) <= 1.0 + 1e-9) return true;
        const double side = u[leaving] > 0.0 ? -1.0 : 1.0;
        const double edge[3] = {side * inverse[0][leaving], side * inverse[1][leaving], side *
        inverse[2][leaving]}; double slope = 1.0 - fabs(u[leaving]), passed = 0.0;
        int entering = -1;
        while (slope < 0.0) {
            double nearest = 1e308, rise = 0.0;
            entering = -1;
            for (int j = 0; j < d; ++j) {
                if (j == basis[0] || j == basis[1] || j == basis[2]) continue;
                const double s = SHADE(j, edge), rest = r[j];
                if (rest * s > 0.0) {
                    const double t = rest / s;
                    if (t > passed && t < nearest) {
                        nearest = t;
                        entering = j;
                        rise = 2.0 * fabs(s);
                    }
                }
            }
            if (entering < 0) return false;
            passed = nearest;
            slope += rise;
        }
        basis[leaving] = entering;
        if (!inverse_rows(L, d, basis, inverse)) return false;
    }
    return false;
}

__device__ double absolute_sum(Column y, const DIRECTION* L, int d, const double x[3]) {
    double total = 0.0;
    for (int j = 0; j < d; ++j) total += fabs(y[j] - SHADE(j, x));
    return total;
}

// Least absolute residuals; see l1_regression in absolute_kernels.py. scratch: 3 x d x N.
extern "C" __global__ void l1_regression(const INTENSITY* Y, const DIRECTION* lights, const double* start, double
floor_,
                                         double tol, int max_iter, double* n, long long* iterations,
                                         double* scratch, int count, int d, int own) {
    EACH_PIXEL(i, count) {
        const DIRECTION* L = lights + (size_t)i * own;
        const size_t each = (size_t)d * count;
        const Column y = {scratch + i, count}, r = {scratch + each + i, count}, nudged = {scratch + 2 * each +
        i, count}; double top = 0.0;
        for (int j = 0; j < d; ++j) top = fmax(top, fabs((double)Y[(size_t)i * d + j]));
        if (top == 0.0) {
            n[3 * i] = n[3 * i + 1] = n[3 * i + 2] = 0.0;
            iterations[i] = 0;
            continue;
        }
        for (int j = 0; j < d; ++j) y[j] = Y[(size_t)i * d + j] / top;
        double x[3], c[6];
        for (int k = 0; k < 3; ++k) x[k] = start[3 * i + k] / top;
        long long done = -max_iter;
        for (int it = 0; it < max_iter; ++it) {
            System system;
            for (int j = 0; j < d; ++j) {
                const double rest = y[j] - SHADE(j, x);
                system.add(1.0 / fmax(fabs(rest), floor_), LIGHT(0, j), LIGHT(1, j), LIGHT(2, j), rest);
            }
            double step[3];
            system.solve(0.0, c, step);
            for (int k = 0; k < 3; ++k) x[k] += step[k];
            if (largest(step) < tol) {
                done = it + 1;
                break;
            }
        }
        const double before = absolute_sum(y, L, d, x);
        double vertex[3] = {x[0], x[1], x[2]}, inverse[3][3];
        int basis[3];
        bool proven = vertex_descent(y, L, d, vertex, r, basis);
        if (!proven) {  // more than three exact fits: the optimal basis of a problem moved by less than 1e-9
            for (int j = 0; j < d; ++j) {
                const double hashed = 1e4 * sin(12.9898 * LIGHT(0, j) + 78.233 * LIGHT(1, j) + 37.719 *
                LIGHT(2, j)); nudged[j] = y[j] + 1e-9 * (hashed - floor(hashed) - 0.5);
            }
            for (int k = 0; k < 3; ++k) vertex[k] = x[k];
            proven = vertex_descent(nudged, L, d, vertex, r, basis);
            if (proven && inverse_rows(L, d, basis, inverse)) fit_basis(y, basis, inverse, vertex);
        }
        if (proven && absolute_sum(y, L, d, vertex) <= before + 1e-8) {
            for (int k = 0; k < 3; ++k) x[k] = vertex[k];
            done = done < 0 ? -done : done;
        }
        for (int k = 0; k < 3; ++k) n[3 * i + k] = x[k] * top;
        iterations[i] = done;
    }
}
