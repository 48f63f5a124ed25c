# ---
# jupyter:
#   cudatut:
#     title: {en: "Transpose: claims", zh: "转置：说法的检验"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       n: [16_384, 128]
# ---

# %% [markdown]
# The notes on CS179 say what shared memory, freedom from conflicts and
# parallel instructions gain in a transpose, on a GPU that they do not name.
# Their kernels in our words, one step after the other, as they are meant. The
# first is not printed. The two that are follow as they are printed.

# %% steps
import numpy as np

import cudatut as ct
from cudatut.book.primitives.transpose.model import passes

n = 16_384
FILE = "primitives/transpose/claims.cu"
STEPS = ("naive", "shared", "padded", "unrolled", "printed", "optimal")
ct.compile_ahead([(FILE, f"notes_{step}") for step in STEPS])
host = ct.rng(0).random((n, n), dtype="float32")
x, out = ct.to_device(host), ct.empty((n, n), "float32")
some = ct.rng(1).integers(0, n, 8)


def step(name):
    kernel, tiles = ct.Kernel(FILE, f"notes_{name}"), n // 64

    def run():
        kernel(x, out, n, grid=(tiles, tiles), block=(64, 16))

    ct.poison(out)
    run()
    got = np.stack([out[int(k)].get() for k in some])
    ct.check(got, host[:, some].T, name=name, rtol=0)
    return run


runs = {name: step(name) for name in STEPS}
runs["naive, again"] = runs["naive"]
times = ct.bench(runs, bytes=2 * x.nbytes, name="the steps of the notes")


# %% claims-steps
def gain(slow, fast):
    return times[slow].median_us / times[fast].median_us


PLACE = {
    "en": "the section on a fast transpose, the list before the code",
    "zh": "“高性能Transpose算子”一节，代码之前的列表",
}
itself = {
    "en": "the naive kernel beside itself",
    "zh": "朴素 kernel 与自己相比",
}
for name, slow, fast, left, en, zh in (  # left: by each reading
    (
        "shared",
        "naive",
        "shared",
        (0.4,),
        "Shared memory takes 60 % off the time.",
        "共享内存使时间减少 60%。",
    ),
    (
        "conflicts",
        "shared",
        "padded",
        (0.9, 0.3 / 0.4),
        "No bank conflicts: another 10 % off. (Of the step before, or of the "
        "first kernel: the reading that is nearer.)",
        "避免存储体冲突：再减少 10%。（相对前一步，或相对第一个 kernel：取较接近的"
        "一种理解。）",
    ),
    (
        "ilp",
        "padded",
        "unrolled",
        (0.9, 0.2 / 0.3),
        "Instruction-level parallelism, four loads at once: another 10 % off. "
        "(Of the step before, or of the first kernel: the nearer reading.)",
        "指令级并行，一次发出四次读取：再减少 10%。（相对前一步，或相对第一个 kernel：取"
        "较接近的一种理解。）",
    ),
):
    found = gain(slow, fast)
    ct.claim(
        id=f"transpose-notes-{name}",
        source="CS179 notes",
        place=PLACE,
        form="printed",
        statement={"en": en, "zh": zh},
        expected=min((1 / part for part in left), key=lambda x: abs(x - found)),
        measured=found,
        rule="gain",
        unit="×",
        control=(itself, gain("naive", "naive, again"), (0.97, 1.03)),
    )

# %% [markdown]
# The last kernel of the notes, with everything, has dropped the padding of the
# one before. And the loop of that one begins at another row than the row that
# it ends after.

