# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "Does a graph pay?", zh: "用 CUDA graph 划算吗"}
#         level: easy
#         minutes: 10
#         task:
#           en: >-
#             Write `predicted(own, launch, node, kernels, runs, make)`: the total
#             time of a chain, one by one and as a graph. A kernel takes `own` by
#             itself, its launch `launch`, a node `node` at least. To make the
#             graph takes `make` once. All times are in microseconds. The check
#             has four cases; predict first where a graph is shorter.
#           zh: >-
#             写 `predicted(own, launch, node, kernels, runs, make)`：本章那串 kernel
#             逐个启动共用多久，用 CUDA graph 共用多久，返回这两个数。单个 kernel 自身用
#             `own`，主机启动一次用 `launch`，CUDA graph 里每个节点至少用 `node`。一串有
#             `kernels` 个 kernel，共运行 `runs` 次；做成它只做一次，用 `make`。时间都以
#             微秒为单位。检查程序有四种情形；先预测在哪几种里用 CUDA graph 总时间更短。
#         fails: "four cases"
#       2:
#         title: {en: "Another array each time", zh: "每次换一个数组"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             A graph was captured whose only kernel works on the array `x`.
#             Write `work_on(ready, node, array, k, n)`: from its next launch on,
#             it works on `array`, with the number `k`. Capture and instantiate
#             nothing. The check tries three other arrays.
#           zh: >-
#             已经捕获了一个 CUDA graph，它唯一的 kernel 处理数组 `x`。写
#             `work_on(ready, node, array, k, n)`：从下一次启动起，这个可执行 CUDA graph
#             改为处理 `array`，所用的数是 `k`。不许再捕获，也不许再实例化。检查程序换
#             三个别的数组来试。
#         fails: "array 1"
#       3:
#         title: {en: "A loop on the GPU", zh: "GPU 上的循环"}
#         level: hard
#         minutes: 40
#         task:
#           en: >-
#             The kernel `step` halves an even number; an odd one it multiplies by
#             three and adds one. It counts its steps and sets the condition of its
#             handle to 0 at a 1. Write `loop_of(step, x, count, stream)`: an
#             executable graph that runs `step` until the number is 1.
#           zh: >-
#             kernel `step` 把偶数减半，把奇数乘以三再加一，并数一数做了几步；看到
#             1 时，它把自己那个句柄的条件设为 0。写 `loop_of(step, x, count, stream)`：
#             返回一个可执行 CUDA graph，反复运行 `step`，直到这个数变成 1。检查程序用几个
#             数来试，每个数只启动一次。
#         fails: "from 27"
# ---


# %% stub-1
def predicted(own, launch, node, kernels, runs, make):
    """Microseconds in all: (one by one, as a graph)."""
    return 0.0, 0.0  # yours


# %% stub-2
def work_on(ready, node, array, k, n):
    """From the next launch on, `node` is mix(array, k, n)."""
    # yours: cuGraphKernelNodeGetParams, cuGraphExecKernelNodeSetParams


# %% stub-3
def loop_of(step, x, count, stream):
    """An executable graph that runs step(handle, x, count) until x is 1."""
    graph = calls.call("cuGraphCreate", 0)
    # yours: a handle, a WHILE node, its body
    return calls.call("cuGraphInstantiate", graph, 0)
