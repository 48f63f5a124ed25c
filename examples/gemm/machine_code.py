# ---
# jupyter:
#   cudatut:
#     title: {en: "Reading PTX and SASS", zh: "读懂 PTX 与 SASS"}
#     requires: sm_90
#     timeout_s: 120
# ---

# %% [markdown]
# Every rung's main loop as the GPU runs it: how many of its instructions are FMAs, and what bound follows from that.

# %% setup
import re
from concurrent.futures import ThreadPoolExecutor

import loops
import numpy as np
import sgemm
from ladder import BASICS, LADDER, Gemm

import cudatut as ct
from cudatut import tool
from cudatut.profiler import profile_launches
from cudatut.tuning import compile_ahead

gpu = ct.device()
n = ct.size(4096, 40, profiled=4096)
problem = Gemm(n, n, n)

RUNGS = {name: BASICS.LADDER[name] for name in ("tiled", "thread_tile")}
RUNGS |= {name: LADDER[name] for name in LADDER.names if name != "final"}
# FMAs of a thread in one turn of the main loop: depth of a step times results per thread.
FMAS = {"tiled": 32 * 1, "thread_tile": 8 * 8}
FMAS |= {
    name: loops.fmas_of_turn(RUNGS[name].kernel)
    for name in RUNGS
    if name not in FMAS
}
config = sgemm.plan(4096, 4096, 4096, gpu.sm_count)[0]
FMAS["final"] = config.bk * config.tm * config.tn
compile_ahead(
    [(rung.path, rung.kernel) for rung in RUNGS.values()]
)  # side by side

# %% check
# First of all, so that the profiler comes to these launches soon: one of each rung, in this order.
runs = {name: problem.launcher(rung) for name, rung in RUNGS.items()}
runs["final"] = sgemm.prepare(
    problem.a, problem.b, problem.c, config=config, splits=1
)
if cublas := ct.vendor.gemm(problem.a, problem.b, problem.c, profiled=True):
    runs["cuBLAS"] = cublas
for name, run in runs.items():
    ct.poison(problem.c)
    run()
    if tool.running() != "ncu":
        problem.compare(f"{name}, n = {n}")


# %% read
def compiled(name):
    return runs["final"].kernel if name == "final" else RUNGS[name].compile()


# No reading of code under a sanitizer: there is nothing to find, and cuobjdump would be watched as well.
names = [] if tool.running() else list(FMAS)
kernels = [compiled(name) for name in names]
with ThreadPoolExecutor() as pool:
    code = dict(zip(names, pool.map(loops.disassemble, kernels)))
turns = {name: loops.main_turn(code[name], FMAS[name]) for name in names}
counts = {name: loops.count(turn) for name, turn in turns.items()}

# %% loop
ct.facts(
    "a turn of the main loop",
    {
        f"{name}: {what}": value
        for name in names
        for what, value in (
            ("instructions", counts[name].total()),
            ("FFMA", counts[name]["FFMA"]),
            (
                "LDS",
                sum(
                    times
                    for op, times in counts[name].items()
                    if op.startswith("LDS")
                ),
            ),
            ("barriers", counts[name]["BAR"]),
            ("share", (100 * loops.share(turns[name]), "%")),
            ("bank conflicts", loops.bank_conflicts(turns[name])),
        )
    },
)
ct.check(
    np.array([counts[name]["FFMA"] for name in names], float),
    np.array([FMAS[name] for name in names], float),
    name="FFMAs of a turn, read and expected",
    rtol=0,
)

# %% mnemonics
OPS = (
    "LDG", "LDG.128", "LDGSTS", "LDGSTS.128", "UTMALDG", "STS", "STS.128", "LDS", "LDS.64",
    "LDS.128",
)  # fmt: skip


def standing(name):
    """Memory instructions as they stand in the whole main loop, on every way through it."""
    first = min(i.address for i, _ in turns[name])
    last = max(i.address for i, _ in turns[name])
    return loops.count((i, 1) for i in code[name] if first <= i.address <= last)


present = {name: standing(name) for name in names}
ct.facts(
    "memory instructions in the main loop",
    {
        name: ", ".join(
            f"{op} {present[name][op]}" for op in OPS if present[name][op]
        )
        for name in names
    },
)


# %% excerpt
def show(instructions):
    """Address; cycles until the next; scoreboard set, scoreboards waited for; instruction."""
    for i in instructions:
        sets = "-" if i.sets is None else i.sets
        waits = "".join(map(str, i.waits)) or "-"
        print(
            f"{i.address:05x}  {i.stall:2}  {sets} {waits:4} {i.predicate:5} {i.text}"
        )


if names:
    turn = [i for i, _ in turns["vectorized"]]
    barrier = next(place for place, i in enumerate(turn) if i.op == "BAR")
    show(turn[barrier - 5 : barrier + 20])

# %% reuse
# The bits that this reader calls "reuse" against what cuobjdump prints.
for name in ("vectorized", "final"):
    if names:
        bits = np.array([bin(i.reuse).count("1") for i in code[name]], float)
        printed = np.array([i.text.count(".reuse") for i in code[name]], float)
        ct.check(
            bits,
            printed,
            name=f"{name}: reuse flags, decoded and printed",
            rtol=0,
        )

