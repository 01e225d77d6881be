// Linear filters by Fourier transforms of pairs of tiles, in consecutive launches (see horus_core::ops::fourier): the
// same sums and products in the same order. A tile in scratch memory is a matrix of complex numbers. A thread has 16
// points of a column or row in registers, and computes the levels of its transform that join its own points. Between
// them, threads exchange points in shared memory. Frequencies stay where they are computed: point e of thread t is the
// (e * threads + t)-th of its line.

struct alignas(16) hs_complex { f64 re, im; };
// A number of a transform in scratch memory: these, or of single precision.
struct alignas(8) hs_single { f32 re, im; };
HS_FN hs_complex hs_loaded(const hs_complex& a) { return a; }
HS_FN hs_complex hs_loaded(const hs_single& a) {
    const hs_single v = a;
    return {(f64)v.re, (f64)v.im};
}
HS_FN void hs_store(hs_complex& to, hs_complex v) { to = v; }
HS_FN void hs_store(hs_single& to, hs_complex v) { to = hs_single{(f32)v.re, (f32)v.im}; }

// Points of a line in the registers of a thread; sums of levels that it computes together; blocks among which sums are
// divided.
enum { HS_POINTS = 16, HS_SUMS = 16, HS_SPREAD = 2048 };

HS_FN hs_complex hs_cmul(hs_complex a, hs_complex b) {
    return {hs_fma(a.re, b.re, -(a.im * b.im)), hs_fma(a.re, b.im, a.im * b.re)};
}
// sum + a b.
HS_FN hs_complex hs_cadd_product(hs_complex sum, hs_complex a, hs_complex b) {
    return {hs_fma(a.re, b.re, -hs_fma(a.im, b.im, -sum.re)), hs_fma(a.re, b.im, hs_fma(a.im, b.re, sum.im))};
}
HS_FN hs_complex hs_cadd(hs_complex a, hs_complex b) { return {a.re + b.re, a.im + b.im}; }
HS_FN hs_complex hs_csub(hs_complex a, hs_complex b) { return {a.re - b.re, a.im - b.im}; }
// a + i b, and a - i b.
HS_FN hs_complex hs_cadd_turned(hs_complex a, hs_complex b) { return {a.re - b.im, a.im + b.re}; }
HS_FN hs_complex hs_csub_turned(hs_complex a, hs_complex b) { return {a.re + b.im, a.im - b.re}; }
HS_FN hs_complex hs_conjugate(hs_complex a) { return {a.re, -a.im}; }

// A Fourier transform of four points.
HS_FN void hs_butterfly(hs_complex& a, hs_complex& b, hs_complex& c, hs_complex& d) {
    const hs_complex even = hs_cadd(a, c), odd = hs_cadd(b, d), left = hs_csub(a, c), right = hs_csub(b, d);
    a = hs_cadd(even, odd);
    b = hs_csub_turned(left, right);
    c = hs_csub(even, odd);
    d = hs_cadd_turned(left, right);
}

// The inverse of hs_butterfly, times 4.
HS_FN void hs_butterfly_back(hs_complex& a, hs_complex& b, hs_complex& c, hs_complex& d) {
    hs_butterfly(a, b, c, d);
    const hs_complex turned = b;
    b = d;
    d = turned;
}

// A root's place in shared memory, with gaps, so that threads use different banks.
HS_FN int hs_root(int i) { return i + i / 8; }

