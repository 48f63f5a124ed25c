# ---
# jupyter:
#   cudatut:
#     title: {en: "vLLM's paged attention kernel: claims", zh: "vLLM 的分页注意力 kernel：有关说法"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 120
#     sizes:
#       sequences: [64, 2]
#       many: [2048, 256]
# ---

# %% [markdown]
# What a tutorial says of vLLM's kernel, tried on our kernel in the same scheme.

# %% setup
import math

import numpy as np

import cudatut as ct
from cudatut.book.llm.vllm_kernel import scheme
from cudatut.book.llm.vllm_kernel.loads import Load

# %% [markdown]
# Which elements of a value the first thread adds up: it says so itself.


# %% claim-elements
def elements(head_size, block_size):
    """Of the first lane of a warp."""
    name = f"elements_of_lanes<{head_size},{block_size}>"
    count = head_size * max(block_size // 8, 1) // 32
    out = ct.empty((32, count), "int32")
    ct.Kernel(scheme.SOURCE, name)(out, grid=1, block=32)
    return [int(e) for e in out.get()[0]]


ct.claim(
    id="vllm-kernel-elements",
    source="CUDATutorial 15",
    place={"en": "section 7, last sentence", "zh": "第 7 节，最后一句"},
    form="said",
    statement={
        "en": "With blocks of 16, heads of 128 and 8 tokens of a value in each "
        "load, the accs of thread 0 are elements 0, 32, …, 224 of the head. "
        "The elements of the first thread, by the index that section 9 prints.",
        "zh": "BLOCK_SIZE 为 16、HEAD_SIZE 为 128、每次读取 8 个词元的值时，线程 0 的 accs 对应头的第 0、32、……、224 个元素。"
        "这里按第 9 节给出的下标，数出第一个线程的各个元素。",
    },
    expected=[32 * i for i in range(8)],
    measured=elements(128, 16),
    rule="equal",
    found="counted",
    control=(
        {
            "en": "heads of 256 and blocks of 8, for which the sentence is right",
            "zh": "头为 256、块为 8，此时这句话成立",
        },
        elements(256, 8),
        [32 * i for i in range(8)],
    ),
)

# %% [markdown]
# How much shared memory a token of the context takes: from the longest contexts
# with which the driver starts the kernel.


# %% claim-logits
def floats_of_a_token():
    """Shared memory that a launch may have in addition, over the keys that the
    longest context then has in addition; 1 under a tool."""
    if ct.tool.running():
        return 1.0
    gpu = ct.device()
    more = gpu.shared_per_block_optin - gpu.shared_per_block
    short, long = (
        scheme.longest_context(128, 16, scheme.V1, opt_in)
        for opt_in in (False, True)
    )
    return more / 4 / (long - short)


def floats_in_parts():
    """With partitions: at most so many, for the longest context that was tried."""
    if ct.tool.running():
        return 0.0
    longest = scheme.longest_context(128, 16, scheme.V2, False)
    return ct.device().shared_per_block / 4 / longest


ct.claim(
    id="vllm-kernel-logits",
    source="CUDATutorial 15",
    place={
        "en": "section 6.1, below the first listing",
        "zh": "6.1 节，第一段代码之后",
    },
    form="said",
    statement={
        "en": "The logits lie in shared memory, and there are as many as the "
        "context has tokens (without partitions). Numbers of fp32 in shared "
        "memory that each further token takes.",
        "zh": "logits 存在共享内存里，总数是上下文的词元数（不分段时）。这里是上下文每多一个词元，共享内存里多占的 fp32 数。",
    },
    expected=1.0,
    measured=floats_of_a_token(),
    rule="equal",
    found="counted",
    control=(
        {
            "en": "with partitions, at most so many: the launch starts with any "
            "context that was tried",
            "zh": "分段时，最多这么多：试过的任何上下文都能启动",
        },
        floats_in_parts(),
        (0.0, 0.01),
    ),
)

# %% [markdown]
# What PARTITION_SIZE counts. With a query of zeros all scores are 0, and the
# sum of exponentials is the number of keys that a thread block saw.


# %% claim-partition
def keys_of_a_block(step, context=4096):
    """The most that any thread block saw, on one GPU."""
    blocks = context // 16
    cache = scheme.Cache(blocks, 1, 128, 16, step)
    for one in (cache.keys, cache.values):
        one.fill(np.uint16(0x3F80))
    parts = ct.cdiv(context, step.part) if step.part else 1
    room = step.part or context
    kind = "float32" if step.part else "uint16"
    out, sums = ct.empty((parts, 128), kind), ct.empty(parts, "float32")
    query, tables, lengths = (
        ct.to_device(x)
        for x in (
            np.zeros(128, "uint16"),
            np.arange(blocks, dtype="int32"),
            np.array([context], "int32"),
        )
    )
    kernel = ct.Kernel(scheme.SOURCE, scheme.names(128, 16, step)[1])
    kernel(
        query, cache.keys, cache.values, tables, blocks, lengths, 1, room,
        1 / math.sqrt(128), out, sums, grid=(1, 1, parts),
        block=scheme.THREADS, shared=scheme.shared_bytes(room, 128, 16),
    )  # fmt: skip
    return round(math.exp(float(sums.get().max())))


ct.claim(
    id="vllm-partition-size",
    source="CUDATutorial 15",
    place={
        "en": "section 1, last paragraph; vLLM's own document says the same",
        "zh": "第 1 节，最后一段；vLLM 自己的文档也这样写",
    },
    form="said",
    statement={
        "en": "PARTITION_SIZE is the number of GPUs in tensor parallelism. These "
        "share out the heads, so on one GPU a thread block would have all 4096 "
        "keys of its head. Keys of a thread block, for a PARTITION_SIZE of 512.",
        "zh": "PARTITION_SIZE 代表张量并行的 GPU 数量。张量并行分的是头，所以在一块 GPU 上，一个线程块应处理该头的全部 4096 个键。"
        "这里是 PARTITION_SIZE 为 512 时，一个线程块处理的键数。",
    },
    expected=4096,
    measured=keys_of_a_block(scheme.V2),
    rule="equal",
    found="counted",
    control=(
        {
            "en": "a PARTITION_SIZE of 0: no partitions",
            "zh": "PARTITION_SIZE 为 0，即不分段",
        },
        keys_of_a_block(scheme.V1),
        4096,
    ),
)

# %% [markdown]
# Larger blocks, for a kernel that works on a block at a time.

# %% claim-several
sequences = 64
many = 2048  # keys of each
load = Load(sequences, many, 16, 16)
runs = {
    "the scheme, KV blocks of 16": load.vllm(scheme.V1, 16),
    "the scheme, KV blocks of 1": load.vllm(scheme.V1, 1),
    "decode.cu, KV blocks of 16": load.ours(16),
    "decode.cu, KV blocks of 1": load.ours(1),
}
times = ct.bench(
    runs, bytes=load.bytes, name="64 sequences of 2048 keys, 16 heads of 128"
)


def small_over_large(kernel):
    """Time with one token in a block over that with 16; 1 under a tool."""
    if ct.tool.running():
        return 1.0
    of_16, of_1 = (f"{kernel}, KV blocks of {size}" for size in (16, 1))
    return times.ratio(of_16, of_1).median


ct.claim(
    id="vllm-kernel-several-tokens",
    source="CUDATutorial 14",
    place={
        "en": "section 2, below the drawing of one sequence",
        "zh": "第 2 节，单个序列的示意图之后",
    },
    form="said",
    statement={
        "en": "Several tokens in a block let the kernel work on more positions "
        "in parallel, which raises utilization and lowers latency. In vLLM's "
        "scheme, time of a step with one token in a block over that with 16.",
        "zh": "一个块存放多个词元，kernel 就能并行处理更多位置，从而提高利用率、减少延迟。"
        "这里按 vLLM 的做法，比较每块 1 个词元与每块 16 个词元时一步的用时。",
    },
    expected=1.0,
    measured=small_over_large("the scheme"),
    unit="×",
    rule="above",
    control=(
        {
            "en": "decode.cu, which takes 16 keys at a time from however many "
            "blocks: no more of them in parallel",
            "zh": "decode.cu 每次取 16 个键，不论来自几个块，并行处理的位置并不变多",
        },
        small_over_large("decode.cu"),
        (0.95, 1.1),
    ),
)
