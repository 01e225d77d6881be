// Copies many runs of bytes in one launch: packs and unpacks messages between ranks. Blocks with one blockIdx.x copy
// one piece: blockIdx.y selects a share of its runs, cut into chunks.

typedef unsigned char u8;
typedef unsigned long long u64;

enum { HS_THREADS = 256, HS_CHUNK = 16384 };

struct hs_piece {
    u64 from, to, bytes, rows, from_stride, to_stride;
};

struct hs_params {
    const u8* from;
    u8* to;
    const hs_piece* pieces;
    u64 split;
};

struct alignas(16) hs_16 {
    unsigned int x, y, z, w;
};

// All sizes are multiples of sizeof(T).
template <class T> static __device__ __forceinline__ void hs_copy(const hs_params& p, const hs_piece& q) {
    const u64 chunks = (q.bytes + HS_CHUNK - 1) / HS_CHUNK;
    for (u64 unit = blockIdx.y; unit < q.rows * chunks; unit += p.split) {
        const u64 row = unit / chunks, first = unit % chunks * HS_CHUNK;
        const u64 length = (q.bytes - first < HS_CHUNK ? q.bytes - first : HS_CHUNK) / sizeof(T);
        const T* __restrict__ from = (const T*)(p.from + q.from + row * q.from_stride + first);
        T* __restrict__ to = (T*)(p.to + q.to + row * q.to_stride + first);
        // Several reads before the first write overlap.
        const unsigned int n = (unsigned int)length;
        unsigned int i = threadIdx.x;
        for (; i + 3 * HS_THREADS < n; i += 4 * HS_THREADS) {
            T v[4];
#pragma unroll
            for (int k = 0; k < 4; ++k) v[k] = from[i + k * HS_THREADS];
#pragma unroll
            for (int k = 0; k < 4; ++k) to[i + k * HS_THREADS] = v[k];
        }
        for (; i < n; i += HS_THREADS) to[i] = from[i];
    }
}

extern "C" __global__ void __launch_bounds__(HS_THREADS) hs_kernel(const __grid_constant__ hs_params p) {
    const hs_piece q = p.pieces[blockIdx.x];
    const u64 common = ((u64)p.from + q.from) | ((u64)p.to + q.to) | q.bytes | q.from_stride | q.to_stride;
    if (common % 16 == 0)
        hs_copy<hs_16>(p, q);
    else if (common % 4 == 0)
        hs_copy<unsigned int>(p, q);
    else
        hs_copy<u8>(p, q);
}
