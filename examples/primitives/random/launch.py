"""Launchers of fill.cu and monte_carlo.cu."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import cudatut as ct

FILL, MEAN = "primitives/random/fill.cu", "primitives/random/monte_carlo.cu"
KINDS = {"words": 0, "uniform": 1, "normal": 2, "normal, fast": 3}
BLOCK, PIECE = 256, 4 * 256 * 16  # as in monte_carlo.cu
# Counters of a thread of fill.
EACH = {"words": 4, "uniform": 4, "normal": 8, "normal, fast": 8}
MOST = 1 << 40


@cache
def _kernel(source: str, name: str) -> ct.Kernel:
    return ct.Kernel(source, name)


def instances() -> list[tuple[str, str]]:
    """What the chapter launches, for ct.compile_ahead."""
    names = [f"fill<{KINDS[kind]},{EACH[kind]},{BLOCK}>" for kind in KINDS]
    names += [f"fill_one<{kind}>" for kind in KINDS.values()]
    names += [f"fill<0,{each},{BLOCK}>" for each in (1, 2, 8)]
    found = [(FILL, name) for name in (*names, "lcg", "known")]
    means = "count_pi", "price<false>", "price<true>", "add_pieces"
    return found + [(MEAN, name) for name in means]


def fill(
    out: Any,
    kind: str = "uniform",
    seed: int = 0,
    stream: int = 0,
    each: int | None = None,
    block: int = BLOCK,
) -> Callable:
    """Fill an array with random numbers: uint32 words, or float32 in [0, 1), or
    normal. Element i is what the seed, the stream and i say.

    out: contiguous, of any length. each: counters of a thread; None: as in
    EACH. Raises TypeError, ValueError."""
    dtype = "uint32" if kind == "words" else "float32"
    to = ct.operands("fill").write("out", out, dtype, most=MOST)
    _fits(seed=seed, stream=stream)
    each = EACH[kind] if each is None else each
    for name, value in (("each", each), ("block", block)):
        if value < 1 or value & (value - 1):
            raise ValueError(f"fill: {name} is {value}: a power of two")
    n = math.prod(to.shape)
    if not n:
        return lambda queue=None: None
    arguments = (to.address, n, seed, stream)
    if to.aligned(16) and int(to.address) % 16 == 0:
        name, per = f"fill<{KINDS[kind]},{each},{block}>", 4 * each * block
    else:
        name, per = f"fill_one<{KINDS[kind]}>", block
    kernel = _kernel(FILL, name)
    grid = ct.cdiv(n, per)

    def run(queue=None):
        kernel(*arguments, grid=grid, block=block, stream=queue)

    run.operands = (to,)  # an address keeps no array alive
    return run


def _fits(**numbers: int) -> None:
    for name, value in numbers.items():
        if not 0 <= value < 1 << 64:
            raise ValueError(f"random: {name} is {value}: 0 to 2^64 - 1")


def _enough(name: str, value: int, least: int) -> None:
    if not least <= value < 1 << 63:
        raise ValueError(
            f"random: {name} is {value}: {least} or more, below 2^63"
        )


class Estimate(NamedTuple):
    """A mean and its standard error: in 95 of 100 runs the true mean is no
    further off than 1.96 times as much."""

    mean: float
    error: float


def pi(points: int, seed: int, stream: int = 0, grid: int | None = None):
    """An Estimate of pi from so many points. grid: blocks; the result does not
    depend on it."""
    _fits(seed=seed, stream=stream)
    _enough("points", points, 1)
    hits = ct.to_device(np.zeros(1, "uint64"))
    kernel = _kernel(MEAN, "count_pi")
    kernel(
        hits,
        points,
        seed,
        stream,
        grid=grid or 8 * ct.device().sm_count,
        block=BLOCK,
    )
    share = int(hits.get()[0]) / points
    return Estimate(4 * share, 4 * math.sqrt(share * (1 - share) / points))


class Option(NamedTuple):
    """A call option: the right to buy for `strike` after `years`."""

    price: float = 100.0  # today, of what it buys
    strike: float = 105.0
    rate: float = 0.03  # of interest, a year
    volatility: float = 0.2
    years: float = 1.0

    def exact(self) -> float:
        """Its value today by the formula of Black and Scholes."""
        spread = self.volatility * math.sqrt(self.years)
        d = math.log(self.price / self.strike) + self.rate * self.years
        d = d / spread + spread / 2
        later = self.strike * math.exp(-self.rate * self.years)
        return self.price * _below(d) - later * _below(d - spread)


def _below(x: float) -> float:
    """The probability that a normal number is below x."""
    return math.erfc(-x / math.sqrt(2)) / 2


def price_launcher(
    option: Option,
    samples: int,
    seed: int,
    stream: int = 0,
    grid: int | None = None,
    fast: bool = False,
) -> Callable:
    """Two launches; `.totals` is where sum and sum of squares arrive."""
    _fits(seed=seed, stream=stream)
    _enough("samples", samples, 2)
    pieces = ct.cdiv(samples, PIECE)
    sums, totals = ct.empty(2 * pieces, "float64"), ct.empty(2, "float64")
    kernel = _kernel(MEAN, f"price<{str(fast).lower()}>")
    add = _kernel(MEAN, "add_pieces")
    drift = (option.rate - option.volatility**2 / 2) * option.years
    spread = option.volatility * math.sqrt(option.years)
    blocks = min(pieces, grid or 8 * ct.device().sm_count)

    def run() -> None:
        kernel(
            sums, samples, option.price, option.strike, drift, spread, seed,
            stream, grid=blocks, block=BLOCK,
        )  # fmt: skip
        add(sums, totals, pieces, grid=1, block=BLOCK)

    run.totals = totals
    return run


def price(option: Option, samples: int, seed: int, **how: Any) -> Estimate:
    """The option's value today, from so many samples (at least two)."""
    run = price_launcher(option, samples, seed, **how)
    run()
    total, squares = run.totals.get().tolist()
    mean = total / samples
    variance = (squares - total * mean) / (samples - 1)
    today = math.exp(-option.rate * option.years)
    return Estimate(today * mean, today * math.sqrt(variance / samples))
