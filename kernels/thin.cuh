// Thinning, in rounds of two launches until a round removes nothing; see horus_core::ops::thin. Two masks of bytes
// follow the flag: the first launch of a round writes the second mask, the second launch the first. For each launch,
// `hs_removed` has a bit for each combination of a pixel's neighbours.

HS_FN int hs_there(const unsigned char* row, int x, int width) { return x >= 0 && x < width ? row[x] : 0; }

template <int THREADS, class T>
HS_FN void hs_thin(int pass, T* out, const T* in, int* changed, int count, int height, int width) {
    const i64 i = (i64)blockIdx.x * THREADS + threadIdx.x;
    if (i >= count) return;
    unsigned char* const masks = (unsigned char*)(changed + 1);
    if (pass == 0) {
        const bool there = in[i] != (T)0;
        out[i] = there ? in[i] : (T)0;
        masks[i] = masks[count + i] = there;
        return;
    }
    const bool second = pass % 2 == 0;
    const unsigned char* const from = masks + (second ? count : 0);
    unsigned char* const to = masks + (second ? 0 : count);
    if (!from[i]) {
        to[i] = 0;
        return;
    }
    const int x = (int)(i % width), y = (int)(i / width % height);
    const unsigned char* const here = from + (i - x);
    int bits = hs_there(here, x + 1, width) | hs_there(here, x - 1, width) << 4;
    if (y > 0) {
        const unsigned char* const above = here - width;
        bits |= hs_there(above, x + 1, width) << 1 | hs_there(above, x, width) << 2 | hs_there(above, x - 1, width) << 3;
    }
    if (y < height - 1) {
        const unsigned char* const below = here + width;
        bits |= hs_there(below, x - 1, width) << 5 | hs_there(below, x, width) << 6 | hs_there(below, x + 1, width) << 7;
    }
    const bool removed = hs_removed[(second ? 8 : 0) + bits / 32] >> (bits % 32) & 1;
    to[i] = !removed;
    if (removed) {
        out[i] = (T)0;
        *changed = 1;
    }
}
