# ---
# jupyter:
#   cudatut:
#     title: {en: "Bank conflicts of a matrix product", zh: "矩阵乘法里的存储体冲突"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       side: [1024, 48, 1024]
#       large: [4096, 48]
#       ragged: [[257, 260, 132], [130, 132, 36]]
# ---

# %% [markdown]
# Every access of the kernel to shared memory, bank by bank, from its own index
# arithmetic; three cures and a placebo. First one product as a whole program.

# %% program
import cudatut as ct

m, n, k = 1000, 900, 800
a = ct.to_device(ct.rng(0).random((m, k), dtype="float32"))
b = ct.to_device(ct.rng(1).random((k, n), dtype="float32"))
c = ct.empty((m, n), "float32")

# Longer rows for the stores of A, another order of columns for the reads of B.
kernel = ct.Kernel(
    "gemm/ladder/conflict_free.cu", "sgemm_conflict_free<128,128,8,8,8>"
)
grid = ct.cdiv(n, 128), ct.cdiv(m, 128)
kernel(a, b, c, m, n, k, 1.0, 0.0, grid=grid, block=256)

ct.check(c, a.get().astype("float64") @ b.get(), atol=1e-2)

# %% setup
from dataclasses import replace

from cudatut.book.gemm.block_tiles.lanes import LANES, passes, place
from cudatut.book.gemm.ladder.ladder import LADDER, Gemm, earlier_rungs


side = 1024  # m = n = k of the counted launches
large = 4096  # of the timed ones
ragged = (257, 260, 132)
BM, BN, BK, TM, TN = 128, 128, 8, 8, 8
THREADS = BM * BN // (TM * TN)
LAYOUTS = {  # pitch of As, pitch of Bs, swizzled?
    "as it was": (BM, BN, 0),
    "Bs padded": (BM, BN + 4, 0),
    "As padded": (BM + 4, BN, 0),
    "swizzled": (BM, BN, 1),
}
# The kernel of the last chapter with the layout for a choice.
KERNEL = ct.read_rung("gemm/bank_conflicts/bank_conflicts.cu")
RUNGS = {
    name: replace(
        KERNEL,
        name=name,
        kernel="sgemm_layout<128,128,8,8,8,{},{},{}>".format(*layout),
    )
    for name, layout in LAYOUTS.items()
}
RUNGS["conflict_free"] = LADDER["conflict_free"]

# %% [markdown]
# Right before fast.

# %% check
counted_problem = Gemm(side, side, side)
for rung in RUNGS.values():  # the profiler counts these launches
    counted_problem.check(rung)
for m, n, k in [(129, 100, 33), ragged]:
    problem = Gemm(m, n, k, 0.5, -2.0)
    for rung in RUNGS.values():
        problem.check(rung)
for m, n, k in [(1, 1, 1), (31, 33, 7), (5, 3, 0)]:
    LADDER.check("conflict_free", [{"m": m, "n": n, "k": k}])

# %% [markdown]
# The first kernel of this part as it is written: one word per lane.

# %% scalar
table = {}
for columns in (64, 128):
    x, y = place(LANES, columns, TM, TN)
    table[f"{columns} x {columns}"] = {
        "As[y + r][i], one word": passes(y * BK),
        "Bs[i][x + c], one word": passes(x),
        "Bs[i][x + c], four words": passes(x, 4),
        "the same, ways": passes(x, 4) / 4,  # four groups of 8 lanes
    }
ct.table("passes of one read", table, corner="tile of C")

# %% [markdown]
# The passes of the wide accesses, for five layouts.


# %% enumerate
def swap_a(inner, row):  # place_a and place_b of the kernel
    return row ^ inner // 4 % 2 * 16


def swap_b(column):
    return column ^ column // 32 % 2 * 4


