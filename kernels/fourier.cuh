// Linear filters by Fourier transforms of pairs of tiles, in passes (see
// horus_core::ops::fourier): the same sums and products in the same order. A tile in scratch memory
// is a matrix of complex numbers. Blocks of threads take eight columns or rows of a tile into shared
// memory and transform them there.

struct hs_complex { f64 re, im; };

// Lines that a block transforms.
enum { HS_LINES = 8 };

HS_FN hs_complex hs_cmul(hs_complex a, hs_complex b) {
    return {hs_fma(a.re, b.re, -(a.im * b.im)), hs_fma(a.re, b.im, a.im * b.re)};
}
HS_FN hs_complex hs_cadd(hs_complex a, hs_complex b) { return {a.re + b.re, a.im + b.im}; }
HS_FN hs_complex hs_csub(hs_complex a, hs_complex b) { return {a.re - b.re, a.im - b.im}; }
// a + i b, and a - i b.
HS_FN hs_complex hs_cadd_turned(hs_complex a, hs_complex b) { return {a.re - b.im, a.im + b.re}; }
HS_FN hs_complex hs_csub_turned(hs_complex a, hs_complex b) { return {a.re + b.im, a.im - b.re}; }
HS_FN hs_complex hs_conjugate(hs_complex a) { return {a.re, -a.im}; }

// Point i of a line in shared memory.
HS_FN int hs_place(int i, int line) { return i * HS_LINES + line; }

// Transforms eight lines of n points.
template <int THREADS> HS_FN void hs_forth(hs_complex* s, int n, const hs_complex* roots) {
    int m = n;
    if ((n & 0x2aaaaaaa) != 0) {
        m = n / 2;
        for (int i = threadIdx.x; i < m * HS_LINES; i += THREADS) {
            const int line = i % HS_LINES, j = i / HS_LINES;
            hs_complex& a = s[hs_place(j, line)];
            hs_complex& b = s[hs_place(j + m, line)];
            const hs_complex rest = hs_csub(a, b);
            a = hs_cadd(a, b);
            b = j > 0 ? hs_cmul(rest, roots[j]) : rest;
        }
        __syncthreads();
    }
    for (; m >= 4; m /= 4) {
        const int q = m / 4, by = n / m;
        for (int i = threadIdx.x; i < n / 4 * HS_LINES; i += THREADS) {
            const int line = i % HS_LINES, k = i / HS_LINES, j = k % q, at = k / q * m + j;
            hs_complex& a = s[hs_place(at, line)];
            hs_complex& b = s[hs_place(at + q, line)];
            hs_complex& c = s[hs_place(at + 2 * q, line)];
            hs_complex& d = s[hs_place(at + 3 * q, line)];
            const hs_complex even = hs_cadd(a, c), odd = hs_cadd(b, d), left = hs_csub(a, c), right = hs_csub(b, d);
            const hs_complex x = hs_csub_turned(left, right), y = hs_csub(even, odd), z = hs_cadd_turned(left, right);
            a = hs_cadd(even, odd);
            b = j > 0 ? hs_cmul(x, roots[j * by]) : x;
            c = j > 0 ? hs_cmul(y, roots[2 * j * by]) : y;
            d = j > 0 ? hs_cmul(z, roots[3 * j * by]) : z;
        }
        __syncthreads();
    }
}

// The inverse, but for the factor 1 / n.
template <int THREADS> HS_FN void hs_back(hs_complex* s, int n, const hs_complex* roots) {
    int q = 1;
    for (; 4 * q <= n; q *= 4) {
        const int m = 4 * q, by = n / m;
        for (int i = threadIdx.x; i < n / 4 * HS_LINES; i += THREADS) {
            const int line = i % HS_LINES, k = i / HS_LINES, j = k % q, at = k / q * m + j;
            hs_complex& a = s[hs_place(at, line)];
            hs_complex& b = s[hs_place(at + q, line)];
            hs_complex& c = s[hs_place(at + 2 * q, line)];
            hs_complex& d = s[hs_place(at + 3 * q, line)];
            const hs_complex x = j > 0 ? hs_cmul(b, hs_conjugate(roots[j * by])) : b;
            const hs_complex y = j > 0 ? hs_cmul(c, hs_conjugate(roots[2 * j * by])) : c;
            const hs_complex z = j > 0 ? hs_cmul(d, hs_conjugate(roots[3 * j * by])) : d;
            const hs_complex even = hs_cadd(a, y), odd = hs_cadd(x, z), left = hs_csub(a, y), right = hs_csub(x, z);
            a = hs_cadd(even, odd);
            b = hs_cadd_turned(left, right);
            c = hs_csub(even, odd);
            d = hs_csub_turned(left, right);
        }
        __syncthreads();
    }
    if (2 * q == n) {
        for (int i = threadIdx.x; i < q * HS_LINES; i += THREADS) {
            const int line = i % HS_LINES, j = i / HS_LINES;
            hs_complex& a = s[hs_place(j, line)];
            hs_complex& b = s[hs_place(j + q, line)];
            const hs_complex rest = j > 0 ? hs_cmul(b, hs_conjugate(roots[j])) : b;
            b = hs_csub(a, rest);
            a = hs_cadd(a, rest);
        }
        __syncthreads();
    }
}

