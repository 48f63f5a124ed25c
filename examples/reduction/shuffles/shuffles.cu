// What the chapter on shuffles shows, times and breaks; its rung is shuffle.cu.
//
//   lanes          what each lane holds after each step
//   sums_of_sums   times a sum over a warp, which can be done in three ways
//   sum_leaving    wrong: threads past the end leave
//   sum_staying    right: all lanes stay

// down[s * 32 + l] and butterfly[s * 32 + l] are what lane l holds after s of
// the five steps.
// --8<-- [start:lanes]
extern "C" __global__ void lanes(const int* in, int* down, int* butterfly) {
  const int lane = threadIdx.x;
  int a = in[lane], b = in[lane], step = 0;
  for (int half = 16; half > 0; half /= 2) {
    // From lane + half; past lane 31 the lane's own value.
    a += __shfl_down_sync(0xffffffffu, a, half);
    // From the partner, which reads this lane's value.
    b += __shfl_xor_sync(0xffffffffu, b, half);
    ++step;
    down[32 * step + lane] = a;
    butterfly[32 * step + lane] = b;
  }
}
// --8<-- [end:lanes]

#define SHARED 0
#define SHUFFLE 1
#define REDUX 2
#ifndef BY
#define BY SHUFFLE  // what warp_sum uses
#endif

// The sum of 32 ints, in every lane.
// --8<-- [start:three-ways]
__device__ __forceinline__ int warp_sum(int sum, int* sums, int lane) {
#if BY == REDUX  // compute capability 8.0 and later, and integers only
  sum = __reduce_add_sync(0xffffffffu, sum);
#else
#pragma unroll
  for (int half = 16; half > 0; half /= 2) {
#if BY == SHARED
    sums[lane] = sum;
    __syncwarp();
    sum += sums[lane ^ half];
    __syncwarp();
#else
    sum += __shfl_xor_sync(0xffffffffu, sum, half);
#endif
  }
#endif
  return sum;
}
// --8<-- [end:three-ways]

// One warp sums, and sums the sums, `turns` times; cycles[0] is how long that
// takes.
extern "C" __global__ void sums_of_sums(int* data, long long* cycles,
                                        int turns) {
  __shared__ int sums[32];
  const int lane = threadIdx.x;
  int sum = data[lane];
  __syncwarp();
  const long long start = clock64();
#pragma unroll 1
  for (int turn = 0; turn < turns; ++turn) sum = warp_sum(sum, sums, lane);
  data[lane] = sum;
  if (lane == 0) cycles[0] = clock64() - start;
}

// WRONG: threads past the end leave, and the mask names the lanes that happen
// to be there.
// --8<-- [start:leaving]
extern "C" __global__ void sum_leaving(const int* in, int* sum, int* least,
                                       int n) {
  const int i = threadIdx.x;
  if (i >= n) return;
  int s = in[i], m = in[i];
  for (int half = 16; half > 0; half /= 2) {
    s += __shfl_down_sync(__activemask(), s, half);
    m = min(m, __shfl_down_sync(__activemask(), m, half));
  }
  if (i == 0) *sum = s, *least = m;
}
// --8<-- [end:leaving]

// Right: all lanes stay; a lane without an element brings a value that changes
// nothing.
// --8<-- [start:staying]
extern "C" __global__ void sum_staying(const int* in, int* sum, int* least,
                                       int n) {
  const int i = threadIdx.x;
  int s = i < n ? in[i] : 0, m = i < n ? in[i] : 0x7fffffff;
  for (int half = 16; half > 0; half /= 2) {
    s += __shfl_down_sync(0xffffffffu, s, half);
    m = min(m, __shfl_down_sync(0xffffffffu, m, half));
  }
  if (i == 0) *sum = s, *least = m;
}
// --8<-- [end:staying]
