// Dense filters over a tile in shared memory. A thread owns R rows of C consecutive pixels and G filters of one size;
// every pixel that it reads serves up to G * R * C accumulators. For one output the taps are taken row by row, which
// is the canonical order.

// The part K0..K0+KC of the columns of the filters, for input row iy of the thread's block.
template <class Op, class T, int KH, int KC, int TAP_PITCH, int R, int C, int G, int OFF, bool STATIC>
HS_FN void hs_dense_row(const T* row, const T* taps, int iy, T (&acc)[G][R][C]) {
    constexpr int A = hs_lanes<T>(C);
    constexpr int SKEW = OFF % A;
    constexpr int TA = STATIC ? 1 : 16 / (int)sizeof(T);
    hs_span<T, A, C + KC - 1 + SKEW> v;
    v.load(row + (OFF - SKEW));
#pragma unroll
    for (int r = 0; r < R; ++r) {
        const int ky = iy - r;
        if (ky < 0 || ky >= KH) continue;
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

// KH x KW taps per filter, rows TAP_PITCH apart. `tile` is where the thread's pixels begin; the filters' first column
// is OFF elements further. With STATIC everything is unrolled and `taps` are kernel parameters, which are operands of
// the multiply-adds at no cost; otherwise input rows are a loop, whose conditions are uniform, and `taps` are in shared
// memory, read as vectors by all threads at once.
template <class Op, class T, int KH, int KW, int TAP_PITCH, int R, int C, int G, int PITCH, int OFF, bool STATIC>
HS_FN void hs_dense(const T* tile, const T* taps, T (&acc)[G][R][C]) {
    constexpr int WHOLE = 48, PIECE = 32;
    if (STATIC) {
#pragma unroll
        for (int iy = 0; iy < KH + R - 1; ++iy)
            hs_dense_row<Op, T, KH, KW, TAP_PITCH, R, C, G, OFF, true>(tile + iy * PITCH, taps, iy, acc);
    } else if (KW <= WHOLE) {
#pragma unroll 1
        for (int iy = 0; iy < KH + R - 1; ++iy)
            hs_dense_row<Op, T, KH, KW, TAP_PITCH, R, C, G, OFF, false>(tile + iy * PITCH, taps, iy, acc);
    } else {
        constexpr int REST = KW <= WHOLE ? 1 : KW % PIECE;
#pragma unroll 1
        for (int iy = 0; iy < KH + R - 1; ++iy) {
            int k = 0;
#pragma unroll 1
            for (; k + PIECE <= KW; k += PIECE)
                hs_dense_row<Op, T, KH, PIECE, TAP_PITCH, R, C, G, OFF, false>(tile + iy * PITCH + k, taps + k, iy, acc);
            if (REST > 0)
                hs_dense_row<Op, T, KH, (REST > 0 ? REST : 1), TAP_PITCH, R, C, G, OFF, false>(
                    tile + iy * PITCH + k, taps + k, iy, acc);
        }
    }
}

template <class Op, class T, int R, int C, int G> HS_FN void hs_start(T (&acc)[G][R][C]) {
#pragma unroll
    for (int g = 0; g < G; ++g)
#pragma unroll
        for (int r = 0; r < R; ++r)
#pragma unroll
            for (int c = 0; c < C; ++c) acc[g][r][c] = Op::init();
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
