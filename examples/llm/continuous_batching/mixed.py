# ---
# jupyter:
#   cudatut:
#     title: {en: "Continuous batching: the attention of a mixed step", zh: "连续批处理：混合步的注意力"}
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
# The attention of one mixed step: requests that decode, and a chunk of a
# prompt. Unused slots hold NaN.

# %% mixed
import numpy as np

import cudatut as ct
from cudatut.book.llm.kernels.attention import flash
from cudatut.book.llm.model.reference import attention
from cudatut.book.numbers.bf16 import to_bf16, to_float

HEADS, KV_HEADS, DIM, SIZE = 9, 3, 64, 16
decoding = 63
chunk = 449
before = 1000  # tokens of that prompt that are computed already
rng = ct.rng(3)
lengths = np.append(rng.integers(32, 769, decoding), before + chunk)
lengths = lengths.astype("int32")
queries = np.append(np.ones(decoding, int), chunk)
starts = np.append(0, np.cumsum(queries)).astype("int32")
owned = -(-lengths // SIZE)
free = iter(rng.permutation(owned.sum()).tolist())
tables = np.full((len(lengths), owned.max()), -1, "int32")
for i, n in enumerate(owned):
    tables[i, :n] = [next(free) for _ in range(n)]
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

tile = flash.tile_for(DIM)
work = flash.order(starts, lengths, tile)  # (request, tile of its queries)
count = len(lengths)
ct.facts(
    "rows of one mixed step",
    {
        "tokens": int(starts[-1]),
        "requests that decode": decoding,
        "tokens of the chunk": chunk,
        "tiles of queries": len(work),
        "padded to a rectangle, tokens": count * chunk,
    },
)

# %% [markdown]
# The launch, by hand. A thread block takes one tile of one head, whichever
# request it belongs to. So the grid follows from the list and the heads.

# %% launch
D, BM, BN, WARPS, BLOCKS = tile
name = f"flash<{D},{BM},{BN},{WARPS},{BLOCKS},true,true,false>"
kernel = ct.Kernel("llm/kernels/attention/flash.cu", name)
# Queries, two tiles of keys and of values, two lists of slots.
shared = 2 * D * (BM + 4 * BN) + 2 * 4 * BN
row, kv_row = HEADS * DIM, KV_HEADS * DIM  # elements from row to row
none = np.uint64(0)  # no log-sum-exps are wanted, and bf16 has no scales
power, bend = np.log2(np.e) / np.sqrt(DIM), 0.0  # exp2(power * score)
left, right = (1 << 30) - 1, 0  # keys that a query sees before it, behind it

d_q, d_keys, d_values = map(ct.to_device, (q, keys, values))
d_work, d_starts, d_lengths, d_tables = map(
    ct.to_device, (work, starts, lengths, tables)
)
out = ct.empty(q.shape, "uint16")
kernel(
    d_q, row, d_keys, d_values, kv_row, out, row, none, HEADS, KV_HEADS, DIM,
    power, bend, left, right, len(work), 0, 0, d_work, d_starts, d_lengths,
    d_tables, tables.shape[1], SIZE, none,
    grid=len(work) * HEADS, block=32 * WARPS, shared=shared,
)  # fmt: skip

for i in (0, 1, count - 1):
    own = slice(starts[i], starts[i + 1])
    positions = np.arange(lengths[i] - queries[i], lengths[i])
    expected = attention(
        to_float(q[own]),
        to_float(keys[where[i]]),
        to_float(values[where[i]]),
        positions,
    )
    ct.check(
        to_float(out.get()[own]).reshape(expected.shape),
        expected,
        atol=0.015,
        name=f"request {i}, {queries[i]} queries",
    )

# %% [markdown]
# One launch, a launch for each request, or two kernels? From here on by the
# launchers, which check what they are given.

# %% mixed-bench
from random import Random

import pycuda.driver as cuda

from cudatut.book.llm.kernels.attention import decode
from cudatut.book.measure.graphs import Graph, elapsed


def lists(first, last):
    """What flash.paged wants to know of requests first to last - 1."""
    own = starts[first : last + 1], lengths[first:last]
    on_gpu = [ct.to_device(np.ascontiguousarray(a)) for a in own]
    of_tables = ct.to_device(np.ascontiguousarray(tables[first:last]))
    return *on_gpu, of_tables, SIZE, ct.to_device(flash.order(*own, tile))


together = lists(0, count)
alone = [lists(i, i + 1) for i in range(count)]
only_chunk = lists(decoding, count)
few = [
    ct.to_device(np.ascontiguousarray(a[:decoding])) for a in (tables, lengths)
]
longest = int(lengths[:decoding].max())
need = decode.sizes(decoding, HEADS, KV_HEADS, DIM, longest)
lse = ct.empty((decoding, HEADS), "float32")
partials = ct.empty(need.partials, "float32")
tickets = ct.to_device(np.zeros(need.tickets, "uint32"))
apart = ct.empty(q.shape, "uint16")


stream = cuda.Stream()


def one_by_one():
    for of_one in alone:
        flash.paged(d_q, d_keys, d_values, out, *of_one, stream=stream)


def one_launch():
    flash.paged(d_q, d_keys, d_values, out, *together, stream=stream)


def two_kernels():
    decode.paged(
        d_q[:decoding], d_keys, d_values, *few, SIZE, apart[:decoding], lse,
        partials, tickets, longest, stream=stream,
    )  # fmt: skip
    flash.paged(d_q, d_keys, d_values, apart, *only_chunk, stream=stream)


def graph_us(graph):
    """Microseconds of a graph; L2 is flushed first, and the host has started
    the graph meanwhile.
    """
    ct.flush_l2()
    return elapsed(stream, graph.launch)


ct.synchronize()
two_kernels()
ct.synchronize()
ct.check(
    to_float(apart.get()),
    to_float(out.get()),
    atol=0.015,
    name="two kernels beside one",
)
# Each way is a graph, so that no host starts its launches one by one.
ways = {
    "a launch per request": one_by_one,
    "one launch": one_launch,
    "decode.cu and flash.cu": two_kernels,
}
passes = 100
graphs = {way: Graph(work, stream) for way, work in ways.items()}
found = ct.take_turns(
    {way: lambda graph=graph: graph for way, graph in graphs.items()},
    passes,
    Random(0),
    time=lambda run: graph_us(run()),
)
ct.table(
    "attention of one mixed step, each way a CUDA graph",
    {
        way: {
            "launches": graphs[way].nodes,
            "time": float(np.median(us)),
            "beside one launch": float(
                np.median(us) / np.median(found["one launch"])
            ),
        }
        for way, us in found.items()
    },
    corner="way",
    units={"time": "us", "beside one launch": "×"},
)
