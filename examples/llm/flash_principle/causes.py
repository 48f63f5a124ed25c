# ---
# jupyter:
#   cudatut:
#     title: {en: "FlashAttention, the principle: the order of blocks", zh: "FlashAttention 原理：线程块的次序"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 180
#     sizes:
#       n: [4096, 192]
#       many: [8192, 256]
# ---

# %% [markdown]
# With a causal mask some blocks have far more tiles of keys than others. Does
# it matter which of them begin first? The prediction is made before anything
# runs: blocks begin in the order of the grid, each on the first place that is
# free, and take as long as they have tiles of keys.

# %% setup
import heapq

import numpy as np

import cudatut as ct
from cudatut.book.llm.kernels.attention import exact, flash
from cudatut.book.numbers.bf16 import to_bf16, to_float
from cudatut.book.rivals import sdpa

SMS = ct.device().sm_count


def end_of(costs, places):
    """When the last block ends, if each begins on the first free place."""
    free = [0] * places
    for cost in costs:
        heapq.heapreplace(free, free[0] + cost)
    return max(free)


def predicted(order, n, bm, bn, places):
    """Time with a causal mask beside the time without, in %.

    order: (head, tile of queries) of each block. n keys; bm queries and bn keys
    are a tile.
    """
    whole = end_of([ct.cdiv(n, bn)] * len(order), places)
    costs = [ct.cdiv(min(n, (tile + 1) * bm), bn) for _, tile in order]
    return 100 * end_of(costs, places) / whole


def orders(heads, tiles):
    """(head, tile of queries) of each block, in the orders that are compared."""
    short = [(head, tile) for head in range(heads) for tile in range(tiles)]
    turned = [(head, tiles - 1 - tile) for head, tile in short]
    longest = sorted(short, key=lambda block: -block[1])
    return {
        "short to long in each head": short,
        "long to short in each head": turned,
        "the longest of all heads first": longest,
    }


# %% [markdown]
# `flash_principle.cu` in three orders: as it is, with `blockIdx.x` turned
# round, and with the axes of the grid exchanged besides.

# %% variants
PRINCIPLE = "llm/flash_principle/flash_principle.cu"
original = ct.Kernel(PRINCIPLE, "flash_principle")
TOP, HEAD = "top = blockIdx.x * QUERIES", "head = (size_t)blockIdx.y"
CHANGES = {
    "short to long in each head": (TOP, HEAD),
    "long to short in each head": (
        "top = (gridDim.x - 1 - blockIdx.x) * QUERIES",
        HEAD,
    ),
    "the longest of all heads first": (
        "top = (gridDim.y - 1 - blockIdx.y) * QUERIES",
        "head = (size_t)blockIdx.x",
    ),
}
variants = {}
for name, (top, head) in CHANGES.items():
    source = original.source
    assert source.count(TOP) == source.count(HEAD) == 1
    source = source.replace(TOP, top).replace(HEAD, head)
    variants[name] = ct.Kernel(source, "flash_principle")

heads, d = 16, 64


def launch(name, q, k, v, out, n, causal):
    grid = ct.cdiv(n, 64), len(q)
    if name == "the longest of all heads first":
        grid = grid[::-1]
    variants[name](q, k, v, out, n, d**-0.5, int(causal), grid=grid, block=256)


# %% check
for length in (1, 65, 257):
    host = ct.rng(length).standard_normal((3, 3, length, d), "float32")
    on_gpu = [ct.to_device(x) for x in host]
    q, k, v = host.astype("float64")
    for causal in (False, True):
        s = q @ k.swapaxes(1, 2) * d**-0.5
        if causal:
            s[:, np.triu(np.ones((length, length), bool), 1)] = -np.inf
        p = np.exp(s - s.max(axis=-1, keepdims=True))
        want = p @ v / p.sum(axis=-1, keepdims=True)
        for name in variants:
            out = ct.empty(q.shape, "float32")
            launch(name, *on_gpu, out, length, causal)
            mask = "causal" if causal else "no mask"
            label = f"{name}, n = {length}, {mask}"
            ct.check(out, want, atol=5e-5, name=label)

# %% predict
n = 4096
per_sm = original.resources(256).blocks_per_sm
told = {
    name: predicted(order, n, 64, 32, SMS * per_sm)
    for name, order in orders(heads, ct.cdiv(n, 64)).items()
}
ct.facts(
    "predicted: causal, of the time without a mask",
    {"blocks on an SM": per_sm}
    | {name: (share, "%") for name, share in told.items()},
)

# %% bench
rng = ct.rng(2)
q, k, v = (
    ct.to_device(rng.standard_normal((heads, n, d), "float32"))
    for _ in range(3)
)
out = ct.empty(q.shape, "float32")
runs = {}
for causal in (False, True):
    mask = "causal" if causal else "no mask"
    for name in variants if causal else list(variants)[:1]:
        runs[f"{name}, {mask}"] = (
            lambda name=name, causal=causal: launch(
                name, q, k, v, out, n, causal
            )
        )  # fmt: skip
times = ct.bench(runs, rounds=25, name=f"{heads} heads of {d}, {n} tokens")

# %% orders
first = "short to long in each head"
if not ct.tool.running():
    whole = times[f"{first}, no mask"]
    ct.table(
        "flash_principle.cu, causal, of the time without a mask",
        {
            name: {
                "predicted": told[name],
                "measured": 100
                * times[f"{name}, causal"].median_us
                / whole.median_us,
            }
            for name in variants
        },
        corner="order of blocks",
        units={"predicted": "%", "measured": "%"},
    )

