// Matrix products. A block of 256 threads computes a tile of 16 M rows and 16 N columns, M x N pixels per thread. K
// terms of both factors are in shared memory while the next ones are read.

// Threads along a side of a block.
#define HS_SIDE 16

template <int M, int N, int K, class T> struct hs_factors {
    static constexpr int THREADS = HS_SIDE * HS_SIDE, ROWS = HS_SIDE * M, COLUMNS = HS_SIDE * N;
    // Rows of the first factor are stored transposed, a vector apart against bank conflicts.
    static constexpr int PITCH = ROWS + 16 / (int)sizeof(T), SIZE = K * (PITCH + COLUMNS);
    // Adjacent pixels in a thread's tile.
    static constexpr int DOWN = hs_lanes<T>(M), ACROSS = hs_lanes<T>(N);
    static constexpr int OF_A = ROWS * K / THREADS, OF_B = COLUMNS * K / THREADS;
    T a[OF_A], b[OF_B];

    // Reads terms from `first` on; terms that do not exist are never added.
    HS_FN_MEMBER void load(const T* from, const T* by, int rows, int columns, int width, int terms, int first) {
        const int y = threadIdx.x / K, k = first + threadIdx.x % K, x = threadIdx.x % COLUMNS, l = first + threadIdx.x / COLUMNS;
        from += (i64)y * terms + k;
        by += (i64)l * width + x;
#pragma unroll
        for (int i = 0; i < OF_A; ++i) {
            constexpr int APART = THREADS / K;
            a[i] = y + i * APART < rows && k < terms ? from[(i64)(i * APART) * terms] : (T)0;
        }
#pragma unroll
        for (int i = 0; i < OF_B; ++i) {
            constexpr int APART = THREADS / COLUMNS;
            b[i] = x < columns && l + i * APART < terms ? by[(i64)(i * APART) * width] : (T)0;
        }
    }

    HS_FN_MEMBER void store(T* shared) const {
        T* const p = shared + threadIdx.x % K * PITCH + threadIdx.x / K;
#pragma unroll
        for (int i = 0; i < OF_A; ++i) p[i * (THREADS / K)] = a[i];
#pragma unroll
        for (int i = 0; i < OF_B; ++i) shared[K * PITCH + threadIdx.x + i * THREADS] = b[i];
    }

    // Adds the products of term k in shared memory.
    static HS_FN_MEMBER void add(const T* shared, int k, T (&sums)[M][N]) {
        hs_vec<T, DOWN> down[M / DOWN];
        hs_vec<T, ACROSS> across[N / ACROSS];
        const T* const p = shared + k * PITCH + threadIdx.x / HS_SIDE * DOWN;
        const T* const q = shared + K * PITCH + k * COLUMNS + threadIdx.x % HS_SIDE * ACROSS;
#pragma unroll
        for (int i = 0; i < M / DOWN; ++i) down[i] = *reinterpret_cast<const hs_vec<T, DOWN>*>(p + i * HS_SIDE * DOWN);
#pragma unroll
        for (int i = 0; i < N / ACROSS; ++i) across[i] = *reinterpret_cast<const hs_vec<T, ACROSS>*>(q + i * HS_SIDE * ACROSS);
#pragma unroll
        for (int i = 0; i < M; ++i)
#pragma unroll
            for (int j = 0; j < N; ++j)
                sums[i][j] = hs_fma(down[i / DOWN].v[i % DOWN], across[j / ACROSS].v[j % ACROSS], sums[i][j]);
    }
};

// `rows` rows and `width` columns of the product of two planes, in tiles, `tiles` of them side by side. `shared` has
// space for the terms of two iterations. `aligned`: rows of the product begin at whole vectors.
template <int M, int N, int K, class T>
HS_FN void hs_product(const T* from, const T* by, T* shared, T* out, int rows, int width, int terms, int tiles, bool aligned) {
    typedef hs_factors<M, N, K, T> Factors;
    constexpr int DOWN = Factors::DOWN, ACROSS = Factors::ACROSS;
    const int y0 = (int)(blockIdx.x / tiles) * Factors::ROWS, x0 = (int)(blockIdx.x % tiles) * Factors::COLUMNS;
    from += (i64)y0 * terms;
    by += x0;
    rows -= y0;
    const int columns = width - x0;
    T sums[M][N] = {};
    Factors next;
    next.load(from, by, rows, columns, width, terms, 0);
    next.store(shared);
    __syncthreads();
    for (int first = 0; first < terms; first += K) {
        const T* const now = shared + first / K % 2 * Factors::SIZE;
        const bool more = first + K < terms;
        if (more) next.load(from, by, rows, columns, width, terms, first + K);
        if (first + K <= terms) {
#pragma unroll
            for (int k = 0; k < K; ++k) Factors::add(now, k, sums);
        } else {
            for (int k = 0; k < terms - first; ++k) Factors::add(now, k, sums);
        }
        if (more) next.store(shared + (first / K + 1) % 2 * Factors::SIZE);
        __syncthreads();
    }
    out += (i64)y0 * width + x0;
#pragma unroll
    for (int i = 0; i < M; ++i) {
        const int y = (i / DOWN * HS_SIDE + threadIdx.x / HS_SIDE) * DOWN + i % DOWN;
#pragma unroll
        for (int j = 0; j < N; j += ACROSS) {
            const int x = (j / ACROSS * HS_SIDE + threadIdx.x % HS_SIDE) * ACROSS;
            T* const p = out + (i64)y * width + x;
            hs_vec<T, ACROSS> v;
#pragma unroll
            for (int c = 0; c < ACROSS; ++c) v.v[c] = sums[i][j + c];
            if (y < rows && aligned && x + ACROSS <= columns) {
                hs_put(p, v);
            } else if (y < rows) {
#pragma unroll
                for (int c = 0; c < ACROSS; ++c)
                    if (x + c < columns) p[c] = v.v[c];
            }
        }
    }
}
#undef HS_SIDE
