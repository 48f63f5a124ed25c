# ---
# jupyter:
#   cudatut:
#     title: {en: "Which thread am I: claims of other sources", zh: "我是哪个线程：其他资料的说法"}
#     requires: sm_75
#     alone: false
#     timeout_s: 60
# ---
# %% [markdown]
# Do the threads of a block run in the order of their warps? Behind a barrier each warp draws a ticket. In a second kernel
# the warps take turns, so there the order is known.

# %% order
import numpy as np

import cudatut as ct

gpu = ct.device()
warp_arrival = ct.Kernel("start/which_thread/which_thread.cu", "warp_arrival")
in_turn = ct.Kernel(
    """
__global__ void in_turn(int *order) {
  __shared__ int counter;
  int warps = blockDim.x / 32, warp = threadIdx.x / 32;
  if (threadIdx.x == 0) counter = 0;
  for (int turn = 0; turn < warps; ++turn) {
    __syncthreads();  // all warps wait for the one whose turn it is
    if (warp == turn && threadIdx.x % 32 == 0)
      order[blockIdx.x * warps + counter++] = warp;
  }
}
""",
    "in_turn",
)
warps = gpu.max_threads_per_block // 32
blocks = 4 * gpu.sm_count


def orders(kernel):
    """In each block the order in which its warps came, shape (blocks, warps)."""
    order = ct.empty((blocks, warps), "int32")
    kernel(order, grid=blocks, block=32 * warps)
    order = order.get()
    each_once = np.tile(np.arange(warps), (blocks, 1))
    ct.check(np.sort(order, axis=1), each_once, name="each warp once")
    return order


def different(order):
    return len(np.unique(order, axis=0))


def in_order(order):
    """Share of the blocks whose warps came in the order 0, 1, 2, ..."""
    return float(100 * (order == np.arange(warps)).all(axis=1).mean())


they_came, took_turns = orders(warp_arrival), orders(in_turn)
as_they_come, by_turns = in_order(they_came), in_order(took_turns)

# %% claim-warp-order
ct.claim(
    id="block-runs-in-warp-order",
    source="CUDATutorial 00",
    place={
        "en": "section on the execution model, last paragraph",
        "zh": "“执行模型与核函数”一节，最后一段",
    },
    form="said",
    statement={
        "en": "Blocks may run in any order, but the threads of a block may not: "
        "their order is that of the warps (read here as one order for all "
        "blocks). Different orders in which the warps "
        "of a block passed, among all blocks:",
        "zh": "线程块可以按任意次序执行，单个线程块中的线程却不能以任意次序执行，"
        "它们的次序是线程束的次序（这里理解为各线程块的次序都一样）。在所有线程块中，线程束通过的次序共有几种：",
    },
    expected=1,
    measured=different(they_came),
    rule="equal",
    found="counted",
    control=(
        {
            "en": "a kernel in which the warps take turns",
            "zh": "各线程束轮流的 kernel",
        },
        different(took_turns),
        1,
    ),
)

# %% claim-out-of-order
ct.claim(
    id="warps-out-of-order",
    source="Learn CUDA Programming, notes",
    place={
        "en": "the list above the printed warp and lane numbers",
        "zh": "打印线程束和 lane 编号之前的列表",
    },
    form="said",
    statement={
        "en": "The warps of a block run out of order. Blocks whose warps did not "
        "pass in the order 0, 1, 2, ...:",
        "zh": "一个线程块中的线程束不按次序执行。各线程束没有按 0、1、2、…… 的"
        "次序通过的线程块：",
    },
    expected=0.0,
    measured=100 - as_they_come,
    unit="%",
    rule="above",
    control=(
        {
            "en": "a kernel in which the warps take turns",
            "zh": "各线程束轮流的 kernel",
        },
        100 - by_turns,
        0.0,
    ),
)
