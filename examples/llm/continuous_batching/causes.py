# ---
# jupyter:
#   cudatut:
#     title: {en: "Continuous batching: the two kernels of a mixed step, alone and side by side", zh: "连续批处理：混合步的两个 kernel，单独与同时"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 120
#     sizes:
#       decoding: [63, 2]
#       chunk: [449, 70]
#       before: [1000, 40]
#       passes: [100, 1]
# ---

# %% [markdown]
# One launch of `flash.cu` computes a mixed step faster than `decode.cu` and
# `flash.cu` one after the other. Is it because both parts of the step run at
# the same time? Then each kernel alone takes about its share of the sum, and
# the two take less than the sum where they may overlap, on two streams.

# %% setup
from random import Random

import numpy as np
import pycuda.driver as cuda

import cudatut as ct
from cudatut.book.llm.kernels.attention import decode, exact, flash
from cudatut.book.measure.graphs import Graph, elapsed
from cudatut.book.numbers.bf16 import to_bf16, to_float

# %% step
# The same step as in the example of the mixed step: 63 requests that decode and
# a chunk of a prompt. Unused slots hold NaN.
HEADS, KV_HEADS, DIM, SIZE = 9, 3, 64, 16
decoding = 63
chunk = 449
before = 1000
rng = ct.rng(3)
lengths = np.append(rng.integers(32, 769, decoding), before + chunk)
lengths = lengths.astype("int32")
queries = np.append(np.ones(decoding, int), chunk)
starts = np.append(0, np.cumsum(queries)).astype("int32")
owned = -(-lengths // SIZE)
free = iter(rng.permutation(owned.sum()).tolist())
tables = np.full((len(lengths), owned.max()), -1, "int32")
for i, count in enumerate(owned):
    tables[i, :count] = [next(free) for _ in range(count)]
shape = int(owned.sum()) * SIZE, KV_HEADS, DIM
keys, values = (np.full(shape, 0x7FC0, "uint16") for _ in range(2))  # NaN
where = []
for i, length in enumerate(lengths):
    t = np.arange(length)
    where.append(tables[i, t // SIZE] * SIZE + t % SIZE)
    for cache in (keys, values):
        cache[where[i]] = to_bf16(
            rng.standard_normal((length, *shape[1:]), dtype="float32")
        )
q = to_bf16(rng.standard_normal((starts[-1], HEADS, DIM), dtype="float32"))
d_q, d_keys, d_values = map(ct.to_device, (q, keys, values))
tile = flash.tile_for(DIM)


def lists(first, last):
    """What flash.paged wants to know of requests first to last - 1."""
    own = starts[first : last + 1], lengths[first:last]
    on_gpu = [ct.to_device(np.ascontiguousarray(a)) for a in own]
    of_tables = ct.to_device(np.ascontiguousarray(tables[first:last]))
    return *on_gpu, of_tables, SIZE, ct.to_device(flash.order(*own, tile))


together, only_chunk = lists(0, len(lengths)), lists(decoding, len(lengths))
only_few = lists(0, decoding)
few = [
    ct.to_device(np.ascontiguousarray(a[:decoding])) for a in (tables, lengths)
]
longest = int(lengths[:decoding].max())
need = decode.sizes(decoding, HEADS, KV_HEADS, DIM, longest)
lse = ct.empty((decoding, HEADS), "float32")
partials = ct.empty(need.partials, "float32")
tickets = ct.to_device(np.zeros(need.tickets, "uint32"))
out = ct.empty(q.shape, "uint16")

# %% ways
stream, other = cuda.Stream(), cuda.Stream()
forked, joined = cuda.Event(), cuda.Event()


def one_launch():
    flash.paged(d_q, d_keys, d_values, out, *together, stream=stream)


def decode_alone(on=stream):
    decode.paged(
        d_q[:decoding], d_keys, d_values, *few, SIZE, out[:decoding], lse,
        partials, tickets, longest, stream=on,
    )  # fmt: skip


def chunk_alone():
    flash.paged(d_q, d_keys, d_values, out, *only_chunk, stream=stream)


def decoding_by_flash():
    flash.paged(d_q, d_keys, d_values, out, *only_few, stream=stream)


def one_after_the_other():
    decode_alone()
    chunk_alone()


def side_by_side():
    forked.record(stream)
    other.wait_for_event(forked)
    decode_alone(other)
    chunk_alone()
    joined.record(other)
    stream.wait_for_event(joined)


WAYS = {
    "one launch": one_launch,
    "decode.cu, then flash.cu": one_after_the_other,
    "decode.cu beside flash.cu": side_by_side,
    "decode.cu alone": decode_alone,
    "flash.cu alone, the chunk": chunk_alone,
    "flash.cu alone, what decodes": decoding_by_flash,
}

# %% check
ct.synchronize()  # arrays were filled on another stream
for name in list(WAYS)[:3]:
    ct.poison(out)
    ct.synchronize()
    WAYS[name]()
    ct.synchronize()
    found = to_float(out.get())
    for i in (0, decoding - 1, decoding):
        own = slice(starts[i], starts[i + 1])
        of = q[own], keys[where[i]], values[where[i]]
        want, mean = exact.attention(*of, causal=True)
        label = f"{name}, request {i}"
        ct.check(found[own], want, name=label, **exact.bounds(mean))

# %% alone
# Each way is a graph, so that no host starts its launches one by one.
passes = 100
graphs = {name: Graph(work, stream) for name, work in WAYS.items()}


def graph_us(graph):
    """Microseconds of a graph; L2 is flushed first, and the host has started
    the graph meanwhile."""
    ct.flush_l2()
    return elapsed(stream, graph.launch)


found = ct.take_turns(
    {name: lambda graph=graph: graph for name, graph in graphs.items()},
    passes,
    Random(0),
    time=lambda run: graph_us(run()),
)
us = {name: float(np.median(some)) for name, some in found.items()}
ct.table(
    "the attention of a mixed step and its parts",
    {
        name: {
            "p20": float(np.percentile(found[name], 20)),
            "median": us[name],
            "p80": float(np.percentile(found[name], 80)),
        }
        for name in WAYS
    },
    corner="graph",
    units=dict.fromkeys(("p20", "median", "p80"), "us"),
)

# %% sums
# A graph of nothing but one short launch is timed as well: what each graph
# costs besides its kernels.
nothing = ct.Kernel('extern "C" __global__ void nothing() {}', "nothing")
empty = Graph(lambda: nothing(grid=1, block=32, stream=stream), stream)
start = float(np.median([graph_us(empty) for _ in range(passes)]))
alone = [us["decode.cu alone"], us["flash.cu alone, the chunk"]]
ct.facts(
    "the two kernels of a mixed step",
    {
        "a graph of an empty kernel": (start, "us"),
        "sum of both alone, less one empty graph": (sum(alone) - start, "us"),
        "one after the other": (us["decode.cu, then flash.cu"], "us"),
        "the longer one alone": (max(alone), "us"),
        "side by side": (us["decode.cu beside flash.cu"], "us"),
    },
)
