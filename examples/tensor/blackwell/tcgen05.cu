// One product on the tensor cores of a Blackwell GPU: D = A B^T, where A is
// 128 x 64 and B is 64 x 64, both row by row in bf16, and D is 128 x 64 in
// fp32. COMPILED, BUT NEVER RUN: we have no such GPU. It shows the syntax.
//
//   shared_address   an address of shared memory as PTX takes it
//   matrix           describes a matrix in shared memory
//   PRODUCT          describes the product
//   tcgen05_product  the kernel
//
// requires: sm_100a
#include <cuda_bf16.h>

// Rows of D, columns of D, steps of depth.
constexpr int M = 128, N = 64, K = 64;

// PTX instructions take addresses of shared memory as 32 bits.
__device__ __forceinline__ unsigned shared_address(const void* at) {
  return (unsigned)__cvta_generic_to_shared(at);
}

// --8<-- [start:descriptors]
// A matrix in shared memory consists of pieces of 8 rows of 16 bytes, one row
// behind the other. `next_k`, `next_rows`: bytes from a piece to the next one
// along the depth, and to the one with the next 8 rows. A descriptor has
// addresses and distances without their four lowest bits; bit 46 is the version
// of the format. There is no swizzle.
__device__ unsigned long long matrix(unsigned at, int next_k, int next_rows) {
  return (unsigned long long)(at >> 4 & 0x3fff) |
         (unsigned long long)(next_k >> 4) << 16 |
         (unsigned long long)(next_rows >> 4) << 32 | 1ull << 46;
}

// What is multiplied: sums in fp32 (1), A and B in bf16 (1), then N and M. Both
// matrices run along the depth: 0 in bits 15 and 16 says so.
constexpr unsigned PRODUCT =
    1u << 4 | 1u << 7 | 1u << 10 | (N >> 3) << 17 | (M >> 4) << 24;
// --8<-- [end:descriptors]

// D = A B^T by one block of 128 threads.
extern "C" __global__ void __launch_bounds__(128)
    tcgen05_product(const __nv_bfloat16* A, const __nv_bfloat16* B, float* D) {
  __shared__ __align__(128) __nv_bfloat16 As[M * K], Bs[N * K];
  __shared__ __align__(8) unsigned long long done;
  __shared__ unsigned tensor_memory;
  const int t = threadIdx.x, warp = t / 32;
  const unsigned barrier = shared_address(&done);
  // --8<-- [start:allocate]
  // A whole warp has to ask for tensor memory: here for 64 columns. The address
  // comes back in shared memory.
  if (warp == 0)
    asm volatile(
        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::
            "r"(shared_address(&tensor_memory)),
        "n"(N)
        : "memory");
  // --8<-- [end:allocate]
  if (t == 0)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier)
                 : "memory");
  // Copy both matrices into pieces of 8 x 8 elements: row r, depth k.
  for (int i = t; i < M * K; i += 128) {
    const int r = i / K, k = i % K;
    As[k / 8 * (M * 8) + r * 8 + k % 8] = A[i];
  }
  for (int i = t; i < N * K; i += 128) {
    const int r = i / K, k = i % K;
    Bs[k / 8 * (N * 8) + r * 8 + k % 8] = B[i];
  }
  // The tensor cores read shared memory through the async proxy.
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  __syncthreads();
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  const unsigned sums = tensor_memory;
  // --8<-- [start:multiply]
  if (t == 0) {  // one thread starts the products of the whole block
    for (int k = 0; k < K; k += 16) {
      const auto a = matrix(shared_address(As + k * M), M * 16, 128);
      const auto b = matrix(shared_address(Bs + k * N), N * 16, 128);
      asm volatile(
          "{ .reg .pred add;\n"
          "setp.ne.b32 add, %4, 0;\n"
          "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, add; }" ::"r"(
              sums),
          "l"(a), "l"(b), "r"(PRODUCT), "r"(k)  // k = 0: begin with zero
          : "memory");
    }
    // The barrier's phase ends when all of these products are complete.
    asm volatile(
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one"
        ".shared::cluster.b64 [%0];" ::"r"(barrier)
        : "memory");
  }
  // --8<-- [end:multiply]
  int over = 0;
  while (!over)
    asm volatile(
        "{ .reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;\n"
        "selp.b32 %0, 1, 0, p; }"
        : "=r"(over)
        : "r"(barrier)
        : "memory");
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  // --8<-- [start:load]
  // A warp reaches 32 of the 128 lanes of tensor memory: a lane is a row of D.
  for (int column = 0; column < N; column += 8) {
    unsigned x[8];
    asm volatile(
        "tcgen05.ld.sync.aligned.32x32b.x8.b32 "
        "{%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
        : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]), "=r"(x[4]),
          "=r"(x[5]), "=r"(x[6]), "=r"(x[7])
        : "r"(sums + (warp * 32u << 16) + column));
    asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
    for (int i = 0; i < 8; ++i) D[t * N + column + i] = __uint_as_float(x[i]);
  }
  // --8<-- [end:load]
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  __syncthreads();
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  if (warp == 0)
    asm volatile(
        "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(sums),
        "n"(N)
        : "memory");
}
