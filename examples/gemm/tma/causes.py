# ---
# jupyter:
#   cudatut:
#     title: {en: "The tensor memory accelerator: where the time goes with odd rows", zh: "张量内存加速器：行首不对齐时，时间花在哪里"}
#     requires: sm_90
#     timeout_s: 120
#     sizes:
#       large: [4096, 72]
# ---

# %% [markdown]
# With a row and a column less, `tma` takes longer. Three things differ: A and B
# are copied into longer rows first, their last boxes hang over the edge, and the
# rows of C begin anywhere, so that they are stored word by word. Each alone:

# %% setup
import cudatut as ct
from cudatut.book.gemm.ladder.ladder import LADDER, Gemm, tensor_maps

large = 4096
rung = LADDER["tma"]
kernel = rung.compile()


def parts_of(problem):
    """The copies that each launch begins with, and the kernel without them."""
    maps, copies, kept = tensor_maps(rung, problem.a, problem.b)
    m, n, k = problem.m, problem.n, problem.k

    def copy():
        for one in copies:
            one()

    def multiply():
        assert kept  # a map keeps nothing alive
        kernel(
            *maps, problem.c, m, n, k, 1.0, 0.0, block=256,
            grid=(ct.cdiv(n, 128), ct.cdiv(m, 128)),
        )  # fmt: skip

    return copy, multiply


even = Gemm(large, large, large)
odd = Gemm(large - 1, large - 1, large - 1)
odd_depth = Gemm(large - 1, large, large - 1)  # rows of B and C are aligned

# %% check
parts = {}
for name, problem in (
    ("even", even),
    ("odd", odd),
    ("depth and rows odd", odd_depth),
):
    parts[name] = copy, multiply = parts_of(problem)
    ct.poison(problem.c)
    copy()
    multiply()
    problem.compare(f"{name}: copies, then the kernel")
odd.check(rung)

# %% predict
# The copies read and write A and B, at the rate of a copy at best. If nothing
# else mattered, the whole would take as long as the even product and the copies.
if not ct.tool.running():
    moved = 2 * (odd.a.nbytes + odd.b.nbytes)
    ct.facts(
        "the copies of A and B, predicted",
        {
            "bytes": (moved / 1e6, "MB"),
            "at the rate of a copy": (
                moved / ct.limits.bandwidth() / 1e3,
                "us",
            ),
        },
    )

# %% bench
runs = {
    "even": even.launcher(rung),
    "odd": odd.launcher(rung),
    "odd, only the copies": parts["odd"][0],
    "odd, only the kernel": parts["odd"][1],
    "rows of C aligned, only the kernel": parts["depth and rows odd"][1],
}
times = ct.bench(runs, rounds=25, name="tma, rows of 4096 and of 4095 words")

# %% shares
if not ct.tool.running():
    us = {name: times[name].median_us for name in runs}
    copies, alone = us["odd, only the copies"], us["odd, only the kernel"]
    aligned = us["rows of C aligned, only the kernel"]
    more = us["odd"] - us["even"]
    ct.table(
        "longer than the even product",
        {
            "in all": {"time": more, "of it": 100},
            "the copies": {"time": copies, "of it": 100 * copies / more},
            "stores of C": {
                "time": alone - aligned,
                "of it": 100 * (alone - aligned) / more,
            },
            "boxes at the edges": {
                "time": aligned - us["even"],
                "of it": 100 * (aligned - us["even"]) / more,
            },
        },
        corner="part",
        units={"time": "us", "of it": "%"},
    )
