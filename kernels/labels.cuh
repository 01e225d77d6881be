// Reductions of the pixels of each label; see horus_core::ops::labels. Digits of exact sums are integers, and their
// sums stay below 2^53, so the order of these additions does not matter.

enum { HS_DIGITS = 88 };

// The digits of a sum: COUNT from FIRST on, and three more columns for floats;
// `horus_core::ops::labels::Digits`.
template <int FIRST_DIGIT, int COUNT_DIGITS> struct hs_sum {
    enum { FIRST = FIRST_DIGIT, COUNT = COUNT_DIGITS };
};

// The contribution of a number to an exact sum: four integers, for consecutive columns; returns the first column.
HS_FN int hs_digits(f64 v, f64 (&parts)[4]) {
    const u64 bits = (u64)__double_as_longlong(v), fraction = bits & ((1ull << 52) - 1), mask = (1ull << 24) - 1;
    const int exponent = (int)(bits >> 52) & 0x7ff;
    const f64 sign = bits >> 63 ? -1.0 : 1.0;
    if (exponent == 0x7ff) {
        parts[0] = 1.0;
        parts[1] = parts[2] = parts[3] = 0.0;
        return HS_DIGITS + (fraction ? 0 : sign > 0.0 ? 1 : 2);
    }
    const u64 mantissa = exponent ? fraction | 1ull << 52 : fraction;
    const int place = exponent ? exponent - 1 : 0, shift = place % 24;
    parts[0] = sign * (f64)(i64)(mantissa << shift & mask);
    parts[1] = sign * (f64)(i64)(mantissa >> (24 - shift) & mask);
    parts[2] = sign * (f64)(i64)(mantissa >> (48 - shift) & mask);
    parts[3] = shift > 19 ? sign * (f64)(i64)(mantissa >> (72 - shift)) : 0.0;
    return place / 24;
}

// The sum of a thread's consecutive contributions to the same columns: adjacent pixels are often alike.
struct hs_run {
    i64 at;
    f64 parts[4];
};
HS_FN void hs_finish(const hs_run& run, f64* table) {
    for (int k = 0; k < 4; ++k)
        if (run.parts[k] != 0.0) atomicAdd(table + run.at + k, run.parts[k]);
}
template <class SUM> HS_FN void hs_enter(hs_run& run, f64* table, i64 at, f64 v) {
    f64 parts[4];
    // The lowest part may be below the lowest digit; it is 0 then.
    const int digit = hs_digits(v, parts);
    at += digit >= HS_DIGITS ? digit - HS_DIGITS + SUM::COUNT : digit - SUM::FIRST;
    if (at != run.at) {
        hs_finish(run, table);
        run.at = at;
        for (int k = 0; k < 4; ++k) run.parts[k] = 0.0;
    }
    for (int k = 0; k < 4; ++k) run.parts[k] = run.parts[k] + parts[k];
}

// Adds `count` pixels by their labels, `labels` in number. A block of THREADS threads takes THREADS * EACH pixels; with
// SHARED it adds them in shared memory first. In a table of `columns`, squares begin at column `squared`.
template <int THREADS, int EACH, bool SHARED, bool SQUARES, class SUM, class SQUARED, class L, class T>
HS_FN void hs_label_sums(const L* label, const T* image, i64 count, int labels, int columns, int squared, f64* out) {
    const i64 first = (i64)blockIdx.x * (THREADS * EACH), last = min(first + THREADS * EACH, count);
    f64* table = SHARED ? reinterpret_cast<f64*>(hs_smem) : out;
    if (SHARED) {
        for (int k = threadIdx.x; k < labels * columns; k += THREADS) table[k] = 0.0;
        __syncthreads();
    }
    hs_run pixels = {0, {0.0, 0.0, 0.0, 0.0}}, sum = pixels, square = pixels;
    for (i64 i = first + threadIdx.x; i < last; i += THREADS) {
        const i64 l = (i64)label[i];
        if (l < 0 || l >= labels) continue;
        const i64 row = l * columns;
        if (row != pixels.at) {
            hs_finish(pixels, table);
            pixels.at = row;
            pixels.parts[0] = 0.0;
        }
        pixels.parts[0] = pixels.parts[0] + 1.0;
        const f64 v = hs_to<f64>(image[i]);
        hs_enter<SUM>(sum, table, row + 1, v);
        if (SQUARES) {
            const f64 high = v * v, low = high - high == 0.0 ? hs_fma(v, v, -high) : 0.0;
            hs_enter<SQUARED>(square, table, row + squared, high);
            if (low != 0.0) {
                hs_run rest = {0, {0.0, 0.0, 0.0, 0.0}};
                hs_enter<SQUARED>(rest, table, row + squared, low);
                hs_finish(rest, table);
            }
        }
    }
    hs_finish(pixels, table);
    hs_finish(sum, table);
    if (SQUARES) hs_finish(square, table);
    if (SHARED) {
        __syncthreads();
        for (int k = threadIdx.x; k < labels * columns; k += THREADS)
            if (table[k] != 0.0) atomicAdd(out + k, table[k]);
    }
}

