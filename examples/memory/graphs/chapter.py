# ---
# jupyter:
#   cudatut:
#     title: {en: "CUDA graphs", zh: "用 CUDA graph 启动"}
#     requires: sm_75
#     timeout_s: 180
#     sizes:
#       count: [240, 5]
#       rounds: [25, 1]
#       numbers: [[1, 4, 16, 64, 240, 480], [1, 3]]
#       lengths: [[0, 125, 250, 500, 1000, 2000, 4000, 8000], [0, 9]]
# ---

# %% [markdown]
# A chain of 240 short kernels, started one by one and as a CUDA graph. Each
# depends on the one before, so a kernel that is left out or runs too early
# changes the result.

# %% program
import numpy as np
import pycuda.driver as cuda

import cudatut as ct
from cudatut.book.memory.graphs.calls import call, captured, handle

mix = ct.Kernel("memory/graphs/graphs.cu", "mix")
n = 1000
count = 240  # kernels
rounds = 25
stream = cuda.Stream()
x = ct.to_device(np.arange(n, dtype="uint32"))


def one_by_one():
    for k in range(count):
        mix(x, k, n, grid=ct.cdiv(n, 256), block=256, stream=stream)


graph = captured(stream, one_by_one)  # written down, not run
ready = call("cuGraphInstantiate", graph, 0)


def as_a_graph():
    call("cuGraphLaunch", ready, handle(stream))


def us_each(run):
    """Microseconds for each kernel: the median of some rounds."""
    times = []
    for _ in range(rounds):
        start, stop = cuda.Event(), cuda.Event()
        start.record(stream)
        run()
        stop.record(stream)
        stop.synchronize()
        times.append(1e3 * start.time_till(stop) / count)
    return float(np.median(times))


def expected(values, kernels):
    """What the chain makes of these values, by NumPy."""
    values = values.copy()
    for k in kernels:
        values = np.uint32(1664525) * values + np.uint32(k)
    return values


for run in (one_by_one, as_a_graph):
    x.set(np.arange(n, dtype="uint32"))
    run()
    stream.synchronize()
    start = np.arange(n, dtype="uint32")
    right = np.array_equal(x.get(), expected(start, range(count)))
    print(f"{run.__name__}: {right}")
launched, replayed = us_each(one_by_one), us_each(as_a_graph)
ct.yours(
    "memory/graphs#program",
    {
        "one by one, each kernel": (launched, "us"),
        "as a graph, each kernel": (replayed, "us"),
        "one by one / as a graph": (launched / replayed, "x"),
    },
)

# %% [markdown]
# The graph at other lengths, several times, with other values each time: what it
# holds are addresses, so it works on what lies there when it starts.


# %% check
def mixing(y, m, kernels):
    """A function that launches the chain, for these kernels."""

    def work():
        for k in kernels:
            mix(y, k, m, grid=ct.cdiv(m, 256), block=256, stream=stream)

    return work


for m in ct.RAGGED:
    start = ct.rng(m).integers(0, 2**32, m, dtype="uint32")
    y = ct.to_device(start)
    ct.synchronize()
    graph_of_three = captured(stream, mixing(y, m, (7, 5, 3)))
    again = call("cuGraphInstantiate", graph_of_three, 0)
    for _ in range(2):
        call("cuGraphLaunch", again, handle(stream))
    stream.synchronize()
    ct.check(y, expected(start, (7, 5, 3) * 2), name=f"n = {m}")
    call("cuGraphExecDestroy", again)

# %% [markdown]
# Four ways to start the same kernel from Python, and the graph. On the host: the
# time until the last launch is handed over. As sent: what the GPU takes for it
# then. Behind a gate: all launches are waiting when the first kernel begins.

# %% ways
from cudatut.book.memory.graphs.calls import address, bindings, function_of
from cudatut.book.memory.graphs.ways import pytorch, take

f = cuda.module_from_buffer(mix.cubin).get_function(mix.symbol)
prepared = cuda.module_from_buffer(mix.cubin).get_function(mix.symbol)
prepared.prepare("PIi")
where, blocks = address(x), ct.cdiv(n, 256)
bare = function_of(mix)
# For cuLaunchKernel: the addresses of the arguments, put together beforehand.
values = [np.array([where, k, n], "uint64") for k in range(count)]
places = [v.ctypes.data + 8 * np.arange(3, dtype="uint64") for v in values]
launch_kernel, default = bindings().cuLaunchKernel, handle()


def by_kernel():
    for k in range(count):
        mix(x, k, n, grid=blocks, block=256)


def by_call():
    for k in range(count):
        f(x, np.uint32(k), np.int32(n), grid=(blocks, 1), block=(256, 1, 1))


