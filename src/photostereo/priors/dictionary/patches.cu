// Extract patches of normal maps and add them back, for several normal maps at once; see
// patches.py.
//
// Compiled at run time with REAL (float or double). Every output is written by one thread, in a fixed order.

// windows[g, j, c, y, x] += n[g, pixel at (row_j + y, col_j + x), c], zero outside the mask.
extern "C" __global__ void add_patches(const REAL* n, const int* pixel_index, const int* window_rows,
                                       const int* window_cols, REAL* windows, int problems, int pixels,
                                       int width, int n_windows, int w_y, int w_x) {
    const int area = w_y * w_x;
    const long long each = (long long)n_windows * area, all = each * problems;
    const long long stride = (long long)gridDim.x * blockDim.x;
    for (long long k = (long long)blockIdx.x * blockDim.x + threadIdx.x; k < all; k += stride) {
        const int g = k / each, j = (k % each) / area, y = (k % area) / w_x, x = k % w_x;
        const int pixel = pixel_index[(size_t)(window_rows[j] + y) * width + window_cols[j] + x];
        if (pixel < 0) continue;
        const REAL* from = n + ((size_t)g * pixels + pixel) * 3;
        REAL* to = windows + ((size_t)g * n_windows + j) * 3 * area + y * w_x + x;
        for (int c = 0; c < 3; ++c) to[c * area] += from[c];
    }
}

// out[g, pixel, c] = the sum of that pixel's value over all the windows that cover it.
// window_index (row starts, column starts, 3): index, top row and left column of a window.
extern "C" __global__ void sum_patches(const REAL* windows, const int* window_index, const int* positions,
                                       const int* first_row, const int* last_row, const int* first_col,
                                       const int* last_col, REAL* out, int problems, int pixels, int
                                       col_starts, int n_windows, int w_y, int w_x) {
    const int area = w_y * w_x;
    const long long all = (long long)problems * pixels;
    const long long stride = (long long)gridDim.x * blockDim.x;
    for (long long k = (long long)blockIdx.x * blockDim.x + threadIdx.x; k < all; k += stride) {
        const int g = k / pixels, pixel = k % pixels;
        const int row = positions[2 * pixel], col = positions[2 * pixel + 1];
        double sum[3] = {0.0, 0.0, 0.0};
        for (int a = first_row[pixel]; a < last_row[pixel]; ++a) {
            for (int b = first_col[pixel]; b < last_col[pixel]; ++b) {
                const int* window = window_index + ((size_t)a * col_starts + b) * 3;
                const REAL* from = windows + ((size_t)g * n_windows + window[0]) * 3 * area +
                                   (row - window[1]) * w_x + (col - window[2]);
                for (int c = 0; c < 3; ++c) sum[c] += from[c * area];
            }
        }
        for (int c = 0; c < 3; ++c) out[3 * k + c] = sum[c];
    }
}
