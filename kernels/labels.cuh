// Reductions of the pixels of each label; see horus_core::ops::labels. Digits of exact sums are whole numbers, and sums of them stay
// below 2^53: the order of these additions does not matter.

enum { HS_DIGITS = 88, HS_SUM_COLUMNS = 91, HS_BLOCK_ROWS = 32 };

// What a number adds to an exact sum: four whole numbers, to columns from the one that is returned on.
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

// What a thread adds to the same columns, one pixel after the other: pixels beside each other are often alike.
struct hs_run {
    i64 at;
    f64 parts[4];
};
HS_FN void hs_finish(const hs_run& run, f64* table) {
    for (int k = 0; k < 4; ++k)
        if (run.parts[k] != 0.0) atomicAdd(table + run.at + k, run.parts[k]);
}
HS_FN void hs_enter(hs_run& run, f64* table, i64 at, f64 v) {
    f64 parts[4];
    at += hs_digits(v, parts);
    if (at != run.at) {
        hs_finish(run, table);
        run.at = at;
        for (int k = 0; k < 4; ++k) run.parts[k] = 0.0;
    }
    for (int k = 0; k < 4; ++k) run.parts[k] = run.parts[k] + parts[k];
}

// Adds up `count` pixels by labels, of which there are `labels`; a block of THREADS threads takes THREADS * EACH: with SHARED in shared
// memory first.
template <int THREADS, int EACH, bool SHARED, bool SQUARES, class L, class T>
HS_FN void hs_label_sums(const L* label, const T* image, i64 count, int labels, f64* out) {
    const int columns = 1 + HS_SUM_COLUMNS * (SQUARES ? 2 : 1);
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
        hs_enter(sum, table, row + 1, v);
        if (SQUARES) {
            const f64 high = v * v, low = high - high == 0.0 ? hs_fma(v, v, -high) : 0.0;
            hs_enter(square, table, row + 1 + HS_SUM_COLUMNS, high);
            if (low != 0.0) {
                hs_run rest = {0, {0.0, 0.0, 0.0, 0.0}};
                hs_enter(rest, table, row + 1 + HS_SUM_COLUMNS, low);
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

// A number whose order among others like it is that of the floats: unsigned, and never the largest.
HS_FN u64 hs_ordered(f64 v) {
    const u64 bits = (u64)__double_as_longlong(v);
    return bits >> 63 ? ~bits : bits | 1ull << 63;
}
HS_FN f64 hs_unordered(u64 key) {
    return __longlong_as_double((i64)(key >> 63 ? key & ~(1ull << 63) : ~key));
}

// The smallest pixel of each label, or the largest, among `count` of each plane, by a block of THREADS threads. The results are
// keys until all are found. A plane begins `label_plane` and `image_plane` pixels after the one before.
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
            // What is read may be old: then it is larger.
            if (key < keys[l]) atomicMin(keys + l, key);
        }
    __syncthreads();
    for (int l = threadIdx.x; l < labels; l += THREADS) {
        const u64 key = atomicMin(keys + l, ~0ull); // as it is now, in no cache
        const f64 v = key == ~0ull ? hs_highest<f64>() : hs_unordered(key);
        out[l] = LEAST ? v : -v;
    }
}
