// Means and variances of rectangles and ranks under footprints; see horus_core::ops::windowed.

// The moments of some pixels, equal to horus_core::ops::windowed::WindowMoments; adding joins two sets of pixels.
struct hs_moments {
    f64 sum, apart, count;
    HS_FN_MEMBER hs_moments() {}
    HS_FN_MEMBER explicit hs_moments(int) : sum(0.0), apart(0.0), count(0.0) {}
    HS_FN_MEMBER hs_moments(f64 sum, f64 apart, f64 count) : sum(sum), apart(apart), count(count) {}
    HS_FN_MEMBER hs_moments operator+(const hs_moments& other) const {
        const f64 n = count, k = other.count, between = other.sum * n - sum * k;
        const f64 share = 1.0 / (n * k * (n + k));
        return hs_moments(sum + other.sum, (apart + other.apart) + between * between * share, n + k);
    }
};

// A pixel as an accumulator; and the mean, or the sum where the count is 0.
template <class A> struct hs_adds { static constexpr bool moments = false; };
template <> struct hs_adds<hs_moments> { static constexpr bool moments = true; };
template <class A, class T> HS_FN A hs_total(T v) {
    if constexpr (hs_adds<A>::moments) return A((f64)v, 0.0, 1.0);
    else return hs_to<A>(v);
}
template <class R> HS_FN R hs_over(f32 sum, i64 count) { return hs_to<R>(count == 0 ? sum : sum / (f32)count); }
template <class R> HS_FN R hs_over(f64 sum, i64 count) { return hs_to<R>(count == 0 ? sum : sum / (f64)count); }
template <class R> HS_FN R hs_over(i32 sum, i64 count) { return hs_over<R>((f64)sum, count); }
template <class R> HS_FN R hs_over(const hs_moments& of, i64 count) { return hs_over<R>(of.apart, count); }

// Sums of `k` values of each of `lines` lines, which are `apart` from each other, for `n` results per line. Adds by
// doubling in `from` and `other`, lines of `pitch`, which are overwritten. Each thread of a block of THREADS adds to
// its own results. All threads take part.
template <int THREADS, class A>
HS_FN void hs_add_up(A* from, A* other, int lines, int pitch, int apart, int k, int n, A* to, int to_pitch) {
    for (int power = 1, done = 0;; power *= 2) {
        if (k & power) {
            for (int i = threadIdx.x; i < lines * n; i += THREADS) {
                const int l = i / n, x = i - l * n;
                const A v = from[l * pitch + done * apart + x];
                to[l * to_pitch + x] = done == 0 ? v : to[l * to_pitch + x] + v;
            }
            done += power;
        }
        if (2 * power > k) break;
        const int by = power * apart, end = n + (k - 2 * power) * apart;
        for (int i = threadIdx.x; i < lines * end; i += THREADS) {
            const int l = i / end, x = i - l * end;
            other[l * pitch + x] = from[l * pitch + x] + from[l * pitch + by + x];
        }
        __syncthreads();
        A* const filled = other;
        other = from;
        from = filled;
    }
    __syncthreads();
}

struct hs_reach {
    int up, down, left, right;
};

// The extent of an image, and the rows in its buffer; the rows to compute, and the first row of the result.
struct hs_around_rows {
    int height, width, start, end, row0, row1, out_start;
};