// The threads of a block of THREADS that transform LINES lines of N points together. Neighbours have points of one line
// if these are adjacent in memory (ROWS), else of neighbouring lines.
template <int N, int LINES, int THREADS, bool ROWS> struct hs_team {
    enum { EACH = N / HS_POINTS, COUNT = THREADS / (LINES * EACH) };
    int index, line, part;
    hs_complex* s;
    const hs_complex* roots;
    __device__ __forceinline__ hs_team(hs_complex* all, const hs_complex* of)
        : index(threadIdx.x / (LINES * EACH)), line(ROWS ? threadIdx.x / EACH % LINES : threadIdx.x % LINES),
          part(ROWS ? threadIdx.x % EACH : threadIdx.x / LINES % EACH),
          s(all + (index * LINES + (ROWS ? line : 0)) * (N + ROWS * N / HS_POINTS) + (ROWS ? 0 : line)), roots(of) {}

    // Point i in shared memory: rows have a gap after 16 points, so that threads use different banks.
    static __device__ __forceinline__ int shared(int i) { return ROWS ? i + i / HS_POINTS : i * LINES; }

    // Points that are joined at once, from levels whose parts have M points: an odd level goes with the next.
    static constexpr __device__ int radix(int m) { return m == N && (N & 0x2aaaaaaa) != 0 ? 8 : m < 16 ? m : 16; }
    // The place of point e of this thread on its line, for parts of M points.
    template <int M> __device__ __forceinline__ int place(int e) const {
        constexpr int R = radix(M), Q = M / R;
        const int i = part + e / R * EACH;
        return i / Q * M + i % Q + e % R * Q;
    }
    // The place of its frequency e.
    __device__ __forceinline__ int frequency(int e) const { return e * EACH + part; }

    // Moves points from the places for parts of FROM points to the places for parts of TO points.
    template <int FROM, int TO> __device__ __forceinline__ void exchange(hs_complex (&v)[HS_POINTS]) const {
        __syncthreads();
#pragma unroll
        for (int e = 0; e < HS_POINTS; ++e) s[shared(place<FROM>(e))] = v[e];
        __syncthreads();
#pragma unroll
        for (int e = 0; e < HS_POINTS; ++e) v[e] = s[shared(place<TO>(e))];
    }

    // Multiplies by a root, unless it is 1 (which would change signs of zeros).
    __device__ __forceinline__ void turn(hs_complex& v, bool turned, int root) const {
        if (turned) v = hs_cmul(v, roots[hs_root(root)]);
    }
    __device__ __forceinline__ void turn_back(hs_complex& v, bool turned, int root) const {
        if (turned) v = hs_cmul(v, hs_conjugate(roots[hs_root(root)]));
    }

    // From the points of a line to its frequencies.
    template <int M = N> __device__ __forceinline__ void forth(hs_complex (&v)[HS_POINTS]) const {
        constexpr int R = radix(M), Q = M / R, BY = N / M;
#pragma unroll
        for (int g = 0; g < HS_POINTS; g += R) {
            const int j = (part + g / R * EACH) % Q;
            if (R == 8) {
#pragma unroll
                for (int k = 0; k < 4; ++k) {
                    const hs_complex rest = hs_csub(v[g + k], v[g + k + 4]);
                    v[g + k] = hs_cadd(v[g + k], v[g + k + 4]);
                    v[g + k + 4] = rest;
                    turn(v[g + k + 4], k > 0 || j > 0, j + k * Q);
                }
            }
            if (R == 16) {
#pragma unroll
                for (int k = 0; k < 4; ++k) {
                    hs_butterfly(v[g + k], v[g + k + 4], v[g + k + 8], v[g + k + 12]);
#pragma unroll
                    for (int n = 1; n < 4; ++n) turn(v[g + k + 4 * n], k > 0 || j > 0, n * (j + k * Q) * BY);
                }
            }
#pragma unroll
            for (int k = g; k < g + R; k += 4) {
                hs_butterfly(v[k], v[k + 1], v[k + 2], v[k + 3]);
#pragma unroll
                for (int n = 1; n < 4; ++n) turn(v[k + n], j > 0, n * j * (N / (4 * Q)));
            }
        }
        if constexpr (Q > 1) {
            exchange<M, Q>(v);
            forth<Q>(v);
        }
    }

    // The inverse of forth, times N.
    template <int M = N> __device__ __forceinline__ void back(hs_complex (&v)[HS_POINTS]) const {
        constexpr int R = radix(M), Q = M / R, BY = N / M;
        if constexpr (Q > 1) {
            back<Q>(v);
            exchange<Q, M>(v);
        }
#pragma unroll
        for (int g = 0; g < HS_POINTS; g += R) {
            const int j = (part + g / R * EACH) % Q;
#pragma unroll
            for (int k = g; k < g + R; k += 4) {
#pragma unroll
                for (int n = 1; n < 4; ++n) turn_back(v[k + n], j > 0, n * j * (N / (4 * Q)));
                hs_butterfly_back(v[k], v[k + 1], v[k + 2], v[k + 3]);
            }
            if (R == 16) {
#pragma unroll
                for (int k = 0; k < 4; ++k) {
#pragma unroll
                    for (int n = 1; n < 4; ++n) turn_back(v[g + k + 4 * n], k > 0 || j > 0, n * (j + k * Q) * BY);
                    hs_butterfly_back(v[g + k], v[g + k + 4], v[g + k + 8], v[g + k + 12]);
                }
            }
            if (R == 8) {
#pragma unroll
                for (int k = 0; k < 4; ++k) {
                    turn_back(v[g + k + 4], k > 0 || j > 0, j + k * Q);
                    const hs_complex rest = v[g + k + 4];
                    v[g + k + 4] = hs_csub(v[g + k], rest);
                    v[g + k] = hs_cadd(v[g + k], rest);
                }
            }
        }
    }
};

