# ---
# jupyter:
#   cudatut:
#     title: {en: "Dynamic parallelism: what a launch costs", zh: "动态并行：一次启动要多久"}
#     requires: sm_75
#     timeout_s: 180
#     sizes:
#       count: [512, 3]
#       rounds: [25, 1]
#       numbers: [20000, 20]
#       most_rounds: [500, 500]
# ---

# %% [markdown]
# A kernel that does next to nothing, launched 512 times: by the host, by a CUDA
# graph, and by the GPU in four ways. It counts how often it ran.

# %% setup
import random
import statistics
from functools import partial

import numpy as np
import pycuda.driver as cuda

import cudatut as ct
from cudatut.book.memory.dynamic.linked import linked
from cudatut.book.memory.graphs.calls import call, captured, handle
from cudatut.book.memory.graphs.ways import as_sent, take

count = 512  # kernels, fewer than can wait in a stream
rounds = 25
done = ct.to_device(np.zeros(1, "int32"))
stream = cuda.Stream()


def plain(name):
    """A kernel that launches nothing, as PyCUDA launches it."""
    kernel = ct.Kernel(
        "memory/dynamic/launches.cu", name, defines={"NO_LAUNCHES": 1}
    )
    return cuda.module_from_buffer(kernel.cubin).get_function(name)


nothing, one_round = plain("nothing"), plain("one_round")
ONE = {"grid": (1, 1), "block": (1, 1, 1)}


def by_host(on=None):
    for _ in range(count):
        nothing(done, stream=on, **ONE)


ready = call("cuGraphInstantiate", captured(stream, lambda: by_host(stream)), 0)
each = np.int32(max(count // 128, 1))

# %% ways
ways = {
    "the host, PyCUDA": by_host,
    "a CUDA graph": partial(call, "cuGraphLaunch", ready, handle()),
}
if not ct.tool.running():  # which would have to follow the launches
    module = linked("memory/dynamic/launches.cu", options=("-rdc=true",))
    fan, in_order, chain, conduct = map(
        module.get_function, ("fan", "in_order", "chain", "conduct")
    )
    ways |= {
        "the GPU, one thread": lambda: fan(done, np.int32(count), **ONE),
        "the GPU, 128 blocks": lambda: fan(
            done, each, grid=(count // int(each), 1), block=(1, 1, 1)
        ),
        "the GPU, one after another": lambda: in_order(
            done, np.int32(count), **ONE
        ),
        "the GPU, each by the last": lambda: chain(
            done, np.int32(count), **ONE
        ),
    }
for name, run in ways.items():
    cuda.memset_d32(done.gpudata, 0, 1)
    run()
    ct.check(done, np.array([count], "int32"), name=name)

# %% costs
costs = take(ways, count, rounds)
ct.table(
    "512 short kernels, per kernel",
    costs,
    corner="launched by",
    units=dict.fromkeys(("host", "as sent", "behind a gate"), "us"),
)

# %% [markdown]
# A list that gets shorter: in each round every number makes a step of 3 x + 1, and
# those that are 1 drop out. Only the GPU knows how large the next launch has to
# be. The host reads it back, or the GPU launches the next round.

# %% numbers
numbers = 20000
most_rounds = 500


def by_cpu():
    """Steps of 3 x + 1 from each number down to 1, and numbers per round."""
    values = np.arange(2, numbers + 2, dtype="int64")
    steps, alive = np.zeros(numbers, "int32"), []
    while (running := values != 1).any():
        alive.append(int(running.sum()))
        after = np.where(values % 2, 3 * values + 1, values // 2)
        values = np.where(running, after, values)
        steps += running
    return steps, alive


expected, alive = by_cpu()
start = ct.to_device(np.arange(2, numbers + 2, dtype="int64"))
everyone = ct.to_device(np.arange(numbers, dtype="int32"))
begun = ct.to_device(np.array([numbers] + [0] * most_rounds, "int32"))
values = ct.empty(numbers, "int64")
steps = ct.empty(numbers, "int32")
first, second = (ct.empty(numbers, "int32") for _ in "ab")
counts = ct.empty(most_rounds + 1, "int32")
told = cuda.pagelocked_zeros(1, np.int32)


def begin():
    for to, source in ((values, start), (first, everyone), (counts, begun)):
        cuda.memcpy_dtod_async(to.gpudata, source.gpudata, to.nbytes)
    cuda.memset_d32_async(steps.gpudata, 0, numbers)


def host_decides():
    begin()
    now, after, number, k = first, second, numbers, 0
    while number and k < most_rounds:
        one_round(
            now, after, values, steps, counts, np.int32(k),
            grid=(ct.cdiv(number, 256), 1), block=(256, 1, 1),
        )  # fmt: skip
        k += 1
        cuda.memcpy_dtoh(told, int(counts.gpudata) + 4 * k)  # waits
        number, now, after = int(told[0]), after, now


def nobody_decides():
    """The host knows how many rounds: it launches the most for each."""
    begin()
    now, after = first, second
    for k in range(len(alive)):
        one_round(
            now, after, values, steps, counts, np.int32(k),
            grid=(ct.cdiv(numbers, 256), 1), block=(256, 1, 1),
        )  # fmt: skip
        now, after = after, now


def gpu_decides():
    begin()
    conduct(
        first, second, values, steps, counts, np.int32(0),
        np.int32(most_rounds), **ONE,
    )  # fmt: skip


loops = {"the host asks": host_decides, "nobody asks": nobody_decides}
if not ct.tool.running():
    loops["the GPU launches"] = gpu_decides
for name, run in loops.items():
    run()
    ct.check(steps, expected, name=f"{name}: steps")
    ended = np.array([*alive, 0], "int32")
    ct.check(counts[: len(ended)].get(), ended, name=f"{name}: rounds")

# %% numbers-times
times = ct.take_turns(loops, rounds, random.Random(0), time=as_sent)
ct.table(
    "a list that gets shorter",
    {
        name: {
            "time": statistics.median(found),
            "a round": statistics.median(found) / len(alive),
        }
        for name, found in times.items()
    },
    corner="the next round",
    units={"time": "us", "a round": "us"},
)

# %% numbers-facts
ct.facts(
    "the list",
    {
        "numbers": numbers,
        "rounds": len(alive),
        "numbers in the middle round": alive[len(alive) // 2],
    },
)
