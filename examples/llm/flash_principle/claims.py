# ---
# jupyter:
#   cudatut:
#     title: {en: "FlashAttention, the principle: claims", zh: "FlashAttention 原理：有关说法"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 300
#     sizes:
#       length: [512, 64]
#       heads: [32, 2]
#       passes: [4096, 16]
#       side: [4096, 128]
# ---

# %% [markdown]
# Does computing in tiles cost precision? Both forms in fp32, against float64.

# %% setup
import numpy as np

import cudatut as ct
from cudatut.book.llm.attention import steps
from cudatut.book.numbers.bf16 import to_bf16
from cudatut.book.rivals import cublas_types

SOURCE = "llm/flash_principle/claims.cu"
n = 512
d = 64


def written(q, k, v):
    s = q @ k.T * q.dtype.type(d**-0.5)
    p = np.exp(s - s.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True) @ v


def tiled(q, k, v, rescale=True, size=32):
    scale = q.dtype.type(d**-0.5)
    base = np.full((len(q), 1), -np.inf, q.dtype)
    total, o = np.zeros_like(base), np.zeros_like(q)
    for j in range(0, len(k), size):
        s = q @ k[j : j + size].T * scale
        most = np.maximum(base, s.max(axis=1, keepdims=True))
        factor = np.exp(base - most) if rescale else q.dtype.type(1)
        p = np.exp(s - most)
        total = total * factor + p.sum(axis=1, keepdims=True)
        o, base = o * factor + p @ v[j : j + size], most
    return o / total


def errors(seed, rescale=True):
    """Largest error in fp32, tiled over written."""
    qkv = ct.rng(seed).standard_normal((3, n, d), dtype="float32")
    exact = written(*qkv.astype("float64"))
    found = tiled(*qkv, rescale=rescale), written(*qkv)
    assert all(one.dtype == np.float32 for one in found)
    one, other = (float(abs(x - exact).max()) for x in found)
    return one / other


# %% claim-precision
ct.claim(
    id="flash-attention-precision",
    source="CUDATutorial 17/01",
    place={
        "en": "section 3.1, last sentence, its first half",
        "zh": "3.1 节，最后一句的前半",
    },
    form="said",
    statement={
        "en": "Computing in tiles gives up no precision. Largest error in "
        "fp32, tiled over written; as the authors of FlashAttention do in "
        "their tests, we count up to twice as no loss.",
        "zh": "分块计算不牺牲计算精度。这里是 fp32 下的最大误差之比：分块除以照公式写；"
        "与 FlashAttention 作者的测试一样，两倍以内算没有损失。",
    },
    expected=2.0,
    seeds=[errors(seed) for seed in range(20)],
    found="computed",
    unit="×",
    rule="below",
    control=(
        {
            "en": "tiled, but sums are not rescaled, which must not pass",
            "zh": "分块，但不给之前的累加值乘系数，不应通过",
        },
        errors(0, rescale=False),
        (10.0, 1e12),
    ),
)

# %% [markdown]
# Is it faster? Three launches with all scores in memory, the kernel of this
# chapter, and one in the scheme of CUDATutorial 17/02: keys in the outer loop, a
# block of 32 threads for a head, a thread for each query of a tile.

# %% first-way
length = 512
heads = 32
rng = ct.rng(1)
host = rng.standard_normal((3, heads, length, d), dtype="float32")
q, k, v = map(ct.to_device, host)
out = ct.empty((heads, length, d), "float32")
kernel = ct.Kernel("llm/flash_principle/flash_principle.cu", "flash_principle")


def ours():
    grid = ct.cdiv(length, 64), heads
    kernel(q, k, v, out, length, d**-0.5, 0, grid=grid, block=256)


start = np.full((heads, length), -np.inf, "float32")
most, total = ct.empty(start.shape, "float32"), ct.empty(start.shape, "float32")


def first_way(queries, keys=32):
    """What it keeps in memory is left from the last time when it is timed: as
    many operations on other numbers.
    """
    run = ct.Kernel(SOURCE, f"first_way<{queries}, {keys}>")
    arrays = q, k, v, length, d**-0.5, most, total, out
    return lambda: run(*arrays, grid=heads, block=keys)


exact = np.stack(
    [written(*one) for one in host.astype("float64").swapaxes(0, 1)]
)
unequal, equal = first_way(16), first_way(32)
for name, run in {"16": unequal, "32": equal, "this chapter's": ours}.items():
    most.set(start)
    total.set(np.zeros_like(start))
    out.set(np.zeros(out.shape, "float32"))
    run()
    ct.check(out, exact, atol=5e-5, name=f"queries in a tile: {name}")

halves = [ct.to_device(to_bf16(x)) for x in host]
half_out = ct.empty(out.shape, "uint16")
room = steps.Room(heads, length, length)


def three():
    steps.attention(*halves, half_out, room)


contest = {
    "three launches, attention.cu": three,
    "again": lambda: three(),
    "tiles, flash_principle.cu": ours,
    "tiles of 16 queries, 32 keys, as in 17/02": unequal,
    "tiles of 32 queries, 32 keys": equal,
}
times = ct.bench(contest, name="32 heads of 64, 512 tokens")