// Moments of the pixels of each label: sums of rows, columns and their products. A thread accumulates the moments of
// its latest label.
enum { HS_SHAPE_COLUMNS = 14 };
HS_FN void hs_finish_shape(f64 (&sums)[HS_SHAPE_COLUMNS], f64* row) {
    if (sums[0] == 0.0) return;
    for (int k = 0; k < HS_SHAPE_COLUMNS; ++k) {
        if (sums[k] != 0.0) atomicAdd(row + k, sums[k]);
        sums[k] = 0.0;
    }
}

// Adds `count` pixels in rows of `width`, the first in row `top` and column `left`; otherwise like the sums.
template <int THREADS, int EACH, bool SHARED, class L>
HS_FN void hs_label_shapes(const L* label, i64 count, int width, i64 top, i64 left, int labels, f64* out) {
    const int columns = HS_SHAPE_COLUMNS;
    const i64 first = (i64)blockIdx.x * (THREADS * EACH), last = min(first + THREADS * EACH, count);
    f64* table = SHARED ? reinterpret_cast<f64*>(hs_smem) : out;
    if (SHARED) {
        for (int k = threadIdx.x; k < labels * columns; k += THREADS) table[k] = 0.0;
        __syncthreads();
    }
    const u64 mask = (1ull << 24) - 1;
    f64 sums[HS_SHAPE_COLUMNS];
    for (int k = 0; k < columns; ++k) sums[k] = 0.0;
    i64 row = 0;
    for (i64 i = first + threadIdx.x; i < last; i += THREADS) {
        const i64 l = (i64)label[i];
        if (l < 0 || l >= labels) continue;
        if (l * columns != row) {
            hs_finish_shape(sums, table + row);
            row = l * columns;
        }
        const i64 line = i / width;
        const u64 y = (u64)(top + line), x = (u64)(left + (i - line * width));
        const u64 products[3] = {y * y, y * x, x * x};
        sums[0] = sums[0] + 1.0;
        sums[1] = sums[1] + (f64)(i64)(y & mask);
        sums[2] = sums[2] + (f64)(i64)(y >> 24);
        sums[3] = sums[3] + (f64)(i64)(x & mask);
        sums[4] = sums[4] + (f64)(i64)(x >> 24);
        for (int k = 0; k < 3; ++k) {
            sums[5 + 3 * k] = sums[5 + 3 * k] + (f64)(i64)(products[k] & mask);
            sums[6 + 3 * k] = sums[6 + 3 * k] + (f64)(i64)(products[k] >> 24 & mask);
            sums[7 + 3 * k] = sums[7 + 3 * k] + (f64)(i64)(products[k] >> 48);
        }
    }
    hs_finish_shape(sums, table + row);
    if (SHARED) {
        __syncthreads();
        for (int k = threadIdx.x; k < labels * columns; k += THREADS)
            if (table[k] != 0.0) atomicAdd(out + k, table[k]);
    }
}

// A key in the order of the floats: unsigned, and never the largest key.
HS_FN u64 hs_ordered(f64 v) {
    const u64 bits = (u64)__double_as_longlong(v);
    return bits >> 63 ? ~bits : bits | 1ull << 63;
}
HS_FN f64 hs_unordered(u64 key) {
    return __longlong_as_double((i64)(key >> 63 ? key & ~(1ull << 63) : ~key));
}

// The smallest or the largest pixel of each label among `count` of each plane, by a block of THREADS threads. The
// results are keys until all are found. A plane begins `label_plane` and `image_plane` pixels after the previous one.
template <int THREADS, bool LEAST, class L, class T>
HS_FN void hs_label_extremes(
    const L* label, i64 label_plane, const T* image, i64 image_plane, int planes, i64 count, int labels, f64* out) {
    u64* keys = reinterpret_cast<u64*>(out);
    for (int l = threadIdx.x; l < labels; l += THREADS) keys[l] = ~0ull;
    __syncthreads();
    for (int plane = 0; plane < planes; ++plane, label += label_plane, image += image_plane)
        for (i64 i = threadIdx.x; i < count; i += THREADS) {
            const i64 l = (i64)label[i];
            const f64 v = hs_to<f64>(image[i]) + 0.0; // zeros have no sign
            if (l < 0 || l >= labels || v != v) continue;
            const u64 key = hs_ordered(LEAST ? v : -v);
            // A stale value is larger.
            if (key < keys[l]) atomicMin(keys + l, key);
        }
    __syncthreads();
    for (int l = threadIdx.x; l < labels; l += THREADS) {
        const u64 key = atomicMin(keys + l, ~0ull); // the current value, not a cached one
        const f64 v = key == ~0ull ? hs_highest<f64>() : hs_unordered(key);
        out[l] = LEAST ? v : -v;
    }
}
