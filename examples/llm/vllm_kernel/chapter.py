# ---
# jupyter:
#   cudatut:
#     title: {en: "vLLM's paged attention kernel, beside ours", zh: "vLLM 的分页注意力 kernel，与本书的对照"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 240
#     sizes:
#       watched: [16, 1]
#       few: [2048, 256]
#       sequences: [64, 2]
#       many: [2048, 256]
#       long: [32768, 1024]
# ---

# %% [markdown]
# Three sequences in blocks of 16: their keys and values are stored as vLLM lays
# them out, then read in two launches.

# %% program
import math

import numpy as np

import cudatut as ct
from cudatut.book.numbers.bf16 import to_bf16, to_float  # in uint16

SOURCE = "llm/vllm_kernel/paged_scheme.cu"
heads, kv_heads, d, block_size, part = 8, 2, 128, 16, 512
lengths = np.array([40, 1, 1333], "int32")
rng = ct.rng(0)
q = to_bf16(rng.standard_normal((3, heads, d)))
keys, values = (
    to_bf16(rng.standard_normal((lengths.sum(), kv_heads, d))) for _ in "kv"
)

# Blocks in no order; where each token goes.
needed = -(-lengths // block_size)
free = list(rng.permutation(needed.sum() + 5))
blocks = len(free)
tables = np.full((3, needed.max()), -1, "int32")
slots = []
for i, n in enumerate(lengths):
    tables[i, : needed[i]] = [free.pop(0) for _ in range(needed[i])]
    j = np.arange(n)
    slots.append(tables[i, j // block_size] * block_size + j % block_size)
slots = np.concatenate(slots).astype("int32")

# A slot that nobody uses holds NaN.
cache = [
    ct.to_device(np.full(blocks * block_size * kv_heads * d, 0x7FC0, "uint16"))
    for _ in "kv"
]
store = ct.Kernel(SOURCE, f"store<{d},{block_size},true,true>")
store(
    ct.to_device(keys), ct.to_device(values), ct.to_device(slots), *cache,
    grid=(len(slots), kv_heads), block=d,
)  # fmt: skip

# A thread block for each head, sequence and part of the keys; then the join.
paged = ct.Kernel(SOURCE, f"paged<{d},{block_size},true,2,true,{part},float>")
join = ct.Kernel(SOURCE, f"join<{d},{part}>")
parts = ct.cdiv(int(lengths.max()), part)
results = ct.empty((3, heads, parts, d), "float32")
of_parts = ct.empty((3, heads, parts), "float32")
out, lse = ct.empty(q.shape, "uint16"), ct.empty((3, heads), "float32")
of_keys = ct.to_device(lengths)
paged(
    ct.to_device(q), *cache, ct.to_device(tables), tables.shape[1], of_keys,
    kv_heads, part, 1 / math.sqrt(d), results, of_parts,
    grid=(heads, 3, parts), block=128, shared=4 * part,
)  # fmt: skip
join(results, of_parts, of_keys, parts, out, lse, grid=(heads, 3), block=d)

expected = []
first = np.cumsum(lengths) - lengths
for i, n in enumerate(lengths):
    mine = slice(first[i], first[i] + n)
    for h in range(heads):
        k, v = (to_float(x[mine, h // 4]) for x in (keys, values))
        scores = k.astype("float64") @ to_float(q[i, h]) / math.sqrt(d)
        p = np.exp(scores - scores.max())
        expected.append(p / p.sum() @ v)
ct.check(
    to_float(out.get()), np.reshape(expected, q.shape), rtol=0, atol=0.02,
    name="the whole scheme; NaN elsewhere",
)  # fmt: skip

# %% setup
from cudatut.book.llm.kernels.attention import exact
from cudatut.book.llm.vllm_kernel import scheme
from cudatut.book.llm.vllm_kernel.loads import Load

every = tuple(scheme.STEPS.values())
scheme.compile_ahead(
    *((d, block, every) for d, block in ((64, 16), (64, 8), (128, 16))),
    *((128, block, (scheme.V1,)) for block in (1, 2, 4, 8, 32)),
)

# %% [markdown]
# One launch of each, of 16 sequences whose query heads share keys by fours:
# these are counted further down.

# %% watched
watched = 16
few = 2048  # keys of each
load = Load(watched, few, 32, 8)
ONE_LAUNCH = [name for name, step in scheme.STEPS.items() if not step.part]
for name in ONE_LAUNCH:
    load.vllm(scheme.STEPS[name])()
load.ours()()
del load

# %% [markdown]
# Right for any number of keys: each step alone, for lengths that fit no block.

# %% check
RAGGED = (1, 15, 16, 17, 511, 512, 513, 1300)
longest = max(RAGGED)
for group, head_dim, block in ((1, 64, 16), (3, 64, 8), (4, 128, 16)):
    rng = ct.rng(group)
    size = len(RAGGED)
    q = to_bf16(rng.standard_normal((size, 2 * group, head_dim)))
    keys, values = (
        to_bf16(rng.standard_normal((size, longest, 2, head_dim))) for _ in "kv"
    )
    count = ct.cdiv(longest, block)
    tables = rng.permutation(size * count).astype("int32").reshape(size, -1)
    slots = np.full((size, longest), -1, "int32")
    wanted, means = np.zeros((2, *q.shape))
    for i, n in enumerate(RAGGED):
        j = np.arange(n)
        slots[i, :n] = tables[i, j // block] * block + j % block
        result, mean = exact.attention(q[i, None], keys[i, :n], values[i, :n])
        wanted[i], means[i] = result[0], mean[0]
    flat = [ct.to_device(x.reshape(-1, 2, head_dim)) for x in (keys, values)]
    arrays = [ct.to_device(x) for x in (q, tables, np.array(RAGGED, "int32"))]
    out = ct.empty(q.shape, "uint16")
    lse = ct.empty(q.shape[:2], "float32")
    for name, step in scheme.STEPS.items():
        cache = scheme.Cache(size * count, 2, head_dim, block, step)
        for array in (cache.keys, cache.values):
            array.fill(np.uint16(0x7FC0))
        cache.store(*flat, ct.to_device(slots.reshape(-1)))
        ct.poison(out)
        cache.attention(*arrays, out, lse, longest)()
        ct.check(
            to_float(out.get()), wanted, **exact.bounds(means),
            name=f"{name}: {group} heads share, KV blocks of {block}",
        )  # fmt: skip

# %% [markdown]
# The time of each step, for three kinds of work; beside decode.cu, which reads
# the same keys and values from the same blocks.

# %% separate
sequences = 64
many = 2048  # keys of each


def measure(load, name):
    runs = {name: load.vllm(step) for name, step in scheme.STEPS.items()}
    runs["decode.cu"] = load.ours()
    return ct.bench(runs, bytes=load.bytes, name=name)


load = Load(sequences, many, 32, 32)
separate = measure(load, "64 sequences of 2048 keys, 32 KV heads")
del load

# %% shared
load = Load(sequences, many, 32, 8)
shared = measure(load, "64 sequences of 2048 keys, 32 heads share 8")
del load

# %% long
long = 32768
load = Load(1, long, 32, 8)
one = measure(load, "one sequence of 32,768 keys, 32 heads share 8")
del load

# %% times
if not ct.tool.running():
    loads = {
        "64 x 2048, 32 KV heads": separate,
        "64 x 2048, 8 KV heads": shared,
        "1 x 32768, 8 KV heads": one,
    }
    ct.table(
        "time of each step, in times of decode.cu",
        {
            name: {
                label: bench.ratio("decode.cu", name).median
                for label, bench in loads.items()
            }
            for name in scheme.STEPS
        },
        corner="with all parts up to",
        units=dict.fromkeys(loads, "×"),
    )

# %% resources
rows = {}
for name, step in scheme.STEPS.items():
    of_kernel = scheme.Cache(1, 8, 128, 16, step).resources(many)
    rows[name] = {
        "registers": of_kernel.registers,
        "shared memory": of_kernel.shared_bytes / 1024,
        "thread blocks of an SM": of_kernel.blocks_per_sm,
    }
ct.table(
    "what a thread block needs, for 2048 keys",
    rows,
    corner="with all parts up to",
    units={"registers": "per thread", "shared memory": "KB"},
)

# %% [markdown]
# The logits of all keys lie in shared memory: up to which context does the
# driver start the kernel?

# %% limit
if not ct.tool.running():
    gpu = ct.device()
    ct.table(
        "longest context that starts",
        {
            "48 KB, as every launch has": {
                "shared memory": gpu.shared_per_block / 1024,
                "keys": scheme.longest_context(128, 16, scheme.V1, False),
            },
            "as much as the GPU allows": {
                "shared memory": gpu.shared_per_block_optin / 1024,
                "keys": scheme.longest_context(128, 16, scheme.V1, True),
            },
        },
        corner="shared memory of a launch",
        units={"shared memory": "KB"},
    )
    ct.facts(
        "with partitions",
        {
            "keys for which it started": scheme.longest_context(
                128, 16, scheme.V2, False
            ),
        },
    )

# %% [markdown]
# Blocks of other sizes: here they decide how many threads share a key, and how
# many tokens a load of a value has.

# %% sizes
load = Load(sequences, many, 16, 16)
SIZES = (1, 2, 4, 8, 16, 32)
runs = {}
for size in SIZES:
    runs[f"the scheme, KV blocks of {size}"] = load.vllm(scheme.V1, size)
    runs[f"decode.cu, KV blocks of {size}"] = load.ours(size)
by_size = ct.bench(
    runs, bytes=load.bytes, name="64 sequences of 2048 keys, by block size"
)
del load, runs

# %% sizes-table
if not ct.tool.running():
    ct.table(
        "time, in times of KV blocks of 16",
        {
            str(size): {
                label: by_size.ratio(
                    f"{label}, KV blocks of 16", f"{label}, KV blocks of {size}"
                ).median
                for label in ("the scheme", "decode.cu")
            }
            for size in SIZES
        },
        corner="tokens of a block",
        units={"the scheme": "×", "decode.cu": "×"},
    )

# %% [markdown]
# Bytes and sectors, counted.

# %% counted
MEMORY, L2 = "dram__bytes_read.sum", "lts__t_sectors_srcunit_tex.sum"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
_, *counted = ct.profile_launches(
    "llm/vllm_kernel",
    kernel="regex:^(paged|decode)$",
    metrics=[MEMORY, L2, SECTORS, REQUESTS],
    launches=len(ONE_LAUNCH) + 2,  # the first is that of the program
) or [None]
if counted:
    ct.table(
        "16 sequences of 2048 keys, 32 heads share 8",
        {
            name: {
                "from memory": got[MEMORY] / 1e6,
                "from L2": got[L2] * 32 / 1e6,
                "a load of a warp": got[SECTORS] / got[REQUESTS],
            }
            for name, got in zip([*ONE_LAUNCH, "decode.cu"], counted)
        },
        corner="with all parts up to",
        units={
            "from memory": "MB",
            "from L2": "MB",
            "a load of a warp": "sectors",
        },
    )
