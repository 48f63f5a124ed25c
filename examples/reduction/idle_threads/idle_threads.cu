// What the chapter on idle threads counts and breaks; its rung is
// two_per_thread.cu.
//
//   count_additions    how often each thread adds
//   sum_first_bound    wrong: one bound for two elements
//   sum_second_bound   wrong: one bound for two elements
#ifndef BLOCK
#define BLOCK 256
#endif
#ifndef PER_THREAD
#define PER_THREAD \
  2  // elements that a thread loads: 1 as in rung 3, 2 as in rung 4
#endif

// The loops of rungs 3 and 4 without their data. additions[t] is how often
// thread t of a full block adds; rounds[0] is how many steps the tree has.
// --8<-- [start:count]
extern "C" __global__ void count_additions(int* additions, int* rounds) {
  const int t = threadIdx.x;
  int added = PER_THREAD - 1, steps = 0;  // the additions while loading
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (t < half) ++added;
    ++steps;
  }
  additions[t] = added;
  if (t == 0) rounds[0] = steps;
}
// --8<-- [end:count]

__device__ void tree(int* sums, int t) {
  __syncthreads();
  for (int half = BLOCK / 2; half > 0; half /= 2) {
    if (t < half) sums[t] += sums[t + half];
    __syncthreads();
  }
}

// WRONG: the bound of the first element serves for both.
// --8<-- [start:first-bound]
extern "C" __global__ void sum_first_bound(const int* in, int* out, int n) {
  __shared__ int sums[BLOCK];
  const int t = threadIdx.x, i = blockIdx.x * (2 * BLOCK) + t;
  sums[t] =
      i < n ? in[i] + in[i + BLOCK] : 0;  // i + BLOCK may lie past the end
  // --8<-- [end:first-bound]
  tree(sums, t);
  if (t == 0) out[blockIdx.x] = sums[0];
}

// WRONG: the bound of the second element serves for both.
// --8<-- [start:second-bound]
extern "C" __global__ void sum_second_bound(const int* in, int* out, int n) {
  __shared__ int sums[BLOCK];
  const int t = threadIdx.x, i = blockIdx.x * (2 * BLOCK) + t;
  sums[t] = i + BLOCK < n ? in[i] + in[i + BLOCK]
                          : 0;  // in[i] may exist nevertheless
  // --8<-- [end:second-bound]
  tree(sums, t);
  if (t == 0) out[blockIdx.x] = sums[0];
}
