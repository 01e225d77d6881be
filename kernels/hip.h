// What generated kernels need of HIP's compiler: prepended to a source in place of NVRTC's built-ins, for AMD's GPUs with
// waves of 32 threads (gfx10 and newer). `scripts/hip.sh` compiles the kernels with it; none was run on such a GPU.
#define HS_PORTABLE 1
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __grid_constant__
#define HS_INFINITY __builtin_inff()
#define HS_HIDE(v) asm("" : "+v"(v))
#define HS_HIP static __device__ __forceinline__
extern __shared__ __attribute__((aligned(128))) unsigned char hs_smem[];

typedef __SIZE_TYPE__ size_t;
typedef __UINTPTR_TYPE__ uintptr_t;
struct hs_dim3 { int x, y, z; };
#define threadIdx (hs_dim3{(int)__builtin_amdgcn_workitem_id_x(), 0, 0})
#define blockIdx (hs_dim3{(int)__builtin_amdgcn_workgroup_id_x(), (int)__builtin_amdgcn_workgroup_id_y(), 0})

template <class T> HS_HIP T __ldg(const T* p) { return *p; }
template <class T> HS_HIP T min(T a, T b) { return b < a ? b : a; }
template <class T> HS_HIP T max(T a, T b) { return a < b ? b : a; }
HS_HIP void* memcpy(void* to, const void* from, size_t bytes) { return __builtin_memcpy(to, from, bytes); }
HS_HIP long long __double_as_longlong(double v) { return __builtin_bit_cast(long long, v); }
HS_HIP double __longlong_as_double(long long bits) { return __builtin_bit_cast(double, bits); }
HS_HIP float fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
HS_HIP double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
#define HS_OF_ONE(NAME)                                                                                               \
    HS_HIP float NAME##f(float v) { return __builtin_##NAME##f(v); }                                                  \
    HS_HIP double NAME(double v) { return __builtin_##NAME(v); }
HS_OF_ONE(fabs) HS_OF_ONE(sqrt) HS_OF_ONE(floor) HS_OF_ONE(ceil) HS_OF_ONE(trunc) HS_OF_ONE(rint)
#undef HS_OF_ONE
// The exact remainder, by multiples of b that are powers of two: each difference is exact.
#define HS_REMAINDER(T, F)                                                                                            \
    HS_HIP T copysign##F(T a, T b) { return __builtin_copysign##F(a, b); }                                            \
    HS_HIP T fmod##F(T a, T b) {                                                                                      \
        T rest = fabs##F(a);                                                                                          \
        const T divisor = fabs##F(b);                                                                                 \
        if (!(rest < (T)HS_INFINITY) || !(divisor > 0)) return (a * b) / (a * b);                                     \
        if (divisor == (T)HS_INFINITY) return a;                                                                      \
        int power = __builtin_amdgcn_frexp_exp##F(rest) - __builtin_amdgcn_frexp_exp##F(divisor);                     \
        for (; power >= 0; --power) {                                                                                 \
            const T multiple = __builtin_ldexp##F(divisor, power);                                                    \
            if (rest >= multiple) rest -= multiple;                                                                   \
        }                                                                                                             \
        return copysign##F(rest, a);                                                                                  \
    }
HS_REMAINDER(float, f)
HS_REMAINDER(double, )
#undef HS_REMAINDER

// ---- threads of a block, and of a wave ---------------------------------------------------------------------------
HS_HIP void __threadfence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }
HS_HIP void __syncthreads() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
HS_HIP void __syncwarp() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
    __builtin_amdgcn_wave_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}
template <class T> HS_HIP T __shfl_sync(unsigned, T v, int from) {
    constexpr int N = (sizeof(T) + sizeof(int) - 1) / sizeof(int);
    int words[N] = {};
    memcpy(words, &v, sizeof(T));
#pragma unroll
    for (int i = 0; i < N; ++i) words[i] = __builtin_amdgcn_ds_bpermute(4 * (from % 32), words[i]);
    memcpy(&v, words, sizeof(T));
    return v;
}
HS_HIP int hs_wave_lane() { return (int)__builtin_amdgcn_mbcnt_lo(~0u, 0); }
template <class T> HS_HIP T __shfl_down_sync(unsigned all, T v, int by) {
    const int lane = hs_wave_lane();
    return __shfl_sync(all, v, lane + by < 32 ? lane + by : lane);
}
template <class T> HS_HIP T __shfl_up_sync(unsigned all, T v, int by) {
    const int lane = hs_wave_lane();
    return __shfl_sync(all, v, lane >= by ? lane - by : lane);
}

// ---- atomic operations -------------------------------------------------------------------------------------------
template <class T> HS_HIP T atomicAdd(T* p, T v) { return __hip_atomic_fetch_add(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); }
template <class T> HS_HIP T atomicSub(T* p, T v) { return __hip_atomic_fetch_sub(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); }
template <class T> HS_HIP T atomicMin(T* p, T v) { return __hip_atomic_fetch_min(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); }
template <class T> HS_HIP T atomicMax(T* p, T v) { return __hip_atomic_fetch_max(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); }
