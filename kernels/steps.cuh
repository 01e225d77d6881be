// Iterations of a loop over tiles: each thread has R rows of C pixels in registers, a warp R rows of 32 C. Pixels to
// the left and right come from the neighbours in the warp, pixels above and below through shared memory. Pixels near
// the edges of a tile are computed too, from arbitrary values beyond, so each iteration leaves fewer correct pixels.
// Those that are correct after the last iteration are stored. Filters are in `near.cuh`.

// The pixels of this thread, from (y, x) on, of an image that is read with a border. Pixels that are not in the buffer
// have arbitrary values and are never used. `inside` promises that the buffer has the whole tile.
template <int BORDER, class T, int R, int C>
HS_FN void hs_load_part(const hs_plane<T>& in, int y, int x, bool inside, bool aligned, T v, T (&u)[R][C]) {
    if (inside) {
        hs_lines(in, y, x, aligned, u);
    } else {
#pragma unroll
        for (int r = 0; r < R; ++r)
#pragma unroll
            for (int c = 0; c < C; ++c) u[r][c] = hs_pixel<BORDER, BORDER>(in, y + r, x + c, v);
    }
}

// Derives pixels beyond the edge of the image from those inside, in a tile of ROWS x COLS pixels
// from (y0, x0) on. Nothing reads values derived from pixels outside the tile.
template <int BORDER, int ROWS, int COLS, class T, int R, int C>
HS_FN void hs_continue_part(T* tile, int y0, int x0, int y, int x, int height, int width, T v, T (&u)[R][C]) {
    T* const here = tile + (y - y0) * COLS + (x - x0);
#pragma unroll
    for (int r = 0; r < R; ++r)
#pragma unroll
        for (int c = 0; c < C; ++c) here[r * COLS + c] = u[r][c];
    __syncthreads();
#pragma unroll
    for (int r = 0; r < R; ++r)
#pragma unroll
        for (int c = 0; c < C; ++c) {
            if ((u32)(y + r) < (u32)height && (u32)(x + c) < (u32)width) continue;
            const int from_y = hs_map<BORDER>(y + r, height), from_x = hs_map<BORDER>(x + c, width);
            const int tile_y = from_y - y0, tile_x = from_x - x0;
            if (from_y < 0 || from_x < 0)
                u[r][c] = v;
            else if ((u32)tile_y < (u32)ROWS && (u32)tile_x < (u32)COLS)
                u[r][c] = tile[tile_y * COLS + tile_x];
        }
    __syncthreads();
}

// The pixels of this thread and their surroundings, with corners if filters reach there. `shown` has space for the
// first DOWN and the last UP rows of each of WARPS warps, or for all R if these are fewer; the next iteration uses
// another one.
template <int UP, int DOWN, int LEFT, int RIGHT, bool CORNERS, int WARPS, class T, int R, int C>
HS_FN void hs_surround(T* shown, const T (&u)[R][C], T (&w)[UP + R + DOWN][LEFT + C + RIGHT]) {
    constexpr int SHOWN = hs_min_int(R, UP + DOWN), LAST = R > UP ? R - UP : 0;
    hs_vec<T, C>* const lines = reinterpret_cast<hs_vec<T, C>*>(shown) + threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    if (SHOWN > 0) {
#pragma unroll
        for (int r = 0; r < R; ++r) {
            if (r >= DOWN && r < LAST) continue;
            hs_vec<T, C> line;
#pragma unroll
            for (int c = 0; c < C; ++c) line.v[c] = u[r][c];
            lines[(warp * SHOWN + (SHOWN == R || r < DOWN ? r : r - LAST + DOWN)) * 32] = line;
        }
        __syncthreads();
    }
#pragma unroll
    for (int k = 0; k < UP + R + DOWN; ++k) {
        // Row r of the warp that is `away` below this one.
        const int away = (k - UP + UP * R) / R - UP, r = k - UP - away * R;
        T own[C];
        if (away == 0) {
#pragma unroll
            for (int c = 0; c < C; ++c) own[c] = u[r][c];
        } else {
            const int from = min(max(warp + away, 0), WARPS - 1);
            const hs_vec<T, C> line = lines[(from * SHOWN + (SHOWN == R || r < DOWN ? r : r - LAST + DOWN)) * 32];
#pragma unroll
            for (int c = 0; c < C; ++c) own[c] = line.v[c];
        }
#pragma unroll
        for (int c = 0; c < C; ++c) w[k][LEFT + c] = own[c];
        if (away != 0 && !CORNERS) continue;
#pragma unroll
        for (int c = 1; c <= LEFT; ++c) {
            const int lanes = (c + C - 1) / C;
            w[k][LEFT - c] = __shfl_up_sync(~0u, own[lanes * C - c], lanes);
        }
#pragma unroll
        for (int c = 0; c < RIGHT; ++c) w[k][LEFT + C + c] = __shfl_down_sync(~0u, own[c % C], 1 + c / C);
    }
}

// Stores the pixels of a thread in rows y1..y2 and columns x1..x2.
template <class T, int R, int C>
HS_FN void hs_store_part(T* out, int start, int width, int y, int x, int y1, int y2, int x1, int x2, bool aligned,
                         const T (&u)[R][C]) {
    constexpr int A = hs_lanes<T>(C);
    const bool whole = aligned && x >= x1 && x + C <= x2;
#pragma unroll
    for (int r = 0; r < R; ++r) {
        if (y + r < y1 || y + r >= y2) continue;
        T* p = out + hs_place(y + r, x, start, width);
#pragma unroll
        for (int i = 0; i < C; i += A) {
            hs_vec<T, A> part;
#pragma unroll
            for (int c = 0; c < A; ++c) part.v[c] = u[r][i + c];
            if (whole) hs_put(p + i, part);
#pragma unroll
            for (int c = 0; c < A; ++c)
                if (!whole && x + i + c >= x1 && x + i + c < x2) p[(i + c) * HS_SAMPLES] = part.v[c];
        }
    }
}
