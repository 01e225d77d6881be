// Reductions in the fixed order of horus_core::ops::reduce: segments of 1024 elements, of which element i goes to lane
// i mod 64; every lane accumulates in order, then lanes are combined in halves, then segments from the first to the last.

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
enum { HS_SEGMENT = 1024 };

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

// A segment is reduced by a warp, whose threads have two lanes each: thread t has lanes t and t + 32. These combine all
// lanes in halves; the result is in thread 0. All threads of the warp must come here.
template <int HOW, class A> HS_FN A hs_halves(A low, A high) {
    A v = hs_combine<HOW, A>(low, high);
#pragma unroll
    for (int half = 16; half > 0; half /= 2) v = hs_combine<HOW, A>(v, (A)__shfl_down_sync(~0u, v, half));
    return v;
}

// A segment of `count` elements from `p`, by the warp's threads 0 <= t < 32; the result is in thread 0.
template <int HOW, class A, class T> HS_FN A hs_segment(const T* p, int count, int t, A mean) {
    constexpr int EACH = HS_SEGMENT / 32;
    A low = hs_identity<HOW, A>(), high = low;
    T v[EACH]; // all of them are read at once
    if (count == HS_SEGMENT) {
#pragma unroll
        for (int k = 0; k < EACH; ++k) v[k] = p[t + 32 * k];
#pragma unroll
        for (int k = 0; k < EACH; k += 2) {
            low = hs_combine<HOW, A>(low, hs_value<HOW, A>(v[k], mean));
            high = hs_combine<HOW, A>(high, hs_value<HOW, A>(v[k + 1], mean));
        }
    } else {
#pragma unroll
        for (int k = 0; k < EACH; ++k) v[k] = t + 32 * k < count ? p[t + 32 * k] : (T)0;
#pragma unroll
        for (int k = 0; k < EACH; k += 2) {
            if (t + 32 * k < count) low = hs_combine<HOW, A>(low, hs_value<HOW, A>(v[k], mean));
            if (t + 32 * k + 32 < count) high = hs_combine<HOW, A>(high, hs_value<HOW, A>(v[k + 1], mean));
        }
    }
    return hs_halves<HOW, A>(low, high);
}

// A row of `count` elements from `p`, by a warp: its segments from left to right. The result is in thread 0.
template <int HOW, class A, class T> HS_FN A hs_row(const T* p, i64 count, int t, A mean) {
    A total = hs_identity<HOW, A>();
#pragma unroll 1
    for (i64 at = 0; at < count; at += HS_SEGMENT) {
        const int n = count - at < HS_SEGMENT ? (int)(count - at) : (int)HS_SEGMENT;
        total = hs_combine<HOW, A>(total, hs_segment<HOW, A>(p + at, n, t, mean));
    }
    return total;
}

// `planes` columns of `count` elements each, one after the other from `p`, by a block of WARPS warps: its warps reduce as
// many segments at once, and thread 0, which has the result, takes them in order. `found` has room for one value of each
// warp.
template <int HOW, class A, int WARPS> HS_FN A hs_columns(const A* p, i64 count, int planes, A* found) {
    const int t = threadIdx.x % 32, warp = threadIdx.x / 32;
    A all = hs_identity<HOW, A>();
#pragma unroll 1
    for (int plane = 0; plane < planes; ++plane, p += count) {
        A total = hs_identity<HOW, A>();
#pragma unroll 1
        for (i64 at = 0; at < count; at += WARPS * HS_SEGMENT) {
            const i64 left = count - at - warp * HS_SEGMENT;
            const int n = left < 0 ? 0 : left < HS_SEGMENT ? (int)left : (int)HS_SEGMENT;
            const A v = hs_segment<HOW, A>(p + (count - left), n, t, (A)0);
            if (t == 0) found[warp] = v;
            __syncthreads();
            if (threadIdx.x == 0)
                for (int k = 0; k < WARPS && at + k * HS_SEGMENT < count; ++k) total = hs_combine<HOW, A>(total, found[k]);
            __syncthreads();
        }
        all = hs_combine<HOW, A>(all, total);
    }
    return all;
}

// The bin of v as in horus_core::ops::reduce::bin_of, or -1.
HS_FN int hs_bin(f64 v, f64 lo, f64 hi, int bins) {
    if (!(v >= lo && v <= hi)) return -1;
    const f64 at = (v - lo) / (hi - lo) * (f64)bins;
    // As Rust converts: a NaN (an empty range) is bin 0.
    const int i = at >= (f64)bins ? bins - 1 : at > 0.0 ? (int)at : 0;
    return min(i, bins - 1);
}

// Counts `count` pixels in bins, of which a block of THREADS threads takes THREADS * EACH: with SHARED in shared memory
// first. Counts are whole numbers below 2^53: the order of these additions does not matter.
template <int THREADS, int EACH, bool SHARED, class T>
HS_FN void hs_histogram(const T* in, i64 count, f64 lo, f64 hi, int bins, f64* out) {
    const i64 first = (i64)blockIdx.x * (THREADS * EACH), last = min(first + THREADS * EACH, count);
    u32* counts = reinterpret_cast<u32*>(hs_smem);
    if (SHARED) {
        for (int b = threadIdx.x; b < bins; b += THREADS) counts[b] = 0;
        __syncthreads();
    }
    for (i64 i = first + threadIdx.x; i < last; i += THREADS) {
        const int b = hs_bin(hs_to<f64>(in[i]), lo, hi, bins);
        if (b < 0) continue;
        if (SHARED)
            atomicAdd(counts + b, 1u);
        else
            atomicAdd(out + b, 1.0);
    }
    if (SHARED) {
        __syncthreads();
        for (int b = threadIdx.x; b < bins; b += THREADS)
            if (counts[b]) atomicAdd(out + b, (f64)counts[b]);
    }
}
