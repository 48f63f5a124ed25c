// CUTLASS's convolution for Hopper (wgmma, im2col by the TMA) behind C
// functions: bf16, NHWC, weights [filter][row][column][channel], sums in fp32.
//
// numbers: images, height, width, channels, filters, window, stride, pad and
// dilation (down, right each). An instance is made once for its arrays and can
// be run many times. The functions return 0, or 1 + CUTLASS's Status.
#include <cutlass/kernel_hardware_info.hpp>  // which the others need
#include <new>

#include "cute/tensor.hpp"
#include "cutlass/conv/collective/collective_builder.hpp"
#include "cutlass/conv/device/conv_universal_adapter.hpp"
#include "cutlass/conv/kernel/conv_universal.hpp"
#include "cutlass/cutlass.h"
#include "cutlass/epilogue/collective/collective_builder.hpp"
#include "cutlass/numeric_types.h"

using namespace cute;

namespace {

using Bf16 = cutlass::bfloat16_t;
using NHWC = cutlass::layout::TensorNHWC;
constexpr auto FPROP = cutlass::conv::Operator::kFprop;
constexpr int ALIGN = 8;  // channels: 16 bytes, as the TMA wants it

struct Any {
  virtual cutlass::Status run(cudaStream_t stream) = 0;
  virtual ~Any() = default;
};

// --8<-- [start:convolution]
// One tile of results is TM images' pixels x TN filters, by steps of TK
// channels; CM x CN blocks are a cluster.
template <int TM, int TN, int TK, int CM, int CN>
struct Convolution : Any {
  using Tile = Shape<Int<TM>, Int<TN>, Shape<Int<TK>>>;
  using Cluster = Shape<Int<CM>, Int<CN>, _1>;
  using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
      cutlass::epilogue::collective::EpilogueTileAuto, float, float, Bf16, NHWC,
      ALIGN, Bf16, NHWC, ALIGN,
      cutlass::epilogue::TmaWarpSpecialized>::CollectiveOp;
  using Mainloop = typename cutlass::conv::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, FPROP, Bf16, NHWC,
      ALIGN, Bf16, NHWC, ALIGN, float, Tile, Cluster,
      cutlass::conv::collective::StageCountAutoCarveout<static_cast<int>(
          sizeof(typename Epilogue::SharedStorage))>,
      cutlass::conv::KernelImplicitTmaWarpSpecializedSm90>::CollectiveOp;
  using Problem = cutlass::conv::ConvProblemShape<FPROP, 2>;
  using Kernel =
      cutlass::conv::kernel::ConvUniversal<Problem, Mainloop, Epilogue>;
  using Adapter = cutlass::conv::device::ConvUniversalAdapter<Kernel>;
  // --8<-- [end:convolution]

  Adapter adapter;

  // --8<-- [start:arguments]
  static typename Adapter::Arguments arguments(const void* x, const void* w,
                                               void* y, const int* n) {
    Problem problem(cutlass::conv::Mode::kCrossCorrelation,
                    {n[0], n[1], n[2], n[3]}, {n[4], n[5], n[6], n[3]},
                    {n[9], n[10]}, {n[9], n[10]}, {n[7], n[8]}, {n[11], n[12]},
                    1);
    typename Epilogue::StrideD stride{};
    for_each(make_seq<rank<0>(stride)>{}, [&](auto i) {
      get<0, i>(stride) = problem.stride_C[Problem::RankT - 2 - i];
    });
    cutlass::KernelHardwareInfo hardware;
    cudaGetDevice(&hardware.device_id);
    hardware.sm_count =
        cutlass::KernelHardwareInfo::query_device_multiprocessor_count(
            hardware.device_id);
    typename Adapter::Arguments made{
        problem,
        {static_cast<const Bf16*>(x), static_cast<const Bf16*>(w)},
        {{},
         static_cast<const Bf16*>(y),
         stride,
         static_cast<Bf16*>(y),
         stride},
        hardware,
        {}};
    made.epilogue.thread.alpha = 1.0f;
    made.epilogue.thread.beta = 0.0f;
    return made;
  }
  // --8<-- [end:arguments]

  cutlass::Status run(cudaStream_t stream) override {
    return adapter.run(stream);
  }

  // scratch = nullptr: only writes how many bytes of it are needed.
  static int make(const void* x, const void* w, void* y, const int* numbers,
                  void* scratch, size_t* bytes, void** made) {
    auto given = arguments(x, w, y, numbers);
    auto status = Adapter::can_implement(given);
    if (status != cutlass::Status::kSuccess) return 1 + int(status);
    *bytes = Adapter::get_workspace_size(given);
    if (!scratch) return 0;
    auto* one = new (std::nothrow) Convolution;
    if (!one) return 1 + int(cutlass::Status::kErrorInternal);
    status = one->adapter.initialize(given, scratch);
    if (status != cutlass::Status::kSuccess) {
      delete one;
      return 1 + int(status);
    }
    *made = static_cast<Any*>(one);
    return 0;
  }
};

}  // namespace

// --8<-- [start:functions]
// A library has one instance: -DPIXELS=128 -DFILTERS=128 -DSTEP=64 -DDOWN=2
// -DACROSS=1.
using Chosen = Convolution<PIXELS, FILTERS, STEP, DOWN, ACROSS>;

extern "C" int make(const void* x, const void* w, void* y, const int* numbers,
                    void* scratch, size_t* bytes, void** made) {
  return Chosen::make(x, w, y, numbers, scratch, bytes, made);
}

extern "C" int run(void* made, void* stream) {
  auto status = static_cast<Any*>(made)->run(static_cast<cudaStream_t>(stream));
  return status == cutlass::Status::kSuccess ? 0 : 1 + int(status);
}

extern "C" void drop(void* made) { delete static_cast<Any*>(made); }
// --8<-- [end:functions]

// --8<-- [start:chosen]
// What the builder has chosen: stages, threads of a block, bytes of its shared
// memory, those of the epilogue, rows, columns and depth of a wgmma, and blocks
// of a cluster.
extern "C" void chosen(int* numbers) {
  using Instruction = typename Chosen::Mainloop::TiledMma::AtomShape_MNK;
  const int found[] = {
      Chosen::Mainloop::DispatchPolicy::Stages,
      int(Chosen::Kernel::MaxThreadsPerBlock),
      int(Chosen::Kernel::SharedStorageSize),
      int(sizeof(typename Chosen::Epilogue::SharedStorage)),
      int(size<0>(Instruction{})),
      int(size<1>(Instruction{})),
      int(size<2>(Instruction{})),
      int(size(typename Chosen::Cluster{})),
  };
  for (int i = 0; i < 8; ++i) numbers[i] = found[i];
}
// --8<-- [end:chosen]
