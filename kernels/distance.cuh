// Nearest background pixels; see horus_core::ops::distance.

// Steps to background that is not there, and the offset of a pixel without any.
#define HS_FAR 0x40000000
#define HS_NONE (-2147483647 - 1)

// Offsets of the nearest background row of each column: a thread takes EACH rows of a column,
// [row0, row1) being divided from the first, and looks beyond them for background. The buffers
// begin at rows `in_start` and `out_start`, and `in` holds the whole image.
template <int THREADS, int EACH, class T>
HS_FN void hs_nearest_row(const T* in, int in_start, int height, int* out, int out_start, int width, int row0, int row1, int across) {
    const int x = (int)(blockIdx.x % across) * THREADS + (int)threadIdx.x;
    const int first = row0 + (int)(blockIdx.x / across) * EACH, end = min(first + EACH, row1);
    if (x >= width || first >= end) return;
    in += x - (i64)in_start * width;
    out += x - (i64)out_start * width;
    int steps = HS_FAR;
    for (int y = first - 1; y >= 0; --y)
        if (in[(i64)y * width] == (T)0) {
            steps = first - 1 - y;
            break;
        }
    for (int y = first; y < end; ++y) {
        steps = in[(i64)y * width] == (T)0 ? 0 : steps + 1;
        out[(i64)y * width] = steps;
    }
    steps = HS_FAR;
    for (int y = end; y < height; ++y)
        if (in[(i64)y * width] == (T)0) {
            steps = y - end;
            break;
        }
    for (int y = end - 1; y >= first; --y) {
        steps = in[(i64)y * width] == (T)0 ? 0 : steps + 1;
        const int above = out[(i64)y * width];
        const int nearest = above <= steps ? -above : steps;
        out[(i64)y * width] = nearest >= HS_FAR || nearest <= -HS_FAR ? HS_NONE : nearest;
    }
}

// Metric::measure.
enum { HS_EUCLIDEAN, HS_TAXICAB, HS_CHESSBOARD };
template <int METRIC> HS_FN f64 hs_measure(f64 down, f64 across, f64 rows, f64 columns) {
    if (METRIC == HS_EUCLIDEAN) {
        down = down * rows;
        across = across * columns;
        return down * down + across * across;
    }
    down = fabs(down);
    across = fabs(across);
    if (METRIC == HS_TAXICAB) return down + across;
    return down < across ? across : down;
}

// The nearest background of a pixel, by a search outwards from it in a row of offsets, which ends
// where no column can be nearer. FOUND is 0 for the distance, 1 for the offset of its row, 2 for
// that of its column.
template <int METRIC, int FOUND, int THREADS, class T>
HS_FN void hs_nearest(const int* in, T* out, int width, f64 rows, f64 columns, int across) {
    const int x = (int)(blockIdx.x % across) * THREADS + (int)threadIdx.x;
    const i64 row = (i64)(blockIdx.x / across) * width;
    if (x >= width) return;
    in += row;
    int column = -1;
    f64 least = 0.0;
    for (int k = 0; x - k >= 0 || x + k < width; ++k) {
        if (column >= 0 && hs_measure<METRIC>(0.0, (f64)k, rows, columns) > least) break;
        for (int side = 0; side < 2; ++side) {
            const int at = side ? x + k : x - k;
            if (at < 0 || at >= width || in[at] == HS_NONE) continue;
            const f64 measure = hs_measure<METRIC>((f64)in[at], (f64)k, rows, columns);
            if (column < 0 || measure < least || (side == 0 && measure == least)) {
                least = measure;
                column = at;
            }
        }
    }
    T found;
    if (FOUND == 0)
        found = METRIC == HS_EUCLIDEAN ? (T)(column < 0 ? (f64)HS_INFINITY : sqrt(least)) : (T)(column < 0 ? -1.0 : least);
    else
        found = (T)(column < 0 ? HS_NONE : FOUND == 1 ? in[column] : column - x);
    out[row + x] = found;
}
