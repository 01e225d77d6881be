// Casts: hs_cast<D>(value). Only programs that cast include this file.
//
// As in C: the fraction is dropped, the result is modulo the range, and infinities and NaN become 0. No operation
// rounds.
HS_FN f32 hs_trunc(f32 v) { return truncf(v); }
HS_FN f64 hs_trunc(f64 v) { return trunc(v); }
template <class D, class F> HS_FN D hs_remainder(F v) {
    const F extent = (F)((i64)1 << 8 * sizeof(D)), whole = hs_trunc(v);
    const F low = whole - hs_floor(whole * ((F)1 / extent)) * extent;
    return low > (F)0 ? (D)(u32)low : (D)0;
}
template <class D> struct hs_casts {
    static __device__ __forceinline__ D of(f64 v) { return hs_remainder<D, f64>(v); }
    // Integers of 32 bits need the digits of f64.
    static __device__ __forceinline__ D of(f32 v) {
        return sizeof(D) < 4 ? hs_remainder<D, f32>(v) : hs_remainder<D, f64>((f64)v);
    }
    template <class S> static __device__ __forceinline__ D of(S v) { return (D)v; }
};
template <> struct hs_casts<f32> : hs_convert<f32> {};
template <> struct hs_casts<f64> : hs_convert<f64> {};
template <class D, class S> HS_FN D hs_cast(S v) { return hs_casts<D>::of(v); }
