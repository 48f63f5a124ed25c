// Which atomics exist for which types, and counting without them.
//
//   atomics_exist   a table of operations and types
//   count_plain     counts by plain additions, which get lost
//   count_barrier   the same with a barrier after each step
#include <stdint.h>

// --8<-- [start:exist]
// Has<Op, T>::value: is there an atomicOp(T*, T)? Overload resolution answers;
// no function is called.
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
extern "C" __global__ void count_plain(const uint8_t* in, unsigned* counts,
                                       long long n) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    counts[in[i]] += 1;  // a load, an addition, a store: others get in between
}
// --8<-- [end:plain]

// One block, with a barrier after each step. counts lies in global memory: the
// racecheck of compute-sanitizer looks at shared memory, and would rightly
// complain.
// --8<-- [start:barrier]
extern "C" __global__ void count_barrier(const uint8_t* in, unsigned* counts,
                                         long long n) {
  for (long long first = 0; first < n; first += blockDim.x) {
    if (first + threadIdx.x < n) counts[in[first + threadIdx.x]] += 1;
    __syncthreads();  // steps are in order now; the threads of one step are not
  }
}
// --8<-- [end:barrier]
