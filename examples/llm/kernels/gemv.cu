// y = x W^T for a few rows of x, with W in bf16 or quantized: most of a step of
// decode. Each byte of W is read once, as fast as memory delivers it.
// requires: sm_80
#include "gemv.cuh"
#include "ptx/overlap.cuh"

// y = x W^T, or y += x W^T with ADD. x is rows x inputs; W is outputs x inputs,
// a row's blocks side by side; y is rows x outputs.
//
// Format: how W is stored: BF16, Q4_1 or Q8_0 of gemv.cuh.
// OUTPUTS: outputs (rows of W) of a block, a multiple of 16.
// PARTS: warps that share the depth of the same 16 outputs, an even number.
// STAGES: spans of W and x in shared memory, at least 2, and at most as many as
//   the depth has.
// Out: type of y, float or bf16.
//
// inputs is a multiple of 32, for BF16 of 8. x and W begin at multiples of 16
// bytes. Grid: x over OUTPUTS outputs each; y over 8 rows of x each, which read
// W again. A block walks along the depth in spans: STAGES - 1 of them are
// copied while one is multiplied. Dynamic shared memory: for each stage OUTPUTS
// * PITCH + 8 * (2 * SPAN + 32) bytes, and 2 * SPAN + 32 bytes more, a row of
// zeros. This row stands for all missing rows of x; they are neither copied nor
// stored.
//
// The order of a sum depends on PARTS and inputs alone.
// --8<-- [start:kernel]
template <class Format, int OUTPUTS, int PARTS, int STAGES, class Out, bool ADD>
__global__ void
// Three blocks of 8 warps on an SM and 80 registers for a thread, or one block
// of 16 warps.
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
  wait_for_previous();  // it writes x, not W
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
    __syncthreads();  // this span is there, and the one before it is free
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
