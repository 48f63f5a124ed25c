# ---
# jupyter:
#   cudatut:
#     title: {en: "Softmax: claims", zh: "Softmax：有关说法"}
#     requires: sm_75
#     timeout_s: 60
#     sizes:
#       n: [10_000_001, 1000]
#       moved: [5_242_880, 1024]
# ---

# %% [markdown]
# A tutorial sets CUDA's `if (i < n)` beside Triton's mask. Does the guard cost
# time, and does the compiler make a branch of it? The length is chosen so that one
# warp does diverge; the rival has arrays that are filled up, and no guard.

# %% setup
import numpy as np

import cudatut as ct
from cudatut.book.measure.machine_code import sass

SOURCE = "llm/softmax/claims.cu"
n = 10_000_001
filled = ct.cdiv(n, 256) * 256
host_x, host_y = ct.rng(0).standard_normal((2, filled), dtype="float32")
x, y = ct.to_device(host_x), ct.to_device(host_y)
out = ct.empty(filled, "float32")
names = "add_guarded", "add_plain", "add_strided"
kernels = {name: ct.Kernel(SOURCE, name) for name in names}


def guarded():
    kernels["add_guarded"](x, y, out, n, grid=filled // 256, block=256)


def plain():
    kernels["add_plain"](x, y, out, grid=filled // 256, block=256)


guarded()
ct.check(out[:n], host_x[:n] + host_y[:n], name="with a guard")
plain()
ct.check(out, host_x + host_y, name="without")

# %% guard
times = ct.bench(
    {"with the guard": guarded, "without": plain, "again": lambda: plain()},
    bytes=12 * n,
    name="an addition of 10,000,001 numbers",
)
last = np.arange(filled).reshape(-1, 32) < n
ct.facts(
    "warps",
    {
        "all": len(last),
        "that diverge": int((last.any(axis=1) & ~last.all(axis=1)).sum()),
    },
)


# %% claim-guard
def compared(one, other):
    """Slower: by more than 2 %."""
    return "slower" if one > 1.02 * other else "as fast"


if not ct.tool.running():
    us = {name: times[name].median_us for name in ("with the guard", "without")}
    ct.claim(
        id="guard-diverges-slower",
        source="CUDATutorial 18/01",
        place={
            "en": "section 2, the third point, `if` and mask; also 18/03, "
            "section 4.3",
            "zh": "第二节第 3 点，if 与 mask；另见 18/03 的 4.3 节",
        },
        form="said",
        statement={
            "en": "With the guard if (idx < n), threads of a warp may take "
            "different branches, and that lowers performance. An addition of "
            "10,000,001 numbers with the guard, beside one of arrays that are "
            "filled up, without; slower: by more than 2 %.",
            "zh": "有了 if (idx < n) 这个边界检查，同一线程束的线程可能会走不同分支，从而降低性能。这里是 10,000,001 个数的加法：有边界检查，"
            "与把数组补齐后没有边界检查相比；慢 2% 以上算慢。",
        },
        expected="slower",
        measured=compared(us["with the guard"], us["without"]),
        rule="equal",
        control=(
            {
                "en": "half of the work beside all of it, where all has to be "
                "slower",
                "zh": "一半的工作与全部相比，全部应当更慢",
            },
            compared(
                us["without"],
                ct.bench(
                    {
                        "half": lambda: kernels["add_plain"](
                            x, y, out, grid=filled // 512, block=256
                        )
                    },
                    name="half of it",
                )["half"].median_us,
            ),
            "slower",
        ),
    )

# %% claim-branch
if not ct.tool.running():

    def made_of(kernel):
        code = sass(SOURCE, kernel)
        if any(i.op == "BRA" for i in code):
            return "a branch"
        by = [i.op for i in code if i.predicate]
        if by == ["EXIT"]:
            return "a predicate, at the exit"
        return "a predicate" if by else "nothing"

    ct.claim(
        id="guard-is-a-branch",
        source="CUDATutorial 18/01, 18/03",
        place={
            "en": "18/03, section 4.3, with the guard of a softmax; 18/01, "
            "section 2, the third point, with that of an addition",
            "zh": "18/03 的 4.3 节，说的是 softmax 的边界检查；18/01 第二节第 3 点，说的是加法的边界检查",
        },
        form="said",
        statement={
            "en": "With CUDA's if, threads of a warp may take different "
            "branches; Triton's mask uses predicated instructions and no jump. "
            "What the compiler makes of the guard of 18/01's addition in CUDA:",
            "zh": "用 CUDA 的 if，同一个线程束的线程可能走不同分支；Triton 的 mask 用谓词指令，没有跳转。编译器把 18/01 那个 CUDA 加法的边界检查编译成：",
        },
        expected="a branch",
        measured=made_of("add_guarded"),
        found="counted",
        rule="equal",
        control=(
            {
                "en": "an if with a loop on one side",
                "zh": "一边是循环的 if",
            },
            made_of("two_ways"),
            "a branch",
        ),
    )

# %% [markdown]
# Neighbors that lie some elements apart: the same addition, with strides 1 and 8.

# %% stride
moved = 5_242_880
far = [ct.to_device(np.ones(8 * moved, "float32")) for _ in range(3)]


def strided(stride):
    kernels["add_strided"](
        *far, moved, stride, grid=ct.cdiv(moved, 256), block=256
    )


strided(8)
ct.check(far[2].get()[::8], np.full(moved, 2, "float32"), name="stride 8")
strides = ct.bench(
    {
        "stride 1": lambda: strided(1),
        "again": lambda: strided(1),
        "stride 8": lambda: strided(8),
    },
    name="an addition of 5,242,880 numbers",
)

# %% claim-stride
if not ct.tool.running():
    near = strides["stride 1"].median_us
    ct.claim(
        id="triton-stride-8",
        source="CUDATutorial 18/02",
        place={"en": "section 2.2, the table", "zh": "2.2 节的表"},
        form="printed",
        statement={
            "en": "An addition of 5,242,880 numbers takes 7.79 times as long "
            "with a stride of 8 as with 1. (The tutorial measured in Triton, on "
            "a GPU that it does not name there.)",
            "zh": "5,242,880 个数的加法，步长为 8 时的用时是步长为 1 时的 7.79 倍。（教程用 Triton 测量，那里没有说是哪种 GPU。）",
        },
        expected=7.79,
        measured=strides["stride 8"].median_us / near,
        unit="×",
        rule="gain",
        control=(
            {
                "en": "stride 1 beside itself; other work on the GPU would show",
                "zh": "步长 1 与自己相比；GPU 上有别的工作时会看出来",
            },
            strides["again"].median_us / near,
            (0.9, 1.1),
        ),
    )

# %% [markdown]
# The listing of a product in Triton: which elements of K does its loop read?


# %% claim-loop
def read(depth, size, tile):
    """How many of the `depth` terms of a sum the loop reads; tile: the first
    element of the tile that it reads at k.
    """
    found = set()
    for k in range(0, depth, size):
        found |= {i for i in range(tile(k), tile(k) + size) if i < depth}
    return len(found)


ct.claim(
    id="triton-k-loop",
    source="CUDATutorial 18/02",
    place={
        "en": "section 3.2, the listing of the product",
        "zh": "3.2 节，矩阵乘法的代码",
    },
    form="code",
    statement={
        "en": "The loop over K steps by the size of a tile, 32, and multiplies "
        "its counter by that size once more. Terms of a sum of 1,024 that the "
        "loop reads.",
        "zh": "沿 K 的循环每次前进一个分块（32），又把循环变量乘以分块大小。这里是 1,024 项的求和中循环读到的项数。",
    },
    expected=1024,
    measured=read(1024, 32, lambda k: k * 32),
    found="computed",
    rule="equal",
    control=(
        {
            "en": "the counter as it is, which reads all",
            "zh": "直接用循环变量，全部读到",
        },
        read(1024, 32, lambda k: k),
        1024,
    ),
)
