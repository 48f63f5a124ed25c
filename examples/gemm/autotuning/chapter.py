# ---
# jupyter:
#   cudatut:
#     title: {en: "Tuning the final kernel", zh: "为最终的 kernel 自动调优"}
#     requires: sm_80
#     timeout_s: 180
#     sizes:
#       side: [1024, 40]
#       names: [64, 3]
#       trial_runs: [200, 2]
#       ROUNDS: [[1, 5, 15, 50], [1, 2]]
#       rounds_anew: [20, 1]
#       repetitions: [15, 1]
#       fair_rounds: [60, 1]
#       drawn: [24, 1]
#       large: [4096, 80]
#       HEATS: [[2, 5, 12, 30], [1, 1]]
#       SIZES: [[512, 1024, 2048], [72]]
# ---

# %% [markdown]
# Thousands of instances of one template: which to compile, how to time them so
# that luck does not decide, and what it brings. (small_search.py, beside this
# file, is a whole search of three.) First rules shrink the space of the final
# kernel.

# %% setup
import random
from statistics import NormalDist, median, quantiles
from time import perf_counter

from cudatut.book.gemm.ladder import autotuning_space as space
from cudatut.book.gemm.tuner import Heat

import cudatut as ct

gpu = ct.device()
limits = space.Limits.of(gpu)
SPACE, Candidate = space.SPACE, space.Candidate

# %% prune
steps, left = space.prune(limits)
ct.facts(
    "candidates left",
    dict(steps) | {"share left": (100 * len(left) / steps[0][1], "%")},
)

# %% [markdown]
# How runs are timed, and how a race is held.


# %% turns
def take_turns(runs, rounds, order):
    """Microseconds of `rounds` runs of each, by name."""
    times = {name: [] for name in runs}
    lineup = list(runs)
    for _ in range(rounds):
        order.shuffle(lineup)
        for name in lineup:
            # Empties the L2 cache before the run.
            times[name].append(ct.time_hidden(runs[name]))
    return times


def race(runs, heats, keep=0.25, at_least=4):
    """Few rounds for all, then ever more rounds for ever fewer."""
    order, left, found = random.Random(0), list(runs), []
    for rounds in heats:
        times = take_turns({name: runs[name] for name in left}, rounds, order)
        ranked = sorted(left, key=lambda name: median(times[name]))
        left = ranked[: max(at_least, round(len(ranked) * keep))]
        found.append(Heat(rounds, times, left))
    return found


# %% [markdown]
# A race that nobody can win: one kernel under many names. First the prediction,
# from how much its runs scatter.

# %% luck-predict
names = 64
side = 1024
small = SPACE.problem({"m": side, "n": side, "k": side})
default = SPACE.default(small, gpu)
SPACE.check(small, default)
run = SPACE.launcher(small, default)
trial_runs = 200
alone = [ct.time_hidden(run) for _ in range(trial_runs)]
# Of a normal distribution 60 % lie within 0.842 standard deviations. Rare slow
# runs do not count that way.
low, *_, high = quantiles(alone, n=5)
scatter = 100 * (high - low) / (2 * 0.842) / median(alone)
# The smallest of so many normal numbers lies so many deviations below the mean.
luckiest = NormalDist().inv_cdf((names - 0.375) / (names + 0.25))
ct.facts(
    "one kernel, run after run",
    {
        "median": (median(alone), "us"),
        "standard deviation of a run": (scatter, "%"),
        f"luckiest of {names}": (luckiest, "standard deviations"),
    },
)
ROUNDS = (1, 5, 15, 50)
# The median of many values, r, scatters by sqrt(pi / 2 r) of what one does.
predicted = {
    r: luckiest * scatter * (1 if r == 1 else (1.571 / r) ** 0.5)
    for r in ROUNDS
}
ct.table(
    "predicted lead of the luckiest",
    {r: {"lead": lead} for r, lead in predicted.items()},
    corner="rounds",
    units={"lead": "%"},
)

# %% luck
runs = {f"candidate {i}": run for i in range(names)}
times = take_turns(runs, max(ROUNDS), random.Random(0))


