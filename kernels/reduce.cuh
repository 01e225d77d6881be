// Reductions in the fixed order of horus_core::ops::reduce. Segments have 1024 elements; element i belongs to lane i
// mod 64. Every lane accumulates in order, then lanes are combined in halves, then segments from the first to the last.

// From compute capability 9.0 on, a kernel can be launched while its predecessor runs: the predecessor allows it to
// begin, and it waits for the predecessor's writes.
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

// A segment is reduced by a warp; thread t has lanes t and t + 32. Combines all lanes in halves; the result is in
// thread 0. All threads of the warp must call this.
template <int HOW, class A> HS_FN A hs_halves(A low, A high) {
    A v = hs_combine<HOW, A>(low, high);
#pragma unroll
    for (int half = 16; half > 0; half /= 2) v = hs_combine<HOW, A>(v, (A)__shfl_down_sync(~0u, v, half));
    return v;
}

// Reduces a segment of `count` elements from `p`, APART from each other, by the warp's threads 0 <= t < 32; the result
// is in thread 0.
template <int HOW, class A, int APART = 1, class T> HS_FN A hs_segment(const T* p, int count, int t, A mean) {
    constexpr int EACH = HS_SEGMENT / 32;
    A low = hs_identity<HOW, A>(), high = low;
    T v[EACH]; // all reads overlap
    if (count == HS_SEGMENT) {
#pragma unroll
        for (int k = 0; k < EACH; ++k) v[k] = p[(t + 32 * k) * APART];
#pragma unroll
        for (int k = 0; k < EACH; k += 2) {
            low = hs_combine<HOW, A>(low, hs_value<HOW, A>(v[k], mean));
            high = hs_combine<HOW, A>(high, hs_value<HOW, A>(v[k + 1], mean));
        }
    } else {
#pragma unroll
        for (int k = 0; k < EACH; ++k) v[k] = t + 32 * k < count ? p[(t + 32 * k) * APART] : (T)0;
#pragma unroll
        for (int k = 0; k < EACH; k += 2) {
            if (t + 32 * k < count) low = hs_combine<HOW, A>(low, hs_value<HOW, A>(v[k], mean));
            if (t + 32 * k + 32 < count) high = hs_combine<HOW, A>(high, hs_value<HOW, A>(v[k + 1], mean));
        }
    }
    return hs_halves<HOW, A>(low, high);
}

// Reduces one sample of a row of `count` pixels from `p`, by a warp: its segments from left to right. The result is in
// thread 0.
template <int HOW, class A, class T> HS_FN A hs_row(const T* p, i64 count, int t, A mean) {
    A total = hs_identity<HOW, A>();
#pragma unroll 1
    for (i64 at = 0; at < count; at += HS_SEGMENT) {
        const int n = count - at < HS_SEGMENT ? (int)(count - at) : (int)HS_SEGMENT;
        total = hs_combine<HOW, A>(total, hs_segment<HOW, A, HS_SAMPLES>(p + at * HS_SAMPLES, n, t, mean));
    }
    return total;
}

// The value of the warp's first thread, in all of them.
template <class A> HS_FN A hs_from_first(A v) { return (A)__shfl_sync(~0u, v, 0); }

// The smallest and the largest element of a row, in the order of `hs_row`; the results are in thread 0.
template <class A> HS_FN void hs_row_extremes(const A* p, i64 count, int t, A* found) {
    constexpr int EACH = HS_SEGMENT / 32;
    found[0] = hs_identity<HS_MIN, A>();
    found[1] = hs_identity<HS_MAX, A>();
#pragma unroll 1
    for (i64 at = 0; at < count; at += HS_SEGMENT) {
        const int n = count - at < HS_SEGMENT ? (int)(count - at) : (int)HS_SEGMENT;
        A v[EACH];
#pragma unroll
        for (int k = 0; k < EACH; ++k) v[k] = t + 32 * k < n ? p[(at + t + 32 * k) * HS_SAMPLES] : (A)0;
        A low[2] = {hs_identity<HS_MIN, A>(), hs_identity<HS_MIN, A>()};
        A high[2] = {hs_identity<HS_MAX, A>(), hs_identity<HS_MAX, A>()};
#pragma unroll
        for (int k = 0; k < EACH; ++k) {
            if (t + 32 * k < n) {
                low[k % 2] = hs_combine<HS_MIN, A>(low[k % 2], v[k]);
                high[k % 2] = hs_combine<HS_MAX, A>(high[k % 2], v[k]);
            }
        }
        found[0] = hs_combine<HS_MIN, A>(found[0], hs_halves<HS_MIN, A>(low[0], low[1]));
        found[1] = hs_combine<HS_MAX, A>(found[1], hs_halves<HS_MAX, A>(high[0], high[1]));
    }
}

