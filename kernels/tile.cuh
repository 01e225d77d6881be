// Tiles of an input in shared memory, with borders resolved, so that code that reads them handles no borders.

#ifdef HS_PORTABLE
template <int BYTES> HS_FN void hs_copy_async(void* shared, const void* global) { memcpy(shared, global, BYTES); }
HS_FN void hs_commit() {}
template <int PENDING> HS_FN void hs_wait() {}
#else
// An asynchronous copy of 4, 8 or 16 bytes from global to shared memory.
template <int BYTES> HS_FN void hs_copy_async(void* shared, const void* global) {
    const u32 at = (u32)__cvta_generic_to_shared(shared);
    if (BYTES == HS_AT(16))
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(global) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(at), "l"(global), "n"(BYTES) : "memory");
}
HS_FN void hs_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int PENDING> HS_FN void hs_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory"); }
#endif

// One element; types too small for an asynchronous copy go through a register.
template <class T, bool ASYNC = (sizeof(T) >= 4)> struct hs_element {
    static __device__ __forceinline__ void copy(T* s, const T* g) { hs_copy_async<(int)sizeof(T)>(s, g); }
};
template <class T> struct hs_element<T, false> {
    static __device__ __forceinline__ void copy(T* s, const T* g) { *s = *g; }
};

// ROWS x COLS elements inside the image and in the buffer, from pixel (y0, x0) on: copied from a plane ...
template <int ROWS, int COLS, int PITCH, int THREADS, class T>
HS_FN void hs_fill_tile(T* s, const hs_plane<T>& in, int y0, int x0, bool aligned) {
    constexpr int V = 16 / (int)sizeof(T), VECTORS = COLS / V;
    const auto g = in.row(y0) + x0;
    if (aligned) {
        // No copy waits for another: unrolling would give more code, and as many instructions.
#pragma unroll 1
        for (int i = threadIdx.x; i < ROWS * VECTORS; i += THREADS) {
            const int r = i / VECTORS, c = (i - r * VECTORS) * V;
            hs_copy_async<16>(s + r * PITCH + c, g + HS_AT((i64)r * in.width) + c);
        }
    } else {
#pragma unroll 1
        for (int i = threadIdx.x; i < ROWS * COLS; i += THREADS) {
            const int r = i / COLS, c = i - r * COLS;
            hs_element<T>::copy(s + r * PITCH + c, g + HS_AT((i64)r * in.width) + c);
        }
    }
}

// ... or computed by a chain, which may have fewer rows: the rows of its inputs.
template <int ROWS, int COLS, int PITCH, int THREADS, class CHAIN, class T>
HS_FN void hs_fill_tile(T* s, const CHAIN& in, int y0, int x0, bool aligned) {
    constexpr int V = 16 / (int)sizeof(T), VECTORS = COLS / V, ITEMS = ROWS * VECTORS, AHEAD = CHAIN::AHEAD;
#pragma unroll 1
    for (int first = threadIdx.x; first < ITEMS; first += THREADS * AHEAD) {
        int y[AHEAD], x[AHEAD];
        hs_vec<T, V> v[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) {
            const int i = min(first + k * THREADS, ITEMS - 1), r = i / VECTORS;
            y[k] = y0 + r;
            x[k] = x0 + (i - r * VECTORS) * V;
        }
        in.vectors(y, x, aligned, v);
#pragma unroll
        for (int k = 0; k < AHEAD; ++k)
            if (first + k * THREADS < ITEMS)
                *reinterpret_cast<hs_vec<T, V>*>(s + (y[k] - y0) * PITCH + (x[k] - x0)) = v[k];
    }
}

// The V elements of an image from (y, x) on, with its borders. Elements inside a row are one copy.
template <int BORDER_Y, int BORDER_X, int V, class T>
HS_FN void hs_copy_edge(T* s, const hs_plane<T>& in, int y, int x, bool aligned, T v) {
    bool constant;
    const int row = hs_row<BORDER_Y>(in, y, constant);
    if (aligned && !constant && x >= 0 && x + V <= in.width) {
        hs_copy_async<16>(s, in.row(row) + x);
        return;
    }
#pragma unroll 1
    for (int k = 0; k < V; ++k) {
        const int c = hs_map<BORDER_X>(x + k, in.width);
        s[k] = constant || c < 0 ? v : in.at(row, c);
    }
}

