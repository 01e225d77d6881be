// The transcendental functions: the operations of horus_core::dtype::math (horus-base/src/dtype/math) in the same
// order, so that every bit agrees; that module explains them. Only programs that call one of them include this file.

#ifdef HS_PORTABLE
template <class D, class S> HS_FN D hs_reinterpret(S v) {
    D d;
    memcpy(&d, &v, sizeof(d));
    return d;
}
HS_FN u64 hs_bits(f64 v) { return hs_reinterpret<u64>(v); }
HS_FN f64 hs_number(u64 bits) { return hs_reinterpret<f64>(bits); }
HS_FN f32 hs_number(u32 bits) { return hs_reinterpret<f32>(bits); }
#else
HS_FN u64 hs_bits(f64 v) { return (u64)__double_as_longlong(v); }
HS_FN f64 hs_number(u64 bits) { return __longlong_as_double((i64)bits); }
HS_FN f32 hs_number(u32 bits) { return __uint_as_float(bits); }
#endif

#define HS_NEAR 1073741824.0
#define HS_ROUND 6755399441055744.0
#define HS_SQRT_HALF 0x3fe6a09e667f3bcdULL
#define HS_SIGN (1ULL << 63)
#define HS_NAN hs_number(0x7ff8000000000000ULL)
#define HS_PI 3.141592653589793
#define HS_PI_2 1.5707963267948966
#define HS_PI_4 0.7853981633974483
#define HS_PI_2_LOW 6.123233995736766e-17
#define HS_PI_2_LOWEST -1.4973849048591698e-33
#define HS_TWO_OVER_PI 0.6366197723675814
#define HS_LN_2 0.6931471805599453
#define HS_LN_2_LOW 2.3190468138462996e-17
#define HS_LN_2_SHORT 0.6931471803691238
#define HS_LN_2_REST 1.9082149292705877e-10
#define HS_LOG2_E 1.4426950408889634

// A sum or an angle in two parts, and a quadrant.
struct hs_pair { f64 high, low; };
struct hs_angle { u64 quadrant; f64 high, low; };

HS_FN hs_pair hs_two_sum(f64 a, f64 b) {
    const f64 s = a + b, t = s - a;
    return {s, (a - (s - t)) + (b - t)};
}
HS_FN hs_pair hs_fast_two_sum(f64 a, f64 b) {
    const f64 s = a + b;
    return {s, (a - s) + b};
}
template <int N> HS_FN f64 hs_polynomial(f64 x, const f64 (&c)[N]) {
    f64 p = c[0];
#pragma unroll
    for (int i = 1; i < N; ++i) p = hs_fma(p, x, c[i]);
    return p;
}
// high is the exponent, low the mantissa.
HS_FN hs_pair hs_split(f64 x) {
    const u64 t = hs_bits(x) - HS_SQRT_HALF + (1024ULL << 52);
    return {hs_number(0x4330000000000000ULL | (t >> 52)) - (4503599627370496.0 + 1024.0),
            hs_number((t & 0x000fffffffffffffULL) + HS_SQRT_HALF)};
}
HS_FN f64 hs_scale(f64 p, f64 rounded) {
    const u64 n = hs_bits(rounded) - hs_bits(HS_ROUND) + 2048, half = n >> 1;
    return p * hs_number((half - 1) << 52) * hs_number((n - half - 1) << 52);
}
HS_FN f64 hs_signed_power(f64 x, f64 y, f64 p) {
    const f64 half = 0.5 * y;
    const bool whole = floor(y) == y, odd = whole && floor(half) != half;
    if (odd && hs_bits(x) >> 63 != 0) p = -p;
    if (x < 0.0 && x > -(f64)HS_INFINITY && !whole) p = HS_NAN;
    if (x == -1.0 && fabs(y) == (f64)HS_INFINITY) p = 1.0;
    return x == 1.0 || y == 0.0 ? 1.0 : p;
}
HS_FN f64 hs_octants(f64 y, f64 x, f64 high, f64 rest) {
    const bool steep = fabs(y) > fabs(x), left = hs_bits(x) >> 63 != 0;
    const f64 base = steep ? HS_PI_2 : left ? HS_PI : 0.0;
    const f64 low = steep ? HS_PI_2_LOW : left ? 2.0 * HS_PI_2_LOW : 0.0;
    if (steep != left) high = -high, rest = -rest;
    const hs_pair sum = hs_fast_two_sum(base, high);
    const f64 angle = sum.high + (sum.low + (rest + low));
    const f64 turned = hs_number((hs_bits(angle) & ~HS_SIGN) | (hs_bits(y) & HS_SIGN));
    return x != x || y != y ? HS_NAN : turned;
}

