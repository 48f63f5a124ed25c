# ---
# jupyter:
#   cudatut:
#     title: {en: "Grouped products", zh: "分组乘法"}
#     requires: sm_90a
#     timeout_s: 240
#     sizes:
#       mixtral: [[8, 8, 2, 4096, 4096, 14336, 0.0], [8, 8, 2, 64, 64, 128, 0.0]]
#       deepseek: [[64, 256, 8, 4096, 7168, 2048, 0.0], [4, 8, 2, 64, 64, 128, 0.0]]
#       fewer: [[64, 256, 8, 1024, 7168, 2048, 0.0], [4, 8, 2, 16, 64, 64, 0.0]]
#       even: [[128, 128, 8, 2048, 2048, 768, 0.0], [16, 16, 2, 64, 64, 64, 0.0]]
#       skewed: [[128, 128, 8, 2048, 2048, 768, 1.0], [16, 16, 2, 64, 64, 64, 1.0]]
# ---

# %% [markdown]
# Many products of different sizes in one launch. First a layer of experts as a
# whole program.

# %% program
import numpy as np

import cudatut as ct

from cudatut.book.numbers import bf16
from cudatut.book.tensor.gemm import grouped_product as grouped

counts = [300, 0, 17, 129, 64, 1, 0, 200]  # rows of each expert
n, k, rng = 520, 264, ct.rng(0)
x = bf16.to_bf16(rng.standard_normal((sum(counts), k)))
weights = bf16.to_bf16(rng.standard_normal((len(counts), n, k)))
ends = np.cumsum(counts).astype("int32")
out = ct.empty((sum(counts), n), "uint16")
on_gpu = [ct.to_device(y) for y in (x, weights, ends)]
grouped.prepare(*on_gpu, out)()

x, weights = (bf16.to_float(y).astype("float64") for y in (x, weights))
parts = np.split(x, ends[:-1])
expected = np.concatenate([part @ w.T for part, w in zip(parts, weights)])
ct.check(
    bf16.to_float(out.get()), expected, name="experts", rtol=2**-8, atol=1e-3
)

# %% [markdown]
# The same launch by hand. Many products may have many maps, so these lie in
# global memory, and the kernel takes one struct with addresses. Here one map
# has the rows of all tokens, one the weights of all experts below each other; a
# group says where its part of them begins, and `ends` how many rows it has.

# %% launch
rows, groups = len(x), len(counts)
on_gpu_x, on_gpu_weights, on_gpu_ends = on_gpu
tile = grouped.Tile(columns=128, stages=6)
maps = ct.tensor_map(on_gpu_x, (64, 64), swizzle=128)
flat = on_gpu_weights.reshape(groups * n, k)
maps += ct.tensor_map(flat, (tile.columns, 64), swizzle=128)
table = b"".join(
    bytes(grouped.Group(C=int(out.gpudata), n=n, k=k, row_b=g * n))
    for g in range(groups)
)
tables = [
    ct.to_device(np.frombuffer(words, "uint8").copy())
    for words in (maps, table)
]
taken = ct.to_device(np.zeros(1, "uint32"))  # tiles that blocks have taken
where = [int(y.gpudata) for y in (*tables, on_gpu_ends, taken)]
# 12: tiles below each other in the order.
work = grouped.Work(*where, groups, rows, 12)

kernel = ct.Kernel("tensor/gemm/grouped.cu", "grouped<128,6>", arch="sm_90a")
ct.poison(out)
# One block for each SM: who finds no tile ends at once.
kernel(work, grid=ct.device().sm_count, block=384, shared=tile.shared)
got = bf16.to_float(out.get())
ct.check(got, expected, name="launched by hand", rtol=2**-8, atol=1e-3)
ct.check(taken, np.zeros(1, "uint32"), name="the counter is 0 again")

# %% setup
import random
import time

from cudatut.book.measure import spread
from cudatut.book.numbers.bf16 import to_bf16

from cudatut.book.tensor.gemm import gemm
from cudatut.book.tensor.grouped import routing
from cudatut.book.rivals import torch_rival as rivals
from cudatut.book.rivals import cublas_grouped

Options = grouped.Options

# experts here, in the model, taken by a token; tokens; k, n; Zipf's exponent
mixtral = (8, 8, 2, 4096, 4096, 14336, 0.0)
deepseek = (64, 256, 8, 4096, 7168, 2048, 0.0)
fewer = (64, 256, 8, 1024, 7168, 2048, 0.0)
even = (128, 128, 8, 2048, 2048, 768, 0.0)
skewed = (128, 128, 8, 2048, 2048, 768, 1.0)
LAYERS = {
    name: routing.Layer(*layer)
    for name, layer in {
        "8 large experts": mixtral,
        "64 experts": deepseek,
        "64 experts, fewer tokens": fewer,
        "128 small experts": even,
        "128 small experts, skewed": skewed,
    }.items()
}