// hs_fill_tile at an edge: of a plane ...
template <int BORDER_Y, int BORDER_X, int ROWS, int COLS, int PITCH, int THREADS, class T>
HS_FN void hs_fill_edge(T* s, const hs_plane<T>& in, int y0, int x0, bool aligned, T v) {
    constexpr int V = 16 / (int)sizeof(T), VECTORS = COLS / V;
#pragma unroll 1
    for (int i = threadIdx.x; i < ROWS * VECTORS; i += THREADS) {
        const int r = i / VECTORS, c = (i - r * VECTORS) * V;
        hs_copy_edge<BORDER_Y, BORDER_X, V>(s + r * PITCH + c, in, y0 + r, x0 + c, aligned, v);
    }
}

// ... or of a chain.
template <int BORDER_Y, int BORDER_X, int ROWS, int COLS, int PITCH, int THREADS, class CHAIN, class T>
HS_FN void hs_fill_edge(T* s, const CHAIN& in, int y0, int x0, bool, T v) {
    // Unrolling would only cost compile time.
#pragma unroll 1
    for (int i = threadIdx.x; i < ROWS * COLS; i += THREADS) {
        const int r = i / COLS, c = i - r * COLS;
        s[r * PITCH + c] = hs_pixel<BORDER_Y, BORDER_X>(in, y0 + r, x0 + c, v);
    }
}

// Starts loading ROWS x COLS elements from image pixel (y0, x0) on into `s`. The caller commits and waits. `aligned`
// promises that every row of the image begins at a multiple of 16 bytes; x0, COLS and PITCH are multiples of 16 bytes
// by construction.
template <int BORDER_Y, int BORDER_X, int ROWS, int COLS, int PITCH, int THREADS, class IMAGE, class T>
HS_FN void hs_load_tile(T* s, const IMAGE& in, int y0, int x0, bool aligned, T v) {
    constexpr int V = 16 / (int)sizeof(T);
    static_assert(COLS % V == 0 && PITCH % V == 0, "rows of a tile are whole vectors");
    const int top = max(0, in.start), bottom = min(in.height, in.end);
    if (y0 >= top && y0 + ROWS <= bottom && x0 >= 0 && x0 + COLS <= in.width) {
        hs_fill_tile<ROWS, COLS, PITCH, THREADS>(s, in, y0, x0, aligned);
    } else {
        hs_fill_edge<BORDER_Y, BORDER_X, ROWS, COLS, PITCH, THREADS>(s, in, y0, x0, aligned, v);
    }
}

template <int BORDER_Y, int BORDER_X, int ROWS, int COLS, int PITCH, int THREADS, class IMAGE, class T>
HS_CALLED void hs_load_tile_called(T* s, const IMAGE in, int y0, int x0, bool aligned, T v) {
    hs_load_tile<BORDER_Y, BORDER_X, ROWS, COLS, PITCH, THREADS>(s, in, y0, x0, aligned, v);
}

#ifdef HS_PORTABLE
HS_FN u32 hs_high_product(u32 a, u32 b) { return (u32)(((u64)a * b) >> 32); }
#else
HS_FN u32 hs_high_product(u32 a, u32 b) { return __umulhi(a, b); }
#endif

// hs_load_tile with a run-time size: filters of different reach share a binary.
template <int BORDER_Y, int BORDER_X, int PITCH, int THREADS, class T>
HS_FN void hs_load_loose_tile(T* s, const hs_plane<T>& in, int y0, int x0, int rows, int cols, bool aligned, T v) {
    constexpr int V = 16 / (int)sizeof(T);
    const int top = max(0, in.start), bottom = min(in.height, in.end);
    const bool inside = y0 >= top && y0 + rows <= bottom && x0 >= 0 && x0 + cols <= in.width;
    const int across = aligned ? cols / V : cols;
    // i / across is the upper half of i * (2^32 / across, rounded up), exact for as many elements as a tile has.
    const u32 factor = 0xffffffffu / (u32)across + 1;
#pragma unroll 1
    for (int i = threadIdx.x; i < rows * across; i += THREADS) {
        const int r = across == 1 ? i : (int)hs_high_product(i, factor), c = i - r * across;
        if (inside && aligned)
            hs_copy_async<16>(s + r * PITCH + c * V, in.row(y0 + r) + (x0 + c * V));
        else if (inside)
            hs_element<T>::copy(s + r * PITCH + c, in.row(y0 + r) + (x0 + c));
        else if (aligned)
            hs_copy_edge<BORDER_Y, BORDER_X, V>(s + r * PITCH + c * V, in, y0 + r, x0 + c * V, true, v);
        else
            s[r * PITCH + c] = hs_pixel<BORDER_Y, BORDER_X>(in, y0 + r, x0 + c, v);
    }
}

// Copies COUNT taps to shared memory.
template <int COUNT, int THREADS, class T> HS_FN void hs_load_taps(T* s, const T* g) {
#pragma unroll 1
    for (int i = threadIdx.x; i < COUNT; i += THREADS) hs_element<T>::copy(s + i, g + i);
}
