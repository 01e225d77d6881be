
// Resizing by kernels: weighted sums of runs of rows and columns.

// Pixel (y, x) of `rows` rows of `width` in plane `blockIdx.y`, one per thread. `runs` has the first row and the number
// of rows of each line, then of each column, counted from the first row in the buffer; `down` the weights of the rows,
// `taps` per line; `across` the weights of the columns, tap by tap. Adjacent threads take the samples of a pixel.
template <int THREADS, class T, class F>
HS_FN void hs_resize(const T* in, int in_width, const int* runs, const F* down, int taps, const F* across, int rows, int width,
                     T* out) {
    const i64 i = (i64)blockIdx.x * THREADS + threadIdx.x;
    const i64 line = (i64)width * HS_SAMPLES;
    if (i >= rows * line) return;
    const int y = (int)(i / line), e = (int)(i - y * line), x = e / HS_SAMPLES, sample = e - x * HS_SAMPLES;
    const int top = runs[2 * y], lines = runs[2 * y + 1];
    const int left = runs[2 * (rows + x)], columns = runs[2 * (rows + x) + 1];
    const F* w = down + (i64)y * taps;
    F sum = (F)0;
    for (int j = 0; j < columns; ++j) {
        const T* p = in + hs_place(top, left + j, 0, in_width) + sample;
        F column = (F)0;
        for (int k = 0; k < lines; ++k, p += (i64)in_width * HS_SAMPLES) column = hs_fma(w[k], hs_to<F>(__ldg(p)), column);
        sum = hs_fma(across[(i64)j * width + x], column, sum);
    }
    out[i] = hs_to<T>(sum);
}