# %% claim-faster
us = {name: times[name].median_us for name in contest}
apart = us["three launches, attention.cu"]
same = us["again"] / apart
NOISE = {
    "en": "three launches beside themselves; other work on the GPU would show",
    "zh": "三次启动与自己相比；GPU 上有别的工作时会看出来",
}
if not ct.tool.running():
    ct.claim(
        id="flash-attention-efficient",
        source="CUDATutorial 17/01, 17/02",
        place={
            "en": "17/01, section 3.1, last sentence; 17/02, the kernel",
            "zh": "17/01 的 3.1 节最后一句；17/02 的 kernel",
        },
        form="said",
        statement={
            "en": "FlashAttention, which computes in tiles, clearly makes "
            "attention more efficient. Time of three launches with all scores "
            "in memory (inputs in bf16), over that of one kernel with tiles "
            "(fp32).",
            "zh": "FlashAttention 分块计算，显著提升注意力机制的效率。这里是用时之比：所有分数经过显存的三次启动（输入为 bf16），"
            "除以分块的一个 kernel（fp32）。",
        },
        expected=1.0,
        sides=(
            (
                {
                    "en": "a kernel as 17/02 has it for teaching: the scheme of "
                    "17/01, one warp for a head",
                    "zh": "按 17/02 的教学代码写的 kernel：17/01 的做法，一个头只用一个线程束",
                },
                apart / us["tiles of 16 queries, 32 keys, as in 17/02"],
            ),
            (
                {"en": "the kernel of this chapter", "zh": "本章的 kernel"},
                apart / us["tiles, flash_principle.cu"],
            ),
        ),
        depends={
            "en": "on the kernel: one warp for a head, with results that pass "
            "through memory, or many blocks that keep them (the two differ in "
            "more than that)",
            "zh": "kernel：一个头只用一个线程束、结果反复进出显存，还是用许多线程块、结果留在片上（两个 kernel 的差别不止于此）",
        },
        rule="above",
        control=(NOISE, same, (0.9, 1.1)),
        unit="×",
    )

# %% claim-tiles
if not ct.tool.running():
    ct.claim(
        id="flash-tiles-equal",
        source="CUDATutorial 17/02",
        place={
            "en": "section 2, the paragraph on Br and Bc that are not equal",
            "zh": "2 节，讲 Br 与 Bc 不相等的一段",
        },
        form="said",
        statement={
            "en": "Tiles of queries and of keys are best equally long, since "
            "more threads are used then. Time with 16 queries and 32 keys, as "
            "in its program, over that with 32 and 32, in a kernel of the same "
            "scheme.",
            "zh": "Br 与 Bc 最好相等，这样线程利用率更高。这里是同样做法的 kernel 的用时之比：16 个查询、32 个键（其程序的取值），"
            "除以 32 和 32。",
        },
        expected=1.0,
        measured=us["tiles of 16 queries, 32 keys, as in 17/02"]
        / us["tiles of 32 queries, 32 keys"],
        rule="above",
        control=(NOISE, same, (0.9, 1.1)),
        unit="×",
    )


# %% claim-rows
def tiles(words, d):
    """Queries and keys of a tile by the rule of FlashAttention's first paper,
    for a shared memory of so many words.
    """
    keys = ct.cdiv(words, 4 * d)
    return min(keys, d), keys


def share(rule):
    """Percent of the shared memories and heads where no tile has more queries
    than keys.
    """
    cases = [
        rule(words, d)
        for words in range(1024, 60_000, 256)
        for d in (16, 32, 64, 80, 96, 128, 256)
    ]
    return 100 * sum(one <= other for one, other in cases) / len(cases)


ct.claim(
    id="flash-queries-at-most-keys",
    source="CUDATutorial 17/02",
    place={
        "en": "section 2, the paragraph that quotes the paper's rule",
        "zh": "2 节，引用论文公式的一段",
    },
    form="said",
    statement={
        "en": "In FlashAttention v1 a tile never has more queries than keys, "
        "which follows from the rule of the paper. Share of pairs of a "
        "shared memory and a head for which it is so.",
        "zh": "FlashAttention v1 里一定有 Br ≤ Bc，由论文的公式可知。这里是各种共享内存大小与头的宽度中，满足的占多少。",
    },
    expected=100.0,
    measured=share(tiles),
    found="computed",
    rule="equal",
    control=(
        {
            "en": "a wrong rule, queries and keys exchanged",
            "zh": "错误的公式：把两者对调",
        },
        share(lambda *of: tiles(*of)[::-1]),
        (0.0, 99.0),
    ),
    unit="%",
)

# %% [markdown]
# How fast is the memory on the chip? 1024 threads of each SM read 16 bytes each,
# over and over, without conflicts between banks.

# %% shared
passes = 4096
blocks = 2 * ct.device().sm_count
words = rng.integers(0, 1 << 32, (2048, 4), dtype="uint32")
d_words, sums = ct.to_device(words), ct.empty((blocks, 1024), "uint32")
read_shared = ct.Kernel(SOURCE, "read_shared")


