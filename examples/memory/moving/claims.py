# ---
# jupyter:
#   cudatut:
#     title: {en: "Every way to move bytes: claims", zh: "传输数据的各种方法：说法的检验"}
#     requires: sm_75
#     timeout_s: 60
#     sizes:
#       count: [16_384, 64]
#       repeats: [9, 1]
# ---

# %% [markdown]
# The 32 lanes of a warp read constant memory: all of them one word, or each a
# word of its own. The same from shared memory.

# %% conflicts
import numpy as np
import pycuda.driver as cuda

import cudatut as ct

FILE = "memory/moving/claims.cu"
WORDS = 1_024  # as in claims.cu
count = 16_384
repeats = 9
ring = ((np.arange(WORDS) + 32) % WORDS).astype("uint32")
cycles, ends = ct.empty(1, "int64"), ct.empty(32, "uint32")


def cycles_of(name, apart, lanes=32):
    """Cycles of a load whose lanes begin so many words apart."""
    module = cuda.module_from_buffer(ct.Kernel(FILE, name).cubin)
    kernel = module.get_function(name)
    cuda.memcpy_htod(module.get_global("ring")[0], ring)
    found = []
    for _ in range(repeats):
        numbers = np.int32(apart), np.int32(count)
        kernel(*numbers, cycles, ends, grid=(1, 1), block=(lanes, 1, 1))
        found.append(int(cycles.get()[0]) / count)
    wanted = (apart * np.arange(lanes) + 32 * count) % WORDS
    told = f"{name}, {lanes} lanes, {apart} apart"
    ct.check(ends.get()[:lanes], wanted.astype("uint32"), name=told)
    return float(np.median(found))


load = {
    (name, apart): cycles_of(f"walk_{name}", apart)
    for name in ("constant", "shared")
    for apart in (0, 1)
}

# %% table
ct.table(
    "a load by the lanes of a warp",
    {
        f"{name} memory": {
            "one word for all": load[name, 0],
            "a word for each": load[name, 1],
            "a word for each / one for all": load[name, 1] / load[name, 0],
        }
        for name in ("constant", "shared")
    },
    corner="from",
    units=dict.fromkeys(("one word for all", "a word for each"), "cycles"),
)

# %% constant-conflicts
one_lane = cycles_of("walk_constant", 0, lanes=1)
ct.claim(
    id="constant-memory-no-conflicts",
    source="CUDA slides 2.7",
    place={
        "en": "the list of memories, after shared memory and L2",
        "zh": "各种内存的列表，在共享内存和 L2 之后",
    },
    form="said",
    statement={
        "en": "Constant memory serves to avoid conflicts when threads read data. "
        "(Time of a load by the 32 lanes of a warp / by one lane alone; without "
        "conflicts at most 1.5, our bound.)",
        "zh": "常量内存用来避免线程读数据时的冲突。（一个线程束的 32 个 lane 读一次的时间 / 只有"
        "一个 lane 读的时间；没有冲突时至多 1.5，这是我们定的界限。）",
    },
    expected=1.5,
    depends={
        "en": "whether all lanes read the same word: then one reading serves "
        "them all",
        "zh": "所有 lane 是否读同一个字：如果是，读一次就够了",
    },
    sides=(
        (
            {"en": "one word for all", "zh": "都读同一个字"},
            load["constant", 0] / one_lane,
        ),
        (
            {"en": "a word for each", "zh": "各读一个字"},
            load["constant", 1] / one_lane,
        ),
    ),
    rule="below",
    unit="×",
    control=(
        {
            "en": "shared memory, a word for each / one for all: 32 banks, no "
            "conflict",
            "zh": "共享内存，各读一个字 / 都读同一个字：32 个存储体，没有冲突",
        },
        load["shared", 1] / load["shared", 0],
        (0.9, 1.1),
    ),
)