# %% fmas
if names:
    fmas = [i for i, _ in turns["final"] if i.op == "FFMA"]
    show(fmas[40:50])

# %% tma
if names:
    of_tma = [i for i in code["tma"] if i.op in ("UTMALDG", "SYNCS", "ELECT")]
    print(*dict.fromkeys(i.text for i in of_tma), sep="\n")

# %% ptx
if names:
    lines = loops.ptx(compiled("tiled"))
    loads = sum(line.startswith("ld.shared") for line in lines)
    multiplies = sum(line.startswith("fma.rn.f32") for line in lines)
    in_sass = sum(
        times for op, times in counts["tiled"].items() if op.startswith("LDS")
    )
    print(
        *[line for line in lines if line.startswith(("ld.shared", "fma.rn"))][
            :6
        ],
        sep="\n",
    )
    ct.facts(
        "tiled",
        {
            "PTX: ld.shared": loads,
            "PTX: fma": multiplies,
            "SASS: LDS, all widths": in_sass,
            "SASS: FFMA": counts["tiled"]["FFMA"],
        },
    )
    ct.claim(
        id="ptx-two-loads-per-fma",
        source="SGEMM worklog, kernel 3",
        statement={
            "en": "Every FMA of the kernel with shared tiles needs two loads from shared memory, as the PTX shows. Load instructions "
            "per FMA in what the GPU runs.",
            "zh": "共享内存分块的 kernel，每次 FMA 都要两次共享内存读取，PTX 里看得见。下面是 GPU 实际执行的代码里每条 FMA 对应的读取指令数。",
        },
        predicted=loads / multiplies,
        measured=in_sass / counts["tiled"]["FFMA"],
        unit="loads per FMA",
        verdict="confirmed" if in_sass >= loads else "refuted",
    )

# %% which-operand
if names:
    of = [i for i, _ in turns["thread_tile"] if i.op == "LDS"]
    wide, narrow = (
        [i for i in of if (".128" in i.name) == w] for w in (True, False)
    )
    print(*[i.text for i in of[:8]], sep="\n")
    # A thread needs 8 rows x 8 depths of A, and of B one column: 8 depths.
    words_of_a, words_of_b = 8 * 8, 8
    is_a = 4 * len(wide) == words_of_a and len(narrow) == words_of_b
    ct.claim(
        id="vectorized-operand",
        source="SGEMM worklog, kernel 4",
        statement={
            "en": "Where a thread computes a column of results, the compiler combines the loads from the tile of B; those of A "
            "stay single. Tile whose words come by LDS.128.",
            "zh": "每个线程算一列结果时，编译器把对 B 分块的读取合并了，对 A 的仍是逐字读取。下面是由 LDS.128 读取的分块。",
        },
        predicted="B",
        measured="A" if is_a else "B",
        verdict="refuted" if is_a else "confirmed",
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

# %% predict
# An SM issues 4 instructions per cycle, and each may be an FMA of 32 lanes.
clock = ct.attributes()["CLOCK_RATE"] / 1e6  # GHz
peak = gpu.sm_count * 4 * 32 * 2 * clock / 1e3
ct.facts(
    "bound by issue slots",
    {
        "all slots FMAs": (peak, "TFLOP/s"),
        "measured limit": (ct.limits.fma(), "TFLOP/s"),
    }
    | {name: (loops.share(turns[name]) * peak, "TFLOP/s") for name in names},
)

# %% bench
times = ct.bench(runs, flops=problem.flops, name=f"n = {n}", rounds=6)

# %% counters
EXECUTED = "smsp__inst_executed.sum"
ISSUED = "smsp__issue_active.avg.pct_of_peak_sustained_active"
DISPATCH = (
    "smsp__average_warps_issue_stalled_dispatch_stall_per_issue_active.ratio"
)
# ncu sees the kernels of cuBLAS as "...gemm...", or as CUTLASS's "Kernel2".
counted = dict(
    zip(
        runs,
        profile_launches(
            "gemm/machine_code",
            "regex:matmul_tiled|matmul_thread_tile|gemm|Kernel",
            [EXECUTED, ISSUED, DISPATCH],
            launches=len(RUNGS) + 1 + ct.vendor.installed(),
        ),
    )
)

# %% compare
fma_instructions = n**3 / 32
rows = {}
for name, counter in counted.items():
    read = 100 * loops.share(turns[name]) if name in turns else None
    executed = 100 * fma_instructions / counter[EXECUTED]
    rate = executed / 100 * counter[ISSUED] / 100 * peak
    rows |= {f"{name}: share, read": (read, "%")} if read else {}
    rows |= {
        f"{name}: share, executed": (executed, "%"),
        f"{name}: slots used": (counter[ISSUED], "%"),
        f"{name}: dispatch stall": counter[DISPATCH],
        f"{name}: share x slots": (rate, "TFLOP/s"),
        f"{name}: measured": (times[name].value, "TFLOP/s"),
    }
ct.facts("read, counted, timed", rows)

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