// Images, tiles and memory of a launch; transforms are stored as numbers of type C.
template <class C, class T, int TALL, int WIDE> struct hs_fourier_tiles {
    const T* in;
    i64 in_plane;
    int height, width, start, end;
    T* out;
    i64 out_plane;
    // Rows to compute.
    int row0, row1;
    // Channels of the input, its levels, and filters.
    int channels, depth, filters;
    // Responses that are added, of which so many read levels before the pixel's; levels of the result that a unit has; a
    // unit reads one level more for each further response that is added.
    int added, before, together;
    // Rows and columns of the result that a tile yields.
    int down, across;
    // Distances that filters read.
    int up, left;
    // The first pixel of the result of the first pair; pairs down and across; units (a pair of some levels of a channel),
    // in all and per round.
    int top, first, pairs_down, pairs_across, units, round;
    // The place of products among the tiles in scratch memory; set if spectra fit into shared memory.
    int products, held;
    // Blocks that share the work of a launch.
    int blocks;
    // Most taps of a filter.
    int taps;
    T outside;
    f64 largest;
    // Roots of columns and of rows.
    const hs_complex* roots;
    // Filters as tiles: the end of the previous column, then of each column of all filters; for each non-zero point its
    // row and its value.
    const int* columns;
    const int* points;
    const f64* values;
    // For each tap its row and its column in a tile; the number of taps of each filter; weights.
    const int* places;
    const int* ends;
    const f64* weights;
    unsigned char* scratch;
    // Spectra of filters.
    hs_complex* spectra;

    // Transforms of this round's pairs; products, which replace them if no filter uses them any more.
    __device__ __forceinline__ C* pair(int i) const { return (C*)scratch + (i64)i * (TALL * WIDE); }
    __device__ __forceinline__ C* product(int i) const { return pair(products + i); }
    __device__ __forceinline__ hs_complex* spectrum(int f) const { return spectra + (i64)f * (TALL * WIDE); }
    // Set if some tiles take no part in transforms; then one for each tile of all units.
    __device__ __forceinline__ int* some() const { return (int*)spectrum(filters); }
    __device__ __forceinline__ int* spoilt() const { return some() + 1; }
    // Levels that a unit reads.
    __device__ __forceinline__ int each() const { return together + added - 1; }
    __device__ __forceinline__ int channel_of(int unit) const { return unit / (pairs_down * pairs_across) % channels; }
    // The first level of the result.
    __device__ __forceinline__ int level_of(int unit) const {
        return unit / (pairs_down * pairs_across * channels) * together;
    }
    // The level of the image that the l-th transform of a unit reads, -1 beyond a border with a constant.
    template <int BORDER> __device__ __forceinline__ int level_read(int unit, int l) const {
        return hs_map<BORDER>(level_of(unit) + l - before, depth);
    }
    // Set if the z-th level of the k-th tiles of a unit is not computed by transforms.
    __device__ __forceinline__ bool is_direct(int unit, int z, int k) const {
        if (*some() == 0) return false;
        int any = 0;
        for (int l = z; l < z + added; ++l) any |= spoilt()[2 * ((i64)unit * each() + l) + k];
        return any != 0;
    }
    __device__ __forceinline__ int top_of(int i) const { return top + i / pairs_across % pairs_down * down; }
    __device__ __forceinline__ int left_of(int i, int k) const { return first + (2 * (i % pairs_across) + k) * across; }
    __device__ __forceinline__ hs_plane<T> plane(int level, int channel) const {
        return {in + (i64)(level * channels + channel) * in_plane, height, width, start, end};
    }
    // The result for filter f of the z-th level of a unit.
    __device__ __forceinline__ T* plane_to(int unit, int z, int f) const {
        const int responses = filters / added, response = responses == 1 ? 0 : f;
        return out + ((i64)((level_of(unit) + z) * responses + response) * channels + channel_of(unit)) * out_plane;
    }
};

