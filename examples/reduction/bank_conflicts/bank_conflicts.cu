// Loads from shared memory, timed by the SM's own clock. The host chooses the
// word that each lane loads.
#ifndef WORDS
#define WORDS 1  // words of 4 bytes per load: 1, 2 or 4
#endif

constexpr int LOADS = 16;   // loads of a turn, 32 words apart: equal banks
constexpr int TILE = 2048;  // words in shared memory

// --8<-- [start:load]
__device__ __forceinline__ float load(unsigned address) {
  float a, b, c, d;
  if constexpr (WORDS == 1) {  // volatile: the same word is to be fetched again
                               // in the next turn
    asm volatile("ld.volatile.shared.f32 %0, [%1];" : "=f"(a) : "r"(address));
    return a;
  } else if constexpr (WORDS == 2) {
    asm volatile("ld.volatile.shared.v2.f32 {%0, %1}, [%2];"
                 : "=f"(a), "=f"(b)
                 : "r"(address));
    return a + b;
  } else {
    asm volatile("ld.volatile.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(a), "=f"(b), "=f"(c), "=f"(d)
                 : "r"(address));
    return (a + b) + (c + d);
  }
}
// --8<-- [end:load]

// word[l] is the word that lane l of every warp loads; a lane with word -1 does
// not take part. sum has an element per thread; begin and end have a time per
// warp, in cycles.
// --8<-- [start:kernel]
extern "C" __global__ void shared_loads(const int* word, float* sum,
                                        long long* begin, long long* end,
                                        int turns) {
  __shared__ __align__(16) float tile[TILE];
  for (int i = threadIdx.x; i < TILE; i += blockDim.x) tile[i] = float(i % 64);
  __syncthreads();
  const int mine = word[threadIdx.x % 32];
  const unsigned address =
      (unsigned)__cvta_generic_to_shared(tile + max(mine, 0));
  float all = 0;
  const long long start = clock64();
  if (mine >= 0) {
    for (int turn = 0; turn < turns; ++turn) {
#pragma unroll
      for (unsigned k = 0; k < LOADS; ++k)
        all += load(address + 32 * k * sizeof(float));
    }
  }
  __syncwarp();
  const long long stop = clock64();
  sum[threadIdx.x] = all;
  if (threadIdx.x % 32 == 0) {
    begin[threadIdx.x / 32] = start;
    end[threadIdx.x / 32] = stop;
  }
}
// --8<-- [end:kernel]
