// Runs a generated kernel on the host, one fibre per thread of a block, so that its results can be checked to the bit
// on machines without a GPU. Prepended to the source in place of NVRTC's built-ins by the emulation test.
#define HS_PORTABLE 1
#define HS_HIDE(v) ((void)0)
#include <csetjmp>
#include <ucontext.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>
using std::max;
using std::min;
#define __device__
#define __global__
#define __forceinline__ inline
#define __noinline__
#define __grid_constant__
#define __shared__
#define __restrict__
#define __launch_bounds__(...)
#define HS_INFINITY INFINITY
#define __syncthreads() hs_barrier()
#define __syncwarp() hs_barrier()
#define __threadfence() ((void)0)
template <class T> static T __ldg(const T* p) { return *p; }
struct hs_dim3 { int x, y, z; };
static hs_dim3 threadIdx, blockIdx;
extern "C" { int hs_layers = 1; }
#define gridDim (hs_dim3{0, 0, hs_layers})
static unsigned char* hs_smem;
// A fibre is entered as a context and from then on switched by jumps, which make no system call.
struct hs_fibre { ucontext_t entry; jmp_buf at; };
static jmp_buf hs_scheduler;
static std::vector<hs_fibre> hs_fibres;
static int hs_current;
__attribute__((noinline)) static void hs_barrier() {
    if (!_setjmp(hs_fibres[hs_current].at)) _longjmp(hs_scheduler, 1);
}
// Returns when the fibre comes to its next barrier.
__attribute__((noinline)) static void hs_resume(bool entered) {
    if (_setjmp(hs_scheduler)) return;
    if (entered) _longjmp(hs_fibres[hs_current].at, 1);
    setcontext(&hs_fibres[hs_current].entry);
}
// All threads of the warp come here together: their fibres take turns.
template <class T> static T __shfl_down_sync(unsigned, T v, int by) {
    static T given[1024];
    const int self = hs_current;
    given[self] = v;
    hs_barrier();
    const T got = self % 32 + by < 32 ? given[self + by] : v;
    hs_barrier();
    return got;
}
template <class T> static T __shfl_up_sync(unsigned, T v, int by) {
    static T given[1024];
    const int self = hs_current;
    given[self] = v;
    hs_barrier();
    const T got = self % 32 >= by ? given[self - by] : v;
    hs_barrier();
    return got;
}
template <class T> static T __shfl_sync(unsigned, T v, int from) {
    static T given[1024];
    const int self = hs_current;
    given[self] = v;
    hs_barrier();
    const T got = given[self / 32 * 32 + from];
    hs_barrier();
    return got;
}
static inline long long __double_as_longlong(double v) { long long bits; memcpy(&bits, &v, 8); return bits; }
static inline double __longlong_as_double(long long bits) { double v; memcpy(&v, &bits, 8); return v; }
static inline double atomicAdd(double* p, double v) { const double old = *p; *p += v; return old; }
static inline unsigned long long atomicMin(unsigned long long* p, unsigned long long v) { const unsigned long long old = *p; if (v < old) *p = v; return old; }
static inline int atomicMax(int* p, int v) { const int old = *p; if (v > old) *p = v; return old; }
static inline int atomicSub(int* p, int v) { const int old = *p; *p -= v; return old; }
static inline unsigned atomicAdd(unsigned* p, unsigned v) { const unsigned old = *p; *p += v; return old; }

static bool hs_done[1024];
// Runs `thread`, which takes the next block at each barrier after its end, for all threads of all blocks.
static void hs_run_blocks(void (*thread)(), unsigned grid, unsigned grid_y, unsigned block, unsigned shared) {
    constexpr size_t STACK = 256 << 10;
    std::vector<unsigned char> memory(shared + 128);
    // Not cleared: of a stack little is used.
    std::unique_ptr<unsigned char[]> stacks(new unsigned char[STACK * block]);
    hs_smem = memory.data() + (128 - (uintptr_t)memory.data() % 128) % 128;
    hs_fibres.resize(block);
    for (unsigned t = 0; t < block; ++t) {
        ucontext_t& entry = hs_fibres[t].entry;
        getcontext(&entry);
        entry.uc_stack.ss_sp = stacks.get() + STACK * t;
        entry.uc_stack.ss_size = STACK;
        entry.uc_link = nullptr;
        makecontext(&entry, thread, 0);
    }
    bool entered = false;
    for (unsigned by = 0; by < grid_y; ++by)
        for (unsigned b = 0; b < grid; ++b) {
            // Poison, so that reads of unwritten memory show.
            memset(memory.data(), 0xff, memory.size());
            blockIdx = {(int)b, (int)by, 0};
            std::fill_n(hs_done, block, false);
            for (unsigned left = block; left > 0;) {
                unsigned running = 0;
                for (unsigned t = 0; t < block; ++t) {
                    if (hs_done[t]) continue;
                    hs_current = t;
                    threadIdx = {(int)t, 0, 0};
                    hs_resume(entered);
                    running += !hs_done[t];
                }
                entered = true;
                left = running;
            }
        }
}