# %% claims-code
ct.claim(
    id="transpose-notes-optimal",
    source="CS179 notes",
    place={
        "en": "the section on a fast transpose, between the two kernels",
        "zh": "“高性能Transpose算子”一节，两个 kernel 之间",
    },
    form="said",
    statement={
        "en": "Unrolling the loop makes the second kernel faster than the first. "
        "(The notes add: if not by much. Only 'faster' is judged. Time of the "
        "first / of the second, whose tile has rows of 64 again, without "
        "padding.)",
        "zh": "加入循环展开，第二个 kernel 比第一个快。（笔记还说收益不大；这里只判断快不快。第一个的用时 / 第二个"
        "的用时；第二个的分块没有了填充，每行又是 64 个元素。）",
    },
    expected=1.0,
    depends={
        "en": "whether the first writes each row once",
        "zh": "第一个是否每行只写一次",
    },
    sides=(
        (
            {
                "en": "as printed: the first writes most rows several times",
                "zh": "按打印的代码：第一个把多数行写了好几次",
            },
            gain("printed", "optimal"),
        ),
        (
            {"en": "each row written once", "zh": "改为每行只写一次"},
            gain("padded", "optimal"),
        ),
    ),
    rule="above",
    unit="×",
    control=(itself, gain("naive", "naive, again"), (0.97, 1.03)),
)
begun, meant = (
    sum(len(range(first(y), 4 * y + 4)) for y in range(16))
    for first in (lambda y: y, lambda y: 4 * y)
)
ct.claim(
    id="transpose-notes-rows",
    source="CS179 notes",
    place={
        "en": "the section on a fast transpose, the second comment of the first "
        "kernel",
        "zh": "“高性能Transpose算子”一节，第一个 kernel 的第二条注释",
    },
    form="said",
    statement={
        "en": "Each thread writes four rows of a column, from block_j * 4 on: 64 "
        "by the 16 rows of threads. (Rows that they write; the loop begins at "
        "threadIdx.y. The result is right all the same.)",
        "zh": "每个线程写一列里的四行，从 block_j * 4 开始：16 行线程共写 64 行。（写出的"
        "行数；循环从 threadIdx.y 开始。结果仍然正确。）",
    },
    expected=64,
    measured=begun,
    rule="equal",
    found="computed",
    control=(
        {
            "en": "where the loop begins at 4 * threadIdx.y",
            "zh": "循环从 4 * threadIdx.y 开始时",
        },
        meant,
        64,
    ),
)

# %% [markdown]
# The notes on Learn CUDA Programming turn a tile without a barrier between the
# store to it and the load from it.

# %% barrier
m = 1_024
numbers = ct.rng(2).integers(0, 1 << 30, (m, m)).astype("int32")
a, b = ct.to_device(numbers), ct.empty((m, m), "int32")


def wrong_in(barrier, launches=20):
    """Launches with a wrong element."""
    kernel = ct.Kernel(FILE, f"by_columns<{str(barrier).lower()}>")
    wrong = 0
    for _ in range(launches):
        ct.poison(b)
        kernel(a, b, m, grid=(m // 32, m // 32), block=(32, 32))
        wrong += not np.array_equal(b.get(), numbers.T)
    return wrong


safe = wrong_in(barrier=True)
ct.check([safe], [0], name="with a barrier", rtol=0)
# A sanitizer reports the race, as it should.
raced = 0 if ct.tool.running() else wrong_in(barrier=False)

# %% claims-barrier
NOTES = "Learn CUDA Programming, notes"
WHERE = {
    "en": "the section on shared memory, `matrixTransposeShared`",
    "zh": "共享内存一节，`matrixTransposeShared`",
}
ct.claim(
    id="transpose-without-barrier",
    source=NOTES,
    place=WHERE,
    form="code",
    statement={
        "en": "A tile can be turned without a barrier between store and load. "
        "(Of 20 launches with tiles of 32 × 32, those with a wrong element.)",
        "zh": "存入分块与读出之间不用屏障也能转置。（分块 32 × 32，20 次启动里结果有错的次数。）",
    },
    expected=0,
    measured=raced,
    rule="equal",
    found="counted",
    control=({"en": "with a barrier", "zh": "有屏障"}, safe, 0),
)
stored, loaded = (
    passes(words)
    for words in (range(0, 32 * 32, 32), range(32))  # [x][y], then [y][x]
)
ct.claim(
    id="transpose-column-is-loaded",
    source=NOTES,
    place=WHERE,
    form="said",
    statement={
        "en": "The load from the tile goes along a column of it. (Passes of "
        "that load of a warp, with tiles of 32 × 32: a column has 32.)",
        "zh": "从分块读出时沿着它的一列。（分块 32 × 32，一个线程束这样读一次的趟数；一列要 32 趟。）",
    },
    expected=32,
    measured=loaded,
    rule="equal",
    found="computed",
    control=({"en": "the store to it", "zh": "存入分块"}, stored, 32),
)
