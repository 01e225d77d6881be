// Separable filters, both directions in one launch: the row filter goes from chunks of input rows into a stage in
// shared memory, the column filters read the stage. Shared memory has only the stage's rows; the input passes through
// two small buffers.

// Applies a row filter to a chunk of ROWS rows: CX outputs per item. Neighbouring threads take neighbouring *rows*, so
// that their vector accesses hit different banks, because both pitches are 16 bytes beyond a multiple of 128.
template <class T, int KW, int ROWS, int COLS, int PITCH_IN, int PITCH_OUT, int OFF, int CX, int THREADS>
HS_FN void hs_row_pass(const T* in, T* out, const T* taps) {
    constexpr int A = hs_lanes<T>(CX);
    constexpr int SKEW = OFF % A;
    constexpr int PIECE = 64;
    for (int i = threadIdx.x; i < ROWS * (COLS / CX); i += THREADS) {
        const int seg = i / ROWS, row = i - seg * ROWS;
        const T* p = in + row * PITCH_IN + seg * CX + (OFF - SKEW);
        T acc[CX];
#pragma unroll
        for (int c = 0; c < CX; ++c) acc[c] = (T)0;
        constexpr int WHOLE = KW <= PIECE ? 0 : KW / PIECE;
#pragma unroll 1
        for (int k0 = 0; k0 < WHOLE * PIECE; k0 += PIECE) {
            hs_span<T, A, CX + PIECE - 1 + SKEW> v;
            v.load(p + k0);
#pragma unroll
            for (int k = 0; k < PIECE; ++k)
#pragma unroll
                for (int c = 0; c < CX; ++c) acc[c] = hs_fma(taps[k0 + k], v.v[SKEW + k + c], acc[c]);
        }
        constexpr int REST = KW - WHOLE * PIECE;
        if (REST > 0) {
            hs_span<T, A, CX + REST - 1 + SKEW> v;
            v.load(p + WHOLE * PIECE);
#pragma unroll
            for (int k = 0; k < REST; ++k)
#pragma unroll
                for (int c = 0; c < CX; ++c) acc[c] = hs_fma(taps[WHOLE * PIECE + k], v.v[SKEW + k + c], acc[c]);
        }
        T* q = out + row * PITCH_OUT + seg * CX;
#pragma unroll
        for (int c = 0; c < CX; c += A) {
            hs_vec<T, A> t;
#pragma unroll
            for (int j = 0; j < A; ++j) t.v[j] = acc[c + j];
            *reinterpret_cast<hs_vec<T, A>*>(q + c) = t;
        }
    }
}

// Beyond the image, the column filters read the constant itself, not the row filter over it.
template <int BORDER_Y, int COLS, int PITCH, int THREADS, class T>
HS_FN void hs_constant_rows(T* stage, int rows, int height, int y0, T value) {
    if (BORDER_Y == HS_CONSTANT && (y0 < 0 || y0 + rows > height)) {
        for (int i = threadIdx.x; i < rows * COLS; i += THREADS) {
            const int r = i / COLS, y = y0 + r;
            if (y < 0 || y >= height) stage[r * PITCH + (i - r * COLS)] = value;
        }
        __syncthreads();
    }
}

// Fills `stage` with CHUNKS * ROWS rows of the row filter; the first is image row y0. Rows are continued with BORDER_Y,
// as the column filters read them, columns with BORDER_X. `buffer` has two chunks of the input. A chunk begins LEFT
// columns before x0; the filter does not read the first OFF.
template <int BORDER_Y, int BORDER_X, int KW, int CHUNKS, int ROWS, int COLS, int COLS_IN, int PITCH_IN, int PITCH,
          int LEFT, int OFF, int CX, int THREADS, class IMAGE, class T>
