// y = x W^T for a few rows of x, W as bf16 or quantized: what a step of decode
// consists of. Each byte of W is read once, as fast as memory delivers it.
// requires: sm_80
#include "gemv.cuh"
#include "ptx/overlap.cuh"

// y = x W^T, or y += x W^T with ADD. x: rows x inputs; W: outputs x inputs, a
// row's blocks side by side; y: rows x outputs. inputs: a multiple of 32, for
// BF16 of 8. x and W begin at multiples of 16 bytes. Grid: x over OUTPUTS
// outputs each, y over 8 rows of x each, which read W again. A block walks
// along the depth in spans, STAGES - 1 of them on their way while one is
// multiplied. PARTS warps share the depth of the same 16 outputs. Dynamic
// shared memory: of each stage OUTPUTS * PITCH + 8 * (2 * SPAN + 32) bytes, and
// 2 * SPAN + 32 more; no more stages than there are spans. Rows of x that are
// missing are neither copied nor stored: one row of zeros is all of them.
//
// The order of a sum depends on PARTS and inputs alone.
// --8<-- [start:kernel]
template <class Format, int OUTPUTS, int PARTS, int STAGES, class Out, bool ADD>
__global__ void
// Three blocks of 8 warps an SM, 80 registers a thread; or one of 16.
__launch_bounds__(OUTPUTS / 16 * PARTS * 32, 24 / (OUTPUTS / 16 * PARTS))
    gemv(const __nv_bfloat16* __restrict__ x, const void* __restrict__ W,
         Out* __restrict__ y, int rows, int outputs, int inputs) {
  constexpr int WARPS = OUTPUTS / 16 * PARTS, THREADS = WARPS * 32;
  constexpr int SPAN = Format::SPAN, X_PITCH = SPAN * 2 + 32;
  constexpr int OF_W = OUTPUTS * Format::PITCH, STAGE = OF_W + 8 * X_PITCH;
  extern __shared__ __align__(128) unsigned char shared[];
  unsigned char* const stages = shared + X_PITCH;  // behind a row of zeros
  const int first = blockIdx.x * OUTPUTS;
  x += (size_t)blockIdx.y * 8 * inputs;
  y += (size_t)blockIdx.y * 8 * outputs;
  rows = min(8, rows - (int)blockIdx.y * 8);

  const Matrix<Format, OUTPUTS, WARPS> matrix(W, first, outputs, inputs);
  const int spans = (inputs + SPAN - 1) / SPAN;
  const auto copy_x = [&](unsigned char* stage, int span) {
#pragma unroll 1
    for (int i = threadIdx.x; i < rows * (SPAN / 8); i += THREADS) {
      const int r = i / (SPAN / 8), k = i % (SPAN / 8) * 8;
      copy16(shared_address(stage + OF_W + r * X_PITCH + k * 2),
             x + (size_t)r * inputs + span * SPAN + k,
             span * SPAN + k < inputs ? 16 : 0);
    }
  };

  const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4;
  const int strip = warp / PARTS * 16, part = warp % PARTS;
  const int low = matrix.at(strip + g);
  float sum[4] = {};
  begin_next();
#pragma unroll 1
  for (int span = 0; span < min(STAGES - 1, spans); ++span)
    matrix.copy(stages + span * STAGE, span);
  for (int i = threadIdx.x; i < X_PITCH / 16; i += THREADS)
    reinterpret_cast<uint4*>(shared)[i] = make_uint4(0, 0, 0, 0);
  wait_for_previous();  // x is its work, W is not
#pragma unroll 1
  for (int span = 0; span < STAGES - 1; ++span) {
    if (span < spans) copy_x(stages + span * STAGE, span);
    commit();
  }
  unsigned char* stage = stages;
  unsigned char* freed = stages + (STAGES - 1) * STAGE;
#pragma unroll 1
  for (int span = 0; span < spans; ++span) {
    wait_for_all_but<STAGES - 2>();
    __syncthreads();  // this span is there for all, the one before it is free
    const int next = span + STAGES - 1;
    if (next < spans) {
      matrix.copy(freed, next);
      copy_x(freed, next);
    }
    commit();
    const int blocks = (min(SPAN, inputs - span * SPAN) + 31) / 32;
    add_span<Format, PARTS>(sum, stage + low,
                            g < rows ? stage + OF_W + g * X_PITCH : shared,
                            part, blocks);
    freed = stage;
    stage = stage == stages + (STAGES - 1) * STAGE ? stages : stage + STAGE;
  }

  __syncthreads();
  float* const merged = reinterpret_cast<float*>(shared);
  put_sums<OUTPUTS>(merged, sum, strip, part);
  __syncthreads();
  for (int i = threadIdx.x; i < 8 * OUTPUTS; i += THREADS) {
    const int row = i / OUTPUTS, output = i % OUTPUTS;
    if (row >= rows || first + output >= outputs) continue;
    float result = merge<OUTPUTS, PARTS>(merged, row, output);
    Out* const to = y + (size_t)row * outputs + first + output;
    if constexpr (ADD) result += *to;
    *to = Out(result);
  }
}
// --8<-- [end:kernel]

// Instances that are compiled by the tests:
// @instance gemv<Q4_1, 64, 2, 2, float, false>
// @instance gemv<Q4_1, 64, 2, 2, float, true>
// @instance gemv<Q4_1, 32, 4, 3, __nv_bfloat16, false>
// @instance gemv<Q4_1, 16, 8, 4, __nv_bfloat16, false>
// @instance gemv<Q8_0, 64, 2, 2, float, true>
// @instance gemv<Q8_0, 64, 2, 2, float, false>
// @instance gemv<Q8_0, 16, 8, 4, __nv_bfloat16, false>
// @instance gemv<BF16, 128, 2, 3, float, false>
// @instance gemv<BF16, 64, 2, 2, float, false>
// @instance gemv<BF16, 32, 4, 3, __nv_bfloat16, false>
// @instance gemv<BF16, 16, 8, 4, float, true>
