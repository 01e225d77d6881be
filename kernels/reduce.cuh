// Reductions in the fixed order of horus_core::ops::reduce: element i goes to lane i mod 64, every lane accumulates in
// order, then lanes are combined in halves.

// From compute capability 9.0 on, a kernel can be launched while the one before it runs: that one lets it begin, and it
// waits for what that one writes.
HS_FN void hs_let_next_begin() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
HS_FN void hs_wait_for_previous() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

enum { HS_SUM, HS_SQUARED, HS_MIN, HS_MAX };

template <int HOW, class A> HS_FN A hs_identity() {
    return HOW == HS_MIN ? hs_highest<A>() : HOW == HS_MAX ? hs_lowest<A>() : (A)0;
}
template <int HOW, class A> HS_FN A hs_combine(A a, A b) {
    return HOW == HS_MIN ? hs_min(a, b) : HOW == HS_MAX ? hs_max(a, b) : hs_add(a, b);
}
template <int HOW, class A, class T> HS_FN A hs_value(T v, A mean) {
    if (HOW != HS_SQUARED) return hs_to<A>(v);
    const A d = hs_to<A>(v) - mean;
    return d * d;
}

// Lane `lane` of `count` elements from `p`, AHEAD of them read at once.
template <int HOW, class A, int AHEAD = 16, class T> HS_FN A hs_lane(const T* p, i64 count, int lane, A mean) {
    A acc = hs_identity<HOW, A>();
    i64 i = lane;
    for (; i + 64 * (AHEAD - 1) < count; i += 64 * AHEAD) {
        T v[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) v[k] = p[i + 64 * k];
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) acc = hs_combine<HOW, A>(acc, hs_value<HOW, A>(v[k], mean));
    }
    for (; i < count; i += 64) acc = hs_combine<HOW, A>(acc, hs_value<HOW, A>(p[i], mean));
    return acc;
}

// Combines the 64 lanes that begin at `lanes`; the result is in the first. All threads of the block must come here.
template <int HOW, class A> HS_FN void hs_halves(A* lanes, int lane) {
#ifdef HS_EMULATE
    for (int half = 32; half > 0; half /= 2) {
        __syncthreads();
        A v = (A)0;
        if (lane < half) v = hs_combine<HOW, A>(lanes[lane], lanes[lane + half]);
        __syncthreads();
        if (lane < half) lanes[lane] = v;
    }
#else
    // The lanes are two warps: after the first step, one of them goes on by itself.
    __syncthreads();
    if (lane < 32) {
        A v = hs_combine<HOW, A>(lanes[lane], lanes[lane + 32]);
#pragma unroll
        for (int half = 16; half > 0; half /= 2) v = hs_combine<HOW, A>(v, (A)__shfl_down_sync(~0u, v, half));
        if (lane == 0) lanes[0] = v;
    }
#endif
    __syncthreads();
}

// The bin of v as in horus_core::ops::reduce::bin_of, or -1.
HS_FN int hs_bin(f64 v, f64 lo, f64 hi, int bins) {
    if (!(v >= lo && v <= hi)) return -1;
    const f64 at = (v - lo) / (hi - lo) * (f64)bins;
    // As Rust converts: a NaN (an empty range) is bin 0.
    const int i = at >= (f64)bins ? bins - 1 : at > 0.0 ? (int)at : 0;
    return min(i, bins - 1);
}