def by_prepared():
    for k in range(count):
        prepared.prepared_call((blocks, 1), (256, 1, 1), where, k, n)


def by_driver():
    for place in places:
        launch_kernel(bare, blocks, 1, 1, 256, 1, 1, 0, default, place, 0)


def by_graph():
    call("cuGraphLaunch", ready, default)


ways = {
    "ct.Kernel": by_kernel,
    "PyCUDA": by_call,
    "PyCUDA, prepared": by_prepared,
    "cuLaunchKernel": by_driver,
    "CUDA graph": by_graph,
}
for name, run in ways.items():
    x.set(np.arange(n, dtype="uint32"))
    run()
    ct.check(x, expected(np.arange(n, dtype="uint32"), range(count)), name=name)
ways |= pytorch(count)

# %% ways-table
costs = take(ways, count, rounds)
ct.table(
    "a chain of short kernels, per kernel",
    costs,
    corner="started by",
    units=dict.fromkeys(("host", "as sent", "behind a gate"), "us"),
)

# %% [markdown]
# A graph by its number of kernels: what it costs to make, what the host spends to
# start it, and how often it has to run until it has paid for itself.

# %% numbers
from functools import partial
from time import perf_counter

numbers = (1, 4, 16, 64, 240, 480)  # kernels


def host_us(run):
    """Microseconds of the host, without waiting for the GPU at the end."""
    begin = perf_counter()
    made = run()
    took = 1e6 * (perf_counter() - begin)
    ct.synchronize()
    return took, made


rows = {}
for m in numbers:
    some = mixing(x, n, range(m))
    capture_us, kept = host_us(partial(captured, stream, some))
    make_us, one = host_us(partial(call, "cuGraphInstantiate", kept, 0))
    runs = {
        "graph": partial(call, "cuGraphLaunch", one, default),
        "one by one": some,
    }
    found = take(runs, m, rounds)
    saved = m * (found["one by one"]["as sent"] - found["graph"]["as sent"])
    rows[f"{m}"] = {
        "capture": capture_us,
        "instantiate": make_us,
        "start it": m * found["graph"]["host"],
        "run it, per kernel": found["graph"]["as sent"],
        "pays after": (capture_us + make_us) / saved if saved > 0 else None,
    }
    call("cuGraphExecDestroy", one)
ct.table(
    "graphs by their number of kernels",
    rows,
    corner="kernels",
    units=dict.fromkeys(
        ("capture", "instantiate", "start it", "run it, per kernel"), "us"
    )
    | {"pays after": "runs"},
)

# %% [markdown]
# The same chain with kernels that take longer and longer. One by one, a kernel
# takes the time of its launch or its own, whichever is longer: the prediction.

# %% lengths
chain = ct.Kernel("memory/graphs/graphs.cu", "chain")
lengths = (0, 125, 250, 500, 1000, 2000, 4000, 8000)  # steps
z = ct.to_device(np.arange(n, dtype="uint32"))
runs = {}
for steps in lengths:

    def launch(on=None, steps=steps):
        for k in range(count):
            chain(z, k, n, steps, grid=blocks, block=256, stream=on)

    one = call(
        "cuGraphInstantiate",
        captured(stream, partial(launch, stream)),
        0,
    )
    runs[f"one by one, {steps}"] = launch
    runs[f"CUDA graph, {steps}"] = partial(call, "cuGraphLaunch", one, default)
found = take(runs, count, min(rounds, 9))  # all of them take turns
lines = {"one by one": [], "predicted": [], "CUDA graph": []}
longer = {}
for steps in lengths:
    own = found[f"one by one, {steps}"]["behind a gate"]
    host = found[f"one by one, {steps}"]["host"]
    took = {
        name: found[f"{name}, {steps}"]["as sent"]
        for name in ("one by one", "CUDA graph")
    }
    took["predicted"] = max(own, host)
    for name, us in took.items():
        lines[name].append((own, us))
    longer[f"{steps}"] = {
        "a kernel": own,
        **took,
        "one by one / CUDA graph": took["one by one"] / took["CUDA graph"],
        "predicted / one by one": took["predicted"] / took["one by one"],
    }

# %% lengths-chart
ct.series(
    "a chain of kernels, by how long each takes",
    x=("a kernel by itself", "us"),
    y=("each kernel of the chain", "us"),
    lines=lines,
)

# %% lengths-table
ct.table(
    "launches and a graph, by the length of the kernels",
    longer,
    corner="steps of each kernel",
    units=dict.fromkeys(
        ("a kernel", "one by one", "predicted", "CUDA graph"), "us"
    ),
)