# %% [markdown]
# What can one launch gain? Waves of tiles of 128 x 256 on 132 SMs, bytes at the
# rate of the memory, and two microseconds for each launch.

# %% predict
SMS, RATE, MEMORY, LAUNCH = 132, 700e6, 3e6, 2.0  # per microsecond


def tiles(rows, n):
    return ct.cdiv(rows, 128) * ct.cdiv(n, 256)


def bytes_of(rows, n, k):
    """Of bf16: the rows, the weights, and the results."""
    return 2 * (rows * k + n * k + rows * n)


def in_waves(count, k):
    """Microseconds of so many tiles."""
    tile = 2 * 128 * 256 * k / (RATE / SMS)
    return ct.cdiv(count, SMS) * tile


sizes, guesses = {}, {}
for name, layer in LAYERS.items():
    n, k = layer.n, layer.k
    used = [int(m) for m in routing.rows_of_experts(layer) if m]
    sizes[name] = {
        "rows": sum(used),
        "experts with rows": len(used),
        "most rows": max(used),
        "n": n,
        "k": k,
    }
    traffic = [bytes_of(m, n, k) / MEMORY for m in used]
    # Each product as fast as its FLOPs or bytes allow; or in whole waves.
    ideal = [
        max(2 * m * n * k / RATE, us) + LAUNCH for m, us in zip(used, traffic)
    ]
    waves = [
        max(in_waves(tiles(m, n), k), us) + LAUNCH
        for m, us in zip(used, traffic)
    ]
    together = sum(tiles(m, n) for m in used)
    one = max(in_waves(together, k), sum(traffic)) + LAUNCH
    guesses[name] = {
        "waves, a loop": sum(ct.cdiv(tiles(m, n), SMS) for m in used),
        "waves, one launch": ct.cdiv(together, SMS),
        "one launch": one,
        "gain at least": sum(ideal) / one,
        "gain at most": sum(waves) / one,
    }
ct.table("what is multiplied", sizes, corner="layer")
# %% predict-gain
ct.table(
    "computed: 700 TFLOP/s, 3 TB/s, 2 us a launch", guesses, corner="layer",
    units={"one launch": "us"},
)  # fmt: skip

# %% [markdown]
# Right before fast. Whole numbers allow no error but the last rounding; rows
# after the last group, and whatever lies beside the arrays, stay as they are.

# %% check
COUNTS = {
    "ragged": [70, 0, 1, 128, 0, 0, 195, 64, 0],
    "no rows at all": [0, 0, 0],
    "one group has all": [0, 1000, 0],
    "as many groups as fit": ct.rng(3).integers(0, 9, 384).tolist(),
}
for tile in grouped.TILES:
    for kind, counts in COUNTS.items():
        for n, k in ((8, 8), (264, 200)):
            rng, rows = ct.rng(n), sum(counts) + 5
            x = rng.integers(-4, 5, (rows, k))
            weights = rng.integers(-4, 5, (len(counts), n, k))
            ends, out = np.cumsum(counts), ct.empty((rows, n), "uint16")
            want = np.full((rows, n), 7, "uint16")
            out.fill(np.uint16(7))
            on_gpu = [ct.to_device(to_bf16(y)) for y in (x, weights)]
            last = ct.to_device(ends.astype("int32"))
            grouped.prepare(*on_gpu, last, out, Options(tile))()
            for w, end, count in zip(weights, ends, counts):
                own = slice(end - count, end)
                want[own] = to_bf16(x[own] @ w.T)
            ct.check(
                out, want, name=f"{kind}, {n} x {k}, tiles of {tile.columns}"
            )

# %% [markdown]
# The times. First the small experts that few tokens like, and some many.


# %% bench
def contestants(some):
    layer = some.x, some.weights
    host = some.host_ends.tolist()
    return {
        "one launch": grouped.prepare(*layer, some.ends, some.out),
        "loop": grouped.loop(*layer, host, some.out),
        "loop, as a graph": grouped.loop(*layer, host, some.out, graph=True),
        "cuBLAS, grouped": cublas_grouped.product(*layer, host, some.out),
        "PyTorch, grouped": grouped.torch_grouped(*layer, some.ends),
    }


times = {}


def contest(name):
    some = routing.Products(LAYERS[name])
    times[name] = ct.bench(
        contestants(some), flops=some.flops, rounds=25, name=name
    )


contest("128 small experts, skewed")
# %% bench-even
contest("128 small experts")
# %% bench-deepseek
contest("64 experts")
# %% bench-fewer
contest("64 experts, fewer tokens")
# %% bench-mixtral
contest("8 large experts")

