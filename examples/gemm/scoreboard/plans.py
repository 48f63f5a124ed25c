# ---
# jupyter:
#   cudatut:
#     title: {en: "How the cost model was fitted, and what it loses", zh: "代价模型：怎样拟合，选出的方案慢多少"}
#     requires: sm_80
#     timeout_s: 240
#     long: true
#     sizes: {how_many: [60, 1], how_many_new: [40, 1]}
# ---

# %% [markdown]
# All plans of the final kernel are timed on sixty shapes; the constants of the
# cost model are fitted to these times. Then the model chooses for the forty
# shapes of the scoreboard, which the fit has not seen.

# %% setup
import math
from statistics import geometric_mean

import cudatut as ct
from cudatut.book.gemm.kernels import sgemm
from cudatut.book.gemm.ladder.ladder import Gemm
from cudatut.book.gemm.shapes import fit as shapes_fit
from cudatut.book.gemm.shapes.contests import Pool
from cudatut.book.gemm.shapes.shapes import SHAPES
from cudatut.book.measure import loops

SMS = ct.device().sm_count
clock = ct.attributes()["CLOCK_RATE"] / 1e3  # cycles per microsecond
how_many = 60
how_many_new = 40
seen = shapes_fit.training()[:how_many]
new = [tuple(shape) for shape in SHAPES[:how_many_new]]
if ct.tool.running():
    seen, new = [(33, 65, 97)], [(40, 50, 60)]
ct.compile_ahead(shapes_fit.instances(seen + new))
pool = Pool(seen + new)


def sweep(shapes):
    """Microseconds of every plan, by shape."""
    found = {}
    for m, n, k in shapes:
        a, b, c = pool.product(m, n, k)
        if ct.tool.running():
            sgemm.prepare(a, b, c)()
            continue
        found[m, n, k] = shapes_fit.measure(a, b, c, SMS)
    return found


# %% sweep
times, unseen = sweep(seen), sweep(new)
ct.facts(
    "timed",
    {
        "shapes": len(times),
        "plans": sum(len(plans) for plans in times.values()),
        "shapes, not for the fit": len(unseen),
    },
)

# %% [markdown]
# The fit, beside what stands in sgemm.py.

# %% fit
configs, costs = sgemm.CONFIGS, sgemm.COSTS
if times:
    configs, costs = shapes_fit.fit(times, clock, SMS)
    ct.table(
        "constants of the tiles",
        {
            config.label: {
                "rate": config.rate,
                "alone": config.alone,
                "start": config.start,
                "end": config.end,
                "words": config.words,
            }
            for config in configs
        },
        corner="tile",
        units={"start": "cycles", "end": "cycles"},
    )
    ct.facts(
        "other constants",
        {name: getattr(costs, name) for name in vars(sgemm.COSTS)},
    )


# %% [markdown]
# How much longer than the best plan the chosen one takes: with the constants of
# sgemm.py and with those fitted just now.


# %% lost
def losses(found, configs, costs):
    """Times as long as the best plan, by shape."""
    now = dict(zip(sgemm.CONFIGS, configs))
    lost = {}
    for shape, plans in found.items():
        guess = {
            plan: sgemm.cost(
                plan._replace(config=now[plan.config]),
                *shape,
                SMS,
                costs=costs,
            )
            for plan in plans
        }
        lost[shape] = shapes_fit.lost(plans, min(guess, key=guess.get))
    return lost


rows = {}
for name, found in (("fitted to", times), ("not seen", unseen)):
    for which, constants in (
        ("in sgemm.py", (sgemm.CONFIGS, sgemm.COSTS)),
        ("fitted now", (configs, costs)),
    ):
        lost = losses(found, *constants)
        if lost:
            rows[f"{name}, {which}"] = {
                "geometric mean": geometric_mean(lost.values()),
                "most": max(lost.values()),
                "shapes within 5 %": sum(x < 1.05 for x in lost.values()),
            }
if rows:
    ct.table("times as long as the best plan", rows, corner="shapes")

# %% worst
for name, found in (("fitted to", times), ("not seen", unseen)):
    lost = losses(found, sgemm.CONFIGS, sgemm.COSTS)
    lines = {}
    for shape in sorted(lost, key=lost.get)[-4:]:
        chosen = sgemm.plan(*shape, SMS)
        best = min(found[shape], key=found[shape].get)
        lines["{} x {} x {}".format(*shape)] = (
            f"{lost[shape]:.2f}: {chosen.config.label}; {chosen.splits} "
            f"instead of {best.config.label}; {best.splits}"
        )
    if lines:
        ct.facts(f"{name}: the four that lose most", lines)
if unseen:
    gflop = 2e-9 * sum(math.prod(shape) for shape in unseen)
    ct.facts("work of the forty", {"all": (gflop, "GFLOP")})

# %% [markdown]
# Two of the configurations have the same tile, with steps of 16 words of depth
# in three stages, or of 32 in two. What their machine code promises:

# %% steps
BY_16, BY_32 = sgemm.CONFIGS[:2]
kernels = [
    sgemm.kernel(config.name(4, False, False)) for config in (BY_16, BY_32)
]
codes = [] if ct.tool.running() else loops.disassemble_all(kernels)
rows = {}
for config, kernel, code in zip((BY_16, BY_32), kernels, codes):
    turn = loops.main_turn(code, config.bk * config.tm * config.tn)
    needs = kernel.resources(config.threads, config.shared(False, False))
    rows[f"by {config.bk}"] = {
        "registers": needs.registers,
        "spilled bytes": needs.spill_bytes,
        "FFMA": 100 * loops.share(turn),
    }
if rows:
    ct.table("main loop", rows, corner="steps", units={"FFMA": "%"})

# %% [markdown]
# Both with the plan that the model likes best, in turns.

# %% depth
shapes = [(n, n, n) for n in (2048, 4096, 8192)] + [(5120, 1536, 13824)]
if ct.tool.running():
    shapes = [(70, 130, 100)]


def likeliest(config, shape):
    """The plan of least cost with this configuration."""
    offered = [p for p in sgemm.plans(*shape, SMS) if p.config == config]
    return min(offered, key=lambda p: sgemm.cost(p, *shape, SMS))


rows = {}
for shape in shapes:
    problem, name = Gemm(*shape), "{} x {} x {}".format(*shape)
    runs = {}
    for config in (BY_16, BY_32):
        run = sgemm.prepare(
            problem.a, problem.b, problem.c, by=likeliest(config, shape)
        )
        ct.poison(problem.c)
        run()
        problem.compare(f"{name}, by {config.bk}")
        runs[f"by {config.bk}"] = run
    times = ct.bench(
        {**runs, **problem.vendors()},
        flops=problem.flops,
        name=name,
        rounds=12,
    )
    if not ct.tool.running():
        rows[name] = {
            "chosen": f"by {sgemm.plan(*shape, SMS).config.bk}",
            **{row.name: row.value for row in times.rows},
            "by 32, times by 16": times["by 32"].value / times["by 16"].value,
        }
if rows:
    ct.table("steps of 16 and of 32", rows, corner="m x n x k")