def read(passes=passes):
    read_shared(d_words, passes, sums, grid=blocks, block=1024)


mixed = np.bitwise_xor.reduce(words, axis=1)
read(16)
steps_of = (np.arange(1024)[:, None] + 32 * np.arange(16)) % 2048
expected = mixed[steps_of].sum(axis=1, dtype="uint32")
ct.check(sums, np.tile(expected, (blocks, 1)), name="what was read")
bytes_read = 16 * 1024 * blocks * passes
rates = ct.bench(
    {"passes": read, "half as many": lambda: read(passes // 2)},
    name="reading shared memory",
)
rate = bytes_read / rates["passes"].median_us / 1e6  # TB/s
memory = ct.limits.bandwidth() / 1e3
ct.facts(
    "rates",
    {"shared memory": (rate, "TB/s"), "memory": (memory, "TB/s")},
)

# %% claim-shared
if not ct.tool.running():
    ct.claim(
        id="shared-memory-ten-times",
        source="CUDATutorial 17/01",
        place={"en": "section 1", "zh": "1 节"},
        form="said",
        statement={
            "en": "On an A100 the memory on the chip has about 19 TB/s, an "
            "order of magnitude more than its memory of 1.5 to 2.0 TB/s: at "
            "least 9.5 times as much. Shared memory beside memory here.",
            "zh": "A100 的片上 SRAM 带宽约 19 TB/s，HBM 是 1.5 到 2.0 TB/s，前者快一个数量级：至少 9.5 倍。这里是本机共享内存与显存之比。",
        },
        expected=9.5,
        measured=rate / memory,
        rule="above",
        elsewhere=True,
        control=(
            {
                "en": "half as many passes, which have to take half as long; "
                "reads that the compiler left out would show",
                "zh": "遍数减半，用时也应减半；要是编译器省掉了读取，这里会看出来",
            },
            rates["passes"].median_us / rates["half as many"].median_us,
            (1.7, 2.2),
        ),
        unit="×",
    )


# %% [markdown]
# Which operations of a layer does the memory limit? Those that do fewer
# operations for a byte than the GPU can. The layer is GPT-2's, with all scores in
# memory, in numbers of two bytes.

# %% claim-bound
side = 4096
rate = 0.0
ones = ct.to_device(np.full((side, side), 0x3F80, "uint16"))
product = cublas_types.bf16(ones, ones, ct.empty((side, side), "float32"))
if product:
    bench = ct.bench({"bf16": product}, name="cuBLAS, 4096 x 4096 x 4096")
    rate = 2 * side**3 / bench["bf16"].median_us / 1e6  # TFLOP/s


def operations(tokens, keys, heads=12, dim=768):
    """FLOPs and bytes of each operation of a layer."""
    rows, pairs = tokens * dim, heads * tokens * keys

    def product(outputs, inputs):
        moved = tokens * inputs + inputs * outputs + tokens * outputs
        return 2 * tokens * inputs * outputs, 2 * moved

    attend = 2 * pairs * dim // heads, 2 * (rows + keys * dim + pairs)
    return {
        "norm, attention": (8 * rows, 4 * rows),
        "queries, keys, values": product(3 * dim, dim),
        "scores": attend,
        "softmax": (5 * pairs, 4 * pairs),
        "weighted sums": attend,
        "output": product(dim, dim),
        "addition, attention": (rows, 6 * rows),
        "norm, feed-forward": (8 * rows, 4 * rows),
        "up": product(4 * dim, dim),
        "GELU": (10 * 4 * rows, 16 * rows),
        "down": product(dim, 4 * dim),
        "addition, feed-forward": (rows, 6 * rows),
    }


def bound(tokens, keys):
    """Percent of the operations that the memory limits."""
    balance = rate * 1e12 / (ct.limits.bandwidth() * 1e9)
    found = operations(tokens, keys).values()
    limited = sum(flops / moved < balance for flops, moved in found)
    return 100 * limited / len(found)


if rate and not ct.tool.running():
    ct.claim(
        id="transformer-memory-bound",
        source="CUDATutorial 17/01",
        place={"en": "the first paragraph", "zh": "开头一段"},
        form="said",
        statement={
            "en": "Most operations of a Transformer are limited by access to "
            "memory. Share of the 12 operations of a GPT-2 layer, a prompt of "
            "1,024 tokens and all scores in memory, that do fewer operations "
            "for a byte than this GPU can, by its measured rates.",
            "zh": "Transformer 的大多数操作都受到内存访问的瓶颈。这里是 GPT-2 一层的 12 种操作（1,024 个词元的提示，所有分数都经过显存）中，"
            "每字节的运算次数低于本机实测速率之比的占多少。",
        },
        expected=50.0,
        measured=bound(1024, 1024),
        found="computed",
        rule="above",
        control=(
            {
                "en": "one token with 1,023 before it, where no operation "
                "reaches that",
                "zh": "前面已有 1,023 个词元时只算一个词元，所有操作都达不到",
            },
            bound(1, 1024),
            100.0,
        ),
        unit="%",
    )
