// Arithmetic of the eight pixel types, equal to horus_core::dtype::Arithmetic in every bit: integers saturate, x / 0 is
// 0, float to integer rounds to nearest even and saturates, float min and max ignore a NaN and return the first on a
// tie. Everything is compiled with -fmad=false; only hs_fma yields a fused multiply-add.

typedef unsigned char u8;
typedef unsigned short u16;
typedef signed char i8;
typedef short i16;
typedef int i32;
typedef float f32;
typedef double f64;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;

#define HS_FN static __device__ __forceinline__
#define HS_FN_MEMBER __device__ __forceinline__
// Code that a large kernel uses more than once: a function, compiled once.
#define HS_CALLED static __device__ __noinline__
// See math_only.cuh.
#ifndef HS_AT
#define HS_AT(i) (i)
#define HS_STORED(v) true
#endif

enum { HS_REFLECT101, HS_REFLECT, HS_REPLICATE, HS_WRAP, HS_CONSTANT };

// ---- conversions: hs_to<D>(value) -------------------------------------------------------------------------------
template <class D> struct hs_limits; // and the type of 32 bits that floats within the limits are converted to
template <> struct hs_limits<u8> { static constexpr i64 lo = 0, hi = 255; typedef i32 via; };
template <> struct hs_limits<u16> { static constexpr i64 lo = 0, hi = 65535; typedef i32 via; };
template <> struct hs_limits<u32> { static constexpr i64 lo = 0, hi = 4294967295LL; typedef u32 via; };
template <> struct hs_limits<i8> { static constexpr i64 lo = -128, hi = 127; typedef i32 via; };
template <> struct hs_limits<i16> { static constexpr i64 lo = -32768, hi = 32767; typedef i32 via; };
template <> struct hs_limits<i32> { static constexpr i64 lo = -2147483648LL, hi = 2147483647LL; typedef i32 via; };

template <class T, class W> HS_FN T hs_saturate(W v) {
    const W lo = hs_limits<T>::lo, hi = hs_limits<T>::hi;
    return (T)(v <= lo ? lo : v > hi ? hi : v);
}

// Comparisons are written so that a NaN results in 0.
template <class D> struct hs_convert {
    static __device__ __forceinline__ D of(f64 v) {
        const f64 r = rint(v);
        if (r >= (f64)hs_limits<D>::hi) return (D)hs_limits<D>::hi;
        if (r > (f64)hs_limits<D>::lo) return (D)(typename hs_limits<D>::via)r;
        return r == r ? (D)hs_limits<D>::lo : (D)0;
    }
    static __device__ __forceinline__ D of(f32 v) {
        const f32 r = rintf(v);
        if (r >= (f32)hs_limits<D>::hi) return (D)hs_limits<D>::hi;
        if (r > (f32)hs_limits<D>::lo) return (D)(typename hs_limits<D>::via)r;
        return r == r ? (D)hs_limits<D>::lo : (D)0;
    }
    template <class S> static __device__ __forceinline__ D of(S v) { return hs_saturate<D>((i64)v); }
};
template <> struct hs_convert<f32> {
    template <class S> static __device__ __forceinline__ f32 of(S v) { return (f32)v; }
};
template <> struct hs_convert<f64> {
    template <class S> static __device__ __forceinline__ f64 of(S v) { return (f64)v; }
};
template <class D, class S> HS_FN D hs_to(S v) { return hs_convert<D>::of(v); }

// The type in which geometric operations interpolate.
template <class T> struct hs_interp { typedef f32 type; };
template <> struct hs_interp<u32> { typedef f64 type; };
template <> struct hs_interp<i32> { typedef f64 type; };
template <> struct hs_interp<f64> { typedef f64 type; };

template <class F> HS_FN F hs_fraction(u32 bits);
template <> __device__ __forceinline__ f32 hs_fraction<f32>(u32 bits) { return (f32)(bits >> 8) * (1.0f / 16777216.0f); }
template <> __device__ __forceinline__ f64 hs_fraction<f64>(u32 bits) { return (f64)bits * (1.0 / 4294967296.0); }