// The mean of `tall` x `wide` pixels, `up` of them above and `left` to the left, for a tile of HIGH x BROAD pixels of
// the result. Rows are added FLIGHT at a time. Shared memory has two buffers for these rows, and two for the sums of
// rows.
template <class A, int BORDER, int THREADS, int HIGH, int BROAD, int FLIGHT, class T, class R>
HS_FN void hs_box(hs_plane<T> in, const hs_around_rows& p, int up, int tall, int left, int wide, T constant, i64 count,
                  int across, R* out) {
    const int x0 = (int)(blockIdx.x % across) * BROAD, y0 = p.row0 + (int)(blockIdx.x / across) * HIGH;
    const int broad = min(BROAD, p.width - x0), high = min(HIGH, p.row1 - y0);
    const int line = BROAD + wide - 1, need = broad + wide - 1, rows = high + tall - 1;
    A* const sums = reinterpret_cast<A*>(hs_smem);
    A* const doubled = sums + (HIGH + tall - 1) * BROAD;
    A* const a = doubled + (HIGH + tall - 1) * BROAD;
    A* const b = a + FLIGHT * line;
    for (int first = 0; first < rows; first += FLIGHT) {
        const int flight = min(FLIGHT, rows - first);
        for (int i = threadIdx.x; i < flight * need; i += THREADS) {
            const int l = i / need, x = i - l * need;
            a[l * line + x] = hs_total<A>(hs_pixel<BORDER, BORDER>(in, y0 - up + first + l, x0 - left + x, constant));
        }
        __syncthreads();
        hs_add_up<THREADS>(a, b, flight, line, 1, wide, broad, sums + first * BROAD, BROAD);
    }
    // Columns are added as one line, including columns beyond the image. The row sums are not read again, so results
    // overwrite the rows.
    for (int i = threadIdx.x; i < rows * (BROAD - broad); i += THREADS) {
        const int l = i / (BROAD - broad), x = i - l * (BROAD - broad);
        sums[l * BROAD + broad + x] = (A)0;
    }
    __syncthreads();
    hs_add_up<THREADS>(sums, doubled, 1, 0, BROAD, tall, high * BROAD, a, 0);
    for (int i = threadIdx.x; i < high * BROAD; i += THREADS) {
        const int y = i / BROAD, x = i - y * BROAD;
        if (x < broad) out[hs_place(y0 + y, x0 + x, p.out_start, p.width)] = hs_over<R>(a[i], count);
    }
}

// The sum of `k` values in the same order, by one thread: sums of powers of two wait for their neighbours.
template <class A, class F> HS_FN A hs_line_sum(int k, const F& value) {
    A total = (A)0;
    for (int power = 1, done = 0; power <= k && power > 0; power *= 2) {
        if (!(k & power)) continue;
        A waiting[20];
        int n = 0;
        for (int i = 0; i < power; ++i) {
            A v = value(done + i);
            for (int c = i; c & 1; c >>= 1) v = waiting[--n] + v;
            waiting[n++] = v;
        }
        total = done == 0 ? waiting[0] : total + waiting[0];
        done += power;
    }
    return total;
}

// hs_box where shared memory is too small for a line, and variances: a thread adds all pixels of its rectangle.
template <class A, int BORDER, int THREADS, class T, class R>
HS_FN void hs_box_alone(hs_plane<T> in, const hs_around_rows& p, int up, int tall, int left, int wide, T constant, i64 count,
                        R* out) {
    const i64 i = (i64)blockIdx.x * THREADS + threadIdx.x;
    const int y = p.row0 + (int)(i / p.width), x = (int)(i % p.width);
    if (y >= p.row1) return;
    const A sum = hs_line_sum<A>(tall, [&](int dy) {
        return hs_line_sum<A>(wide, [&](int dx) {
            return hs_total<A>(hs_pixel<BORDER, BORDER>(in, y - up + dy, x - left + dx, constant));
        });
    });
    out[hs_place(y, x, p.out_start, p.width)] = hs_over<R>(sum, count);
}

// Codes of 8 bits in the order of keys: codes of bytes are their keys, other codes divide a range evenly.
template <class T> struct hs_codes {
    f32 lo, scale;
    HS_FN_MEMBER int of(T v) const {
        if (sizeof(T) == 1) return (int)hs_key(v);
        const f32 at = ((f32)v - lo) * scale;
        return at < 255.0f ? at > 0.0f ? (int)at : 0 : 255;
    }
};

// A tile of codes in shared memory: pixel (y, x) of the image, with its border, is at [(y - top) * pitch + x - left].
struct hs_code_tile {
    const u8* codes;
    int top, left, pitch;
    HS_FN_MEMBER const u8* row(int y) const { return codes + (y - top) * pitch - left; }
};

