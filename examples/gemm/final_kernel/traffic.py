# ---
# jupyter:
#   cudatut:
#     title: {en: "The final kernel: copies, and tiles in order", zh: "最终的 kernel：复制方式与分块次序"}
#     requires: sm_80
#     timeout_s: 120
#     sizes: {N: [4096, 136, 4096], LARGE: [8192, 136, 8192]}
# ---

# %% [markdown]
# Three decisions of the final kernel, each against its opposite: no branch
# around the copies, copies through the L1 cache, and tiles in groups of 16 rows.
# Each variant is the kernel's text with one passage changed.

# %% setup
from cudatut.book.measure import loops
from cudatut.book.gemm.kernels import sgemm
from cudatut.book.gemm.ladder.ladder import Gemm

import cudatut as ct

FINAL = ct.paths.resolve_source("gemm/ladder/final.cu").read_text(
    encoding="utf-8"
)
ct.paths.note_read(ct.paths.resolve_source("gemm/ladder/final.cu"))


def edited(old, new):
    """The kernel's text with this change. Raises ValueError where the passage
    does not stand there once."""
    if FINAL.count(old) != 1:
        raise ValueError(f"final.cu has this {FINAL.count(old)} times: {old}")
    return FINAL.replace(old, new)


PREDICATE = "BRANCH = !ALONG_K && WORDS == 1;"
BRANCH = edited(PREDICATE, "BRANCH = true;")
PAST_L1 = edited("cp.async.ca", "cp.async.cg")
GROUP = "constexpr int GROUP = 16;"
ORDERS = {
    "row by row": edited(GROUP, "constexpr int GROUP = 1;"),
    "groups of 4 rows": edited(GROUP, "constexpr int GROUP = 4;"),
    "groups of 16 rows": sgemm.SOURCE,
}
N = 4096
LARGE = 8192
CONFIG = sgemm.CONFIGS[0]


def whole_tiles(problem, source, transpose_a=False):
    """A callable: a block for every tile of 64 x 128."""
    return sgemm.prepare(
        problem.a,
        problem.b,
        problem.c,
        transpose_a=transpose_a,
        config=CONFIG,
        splits=1,
        source=source,
    )


# %% [markdown]
# Everything is launched once, in this order, for the profiler. A square matrix
# may count as transposed, too.

# %% check
problem, large = Gemm(N, N, N), Gemm(LARGE, LARGE, LARGE)
branch = {
    "predicates": whole_tiles(problem, sgemm.SOURCE),
    "a branch": whole_tiles(problem, BRANCH),
}
caches = {
    "through L1": whole_tiles(problem, sgemm.SOURCE, True),
    "past L1": whole_tiles(problem, PAST_L1, True),
}
orders = {name: whole_tiles(large, source) for name, source in ORDERS.items()}
for runs, against, right in (
    (branch, problem, True),
    (caches, problem, False),
    (orders, large, True),
):
    results = []
    for name, run in runs.items():
        ct.poison(against.c)
        run()
        if ct.tool.running() == "ncu":
            continue
        if right:
            against.compare(f"{name}, n = {against.n}")
        results.append(against.c.get())
    for other in results[1:]:
        ct.check(other, results[0], name="the same bits", rtol=0, atol=0)


# %% [markdown]
# What the machine code says of the copies: how many FMAs stand between the
# first and the last of A, and of B.


# %% copies
def between(turn):
    """FMAs among the copies of either operand: those of one stand together."""
    places = [i for i, (one, _) in enumerate(turn) if one.op == "LDGSTS"]
    fmas = [one.op == "FFMA" for one, _ in turn]
    half = len([p for p in places if p < len(turn) / 2])
    return [
        sum(fmas[group[0] : group[-1]]) if group else 0
        for group in (places[:half], places[half:])
    ]


rows = {}
if not ct.tool.running():
    codes = loops.disassemble_all(run.kernel for run in branch.values())
    for (name, run), code in zip(branch.items(), codes):
        turn = loops.main_turn(code, CONFIG.bk * CONFIG.tm * CONFIG.tn)
        of_a, of_b = between(turn)
        needs = run.kernel.resources(CONFIG.threads, run.shared)
        rows[name] = {
            "registers": needs.registers,
            "spilled bytes": needs.spill_bytes,
            "branches": loops.count(turn)["BRA"],
            "FMAs among copies of A": of_a,
            "FMAs among copies of B": of_b,
            "FFMA": 100 * loops.share(turn),
        }

# %% bench
times = {}
for runs, against in ((branch, problem), (caches, problem), (orders, large)):
    bench = ct.bench(
        runs,
        flops=against.flops,
        name=f"n = {against.n}",
        rounds=20 if against is problem else 8,
    )
    times |= {row.name: row.value for row in bench.rows}

# %% counters
DRAM, L2 = "dram__bytes.sum", "lts__t_sectors_srcunit_tex.sum"
HITS = "lts__t_sector_hit_rate.pct"
launches = len(branch) + len(caches) + len(orders)
counted = dict(
    zip(
        [*branch, *caches, *orders],
        ct.profile_launches(
            "gemm/final_kernel_traffic",
            "regex:sgemm",
            [DRAM, L2, HITS],
            launches=launches,
        ),
    )
)

# %% branch
if rows:
    for name, row in rows.items():
        row["rate"] = times[name]
    ct.table(
        "copies of tiles that there may not be",
        rows,
        corner="kept out by",
        units={"FFMA": "%", "rate": "TFLOP/s"},
    )


# %% [markdown]
# Bytes from L2 by the formula, and as counted.


# %% caches
def from_l2(n):
    """Bytes that all blocks ask the L2 cache for, and write."""
    return 4 * n**3 * (1 / CONFIG.bm + 1 / CONFIG.bn) + 4 * n * n


if counted:
    ct.table(
        f"A transposed, n = {N}",
        {
            name: {
                "L2, by the formula": from_l2(N) / 1e9,
                "L2": 32 * counted[name][L2] / 1e9,
                "rate": times[name],
            }
            for name in caches
        },
        corner="copies of 16 bytes",
        units={"L2, by the formula": "GB", "L2": "GB", "rate": "TFLOP/s"},
    )

# %% orders
if counted:
    ct.table(
        f"n = {LARGE}",
        {
            name: {
                "hits in L2": counted[name][HITS],
                "memory": counted[name][DRAM] / 1e9,
                "rate": times[name],
            }
            for name in orders
        },
        corner="tiles in order",
        units={"hits in L2": "%", "memory": "GB", "rate": "TFLOP/s"},
    )