// Images, tiles and memory of a launch.
template <class T> struct hs_fourier_tiles {
    const T* in;
    i64 in_plane;
    int height, width, start, end;
    T* out;
    i64 out_plane;
    // Rows to compute.
    int row0, row1;
    // Channels of the input, and filters.
    int channels, filters;
    // Rows and columns of a tile, and of the result that it yields.
    int tall, wide, down, across;
    // Distances that filters read.
    int up, left;
    // The first pixel of the result of the first pair, and pairs down and across, in all planes, and
    // per round.
    int top, first, pairs_down, pairs_across, pairs, round;
    // Blocks that share the work of a pass.
    int blocks;
    // Most taps of a filter.
    int taps;
    T outside;
    f64 largest;
    // Roots of columns and of rows, filters as tiles.
    const hs_complex* roots;
    const f64* reflected;
    // For each tap its row and its column in a tile; the number of taps of each filter; weights.
    const int* places;
    const int* ends;
    const f64* weights;
    unsigned char* scratch;

    __device__ __forceinline__ int points() const { return tall * wide; }
    // Transforms of pairs of this round; products; spectra of filters.
    __device__ __forceinline__ hs_complex* pair(int i) const { return (hs_complex*)scratch + (i64)i * points(); }
    __device__ __forceinline__ hs_complex* product(int i) const { return pair(round + i); }
    __device__ __forceinline__ hs_complex* spectrum(int f) const { return pair(2 * round + f); }
    // Set for tiles that take part in transforms.
    __device__ __forceinline__ int* taken() const { return (int*)pair(2 * round + filters); }
    __device__ __forceinline__ int plane_of(int i) const { return i / (pairs_down * pairs_across); }
    __device__ __forceinline__ int top_of(int i) const { return top + i / pairs_across % pairs_down * down; }
    __device__ __forceinline__ int left_of(int i, int k) const { return first + (2 * (i % pairs_across) + k) * across; }
    __device__ __forceinline__ hs_plane<T> plane(int i) const {
        return {in + plane_of(i) * in_plane, height, width, start, end};
    }
};