// Adds the products of HS_SUMS adjacent levels, and of those after them, with N spectra, and moves on by so many levels.
// Level k of the window is from[k * SIZE], and is read ahead; none behind `last` is read.
template <int N, int SIZE, class C>
HS_FN void hs_add_products(hs_complex (&sum)[HS_SUMS], hs_complex (&level)[HS_SUMS], const C* from, int first, int last,
                           const hs_complex* by, i64 apart) {
#pragma unroll
    for (int n = 0; n < N; ++n) {
        const hs_complex v = by[n * apart];
#pragma unroll
        for (int k = 0; k < HS_SUMS; ++k) sum[k] = hs_cadd_product(sum[k], level[(k + n) % HS_SUMS], v);
        level[n] = hs_loaded(from[(i64)min(first + n + HS_SUMS, last) * SIZE]);
    }
}

// Sums of products across levels with ADDED spectra. The threads of a block have adjacent points, for some of a unit's
// levels, of which each computes HS_SUMS at a time; spectra of its points are in shared memory, if there is room. Blocks of
// the same points run together, as they read the same levels.
template <int THREADS, int ADDED, class C, class T, int TALL, int WIDE>
HS_FN void hs_fourier_sums(const hs_fourier_tiles<C, T, TALL, WIDE>& t, int count, hs_complex* s) {
    constexpr int SIZE = TALL * WIDE, STRIPS = SIZE / THREADS, WHOLE = ADDED / HS_SUMS * HS_SUMS;
    const int last = t.each() - 1, groups = (t.together + HS_SUMS - 1) / HS_SUMS;
    const int spans = min(groups, max(1, HS_SPREAD / (count * STRIPS))), levels = (groups + spans - 1) / spans * HS_SUMS;
    for (int i = blockIdx.x; i < count * STRIPS * spans; i += t.blocks) {
        const int unit = i / spans / STRIPS, at = i / spans % STRIPS * THREADS + threadIdx.x;
        const C* from = t.pair(unit * t.each()) + at;
        const hs_complex* by = t.spectrum(0) + at;
        i64 apart = SIZE;
        if (t.held) {
            __syncthreads();
            for (int f = 0; f < ADDED; ++f) s[f * THREADS + threadIdx.x] = by[f * apart];
            __syncthreads();
            by = s + threadIdx.x;
            apart = THREADS;
        }
        const int end = min((i % spans + 1) * levels, t.together);
        for (int first = i % spans * levels; first < end; first += HS_SUMS) {
            hs_complex sum[HS_SUMS], level[HS_SUMS];
#pragma unroll
            for (int k = 0; k < HS_SUMS; ++k) {
                // Zeros to which a first product is added without a change.
                sum[k] = {0.0, -0.0};
                level[k] = hs_loaded(from[(i64)min(first + k, last) * SIZE]);
            }
            for (int f = 0; f < WHOLE; f += HS_SUMS)
                hs_add_products<HS_SUMS, SIZE>(sum, level, from, first + f, last, by + f * apart, apart);
            hs_add_products<ADDED - WHOLE, SIZE>(sum, level, from, first + WHOLE, last, by + WHOLE * apart, apart);
#pragma unroll
            for (int k = 0; k < HS_SUMS; ++k)
                if (first + k < end) hs_store(t.product(unit * t.together + first + k)[at], sum[k]);
        }
    }
}

