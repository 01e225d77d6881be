// Planes as lines of vectors, independent of their rows. A block has THREADS * R vectors of C
// elements, of which `left` are in the plane. Thread `lane` takes R vectors, THREADS apart; where
// vectors are not possible, single elements likewise.

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