// Pass `pass`. Rounds of pairs have two passes, and two for each filter: flags of tiles and columns
// of filters; columns of pairs and rows of filters; for each filter rows, there and back, and then
// columns back.
template <int BORDER, int THREADS, class T> HS_FN void hs_fourier(int pass, const hs_fourier_tiles<T>& t, hs_complex* s) {
    const int passes = 2 + 2 * t.filters, stage = pass % passes, before = pass / passes * t.round;
    const int count = min(t.round, t.pairs - before);
    const hs_complex* columns = t.roots;
    const hs_complex* rows = t.roots + t.tall;
    const int groups = t.wide / HS_LINES, strips = t.tall / HS_LINES;
    if (stage == 0) {
        int* all = (int*)s;
        for (int i = blockIdx.x; i < 2 * count; i += t.blocks) {
            const hs_plane<T> in = t.plane(before + i / 2);
            const int y0 = t.top_of(before + i / 2) - t.up, x0 = t.left_of(before + i / 2, i % 2) - t.left;
            int taken = 1;
            for (int j = threadIdx.x; j < t.points(); j += THREADS) {
                const T v = hs_pixel<BORDER, BORDER>(in, y0 + j / t.wide, x0 + j % t.wide, t.outside);
                taken &= (f64)v <= t.largest && (f64)v >= -t.largest;
            }
            all[threadIdx.x] = taken;
            __syncthreads();
            for (int by = THREADS / 2; by > 0; by /= 2) {
                if ((int)threadIdx.x < by) all[threadIdx.x] &= all[threadIdx.x + by];
                __syncthreads();
            }
            if (threadIdx.x == 0) t.taken()[i] = all[0];
            __syncthreads();
        }
        for (int i = blockIdx.x; i < t.filters * groups && before == 0; i += t.blocks) {
            const int f = i / groups, x0 = i % groups * HS_LINES;
            const f64* from = t.reflected + (i64)f * t.points();
            for (int j = threadIdx.x; j < t.tall * HS_LINES; j += THREADS)
                s[j] = {from[(i64)(j / HS_LINES) * t.wide + x0 + j % HS_LINES], 0.0};
            __syncthreads();
            hs_forth<THREADS>(s, t.tall, columns);
            for (int j = threadIdx.x; j < t.tall * HS_LINES; j += THREADS)
                t.spectrum(f)[(i64)(j / HS_LINES) * t.wide + x0 + j % HS_LINES] = s[j];
            __syncthreads();
        }
    } else if (stage == 1) {
        for (int i = blockIdx.x; i < count * groups; i += t.blocks) {
            const int p = i / groups, x0 = i % groups * HS_LINES;
            const hs_plane<T> in = t.plane(before + p);
            const int y0 = t.top_of(before + p) - t.up;
            for (int j = threadIdx.x; j < t.tall * HS_LINES; j += THREADS) {
                const int y = y0 + j / HS_LINES, x = x0 + j % HS_LINES - t.left;
                f64 v[2];
                for (int k = 0; k < 2; ++k) {
                    v[k] = 0.0;
                    if (t.taken()[2 * p + k])
                        v[k] = (f64)hs_pixel<BORDER, BORDER>(in, y, t.left_of(before + p, k) + x, t.outside);
                }
                s[j] = {v[0], v[1]};
            }
            __syncthreads();
            hs_forth<THREADS>(s, t.tall, columns);
            for (int j = threadIdx.x; j < t.tall * HS_LINES; j += THREADS)
                t.pair(p)[(i64)(j / HS_LINES) * t.wide + x0 + j % HS_LINES] = s[j];
            __syncthreads();
        }
        for (int i = blockIdx.x; i < t.filters * strips && before == 0; i += t.blocks) {
            hs_complex* of = t.spectrum(i / strips) + (i64)(i % strips) * HS_LINES * t.wide;
            for (int j = threadIdx.x; j < t.wide * HS_LINES; j += THREADS) s[hs_place(j % t.wide, j / t.wide)] = of[j];
            __syncthreads();
            hs_forth<THREADS>(s, t.wide, rows);
            for (int j = threadIdx.x; j < t.wide * HS_LINES; j += THREADS) of[j] = s[hs_place(j % t.wide, j / t.wide)];
            __syncthreads();
        }
    } else if (stage % 2 == 0) {
        const int f = stage / 2 - 1;
        for (int i = blockIdx.x; i < count * strips; i += t.blocks) {
            const i64 at = (i64)(i % strips) * HS_LINES * t.wide;
            const hs_complex* from = t.pair(i / strips) + at;
            const hs_complex* by = t.spectrum(f) + at;
            hs_complex* to = t.product(i / strips) + at;
            for (int j = threadIdx.x; j < t.wide * HS_LINES; j += THREADS) s[hs_place(j % t.wide, j / t.wide)] = from[j];
            __syncthreads();
            hs_forth<THREADS>(s, t.wide, rows);
            for (int j = threadIdx.x; j < t.wide * HS_LINES; j += THREADS) {
                hs_complex& v = s[hs_place(j % t.wide, j / t.wide)];
                v = hs_cmul(v, by[j]);
            }
            __syncthreads();
            hs_back<THREADS>(s, t.wide, rows);
            for (int j = threadIdx.x; j < t.wide * HS_LINES; j += THREADS) to[j] = s[hs_place(j % t.wide, j / t.wide)];
            __syncthreads();
        }
    } else {
        const int f = (stage - 3) / 2;
        for (int i = blockIdx.x; i < count * groups; i += t.blocks) {
            const int p = i / groups, x0 = i % groups * HS_LINES;
            const int plane = t.plane_of(before + p), y0 = t.top_of(before + p);
            if (x0 >= t.across) continue; // the same for all threads
            for (int j = threadIdx.x; j < t.tall * HS_LINES; j += THREADS)
                s[j] = t.product(p)[(i64)(j / HS_LINES) * t.wide + x0 + j % HS_LINES];
            __syncthreads();
            hs_back<THREADS>(s, t.tall, columns);
            const int to = (plane / t.channels * t.filters + f) * t.channels + plane % t.channels;
            const hs_plane<T> in = t.plane(before + p);
            for (int j = threadIdx.x; j < 2 * t.down * HS_LINES; j += THREADS) {
                const int k = j / (t.down * HS_LINES), place = j % (t.down * HS_LINES);
                const int dx = x0 + place % HS_LINES, y = y0 + place / HS_LINES, x = t.left_of(before + p, k) + dx;
                if (dx >= t.across || y < t.row0 || y >= t.row1 || x < 0 || x >= t.width) continue;
                T v;
                if (t.taken()[2 * p + k]) {
                    v = (T)(k == 0 ? s[place].re : s[place].im);
                } else {
                    v = (T)0;
                    for (int n = f * t.taps; n < f * t.taps + t.ends[f]; ++n) {
                        const int dy = t.places[2 * n] - t.up, right = t.places[2 * n + 1] - t.left;
                        v = hs_fma((T)t.weights[n], hs_pixel<BORDER, BORDER>(in, y + dy, x + right, t.outside), v);
                    }
                }
                t.out[to * t.out_plane + (i64)(y - t.row0) * t.width + x] = v;
            }
            __syncthreads();
        }
    }
}
