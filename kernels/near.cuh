// Filters of few taps near the pixel, from registers. Only programs with such filters include this file.

// Lines of C pixels from (y, x) on, all in the buffer: of a plane ...
template <class T, int ROWS, int C>
HS_FN void hs_lines(const hs_plane<T>& in, int y, int x, bool aligned, T (&to)[ROWS][C]) {
    constexpr int A = hs_lanes<T>(C);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const auto p = in.row(y + r) + x;
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
    static_assert(C == 16 / (int)sizeof(T), "chains compute whole vectors");
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
}

// The pixels of a thread, R rows of C from (y, x) on, and their surroundings, in registers. A warp is in one row of the
// block, which has HEIGHT x WIDTH pixels from (y0, x0) on: pixels to the left and right come from neighbouring threads.
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

// A row filter over all rows of a window whose first row is y, with N taps from column OFF of the window on. Beyond the
// image, the column filter reads the constant itself.
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

// Adds the next tap of a filter: pixels DY rows down and DX columns right in the window.
template <class Op, int DY, int DX, class T, int ROWS, int COLS, int R, int C>
HS_FN void hs_near(const T (&w)[ROWS][COLS], const T* tap, T (&acc)[R][C]) {
#pragma unroll
    for (int r = 0; r < R; ++r)
#pragma unroll
        for (int c = 0; c < C; ++c) acc[r][c] = Op::step(acc[r][c], w[r + DY][c + DX], *tap);
}
