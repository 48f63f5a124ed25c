// Rings of addresses that one thread walks, arrays that all SMs read, and the
// ways in which a load can ask the caches to treat what it brings.
// @instance chase<0>
// @instance chase<1>
// @instance chase<2>
// @instance chase<3>
// @instance time_each<1>
// @instance read_slices<0>
// @instance read_slices<1>
// @instance read_slices<2>
// @instance ring_after_stream<0>
// @instance ring_after_stream<1>
// @instance ring_after_stream<2>
// @instance ring_after_stream<3>

// --8<-- [start:hints]
enum Hint { PLAIN, CG, CS, NO_ALLOCATE };

// One load of 8 or of 16 bytes. CG, as __ldcg: from L2, past L1. CS, as __ldcs:
// used once. NO_ALLOCATE has no function in C++.
template <int HINT>
__device__ long long load(const long long* at) {
  long long value;
  if (HINT == PLAIN)
    asm volatile("ld.global.b64 %0, [%1];" : "=l"(value) : "l"(at));
  if (HINT == CG)
    asm volatile("ld.global.cg.b64 %0, [%1];" : "=l"(value) : "l"(at));
  if (HINT == CS)
    asm volatile("ld.global.cs.b64 %0, [%1];" : "=l"(value) : "l"(at));
  if (HINT == NO_ALLOCATE)
    asm volatile("ld.global.L1::no_allocate.b64 %0, [%1];"
                 : "=l"(value)
                 : "l"(at));
  return value;
}
// --8<-- [end:hints]

template <int HINT>
__device__ uint4 load(const uint4* at) {
  uint4 v;
#define LOAD_16(OPTION)                                          \
  asm volatile("ld.global" OPTION ".v4.u32 {%0,%1,%2,%3}, [%4];" \
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)      \
               : "l"(at))
  if (HINT == PLAIN) LOAD_16("");
  if (HINT == CG) LOAD_16(".cg");
  if (HINT == CS) LOAD_16(".cs");
  if (HINT == NO_ALLOCATE) LOAD_16(".L1::no_allocate");
#undef LOAD_16
  return v;
}

// --8<-- [start:link]
// Each place of the room gets the address of the next one in the ring.
extern "C" __global__ void link_ring(long long* __restrict__ room,
                                     const long long* __restrict__ places,
                                     int count) {
  const int k = blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= count) return;
  const int next = k + 1 < count ? k + 1 : 0;
  room[places[k]] = (long long)(room + places[next]);
}
// --8<-- [end:link]

// --8<-- [start:chase]
// out[0]: cycles of `steps` loads, out[1]: nanoseconds, out[2]: where it ended.
template <int HINT>
__global__ void chase(const long long* first, int warm, int steps,
                      long long* __restrict__ out) {
  const long long* at = first;
  for (int i = 0; i < warm; ++i) at = (const long long*)load<HINT>(at);
  long long begin, end;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  const long long start = clock64();
  for (int i = 0; i < steps; ++i) at = (const long long*)load<HINT>(at);
  out[0] = clock64() - start;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(end));
  out[1] = end - begin;
  out[2] = (long long)at;
}
// --8<-- [end:chase]

// --8<-- [start:each]
// The cycles of every single load by block `who`. All other blocks keep their
// SMs busy for a while, so that each block has an SM of its own.
template <int HINT>
__global__ void time_each(const long long* first, int warm, int steps, int who,
                          unsigned short* __restrict__ cycles) {
  constexpr int MOST = 8192;
  __shared__ unsigned short spent[MOST];
  if (blockIdx.x != who) {
    const long long start = clock64();
    while (clock64() - start < 50'000) {
    }
    return;
  }
  const long long* at = first;
  for (int i = 0; i < warm; ++i) at = (const long long*)load<HINT>(at);
  for (int i = 0; i < steps && i < MOST; ++i) {
    const long long start = clock64();
    at = (const long long*)load<HINT>(at);
    if (at == nullptr) return;  // never: but it has to wait for the value
    const long long took = clock64() - start;
    spent[i] = took < 65535 ? took : 65535;
  }
  for (int i = 0; i < steps && i < MOST; ++i) cycles[i] = spent[i];
}
// --8<-- [end:each]

// --8<-- [start:slices]
// Each block reads a slice of its own, `passes` times. Thread t adds up what it
// reads; spent: cycles of each block.
template <int HINT>
__global__ void __launch_bounds__(1024)
    read_slices(const uint4* room, int vectors, int passes,
                unsigned* __restrict__ sums, long long* __restrict__ spent) {
  const uint4* mine = room + (size_t)blockIdx.x * vectors;
  unsigned sum = 0;
  const long long start = clock64();
  for (int pass = 0; pass < passes; ++pass)
    for (int i = threadIdx.x; i < vectors; i += 4 * blockDim.x) {
      uint4 v[4] = {};
#pragma unroll
      for (int k = 0; k < 4; ++k)
        if (i + k * blockDim.x < vectors)
          v[k] = load<HINT>(mine + i + k * blockDim.x);
#pragma unroll
      for (int k = 0; k < 4; ++k) sum += v[k].x + v[k].y + v[k].z + v[k].w;
    }
  sums[blockIdx.x * blockDim.x + threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0) spent[blockIdx.x] = clock64() - start;
}
// --8<-- [end:slices]

// --8<-- [start:protect]
// A ring that L1 holds, then a stream of other data, then the ring again.
// out[0]: cycles of its second walk, out[1]: where it ended.
template <int HINT>
__global__ void ring_after_stream(const long long* first, int steps,
                                  const uint4* stream, int vectors,
                                  unsigned* __restrict__ sums,
                                  long long* __restrict__ out) {
  const long long* at = first;
  if (threadIdx.x == 0)
    for (int i = 0; i < steps; ++i) at = (const long long*)load<PLAIN>(at);
  __syncthreads();
  unsigned sum = 0;
  for (int i = threadIdx.x; i < vectors; i += blockDim.x) {
    const uint4 v = load<HINT>(stream + i);
    sum += v.x + v.y + v.z + v.w;
  }
  sums[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  const long long start = clock64();
  for (int i = 0; i < steps; ++i) at = (const long long*)load<PLAIN>(at);
  out[0] = clock64() - start;
  out[1] = (long long)at;
}
// --8<-- [end:protect]
