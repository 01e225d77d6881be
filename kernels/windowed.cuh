// Means of rectangles and ranks under footprints; see horus_core::ops::windowed.

// A pixel as an accumulator; and the mean, or the sum where the count is 0.
template <class A, class T> HS_FN A hs_total(T v) { return hs_to<A>(v); }
template <class R> HS_FN R hs_over(f32 sum, i64 count) { return hs_to<R>(count == 0 ? sum : sum / (f32)count); }
template <class R> HS_FN R hs_over(f64 sum, i64 count) { return hs_to<R>(count == 0 ? sum : sum / (f64)count); }
template <class R> HS_FN R hs_over(i32 sum, i64 count) { return hs_over<R>((f64)sum, count); }

// Sums of `k` values of each of `lines` lines, which are `apart` from each other, for `n` results
// per line: by doubling, in `from` and `other`, lines of `pitch`, which are overwritten. Each
// thread of a block of THREADS adds to its own results. All threads take part.
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

// The extent of an image, and the rows held by its buffer; the rows to compute, and the first row
// of the result.
struct hs_around_rows {
    int height, width, start, end, row0, row1, out_start;
};

// The mean of `tall` x `wide` pixels, `up` of them above and `left` to the left, for a tile of HIGH
// x BROAD pixels of the result, from rows that are added up FLIGHT at a time. Shared memory holds
// two buffers of these, and two of the sums of rows.
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
    // Columns are added up as one line, including those beside the image; the row sums are
    // consumed, so results overwrite the rows.
    for (int i = threadIdx.x; i < rows * (BROAD - broad); i += THREADS) {
        const int l = i / (BROAD - broad), x = i - l * (BROAD - broad);
        sums[l * BROAD + broad + x] = (A)0;
    }
    __syncthreads();
    hs_add_up<THREADS>(sums, doubled, 1, 0, BROAD, tall, high * BROAD, a, 0);
    for (int i = threadIdx.x; i < high * BROAD; i += THREADS) {
        const int y = i / BROAD, x = i - y * BROAD;
        if (x < broad) out[(i64)(y0 + y - p.out_start) * p.width + x0 + x] = hs_over<R>(a[i], count);
    }
}

// The sum of `k` values in the same order, by one thread: sums of powers of two wait for their
// neighbours.
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

// The same mean where shared memory cannot hold a line: a thread adds up all pixels of its
// rectangle.
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
    out[(i64)(y - p.out_start) * p.width + x] = hs_over<R>(sum, count);
}

// Keys in the order of pixels: by value, -0 before +0, NaNs last; and the pixel of a key.
HS_FN u32 hs_key(u8 v) { return v; }
HS_FN u32 hs_key(u16 v) { return v; }
HS_FN u32 hs_key(u32 v) { return v; }
HS_FN u32 hs_key(i8 v) { return (u8)v ^ 0x80u; }
HS_FN u32 hs_key(i16 v) { return (u16)v ^ 0x8000u; }
HS_FN u32 hs_key(i32 v) { return (u32)v ^ 0x80000000u; }
HS_FN u32 hs_key(f32 v) {
    const u32 bits = hs_bits(v);
    return v != v ? ~0u : bits >> 31 ? ~bits : bits | 0x80000000u;
}
HS_FN u64 hs_key(f64 v) {
    u64 bits;
    memcpy(&bits, &v, 8);
    return v != v ? ~0ull : bits >> 63 ? ~bits : bits | 1ull << 63;
}
template <class T, class K> HS_FN T hs_of_key(K key) { return (T)(key ^ (hs_limits<T>::lo < 0 ? (K)1 << (8 * sizeof(T) - 1) : (K)0)); }
template <> __device__ __forceinline__ f32 hs_of_key<f32, u32>(u32 key) {
    const u32 bits = key >> 31 ? key & 0x7fffffffu : ~key;
    f32 v;
    memcpy(&v, &bits, 4);
    return v;
}
template <> __device__ __forceinline__ f64 hs_of_key<f64, u64>(u64 key) {
    const u64 bits = key >> 63 ? key & ~(1ull << 63) : ~key;
    f64 v;
    memcpy(&v, &bits, 8);
    return v;
}

// The pixel of rank `place` under a footprint of `count` spans (row, first column, one past the
// last). Each pass over the footprint counts pixels by two bits of their keys, and so determines
// two bits of the result. A block has HIGH x BROAD pixels.
template <int BORDER, int HIGH, int BROAD, class T>
HS_FN void hs_rank(hs_plane<T> in, const hs_around_rows& p, const int* spans, int count, hs_reach reach, u32 place, T constant,
                   int across, T* out) {
    const int x = (int)(blockIdx.x % across) * BROAD + (int)threadIdx.x % BROAD;
    const int y = p.row0 + (int)(blockIdx.x / across) * HIGH + (int)threadIdx.x / BROAD;
    if (x >= p.width || y >= p.row1) return;
    typedef decltype(hs_key(constant)) K;
    // True if all pixels read are in the image, and held.
    const bool inside = x >= reach.left && x + reach.right < p.width && y - reach.up >= max(p.start, 0) &&
                        y + reach.down < min(p.end, p.height);
    K found = 0;
    for (int shift = 8 * (int)sizeof(T) - 2; shift >= 0; shift -= 2) {
        u32 with0 = 0, with1 = 0, with2 = 0;
        const auto counts = [&](T v) {
            const K digit = (K)(hs_key(v) >> shift) - (K)(found >> shift);
            with0 += digit == 0;
            with1 += digit == 1;
            with2 += digit == 2;
        };
        for (int s = 0; s < count; ++s) {
            const int dy = __ldg(spans + 3 * s), from = __ldg(spans + 3 * s + 1), to = __ldg(spans + 3 * s + 2);
            if (inside) {
                const T* const row = in.row(y + dy) + x;
                for (int dx = from; dx < to; ++dx) counts(__ldg(row + dx));
            } else {
                for (int dx = from; dx < to; ++dx) counts(hs_pixel<BORDER, BORDER>(in, y + dy, x + dx, constant));
            }
        }
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
    out[(i64)(y - p.out_start) * p.width + x] = hs_of_key<T>(found);
}