def first(rounds):
    """Who wins by the first so many rounds, and how far (%) it is ahead of the
    middle of the field."""
    medians = {name: median(found[:rounds]) for name, found in times.items()}
    winner = min(medians, key=medians.get)
    return winner, 100 * (median(medians.values()) / medians[winner] - 1)


ct.table(
    f"one kernel under {names} names",
    {
        r: {
            "winner": first(r)[0],
            "predicted lead": predicted[r],
            "lead": first(r)[1],
        }
        for r in ROUNDS
    },
    corner="rounds",
    units={"predicted lead": "%", "lead": "%"},
)

# %% luck-anew
rounds_anew = 20
again = take_turns(runs, rounds_anew, random.Random(1))
medians = {name: median(found) for name, found in again.items()}
lead = 100 * (median(medians.values()) / medians[first(1)[0]] - 1)
ct.facts("winner of one round, measured anew", {"lead": (lead, "%")})


# %% [markdown]
# How tuning scripts often time: one after the other, in the order of a list.


# %% order
def one_after_another(names, runs=3):
    """The mean of so many runs of each, in the order of the list: no warm-up,
    no turns, no L2 flush between."""
    ct.flush_l2()  # something else was in the cache before
    ct.synchronize()
    found = {}
    for name in names:
        found[name] = sum(ct.time_once_bare(run) for _ in range(runs)) / runs
    return found


LIST = ["A", "B", "C", "D", "E", "F"]
repetitions = 15
pairs = [
    (one_after_another(LIST), one_after_another(LIST[::-1]))
    for _ in range(repetitions)
]
fair_rounds = 60
fair = take_turns(dict.fromkeys(LIST, run), fair_rounds, random.Random(2))
rows = {
    "A first": {name: median(pair[0][name] for pair in pairs) for name in LIST},
    "F first": {name: median(pair[1][name] for pair in pairs) for name in LIST},
    "taking turns": {name: median(fair[name]) for name in LIST},
}
for row in rows.values():
    slowest, fastest = max(row.values()), min(row.values())
    row["slowest over fastest"] = 100 * (slowest / fastest - 1)
ct.table(
    "one kernel under six names, median time",
    rows,
    corner="order",
    units=dict.fromkeys(LIST, "us") | {"slowest over fastest": "%"},
)


# %% enqueue
def enqueue():
    """Microseconds that the host takes to enqueue one launch, the GPU idle."""
    ct.synchronize()
    start = perf_counter()
    run()
    return (perf_counter() - start) * 1e6


ct.facts("host", {"one launch": (median(enqueue() for _ in range(15)), "us")})

# %% [markdown]
# Now real candidates: a few that are known to be good, and a random sample.

# %% sample
SEEDS = [  # of the SGEMM worklog: the best on an A6000, and on an A100
    space.config_of(bm=128, bn=128, bk=16, tm=8, tn=8, stages=4, blocks=1),
    space.config_of(bm=64, bn=64, bk=16, tm=4, tn=4, stages=4, blocks=4),
]
drawn = 24
configs = [*space.SGEMM.CONFIGS, *SEEDS]
configs += random.Random(0).sample(left, drawn)
configs = list({space.label(config): config for config in configs}.values())
errors = ct.compile_ahead(
    [SPACE.instance(Candidate(config)) for config in configs]
)
needs = {}
for config in configs:
    if SPACE.instance(Candidate(config)) not in errors:
        kernel = space.SGEMM.kernel(config.name(4, False, False))
        needs[space.label(config)] = kernel.resources(
            config.threads, config.shared(False, False)
        )
field = [
    config
    for config in configs
    if space.label(config) in needs
    and not needs[space.label(config)].spill_bytes
]
chance = 100 * (1 - 0.95**24)
ct.facts(
    "the field",
    {
        "chance that one of 24 is among the best 5 %": (chance, "%"),
        "compiled": len(configs),
        "do not compile": len(errors),
        "spill registers": len(needs) - len(field),
        "fewer blocks per SM than asked for": sum(
            needs[space.label(config)].blocks_per_sm < config.blocks
            for config in field
        ),
        "race": len(field),
    },
)

