// Shifts inside chains: straight from an image, around the requested pixels. Only programs with such chains include
// this file.

// A plane whose rows represent all their copies: the input of a chain's shifts.
template <class T> struct hs_unrolled {
    hs_plane<T> plane;
    int height, width, start, end;
    HS_FN_MEMBER explicit hs_unrolled(const hs_plane<T>& of)
        : plane(of), height(of.height), width(of.width), start(0), end(of.height) {}
    HS_FN_MEMBER T at(int y, int x) const { return plane.row(hs_held(plane, y))[x]; }
};

// Pixels at an offset from R lines of C pixels, line r from (y[r], x[r]), straight from an image.
template <int BORDER, int R, int C, class IMAGE, class T>
HS_FN void hs_shifted(const IMAGE& in, const int (&y)[R], const int (&x)[R], int dy, int dx, T v, T (&to)[R][C]) {
    const int top = max(0, in.start), bottom = min(in.height, in.end);
    bool inside = true;
#pragma unroll
    for (int r = 0; r < R; ++r)
        inside = inside && y[r] + dy >= top && y[r] + dy < bottom && x[r] + dx >= 0 && x[r] + dx <= in.width - C;
    if (inside) {
#pragma unroll
        for (int r = 0; r < R; ++r)
#pragma unroll
            for (int c = 0; c < C; ++c) to[r][c] = in.at(y[r] + dy, x[r] + c + dx);
    } else {
        // Few pixels are at an edge: unrolling would only cost compile time.
#pragma unroll 1
        for (int i = 0; i < R * C; ++i) {
            const int r = i / C, c = i - r * C;
            to[r][c] = hs_pixel<BORDER, BORDER>(in, y[r] + dy, x[r] + c + dx, v);
        }
    }
}
