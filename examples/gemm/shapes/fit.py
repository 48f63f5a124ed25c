"""The constants of the cost model in sgemm.py, fitted to times: what scoreboard_plans.py shows.

    found = {shape: measure(shape) for shape in TRAINING}
    configs, costs = fit(found, clock)

None of the training shapes is one of the forty (shapes.py).
"""

import math
import random
from dataclasses import fields, replace
from statistics import median

import numpy as np
from cudatut.book.gemm.kernels import sgemm
from cudatut.book.gemm.kernels.sgemm import Config, Costs, Plan

import cudatut as ct

LEAST_WEIGHT = 1.6  # plans that take so much longer do not count
SHAPE_WEIGHT = 0.05  # of an error that all plans of a shape have in common
TOLERANCE = 0.01  # of errors beyond it, the size counts less than their number


# --8<-- [start:training]
def training() -> list[tuple[int, int, int]]:
    """Forty shapes as in shapes.py, of another seed; and twenty that are deep or flat."""
    logs = np.random.default_rng(7).uniform(np.log(64), np.log(8192), (40, 3))
    found = np.rint(np.exp(logs)).astype(int).tolist()
    rng = random.Random(5)
    while len(found) < 60:
        m, n, k = (
            round(math.exp(rng.uniform(math.log(least), math.log(most))))
            for least, most in ((16, 4096), (16, 4096), (16, 60_000))
        )
        if rng.random() < 0.5:  # as many with rows that copies of 16 bytes suit
            n = 4 * ct.cdiv(n, 4)
        if m * n * k < 1e11:
            found.append([m, n, k])
    return [tuple(shape) for shape in found]


# --8<-- [end:training]


def instances(shapes) -> list[tuple[str, str]]:
    """All kernels that the plans of these shapes need, for `ct.compile_ahead`."""
    vecs = {math.gcd(n, 4) for _, n, _ in shapes}
    return [
        (sgemm.SOURCE, config.name(vec, False, False))
        for config in sgemm.CONFIGS
        for vec in vecs
    ]


def measure(a, b, c, sms: int, rounds: int = 3) -> dict[Plan, float]:
    """Microseconds of all plans for C = A B: the least of a few rounds, then those that may be the best once more.

    Something may disturb a run, or all plans for a while; it makes none faster.
    """
    (m, k), n = a.shape, b.shape[1]
    runs = {
        plan: sgemm.prepare(a, b, c, by=plan)
        for plan in sgemm.plans(m, n, k, sms)
    }
    for run in runs.values():
        run()
    first = ct.take_turns(runs, rounds, random.Random(1))
    times = {plan: min(values) for plan, values in first.items()}
    best = min(times.values())
    again = {
        plan: run for plan, run in runs.items() if times[plan] < 1.2 * best
    }
    found = ct.take_turns(again, rounds, random.Random(0))
    return times | {plan: median(values) for plan, values in found.items()}


# --8<-- [start:fit]
def fit(
    found: dict[tuple[int, int, int], dict[Plan, float]],
    clock: float,
    sms: int,
    configs: tuple[Config, ...] = sgemm.CONFIGS,
    costs: Costs = sgemm.COSTS,
    steps: int = 6,
) -> tuple[tuple[Config, ...], Costs]:
    """Constants for which the model orders the plans of each shape as the clock does; clock: cycles per microsecond.

    Least squares of the logarithms (Levenberg-Marquardt), the constants' own logarithms being the unknowns.
    """
    rows, weights, shapes, times = [], [], [], []
    for index, (shape, plans) in enumerate(found.items()):
        best = min(plans.values())
        kept = {p: t for p, t in plans.items() if t < LEAST_WEIGHT * best}
        share = [(best / t) ** 4 for t in kept.values()]
        rows += [(shape, plan) for plan in kept]
        times += [math.log(t * clock) for t in kept.values()]
        weights += [w / sum(share) for w in share]
        shapes += [index] * len(kept)
    weights, shapes, times = map(np.array, (weights, shapes, times))
    start = unknowns(configs, costs)

    def errors(values):
        now, general = constants(values, configs)
        index = dict(zip(configs, now))
        guess = [
            math.log(
                sgemm.cost(
                    plan._replace(config=index[plan.config]),
                    *shape,
                    sms,
                    costs=general,
                )
            )
            for shape, plan in rows
        ]
        error = np.array(guess) - times
        common = np.bincount(shapes, weights * error)
        error = error - (1 - SHAPE_WEIGHT) * common[shapes]
        # Far from the start a constant has to be worth it.
        return np.concatenate([error, 0.02 * (values - start)])

    def weigh(error):
        robust = 1 / np.sqrt(1 + (error[: len(times)] / TOLERANCE) ** 2)
        return np.concatenate([weights * robust, np.ones(len(start))])

    values, damping = start, 1e-3
    error = errors(values)
    for _ in range(steps):
        slopes = np.empty((len(error), len(values)))
        for i in range(len(values)):
            moved = values.copy()
            moved[i] += 1e-3
            slopes[:, i] = (errors(moved) - error) / 1e-3
        weight = weigh(error)
        normal = slopes.T @ (weight[:, None] * slopes)
        toward = slopes.T @ (weight * error)
        for _ in range(6):
            damped = normal + damping * np.diag(np.diag(normal))
            tried = values - np.linalg.solve(damped, toward)
            after = errors(tried)
            if weight @ after**2 < weight @ error**2:
                values, error, damping = tried, after, damping / 3
                break
            damping *= 4
    return constants(values, configs)


# --8<-- [end:fit]

FITTED = ("rate", "alone", "start", "end", "words")


def unknowns(configs, costs) -> np.ndarray:
    """The logarithms of all constants."""
    found = [getattr(config, name) for config in configs for name in FITTED]
    found += [getattr(costs, field.name) for field in fields(Costs)]
    return np.log(np.array(found, float))


def constants(values, configs) -> tuple[tuple[Config, ...], Costs]:
    """The other way round."""
    numbers = [float(value) for value in np.exp(values)]
    count = len(FITTED)
    found = tuple(
        replace(config, **dict(zip(FITTED, numbers[i * count :])))
        for i, config in enumerate(configs)
    )
    costs = Costs(*numbers[len(configs) * count :])
    return found, replace(costs, crowd=min(1.0, costs.crowd))


def lost(plans: dict[Plan, float], chosen: Plan) -> float:
    """Times as long as the best plan."""
    return plans[chosen] / min(plans.values())
