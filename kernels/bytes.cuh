// Dense filters of bytes by whole taps, as products of matrices of integers. Every sum is a whole number that f32
// represents exactly, so it has the bits of the canonical order.

// sum += a * b, for a warp: 16 rows of 32 pixels by 32 rows of 8 taps. With lane = 4 g + t, `a` has pixels 4 t to 4 t +
// 3 of rows g and g + 8, then the pixels 16 further; `b` taps 4 t to 4 t + 3 of column g, then the taps 16 further;
// `sum` columns 2 t and 2 t + 1 of row g, then of row g + 8.
template <bool SIGNED> HS_FN void hs_multiply(int (&sum)[4], const u32 (&a)[4], const u32 (&b)[2]) {
#if !defined(HS_PORTABLE) && __CUDA_ARCH__ >= 800
    if (SIGNED)
        asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    else
        asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    for (int half = 0; half < 2; ++half)
        for (int word = 0; word < 4; ++word)
            for (int i = 0; i < 4; ++i) {
                const u32 pixels = __shfl_sync(0xffffffffu, a[i / 2 + 2 * half], 4 * g + word);
                const u32 taps = __shfl_sync(0xffffffffu, b[half], 4 * (2 * t + i % 2) + word);
                for (int k = 0; k < 32; k += 8) {
                    const u32 pixel = pixels >> k & 255;
                    sum[i] += (SIGNED ? (int)(signed char)pixel : (int)pixel) * (int)(signed char)(taps >> k & 255);
                }
            }
#endif
}

// The sums of a block of ROWS x COLS pixels, as f32, rows SUM_PITCH apart. The block consists of parts of 16 x 8,
// equally many for each warp. `tile` points to the first row and, at a multiple of 4 bytes, to at most 3 bytes before
// the first column that the block's first pixel reads. `taps` are KH x KB matrices, each in the order of hs_multiply,
// lane by lane.
template <bool SIGNED, int KH, int KB, int PITCH, int ROWS, int COLS, int SUM_PITCH, int THREADS, class T>
HS_FN void hs_bytes(const T* tile, const u32* taps, f32* sums) {
    constexpr int ACROSS = COLS / 8, EACH = ROWS / 16 * ACROSS / (THREADS / 32);
    static_assert(EACH * (THREADS / 32) * 128 == ROWS * COLS, "all warps have as many parts");
    const int first = threadIdx.x / 32 * EACH, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    int sum[EACH][4];
#pragma unroll
    for (int e = 0; e < EACH; ++e)
#pragma unroll
        for (int i = 0; i < 4; ++i) sum[e][i] = 0;
#pragma unroll 1
    for (int ky = 0; ky < KH; ++ky) {
#pragma unroll
        for (int kb = 0; kb < KB; ++kb) {
            const u32* of_lane = taps + ((ky * KB + kb) * 32 + lane) * 2;
            const u32 b[2] = {__ldg(of_lane), __ldg(of_lane + 1)};
#pragma unroll
            for (int e = 0; e < EACH; ++e) {
                const int y = (first + e) / ACROSS * 16 + ky + g, x = (first + e) % ACROSS * 8 + 32 * kb;
                const u32* pixels = reinterpret_cast<const u32*>(tile + y * PITCH + x) + t;
                const u32 a[4] = {pixels[0], pixels[2 * PITCH], pixels[4], pixels[2 * PITCH + 4]};
                hs_multiply<SIGNED>(sum[e], a, b);
            }
        }
    }
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
        f32* to = sums + ((first + e) / ACROSS * 16 + g) * SUM_PITCH + (first + e) % ACROSS * 8 + 2 * t;
        to[0] = (f32)sum[e][0];
        to[1] = (f32)sum[e][1];
        to[8 * SUM_PITCH] = (f32)sum[e][2];
        to[8 * SUM_PITCH + 1] = (f32)sum[e][3];
    }
}

// A thread's part of the sums.
template <int SUM_PITCH, int R, int C> HS_FN void hs_take_sums(const f32* sums, f32 (&acc)[R][C]) {
#pragma unroll
    for (int r = 0; r < R; ++r)
#pragma unroll
        for (int c = 0; c < C; ++c) acc[r][c] = sums[r * SUM_PITCH + c];
}