// ---- arithmetic -------------------------------------------------------------------------------------------------
HS_FN f32 hs_fma(f32 a, f32 b, f32 c) { return fmaf(a, b, c); }
HS_FN f64 hs_fma(f64 a, f64 b, f64 c) { return fma(a, b, c); }

#define HS_INTEGER(T, W)                                                                                              \
    HS_FN T hs_add(T a, T b) { return hs_saturate<T>((i64)a + b); }                                                   \
    HS_FN T hs_sub(T a, T b) { return hs_saturate<T>((i64)a - b); }                                                   \
    HS_FN T hs_mul(T a, T b) { return hs_saturate<T>((W)a * b); }                                                     \
    HS_FN T hs_neg(T a) { return hs_saturate<T>(-(i64)a); }                                                           \
    HS_FN T hs_div(T a, T b) {                                                                                        \
        return b == 0 ? (T)0 : hs_limits<T>::lo < 0 && b == (T)-1 ? hs_neg(a) : (T)(a / b);                           \
    }                                                                                                                 \
    HS_FN T hs_abs(T a) { return a < 0 ? hs_neg(a) : a; }                                                             \
    HS_FN T hs_sqrt(T a) { return hs_to<T>(sqrt((f64)a)); }                                                           \
    HS_FN T hs_floor(T a) { return a; } HS_FN T hs_ceil(T a) { return a; }                                            \
    HS_FN T hs_round(T a) { return a; }                                                                               \
    HS_FN T hs_sign(T a) { return (T)((a > 0) - (a < 0)); }                                                           \
    HS_FN T hs_min(T a, T b) { return b < a ? b : a; }                                                                \
    HS_FN T hs_max(T a, T b) { return b > a ? b : a; }                                                                \
    HS_FN T hs_minimum(T a, T b) { return hs_min(a, b); }                                                             \
    HS_FN T hs_maximum(T a, T b) { return hs_max(a, b); }                                                             \
    HS_FN T hs_lower(T a, T b) { return hs_min(a, b); }                                                               \
    HS_FN T hs_upper(T a, T b) { return hs_max(a, b); }
HS_INTEGER(u8, i64) HS_INTEGER(u16, i64) HS_INTEGER(u32, u64)
HS_INTEGER(i8, i64) HS_INTEGER(i16, i64) HS_INTEGER(i32, i64)
#undef HS_INTEGER

