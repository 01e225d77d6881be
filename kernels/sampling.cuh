// Samples at positions given by the pixels of other images, with the arithmetic of horus_core::ops::sampling.

enum { HS_NEAREST, HS_LINEAR, HS_CUBIC, HS_SPLINE2, HS_SPLINE3, HS_SPLINE4, HS_SPLINE5 };

template <int HOW> struct hs_sampling {
    static constexpr int TAPS = HOW == HS_NEAREST  ? 1
                                : HOW == HS_LINEAR ? 2
                                : HOW == HS_SPLINE2 ? 3
                                : HOW == HS_CUBIC || HOW == HS_SPLINE3 ? 4
                                : HOW == HS_SPLINE4 ? 5
                                                    : 6;
    static constexpr bool FROM_NEAREST = HOW == HS_NEAREST || HOW == HS_SPLINE2 || HOW == HS_SPLINE4;
};

template <class F, int N> HS_FN F hs_polynomial(const f64 (&c)[N], f64 divisor, F t) {
    F sum = (F)(c[0] / divisor);
#pragma unroll
    for (int k = 1; k < N; ++k) sum = hs_fma(sum, t, (F)(c[k] / divisor));
    return sum;
}
template <class F, int N, int M> HS_FN void hs_polynomials(const f64 (&c)[N][M], f64 divisor, F t, F (&w)[N]) {
#pragma unroll
    for (int k = 0; k < N; ++k) w[k] = hs_polynomial(c[k], divisor, t);
}

// The pixels under a sample on a line of n, or -1 where the constant is read, and their weights.
template <int HOW, class F> struct hs_taps {
    static constexpr int N = hs_sampling<HOW>::TAPS;
    int at[N];
    F t;
    F w[N];

    // Returns true if the position is not a NaN.
    template <int BORDER> HS_FN_MEMBER bool find(f64 position, int n) {
        if (!(position - position == 0.0)) return false;
        const f64 far = 1 << 30;
        position = position < -far ? -far : position > far ? far : position;
        const f64 whole = floor(hs_sampling<HOW>::FROM_NEAREST ? position + 0.5 : position);
        const int first = (int)whole - (N - 1) / 2;
        t = (F)(position - whole);
#pragma unroll
        for (int k = 0; k < N; ++k) at[k] = hs_map<BORDER>(first + k, n);
        weigh();
        return true;
    }

    HS_FN_MEMBER void weigh() {
        if constexpr (HOW == HS_CUBIC) {
            hs_cubic_weights(t, w);
        } else if constexpr (HOW == HS_SPLINE2) {
            const f64 c[3][3] = {{4, -4, 1}, {-8, 0, 6}, {4, 4, 1}};
            hs_polynomials(c, 8.0, t, w);
        } else if constexpr (HOW == HS_SPLINE3) {
            const f64 c[4][4] = {{-1, 3, -3, 1}, {3, -6, 0, 4}, {-3, 3, 3, 1}, {1, 0, 0, 0}};
            hs_polynomials(c, 6.0, t, w);
        } else if constexpr (HOW == HS_SPLINE4) {
            const f64 c[5][5] = {{16, -32, 24, -8, 1},
                                 {-64, 64, 96, -176, 76},
                                 {96, 0, -240, 0, 230},
                                 {-64, -64, 96, 176, 76},
                                 {16, 32, 24, 8, 1}};
            hs_polynomials(c, 384.0, t, w);
        } else if constexpr (HOW == HS_SPLINE5) {
            const f64 c[6][6] = {{-1, 5, -10, 10, -5, 1},  {5, -20, 20, 20, -50, 26}, {-10, 30, 0, -60, 0, 66},
                                 {10, -20, -20, 20, 50, 26}, {-5, 5, 10, 10, 5, 1},     {1, 0, 0, 0, 0, 0}};
            hs_polynomials(c, 120.0, t, w);
        }
    }
};

// The sampled planes, `plane` pixels apart.
template <class T> struct hs_sampled {
    const T* data;
    i64 plane;
    int width;
    HS_FN_MEMBER T at(i64 p, int y, int x, T v) const {
        return p < 0 || y < 0 || x < 0 ? v : __ldg(data + p * plane + (i64)y * width + x);
    }
};

