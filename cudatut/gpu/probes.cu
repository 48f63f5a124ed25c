// Kernels of the instrument: those that measure what this GPU can do at most,
// the limits that benchmarks are compared with; the gate; the clock of the SMs.

// Reads every element once: a tile of 2048 vectors per block, 16 bytes per
// load, four loads in flight per thread. Of all that was tried this comes
// closest to the memory's own rate; a grid that stays and walks through the
// data is some percent slower. The sum is written only if it takes a value that
// random data does not produce, so that the loads are neither removed nor
// followed by a store.
extern "C" __global__ void __launch_bounds__(512)
    read_probe(const uint4* __restrict__ in, size_t n,
               unsigned* __restrict__ sink) {
  const size_t first = (size_t)blockIdx.x * 2048 + threadIdx.x;
  uint4 v[4] = {};
#pragma unroll
  for (int k = 0; k < 4; ++k)
    if (first + k * 512 < n) v[k] = in[first + k * 512];
  unsigned sum = 0;
#pragma unroll
  for (int k = 0; k < 4; ++k) sum += v[k].x ^ v[k].y ^ v[k].z ^ v[k].w;
  if (sum == 0x9e3779b9u) *sink = sum;
}

// Copies 16 bytes per thread and step.
extern "C" __global__ void __launch_bounds__(512)
    copy_probe(const uint4* __restrict__ in, uint4* __restrict__ out,
               size_t n) {
  const size_t stride = (size_t)gridDim.x * blockDim.x;
  for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += stride)
    out[i] = in[i];
}

// Fills with pseudo-random words (xorshift of the index): zeros would flatter
// the memory and the multipliers.
extern "C" __global__ void fill_probe(unsigned* __restrict__ out, size_t n) {
  const size_t stride = (size_t)gridDim.x * blockDim.x;
  for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += stride) {
    unsigned x = (unsigned)i * 2654435761u + 12345u;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    out[i] = x;
  }
}

// 32 independent chains of fused multiply-adds per thread: enough to hide their
// latency even with few warps. Each step is one instruction per chain and 2
// floating-point operations.
extern "C" __global__ void __launch_bounds__(256)
    fma_probe(float* __restrict__ out, float a, float b, int steps) {
  float chain[32];
#pragma unroll
  for (int k = 0; k < 32; ++k) chain[k] = threadIdx.x * 0.001f + k;
  for (int step = 0; step < steps; ++step) {
#pragma unroll
    for (int k = 0; k < 32; ++k) chain[k] = fmaf(chain[k], a, b);
  }
  float sum = 0;
#pragma unroll
  for (int k = 0; k < 32; ++k) sum += chain[k];
  out[(size_t)blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__device__ unsigned long long timer_ns() {
  unsigned long long ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
}

// Waits until the host writes `number`, or loses patience and says so. One
// thread. Both words lie in the host's memory, so they are volatile.
extern "C" __global__ void gate_probe(unsigned* opened, unsigned* gave_up,
                                      unsigned number,
                                      unsigned long long patience_ns) {
  const unsigned long long begin = timer_ns();
  while (*(volatile unsigned*)opened != number)
    if (timer_ns() - begin > patience_ns) {
      *(volatile unsigned*)gave_up = number;
      return;
    }
}

// Each SM notes its cycle counter, the GPU's timer and the number of the run:
// three words for each of `most` SMs. Blocks on the same SM overwrite each
// other's note.
extern "C" __global__ void stamp_probe(unsigned long long* notes, unsigned most,
                                       unsigned long long number) {
  unsigned sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  if (threadIdx.x != 0 || sm >= most) return;
  notes[3 * sm] = clock64();
  notes[3 * sm + 1] = timer_ns();
  notes[3 * sm + 2] = number;
}