// The keys of the pixels under a footprint of spans that have one code. Codes are compared four at a time; rows of the
// tile begin at multiples of 4 bytes.
template <int BORDER, class T> struct hs_keys_of_code {
    const hs_plane<T>& in;
    const hs_code_tile& tile;
    const int* spans;
    int count, y, x;
    bool inside;
    T constant;
    int code;
    template <class F> HS_FN_MEMBER void each(F f) const {
        const u32 four = (u32)code * 0x01010101u;
#pragma unroll 1
        for (int s = 0; s < count; ++s) {
            const int row = y + __ldg(spans + 3 * s), first = x - tile.left + __ldg(spans + 3 * s + 1);
            const int end = x - tile.left + __ldg(spans + 3 * s + 2);
            const u32* const words = reinterpret_cast<const u32*>(tile.codes + (row - tile.top) * tile.pitch);
            for (int w = first / 4; w < (end + 3) / 4; ++w) {
                // The highest bit of each byte that is 0.
                const u32 apart = words[w] ^ four;
                u32 same = ~(((apart & 0x7f7f7f7fu) + 0x7f7f7f7fu) | apart | 0x7f7f7f7fu);
                if (4 * w < first) same &= ~0u << 8 * (first - 4 * w);
                if (4 * w + 4 > end) same &= ~0u >> 8 * (4 * w + 4 - end);
                for (int b = 0; same; ++b, same >>= 8) {
                    if (!(same & 0x80u)) continue;
                    const int c = tile.left + 4 * w + b;
                    f(hs_key(inside ? hs_read(in.row(row) + c) : hs_pixel<BORDER, BORDER>(in, row, c, constant)));
                }
            }
        }
    }
};

// All keys under a footprint.
template <int BORDER, class T> struct hs_keys_under {
    const hs_plane<T>& in;
    const int* spans;
    int count, y, x;
    bool inside;
    T constant;
    template <class F> HS_FN_MEMBER void each(F f) const {
#pragma unroll 1
        for (int s = 0; s < count; ++s) {
            const int dy = __ldg(spans + 3 * s), from = __ldg(spans + 3 * s + 1), to = __ldg(spans + 3 * s + 2);
            if (inside) {
                const auto row = in.row(y + dy) + x;
                for (int dx = from; dx < to; ++dx) f(hs_key(hs_read(row + dx)));
            } else {
                for (int dx = from; dx < to; ++dx) f(hs_key(hs_pixel<BORDER, BORDER>(in, y + dy, x + dx, constant)));
            }
        }
    }
};

// The key of rank `place` among some keys, which share all bits above `shift` + 1 with `found`. Each iteration counts
// keys by two bits, and so determines two bits of the result.
template <class K, class KEYS> HS_FN K hs_rank_by_bits(u32 place, K found, int shift, const KEYS& keys) {
    for (found = found >> shift >> 2 << 2 << shift; shift >= 0; shift -= 2) {
        u32 with0 = 0, with1 = 0, with2 = 0;
        keys.each([&](K key) {
            const K digit = (K)(key >> shift) - (K)(found >> shift);
            with0 += digit == 0;
            with1 += digit == 1;
            with2 += digit == 2;
        });
        // Keys that are smaller by the preceding bits are none of these three.
        K digit = 0;
        if (place >= with0) {
            place -= with0;
            digit = 1;
            if (place >= with1) {
                place -= with1;
                digit = 2;
                if (place >= with2) {
                    place -= with2;
                    digit = 3;
                }
            }
        }
        found |= digit << shift;
    }
    return found;
}

// Calls `f` with each code under `count` spans at (y, x).
template <class F> HS_FN void hs_each_code(const hs_code_tile& tile, const int* spans, int count, int y, int x, F f) {
#pragma unroll 1
    for (int s = 0; s < count; ++s) {
        const u8* const row = tile.row(y + __ldg(spans + 3 * s)) + x;
        for (int dx = __ldg(spans + 3 * s + 1); dx < __ldg(spans + 3 * s + 2); ++dx) f((int)row[dx]);
    }
}

// Most keys of one code that a thread compares with each other.
static __device__ constexpr int HS_ALIKE = 32;