// Moments: sum, squared deviation from the mean, number; see horus_core::ops::reduce::Moments.
HS_FN void hs_no_moments(f64* all) { all[0] = all[1] = all[2] = 0.0; }
HS_FN void hs_add_moments(f64* all, int count, f64 sum, f64 squares) {
    const f64 n = (f64)count;
    if (all[2] == 0.0) {
        all[0] = sum;
        all[1] = squares;
        all[2] = n;
        return;
    }
    const f64 total = all[2] + n;
    const f64 apart = sum / n - all[0] / all[2];
    all[1] = all[1] + squares + apart * apart * (all[2] * n / total);
    all[0] = all[0] + sum;
    all[2] = total;
}

// The moments of a row: each segment stays in registers until its mean is known. The results are in thread 0.
template <class T> HS_FN void hs_row_moments(const T* p, i64 count, int t, f64* found) {
    constexpr int EACH = HS_SEGMENT / 32;
    hs_no_moments(found);
#pragma unroll 1
    for (i64 at = 0; at < count; at += HS_SEGMENT) {
        const int n = count - at < HS_SEGMENT ? (int)(count - at) : (int)HS_SEGMENT;
        T v[EACH];
#pragma unroll
        for (int k = 0; k < EACH; ++k) v[k] = t + 32 * k < n ? p[(at + t + 32 * k) * HS_SAMPLES] : (T)0;
        f64 lanes[2] = {0.0, 0.0}, squares[2] = {0.0, 0.0};
#pragma unroll
        for (int k = 0; k < EACH; ++k)
            if (t + 32 * k < n) lanes[k % 2] = lanes[k % 2] + hs_to<f64>(v[k]);
        const f64 sum = hs_from_first(hs_halves<HS_SUM, f64>(lanes[0], lanes[1]));
        const f64 mean = sum / (f64)n;
#pragma unroll
        for (int k = 0; k < EACH; ++k)
            if (t + 32 * k < n) squares[k % 2] = squares[k % 2] + hs_value<HS_SQUARED, f64>(v[k], mean);
        hs_add_moments(found, n, sum, hs_halves<HS_SUM, f64>(squares[0], squares[1]));
    }
}

// The column of an element that equals the wanted value, else infinity.
template <class T> HS_FN f64 hs_column_of(T v, f64 wanted, i64 column) {
    return hs_to<f64>(v) == wanted ? (f64)column : hs_highest<f64>();
}

// The first column of a row with the wanted value, or infinity; the result is in thread 0.
template <class T> HS_FN f64 hs_row_first(const T* p, i64 count, int t, f64 wanted) {
    f64 at = hs_highest<f64>();
    for (i64 x = t; x < count; x += 32) at = hs_min(at, hs_column_of(p[x * HS_SAMPLES], wanted, x));
    return hs_halves<HS_MIN, f64>(at, at);
}

