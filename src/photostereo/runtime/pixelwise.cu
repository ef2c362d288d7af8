// Small steps that a descent repeats for every pixel, one thread each: in plain torch they are dozens of launches.
//
// `total` counts pixels of all problems; arrays of fewer entries (`_count`) are shared by the problems.

#define EACH_PIXEL(k, total)                                                                       \
    for (long long k = (long long)blockIdx.x * blockDim.x + threadIdx.x; k < total;                 \
         k += (long long)gridDim.x * blockDim.x)

// (H + w I) n = b by an LDL^T factorisation; the text of `solve_symmetric_3x3`.
extern "C" __global__ void solve_shifted(const double* H, const double* w, const double* b, double* n, int H_count,
                                         int w_count, int total) {
    EACH_PIXEL(k, total) {
        const double* h = H + 6 * (k % H_count);
        const double shift = w[k % w_count];
        const double xx = h[0] + shift, xy = h[1], xz = h[2], yy = h[3] + shift, yz = h[4], zz = h[5] + shift;
        const double b0 = b[3 * k], b1 = b[3 * k + 1], b2 = b[3 * k + 2];
        const double l10 = xy / xx, l20 = xz / xx;
        const double d1 = yy - l10 * xy, e21 = yz - l20 * xy, l21 = e21 / d1;
        const double d2 = zz - l20 * xz - l21 * e21;
        const double z1 = b1 - l10 * b0, z2 = b2 - l20 * b0 - l21 * z1;
        const double x2 = z2 / d2, x1 = z1 / d1 - l21 * x2;
        n[3 * k] = b0 / xx - l10 * x1 - l20 * x2;
        n[3 * k + 1] = x1;
        n[3 * k + 2] = x2;
    }
}

// n^T H n.
extern "C" __global__ void quadratic_form(const double* H, const double* n, double* out, int H_count, int total) {
    EACH_PIXEL(k, total) {
        const double* h = H + 6 * (k % H_count);
        const double x = n[3 * k], y = n[3 * k + 1], z = n[3 * k + 2];
        out[k] = h[0] * x * x + h[3] * y * y + h[5] * z * z +
                 2.0 * (h[1] * x * y + h[2] * x * z + h[4] * y * z);
    }
}

// The angle between two vectors in degrees; 90 where either is zero.
extern "C" __global__ void angle_between(const double* a, const double* b, double* out, int b_count, int total) {
    EACH_PIXEL(k, total) {
        const double *p = a + 3 * k, *q = b + 3 * (k % b_count);
        const double x = p[1] * q[2] - p[2] * q[1], y = p[2] * q[0] - p[0] * q[2], z = p[0] * q[1] - p[1] * q[0];
        const bool known = (p[0] != 0.0 || p[1] != 0.0 || p[2] != 0.0) && (q[0] != 0.0 || q[1] != 0.0 || q[2] != 0.0);
        const double angle = atan2(sqrt(x * x + y * y + z * z), p[0] * q[0] + p[1] * q[1] + p[2] * q[2]);
        out[k] = known ? angle * 57.29577951308232 : 90.0;
    }
}