// The pixels of rank `place` under a footprint of `spans`. Each thread walks down a column of at most `tall` pixels with a
// histogram of codes, in counts of type C. At each pixel, the codes of `left` spans leave it and the codes of `entered`
// spans enter. The code that contains the rank is never far from the code of the pixel above; the keys of this code are
// then ordered. The spans of the three lists follow each other in the table. Shared memory has the histograms, the keys,
// and the codes around the pixels of the block.
template <int BORDER, int THREADS, class C, class T>
HS_FN void hs_rank(hs_plane<T> in, const hs_around_rows& p, const int* spans, int count, int entered, int left, hs_reach reach,
                   u32 place, T constant, int across, int tall, int pitch, T* out) {
    typedef decltype(hs_key(constant)) K;
    const int x0 = (int)(blockIdx.x % across) * THREADS, x = x0 + (int)threadIdx.x;
    const int y0 = p.row0 + (int)(blockIdx.x / across) * tall, y1 = min(y0 + tall, p.row1);
    C* const counts = reinterpret_cast<C*>(hs_smem) + threadIdx.x;
    K* const alike = reinterpret_cast<K*>(hs_smem + 256 * THREADS * sizeof(C)) + threadIdx.x;
    u8* const filled = hs_smem + 256 * THREADS * sizeof(C) + (sizeof(T) > 1 ? HS_ALIKE * THREADS * sizeof(K) : 0);
    const hs_code_tile tile = {filled, y0 - reach.up, x0 - reach.left, pitch};
    const int wide = THREADS + reach.left + reach.right, top = max(p.start, 0), bottom = min(p.end, p.height);
    hs_codes<T> codes = {0.0f, 1.0f};
    if (sizeof(T) > 1) {
        f32 lo = HS_INFINITY, hi = -HS_INFINITY;
        for (int y = max(tile.top, top); y < min(y1 + reach.down, bottom); ++y) {
            for (int c = tile.left + (int)threadIdx.x; c < tile.left + wide; c += THREADS) {
                if ((u32)c >= (u32)p.width) continue;
                const f32 v = (f32)hs_read(in.row(y) + c);
                if (v - v == 0.0f) {
                    lo = v < lo ? v : lo;
                    hi = v > hi ? v : hi;
                }
            }
        }
        f32* const ends = reinterpret_cast<f32*>(hs_smem);
        ends[threadIdx.x] = lo;
        ends[THREADS + threadIdx.x] = hi;
        __syncthreads();
        for (int t = 0; t < THREADS; ++t) {
            lo = ends[t] < lo ? ends[t] : lo;
            hi = ends[THREADS + t] > hi ? ends[THREADS + t] : hi;
        }
        __syncthreads();
        // Finite and positive, so that infinite pixels have the outermost codes.
        const f32 even = 256.0f / (hi - lo);
        if (lo <= hi) codes = {lo, even < 1e38f ? even > 1e-37f ? even : 1e-37f : 1e38f};
    }
    for (int y = tile.top; y < y1 + reach.down; ++y) {
        u8* const row = filled + (y - tile.top) * pitch;
        for (int c = (int)threadIdx.x; c < wide; c += THREADS)
            row[c] = (u8)codes.of(hs_pixel<BORDER, BORDER>(in, y, tile.left + c, constant));
    }
    for (int c = 0; c < 256; ++c) counts[c * THREADS] = 0;
    __syncthreads();
    if (x >= p.width) return;
    // The code of the pixel above, and the number of smaller codes.
    int code = 0;
    u32 below = 0;
    for (int y = y0; y < y1; ++y) {
        const auto enters = [&](int c) {
            ++counts[c * THREADS];
            below += c < code;
        };
        const auto leaves = [&](int c) {
            --counts[c * THREADS];
            below -= c < code;
        };
        if (y == y0) {
            hs_each_code(tile, spans, count, y, x, enters);
        } else {
            hs_each_code(tile, spans + 3 * count, entered, y, x, enters);
            hs_each_code(tile, spans + 3 * (count + entered), left, y, x, leaves);
        }
        while (below > place) below -= counts[--code * THREADS];
        while (below + counts[code * THREADS] <= place) below += counts[code++ * THREADS];
        K found = (K)code;
        if (sizeof(T) > 1) {
            // True if all pixels are in the image and in the buffer.
            const bool inside = x >= reach.left && x + reach.right < p.width && y - reach.up >= top && y + reach.down < bottom;
            const u32 rest = place - below, many = counts[code * THREADS];
            const hs_keys_of_code<BORDER, T> keys = {in, tile, spans, count, y, x, inside, constant, code};
            K least = ~(K)0, most = 0;
            int n = 0;
            keys.each([&](K key) {
                least = key < least ? key : least;
                most = key > most ? key : most;
                if (n < HS_ALIKE) alike[n++ * THREADS] = key;
            });
            found = least;
            if (least != most && many > HS_ALIKE) {
                int shift = 0;
                while ((least ^ most) >> shift >> 2) shift += 2;
                found = hs_rank_by_bits(rest, least, shift, keys);
            } else if (least != most) {
                for (int i = 0; i < n; ++i) {
                    const K key = alike[i * THREADS];
                    u32 smaller = 0, equal = 0;
                    for (int j = 0; j < n; ++j) {
                        smaller += alike[j * THREADS] < key;
                        equal += alike[j * THREADS] == key;
                    }
                    if (smaller <= rest && rest < smaller + equal) found = key;
                }
            }
        }
        out[hs_place(y, x, p.out_start, p.width)] = hs_of_key<T>(found);
    }
}

