// Dense filters over a tile in shared memory. A thread owns R rows of C consecutive pixels and G
// filters of one size; every pixel that it reads serves up to G * R * C accumulators. For one
// output the taps are taken row by row, which is the canonical order.

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

// KC columns of the filters, for input row iy of the thread's block. FULL promises that every row
// of the block has a tap for it: without a condition, taps are loaded ahead of the multiply-adds
// that need them.
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

// One input row, STEP columns of the filters at a time: a loop whose body stays in the instruction
// cache.
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

// KH x KW taps per filter, rows TAP_PITCH apart. `tile` points to the thread's pixels; the filters'
// first column is OFF elements further. With STATIC everything is unrolled and `taps` are kernel
// parameters, which are operands of the multiply-adds at no cost; otherwise input rows are a loop
// and `taps` are in shared memory, read as vectors by all threads at once. PIECE is the number of
// filter columns in the body of that loop, a multiple of a vector; 0 chooses.
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
            // The first and the last rows that the block reads serve some of its rows only.
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

// As hs_dense, into a freshly started block.
template <class Op, class T, int KH, int KW, int TAP_PITCH, int R, int C, int G, int PITCH, int OFF, bool STATIC, int PIECE>
HS_FN void hs_dense_called(const T* tile, const T* taps, T (&acc)[G][R][C]) {
    hs_take_block(hs_dense_block<Op, T, KH, KW, TAP_PITCH, R, C, G, PITCH, OFF, STATIC, PIECE>(tile, taps), acc);
}

// ---- few taps near the pixel ---------------------------------------------------------------------------------------
// Lines of C pixels from (y, x) on, all of them held: of a plane ...
template <class T, int ROWS, int C>
HS_FN void hs_lines(const hs_plane<T>& in, int y, int x, bool aligned, T (&to)[ROWS][C]) {
    constexpr int A = hs_lanes<T>(C);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const T* p = in.row(y + r) + x;
        hs_span<T, A, C> line;
        if (aligned) {
            line.load(p);
        } else {
#pragma unroll
            for (int c = 0; c < C; ++c) line.v[c] = p[c];
        }
#pragma unroll
        for (int c = 0; c < C; ++c) to[r][c] = line.v[c];
    }
}

// ... or of a chain.
template <class CHAIN, class T, int ROWS, int C>
HS_FN void hs_lines(const CHAIN& in, int y, int x, bool aligned, T (&to)[ROWS][C]) {
    if constexpr (C == 16 / (int)sizeof(T)) {
        constexpr int AHEAD = CHAIN::AHEAD;
#pragma unroll
        for (int first = 0; first < ROWS; first += AHEAD) {
            int ys[AHEAD], xs[AHEAD];
            hs_vec<T, C> lines[AHEAD];
#pragma unroll
            for (int k = 0; k < AHEAD; ++k) {
                ys[k] = y + hs_min_int(first + k, ROWS - 1);
                xs[k] = x;
            }
            in.vectors(ys, xs, aligned, lines);
#pragma unroll
            for (int k = 0; k < AHEAD; ++k)
#pragma unroll
                for (int c = 0; c < C; ++c)
                    if (first + k < ROWS) to[first + k][c] = lines[k].v[c];
        }
    } else {
#pragma unroll
        for (int r = 0; r < ROWS; ++r)
#pragma unroll
            for (int c = 0; c < C; ++c) to[r][c] = in.at(y + r, x + c);
    }
}

// The pixels of a thread, R rows of C from (y, x) on, and what surrounds them, in registers. A warp
// is in one row of the block, which has HEIGHT x WIDTH pixels from (y0, x0) on: what is left and
// right of a thread's pixels comes from its neighbours.
template <int BORDER, int UP, int DOWN, int LEFT, int RIGHT, int HEIGHT, int WIDTH, int R, int C, class IMAGE, class T>
HS_FN void hs_load_window(const IMAGE& in, int y0, int x0, int y, int x, bool aligned, T v,
                          T (&w)[UP + R + DOWN][LEFT + C + RIGHT]) {
    constexpr int ROWS = UP + R + DOWN, COLS = LEFT + C + RIGHT;
    int columns[COLS];
#pragma unroll
    for (int c = 0; c < COLS; ++c) columns[c] = hs_map<BORDER>(x + c - LEFT, in.width);
    if (hs_holds(in, y0 - UP, y0 + HEIGHT + DOWN, x0, x0 + WIDTH)) {
        T own[ROWS][C];
        hs_lines(in, y - UP, x, aligned, own);
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
#pragma unroll
            for (int c = 0; c < C; ++c) w[r][LEFT + c] = own[r][c];
#pragma unroll
            for (int c = 0; c < LEFT; ++c) w[r][c] = __shfl_up_sync(~0u, own[r][C - LEFT + c], 1);
#pragma unroll
            for (int c = 0; c < RIGHT; ++c) w[r][LEFT + C + c] = __shfl_down_sync(~0u, own[r][c], 1);
        }
        const int lane = threadIdx.x % 32;
        if (lane == 0 || lane == 31) {
#pragma unroll
            for (int r = 0; r < ROWS; ++r)
#pragma unroll
                for (int c = 0; c < COLS; ++c)
                    if (c < LEFT ? lane == 0 : c >= LEFT + C && lane == 31)
                        w[r][c] = columns[c] < 0 ? v : in.at(y + r - UP, columns[c]);
        }
    } else {
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            bool constant;
            const int row = hs_row<BORDER>(in, y + r - UP, constant);
#pragma unroll
            for (int c = 0; c < COLS; ++c) w[r][c] = constant || columns[c] < 0 ? v : in.at(row, columns[c]);
        }
    }
}

// A row pass over all rows of a window, of which the first is row y, with N taps from column OFF of
// the window on. Beyond the image the column pass reads the constant itself.
template <int BORDER, int N, int OFF, class IMAGE, class T, int ROWS, int COLS, int C>
HS_FN void hs_near_rows(const IMAGE& in, int y, const T (&w)[ROWS][COLS], const T* taps, T v, T (&to)[ROWS][C]) {
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
#pragma unroll
        for (int c = 0; c < C; ++c) {
            T acc = (T)0;
#pragma unroll
            for (int k = 0; k < N; ++k) acc = hs_fma(taps[k], w[r][OFF + c + k], acc);
            to[r][c] = BORDER == HS_CONSTANT && (u32)(y + r) >= (u32)in.height ? v : acc;
        }
}

// The next tap of a filter: pixels DY rows down and DX columns right in the window.
template <class Op, int DY, int DX, class T, int ROWS, int COLS, int R, int C>
HS_FN void hs_near(const T (&w)[ROWS][COLS], const T* tap, T (&acc)[R][C]) {
#pragma unroll
    for (int r = 0; r < R; ++r)
#pragma unroll
        for (int c = 0; c < C; ++c) acc[r][c] = Op::step(acc[r][c], w[r + DY][c + DX], *tap);
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