# %% [markdown]
# The same question to `flash.cu`, which begins with the longest tiles of all
# heads. A variant has the order in which FlashAttention-2 numbers its blocks:
# the tiles of a head one after the other, from short to long. Two lines differ.

# %% flash
FOLDER = "llm/kernels/attention/"
ORDER = {
    "item = blockIdx.x / heads, head = blockIdx.x % heads": (
        "item = blockIdx.x % items, head = blockIdx.x / items"
    ),
    "sequence = item % sequences, tile = tiles - 1 - item / sequences": (
        "sequence = item / tiles, tile = item % tiles"
    ),
}


def in_their_order(tile):
    """flash.cu for heads of `tile.d`, with the blocks of FlashAttention-2."""
    kernel = flash.instance(tile, False, True, False)
    source = kernel.source
    for mine, theirs in ORDER.items():
        assert source.count(mine) == 1
        source = source.replace(mine, theirs)
    source = source.replace('"flash_step.cuh"', f'"{FOLDER}flash_step.cuh"')
    return ct.Kernel(source, kernel.name)


def run_of(kernel, tile, q, keys, values, out, causal):
    """As `flash.contiguous` launches it, by hand."""
    sequences, length, heads, d = q.shape
    items, row = sequences * ct.cdiv(length, tile.bm), heads * d
    none, most = np.uint64(0), (1 << 30) - 1

    def run():
        kernel(
            q, row, keys, values, row, out, row, none, heads, heads, d,
            np.log2(np.e) / np.sqrt(d), 0.0, most, 0 if causal else most,
            items, length, length, none, none, none, none, 0, 1, none,
            grid=items * heads, block=32 * tile.warps,
            shared=tile.shared(False),
        )  # fmt: skip

    return run


def random_bf16(shape, seed):
    return ct.to_device(to_bf16(ct.rng(seed).standard_normal(shape, "float32")))


for d in (64, 128):
    tile = flash.tile_for(d)
    theirs = in_their_order(tile)
    arrays = [random_bf16((2, 300, 3, d), seed) for seed in range(3)]
    for causal in (False, True):
        out = ct.empty(arrays[0].shape, "uint16")
        run_of(theirs, tile, *arrays, out, causal)()
        q, k, v = (x.get()[1] for x in arrays)
        want, mean = exact.attention(q, k, v, causal=causal)
        name = f"flash.cu, D = {d}, {'causal' if causal else 'no mask'}"
        got = to_float(out.get()[1])
        ct.check(got, want, name=name, **exact.bounds(mean))

# %% flash-predict
# Sequences, heads, tokens. FlashAttention-2's tiles are those that its kernels
# have in their names; we take two of its blocks on an SM, as of ours.
n = 4096
many = 8192
CASES = {
    "32 heads of 64, 4096 tokens": (1, 32, n, 64, (128, 128)),
    "2 x 16 heads of 128, 8192 tokens": (2, 16, many, 128, (128, 64)),
}
FIRST, THEIRS = "the longest of all heads first", "short to long in each head"
foretold = {}
for name, (sequences, heads, length, d, their_tile) in CASES.items():
    tile = flash.tile_for(d)
    some = orders(sequences * heads, ct.cdiv(length, tile.bm))
    places = SMS * 2
    foretold[name] = {
        "flash.cu": predicted(
            some[FIRST], length, tile.bm, tile.bn, places
        ),
        "flash.cu, in their order": predicted(
            some[THEIRS], length, tile.bm, tile.bn, places
        ),
        "FlashAttention-2": predicted(
            some[THEIRS], length, *their_tile, places
        ),
    }  # fmt: skip
ct.table(
    "predicted for bf16: causal, of the time without a mask",
    foretold,
    corner="shape",
    units=dict.fromkeys(foretold[name], "%"),
)

# %% flash-bench
found = {}
for name, (sequences, heads, length, d, _) in CASES.items():
    arrays = [random_bf16((sequences, length, heads, d), i) for i in range(3)]
    out, tile = ct.empty(arrays[0].shape, "uint16"), flash.tile_for(d)
    both = {
        "flash.cu": flash.instance(tile, False, True, False),
        "flash.cu, in their order": in_their_order(tile),
    }
    runs = {}
    for causal, mask in ((False, "no mask"), (True, "causal")):
        for label, kernel in both.items():
            runs[f"{label}, {mask}"] = run_of(
                kernel, tile, *arrays, out, causal
            )  # fmt: skip
        runs[f"FlashAttention-2, {mask}"] = sdpa.rival(
            "FLASH_ATTENTION", *arrays, causal
        )
    found[name] = ct.bench(runs, rounds=15, name=name)

# %% flash-orders
table = {}
for name, bench in found.items() if not ct.tool.running() else ():
    seen = [row.name for row in bench.rows]
    for kernel, share in foretold[name].items():
        if f"{kernel}, causal" not in seen:
            continue
        pair = [bench[f"{kernel}, {mask}"] for mask in ("causal", "no mask")]
        row = {"predicted": share}
        row["measured"] = 100 * pair[0].median_us / pair[1].median_us
        # The clock differs where the power limit lowers it.
        cycles = [one.cycles for one in pair]
        row["in cycles"] = 100 * cycles[0] / cycles[1] if all(cycles) else None
        table[f"{kernel}, {name}"] = row
if table:
    ct.table(
        "causal, of the time without a mask",
        table,
        corner="kernel and shape",
        units=dict.fromkeys(("predicted", "measured", "in cycles"), "%"),
    )