// ---- f64 --------------------------------------------------------------------------------------------------------
HS_FN f64 hs_exponential(f64 x, f64 low) {
    const bool within = fabs(x) < 750.0;
    x = x > 710.0 ? 710.0 : x;
    x = x < -746.0 ? -746.0 : x;
    low = within ? low : 0.0;
    const f64 rounded = hs_fma(x, HS_LOG2_E, HS_ROUND), n = rounded - HS_ROUND;
    const hs_pair r = hs_two_sum(hs_fma(-n, HS_LN_2, x), hs_fma(-n, HS_LN_2_LOW, low));
    constexpr f64 CQ[] = {2.0914968086968086e-9, 2.5105217004720745e-8, 2.75572736431103e-7, 2.7557255400206422e-6,
        2.4801587325547743e-5, 0.00019841269874820627, 0.0013888888888883748, 0.008333333333326136,
        0.04166666666666667, 0.1666666666666667, 0.5};
    const f64 q = hs_polynomial(r.high, CQ);
    const hs_pair sum = hs_fast_two_sum(1.0, r.high);
    return hs_scale(sum.high + (sum.low + hs_fma(r.high * r.high, q, hs_fma(r.low, r.high, r.low))), rounded);
}
HS_FN f64 hs_exp(f64 x) { return hs_exponential(x, 0.0); }
HS_FN hs_pair hs_normal(f64 x) {
    return x < 2.2250738585072014e-308 ? hs_pair{x * 18014398509481984.0, 54.0} : hs_pair{x, 0.0};
}
HS_FN f64 hs_log(f64 x) {
    const hs_pair scaled = hs_normal(x), parts = hs_split(scaled.high);
    const f64 e = parts.high - scaled.low, f = parts.low - 1.0;
    const f64 s = f / (2.0 + f), z = s * s;
    constexpr f64 CT[] = {0.0594107135631366, 0.05844053793297961, 0.06667819693179736, 0.0769228755788331,
        0.090909092969338, 0.11111111109928644, 0.14285714285717682, 0.19999999999999996, 0.3333333333333333};
    const f64 t = hs_polynomial(z, CT);
    const f64 square = 0.5 * f * f;
    const f64 rest = hs_fma(s, hs_fma(2.0 * z, t, square), e * HS_LN_2_REST) - square;
    const hs_pair sum = hs_fast_two_sum(e * HS_LN_2_SHORT, f);
    f64 log = sum.high + (sum.low + rest);
    log = x < (f64)HS_INFINITY ? log : x;
    return x > 0.0 ? log : x == 0.0 ? -(f64)HS_INFINITY : HS_NAN;
}
HS_FN hs_pair hs_long_log(f64 x) {
    const hs_pair scaled = hs_normal(x), parts = hs_split(scaled.high);
    const f64 e = parts.high - scaled.low, m = parts.low, f = m - 1.0;
    const hs_pair d = hs_two_sum(m, 1.0);
    const f64 s = f / d.high, s_low = hs_fma(-s, d.low, hs_fma(-s, d.high, f)) / d.high;
    const f64 z = s * s, z_low = hs_fma(2.0 * s, s_low, hs_fma(s, s, -z));
    constexpr f64 CU[] = {0.04985669630810336, 0.04720958456369712, 0.052645941225085126, 0.058823226586351446,
        0.066666670607789, 0.07692307689190146, 0.09090909090923241, 0.11111111111111079, 0.14285714285714285, 0.2};
    const f64 u = hs_polynomial(z, CU);
    const f64 p = z * u, p_low = hs_fma(z_low, u, hs_fma(z, u, -p));
    const hs_pair third = hs_fast_two_sum(1.0 / 3.0, p);
    const f64 t = third.high, t_low = third.low + (p_low + 1.850371707708594e-17);
    const f64 w = z * t, w_low = hs_fma(z, t_low, hs_fma(z_low, t, hs_fma(z, t, -w)));
    const f64 s2 = 2.0 * s, s2_low = 2.0 * s_low;
    const f64 g = s2 * w, g_low = hs_fma(s2, w_low, hs_fma(s2_low, w, hs_fma(s2, w, -g)));
    const hs_pair l = hs_fast_two_sum(s2, g);
    const f64 l_low = l.low + (g_low + s2_low);
    const hs_pair sum = hs_fast_two_sum(e * HS_LN_2_SHORT, l.high);
    return hs_fast_two_sum(sum.high, sum.low + hs_fma(e, HS_LN_2_REST, l_low));
}
HS_FN f64 hs_pow(f64 x, f64 y) {
    const f64 size = fabs(x);
    const hs_pair parts = hs_long_log(size);
    f64 log = size == 0.0 ? -(f64)HS_INFINITY : parts.high;
    log = size < (f64)HS_INFINITY ? log : size;
    const f64 product = y * log;
    return hs_signed_power(x, y, hs_exponential(product, hs_fma(y, parts.low, hs_fma(y, log, -product))));
}

