// Steps of a loop over tiles: each thread has a column of R pixels in registers; shared memory
// holds the surrounding ones. Pixels near the edges of a tile are computed as well, from arbitrary
// values beyond: each step leaves fewer of them correct. Those that are correct after the last step
// are stored.

// The columns of a tile whose first pixel of this thread is (y, x), of an image that is read with a
// border. Pixels that are not held are never used: their values are arbitrary. `inside` promises
// that the whole tile is held.
template <int BORDER, class T, int R>
HS_FN void hs_load_column(const hs_plane<T>& in, int y, int x, bool inside, T v, T (&u)[R][1]) {
    if (inside) {
        const T* p = in.row(y) + x;
#pragma unroll
        for (int r = 0; r < R; ++r) u[r][0] = p[(i64)r * in.width];
    } else {
#pragma unroll
        for (int r = 0; r < R; ++r) u[r][0] = hs_pixel<BORDER, BORDER>(in, y + r, x, v);
    }
}

// Publishes a column to the other threads.
template <int PITCH, class T, int R> HS_FN void hs_show_column(T* here, const T (&u)[R][1]) {
#pragma unroll
    for (int r = 0; r < R; ++r) here[r * PITCH] = u[r][0];
}

// Derives pixels beyond the edge of the image from those inside, in a tile of ROWS x COLS pixels
// from (y0, x0) on. Nothing reads values derived from pixels outside the tile.
template <int BORDER, int ROWS, int COLS, int PITCH, class T, int R>
HS_FN void hs_continue_column(const T* tile, T* here, int y0, int x0, int y, int x, int height, int width, T v, T (&u)[R][1]) {
#pragma unroll
    for (int r = 0; r < R; ++r) {
        if ((u32)(y + r) < (u32)height && (u32)x < (u32)width) continue;
        const int from_y = hs_map<BORDER>(y + r, height), from_x = hs_map<BORDER>(x, width);
        const int tile_y = from_y - y0, tile_x = from_x - x0;
        if (from_y < 0 || from_x < 0)
            u[r][0] = v;
        else if ((u32)tile_y < (u32)ROWS && (u32)tile_x < (u32)COLS)
            u[r][0] = tile[tile_y * PITCH + tile_x];
        here[r * PITCH] = u[r][0];
    }
}

// The pixel DY rows below and DX columns beside pixel r of the column.
template <int DY, int DX, int PITCH, class T, int R> HS_FN T hs_near(const T (&u)[R][1], const T* here, int r) {
    return DX == 0 && r + DY >= 0 && r + DY < R ? u[min(max(r + DY, 0), R - 1)][0] : here[(r + DY) * PITCH + DX];
}

// Stores the pixels of a column in rows y1..y2 and columns x1..x2.
template <class T, int R>
HS_FN void hs_store_column(T* out, int start, int width, int y, int x, int y1, int y2, int x1, int x2, const T (&u)[R][1]) {
    if (x < x1 || x >= x2) return;
    T* p = out + (i64)(y - start) * width + x;
#pragma unroll
    for (int r = 0; r < R; ++r)
        if (y + r >= y1 && y + r < y2) p[(i64)r * width] = u[r][0];
}
