# ---
# jupyter:
#   cudatut:
#     title: {en: "CUDA graphs: claims", zh: "CUDA graph：说法的检验"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       n: [500000, 1000]
#       count: [20, 3]
#       many: [240, 3]
#       rounds: [25, 1]
#       waiting: [3000000, 100]
# ---

# %% [markdown]
# NVIDIA's introduction to graphs times 20 short kernels, launched one by one and
# as a graph, on a V100. The same kernel, the same sizes; the GPU begins when all
# launches are there, as behind a program that sends them fast enough.

# %% setup
import ctypes

import numpy as np
import pycuda.driver as cuda

import cudatut as ct
from cudatut.book.memory.graphs.calls import (
    address,
    bindings,
    call,
    captured,
    function_of,
    handle,
    latest,
    set_arguments,
)
from cudatut.book.memory.graphs.ways import take

short = ct.Kernel(
    """
__global__ void short_kernel(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 1.23f * in[i];
}
""",
    "short_kernel",
)
n = 500000
count = 20  # kernels
rounds = 25
stream = cuda.Stream()
x = ct.to_device(ct.rng(0).random(n, dtype="float32"))
out = ct.empty(n, "float32")
ct.synchronize()


def one_by_one(on=None):
    for _ in range(count):
        short(x, out, n, grid=ct.cdiv(n, 512), block=512, stream=on)


graph = captured(stream, lambda: one_by_one(stream))
ready = call("cuGraphInstantiate", graph, 0)


def as_a_graph():
    call("cuGraphLaunch", ready, handle())


# %% introduction
as_a_graph()
ct.check(out, np.float32(1.23) * x.get(), name="short kernel")
runs = {"one by one": one_by_one, "graph": as_a_graph, "again": as_a_graph}
found = take(runs, count, rounds)
each = {name: row["behind a gate"] for name, row in found.items()}
ct.table(
    "20 kernels of half a million numbers, each kernel",
    found,
    corner="started",
    units=dict.fromkeys(("host", "as sent", "behind a gate"), "us"),
)

# %% introduction-claim
gain = each["one by one"] / each["graph"]
ct.claim(
    id="graph-of-20",
    source="A. Gray, Getting Started with CUDA Graphs",
    place={
        "en": "the two results without a wait in the loop",
        "zh": "循环里没有等待的两个结果",
    },
    form="printed",
    statement={
        "en": "Twenty kernels launched in a row without waiting take 3.8 us each "
        "on a V100; as a graph 3.4 us. The first over the second:",
        "zh": "在 V100 上，连续启动 20 个 kernel、中间不等待，每个 3.8 us；用 CUDA graph "
        "则是 3.4 us。前者除以后者：",
    },
    expected=3.8 / 3.4,
    measured=gain,
    rule="gain",
    control=(
        {"en": "the graph beside itself", "zh": "CUDA graph 与自己相比"},
        each["again"] / each["graph"],
        (0.97, 1.03),
    ),
    unit="×",
)

# %% [markdown]
# The programming guide says that the host spends less on a graph than on
# launches. Here with the driver's own call for a launch, its arguments put
# together beforehand.

# %% host
many = 240  # kernels
y = ct.to_device(np.zeros(1000, "uint32"))
mix = ct.Kernel("memory/graphs/graphs.cu", "mix")
function, launch_kernel = function_of(mix), bindings().cuLaunchKernel
values = np.array([address(y), 1, 1000], "uint64")
places = values.ctypes.data + 8 * np.arange(3, dtype="uint64")


def launches(on=None):
    for _ in range(many):
        launch_kernel(function, 4, 1, 1, 256, 1, 1, 0, on, places, 0)


graph_of_many = captured(stream, lambda: launches(handle(stream)))
ready_many = call("cuGraphInstantiate", graph_of_many, 0)
runs = {
    "launches": lambda: launches(handle()),
    "launches again": lambda: launches(handle()),
    "graph": lambda: call("cuGraphLaunch", ready_many, handle()),
}
host = {name: row["host"] for name, row in take(runs, many, rounds).items()}

# %% host-claim
ct.claim(
    id="launch-cost-of-a-graph",
    source="CUDA Programming Guide 13",
    place={
        "en": "CUDA Graphs, first paragraph",
        "zh": "CUDA Graphs 一节，第一段",
    },
    form="said",
    statement={
        "en": "The host spends less on launching a graph than on launches in a "
        "stream. Its time for a launch over that for a node of a graph of 240:",
        "zh": "启动 CUDA graph 时主机的开销，比在流里逐个启动小。主机启动一次的用时，"
        "除以 240 个节点的 CUDA graph 里每个节点的用时：",
    },
    expected=1.0,
    measured=host["launches"] / host["graph"],
    rule="above",
    control=(
        {"en": "the launches beside themselves", "zh": "逐个启动与自己相比"},
        host["launches again"] / host["launches"],
        (0.97, 1.03),
    ),
    unit="×",
)

# %% [markdown]
# The reference says that a change of an executable graph leaves launches alone
# that were made before. So the graph is started behind a kernel that takes
# milliseconds, then changed, then started again.

# %% before
busy = ct.Kernel(
    """
__global__ void busy(long long ns) {
  long long begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - begin < ns);
}
""",
    "busy",
)
waiting = 3000000  # nanoseconds
a, b = (ct.to_device(np.zeros(32, "uint32")) for _ in "ab")
nodes = []


def one_step():
    mix(a, 5, 32, grid=1, block=32, stream=stream)
    nodes.append(latest(stream))


graph_of_one = captured(stream, one_step)
one = call("cuGraphInstantiate", graph_of_one, 0)
types = ctypes.c_void_p, ctypes.c_uint, ctypes.c_int
call("cuGraphLaunch", one, handle(stream))  # the first one loads things
stream.synchronize()
a.set(np.zeros(32, "uint32"))
ct.synchronize()
ended = cuda.Event()
busy(waiting, grid=1, block=1, stream=stream)
ended.record(stream)
call("cuGraphLaunch", one, handle(stream))
in_time = not ended.query()  # the graph has not begun yet
set_arguments(one, nodes[0], (address(b), 7, 32), types)
call("cuGraphLaunch", one, handle(stream))
stream.synchronize()
assert in_time or ct.tool.running(), "the change came too late"
changed_before = int((a.get() != 5).sum())
changed_after = int((b.get() == 7).sum())

# %% before-claim
ct.claim(
    id="update-later-launches",
    source="CUDA Driver API 13, cuGraphExecKernelNodeSetParams",
    place={"en": "the last paragraph but one", "zh": "倒数第二段"},
    form="said",
    statement={
        "en": "A change affects launches that are made afterwards, and none that "
        "was made before and still waits. Of 32 values of such a launch, so many "
        "are changed:",
        "zh": "修改只影响之后的启动，不影响已经提交、还在排队的启动。这样一次启动的 "
        "32 个结果里，有多少个受到影响：",
    },
    expected=0,
    measured=changed_before,
    rule="equal",
    found="counted",
    control=(
        {
            "en": "the launch made afterwards, of 32",
            "zh": "之后的那次启动，共 32 个",
        },
        changed_after,
        32,
    ),
)
