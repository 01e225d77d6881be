// Precedes the prelude of a kernel that is timed without its traffic (Brodtkorb et al., section 4.1): every row is the
// first one, which stays in the first-level cache, and nothing is stored. All arithmetic stays, including addresses,
// because no compiler knows that a grid has one layer. HS_AT is then 0, so that vectors are copied to shared memory
// through that cache too.
#define HS_AT(i) ((i) & -(int)(gridDim.z - 1))
#define HS_STORED(v) hs_stored(v)
template <class T, int C> static __device__ __forceinline__ bool hs_stored(const T (&v)[C]) {
    unsigned words[(C * sizeof(T) + 3) / 4] = {}, all = 0;
    memcpy(words, v, C * sizeof(T));
#pragma unroll
    for (unsigned word : words) all |= word;
    return HS_AT(all) != 0;
}