HS_FN hs_angle hs_reduce(f64 x) {
    const f64 rounded = hs_fma(x, HS_TWO_OVER_PI, HS_ROUND), n = rounded - HS_ROUND;
    const f64 p = n * HS_PI_2_LOW, p_low = hs_fma(n, HS_PI_2_LOWEST, hs_fma(n, HS_PI_2_LOW, -p));
    const hs_pair r = hs_two_sum(hs_fma(-n, HS_PI_2, x), -p);
    return {hs_bits(rounded), r.high, r.low - p_low};
}
static __device__ const u32 hs_two_over_pi[41] = {
    0x00000000, 0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab, 0xdebbc561,
    0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e, 0xe88235f5, 0x2ebb4484, 0xe99c7026,
    0xb45f7e41, 0x3991d639, 0x835339f4, 0x9c845f8b, 0xbdf9283b, 0x1ff897ff, 0xde05980f, 0xef2f118b, 0x5a0a6d1f,
    0x6d367ecf, 0x27cb09b7, 0x4f463f66, 0x9e5fea2d, 0x7527bac7, 0xebe5f17b, 0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1,
    0x1f8d5d08, 0x56033046, 0xfc7b6bab, 0xf0cfbc20, 0x9af4361d
};
static __device__ hs_angle hs_reduce_far(f64 x) {
    const u64 bits = hs_bits(x);
    const u32 exponent = (u32)(bits >> 52 & 0x7ff);
    if (exponent == 0x7ff) return {0, HS_NAN, HS_NAN};
    const u64 mantissa = (bits & 0x000fffffffffffffULL) | 1ULL << 52;
    const u32 first = exponent + 32 - 2 - 1075, word = first / 32, shift = first % 32;
    u32 product[6];
    u64 carry = 0;
    for (int i = 0; i < 6; ++i) {
        const u64 pair = (u64)hs_two_over_pi[word + 5 - i] << 32 | hs_two_over_pi[word + 6 - i];
        const u64 sum = (mantissa & 0xffffffffULL) * (pair << shift >> 32) + carry;
        product[i] = (u32)sum, carry = sum >> 32;
    }
    carry = 0;
    for (int i = 0; i < 5; ++i) {
        const u64 pair = (u64)hs_two_over_pi[word + 5 - i] << 32 | hs_two_over_pi[word + 6 - i];
        const u64 sum = (mantissa >> 32) * (pair << shift >> 32) + product[i + 1] + carry;
        product[i + 1] = (u32)sum, carry = sum >> 32;
    }
    const u64 top = (u64)product[5] << 32 | product[4], next = (u64)product[3] << 32 | product[2];
    u64 high = top << 2 | next >> 62, low = next << 2 | (u64)product[1] >> 30;
    const u64 behind = high >> 63;
    u64 quadrant = (top >> 62) + behind;
    if (behind != 0) high = ~high, low = ~low;
    f64 unit = 1.0 / 9007199254740992.0;
    for (int i = 0; i < 127 && high >> 63 == 0; ++i) {
        high = high << 1 | low >> 63, low = low << 1;
        unit *= 0.5;
    }
    const f64 f = (f64)(high >> 11) * unit;
    const f64 f_low = (f64)((high & 0x7ff) << 42 | low >> 22) * (unit / 9007199254740992.0);
    const f64 r = f * HS_PI_2;
    const f64 r_low = hs_fma(f, HS_PI_2_LOW, hs_fma(f_low, HS_PI_2, hs_fma(f, HS_PI_2, -r)));
    if (x < 0.0) quadrant = 0 - quadrant;
    const bool backwards = (behind != 0) != (x < 0.0);
    return backwards ? hs_angle{quadrant, -r, -r_low} : hs_angle{quadrant, r, r_low};
}
HS_FN f64 hs_sine(u64 quadrant, f64 r, f64 low) {
    const f64 z = r * r;
    constexpr f64 CS[] = {-7.586696997236634e-13, 1.6058531616942478e-10, -2.5052106232434684e-8,
        2.755731921933913e-6, -0.00019841269841265065, 0.008333333333333331, -0.16666666666666666};
    const f64 s = hs_polynomial(z, CS);
    constexpr f64 CC[] = {4.745871835064003e-14, -1.1470460886473721e-11, 2.0876755791073254e-9,
        -2.7557319221402803e-7, 2.4801587301584645e-5, -0.0013888888888888887, 0.041666666666666664};
    const f64 c = hs_polynomial(z, CC);
    const f64 half = 0.5 * z;
    const f64 sine = r + hs_fma(r * z, s, hs_fma(-half, low, low));
    const hs_pair sum = hs_fast_two_sum(1.0, -half);
    const f64 cosine = sum.high + (sum.low + hs_fma(z * z, c, -(r * low)));
    const f64 v = quadrant & 1 ? cosine : sine;
    return hs_number(hs_bits(v) ^ (quadrant << 62 & HS_SIGN));
}
HS_FN f64 hs_sin(f64 x) {
    const hs_angle a = fabs(x) >= HS_NEAR ? hs_reduce_far(x) : hs_reduce(x);
    return x == 0.0 ? x : hs_sine(a.quadrant, a.high, a.low);
}
HS_FN f64 hs_cos(f64 x) {
    const hs_angle a = fabs(x) >= HS_NEAR ? hs_reduce_far(x) : hs_reduce(x);
    return hs_sine(a.quadrant + 1, a.high, a.low);
}
#define HS_LARGE hs_number((1023ULL + 500) << 52)
#define HS_SMALL_FACTOR hs_number((1023ULL + 100) << 52)
#define HS_FACTOR hs_number((1023ULL + 700) << 52)
HS_FN f64 hs_atan2(f64 y, f64 x) {
    const bool steep = fabs(y) > fabs(x);
    f64 small = steep ? fabs(x) : fabs(y), large = steep ? fabs(y) : fabs(x);
    const bool infinite = large == (f64)HS_INFINITY;
    small = infinite ? (small == large ? 1.0 : 0.0) : small;
    large = infinite || large == 0.0 ? 1.0 : large;
    f64 by = large > HS_LARGE ? 1.0 / HS_SMALL_FACTOR : 1.0;
    by = large < 1.0 / HS_LARGE ? HS_FACTOR : by;
    const f64 a = small * by, b = large * by;
    const bool diagonal = a > 0.41421356237309503 * b;
    const hs_pair n = diagonal ? hs_two_sum(a, -b) : hs_pair{a, 0.0}, d = diagonal ? hs_two_sum(b, a) : hs_pair{b, 0.0};
    const f64 u = n.high / d.high;
    const f64 u_low = (hs_fma(-u, d.low, hs_fma(-u, d.high, n.high)) + n.low) / d.high;
    const f64 z = u * u;
    constexpr f64 CP[] = {0.016284375050043393, -0.03456931506332609, 0.045515447340221615, -0.05230443640686948,
        0.05878927554473807, -0.0666642476020052, 0.07692296368042296, -0.09090908753259112, 0.11111111105150588,
        -0.14285714285659779, 0.19999999999999804, -0.3333333333333333};
    const f64 p = hs_polynomial(z, CP);
    f64 rest = hs_fma(u * z, p, hs_fma(-z, u_low, u_low));
    const hs_pair sum = diagonal ? hs_fast_two_sum(HS_PI_4, u) : hs_pair{u, 0.0};
    rest = diagonal ? sum.low + (rest + 0.5 * HS_PI_2_LOW) : rest;
    return hs_octants(y, x, sum.high, rest);
}
HS_FN f64 hs_hypot(f64 x, f64 y) {
    const bool steep = fabs(y) > fabs(x);
    const f64 small = steep ? fabs(x) : fabs(y), large = steep ? fabs(y) : fabs(x);
    f64 by = large > HS_LARGE ? 1.0 / HS_FACTOR : 1.0, back = large > HS_LARGE ? HS_FACTOR : 1.0;
    if (large < 1.0 / HS_LARGE) by = HS_FACTOR, back = 1.0 / HS_FACTOR;
    const f64 a = small * by, b = large * by;
    const f64 h = sqrt(hs_fma(b, b, a * a)) * back;
    return fabs(x) == (f64)HS_INFINITY || fabs(y) == (f64)HS_INFINITY ? (f64)HS_INFINITY : h;
}