HS_FN void hs_stage(T* stage, T* buffer, const IMAGE& in, int y0, int x0, bool aligned, const T* taps,
                    T value_y, T value_x) {
    // A single copy of the loading code serves the first chunk too: it is most of the code to compile.
#pragma unroll 1
    for (int k = -1; k < CHUNKS; ++k) {
        const T* now = buffer + (k & 1) * (ROWS * PITCH_IN);
        T* next = buffer + ((k + 1) & 1) * (ROWS * PITCH_IN);
        if (k + 1 < CHUNKS)
            hs_load_tile<BORDER_Y, BORDER_X, ROWS, COLS_IN, PITCH_IN, THREADS>(next, in, y0 + (k + 1) * ROWS, x0 - LEFT,
                                                                               aligned, value_x);
        hs_commit();
        if (k < 0) continue;
        hs_wait<1>();
        __syncthreads();
        hs_row_pass<T, KW, ROWS, COLS, PITCH_IN, PITCH, OFF, CX, THREADS>(now, stage + k * ROWS * PITCH, taps);
        __syncthreads();
    }
    hs_constant_rows<BORDER_Y, COLS, PITCH, THREADS>(stage, CHUNKS * ROWS, in.height, y0, value_y);
}

// hs_stage for row filters of several sizes; `pass` selects one. The loading code exists once. `cols` columns from x0
// on are loaded.
template <int BORDER_Y, int BORDER_X, int ROWS, int COLS, int PITCH_IN, int PITCH, int THREADS, class T, class PASS>
HS_FN void hs_stage_any(T* stage, T* buffer, const hs_plane<T>& in, int y0, int x0, int cols, int chunks, bool aligned,
                        T value_y, T value_x, const PASS& pass) {
#pragma unroll 1
    for (int k = -1; k < chunks; ++k) {
        const T* now = buffer + (k & 1) * (ROWS * PITCH_IN);
        T* next = buffer + ((k + 1) & 1) * (ROWS * PITCH_IN);
        if (k + 1 < chunks)
            hs_load_loose_tile<BORDER_Y, BORDER_X, PITCH_IN, THREADS>(next, in, y0 + (k + 1) * ROWS, x0, ROWS, cols,
                                                                      aligned, value_x);
        hs_commit();
        if (k < 0) continue;
        hs_wait<1>();
        __syncthreads();
        pass(now, stage + k * ROWS * PITCH);
        __syncthreads();
    }
    hs_constant_rows<BORDER_Y, COLS, PITCH, THREADS>(stage, chunks * ROWS, in.height, y0, value_y);
}

template <int BORDER_Y, int BORDER_X, int KW, int CHUNKS, int ROWS, int COLS, int COLS_IN, int PITCH_IN, int PITCH,
          int LEFT, int OFF, int CX, int THREADS, class IMAGE, class T>
HS_CALLED void hs_stage_called(T* stage, T* buffer, const IMAGE in, int y0, int x0, bool aligned, const T* taps,
                               T value_y, T value_x) {
    hs_stage<BORDER_Y, BORDER_X, KW, CHUNKS, ROWS, COLS, COLS_IN, PITCH_IN, PITCH, LEFT, OFF, CX, THREADS>(
        stage, buffer, in, y0, x0, aligned, taps, value_y, value_x);
}

template <class T, int C> HS_FN void hs_load_pixels(const T* p, T (&v)[C]) {
    hs_span<T, hs_lanes<T>(C), C> s;
    s.load(p);
#pragma unroll
    for (int c = 0; c < C; ++c) v[c] = s.v[c];
}

// The last REST taps of a column. (No generic lambda: NVRTC 13.0 takes its call operator for a host function.)
template <class T, int R, int G, int PITCH, int REST, class Step>
HS_FN void hs_remainder(int rest, const T* stage, const T* taps, T (&w)[G][R], const Step& step) {
    if (rest != REST) return;
#pragma unroll
    for (int u = 0; u < REST; ++u) step(stage + u * PITCH, taps + u, u, 0, R - 1, true);
    // Rotates the ring to its initial position, so that the following code is the same for all remainders.
    T turned[G][R];
#pragma unroll
    for (int g = 0; g < G; ++g) {
#pragma unroll
        for (int r = 0; r < R; ++r) turned[g][r] = w[g][(r + REST) % R];
#pragma unroll
        for (int r = 0; r < R; ++r) w[g][r] = turned[g][r];
    }
}

