// Which atomics exist for which types, counting without them, and one that the compiler cannot turn
// into a special instruction.
#include <stdint.h>

// --8<-- [start:exist]
// Has<Op, T>::value: is there an atomicOp(T*, T)? Overload resolution answers; nothing is called.
template <class Op, class T, class = void>
struct Has {
  static constexpr int value = 0;
};
template <class Op, class T>
struct Has<Op, T, decltype((void)Op::call((T*)0, T()))> {
  static constexpr int value = 1;
};

#define OPERATION(name)                                                     \
  struct name {                                                             \
    template <class T>                                                      \
    static __device__ auto call(T* p, T v) -> decltype(atomic##name(p, v)); \
  };
OPERATION(Add)
OPERATION(Sub)
OPERATION(Exch)
OPERATION(Min)
OPERATION(Max)
OPERATION(Inc)
OPERATION(Dec)
OPERATION(And)
OPERATION(Or)
OPERATION(Xor)

template <class T, class... Ops>
__device__ void row(int* out) {
  const int found[] = {Has<Ops, T>::value...};
  for (int i = 0; i < (int)sizeof...(Ops); ++i) out[i] = found[i];
}

// table: 10 operations for each of 4 types.
extern "C" __global__ void atomics_exist(int* table) {
  row<int, Add, Sub, Exch, Min, Max, Inc, Dec, And, Or, Xor>(table);
  row<unsigned, Add, Sub, Exch, Min, Max, Inc, Dec, And, Or, Xor>(table + 10);
  row<float, Add, Sub, Exch, Min, Max, Inc, Dec, And, Or, Xor>(table + 20);
  row<double, Add, Sub, Exch, Min, Max, Inc, Dec, And, Or, Xor>(table + 30);
}
// --8<-- [end:exist]

// --8<-- [start:plain]
extern "C" __global__ void count_plain(const uint8_t* in, unsigned* counts, long long n) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) counts[in[i]] += 1;  // a load, an addition, a store: others get in between
}
// --8<-- [end:plain]

// One block, with a barrier after each step. counts lies in global memory, for the racecheck of
// compute-sanitizer looks at shared memory, and would rightly complain.
// --8<-- [start:barrier]
extern "C" __global__ void count_barrier(const uint8_t* in, unsigned* counts, long long n) {
  for (long long first = 0; first < n; first += blockDim.x) {
    if (first + threadIdx.x < n) counts[in[first + threadIdx.x]] += 1;
    __syncthreads();  // steps are in order now; the threads of one step are not
  }
}
// --8<-- [end:barrier]

// One set of counters per block, as histogram_shared, but the compiler does not know what is added.
// --8<-- [start:add]
extern "C" __global__ void __launch_bounds__(1024)
    histogram_add(const uint8_t* __restrict__ in, unsigned* __restrict__ counts, long long n,
                  unsigned weight) {
  __shared__ unsigned mine[256];
  if (threadIdx.x < 256) mine[threadIdx.x] = 0;
  __syncthreads();
  const long long stride = (long long)gridDim.x * blockDim.x, vectors = n / 16;
  const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  for (long long i = first; i < vectors; i += stride) {
    const uint4 v = reinterpret_cast<const uint4*>(in)[i];
    const uint32_t words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int w = 0; w < 4; ++w) {
#pragma unroll
      for (int shift = 0; shift < 32; shift += 8)
        atomicAdd(mine + (words[w] >> shift & 255), weight);
    }
  }
  if (vectors * 16 + first < n) atomicAdd(mine + in[vectors * 16 + first], weight);
  __syncthreads();
  if (threadIdx.x < 256 && mine[threadIdx.x]) atomicAdd(counts + threadIdx.x, mine[threadIdx.x]);
}
// --8<-- [end:add]
