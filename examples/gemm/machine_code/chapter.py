# ---
# jupyter:
#   cudatut:
#     title: {en: "Reading PTX and SASS", zh: "读懂 PTX 与 SASS"}
#     requires: sm_90
#     timeout_s: 120
#     sizes:
#       n: [1024, 128]
#       side: [4096, 40, 4096]
# ---

# %% [markdown]
# Every rung's main loop as the GPU runs it: how many of its instructions are
# FMAs, and what bound follows from that. First one kernel as a whole program.

# %% program
import cudatut as ct

from cudatut.book.measure import loops  # the reader of machine code

n = 1024
a = ct.to_device(ct.rng(0).random((n, n), dtype="float32"))
b = ct.to_device(ct.rng(1).random((n, n), dtype="float32"))
c = ct.empty((n, n), "float32")

# Tiles of 128 x 128 x 8 per block, 8 x 8 results per thread.
kernel = ct.Kernel(
    "gemm/ladder/vectorized.cu", "sgemm_vectorized<128,128,8,8,8>"
)
grid = n // 128, n // 128
kernel(a, b, c, n, n, n, 1.0, 0.0, grid=grid, block=256)
ct.check(c, a.get().astype("float64") @ b.get(), atol=0.1)

code = loops.disassemble(kernel)
turn = loops.main_turn(code, fmas=8 * 8 * 8)
made_of = loops.count(turn)
print("instructions of a turn:", made_of.total())
print("FMAs:", made_of["FFMA"])
print(f"share of FMAs: {100 * loops.share(turn):.1f} %")

# %% setup
import re
from concurrent.futures import ThreadPoolExecutor

from cudatut.book.measure import loops
from cudatut.book.gemm.kernels import sgemm
from cudatut.book.gemm.ladder.ladder import BASICS, LADDER, Gemm


gpu = ct.device()
side = 4096
problem = Gemm(side, side, side)

RUNGS = {name: BASICS.LADDER[name] for name in ("tiled", "thread_tile")}
RUNGS |= {name: LADDER[name] for name in LADDER.names if name != "final"}
# FMAs of a thread in one turn of the main loop: depth of a step times results
# per thread.
FMAS = {"tiled": 32 * 1, "thread_tile": 8 * 8}
FMAS |= {
    name: loops.fmas_of_turn(RUNGS[name].kernel)
    for name in RUNGS
    if name not in FMAS
}
config = sgemm.plan(4096, 4096, 4096, gpu.sm_count)[0]
FMAS["final"] = config.bk * config.tm * config.tn
# Side by side.
ct.compile_ahead([(rung.path, rung.kernel) for rung in RUNGS.values()])

# %% check
# Right behind the program, so that the profiler comes to these launches soon:
# one of each rung, in this order.
runs = {name: problem.launcher(rung) for name, rung in RUNGS.items()}
runs["final"] = sgemm.prepare(
    problem.a, problem.b, problem.c, config=config, splits=1
)
if cublas := ct.vendor.gemm(problem.a, problem.b, problem.c, profiled=True):
    runs["cuBLAS"] = cublas
for name, run in runs.items():
    ct.poison(problem.c)
    run()
    if ct.tool.running() != "ncu":
        problem.compare(f"{name}, n = {side}")

# %% [markdown]
# The main loop of each, read.


# %% read
def compiled(name):
    return runs["final"].kernel if name == "final" else RUNGS[name].compile()


# A sanitizer has nothing to find in reading code.
names = [] if ct.tool.running() else list(FMAS)
kernels = [compiled(name) for name in names]
with ThreadPoolExecutor() as pool:
    code = dict(zip(names, pool.map(loops.disassemble, kernels)))
turns = {name: loops.main_turn(code[name], FMAS[name]) for name in names}
counts = {name: loops.count(turn) for name, turn in turns.items()}


# %% loop
def loads_of(name):
    """LDS of all widths in a turn."""
    found = counts[name].items()
    return sum(times for op, times in found if op.startswith("LDS"))


conflicts = {name: loops.bank_conflicts(turns[name]) for name in names}
if names:
    ct.table(
        "a turn of the main loop",
        {
            name: {
                "instructions": counts[name].total(),
                "FFMA": counts[name]["FFMA"],
                "LDS": loads_of(name),
                "barriers": counts[name]["BAR"],
                "bank conflicts": conflicts[name],
                "share": 100 * loops.share(turns[name]),
            }
            for name in names
        },
        corner="kernel",
        units={"share": "%"},
    )
    ct.check(
        [counts[name]["FFMA"] for name in names],
        [FMAS[name] for name in names],
        name="FFMAs of a turn, read and expected",
        rtol=0,
    )

# %% predict
# An SM issues 4 instructions per cycle, and each may be an FMA of 32 lanes.
clock = ct.attributes()["CLOCK_RATE"] / 1e6  # GHz
peak = gpu.sm_count * 4 * 32 * 2 * clock / 1e3
bounds = {name: loops.share(turns[name]) * peak for name in names}
ct.facts(
    "the GPU",
    {
        "all slots FMAs": (peak, "TFLOP/s"),
        "measured limit": (ct.limits.fma(), "TFLOP/s"),
    },
)
if names:
    ct.table(
        "bound by issue slots",
        {name: {"bound": bound} for name, bound in bounds.items()},
        corner="kernel",
        units={"bound": "TFLOP/s"},
    )

# %% [markdown]
# What stands in the loops.

# %% mnemonics
OPS = ["LDG", "LDG.128", "LDGSTS", "LDGSTS.128", "UTMALDG"]
OPS += ["STS", "STS.128", "LDS", "LDS.64", "LDS.128"]