// The running sums of a row, by a warp: each thread runs over a chunk of 32 elements of a segment. The segment is in
// `shared` with 33 elements per chunk, so that the threads access different banks.
template <class T> HS_FN void hs_running(const T* p, i64 count, int t, f64* shared, f64* out) {
    f64 before = 0.0;
#pragma unroll 1
    for (i64 at = 0; at < count; at += HS_SEGMENT) {
        const int n = count - at < HS_SEGMENT ? (int)(count - at) : (int)HS_SEGMENT;
#pragma unroll 8
        for (int k = 0; k < 32; ++k)
            if (t + 32 * k < n) shared[t + 33 * k] = hs_to<f64>(p[at + t + 32 * k]);
        __syncwarp();
        f64 sum = 0.0;
#pragma unroll 8
        for (int k = 0; k < 32; ++k) {
            if (32 * t + k < n) {
                sum = sum + shared[33 * t + k];
                shared[33 * t + k] = sum;
            }
        }
        // Elements after the last chunk add 0.
        f64 offset = 0.0, all = 0.0;
#pragma unroll 8
        for (int k = 0; k < 32; ++k) {
            const f64 chunk = (f64)__shfl_sync(~0u, sum, k);
            if (k == t) offset = all;
            all = all + chunk;
        }
#pragma unroll 8
        for (int k = 0; k < 32; ++k)
            if (32 * t + k < n) shared[33 * t + k] = before + (offset + shared[33 * t + k]);
        __syncwarp();
#pragma unroll 8
        for (int k = 0; k < 32; ++k)
            if (t + 32 * k < n) out[at + t + 32 * k] = shared[t + 33 * k];
        __syncwarp();
        before = before + all;
    }
}

// Reduces `planes` columns of `count` elements each, contiguous from `p`, by a block of WARPS warps: each reduces a
// segment at a time, and thread 0, which has the results, combines them in order. `found` has one value per warp.
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

// Reduces a segment whose element i is `value(i)`, by a warp; the result is in thread 0.
template <int HOW, class A, class F> HS_FN A hs_segment_of(F value, i64 first, int count, int t) {
    A low = hs_identity<HOW, A>(), high = low;
#pragma unroll 4
    for (int k = t; k < count; k += 64) {
        low = hs_combine<HOW, A>(low, value(first + k));
        if (k + 32 < count) high = hs_combine<HOW, A>(high, value(first + k + 32));
    }
    return hs_halves<HOW, A>(low, high);
}

