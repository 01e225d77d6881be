// Filters inside chains: straight from an image, around the requested pixels. Only programs with
// such chains include this file.

// A plane whose rows stand for all their copies: the input of a chain's filters.
template <class T> struct hs_unrolled {
    hs_plane<T> plane;
    int height, width, start, end;
    HS_FN_MEMBER explicit hs_unrolled(const hs_plane<T>& of)
        : plane(of), height(of.height), width(of.width), start(0), end(of.height) {}
    HS_FN_MEMBER T at(int y, int x) const { return plane.row(hs_held(plane, y))[x]; }
};

// The accumulator of a shift: its only pixel.
template <class T> struct hs_taken {
    static __device__ __forceinline__ T init() { return (T)0; }
    static __device__ __forceinline__ T step(T, T v, T) { return v; }
};

// A filter of N taps with the given reach, for R lines of C pixels, line r from (y[r], x[r]),
// straight from an image.
template <class Op, int BORDER, int N, int UP, int DOWN, int LEFT, int RIGHT, int R, int C, class IMAGE, class T>
HS_FN void hs_around(const IMAGE& in, const int (&y)[R], const int (&x)[R], const int (&dy)[N], const int (&dx)[N],
                     const T* taps, T v, T (&to)[R][C]) {
    const int top = max(0, in.start) + UP, bottom = min(in.height, in.end) - DOWN;
    bool inside = true;
#pragma unroll
    for (int r = 0; r < R; ++r)
        inside = inside && y[r] >= top && y[r] < bottom && x[r] >= LEFT && x[r] <= in.width - C - RIGHT;
    if (inside) {
#pragma unroll
        for (int r = 0; r < R; ++r)
#pragma unroll
            for (int c = 0; c < C; ++c) {
                T acc = Op::init();
#pragma unroll
                for (int k = 0; k < N; ++k) acc = Op::step(acc, in.at(y[r] + dy[k], x[r] + c + dx[k]), taps[k]);
                to[r][c] = acc;
            }
    } else {
        // Few pixels are at an edge: unrolling would only cost compile time.
#pragma unroll 1
        for (int i = 0; i < R * C; ++i) {
            const int r = i / C, c = i - r * C;
            T acc = Op::init();
#pragma unroll 1
            for (int k = 0; k < N; ++k)
                acc = Op::step(acc, hs_pixel<BORDER, BORDER>(in, y[r] + dy[k], x[r] + c + dx[k], v), taps[k]);
            to[r][c] = acc;
        }
    }
}

// The same for the pixels of a thread, from (y, x) on.
template <class Op, int BORDER, int N, int UP, int DOWN, int LEFT, int RIGHT, int R, int C, class IMAGE, class T>
HS_FN void hs_around_block(const IMAGE& in, int y, int x, const int (&dy)[N], const int (&dx)[N], const T* taps, T v,
                           T (&to)[R][C]) {
    int ys[R], xs[R];
#pragma unroll
    for (int r = 0; r < R; ++r) {
        ys[r] = y + r;
        xs[r] = x;
    }
    hs_around<Op, BORDER, N, UP, DOWN, LEFT, RIGHT>(in, ys, xs, dy, dx, taps, v, to);
}