// ---- f32 --------------------------------------------------------------------------------------------------------
#define HS_ROUND_32 12582912.0f
#define HS_TWO_THIRDS 0x3f2aaaabu
#define HS_LN_2_32 0.6931472f
HS_FN f32 hs_exp(f32 x) {
    x = x > 89.0f ? 89.0f : x;
    x = x < -104.0f ? -104.0f : x;
    const f32 rounded = hs_fma(x, 1.442695f, HS_ROUND_32), n = rounded - HS_ROUND_32;
    const f32 r = hs_fma(-n, -1.9046542e-9f, hs_fma(-n, HS_LN_2_32, x));
    f32 q = hs_fma(0.0013926184f, r, 0.008363179f);
    q = hs_fma(hs_fma(hs_fma(q, r, 0.041666556f), r, 0.16666576f), r, 0.5f);
    const f32 high = 1.0f + r, lost = (1.0f - high) + r;
    const f32 p = high + hs_fma(r * r, q, lost);
    const u32 m = hs_bits(rounded) - hs_bits(HS_ROUND_32) + 256, half = m >> 1;
    return p * hs_number((half - 1) << 23) * hs_number((m - half - 1) << 23);
}
HS_FN f32 hs_log(f32 x) {
    const bool subnormal = x < 1.1754944e-38f;
    const f32 normal = subnormal ? x * 16777216.0f : x;
    const f32 offset = subnormal ? 8388608.0f + 128.0f + 24.0f : 8388608.0f + 128.0f;
    const u32 t = hs_bits(normal) - HS_TWO_THIRDS + (128u << 23);
    const f32 e = hs_number(0x4b000000u | (t >> 23)) - offset;
    const f32 f = hs_number((t & 0x007fffffu) + HS_TWO_THIRDS) - 1.0f;
    const f32 z = f * f;
    f32 q = hs_fma(hs_fma(hs_fma(-0.13347776f, f, 0.14155632f), f, -0.1207369f), f, 0.13967459f);
    q = hs_fma(hs_fma(hs_fma(hs_fma(q, f, -0.16689016f), f, 0.20013064f), f, -0.24999592f), f, 0.3333316f);
    const f32 high = hs_fma(e, HS_LN_2_32, f), lost = hs_fma(e, HS_LN_2_32, -high) + f;
    f32 log = high + hs_fma(z, hs_fma(f, q, -0.5f), lost);
    log = x < (f32)HS_INFINITY ? log : x;
    return x > 0.0f ? log : x == 0.0f ? -(f32)HS_INFINITY : (f32)HS_NAN;
}
HS_FN f64 hs_short_exponential(f64 x) {
    x = x > 90.0 ? 90.0 : x;
    x = x < -105.0 ? -105.0 : x;
    const f64 rounded = hs_fma(x, HS_LOG2_E, HS_ROUND), n = rounded - HS_ROUND;
    const f64 r = hs_fma(-n, HS_LN_2, x);
    constexpr f64 CQ[] = {0.0013926183587713494, 0.008363179052722578, 0.041666554617204574, 0.16666576989698775,
        0.5};
    const f64 q = hs_polynomial(r, CQ);
    const f64 p = hs_fma(r * r, q, r) + 1.0;
    return hs_number(hs_bits(p) + (hs_bits(rounded) << 52));
}
HS_FN f32 hs_pow(f32 x, f32 y) {
    constexpr f32 MOST = 3.4028235e38f;
    const f32 size = fabsf(x);
    const hs_pair parts = hs_split((f64)size);
    const f64 s = (parts.low - 1.0) / (parts.low + 1.0), z = s * s;
    constexpr f64 CT[] = {0.09681388418373767, 0.11095697246587528, 0.1428587731786638, 0.19999999398424337,
        0.33333333333687726};
    const f64 t = hs_polynomial(z, CT);
    f64 log = hs_fma(parts.high, HS_LN_2, hs_fma(2.0 * s * z, t, 2.0 * s));
    log = size == 0.0f ? -1e300 : log;
    log = size == (f32)HS_INFINITY ? 1e300 : log;
    f32 exponent = y > MOST ? MOST : y;
    exponent = exponent < -MOST ? -MOST : exponent;
    f32 p = (f32)hs_short_exponential((f64)exponent * log);
    const f32 half = 0.5f * y;
    const bool whole = floorf(y) == y, odd = floorf(half) != half;
    if (whole && odd && hs_bits(x) >> 31 != 0) p = -p;
    if (x < 0.0f && x > -(f32)HS_INFINITY && !whole) p = (f32)HS_NAN;
    if (x != x || y != y) p = (f32)HS_NAN;
    return x == 1.0f || y == 0.0f ? 1.0f : p;
}
HS_FN f64 hs_short_sine(u64 quadrant, f64 r) {
    const f64 z = r * r;
    constexpr f64 CS[] = {2.72499251916102e-6, -0.00019840086730669247, 0.008333331874701479, -0.16666666663855267};
    const f64 s = hs_polynomial(z, CS);
    constexpr f64 CC[] = {-2.730095869356721e-7, 2.4800600373221058e-5, -0.0013888887672009506,
        0.041666666664321186};
    const f64 c = hs_polynomial(z, CC);
    const f64 sine = r * hs_fma(z, s, 1.0), cosine = hs_fma(z, hs_fma(z, c, -0.5), 1.0);
    const f64 v = quadrant & 1 ? cosine : sine;
    return hs_number(hs_bits(v) ^ (quadrant << 62 & HS_SIGN));
}
HS_FN f32 hs_angle_32(f32 angle, u64 quarters) {
    const f64 x = angle;
    if (fabs(x) >= HS_NEAR) {
        const hs_angle a = hs_reduce_far(x);
        return (f32)hs_sine(a.quadrant + quarters, a.high, a.low);
    }
    const f64 rounded = hs_fma(x, HS_TWO_OVER_PI, HS_ROUND), n = rounded - HS_ROUND;
    return (f32)hs_short_sine(hs_bits(rounded) + quarters, hs_fma(-n, HS_PI_2_LOW, hs_fma(-n, HS_PI_2, x)));
}
HS_FN f32 hs_sin(f32 x) { return hs_angle_32(x, 0); }
HS_FN f32 hs_cos(f32 x) { return hs_angle_32(x, 1); }
HS_FN f32 hs_atan2(f32 ordinate, f32 abscissa) {
    constexpr f64 MOST = 1.7976931348623157e308;
    const f64 y = ordinate, x = abscissa;
    const bool steep = fabs(y) > fabs(x);
    f64 small = steep ? fabs(x) : fabs(y), large = steep ? fabs(y) : fabs(x);
    small = small < (f64)HS_INFINITY ? small : MOST;
    large = large < (f64)HS_INFINITY ? large : MOST;
    const f64 u = small / (large == 0.0 ? 1.0 : large), z = u * u;
    constexpr f64 CP[] = {0.0005930437556365282, -0.0042216579909296476, 0.014072923344697239,
        -0.02991311194551696, 0.047294798621813336, -0.06246315194128317, 0.0758665283364667, -0.09073553118976409,
        0.11109392308322223, -0.14285624891483525, 0.19999998154086215, -0.3333333332694414};
    const f64 p = hs_polynomial(z, CP);
    return (f32)hs_octants(y, x, u, u * z * p);
}
HS_FN f32 hs_hypot(f32 a, f32 b) {
    const f64 x = a, y = b;
    const f32 h = (f32)sqrt(hs_fma(x, x, y * y));
    return fabs(x) == (f64)HS_INFINITY || fabs(y) == (f64)HS_INFINITY ? (f32)HS_INFINITY : h;
}

// ---- integers: by f64 -------------------------------------------------------------------------------------------
#define HS_INTEGER(T)                                                                                                 \
    HS_FN T hs_exp(T a) { return hs_to<T>(hs_exp((f64)a)); }                                                          \
    HS_FN T hs_log(T a) { return hs_to<T>(hs_log((f64)a)); }                                                          \
    HS_FN T hs_sin(T a) { return hs_to<T>(hs_sin((f64)a)); }                                                          \
    HS_FN T hs_cos(T a) { return hs_to<T>(hs_cos((f64)a)); }                                                          \
    HS_FN T hs_pow(T a, T b) { return hs_to<T>(hs_pow((f64)a, (f64)b)); }                                             \
    HS_FN T hs_atan2(T a, T b) { return hs_to<T>(hs_atan2((f64)a, (f64)b)); }                                         \
    HS_FN T hs_hypot(T a, T b) { return hs_to<T>(hs_hypot((f64)a, (f64)b)); }
HS_INTEGER(u8)
HS_INTEGER(u16)
HS_INTEGER(u32)
HS_INTEGER(i8)
HS_INTEGER(i16)
HS_INTEGER(i32)
#undef HS_INTEGER

