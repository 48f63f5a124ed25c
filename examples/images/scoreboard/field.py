"""The contests of the scoreboard: for a case our kernel and its rivals, on the
same arrays, which are made once and hold the largest case.

    field = Field("bf16", cases)
    runs = field.contest(case)      # {"ours": ..., "cuDNN": ..., ...}
    field.check(case)               # what the last call wrote, against fp64

fp32 is NCHW, bf16 NHWC. Ours is what `choose.way` takes for these sizes.
"""

from collections.abc import Callable, Sequence
from statistics import geometric_mean
from typing import Any

import numpy as np

import cudatut as ct
from cudatut.book.images.shapes import Shape
from cudatut.book.images.scoreboard.choose import convolution
from cudatut.book.images.scoreboard.shapes import Case
from cudatut.book.numbers.bf16 import to_bf16, to_float
from cudatut.book.rivals import cudnn_conv
from cudatut.pairs import Ratio

Contest = dict[str, Callable[[], Any] | None]
PERIODS = 1_000_003, 999_983  # primes, after which the random numbers repeat
CHUNKS, LONG = 24, 64  # of results that are checked, and words of each
KINDS = {"fp32": "float32", "bf16": "uint16"}


# --8<-- [start:field]
class Field:
    """Arrays for all `cases`, of one kind: "fp32" or "bf16"."""

    def __init__(self, kind: str, cases: Sequence[Case]):
        self.kind, self.last = kind, kind == "bf16"
        self.numbers, self.given = [], []
        for seed, period, most in zip(
            (1, 2), PERIODS, map(max, *(case.words[:2] for case in cases))
        ):
            some = ct.rng(seed).standard_normal(period, dtype="float32")
            if self.last:
                some = to_bf16(some)
            self.given.append(ct.to_device(np.resize(some, most)))
            self.numbers.append(to_float(some) if self.last else some)
        most = max(case.words[2] for case in cases)
        self.results = ct.empty(most, KINDS[kind])

    def arrays(self, case: Case) -> tuple[Any, Any, Any]:
        """Images, weights and results: the beginning of what there is."""
        layer = case.layer
        shapes = [
            (case.batch, layer.channels, *layer.size),
            (layer.filters, layer.channels // layer.groups, *layer.window),
            (case.batch, layer.filters, *layer.out),
        ]
        if self.last:
            shapes = [(n, *sides, c) for n, c, *sides in shapes]
        return tuple(
            words[:count].reshape(shape)
            for words, count, shape in zip(
                (*self.given, self.results), case.words, shapes
            )
        )

    def contest(self, case: Case) -> Contest:
        """By name; a rival that cannot run says why. PyTorch's conv2d is
        cuDNN's, but for depthwise layers."""
        x, w, y = self.arrays(case)
        layer = case.layer
        rivals = cudnn_conv.contestants(
            x, w, y, layer.stride, layer.pad, layer.dilation, layer.groups
        )
        if layer.groups < layer.channels or layer.channels == 1:
            del rivals["PyTorch"]
        shape = Shape(*case.numbers)
        return {"ours": convolution(self.kind, shape, x, w, y), **rivals}

    # --8<-- [end:field]

    # --8<-- [start:check]
    def check(self, case: Case, name: str = "ours") -> None:
        """Some results, the first and the last among them. Raises
        ct.CheckError."""
        count = case.words[2]
        long = min(LONG, count)
        begins = ct.rng(3).integers(0, count - long + 1, CHUNKS)
        begins[:2] = 0, count - long
        found, wanted, sizes = [], [], []
        for begin in map(int, begins):
            words = self.results[begin : begin + long].get()
            found.append(to_float(words) if self.last else words)
            exact, size = self.exact(case, np.arange(begin, begin + long))
            wanted.append(exact)
            sizes.append(size)
        depth = case.layer.weights // case.layer.filters
        largest = float(np.concatenate(sizes).max())
        ct.check(
            np.concatenate(found),
            np.concatenate(wanted),
            name=f"{case.name}, {self.kind}, {name}",
            rtol=2.0**-8 if self.last else 0,
            atol=(depth + 32) * 2.0**-24 * largest,
        )

    def exact(self, case: Case, at: np.ndarray) -> tuple[np.ndarray, ...]:
        """The results at these words, in fp64, and the sums of their terms'
        sizes."""
        layer = case.layer
        (high, wide), (down, right) = layer.size, layer.out
        per_group = layer.channels // layer.groups
        if self.last:
            n, y, x, k = np.unravel_index(
                at, (case.batch, down, right, layer.filters)
            )
        else:
            n, k, y, x = np.unravel_index(
                at, (case.batch, layer.filters, down, right)
            )
        n, k, y, x = (i[:, None, None, None] for i in (n, k, y, x))
        c, r, s = (
            i[None]
            for i in np.ogrid[:per_group, : layer.window[0], : layer.window[1]]
        )
        row = y * layer.stride[0] - layer.pad[0] + r * layer.dilation[0]
        column = x * layer.stride[1] - layer.pad[1] + s * layer.dilation[1]
        inside = (row >= 0) & (row < high) & (column >= 0) & (column < wide)
        channel = k // (layer.filters // layer.groups) * per_group + c
        if self.last:
            pixel = (
                (n * high + row) * wide + column
            ) * layer.channels + channel
            weight = (
                (k * layer.window[0] + r) * layer.window[1] + s
            ) * per_group + c
        else:
            pixel = (
                (n * layer.channels + channel) * high + row
            ) * wide + column
            weight = ((k * per_group + c) * layer.window[0] + r) * layer.window[
                1
            ] + s
        images, weights = self.numbers
        terms = (
            images[pixel % len(images)].astype("float64")
            * weights[weight % len(weights)]
            * inside
        )
        axes = 1, 2, 3
        return terms.sum(axes), np.abs(terms).sum(axes)

    # --8<-- [end:check]


# --8<-- [start:race]
def race(field: Field, cases: Sequence[Case], rounds: int) -> dict[str, Any]:
    """By name of the case: a benchmark in which all took turns in random order;
    ours has been checked. Empty under a tool."""
    found = {}
    for case in cases:
        runs = field.contest(case)
        ct.poison(field.arrays(case)[2])
        runs["ours"]()
        field.check(case)
        if not ct.tool.running():
            found[case.name] = ct.bench(
                runs,
                flops=case.flops,
                name=f"{case.name}, {field.kind}",
                rounds=rounds,
                limit=False,
            )
    return found


# --8<-- [end:race]


# --8<-- [start:ratios]
def ratios(times: dict[str, Any], rival: str = "cuDNN") -> dict[str, Ratio]:
    """By name of the case: how many times as fast ours is, with the interval.
    Without cases in which the rival could not run."""
    return {
        name: one.ratio("ours", rival)
        for name, one in times.items()
        if any(row.name == rival for row in one.rows)
    }


def mean(found: Sequence[Ratio]) -> Ratio:
    """The geometric mean. Its interval goes from the mean of all low ends to
    that of all high ends, as if all ratios were off to the same side at once:
    no interval of the mean is wider."""
    low, middle, high = (
        geometric_mean(getattr(one, end) for one in found)
        for end in ("low", "median", "high")
    )
    return Ratio(middle, low, high, min(one.pairs for one in found))


def goal(ratio: Ratio, wanted: float) -> ct.results.Goal:
    """For `ct.goals`."""
    verdict = ratio.verdict(wanted)
    return ct.results.Goal(
        "", wanted, ratio.median, ratio.low, ratio.high, verdict
    )


# --8<-- [end:ratios]