# %% [markdown]
# Large experts alone: final.cu, whose blocks share factors in clusters, for one
# expert after the other.


# %% bench-final
def loop_of_final(some):
    ends = some.host_ends.tolist()
    runs = [
        gemm.prepare(
            some.x[first:end],
            some.weights[expert],
            some.out[first:end],
            transpose_b=True,
        )
        for expert, (first, end) in enumerate(zip([0, *ends], ends))
        if end > first
    ]

    def call():
        for run in runs:
            run()

    return call


some = routing.Products(LAYERS["8 large experts"])
host = some.host_ends.tolist()
ct.bench(
    {
        "one launch": grouped.prepare(
            some.x, some.weights, some.ends, some.out
        ),
        "loop of final.cu": loop_of_final(some),
        "loop": grouped.loop(some.x, some.weights, host, some.out),
    },
    flops=some.flops,
    rounds=25,
    name="8 large experts, final.cu",
)

# %% [markdown]
# All layers: how many times as long as the one launch the others take.

# %% gains
table = {}
for name in LAYERS:
    took = {row.name: row.median_us for row in times[name].rows}
    if one := took.pop("one launch", None):
        table[name] = {"one launch": one} | {
            other: us / one for other, us in took.items()
        }
if not ct.tool.running():
    ct.table(
        "times as long as one launch", table, corner="layer",
        units={"one launch": "us"},
    )  # fmt: skip

# %% [markdown]
# With the host's time: from the call until the GPU has ended, microseconds.


# %% host
def from_outside(run):
    ct.synchronize()
    begin = time.perf_counter()
    run()
    ct.synchronize()
    return (time.perf_counter() - begin) * 1e6


some = routing.Products(LAYERS["128 small experts, skewed"])
runs = {name: run for name, run in contestants(some).items() if run}
for run in runs.values():
    run()
if not ct.tool.running():
    taken = ct.take_turns(runs, 25, random.Random(0), time=from_outside)
    found = {name: spread.summary(all_) for name, all_ in taken.items()}
    ct.table(
        "from the call to the end",
        {
            name: {"time": one.median, "p20": one.p20, "p80": one.p80}
            for name, one in found.items()
        },
        corner="way",
        units=dict.fromkeys(("time", "p20", "p80"), "us"),
    )

# %% [markdown]
# Who gets which tile: in turn, or who has just ended one. And the three tiles.

# %% turns
table, spreads = {}, {}
for name in ("128 small experts", "128 small experts, skewed", "64 experts"):
    some = routing.Products(LAYERS[name])
    runs = {
        what: grouped.prepare(
            some.x, some.weights, some.ends, some.out, options
        )
        for what, options in {
            "by demand": Options(),
            "dealt in turn": Options(by_demand=False),
            "256 columns": Options(grouped.TILES[0]),
            "128 columns": Options(grouped.TILES[1]),
            "64 columns": Options(grouped.TILES[2]),
        }.items()
    }
    if found := spread.times(runs):
        table[name] = {what: one.median for what, one in found.items()}
        spreads[name] = {what: one.middle for what, one in found.items()}
if table:
    units = dict.fromkeys(found, "us")
    ct.table("who computes what", table, corner="layer", units=units)

# %% turns-spread
BESIDE = "from p20 to p80, beside the median"
if spreads:
    units = dict.fromkeys(found, "%")
    ct.table(BESIDE, spreads, corner="layer", units=units)

# %% [markdown]
# Groups of equal size by padding, and one batched product of PyTorch.

# %% padded
table, spreads = {}, {}
for name in ("128 small experts", "128 small experts, skewed"):
    layer = LAYERS[name]
    some = routing.Products(layer)
    most = int(some.counts.max())
    x = routing.random_matrix((layer.experts, most, layer.k), 9)
    out = ct.empty((layer.experts, most, layer.n), "uint16")
    batched = rivals.rival(
        lambda torch, x, w, out: (
            lambda: torch.bmm(x, w.transpose(1, 2), out=out)
        ),
        x, some.weights, out,
    )  # fmt: skip
    one = grouped.prepare(some.x, some.weights, some.ends, some.out)
    found = spread.times({"one launch": one, "batched": batched})
    if found:
        rows = {"rows": some.rows, "rows, padded": layer.experts * most}
        table[name] = rows | {what: one.median for what, one in found.items()}
        spreads[name] = {what: one.middle for what, one in found.items()}
if table:
    units = dict.fromkeys(found, "us")
    ct.table("padded groups", table, corner="layer", units=units)

# %% padded-spread
if spreads:
    units = dict.fromkeys(found, "%")
    ct.table(BESIDE, spreads, corner="layer", units=units)
