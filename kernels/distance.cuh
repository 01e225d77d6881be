// Nearest background pixels; see horus_core::ops::distance.

// The distance if a line has no background, and the offset of a pixel without any.
#define HS_FAR 0x40000000
#define HS_NONE (-2147483647 - 1)

// Offsets to the nearest background of each pixel on its line. Pixels of a line lie `step` apart; the first pixels of
// `count` lines are adjacent. A thread takes EACH pixels of [first0, end0) on a line, and searches beyond them for
// background. The buffers begin at pixels `in_start` and `out_start` of the lines, and `in` has all `n`.
template <int THREADS, int EACH, class T>
HS_FN void hs_nearest_on_line(const T* in, i64 in_step, int in_start, int n, int* out, i64 out_step, int out_start, int count,
                              int first0, int end0, int across) {
    const int x = (int)(blockIdx.x % across) * THREADS + (int)threadIdx.x;
    const int first = first0 + (int)(blockIdx.x / across) * EACH, end = min(first + EACH, end0);
    if (x >= count || first >= end) return;
    in += x - in_start * in_step;
    out += x - out_start * out_step;
    int steps = HS_FAR;
    for (int k = first - 1; k >= 0; --k)
        if (in[k * in_step] == (T)0) {
            steps = first - 1 - k;
            break;
        }
    for (int k = first; k < end; ++k) {
        steps = in[k * in_step] == (T)0 ? 0 : steps + 1;
        out[k * out_step] = steps;
    }
    steps = HS_FAR;
    for (int k = end; k < n; ++k)
        if (in[k * in_step] == (T)0) {
            steps = k - end;
            break;
        }
    for (int k = end - 1; k >= first; --k) {
        steps = in[k * in_step] == (T)0 ? 0 : steps + 1;
        const int before = out[k * out_step];
        const int nearest = before <= steps ? -before : steps;
        out[k * out_step] = nearest >= HS_FAR || nearest <= -HS_FAR ? HS_NONE : nearest;
    }
}

// Metric::measure.
enum { HS_EUCLIDEAN, HS_TAXICAB, HS_CHESSBOARD };
template <int METRIC> HS_FN f64 hs_measure(f64 level, f64 row, f64 column, f64 levels, f64 rows, f64 columns) {
    if (METRIC == HS_EUCLIDEAN) {
        level = level * levels;
        row = row * rows;
        column = column * columns;
        return level * level + row * row + column * column;
    }
    level = fabs(level);
    row = fabs(row);
    column = fabs(column);
    if (METRIC == HS_TAXICAB) return level + row + column;
    const f64 most = level < row ? row : level;
    return most < column ? column : most;
}

// JoinedOffsets::split: the offset of a row, of the last `bits` of both offsets.
HS_FN int hs_offset_row(int offset, int bits) {
    if (bits == 0) return 0;
    return bits < 32 ? (int)((unsigned)offset << (32 - bits)) >> (32 - bits) : offset;
}

// JoinedOffsets::split: the offset of a level.
HS_FN int hs_offset_level(int offset, int bits) {
    return bits < 32 ? (int)((unsigned)offset - (unsigned)hs_offset_row(offset, bits)) >> bits : 0;
}

// The nearest background of a pixel, by a search outwards along its row or, with DOWN, its column. The search is in
// offsets and ends where no pixel can be nearer. `bits` is the number of bits of a row's offset in offsets of levels
// and rows. The buffers begin at rows `in_start` and `out_start`.
enum { HS_DISTANCE, HS_LEVEL, HS_ROW, HS_COLUMN, HS_JOINED };
template <int METRIC, int FOUND, bool DOWN, int THREADS, class T>
HS_FN void hs_nearest(const int* in, int in_start, int height, T* out, int out_start, int width, int row0, int bits, f64 levels,
                      f64 rows, f64 columns, int across) {
    const int x = (int)(blockIdx.x % across) * THREADS + (int)threadIdx.x;
    const int y = row0 + (int)(blockIdx.x / across);
    if (x >= width) return;
    const int at = DOWN ? y : x, n = DOWN ? height : width;
    const i64 step = DOWN ? width : 1;
    const int read = DOWN ? 0 : bits;
    in += (i64)(y - in_start) * width + x;
    int nearest = HS_NONE;
    f64 least = 0.0;
    for (int k = 0; at - k >= 0 || at + k < n; ++k) {
        const f64 row = DOWN ? (f64)k : 0.0, column = DOWN ? 0.0 : (f64)k;
        if (nearest != HS_NONE && hs_measure<METRIC>(0.0, row, column, levels, rows, columns) > least) break;
        for (int side = 0; side < 2; ++side) {
            const int to = side ? k : -k;
            if (at + to < 0 || at + to >= n) continue;
            const int offset = in[to * step];
            if (offset == HS_NONE) continue;
            const f64 level = (f64)hs_offset_level(offset, read);
            const f64 measure = hs_measure<METRIC>(level, DOWN ? row : (f64)hs_offset_row(offset, read), column, levels, rows, columns);
            if (nearest == HS_NONE || measure < least || (side == 0 && measure == least)) {
                least = measure;
                nearest = to;
            }
        }
    }
    T found;
    if (FOUND == HS_DISTANCE) {
        const bool none = nearest == HS_NONE;
        found = METRIC == HS_EUCLIDEAN ? (T)(none ? (f64)HS_INFINITY : sqrt(least)) : (T)(none ? -1.0 : least);
    } else if (nearest == HS_NONE) {
        found = (T)HS_NONE;
    } else {
        const int offset = in[nearest * step], level = hs_offset_level(offset, read), row = DOWN ? nearest : hs_offset_row(offset, read);
        // JoinedOffsets::join.
        const int joined = (int)(((unsigned)level << (bits & 31)) + (unsigned)row);
        found = (T)(FOUND == HS_LEVEL ? level : FOUND == HS_ROW ? row : FOUND == HS_COLUMN ? nearest : joined);
    }
    out[(i64)(y - out_start) * width + x] = found;
}