// A sample in plane p, unrounded.
template <int HOW, class T, class F>
HS_FN F hs_in_plane(const hs_sampled<T>& in, i64 p, const hs_taps<HOW, F>& y, const hs_taps<HOW, F>& x, T v) {
    if constexpr (HOW == HS_LINEAR) {
        const F a = hs_to<F>(in.at(p, y.at[0], x.at[0], v)), b = hs_to<F>(in.at(p, y.at[0], x.at[1], v));
        const F c = hs_to<F>(in.at(p, y.at[1], x.at[0], v)), d = hs_to<F>(in.at(p, y.at[1], x.at[1], v));
        return hs_lerp(hs_lerp(a, b, x.t), hs_lerp(c, d, x.t), y.t);
    } else {
        F sum = (F)0;
#pragma unroll
        for (int j = 0; j < hs_sampling<HOW>::TAPS; ++j) {
            F line = (F)0;
#pragma unroll
            for (int i = 0; i < hs_sampling<HOW>::TAPS; ++i)
                line = hs_fma(x.w[i], hs_to<F>(in.at(p, y.at[j], x.at[i], v)), line);
            sum = hs_fma(y.w[j], line, sum);
        }
        return sum;
    }
}

HS_FN f32 hs_no_number(f32) { return HS_INFINITY - HS_INFINITY; }
HS_FN f64 hs_no_number(f64) { return HS_INFINITY - HS_INFINITY; }
template <class T> HS_FN T hs_no_number(T) { return (T)0; }

// `count` samples of plane `out_plane` of the result, one per thread: at its own row and column, with VOLUME also at a
// level; with WITHIN, `beyond` if the position is not between pixels. `channels` is the number of channels of the
// image, whose extent is depth x height x width.
template <int HOW, int BORDER, bool VOLUME, bool WITHIN, int THREADS, class T, class C>
HS_FN void hs_remap(const T* data, i64 plane, int depth, int height, int width, int channels, const C* levels, i64 levels_plane,
                    const C* rows, i64 rows_plane, const C* columns, i64 columns_plane, i64 count, T* out, i64 out_plane, T v, T beyond) {
    typedef typename hs_interp<T>::type F;
    const i64 i = (i64)blockIdx.x * THREADS + threadIdx.x;
    if (i >= count) return;
    const int p = blockIdx.y, level = p / channels, channel = p - level * channels;
    const i64 of = VOLUME ? level : 0;
    const hs_sampled<T> in = {data, plane, width};
    hs_taps<HOW, F> y, x, z;
    const f64 row = (f64)rows[of * rows_plane + i], column = (f64)columns[of * columns_plane + i];
    const f64 above = VOLUME ? (f64)levels[of * levels_plane + i] : 0;
    if (WITHIN && !(row >= 0 && row <= height - 1 && column >= 0 && column <= width - 1 && above >= 0 && above <= depth - 1)) {
        out[p * out_plane + i] = beyond;
        return;
    }
    bool there = y.template find<BORDER>(row, height);
    there &= x.template find<BORDER>(column, width);
    if (VOLUME) there &= z.template find<BORDER>(above, depth);
    T result;
    if (!there) {
        result = hs_no_number(v);
    } else if (HOW == HS_NEAREST) {
        const i64 from = !VOLUME ? p : z.at[0] < 0 ? -1 : (i64)z.at[0] * channels + channel;
        result = in.at(from, y.at[0], x.at[0], v);
    } else if (!VOLUME) {
        result = hs_to<T>(hs_in_plane<HOW>(in, p, y, x, v));
    } else {
        F sum = (F)0, first = (F)0;
#pragma unroll
        for (int k = 0; k < hs_sampling<HOW>::TAPS; ++k) {
            const i64 from = z.at[k] < 0 ? -1 : (i64)z.at[k] * channels + channel;
            const F value = hs_in_plane<HOW>(in, from, y, x, v);
            if (HOW != HS_LINEAR) sum = hs_fma(z.w[k], value, sum);
            else if (k == 0) first = value;
            else sum = hs_lerp(first, value, z.t);
        }
        result = hs_to<T>(sum);
    }
    out[p * out_plane + i] = result;
}