#define HS_FLOAT(T, F)                                                                                                \
    HS_FN T hs_add(T a, T b) { return a + b; }                                                                        \
    HS_FN T hs_sub(T a, T b) { return a - b; }                                                                        \
    HS_FN T hs_mul(T a, T b) { return a * b; }                                                                        \
    HS_FN T hs_div(T a, T b) { return a / b; }                                                                        \
    HS_FN T hs_neg(T a) { return -a; }                                                                                \
    HS_FN T hs_abs(T a) { return fabs##F(a); }                                                                        \
    HS_FN T hs_sqrt(T a) { return sqrt##F(a); }                                                                       \
    HS_FN T hs_floor(T a) { return floor##F(a); }                                                                     \
    HS_FN T hs_ceil(T a) { return ceil##F(a); }                                                                       \
    HS_FN T hs_round(T a) { return rint##F(a); }                                                                      \
    HS_FN T hs_sign(T a) { return a > (T)0 ? (T)1 : a < (T)0 ? (T)-1 : a; }                                           \
    HS_FN T hs_min(T a, T b) { return (b < a || a != a) ? b : a; }                                                    \
    HS_FN T hs_max(T a, T b) { return (b > a || a != a) ? b : a; }                                                    \
    HS_FN T hs_minimum(T a, T b) { return (b < a || b != b) ? b : a; }                                                \
    HS_FN T hs_maximum(T a, T b) { return (b > a || b != b) ? b : a; }
HS_FLOAT(f32, f)
HS_FLOAT(f64, )
#undef HS_FLOAT

// A number of which the compiler knows nothing. It knows that results of comparisons are 0 or 1, and then loses signs
// of zeros: it negates a 0 to 0, and replaces a minimum by a comparison with a zero that it derived.
#ifdef HS_PORTABLE
template <class T> HS_FN T hs_opaque(T v) {
    HS_HIDE(v);
    return v;
}
#else
HS_FN f32 hs_opaque(f32 v) {
    asm("" : "+f"(v));
    return v;
}
HS_FN f64 hs_opaque(f64 v) {
    asm("" : "+d"(v));
    return v;
}
#endif

// Division of many floats, operation by operation like the processor's own, without its branch for each. Operands for
// which an operation may over- or underflow are detected for all at the end; the division is then repeated.
#ifdef HS_PORTABLE
HS_FN f32 hs_reciprocal(f32 b) { return 1.0f / b; }
// The host's fmaxf returns a signalling NaN, the GPU's any other operand.
HS_FN f32 hs_most(f32 a, f32 b) { return b > a ? b : a; }
HS_FN f32 hs_least(f32 a, f32 b) { return b < a ? b : a; }
HS_FN u32 hs_bits(f32 v) {
    u32 bits;
    memcpy(&bits, &v, 4);
    return bits;
}
#else
HS_FN f32 hs_reciprocal(f32 b) {
    f32 y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(b));
    return y;
}
HS_FN f32 hs_most(f32 a, f32 b) { return fmaxf(a, b); }
HS_FN f32 hs_least(f32 a, f32 b) { return fminf(a, b); }
HS_FN u32 hs_bits(f32 v) { return __float_as_uint(v); }
#endif
struct hs_division {
    // Ranges of operands: the largest of all; the only or the smallest divisor; the bits of the smallest non-zero
    // dividend, times two minus one.
    f32 most = 1.0f, only = 1.0f, least = 1.0f;
    u32 bits = ~0u;
    HS_FN_MEMBER f32 quotient(f32 a, f32 b) {
        bits = min(bits, 2 * hs_bits(a) - 1);
        const f32 y0 = hs_reciprocal(b), y = fmaf(fmaf(-b, y0, 1.0f), y0, y0);
        const f32 q0 = a * y, q1 = fmaf(fmaf(-b, q0, a), y, q0);
        return fmaf(fmaf(-b, q1, a), y, q1);
    }
    // hs_div; the corrections of a zero quotient lose its sign.
    HS_FN_MEMBER f32 div(f32 a, f32 b) {
        most = hs_most(hs_most(most, fabsf(a)), fabsf(b));
        least = hs_least(least, fabsf(b));
        return copysignf(quotient(a, b), a * b);
    }
    // div by a divisor that all dividends share.
    HS_FN_MEMBER f32 over(f32 a, f32 b) {
        most = hs_most(most, fabsf(a));
        only = least = fabsf(b);
        return copysignf(quotient(a, b), a * b);
    }
    // hs_absdiv. Only divisors of at least eps are used, so eps must not be too small.
    HS_FN_MEMBER f32 absdiv(f32 a, f32 b, f32 eps) {
        most = hs_most(hs_most(most, fabsf(a)), fabsf(b));
        least = eps;
        const f32 q = fabsf(quotient(a, b));
        return fabsf(b) < eps ? 0.0f : q;
    }
    // True if a result may be wrong. A NaN is none of the extremes and gives a NaN.
    HS_FN_MEMBER bool rare() const {
        const f32 limit = 1LL << 60;
        return !(most <= limit) || !(only <= limit) || !(least >= 1.0f / limit) || bits < 2 * hs_bits(1.0f / limit) - 1;
    }
};

// Keys in the order of numbers: by value, -0 before +0, NaNs last; and the pixel of a key.
HS_FN u32 hs_key(u8 v) { return v; }
HS_FN u32 hs_key(u16 v) { return v; }
HS_FN u32 hs_key(u32 v) { return v; }
HS_FN u32 hs_key(i8 v) { return (u8)v ^ 0x80u; }
HS_FN u32 hs_key(i16 v) { return (u16)v ^ 0x8000u; }
HS_FN u32 hs_key(i32 v) { return (u32)v ^ 0x80000000u; }
HS_FN u32 hs_key(f32 v) {
    const u32 bits = hs_bits(v);
    return v != v ? ~0u : bits >> 31 ? ~bits : bits | 0x80000000u;
}
HS_FN u64 hs_key(f64 v) {
    u64 bits;
    memcpy(&bits, &v, 8);
    return v != v ? ~0ull : bits >> 63 ? ~bits : bits | 1ull << 63;
}
template <class T, class K> HS_FN T hs_of_key(K key) { return (T)(key ^ (hs_limits<T>::lo < 0 ? (K)1 << (8 * sizeof(T) - 1) : (K)0)); }
template <> __device__ __forceinline__ f32 hs_of_key<f32, u32>(u32 key) {
    const u32 bits = key >> 31 ? key & 0x7fffffffu : ~key;
    f32 v;
    memcpy(&v, &bits, 4);
    return v;
}
template <> __device__ __forceinline__ f64 hs_of_key<f64, u64>(u64 key) {
    const u64 bits = key >> 63 ? key & ~(1ull << 63) : ~key;
    f64 v;
    memcpy(&v, &bits, 8);
    return v;
}

// The first and the last of two floats in this order. A GPU's minimum and maximum know it.
#ifndef HS_PORTABLE
HS_FN f32 hs_lower(f32 a, f32 b) {
    f32 v;
    asm("min.f32 %0, %1, %2;" : "=f"(v) : "f"(a), "f"(b));
    return v;
}
HS_FN f64 hs_lower(f64 a, f64 b) {
    f64 v;
    asm("min.f64 %0, %1, %2;" : "=d"(v) : "d"(a), "d"(b));
    return v;
}
HS_FN f32 hs_upper(f32 a, f32 b) {
    f32 v;
#if __CUDA_ARCH__ >= 800
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(v) : "f"(a), "f"(b));
    return v;
#else
    asm("max.f32 %0, %1, %2;" : "=f"(v) : "f"(a), "f"(b));
    return a != a ? a : b != b ? b : v;
#endif
}
HS_FN f64 hs_upper(f64 a, f64 b) {
    f64 v;
    asm("max.f64 %0, %1, %2;" : "=d"(v) : "d"(a), "d"(b));
    return a != a ? a : b != b ? b : v;
}
#else
HS_FN f32 hs_lower(f32 a, f32 b) { return hs_key(b) < hs_key(a) ? b : a; }
HS_FN f32 hs_upper(f32 a, f32 b) { return hs_key(a) < hs_key(b) ? b : a; }
HS_FN f64 hs_lower(f64 a, f64 b) { return hs_key(b) < hs_key(a) ? b : a; }
HS_FN f64 hs_upper(f64 a, f64 b) { return hs_key(a) < hs_key(b) ? b : a; }
#endif

// Equals horus_core::dtype::Arithmetic::order_digit.
template <class T> HS_FN T hs_order_digit(T a, T level) { return level == (T)0 ? a : (T)0; }
HS_FN u32 hs_order_digit(u32 a, u32 level) { return level == 0 ? a >> 16 : level == 1 ? a & 0xffffu : 0u; }
HS_FN i32 hs_order_digit(i32 a, i32 level) { return (i32)hs_order_digit((u32)a ^ 0x80000000u, (u32)level); }
HS_FN f32 hs_order_digit(f32 a, f32 level) {
    const u32 bits = hs_bits(a + 0.0f), place = bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
    const u32 digit = level == 0.0f ? place >> 16 : level == 1.0f ? place & 0xffffu : 0u;
    return a != a ? a : (f32)digit;
}
HS_FN f64 hs_order_digit(f64 a, f64 level) {
    const f64 v = a + 0.0;
    u64 bits;
    memcpy(&bits, &v, 8);
    const u64 place = bits >> 63 != 0 ? ~bits : bits | 0x8000000000000000ULL;
    u64 digit = 0;
#pragma unroll
    for (int k = 0; k < 4; ++k) digit = level == (f64)k ? place >> (48 - 16 * k) & 0xffffULL : digit;
    return a != a ? a : (f64)digit;
}

// Remainders and operations on bits, equal to horus_core::dtype::Arithmetic; for floats, on their whole parts.
template <class T> HS_FN T hs_rem(T a, T b) { return b == 0 || (hs_limits<T>::lo < 0 && b == (T)-1) ? (T)0 : (T)(a % b); }
HS_FN f32 hs_rem(f32 a, f32 b) { return fmodf(a, b); }
HS_FN f64 hs_rem(f64 a, f64 b) { return fmod(a, b); }
template <class T> HS_FN T hs_whole(T v) { return v; }
HS_FN i64 hs_whole(f64 v) {
    const f64 limit = 9223372036854775808.0;
    if (v != v) return 0;
    return v >= limit ? 0x7fffffffffffffffLL : v < -limit ? -0x7fffffffffffffffLL - 1 : (i64)v;
}
HS_FN i64 hs_whole(f32 v) { return hs_whole((f64)v); }
template <class T> HS_FN T hs_bitwise_and(T a, T b) { return (T)(hs_whole(a) & hs_whole(b)); }
template <class T> HS_FN T hs_bitwise_or(T a, T b) { return (T)(hs_whole(a) | hs_whole(b)); }
template <class T> HS_FN T hs_bitwise_xor(T a, T b) { return (T)(hs_whole(a) ^ hs_whole(b)); }
template <class W> HS_FN W hs_up(W a, i64 places) { return places < 0 || places >= 8 * (i64)sizeof(W) ? (W)0 : (W)((u64)a << places); }
template <class W> HS_FN W hs_down(W a, i64 places) { return places < 0 || places >= 8 * (i64)sizeof(W) ? (W)-(a < 0) : (W)(a >> places); }
template <class T> HS_FN T hs_left_shift(T a, T b) { return (T)hs_up(hs_whole(a), (i64)hs_whole(b)); }
template <class T> HS_FN T hs_right_shift(T a, T b) { return (T)hs_down(hs_whole(a), (i64)hs_whole(b)); }

template <class T> HS_FN T hs_absdiff(T a, T b) { return a > b ? hs_sub(a, b) : hs_abs(hs_sub(b, a)); }
template <class T> HS_FN T hs_absdiv(T a, T b, T eps) { return hs_abs(b) < eps ? (T)0 : hs_abs(hs_div(a, b)); }
template <class T> HS_FN T hs_mul_add(T a, T b, T c) { return hs_add(hs_mul(a, b), c); }
template <> __device__ __forceinline__ f32 hs_mul_add(f32 a, f32 b, f32 c) { return hs_fma(a, b, c); }
template <> __device__ __forceinline__ f64 hs_mul_add(f64 a, f64 b, f64 c) { return hs_fma(a, b, c); }

// A linear filter as a reduction: acc = fma(tap, pixel, acc) from +0.
template <class T> struct hs_linear {
    static __device__ __forceinline__ T init() { return (T)0; }
    static __device__ __forceinline__ T step(T acc, T v, T w) { return hs_fma(w, v, acc); }
};

// The lowest and the highest value of an element: the identities of max and min.
template <class T> HS_FN T hs_lowest() { return (T)hs_limits<T>::lo; }
template <class T> HS_FN T hs_highest() { return (T)hs_limits<T>::hi; }
template <> __device__ __forceinline__ f32 hs_lowest<f32>() { return -(f32)HS_INFINITY; }
template <> __device__ __forceinline__ f32 hs_highest<f32>() { return (f32)HS_INFINITY; }
template <> __device__ __forceinline__ f64 hs_lowest<f64>() { return -(f64)HS_INFINITY; }
template <> __device__ __forceinline__ f64 hs_highest<f64>() { return (f64)HS_INFINITY; }

// ---- planes and borders -----------------------------------------------------------------------------------------
// Samples of a pixel: neighbours in a row are this many elements apart, and each sample is a plane of its own. All
// images of a program have equally many.
#ifndef HS_SAMPLES
#define HS_SAMPLES 1
#endif
#if HS_SAMPLES == 1
template <class T> HS_FN const T* hs_line(const T* first) { return first; }
template <class T> HS_FN T hs_read(const T* p) { return __ldg(p); }
#else
// Pixels of a row, of one sample. As a pointer, the address of the first.
template <class T> struct hs_pixels {
    const T* first;
    HS_FN_MEMBER T operator[](i64 i) const { return first[i * HS_SAMPLES]; }
    HS_FN_MEMBER hs_pixels operator+(i64 i) const { return {first + i * HS_SAMPLES}; }
    HS_FN_MEMBER operator const T*() const { return first; }
};
template <class T> HS_FN hs_pixels<T> hs_line(const T* first) { return {first}; }
template <class T> HS_FN T hs_read(hs_pixels<T> p) { return __ldg(p.first); }
#endif
// Elements before the first of a plane, in images whose levels have `size` elements.
HS_FN i64 hs_plane_at(int plane, i64 size) { return (i64)(plane / HS_SAMPLES) * size + plane % HS_SAMPLES; }
// Elements before pixel x of row y, of rows of `width` pixels from row `start` on.
HS_FN i64 hs_place(int y, int x, int start, int width) { return ((i64)(y - start) * width + x) * HS_SAMPLES; }

// One plane of an input: rows start..end of an image of height x width. Only for HS_WRAP can they lie outside the
// image; they are then preferred.
template <class T> struct hs_plane {
    const T* data;
    int height, width, start, end;
    __device__ __forceinline__ auto row(int y) const { return hs_line(data + HS_AT((i64)(y - start) * width * HS_SAMPLES)); }
    __device__ __forceinline__ T at(int y, int x) const { return row(y)[x]; }
};

// The pixel of a line of n pixels that is read at i, or -1 where the constant is read.
template <int BORDER> HS_FN int hs_map(int i, int n) {
    if ((u32)i < (u32)n) return i;
    if (BORDER == HS_CONSTANT) return -1;
    if (BORDER == HS_REPLICATE) return i < 0 ? 0 : n - 1;
    if (BORDER == HS_REFLECT101 && n == 1) return 0;
    if (BORDER == HS_REFLECT || BORDER == HS_REFLECT101) {
        // One reflection usually suffices, and avoids the division.
        const int edge = BORDER == HS_REFLECT, once = i < 0 ? -edge - i : 2 * n - 2 + edge - i;
        if ((u32)once < (u32)n) return once;
    }
    const int period = BORDER == HS_WRAP ? n : BORDER == HS_REFLECT ? 2 * n : 2 * n - 2;
    int m = i % period;
    if (m < 0) m += period;
    return m < n ? m : (BORDER == HS_REFLECT ? 2 * n - 1 : 2 * n - 2) - m;
}

// The plane of an input that plane `plane` of the result reads, or -1 where the constant is read. `m` has the channels
// of the result; depth and channels of the input; the channel to read, or -1 for the plane's own; the stride of levels.
template <int BORDER> HS_FN int hs_plane_read(int plane, const int (&m)[5], int offset) {
    const int z = m[0] == 1 ? plane : plane / m[0];
    const int level = hs_map<BORDER>(m[4] * z + offset, m[1]);
    return level < 0 ? -1 : level * m[2] + (m[3] < 0 ? plane - z * m[0] : m[3]);
}

// The row in the buffer that is read at image row y; `constant` is set if the constant is read instead. A tile may
// include rows that no output pixel reads and that are not in the buffer: they are clamped into the window. IMAGE is a
// plane or a chain of pixel operations: anything with an extent, a window of rows, and pixels `at`.
template <int BORDER, class IMAGE> HS_FN int hs_row(const IMAGE& in, int y, bool& constant) {
    int r = y;
    constant = false;
    if ((u32)y >= (u32)in.height && !(BORDER == HS_WRAP && y >= in.start && y < in.end)) {
        r = hs_map<BORDER>(y, in.height);
        constant = BORDER == HS_CONSTANT;
    }
    constant |= in.start >= in.end;
    return min(max(r, in.start), in.end - 1);
}

// The pixel read at (y, x), for any border and edge.
template <int BORDER_Y, int BORDER_X, class IMAGE, class T> HS_FN T hs_pixel(const IMAGE& in, int y, int x, T v) {
    bool constant;
    const int r = hs_row<BORDER_Y>(in, y, constant);
    const int c = hs_map<BORDER_X>(x, in.width);
    return constant || c < 0 ? v : in.at(r, c);
}

// Returns true if rows y0..y1 and columns x0..x1 are inside the image and in the buffer.
template <class IMAGE> HS_FN bool hs_holds(const IMAGE& in, int y0, int y1, int x0, int x1) {
    return y0 >= max(0, in.start) && y1 <= min(in.height, in.end) && x0 >= 0 && x1 <= in.width;
}

// The row of a chain's input that corresponds to row y of the chain. Inputs may have different rows: wrapped ones
// beyond the image, or the rows that they copy.
template <class T> HS_FN int hs_held(const hs_plane<T>& in, int y) {
    if (y < in.start || y >= in.end) {
        y = (y - in.start) % in.height;
        y += (y < 0 ? in.height : 0) + in.start;
    }
    return min(y, in.end - 1);
}

// The row of an image of `rows` rows that row y denotes: itself, or the row that is copied beyond the image.
HS_FN int hs_row_of(int y, int rows) {
    if (y < 0 || y >= rows) {
        y %= rows;
        if (y < 0) y += rows;
    }
    return y;
}

// ---- small vectors ----------------------------------------------------------------------------------------------
template <class T, int N> struct alignas(sizeof(T) * N) hs_vec { T v[N]; };

static __device__ constexpr int hs_min_int(int a, int b) { return a < b ? a : b; }
// Elements of a vector access for C consecutive pixels per thread: at most 16 bytes.
template <class T> static __device__ constexpr int hs_lanes(int c) { return hs_min_int(c, 16 / (int)sizeof(T)); }

// N consecutive elements in registers, read from an address aligned to A elements.
template <class T, int A, int N> struct hs_span {
    static constexpr int PIECES = (N + A - 1) / A;
    T v[PIECES * A];
    __device__ __forceinline__ void load(const T* p) {
#pragma unroll
        for (int i = 0; i < PIECES; ++i) {
            const hs_vec<T, A> t = *reinterpret_cast<const hs_vec<T, A>*>(p + i * A);
#pragma unroll
            for (int j = 0; j < A; ++j) v[i * A + j] = t.v[j];
        }
    }
};

// Stores a vector in the memory of the GPU or the host. NVRTC 13.0 splits the assignment of some vectors into elements,
// which the memory of the host stores at a tenth of the rate.
template <class T, int N> HS_FN void hs_put(T* p, const hs_vec<T, N>& v) {
#ifndef HS_PORTABLE
    if constexpr (sizeof(v) == 16) {
        const hs_vec<u32, 4> w = *reinterpret_cast<const hs_vec<u32, 4>*>(&v);
        asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(w.v[0]), "r"(w.v[1]), "r"(w.v[2]),
                     "r"(w.v[3])
                     : "memory");
        return;
    }
#endif
    *reinterpret_cast<hs_vec<T, N>*>(p) = v;
}

// ---- the block of pixels of one thread --------------------------------------------------------------------------
// R rows of C consecutive pixels from (y, x). Pixels at or beyond (y1, width) do not exist.
template <class T, int R, int C>
HS_FN void hs_load_block(const hs_plane<T>& in, int y, int x, int y1, bool aligned, T (&v)[R][C]) {
    constexpr int A = hs_lanes<T>(C);
    const bool whole = aligned && x + C <= in.width;
#pragma unroll
    for (int r = 0; r < R; ++r) {
        if (y + r >= y1) continue;
        const auto p = in.row(y + r) + x;
        if (whole) {
            hs_span<T, A, C> s;
            s.load(p);
#pragma unroll
            for (int c = 0; c < C; ++c) v[r][c] = s.v[c];
        } else {
#pragma unroll
            for (int c = 0; c < C; ++c)
                if (x + c < in.width) v[r][c] = p[c];
        }
    }
}

// Loads from an image of a single row, which repeats; the edge is repeated if there are fewer columns.
template <class T, int R, int C>
HS_FN void hs_repeat_row(const hs_plane<T>& in, int x, bool aligned, T (&v)[R][C]) {
    constexpr int A = hs_lanes<T>(C);
    const auto p = in.row(0);
    T one[C];
    if (aligned && x + C <= in.width) {
        hs_span<T, A, C> s;
        s.load(p + x);
#pragma unroll
        for (int c = 0; c < C; ++c) one[c] = s.v[c];
    } else {
#pragma unroll
        for (int c = 0; c < C; ++c) one[c] = p[min(x + c, in.width - 1)];
    }
#pragma unroll
    for (int r = 0; r < R; ++r)
#pragma unroll
        for (int c = 0; c < C; ++c) v[r][c] = one[c];
}

// Loads from an image of a single column, which repeats.
template <class T, int R, int C> HS_FN void hs_repeat_column(const hs_plane<T>& in, int y, T (&v)[R][C]) {
#pragma unroll
    for (int r = 0; r < R; ++r) {
        const T one = in.row(min(max(y + r, in.start), in.end - 1))[0];
#pragma unroll
        for (int c = 0; c < C; ++c) v[r][c] = one;
    }
}

// R lines of C consecutive pixels, line r from (y[r], x[r]), all of which exist.
template <class T, int R, int C>
HS_FN void hs_load_lines(const hs_plane<T>& in, const int (&y)[R], const int (&x)[R], bool aligned, T (&v)[R][C]) {
    constexpr int A = hs_lanes<T>(C);
    if (aligned) {
#pragma unroll
        for (int r = 0; r < R; ++r) {
            hs_span<T, A, C> s;
            s.load(in.row(hs_held(in, y[r])) + x[r]);
#pragma unroll
            for (int c = 0; c < C; ++c) v[r][c] = s.v[c];
        }
    } else {
#pragma unroll
        for (int r = 0; r < R; ++r) {
            const auto p = in.row(hs_held(in, y[r])) + x[r];
#pragma unroll
            for (int c = 0; c < C; ++c) v[r][c] = p[c];
        }
    }
}

template <class T, int R, int C>
HS_FN void hs_store_block(T* out, int start, int width, int y, int x, int y1, bool aligned, const T (&v)[R][C]) {
    constexpr int A = hs_lanes<T>(C);
    const bool whole = aligned && x + C <= width;
#pragma unroll
    for (int r = 0; r < R; ++r) {
        if (y + r >= y1 || !HS_STORED(v[r])) continue;
        T* p = out + hs_place(y + r, x, start, width);
        if (whole) {
#pragma unroll
            for (int i = 0; i < C; i += A) {
                hs_vec<T, A> t;
#pragma unroll
                for (int j = 0; j < A; ++j) t.v[j] = v[r][i + j];
                hs_put(p + i, t);
            }
        } else {
#pragma unroll
            for (int c = 0; c < C; ++c)
                if (x + c < width) p[c * HS_SAMPLES] = v[r][c];
        }
    }
}