// hs_rank for footprints with too many pixels for such histograms, or too far apart for a tile. A block has HIGH x
// BROAD pixels.
template <int BORDER, int HIGH, int BROAD, class T>
HS_FN void hs_rank_of_many(hs_plane<T> in, const hs_around_rows& p, const int* spans, int count, hs_reach reach, u32 place,
                           T constant, int across, T* out) {
    const int x = (int)(blockIdx.x % across) * BROAD + (int)threadIdx.x % BROAD;
    const int y = p.row0 + (int)(blockIdx.x / across) * HIGH + (int)threadIdx.x / BROAD;
    if (x >= p.width || y >= p.row1) return;
    typedef decltype(hs_key(constant)) K;
    const bool inside = x >= reach.left && x + reach.right < p.width && y - reach.up >= max(p.start, 0) &&
                        y + reach.down < min(p.end, p.height);
    const hs_keys_under<BORDER, T> keys = {in, spans, count, y, x, inside, constant};
    const K found = hs_rank_by_bits(place, (K)0, 8 * (int)sizeof(T) - 2, keys);
    out[hs_place(y, x, p.out_start, p.width)] = hs_of_key<T>(found);
}

// All keys under a footprint of several levels, whose spans also have a level. Planes are `size` apart.
template <int BORDER, class T> struct hs_keys_of_levels {
    const hs_plane<T>& in;
    i64 size;
    const int (&levels)[5];
    const int* spans;
    int count, y, x;
    bool inside;
    T constant;
    template <class F> HS_FN_MEMBER void each(F f) const {
        const int plane = (int)blockIdx.y;
#pragma unroll 1
        for (int s = 0; s < count; ++s) {
            const int dy = __ldg(spans + 4 * s + 1), from = __ldg(spans + 4 * s + 2), to = __ldg(spans + 4 * s + 3);
            const int read = hs_plane_read<BORDER>(plane, levels, __ldg(spans + 4 * s));
            if (read < 0) {
                for (int dx = from; dx < to; ++dx) f(hs_key(constant));
                continue;
            }
            const hs_plane<T> level = {in.data + (read - plane) * size, in.height, in.width, in.start, in.end};
            if (inside) {
                const T* const row = level.row(y + dy) + x;
                for (int dx = from; dx < to; ++dx) f(hs_key(__ldg(row + dx)));
            } else {
                for (int dx = from; dx < to; ++dx) f(hs_key(hs_pixel<BORDER, BORDER>(level, y + dy, x + dx, constant)));
            }
        }
    }
};

// The pixels of rank `place` under a footprint of several levels. A block has HIGH x BROAD pixels.
template <int BORDER, int HIGH, int BROAD, class T>
HS_FN void hs_rank_of_levels(hs_plane<T> in, i64 size, const int (&levels)[5], const hs_around_rows& p, const int* spans, int count,
                             hs_reach reach, u32 place, T constant, int across, T* out) {
    const int x = (int)(blockIdx.x % across) * BROAD + (int)threadIdx.x % BROAD;
    const int y = p.row0 + (int)(blockIdx.x / across) * HIGH + (int)threadIdx.x / BROAD;
    if (x >= p.width || y >= p.row1) return;
    typedef decltype(hs_key(constant)) K;
    const bool inside = x >= reach.left && x + reach.right < p.width && y - reach.up >= max(p.start, 0) &&
                        y + reach.down < min(p.end, p.height);
    const hs_keys_of_levels<BORDER, T> keys = {in, size, levels, spans, count, y, x, inside, constant};
    const K found = hs_rank_by_bits(place, (K)0, 8 * (int)sizeof(T) - 2, keys);
    out[(i64)(y - p.out_start) * p.width + x] = hs_of_key<T>(found);
}

