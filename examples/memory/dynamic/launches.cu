// What a launch by the GPU costs, and what limits it. Needs -rdc=true and the
// library cudadevrt, but for the kernels that launch nothing: with NO_LAUNCHES
// they are alone.

__device__ unsigned long long nanoseconds() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__device__ void wait(unsigned int ns) {
  const unsigned long long begin = nanoseconds();
  while (nanoseconds() - begin < ns) {
  }
}

extern "C" __global__ void nothing(int* done) { atomicAdd(done, 1); }

// --8<-- [start:rounds]
// A step of 3 x + 1 for each number of a list; those that are not 1 yet make up
// the next list. counts[round]: how many numbers a round has.
extern "C" __global__ void one_round(const int* list, int* next,
                                     long long* values, int* steps, int* counts,
                                     int round) {
  const int k = blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= counts[round]) return;
  const int i = list[k];
  const long long x = values[i], after = x % 2 ? 3 * x + 1 : x / 2;
  values[i] = after;
  steps[i] += 1;
  if (after != 1) next[atomicAdd(counts + round + 1, 1)] = i;
}
// --8<-- [end:rounds]

// --8<-- [start:rows]
// The sums of rows of any length: by a thread for each row, by a block for one,
// and by a thread that launches a block where its row is long.
__device__ unsigned int sum_of(const unsigned int* x, int from, int to) {
  unsigned int sum = 0;
  for (int k = from; k < to; ++k) sum += x[k];
  return sum;
}

extern "C" __global__ void by_thread(const unsigned int* x, const int* starts,
                                     int rows, unsigned int* sums) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) sums[row] = sum_of(x, starts[row], starts[row + 1]);
}

extern "C" __global__ void by_block(const unsigned int* x, const int* starts,
                                    int first, unsigned int* sums) {
  const int row = first + blockIdx.x;
  unsigned int sum = 0;
  for (int k = starts[row] + threadIdx.x; k < starts[row + 1]; k += blockDim.x)
    sum += x[k];
  for (int away = 16; away > 0; away /= 2)
    sum += __shfl_down_sync(0xffffffffu, sum, away);
  if (threadIdx.x % 32 == 0) atomicAdd(sums + row, sum);
}
// --8<-- [end:rows]

#ifndef NO_LAUNCHES

// --8<-- [start:costs]
// Each block launches `each` kernels, which wait for nothing.
extern "C" __global__ void fan(int* done, int each) {
  for (int k = 0; k < each; ++k)
    nothing<<<1, 1, 0, cudaStreamFireAndForget>>>(done);
}

// One thread launches so many, one after another.
extern "C" __global__ void in_order(int* done, int count) {
  for (int k = 0; k < count; ++k) nothing<<<1, 1>>>(done);
}

// A kernel that has its successor launched at its end, and so on.
extern "C" __global__ void chain(int* done, int left) {
  atomicAdd(done, 1);
  if (left > 1) chain<<<1, 1, 0, cudaStreamTailLaunch>>>(done, left - 1);
}
// --8<-- [end:costs]

// --8<-- [start:conduct]
// Launches a round as large as its list, and itself for the round after it.
extern "C" __global__ void conduct(int* list, int* next, long long* values,
                                   int* steps, int* counts, int round,
                                   int most) {
  const int count = counts[round];
  if (count == 0 || round == most) return;
  one_round<<<(count + 255) / 256, 256, 0, cudaStreamFireAndForget>>>(
      list, next, values, steps, counts, round);
  conduct<<<1, 1, 0, cudaStreamTailLaunch>>>(next, list, values, steps, counts,
                                             round + 1, most);
}
// --8<-- [end:conduct]

// --8<-- [start:pending]
// The first of the launched kernels waits until all launches are made, and the
// others wait for it. open: whether it may go on. In any case it waits no
// longer than `ns`.
extern "C" __global__ void first(int* done, const int* open, long long ns) {
  const unsigned long long begin = nanoseconds();
  while (*(volatile const int*)open == 0 && nanoseconds() - begin < ns) {
  }
  atomicAdd(done, 1);
}

// One thread makes more launches than can wait. found: launches that were
// refused, the number of the first of them, its error, and how many kernels
// had ended when all launches had been made.
extern "C" __global__ void too_many(int* done, int count, int* open,
                                    long long ns, int* found) {
  first<<<1, 1>>>(done, open, ns);
  for (int k = 1; k < count; ++k) {
    nothing<<<1, 1>>>(done);
    const int error = cudaGetLastError();
    if (error == cudaSuccess) continue;
    if (found[0]++ == 0) {
      found[1] = k;
      found[2] = error;
    }
  }
  found[3] = *(volatile int*)done;
  atomicExch(open, 1);
}
// --8<-- [end:pending]

// --8<-- [start:deeper]
// A kernel inside a kernel inside ... found: the deepest, and an error.
extern "C" __global__ void deeper(int depth, int most, int* found) {
  atomicMax(found, depth);
  if (depth == most) return;
  deeper<<<1, 1, 0, cudaStreamFireAndForget>>>(depth + 1, most, found);
  const int error = cudaGetLastError();
  if (error != cudaSuccess) found[1] = error;
}
// --8<-- [end:deeper]

// --8<-- [start:early]
extern "C" __global__ void late(int* x) {
  wait(100'000);
  *(volatile int*)x = 7;
}

extern "C" __global__ void copy(const int* x, int* seen) { *seen = *x; }

// seen[0]: by whoever has launched `late`; seen[1]: by a tail launch.
extern "C" __global__ void early(int* x, int* seen) {
  late<<<1, 1, 0, cudaStreamFireAndForget>>>(x);
  seen[0] = *(volatile int*)x;
  copy<<<1, 1, 0, cudaStreamTailLaunch>>>(x, seen + 1);
}
// --8<-- [end:early]

// --8<-- [start:need]
extern "C" __global__ void by_need(const unsigned int* x, const int* starts,
                                   int rows, int longest, unsigned int* sums,
                                   int* failed) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  if (starts[row + 1] - starts[row] > longest) {
    by_block<<<1, 256, 0, cudaStreamFireAndForget>>>(x, starts, row, sums);
    if (cudaGetLastError() == cudaSuccess) return;
    atomicAdd(failed, 1);
  }
  sums[row] = sum_of(x, starts[row], starts[row + 1]);
}
// --8<-- [end:need]

#endif  // NO_LAUNCHES