// Launch `pass`. The first transforms columns of filters. Then each round of units has two launches, and two for each
// filter: columns of pairs, and rows of filters; if some tiles take no part in transforms, columns of pairs again
// without them; for each filter rows, there and back, and then columns back. If responses are added (ADDED), four launches
// take the place of those for filters: rows, sums of products, rows back and columns back.
template <int BORDER, int ADDED, int LINES, int THREADS, class C, class T, int TALL, int WIDE>
HS_FN void hs_fourier(int pass, const hs_fourier_tiles<C, T, TALL, WIDE>& t, hs_complex* s) {
    constexpr bool SUMS = ADDED > 0;
    const int passes = SUMS ? 6 : 2 + 2 * t.filters, stage = pass == 0 ? -1 : (pass - 1) % passes;
    const int before = pass == 0 ? 0 : (pass - 1) / passes * t.round, count = min(t.round, t.units - before);
    if (stage == 1 && *t.some() == 0) return;
    if constexpr (SUMS) {
        if (stage == 3) {
            hs_fourier_sums<THREADS, ADDED>(t, count, s);
            return;
        }
    }
    const bool down = stage < 2 || stage % 2 == 1, across = stage < 2 ? stage == 0 && before == 0 : stage % 2 == 0;
    hs_complex* of_columns = s + THREADS * (HS_POINTS + 1);
    hs_complex* of_rows = of_columns + hs_root(TALL);
    if (down)
        for (int i = threadIdx.x; i < TALL; i += THREADS) of_columns[hs_root(i)] = t.roots[i];
    if (across)
        for (int i = threadIdx.x; i < WIDE; i += THREADS) of_rows[hs_root(i)] = t.roots[TALL + i];
    __syncthreads();
    const hs_team<TALL, LINES, THREADS, false> columns(s, of_columns);
    const hs_team<WIDE, LINES, THREADS, true> rows(s, of_rows);
    hs_complex v[HS_POINTS];
    // Teams beyond the last lines repeat the last ones, and do not store the result.
    if (stage < 2) {
        constexpr int GROUPS = WIDE / LINES;
        const int all = (stage < 0 ? t.filters : count * t.each()) * GROUPS;
        if (stage < 0)
            for (i64 i = blockIdx.x * THREADS + threadIdx.x; i <= 2 * (i64)t.units * t.each(); i += t.blocks * THREADS)
                t.some()[i] = 0;
        for (int i = blockIdx.x * columns.COUNT; i < all; i += t.blocks * columns.COUNT) {
            const int group = min(i + columns.index, all - 1), p = group / GROUPS;
            const int column = group % GROUPS * LINES + columns.line;
            if (stage < 0) {
                const int* ends = t.columns + p * WIDE + column;
                __syncthreads();
#pragma unroll
                for (int e = 0; e < HS_POINTS; ++e) columns.s[columns.shared(columns.template place<TALL>(e))] = {0.0, 0.0};
                __syncthreads();
                for (int n = ends[0] + columns.part; n < ends[1]; n += columns.EACH)
                    columns.s[columns.shared(t.points[n])].re = t.values[n];
                __syncthreads();
#pragma unroll
                for (int e = 0; e < HS_POINTS; ++e) v[e] = columns.s[columns.shared(columns.template place<TALL>(e))];
            } else {
                const int unit = before + p / t.each(), level = t.template level_read<BORDER>(unit, p % t.each());
                const hs_plane<T> in = t.plane(max(level, 0), t.channel_of(unit));
                const int top = t.top_of(unit) - t.up;
                // Rows first, and then all pixels without a branch: many loads overlap.
                int y[HS_POINTS];
#pragma unroll
                for (int e = 0; e < HS_POINTS; ++e) {
                    bool outside;
                    const int row = hs_row<BORDER>(in, top + columns.template place<TALL>(e), outside);
                    y[e] = outside || level < 0 ? -1 : row - in.start;
                }
                int* spoilt = t.spoilt() + 2 * ((i64)before * t.each() + p);
                f64 pixel[2][HS_POINTS];
#pragma unroll
                for (int k = 0; k < 2; ++k) {
                    const int x = hs_map<BORDER>(t.left_of(unit, k) - t.left + column, in.width);
                    // Without rows in the buffer, no pixel that is read is used.
                    const T* from = in.start < in.end ? in.data + max(x, 0) : (const T*)t.roots;
                    bool off = stage == 1 && spoilt[k] != 0;
#pragma unroll
                    for (int e = 0; e < HS_POINTS; ++e) {
                        const T read = from[(i64)max(y[e], 0) * in.width];
                        pixel[k][e] = (f64)(y[e] < 0 || x < 0 ? t.outside : read);
                    }
#pragma unroll
                    for (int e = 0; e < HS_POINTS; ++e) {
                        off |= !(pixel[k][e] <= t.largest && pixel[k][e] >= -t.largest);
                        if (off) pixel[k][e] = 0.0;
                    }
                    if (off) *t.some() = spoilt[k] = 1;
                }
#pragma unroll
                for (int e = 0; e < HS_POINTS; ++e) v[e] = {pixel[0][e], pixel[1][e]};
            }
            columns.forth(v);
            if (i + columns.index >= all) continue;
#pragma unroll
            for (int e = 0; e < HS_POINTS; ++e) {
                const int at = columns.frequency(e) * WIDE + column;
                if (stage < 0)
                    t.spectrum(p)[at] = v[e];
                else
                    hs_store(t.pair(p)[at], v[e]);
            }
        }
    }
    // Rows of filters, once, or of pairs.
    if (across) {
        constexpr int STRIPS = TALL / LINES;
        const bool back = SUMS && stage == 4;
        const int all = (stage == 0 ? t.filters : count * (back ? t.together : t.each())) * STRIPS;
        for (int i = blockIdx.x * rows.COUNT; i < all; i += t.blocks * rows.COUNT) {
            const int strip = min(i + rows.index, all - 1), p = strip / STRIPS;
            const int at = (strip % STRIPS * LINES + rows.line) * WIDE;
            if (stage == 0) {
                hs_complex* from = t.spectrum(p) + at;
#pragma unroll
                for (int e = 0; e < HS_POINTS; ++e) v[e] = from[rows.template place<WIDE>(e)];
                rows.forth(v);
                if (i + rows.index >= all) continue;
#pragma unroll
                for (int e = 0; e < HS_POINTS; ++e) from[rows.frequency(e)] = v[e];
                continue;
            }
            C* from = (back ? t.product(p) : t.pair(p)) + at;
#pragma unroll
            for (int e = 0; e < HS_POINTS; ++e)
                v[e] = hs_loaded(from[back ? rows.frequency(e) : rows.template place<WIDE>(e)]);
            if (!back) rows.forth(v);
            if (SUMS && !back) {
                if (i + rows.index >= all) continue;
#pragma unroll
                for (int e = 0; e < HS_POINTS; ++e) hs_store(from[rows.frequency(e)], v[e]);
            } else {
                if (!SUMS) {
                    const hs_complex* by = t.spectrum(stage / 2 - 1) + at;
#pragma unroll
                    for (int e = 0; e < HS_POINTS; ++e) v[e] = hs_cmul(v[e], by[rows.frequency(e)]);
                }
                rows.back(v);
                if (i + rows.index >= all) continue;
#pragma unroll
                for (int e = 0; e < HS_POINTS; ++e) {
                    const int x = rows.template place<WIDE>(e);
                    if (x < t.across) hs_store(t.product(p)[at + x], v[e]);
                }
            }
        }
    }
    if (down && stage >= 2) {
        const int f = stage / 2 - 1, groups = (t.across + LINES - 1) / LINES, results = count * t.together;
        const int all = results * groups;
        for (int i = blockIdx.x * columns.COUNT; i < all; i += t.blocks * columns.COUNT) {
            const int group = min(i + columns.index, all - 1), p = group / groups;
            const int dx = group % groups * LINES + columns.line;
            const C* from = t.product(p) + dx;
#pragma unroll
            for (int e = 0; e < HS_POINTS; ++e) v[e] = hs_loaded(from[columns.frequency(e) * WIDE]);
            columns.back(v);
            const int unit = before + p / t.together, z = p % t.together;
            if (i + columns.index >= all || dx >= t.across || t.level_of(unit) + z >= t.depth) continue;
            const int y0 = t.top_of(unit);
            for (int k = 0; k < 2; ++k) {
                const int x = t.left_of(unit, k) + dx;
                if (x < 0 || x >= t.width || t.is_direct(unit, z, k)) continue;
                T* out = t.plane_to(unit, z, f) + x;
#pragma unroll
                for (int e = 0; e < HS_POINTS; ++e) {
                    const int dy = columns.template place<TALL>(e), y = y0 + dy;
                    if (dy < t.down && y >= t.row0 && y < t.row1)
                        out[(i64)(y - t.row0) * t.width] = (T)(k == 0 ? v[e].re : v[e].im);
                }
            }
        }
        if (*t.some() == 0) return;
        // Tiles that take no part in transforms: four rows at a time, with the same taps.
        constexpr int ROWS = 4;
        const int strips = (t.down + ROWS - 1) / ROWS;
        for (int i = blockIdx.x; i < 2 * results * strips; i += t.blocks) {
            const int p = i / (2 * strips), k = i / strips % 2, unit = before + p / t.together, z = p % t.together;
            if (t.level_of(unit) + z >= t.depth || !t.is_direct(unit, z, k)) continue;
            const int y0 = t.top_of(unit), x0 = t.left_of(unit, k), first = y0 + i % strips * ROWS;
            const int last = min(y0 + t.down, t.row1) - 1;
            T* out = t.plane_to(unit, z, f);
            for (int x = max(x0, 0) + threadIdx.x; x < min(x0 + t.across, t.width); x += THREADS) {
                T sum[ROWS];
                for (int g = SUMS ? 0 : f; g <= (SUMS ? t.filters - 1 : f); ++g) {
                    const int level = t.template level_read<BORDER>(unit, SUMS ? z + g : 0);
                    const hs_plane<T> in = t.plane(max(level, 0), t.channel_of(unit));
                    const bool inside = hs_holds(in, y0 - t.up, y0 - t.up + TALL, x0 - t.left, x0 - t.left + WIDE);
                    T response[ROWS] = {};
#pragma unroll 4
                    for (int n = g * t.taps; n < g * t.taps + t.ends[g]; ++n) {
                        const int dy = t.places[2 * n] - t.up, right = x + t.places[2 * n + 1] - t.left;
                        const T weight = (T)t.weights[n];
#pragma unroll
                        for (int r = 0; r < ROWS; ++r) {
                            const int y = min(first + r, last) + dy;
                            T pixel = t.outside;
                            if (level >= 0) pixel = inside ? in.at(y, right) : hs_pixel<BORDER, BORDER>(in, y, right, t.outside);
                            response[r] = hs_fma(weight, pixel, response[r]);
                        }
                    }
#pragma unroll
                    for (int r = 0; r < ROWS; ++r)
                        sum[r] = SUMS && g > 0 ? sum[r] + response[r] : response[r];
                }
#pragma unroll
                for (int r = 0; r < ROWS; ++r)
                    if (first + r >= t.row0 && first + r <= last) out[(i64)(first + r - t.row0) * t.width + x] = sum[r];
            }
        }
    }
}
