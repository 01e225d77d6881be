// Kernels that only move pixels: tables, orders of samples and transposition.

// out[i] = table[in[i] - smallest] for `count` pixels. A block of THREADS threads takes THREADS * EACH pixels.
template <int THREADS, int EACH, class S, class T> HS_FN void hs_lookup(const S* in, const T* table, i64 count, T* out) {
    const i64 first = (i64)blockIdx.x * (THREADS * EACH), last = min(first + THREADS * EACH, count);
    for (i64 i = first + threadIdx.x; i < last; i += THREADS) out[i] = table[(int)in[i] - (int)hs_limits<S>::lo];
}

// Rows [row0, row1) of a transposed plane: its pixel (y, x) is pixel (x, y) of `in`. A block of SIDE * DOWN threads
// transposes a square of SIDE rows and columns; `across` squares are side by side. The buffers begin at rows `in_start`
// and `out_start`; `tile` is padded by a column against bank conflicts.
template <int SIDE, int DOWN, class T>
HS_FN void hs_transpose(const T* in, int in_start, int in_width, T* tile, T* out, int out_start, int width, int row0, int row1,
                        int across) {
    constexpr int PITCH = SIDE + 1;
    const int x0 = (int)(blockIdx.x % across) * SIDE, y0 = row0 + (int)(blockIdx.x / across) * SIDE;
    const int a = threadIdx.x % SIDE, b = threadIdx.x / SIDE;
    for (int i = b; i < SIDE; i += DOWN)
        if (x0 + i < width && y0 + a < row1) tile[i * PITCH + a] = in[(i64)(x0 + i - in_start) * in_width + y0 + a];
    __syncthreads();
    for (int i = b; i < SIDE; i += DOWN)
        if (x0 + a < width && y0 + i < row1) out[(i64)(y0 + i - out_start) * width + x0 + a] = tile[a * PITCH + i];
}

// Planes of C channels from interleaved samples, and back, of `count` pixels of each level. A thread takes one pixel, a
// row of blocks one level.
template <int THREADS, int C, class T> HS_FN void hs_deinterleave(const T* in, i64 in_plane, T* out, i64 out_plane, i64 count) {
    const i64 i = (i64)blockIdx.x * THREADS + threadIdx.x;
    if (i >= count) return;
    in += blockIdx.y * in_plane + i * C;
    out += blockIdx.y * C * out_plane + i;
#pragma unroll 4
    for (int c = 0; c < C; ++c) out[c * out_plane] = in[c];
}

template <int THREADS, int C, class T> HS_FN void hs_interleave(const T* in, i64 in_plane, T* out, i64 out_plane, i64 count) {
    const i64 i = (i64)blockIdx.x * THREADS + threadIdx.x;
    if (i >= count) return;
    in += blockIdx.y * C * in_plane + i;
    out += blockIdx.y * out_plane + i * C;
#pragma unroll 4
    for (int c = 0; c < C; ++c) out[c] = in[c * in_plane];
}

// Running sums along the levels: a thread takes one pixel of a channel, level by level.
template <int THREADS, class T>
HS_FN void hs_running_depth(const T* in, i64 in_plane, f64* out, i64 out_plane, i64 count, int levels, int channels) {
    const i64 i = (i64)blockIdx.x * THREADS + threadIdx.x;
    if (i >= count) return;
    in += blockIdx.y * in_plane + i;
    out += blockIdx.y * out_plane + i;
    f64 sum = (f64)in[0];
    out[0] = sum;
    in_plane *= channels;
    out_plane *= channels;
#pragma unroll 4
    for (int z = 1; z < levels; ++z) {
        sum += (f64)in[z * in_plane];
        out[z * out_plane] = sum;
    }
}