# %% check
for config in field:
    for trial in SPACE.trials():
        SPACE.check(trial, Candidate(config))


# %% contestants
def contestants(n):
    """For a product of n x n x n: the problem, and by label the candidates and
    callables, each run once."""
    size = {"m": n, "n": n, "k": n}
    problem = SPACE.problem(size)
    found = [
        Candidate(config, splits)
        for config in field
        for splits in space.splits_of(config, limits, **size)
    ]
    untuned = SPACE.default(problem, gpu)
    if untuned.numbers not in [one.numbers for one in found]:
        found.append(untuned)
    runs = {one.label: SPACE.launcher(problem, one) for one in found}
    for launch in runs.values():
        launch()
    return problem, {one.label: one for one in found}, runs


# %% race
HEATS = (2, 5, 12, 30)
large = 4096
problem, candidates, runs = contestants(large)
heats = race(runs, HEATS)
ct.table(
    f"race, {large} x {large} x {large}",
    {
        f"heat {number}": {
            "contestants": len(heat.times),
            "rounds": heat.rounds,
            "first": heat.kept[0],
            "its median": heat.median(heat.kept[0]),
        }
        for number, heat in enumerate(heats, 1)
    },
    units={"its median": "us"},
)
winner = candidates[heats[-1].kept[0]]
SPACE.check(problem, winner)

# %% runs
ct.facts(
    "runs of the race",
    {
        "all heats": sum(len(heat.times) * heat.rounds for heat in heats),
        "if all had as many rounds as the last": len(runs) * HEATS[-1],
    },
)

# %% contest
untuned = SPACE.default(problem, gpu)
last = ct.bench(
    {
        "default": SPACE.launcher(problem, untuned),
        "tuned": runs[winner.label],
        **problem.vendors(),
    },
    flops=problem.flops,
    name=f"{large} x {large} x {large}",
    rounds=40,
)

# %% chosen
all_runs = [time for times in heats[0].times.values() for time in times]
ct.facts(
    "tuned and default",
    {
        "default": untuned.label,
        "tuned": winner.label,
        "speed, tuned / default": last["default"].median_us
        / last["tuned"].median_us,
        "tuned, in the heat that chose it": (
            heats[-1].median(winner.label),
            "us",
        ),
        "tuned, measured anew": (last["tuned"].median_us, "us"),
        "fastest single run of the first heat": (min(all_runs), "us"),
    },
)

# %% others
first_heat = {name: median(found) for name, found in heats[0].times.items()}
ranked = sorted(first_heat, key=first_heat.get)
places = {*range(6), len(ranked) // 2, len(ranked) - 1}
ct.table(
    "share of the fastest, first heat",
    {
        place + 1: {
            "candidate": ranked[place],
            "share": 100 * first_heat[ranked[0]] / first_heat[ranked[place]],
        }
        for place in sorted(places)
        if place < len(ranked)
    },
    corner="place",
    units={"share": "%"},
)

# %% [markdown]
# The same instances at other sizes.

# %% sizes
SIZES = (512, 1024, 2048)
carried = Candidate(winner.config)  # a block for each tile
rows = {}
for extent in SIZES:
    other, all_there, runs_there = contestants(extent)
    chosen = all_there[race(runs_there, HEATS)[-1].kept[0]]
    SPACE.check(other, chosen)
    by_default = SPACE.default(other, gpu)
    found = ct.bench(
        {
            "default": SPACE.launcher(other, by_default),
            f"tuned for {large}": SPACE.launcher(other, carried),
            f"tuned for {extent}": runs_there[chosen.label],
            **other.vendors(),
        },
        flops=other.flops,
        name=f"{extent} x {extent} x {extent}",
        rounds=60,
    )
    base = found["default"].median_us
    rows[extent] = {
        "choice": chosen.label,
        "tuned for this size": base / found[f"tuned for {extent}"].median_us,
        f"tuned for {large}": base / found[f"tuned for {large}"].median_us,
    }

# %% carry
ct.table("times as fast as the default choice", rows, corner="size")
