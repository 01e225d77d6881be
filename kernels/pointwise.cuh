// Planes as lines of vectors, independent of their rows. A block has THREADS * R vectors of C elements; the plane has
// `left` of them. Thread `lane` takes R vectors, THREADS apart. Where vectors are not possible, it takes single
// elements likewise.

template <int THREADS, int R, int C, class T> HS_FN void hs_load_pixels(const T* q, int lane, bool vectors, i64 left, T (&v)[R][C]) {
    if (vectors) {
#pragma unroll
        for (int r = 0; r < R; ++r) {
            hs_span<T, hs_lanes<T>(C), C> t;
            t.load(q + HS_AT((r * THREADS + lane) * C));
#pragma unroll
            for (int c = 0; c < C; ++c) v[r][c] = t.v[c];
        }
    } else {
#pragma unroll
        for (int r = 0; r < R; ++r)
#pragma unroll
            for (int c = 0; c < C; ++c) {
                const int e = (r * C + c) * THREADS + lane;
                v[r][c] = e < left ? q[HS_AT(e)] : (T)0;
            }
    }
}

template <int THREADS, int R, int C, class T> HS_FN void hs_store_pixels(T* o, int lane, bool vectors, i64 left, const T (&v)[R][C]) {
#pragma unroll
    for (int r = 0; r < R; ++r) {
        if (vectors) {
            T* q = o + (r * THREADS + lane) * C;
            hs_store_block<T, 1, C>(q, 0, C, 0, 0, 1, true, *reinterpret_cast<const T(*)[1][C]>(&v[r]));
        } else {
#pragma unroll
            for (int c = 0; c < C; ++c) {
                const int e = (r * C + c) * THREADS + lane;
                if (e < left && HS_STORED(v[r])) o[e] = v[r][c];
            }
        }
    }
}

// Samples of interleaved pixels, S of each, in the same order: an element at `q`, and every S-th from it on. A cache
// line that adjacent threads read in part is used again for the next samples.
template <int THREADS, int C> HS_FN i64 hs_pixel(int r, int c, int lane, bool vectors) {
    return vectors ? ((i64)r * THREADS + lane) * C + c : ((i64)r * C + c) * THREADS + lane;
}

// The first element of a plane, one sample of the pixels, from pixel `block` on; a level has `size` elements.
template <int S, class T> HS_FN const T* hs_sample(const T* in, int plane, i64 size, i64 block) {
    return in + (i64)(plane / S) * size + plane % S + block * S;
}

template <int THREADS, int S, int R, int C, class T> HS_FN void hs_load_samples(const T* q, int lane, bool vectors, i64 left, T (&v)[R][C]) {
#pragma unroll
    for (int r = 0; r < R; ++r)
#pragma unroll
        for (int c = 0; c < C; ++c) {
            const i64 e = hs_pixel<THREADS, C>(r, c, lane, vectors);
            v[r][c] = e < left ? q[HS_AT(e * S)] : (T)0;
        }
}

template <int THREADS, int S, int R, int C, class T>
HS_FN void hs_store_samples(T* o, int lane, bool vectors, i64 left, const T (&v)[R][C]) {
#pragma unroll
    for (int r = 0; r < R; ++r)
#pragma unroll
        for (int c = 0; c < C; ++c) {
            const i64 e = hs_pixel<THREADS, C>(r, c, lane, vectors);
            if (e < left && HS_STORED(v[r])) o[e * S] = v[r][c];
        }
}
