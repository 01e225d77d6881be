// Leaves that read global memory pixel by pixel: samples of affine maps, and filters too large for any tile.

// Positions are fixed point with 32 fractional bits.
HS_FN int hs_whole(i64 p) { return (int)(p >> 32); }

template <class F> HS_FN F hs_lerp(F a, F b, F t) { return hs_fma(t, b - a, a); }

// True if the position of a pixel lies inside: see horus_core::ops::edge. `along` has the numbers of the rows, then of
// the columns.
HS_FN bool hs_within(const f64* along, int y, int x) {
    bool inside = true;
#pragma unroll
    for (int axis = 0; axis < 2; ++axis) {
        const f64* k = along + 6 * axis;
        const f64 position = (((f64)y + k[0]) * k[2] + ((f64)x + k[1]) * k[3]) + k[4];
        inside &= 0.0 <= position && position <= k[5];
    }
    return inside;
}

template <int BORDER, class T> HS_FN T hs_nearest(const hs_plane<T>& in, i64 py, i64 px, T v) {
    const int y = hs_whole(py + (1LL << 31)), x = hs_whole(px + (1LL << 31));
    return hs_pixel<BORDER, BORDER>(in, y, x, v);
}

// The pixels of a block from (y, x) on. INSIDE promises that the buffer has all of them; the few others are read by a
// function.
template <int BORDER, class IMAGE, class T> HS_CALLED T hs_edge_pixel(IMAGE in, int y, int x, T v) {
    return hs_pixel<BORDER, BORDER>(in, y, x, v);
}
template <bool INSIDE, int BORDER, class IMAGE, class T, int R, int C>
HS_FN void hs_moved(const IMAGE& in, int y, int x, T v, T (&to)[R][C]) {
#pragma unroll
    for (int r = 0; r < R; ++r)
#pragma unroll
        for (int c = 0; c < C; ++c) to[r][c] = INSIDE ? in.at(y + r, x + c) : hs_edge_pixel<BORDER>(in, y + r, x + c, v);
}

// True if the four pixels around a position are inside the image and in the buffer. If this holds for the corners of a
// block of pixels, it holds for all of them, because the map is affine.
template <class T> HS_FN bool hs_inside(const hs_plane<T>& in, i64 py, i64 px) {
    const int y = hs_whole(py), x = hs_whole(px);
    return x >= 0 && x < in.width - 1 && y >= max(0, in.start) && y < min(in.height, in.end) - 1;
}

// Samples pixels of type P, which T represents exactly. INSIDE promises that hs_inside is true. Without a condition,
// reads for several pixels overlap.
template <int BORDER, bool INSIDE, class P, class T> HS_FN T hs_bilinear(const hs_plane<P>& in, i64 py, i64 px, T v) {
    typedef typename hs_interp<T>::type F;
    const int y = hs_whole(py), x = hs_whole(px);
    T a, b, c, d;
    if (INSIDE) {
        const auto p = in.row(y) + x;
        a = hs_read(p);
        b = hs_read(p + 1);
        c = hs_read(p + HS_AT(in.width));
        d = hs_read(p + HS_AT(in.width) + 1);
    } else {
        a = hs_pixel<BORDER, BORDER>(in, y, x, v);
        b = hs_pixel<BORDER, BORDER>(in, y, x + 1, v);
        c = hs_pixel<BORDER, BORDER>(in, y + 1, x, v);
        d = hs_pixel<BORDER, BORDER>(in, y + 1, x + 1, v);
    }
    const F tx = hs_fraction<F>((u32)px), ty = hs_fraction<F>((u32)py);
    const F upper = hs_lerp(hs_to<F>(a), hs_to<F>(b), tx);
    const F lower = hs_lerp(hs_to<F>(c), hs_to<F>(d), tx);
    return hs_to<T>(hs_lerp(upper, lower, ty));
}

template <class F> HS_FN F hs_cubic_near(F x) {
    return hs_fma(hs_fma((F)1.5, x, (F)-2.5) * x, x, (F)1);
}
template <class F> HS_FN F hs_cubic_far(F x) {
    return hs_fma(hs_fma(hs_fma((F)-0.5, x, (F)2.5), x, (F)-4), x, (F)2);
}
template <class F> HS_FN void hs_cubic_weights(F t, F (&w)[4]) {
    w[0] = hs_cubic_far((F)1 + t);
    w[1] = hs_cubic_near(t);
    w[2] = hs_cubic_near((F)1 - t);
    w[3] = hs_cubic_far((F)2 - t);
}

template <int BORDER, class T> HS_FN T hs_bicubic(const hs_plane<T>& in, i64 py, i64 px, T v) {
    typedef typename hs_interp<T>::type F;
    const int y = hs_whole(py) - 1, x = hs_whole(px) - 1;
    F wx[4], wy[4];
    hs_cubic_weights(hs_fraction<F>((u32)px), wx);
    hs_cubic_weights(hs_fraction<F>((u32)py), wy);
    const int top = max(0, in.start), rows = min(in.height, in.end) - top;
    const bool inside = x >= 0 && x < in.width - 3 && y >= top && y - top < rows - 3;
    F sum = (F)0;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        F line = (F)0;
        const auto p = in.row(inside ? y + j : in.start) + x;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const T s = inside ? hs_read(p + i) : hs_pixel<BORDER, BORDER>(in, y + j, x + i, v);
            line = hs_fma(wx[i], hs_to<F>(s), line);
        }
        sum = hs_fma(wy[j], line, sum);
    }
    return hs_to<T>(sum);
}

// A dense filter straight from global memory.
template <class Op, int BORDER, class IMAGE, class T>
HS_FN T hs_direct_dense(const IMAGE& in, int y, int x, int kh, int kw, const T* taps, T v) {
    T acc = Op::init();
    for (int ky = 0; ky < kh; ++ky)
        for (int kx = 0; kx < kw; ++kx)
            acc = Op::step(acc, hs_pixel<BORDER, BORDER>(in, y + ky, x + kx, v), taps[ky * kw + kx]);
    return acc;
}

// A tap at an offset in pixels.
template <class T> struct hs_far_tap { T weight; int dy, dx; };

// A sparse filter straight from global memory.
template <class Op, int BORDER, class IMAGE, class T>
HS_FN T hs_direct_sparse(const IMAGE& in, int y, int x, const hs_far_tap<T>* taps, int count, T v) {
    T acc = Op::init();
    for (int k = 0; k < count; ++k)
        acc = Op::step(acc, hs_pixel<BORDER, BORDER>(in, y + taps[k].dy, x + taps[k].dx, v), taps[k].weight);
    return acc;
}

// A column filter over a row filter that is recomputed for every tap.
template <int BORDER_Y, int BORDER_X, class IMAGE, class T>
HS_FN T hs_direct_stage(const IMAGE& in, int y, int x, const T* row, int kw, const T* column, int kh, T value_y,
                        T value_x) {
    T acc = (T)0;
    for (int ky = 0; ky < kh; ++ky) {
        const bool constant = BORDER_Y == HS_CONSTANT && (u32)(y + ky) >= (u32)in.height;
        T line = (T)0;
        for (int kx = 0; kx < kw && !constant; ++kx)
            line = hs_fma(row[kx], hs_pixel<BORDER_Y, BORDER_X>(in, y + ky, x + kx, value_x), line);
        acc = hs_fma(column[ky], constant ? value_y : line, acc);
    }
    return acc;
}