def standing(name):
    """Memory instructions as they stand in the whole main loop, on every way
    through it."""
    first = min(i.address for i, _ in turns[name])
    last = max(i.address for i, _ in turns[name])
    found = loops.count(
        (i, 1) for i in code[name] if first <= i.address <= last
    )
    return ", ".join(f"{op} {found[op]}" for op in OPS if found[op])


ct.facts(
    "memory instructions in the main loop",
    {name: standing(name) for name in names},
)


# %% excerpt
def show(instructions):
    """Address; cycles until the next; scoreboard set, scoreboards waited for;
    predicate; instruction."""
    for i in instructions:
        sets = "-" if i.sets is None else i.sets
        waits = "".join(map(str, i.waits)) or "-"
        head = f"{i.address:05x}  {i.stall:2}  {sets} {waits:4} {i.predicate:5}"
        print(head, i.text)


if names:
    turn = [i for i, _ in turns["vectorized"]]
    barrier = next(place for place, i in enumerate(turn) if i.op == "BAR")
    show(turn[barrier - 2 : barrier + 14])

# %% reuse
# The bits that this reader calls "reuse" against what cuobjdump prints.
for name in ("vectorized", "final"):
    if names:
        ct.check(
            [bin(i.reuse).count("1") for i in code[name]],
            [i.text.count(".reuse") for i in code[name]],
            name=f"{name}: reuse flags, decoded and printed",
            rtol=0,
        )

# %% fmas
if names:
    fmas = [i for i, _ in turns["final"] if i.op == "FFMA"]
    show(fmas[40:48])

# %% tma
if names:
    of_tma = [i for i in code["tma"] if i.op in ("UTMALDG", "SYNCS", "ELECT")]
    print(*dict.fromkeys(i.text for i in of_tma), sep="\n")

# %% ptx
if names:
    lines = loops.ptx(compiled("tiled"))
    shown = [line for line in lines if line.startswith(("ld.shared", "fma.rn"))]
    print(*shown[:6], sep="\n")

# %% ptx-counts
if names:
    ct.table(
        "tiled, one turn",
        {
            "PTX": {
                "loads": sum(line.startswith("ld.shared") for line in lines),
                "FMAs": sum(line.startswith("fma.rn.f32") for line in lines),
            },
            "SASS": {
                "loads": loads_of("tiled"),
                "FMAs": counts["tiled"]["FFMA"],
            },
        },
    )

# %% float4
if names:
    vectorized = counts["vectorized"]
    ct.facts(
        "a turn of vectorized, per thread",
        {
            "words that LDS.128 brings": 4 * vectorized["LDS.128"],
            "LDS.128": vectorized["LDS.128"],
            "products": FMAS["vectorized"],
            "FFMA": vectorized["FFMA"],
        },
    )

# %% [markdown]
# Timed and counted.

# %% bench
times = ct.bench(
    runs,
    flops=problem.flops,
    name=f"{side} x {side} x {side}",
    rounds=6,
)

# %% counters
EXECUTED = "smsp__inst_executed.sum"
ISSUED = "smsp__issue_active.avg.pct_of_peak_sustained_active"
DISPATCH = (
    "smsp__average_warps_issue_stalled_dispatch_stall_per_issue_active.ratio"
)
# ncu sees the kernels of cuBLAS as "...gemm...", or as CUTLASS's "Kernel2". The
# first launch is that of the program.
found = ct.profile_launches(
    "gemm/machine_code",
    "regex:matmul_tiled|matmul_thread_tile|gemm|Kernel",
    [EXECUTED, ISSUED, DISPATCH],
    launches=len(RUNGS) + 1 + ct.vendor.installed(),
    skip=1,
)
counted = dict(zip(runs, found))

# %% compare
fma_instructions = side**3 / 32
rows = {}
for name, counter in counted.items():
    executed = fma_instructions / counter[EXECUTED]
    slots = counter[ISSUED] / 100
    row = {"FMAs, read": None, "FMAs, executed": 100 * executed}
    row |= {"slots used": 100 * slots, "bound": bounds.get(name)}
    row["product"] = executed * slots * peak
    row["measured"] = times[name].value
    row["two words of one bank"] = None
    row["dispatch stall"] = counter[DISPATCH]
    if name in turns:
        row["FMAs, read"] = 100 * loops.share(turns[name])
        share = conflicts[name] / counts[name]["FFMA"]
        row["two words of one bank"] = 100 * share
    rows[name] = row
if rows:
    percent = ("FMAs, read", "FMAs, executed", "slots used")
    units = dict.fromkeys((*percent, "two words of one bank"), "%")
    units |= dict.fromkeys(("bound", "product", "measured"), "TFLOP/s")
    ct.table("read, counted, timed", rows, corner="kernel", units=units)

# %% strip
# For the drawing on the page: where in a turn what stands, as runs of letters.
KINDS = {
    "FFMA": "f",
    "LDS": "s",
    "LDG": "g",
    "LDGSTS": "g",
    "UTMALDG": "g",
    "STS": "t",
    "BAR": "b",
}


def strip(name):
    letters = "".join(KINDS.get(i.op, "o") * times for i, times in turns[name])
    return re.sub(r"(.)\1*", lambda run: f"{run[0][0]}{len(run[0])}", letters)


ct.facts(
    "runs of instructions",
    {
        name: strip(name)
        for name in names
        if name in ("vectorized", "double_buffer", "tma", "final")
    },
)