// Column filters, G of them, over a stage, for R rows of C pixels. The steady state is a loop over R input rows: a ring
// of R taps per filter stays in registers, and one new tap serves R * C multiply-adds. The filters have `size` taps, at
// least R, whose remainder modulo R is among RESTS: one body serves all such sizes. Filters are `pitch` apart.
template <class T, int R, int C, int G, int PITCH, int... RESTS>
HS_FN void hs_column_looped(const T* stage, const T* taps, int pitch, int size, T (&acc)[G][R][C]) {
    T w[G][R];
    // One input row: its newest tap goes into the ring, then row r of the block takes the tap r before it.
    auto step = [&](const T* row, const T* tap, int slot, int first, int last, bool fresh) __attribute__((always_inline)) {
        T v[C];
        hs_load_pixels<T, C>(row, v);
        if (fresh) {
#pragma unroll
            for (int g = 0; g < G; ++g) w[g][slot] = tap[g * pitch];
        }
#pragma unroll
        for (int r = 0; r < R; ++r) {
            if (r < first || r > last) continue;
#pragma unroll
            for (int g = 0; g < G; ++g)
#pragma unroll
                for (int c = 0; c < C; ++c) acc[g][r][c] = hs_fma(w[g][(slot + R - r) % R], v[c], acc[g][r][c]);
        }
    };
#pragma unroll
    for (int u = 0; u < R; ++u) step(stage + u * PITCH, taps + u, u, 0, u, true);
#pragma unroll 1
    for (int b = 1; b < size / R; ++b) {
        stage += R * PITCH;
        taps += R;
#pragma unroll
        for (int u = 0; u < R; ++u) step(stage + u * PITCH, taps + u, u, 0, R - 1, true);
    }
    stage += R * PITCH;
    taps += R;
    const int only[] = {RESTS...}, rest = sizeof...(RESTS) == 1 ? only[0] : size % R;
    (hs_remainder<T, R, G, PITCH, RESTS>(rest, stage, taps, w, step), ...);
    stage += rest * PITCH;
#pragma unroll
    for (int u = 0; u < R - 1; ++u) step(stage + u * PITCH, taps, u, u + 1, R - 1, false);
}

// Column filters, G of them, of KH taps. With STATIC, everything is unrolled and the taps are kernel parameters, KH per
// filter; otherwise they are in shared memory.
template <class T, int KH, int R, int C, int G, int PITCH, bool STATIC>
HS_FN void hs_column(const T* stage, const T* taps, T (&acc)[G][R][C]) {
    // A loop that advances by less than a vector of taps: NVRTC 13.0 would still read vectors, at misaligned addresses.
    if (!STATIC && KH >= R && R * sizeof(T) % 16 == 0) {
        hs_column_looped<T, R, C, G, PITCH, KH % R>(stage, taps, KH, KH, acc);
        return;
    }
#pragma unroll
    for (int iy = 0; iy < KH + R - 1; ++iy) {
        T v[C];
        hs_load_pixels<T, C>(stage + iy * PITCH, v);
#pragma unroll
        for (int r = 0; r < R; ++r) {
            const int ky = iy - r;
            if (ky < 0 || ky >= KH) continue;
#pragma unroll
            for (int g = 0; g < G; ++g)
#pragma unroll
                for (int c = 0; c < C; ++c) acc[g][r][c] = hs_fma(taps[g * KH + ky], v[c], acc[g][r][c]);
        }
    }
}

template <class T, int KH, int R, int C, int G, int PITCH, bool STATIC>
HS_CALLED hs_block<T, R, C, G> hs_column_block(const T* stage, const T* taps) {
    hs_block<T, R, C, G> block;
    hs_start<hs_linear<T>>(block.v);
    hs_column<T, KH, R, C, G, PITCH, STATIC>(stage, taps, block.v);
    return block;
}

// hs_column, into a freshly started block.
template <class T, int KH, int R, int C, int G, int PITCH, bool STATIC>
HS_FN void hs_column_called(const T* stage, const T* taps, T (&acc)[G][R][C]) {
    hs_take_block(hs_column_block<T, KH, R, C, G, PITCH, STATIC>(stage, taps), acc);
}