def per_step(pitch_a, pitch_b, swizzle, next_b=4, apart=TN):
    """Passes of a warp in a step of depth BK, for the four kinds of access.

    apart: columns between neighboring lanes; next_b: between the two groups of
    four columns of a lane.
    """
    a = swap_a if swizzle else lambda inner, row: row
    b = swap_b if swizzle else lambda column: column
    found = dict.fromkeys(("store A", "store B", "read A", "read B"), 0)
    for warp in range(THREADS // 32):
        t = 32 * warp + LANES
        for first in range(0, BM * BK // 4, THREADS):
            i = (first + t) // 2
            row, inner = i % BM, i // BM * 8 + t % 2 * 4
            for d in range(4):
                word = (inner + d) * pitch_a + a(inner, row)
                found["store A"] += passes(word)
        for first in range(0, BK * BN // 4, THREADS):
            i = first + t
            inner, column = i // (BN // 4), i % (BN // 4) * 4
            found["store B"] += passes(inner * pitch_b + b(column), 4)
        x, y = t % (BN // TN) * apart, t // (BN // TN) * TM
        for i in range(BK):
            for r in range(0, TM, 4):
                found["read A"] += passes(i * pitch_a + a(i, y + r), 4)
            for c in range(TN // 4):
                word = i * pitch_b + b(x + c * next_b)
                found["read B"] += passes(word, 4)
    return {name: count // (THREADS // 32) for name, count in found.items()}


enumerated = {name: per_step(*layout) for name, layout in LAYOUTS.items()}
enumerated["conflict_free"] = per_step(
    BM + 4, BN, 0, next_b=BN // TN * 4, apart=4
)
# In a step a warp starts BK * TM * TN FMAs. An SM starts four in a cycle, and
# one pass.
cycles = BK * TM * TN / 4
table = {}
for name, of in enumerated.items():
    total = sum(of.values())
    table[name] = of | {
        "all": total,
        "per cycle of FMAs": total / cycles,
        "of the FMA limit": 100 * min(1, cycles / total),
    }
ct.table(
    "passes of a warp in one step of depth 8",
    table,
    corner="layout",
    units={"of the FMA limit": "%"},
)

# %% [markdown]
# The enumeration beside the profiler.

# %% count
LOADS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
STORES = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"
LOAD_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"
STORE_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"
# The first launch is that of the program.
_, *counted = ct.profile_launches(
    "gemm/bank_conflicts",
    kernel="regex:^sgemm_(layout|conflict_free)$",
    metrics=[LOADS, STORES, LOAD_CONFLICTS, STORE_CONFLICTS],
    launches=1 + len(RUNGS),
) or [None]
# Of all warps together.
steps = side // BK * side**2 / (BM * BN) * THREADS / 32
table, conflicts = {}, {}
for name, got in zip(RUNGS, counted):
    of = enumerated[name]
    table[name] = {
        "loads, predicted": of["read A"] + of["read B"],
        "loads, measured": got[LOADS] / steps,
        "stores, predicted": of["store A"] + of["store B"],
        "stores, measured": got[STORES] / steps,
    }
    conflicts[name] = {
        "loads": got[LOAD_CONFLICTS] / steps,
        "stores": got[STORE_CONFLICTS] / steps,
    }
if table:
    ct.table("passes, per warp and step", table, corner="layout")
    ct.check(
        [row["loads, measured"] for row in table.values()],
        [row["loads, predicted"] for row in table.values()],
        name="passes of loads",
        rtol=0.01,
    )

# %% conflicts
if conflicts:
    ct.table("conflicts, per warp and step", conflicts, corner="layout")

# %% bench
times = LADDER.bench(
    [
        *earlier_rungs()[1:],
        LADDER["block_tile_2d"],
        LADDER["vectorized"],
        *RUNGS.values(),
    ],
    m=large,
    n=large,
    k=large,
    rounds=5,
    name="4096 x 4096 x 4096",
)

# %% gain
before = times["as it was"].median_us
ct.facts(
    "times as fast as before",
    {
        "by the passes, at most": sum(enumerated["as it was"].values())
        / cycles,
    }
    | {
        name: before / times[name].median_us
        for name in ("conflict_free", "swizzled", "As padded", "Bs padded")
    },
)
if "cuBLAS" in [row.name for row in times.rows]:  # not under a sanitizer
    mine = times["conflict_free"].median_us
    speed = 100 * times["cuBLAS"].median_us / mine
    ct.facts("conflict_free", {"of the speed of cuBLAS": (speed, "%")})
