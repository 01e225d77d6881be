// Connected components, in consecutive launches over an image of levels, rows and columns (see
// horus_core::ops::components). Before the last launch, a pixel has its distance to its parent, which precedes it: 0 in
// a root, HS_BACKGROUND in the background. The root of a component is its first pixel, whatever the order of threads:
// they only ever write a parent further ahead.

enum { HS_BACKGROUND = -2147483647 - 1 };

// The current value of all threads, not a cached one.
HS_FN int hs_now(const int* p) { return *(const volatile int*)p; }

// The root of pixel i. SHORTER compresses the path to it. It may write a stale value, which is nearer to the pixel than
// the current one.
template <bool SHORTER> HS_FN int hs_root(int* away, int i) {
    for (int step = hs_now(away + i); step != 0;) {
        const int further = hs_now(away + i - step);
        if (further == 0) return i - step;
        if (SHORTER) away[i] = step + further;
        i -= step;
        step = further;
    }
    return i;
}

// Joins two components.
HS_FN void hs_join(int* away, int a, int b) {
    for (;;) {
        a = hs_root<true>(away, a);
        b = hs_root<true>(away, b);
        if (a == b) return;
        if (a < b) {
            const int c = a;
            a = b;
            b = c;
        }
        const int before = atomicMax(away + a, a - b);
        if (before == 0) return;
        // a was no longer a root: the component of its parent is joined too.
        a -= before;
    }
}

// The sum of the counts of the block's earlier threads; `sums` has one per thread, at the end the prefix sums.
template <int THREADS> HS_FN int hs_before(int count, int* sums) {
    sums[threadIdx.x] = count;
    __syncthreads();
    for (int by = 1; by < THREADS; by *= 2) {
        const int other = (int)threadIdx.x >= by ? sums[threadIdx.x - by] : 0;
        __syncthreads();
        sums[threadIdx.x] += other;
        __syncthreads();
    }
    return sums[threadIdx.x] - count;
}

// The largest number of the block's earlier threads, at least 0.
template <int THREADS> HS_FN int hs_latest(int own, int* numbers) {
    numbers[threadIdx.x] = own;
    __syncthreads();
    for (int by = 1; by < THREADS; by *= 2) {
        const int other = (int)threadIdx.x >= by ? numbers[threadIdx.x - by] : 0;
        __syncthreads();
        numbers[threadIdx.x] = max(numbers[threadIdx.x], other);
        __syncthreads();
    }
    return threadIdx.x > 0 ? numbers[threadIdx.x - 1] : 0;
}

// Launch `pass` over `count` pixels. A block takes THREADS * EACH pixels, a thread EACH consecutive ones. The bits of
// NEIGHBOURS select among the 13 places before a pixel; `counts` has a number for each block. A pixel becomes the
// label of its component, or for SIZES the number of its pixels, which has one pass fewer.
template <int NEIGHBOURS, bool SIZES, int THREADS, int EACH, class T>
HS_FN void hs_components(
    int pass, const T* in, int* away, int* counts, int blocks, int count, int depth, int height, int width, int* sums) {
    const int first = (int)min((i64)count, ((i64)blockIdx.x * THREADS + threadIdx.x) * EACH);
    const int last = (int)min((i64)count, (i64)first + EACH);
    constexpr bool left = NEIGHBOURS >> 12 & 1;
    if (pass == 0) {
        // Consecutive pixels of a row in a block: their parent is the first of them.
        int latest = 0;
        if (left) {
            for (int i = first; i < last; ++i) latest = in[i] == (T)0 ? i + 1 : i % width == 0 ? i : latest;
            latest = max((int)blockIdx.x * THREADS * EACH, hs_latest<THREADS>(latest, sums));
        }
        for (int i = first; i < last; ++i) {
            const bool is_in = in[i] != (T)0;
            if (!left || i % width == 0) latest = i;
            away[i] = is_in ? i - latest : HS_BACKGROUND;
            if (!is_in) latest = i + 1;
        }
    } else if (pass == 1) {
        for (int i = first; i < last; ++i) {
            if (hs_now(away + i) == HS_BACKGROUND) continue;
            const int row = i / width, x = i - row * width, z = row / height, y = row - z * height;
            const bool follows = left && x > 0 && hs_now(away + i - 1) != HS_BACKGROUND;
            if (follows && i % (THREADS * EACH) == 0) hs_join(away, i, i - 1);
#pragma unroll
            for (int k = 0; k < 12; ++k) {
                const int dz = k / 9 - 1, dy = k / 3 % 3 - 1, dx = k % 3 - 1;
                if (!(NEIGHBOURS >> k & 1) || z + dz < 0 || y + dy < 0 || y + dy >= height || x + dx < 0 || x + dx >= width) continue;
                const int other = i + (dz * height + dy) * width + dx;
                if (hs_now(away + other) == HS_BACKGROUND) continue;
                // The pixel left of `other` is joined with both already.
                if (follows && x + dx > 0 && hs_now(away + other - 1) != HS_BACKGROUND) continue;
                hs_join(away, i, other);
            }
        }
    } else if (pass == 2) {
        // Each thread writes its own pixels only, and their final values.
        int roots = 0;
        for (int i = first; i < last; ++i) {
            const int step = hs_now(away + i);
            roots += step == 0;
            if (step > 0) away[i] = i - hs_root<false>(away, i);
        }
        if (!SIZES) {
            const int before = hs_before<THREADS>(roots, sums);
            if (threadIdx.x == THREADS - 1) counts[blockIdx.x] = before + roots;
        }
    } else if (SIZES && pass == 3) {
        // Roots count down from 0. Consecutive pixels of a thread are counted together.
        int root = 0, pixels = 0;
        for (int i = first; i < last; ++i) {
            const int step = hs_now(away + i);
            if (step == HS_BACKGROUND) continue;
            const int own = step > 0 ? i - step : i;
            if (pixels > 0 && own != root) {
                atomicSub(away + root, pixels);
                pixels = 0;
            }
            root = own;
            ++pixels;
        }
        if (pixels > 0) atomicSub(away + root, pixels);
    } else if (!SIZES && pass == 3) {
        // One block computes the number of roots in all blocks before each.
        if (blockIdx.x > 0) return;
        constexpr int TOGETHER = 16;
        int total = 0;
        for (int at = 0; at < blocks; at += THREADS * TOGETHER) {
            const int k = at + threadIdx.x * TOGETHER, end = min(k + TOGETHER, blocks);
            int own = 0;
            for (int j = k; j < end; ++j) own += counts[j];
            int before = total + hs_before<THREADS>(own, sums);
            for (int j = k; j < end; ++j) {
                const int here = counts[j];
                counts[j] = before;
                before += here;
            }
            total += sums[THREADS - 1];
            __syncthreads();
        }
    } else if (!SIZES && pass == 4) {
        int roots = 0;
        for (int i = first; i < last; ++i) roots += away[i] == 0;
        int label = counts[blockIdx.x] + hs_before<THREADS>(roots, sums);
        // Numbers of roots are negative; none equals the background's.
        for (int i = first; i < last; ++i)
            if (away[i] == 0) away[i] = -++label;
    } else {
        for (int i = first; i < last; ++i) {
            const int step = away[i];
            if (step == HS_BACKGROUND) {
                away[i] = 0;
            } else {
                // The root's thread may have written its value already, or not.
                const int value = step > 0 ? hs_now(away + i - step) : step;
                away[i] = value < 0 ? -value : value;
            }
        }
    }
}
