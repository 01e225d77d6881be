// Reconstruction by sweeps along lines, until a round changes nothing; see horus_core::ops::reconstruction. Pixels only
// grow, never beyond their final values, whatever the order of threads: a stale value of another line is read again in
// the next round. A round without a write has read the current value of every pixel and of each of its neighbours.

// A pixel of a line that another thread may be writing: not a value cached since the last round.
template <class T> HS_FN T hs_seen(const T* p) { return *(const volatile T*)p; }

template <bool EROSION, class T> HS_FN bool hs_further(T a, T b) { return EROSION ? a < b : a > b; }

// A key in a total order: a NaN is the lowest, for erosion the highest, and zeros have no sign.
template <bool EROSION, class T> HS_FN T hs_ordered(T v) { return v; }
template <bool EROSION> HS_FN float hs_ordered(float v) { return v != v ? (EROSION ? HS_INFINITY : -HS_INFINITY) : v + 0.0f; }
template <bool EROSION> HS_FN double hs_ordered(double v) { return v != v ? (double)(EROSION ? HS_INFINITY : -HS_INFINITY) : v + 0.0; }

// Launch 0 starts with the marker within the mask; a block takes THREADS * EACH pixels. The following launches sweep
// along the axes from `first` on (levels, rows, columns), each up and down: a thread takes a line. A pixel grows from
// its neighbours behind it: the 13 bits of `neighbours` are 9 of the previous level, 3 of the previous row and 1 of the
// previous column; on the way back, the opposite ones. A thread that finds another round necessary sets `changed`.
template <bool EROSION, int THREADS, int EACH, class T>
HS_FN void hs_reconstruct(
    int pass, const T* marker, const T* mask, T* out, int* changed, int count, int first, int depth, int height, int width, int neighbours) {
    if (pass == 0) {
        const i64 start = (i64)blockIdx.x * THREADS * EACH, end = min((i64)count, start + THREADS * EACH);
        for (i64 i = start + threadIdx.x; i < end; i += THREADS) {
            const T from = hs_ordered<EROSION>(marker[i]), most = hs_ordered<EROSION>(mask[i]);
            out[i] = hs_further<EROSION>(from, most) ? most : from;
        }
        return;
    }
    const int axis = first + (pass - 1) / 2;
    const bool back = (pass - 1) % 2;
    const int length = axis == 0 ? depth : axis == 1 ? height : width;
    const int stride = axis == 0 ? height * width : axis == 1 ? width : 1;
    const i64 thread = (i64)blockIdx.x * THREADS + threadIdx.x;
    if (length == 1 || thread >= count / length) return;
    const int line = (int)thread, across = axis == 2 ? height : width;
    // The line's origin: the row or the level, and the place in it.
    const int outer = line / across, inner = line - outer * across;
    const int z = axis == 0 ? 0 : outer, y = axis == 0 ? outer : axis == 1 ? 0 : inner, x = axis == 2 ? 0 : inner;
    // The neighbours behind, and their distances from the pixel straight behind.
    const int places = axis == 0 ? 9 : axis == 1 ? 3 : 1, sign = back ? -1 : 1;
    int away[9], found = 0;
    for (int k = 0; k < places; ++k) {
        if (!(neighbours >> ((axis == 0 ? 0 : axis == 1 ? 9 : 12) + k) & 1)) continue;
        const int dy = axis == 0 ? sign * (k / 3 - 1) : 0, dx = axis == 2 ? 0 : sign * (k % 3 - 1);
        if (y + dy < 0 || y + dy >= height || x + dx < 0 || x + dx >= width) continue;
        away[found++] = dy * width + dx;
    }
    if (found == 0) return;
    const int step = back ? -stride : stride;
    int at = (z * height + y) * width + x + (back ? (length - 1) * stride : 0);
    bool grew = false;
    for (int k = 1; k < length; ++k) {
        const int behind = at;
        at += step;
        // No other thread writes this line.
        const T had = out[at], most = hs_ordered<EROSION>(mask[at]);
        T v = had;
        for (int j = 0; j < found; ++j) {
            const T other = hs_seen(out + behind + away[j]);
            if (hs_further<EROSION>(other, v)) v = other;
        }
        if (hs_further<EROSION>(v, most)) v = most;
        if (hs_further<EROSION>(v, had)) {
            out[at] = v;
            grew = true;
        }
    }
    if (grew) *changed = 1;
}