// hs_columns in which element i of all planes is `value(i)`.
template <int HOW, class A, int WARPS, class F> HS_FN A hs_columns_of(F value, i64 count, int planes, A* found) {
    const int t = threadIdx.x % 32, warp = threadIdx.x / 32;
    A all = hs_identity<HOW, A>();
#pragma unroll 1
    for (int plane = 0; plane < planes; ++plane) {
        A total = hs_identity<HOW, A>();
#pragma unroll 1
        for (i64 at = 0; at < count; at += WARPS * HS_SEGMENT) {
            const i64 first = at + warp * HS_SEGMENT, left = count - first;
            const int n = left < 0 ? 0 : left < HS_SEGMENT ? (int)left : (int)HS_SEGMENT;
            const A v = hs_segment_of<HOW, A>(value, plane * count + first, n, t);
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

// The extremes of `rows` rows of each plane, from the smallest and the largest element of each row.
template <class A, int WARPS> HS_FN void hs_fold_extremes(const A* p, i64 rows, int planes, A* found, A* out) {
    const A low = hs_columns_of<HS_MIN, A, WARPS>([=](i64 i) { return p[2 * i]; }, rows, planes, found);
    const A high = hs_columns_of<HS_MAX, A, WARPS>([=](i64 i) { return p[2 * i + 1]; }, rows, planes, found);
    if (threadIdx.x == 0) {
        out[0] = low;
        out[1] = high;
    }
}

// The moments of `rows` rows of each plane, from the moments of each row.
template <class A, int WARPS> HS_FN void hs_fold_moments(const A* p, i64 rows, int planes, A* found, A* out) {
    const f64 count = hs_columns_of<HS_SUM, f64, WARPS>([=](i64 i) { return p[3 * i + 2]; }, rows, planes, found);
    const f64 sum = hs_columns_of<HS_SUM, f64, WARPS>([=](i64 i) { return p[3 * i]; }, rows, planes, found);
    if (threadIdx.x == 0) found[0] = sum / count;
    __syncthreads();
    const f64 mean = found[0];
    __syncthreads();
    const auto spread = [=](i64 i) {
        const f64 apart = p[3 * i] / p[3 * i + 2] - mean;
        return p[3 * i + 1] + p[3 * i + 2] * (apart * apart);
    };
    const f64 squares = hs_columns_of<HS_SUM, f64, WARPS>(spread, rows, planes, found);
    if (threadIdx.x == 0) {
        out[0] = sum;
        out[1] = squares;
        out[2] = count;
    }
}

// Returns true in all threads of the last of `blocks` blocks that calls this; it sees what the others wrote before.
// `done` counts the blocks: it is 0 before, and again afterwards.
HS_FN bool hs_is_last(u32* done, u32 blocks) {
    u32* before = reinterpret_cast<u32*>(hs_smem);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) *before = atomicAdd(done, 1u);
    __syncthreads();
    const bool last = *before == blocks - 1;
    __syncthreads();
    if (last) {
        __threadfence();
        if (threadIdx.x == 0) *done = 0;
    }
    return last;
}

// The bin of v by horus_core::ops::reduce::bin_of, or -1.
HS_FN int hs_bin(f64 v, f64 lo, f64 hi, int bins) {
    if (!(v >= lo && v <= hi)) return -1;
    const f64 at = (v - lo) / (hi - lo) * (f64)bins;
    // As in Rust's conversion, a NaN (an empty range) is bin 0.
    const int i = at >= (f64)bins ? bins - 1 : at > 0.0 ? (int)at : 0;
    return min(i, bins - 1);
}

// Counts `count` pixels in bins. A block of THREADS threads takes THREADS * EACH pixels; with SHARED it counts in
// shared memory first. Counts are integers below 2^53, so the order of these additions does not matter.
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

// Reduces the pixels of a rectangle, by a warp: column i belongs to lane i mod 64, lanes accumulate down the rows, and
// are then combined in halves; the result is in thread 0. See horus_core::ops::tiles.
template <int HOW, class A, class T>
HS_FN A hs_rectangle(const T* p, i64 pitch, int height, int width, int t, A mean) {
    A low = hs_identity<HOW, A>(), high = low;
    for (int y = 0; y < height; ++y) {
        const T* row = p + y * pitch;
        for (int x = t; x < width; x += 64) {
            low = hs_combine<HOW, A>(low, hs_value<HOW, A>(row[x], mean));
            if (x + 32 < width) high = hs_combine<HOW, A>(high, hs_value<HOW, A>(row[x + 32], mean));
        }
    }
    return hs_halves<HOW, A>(low, high);
}

// Rows p.row0 to p.row1 of a grid of rectangles, of one plane, by blocks of WARPS warps. All threads of a warp must
// take part.
template <int HOW, class A, int WARPS, class P, class T>
HS_FN void hs_tiles(const P& p, const T* in, A* out) {
    const int t = threadIdx.x % 32;
    const i64 n = (i64)blockIdx.x * WARPS + threadIdx.x / 32;
    const i64 y = p.row0 + n / p.width, x = n % p.width;
    const bool exists = y < p.row1;
    const i64 top = y * p.down, left = x * p.across;
    const int height = !exists ? 0 : p.in_height - top < p.tall ? (int)(p.in_height - top) : p.tall;
    const int width = p.in_width - left < p.wide ? (int)(p.in_width - left) : p.wide;
    const T* first = in + (top - p.in_start) * p.in_width + left;
    A mean = (A)0;
    if (HOW == HS_SQUARED) {
        const A sum = hs_from_first(hs_rectangle<HS_SUM, A>(first, p.in_width, height, width, t, mean));
        mean = sum / (A)((i64)height * width);
    }
    const A result = hs_rectangle<HOW, A>(first, p.in_width, height, width, t, mean);
    if (t == 0 && exists) out[(y - p.out_start) * p.width + x] = result;
}