// The smallest KEPT of some keys, in order.
template <class K, int KEPT> struct hs_smallest {
    K keys[KEPT];
    // Only the last `some` are filled by keys.
    HS_FN_MEMBER explicit hs_smallest(int some) {
#pragma unroll
        for (int i = 0; i < KEPT; ++i) keys[i] = i + some < KEPT ? (K)0 : ~(K)0;
    }
    HS_FN_MEMBER void add(K key) {
#pragma unroll
        for (int i = 0; i < KEPT; ++i) {
            const K less = key < keys[i] ? key : keys[i];
            key = key < keys[i] ? keys[i] : key;
            keys[i] = less;
        }
    }
};

// A box of pixels: its extents, and how far the pixel is from the first in each.
struct hs_box_around {
    int deep, front, tall, up, wide, left;
};

// The pixels of rank `place` in a box. Each thread keeps the smallest KEPT keys in order, or the largest if `flip` has all
// bits; `place` then counts from that end. It computes ROWS pixels of a column, 1 or 4. Four share the rows in the middle
// of a box of at least 3 rows, and two of them two rows more. A block has WARPS warps. Shared memory has the keys.
template <int BORDER, int WARPS, int ROWS, int KEPT, class T>
HS_FN void hs_rank_in_box(hs_plane<T> in, i64 size, const int (&levels)[5], const hs_around_rows& p, const hs_box_around& box,
                          u32 place, int flip, T constant, int across, T* out) {
    typedef decltype(hs_key(constant)) K;
    const int plane = (int)blockIdx.y, rows = WARPS * ROWS + box.tall - 1, pitch = 32 + box.wide - 1;
    const int x0 = (int)(blockIdx.x % across) * 32, y0 = p.row0 + (int)(blockIdx.x / across) * (WARPS * ROWS);
    const int needed = min(WARPS * ROWS, p.row1 - y0) + box.tall - 1;
    K* const tile = reinterpret_cast<K*>(hs_smem);
    for (int l = 0; l < box.deep; ++l) {
        const int read = hs_plane_read<BORDER>(plane, levels, l - box.front);
        const hs_plane<T> level = {in.data + (read < 0 ? 0 : read - plane) * size, in.height, in.width, in.start, in.end};
        for (int i = (int)threadIdx.x; i < needed * pitch; i += 32 * WARPS) {
            const int y = i / pitch, x = i - y * pitch;
            const T pixel =
                read < 0 ? constant : hs_pixel<BORDER, BORDER>(level, y0 - box.up + y, x0 - box.left + x, constant);
            tile[l * rows * pitch + i] = hs_key(pixel) ^ (K)(i64)flip;
        }
    }
    __syncthreads();
    const int column = (int)threadIdx.x % 32, first = (int)threadIdx.x / 32 * ROWS;
    const int x = x0 + column, y = y0 + first;
    if (x >= p.width || y >= p.row1) return;
    const auto add = [&](hs_smallest<K, KEPT>& kept, int from, int to) {
#pragma unroll 1
        for (int l = 0; l < box.deep; ++l) {
#pragma unroll 1
            for (int r = from; r < to; ++r) {
                const K* const row = tile + (l * rows + first + r) * pitch + column;
                for (int dx = 0; dx < box.wide; ++dx) kept.add(row[dx]);
            }
        }
    };
    const auto store = [&](const hs_smallest<K, KEPT>& kept, int row) {
        if (y + row < p.row1) {
            out[hs_place(y + row, x, p.out_start, p.width)] = hs_of_key<T>(kept.keys[KEPT - 1] ^ (K)(i64)flip);
        }
    };
    hs_smallest<K, KEPT> all((int)place + 1);
    if constexpr (ROWS == 1) {
        add(all, 0, box.tall);
        store(all, 0);
    } else {
        add(all, 3, box.tall);
#pragma unroll 1
        for (int pair = 0; pair < 2; ++pair) {
            hs_smallest<K, KEPT> two = all;
            add(two, pair == 0 ? 1 : box.tall, pair == 0 ? 3 : box.tall + 2);
#pragma unroll 1
            for (int i = 0; i < 2; ++i) {
                hs_smallest<K, KEPT> one = two;
                const int row = i == 0 ? 2 * pair : box.tall + 2 * pair;
                add(one, row, row + 1);
                store(one, 2 * pair + i);
            }
        }
    }
}
