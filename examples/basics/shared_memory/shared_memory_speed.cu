// How fast is shared memory? Kernels that separate what sources mix.
//
//   chase            one thread loads from shared memory; each load needs the
//                    result of the one before
//   chain            the same with FMAs in registers
//   from_shared      FMAs with one operand from shared memory
//   from_registers   the same FMAs with this operand in a register
//   strided          one warp loads words that are `stride` apart
//   plain            the product in tiles of 16 x 16
//   swapped          the same with threadIdx.x and threadIdx.y exchanged
//   padded           swapped, with a padded row in each tile
#define TILE 16
#define WORDS 16  // words of each lane

__device__ long long nanoseconds() {
  long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

// --8<-- [start:chase]
// next[i]: where to go from byte 4 * i, in bytes.
extern "C" __global__ void chase(const int* __restrict__ next,
                                 int* __restrict__ last,
                                 long long* __restrict__ ns, int places,
                                 int steps) {
  __shared__ int words[1024];
  for (int i = threadIdx.x; i < places; i += blockDim.x) words[i] = next[i];
  __syncthreads();
  if (threadIdx.x != 0) return;
  const char* start = reinterpret_cast<const char*>(words);
  int at = 0;
  const long long begin = nanoseconds();
  for (int j = 0; j < steps; ++j)
    at = *reinterpret_cast<const int*>(start + at);
  *ns = nanoseconds() - begin;
  *last = at;
}
// --8<-- [end:chase]

extern "C" __global__ void chain(float* __restrict__ last,
                                 long long* __restrict__ ns, float a, float b,
                                 int steps) {
  float v = threadIdx.x;
  const long long begin = nanoseconds();
#pragma unroll 16
  for (int j = 0; j < steps; ++j) v = fmaf(a, v, b);
  *ns = nanoseconds() - begin;
  *last = v;
}

// --8<-- [start:operand]
// Each lane adds up its WORDS words times `a`, again and again. SHARED: whether
// it reads a word from shared memory each time, or once into a register.
template <bool SHARED>
__device__ __forceinline__ void add_up(const float* __restrict__ x,
                                       float* __restrict__ out, float a,
                                       int turns) {
  __shared__ float words[2 * WORDS][32];  // twice the same WORDS rows
  const int lane = threadIdx.x % 32;
  for (int i = threadIdx.x / 32; i < 2 * WORDS; i += blockDim.x / 32)
    words[i][lane] = x[i % WORDS * 32 + lane];
  __syncthreads();
  float word[WORDS], sum[4] = {};
#pragma unroll
  for (int i = 0; i < WORDS; ++i) word[i] = words[i][lane];
#pragma unroll 1
  for (int t = 0; t < turns; ++t) {
    const int first = t % WORDS;  // any WORDS rows in a row hold all words
#pragma unroll
    for (int i = 0; i < WORDS; ++i)
      sum[i % 4] =
          fmaf(SHARED ? words[first + i][lane] : word[i], a, sum[i % 4]);
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] =
      sum[0] + sum[1] + sum[2] + sum[3];
}
// --8<-- [end:operand]

extern "C" __global__ void __launch_bounds__(1024, 1)
    from_shared(const float* __restrict__ x, float* __restrict__ out, float a,
                int turns) {
  add_up<true>(x, out, a, turns);
}

extern "C" __global__ void __launch_bounds__(1024, 1)
    from_registers(const float* __restrict__ x, float* __restrict__ out,
                   float a, int turns) {
  add_up<false>(x, out, a, turns);
}

// --8<-- [start:strided]
extern "C" __global__ void strided(const float* __restrict__ x,
                                   float* __restrict__ out, int stride) {
  __shared__ float words[32 * 32];
  for (int i = threadIdx.x; i < 32 * 32; i += blockDim.x) words[i] = x[i];
  __syncthreads();
  out[threadIdx.x] = words[threadIdx.x * stride];  // stride: at most 32
}
// --8<-- [end:strided]

// C = A B for square row-major matrices of any n. SWAPPED: whether threadIdx.x
// runs down the columns. PITCH: words of a row in a tile, TILE or more.
// --8<-- [start:swapped]
template <bool SWAPPED, int PITCH>
__device__ __forceinline__ void multiply(const float* __restrict__ A,
                                         const float* __restrict__ B,
                                         float* __restrict__ C, int n) {
  __shared__ float a[TILE][PITCH], b[TILE][PITCH];
  // Swapped: neighboring threads stand below each other, in the matrices and in
  // the tiles.
  const int x = SWAPPED ? threadIdx.y : threadIdx.x;
  const int y = SWAPPED ? threadIdx.x : threadIdx.y;
  const int column = (SWAPPED ? blockIdx.y : blockIdx.x) * TILE + x;
  const int row = (SWAPPED ? blockIdx.x : blockIdx.y) * TILE + y;
  // --8<-- [end:swapped]
  float sum = 0;
  for (int start = 0; start < n; start += TILE) {
    a[y][x] = row < n && start + x < n ? A[(size_t)row * n + start + x] : 0.0f;
    b[y][x] = start + y < n && column < n ? B[(size_t)(start + y) * n + column]
                                          : 0.0f;
    __syncthreads();
    for (int i = 0; i < TILE; ++i) sum += a[y][i] * b[i][x];
    __syncthreads();
  }
  if (row < n && column < n) C[(size_t)row * n + column] = sum;
}

extern "C" __global__ void __launch_bounds__(TILE* TILE)
    plain(const float* __restrict__ A, const float* __restrict__ B,
          float* __restrict__ C, int n) {
  multiply<false, TILE>(A, B, C, n);
}

extern "C" __global__ void __launch_bounds__(TILE* TILE)
    swapped(const float* __restrict__ A, const float* __restrict__ B,
            float* __restrict__ C, int n) {
  multiply<true, TILE>(A, B, C, n);
}

extern "C" __global__ void __launch_bounds__(TILE* TILE)
    padded(const float* __restrict__ A, const float* __restrict__ B,
           float* __restrict__ C, int n) {
  multiply<true, TILE + 1>(A, B, C, n);
}
