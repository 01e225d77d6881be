// Dense filters over a tile in shared memory. A thread owns R rows of C consecutive pixels and G filters of one size;
// every pixel that it reads serves up to G * R * C accumulators. One output adds its taps row by row, the canonical
// order.

template <class Op, class T, int R, int C, int G> HS_FN void hs_start(T (&acc)[G][R][C]) {
#pragma unroll
    for (int g = 0; g < G; ++g)
#pragma unroll
        for (int r = 0; r < R; ++r)
#pragma unroll
            for (int c = 0; c < C; ++c) acc[g][r][c] = Op::init();
}

// A block of pixels, as a return value.
template <class T, int R, int C, int G> struct hs_block { T v[G][R][C]; };

template <class T, int R, int C, int G> HS_FN void hs_take_block(const hs_block<T, R, C, G>& block, T (&acc)[G][R][C]) {
#pragma unroll
    for (int g = 0; g < G; ++g)
#pragma unroll
        for (int r = 0; r < R; ++r)
#pragma unroll
            for (int c = 0; c < C; ++c) acc[g][r][c] = block.v[g][r][c];
}

// KC columns of the filters, for input row iy of the thread's block. FULL promises that every row of the block has a
// tap for it. Without a condition, taps are loaded ahead of the multiply-adds that use them.
template <class Op, class T, int KH, int KC, int TAP_PITCH, int R, int C, int G, int OFF, bool STATIC, bool FULL>
HS_FN void hs_dense_row(const T* row, const T* taps, int iy, T (&acc)[G][R][C]) {
    constexpr int A = hs_lanes<T>(C);
    constexpr int SKEW = OFF % A;
    constexpr int TA = STATIC ? 1 : 16 / (int)sizeof(T);
    hs_span<T, A, C + KC - 1 + SKEW> v;
    v.load(row + (OFF - SKEW));
#pragma unroll
    for (int r = 0; r < R; ++r) {
        const int ky = iy - r;
        if (!FULL && (ky < 0 || ky >= KH)) continue;
#pragma unroll
        for (int g = 0; g < G; ++g) {
            hs_span<T, TA, KC> w;
            w.load(taps + (g * KH + ky) * TAP_PITCH);
#pragma unroll
            for (int k = 0; k < KC; ++k) {
#pragma unroll
                for (int c = 0; c < C; ++c) acc[g][r][c] = Op::step(acc[g][r][c], v.v[SKEW + c + k], w.v[k]);
            }
        }
    }
}

// One input row, STEP columns of the filters at a time: a loop whose body stays in the instruction cache.
template <class Op, class T, int KH, int KW, int STEP, int TAP_PITCH, int R, int C, int G, int OFF, bool FULL>
HS_FN void hs_dense_pieces(const T* row, const T* taps, int iy, T (&acc)[G][R][C]) {
    constexpr int REST = KW % STEP;
    int k = 0;
#pragma unroll 1
    for (; k + STEP <= KW; k += STEP)
        hs_dense_row<Op, T, KH, STEP, TAP_PITCH, R, C, G, OFF, false, FULL>(row + k, taps + k, iy, acc);
    if (REST > 0)
        hs_dense_row<Op, T, KH, (REST > 0 ? REST : 1), TAP_PITCH, R, C, G, OFF, false, FULL>(row + k, taps + k, iy, acc);
}

// KH x KW taps per filter, rows TAP_PITCH apart. `tile` points to the thread's pixels; the filters' first column is OFF
// elements further. With STATIC, everything is unrolled and `taps` are kernel parameters, which cost nothing as
// operands of the multiply-adds. Otherwise input rows are a loop, and all threads at once read vectors of `taps` from
// shared memory. PIECE is the number of filter columns in the body of that loop, a multiple of a vector; 0 chooses.
template <class Op, class T, int KH, int KW, int TAP_PITCH, int R, int C, int G, int PITCH, int OFF, bool STATIC, int PIECE>
HS_FN void hs_dense(const T* tile, const T* taps, T (&acc)[G][R][C]) {
    constexpr int STEP = PIECE > 0 && PIECE < KW ? PIECE : KW <= 48 ? KW : 32;
    if (STATIC) {
#pragma unroll
        for (int iy = 0; iy < KH + R - 1; ++iy)
            hs_dense_row<Op, T, KH, KW, TAP_PITCH, R, C, G, OFF, true, false>(tile + iy * PITCH, taps, iy, acc);
    } else {
#pragma unroll 1
        for (int iy = 0; iy < KH + R - 1; ++iy) {
            const T* row = tile + iy * PITCH;
            // The first and the last rows that the block reads serve only some of its rows.
            if (iy >= R - 1 && iy < KH)
                hs_dense_pieces<Op, T, KH, KW, STEP, TAP_PITCH, R, C, G, OFF, true>(row, taps, iy, acc);
            else
                hs_dense_pieces<Op, T, KH, KW, STEP, TAP_PITCH, R, C, G, OFF, false>(row, taps, iy, acc);
        }
    }
}

template <class Op, class T, int KH, int KW, int TAP_PITCH, int R, int C, int G, int PITCH, int OFF, bool STATIC, int PIECE>
HS_CALLED hs_block<T, R, C, G> hs_dense_block(const T* tile, const T* taps) {
    hs_block<T, R, C, G> block;
    hs_start<Op>(block.v);
    hs_dense<Op, T, KH, KW, TAP_PITCH, R, C, G, PITCH, OFF, STATIC, PIECE>(tile, taps, block.v);
    return block;
}

// hs_dense, into a freshly started block.
template <class Op, class T, int KH, int KW, int TAP_PITCH, int R, int C, int G, int PITCH, int OFF, bool STATIC, int PIECE>
HS_FN void hs_dense_called(const T* tile, const T* taps, T (&acc)[G][R][C]) {
    hs_take_block(hs_dense_block<Op, T, KH, KW, TAP_PITCH, R, C, G, PITCH, OFF, STATIC, PIECE>(tile, taps), acc);
}

// ---- sparse filters -----------------------------------------------------------------------------------------------
// A tap at an offset: elements of shared memory from the pixel.
template <class T> struct hs_tap { T weight; int offset; };

template <class Op, class T, int R, int C, int PITCH>
HS_FN void hs_sparse(const T* tile, const hs_tap<T>* taps, int count, T (&acc)[R][C]) {
#pragma unroll 4
    for (int k = 0; k < count; ++k) {
        const hs_tap<T> t = taps[k];
        const T* p = tile + t.offset;
#pragma unroll
        for (int r = 0; r < R; ++r)
#pragma unroll
            for (int c = 0; c < C; ++c) acc[r][c] = Op::step(acc[r][c], p[r * PITCH + c], t.weight);
    }
}
