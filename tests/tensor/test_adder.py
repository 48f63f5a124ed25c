"""The adder that the chapter on precision describes, in NumPy, has the errors that were recorded."""

import numpy as np
import pytest

import cudatut as ct
from cudatut import recording
from cudatut.book.numbers.formats import FORMATS

DEPTH = 16384  # the adder has cut off more than rounding of the factors lost, and NumPy still takes seconds


def recorded(line):
    """The largest relative error of a line at DEPTH, from the recording of the chapter."""
    results = recording.load("tensor/precision").results("by-depth")
    (series,) = [result for result in results if result["kind"] == "series"]
    return dict(series["lines"][line])[DEPTH]


def power(x):
    """The largest power of two, as an exponent, that is no larger than |x|."""
    return np.where(x == 0, -10000, np.frexp(x)[1] - 1)


def cut(x, at):
    """x towards zero, to multiples of 2^at."""
    return np.trunc(np.ldexp(x, -at)) * np.ldexp(1.0, at)


def product(a, b, at_once, beyond):
    """A B, with `at_once` products and the old sum lined up in an adder that ends `beyond` bits behind an fp32 of the
    largest number's size; then cut to an fp32."""
    sums = np.zeros((len(a), b.shape[1]))
    for start in range(0, a.shape[1], at_once):
        x, y = a[:, start : start + at_once, None], b[None, start : start + at_once]
        largest = np.maximum((power(x) + power(y)).max(axis=1), power(sums))
        end = largest - 23 - beyond
        total = cut(x * y, end[:, None]).sum(axis=1) + cut(sums, end)
        sums = cut(total, power(total) - 23)
    return sums


@pytest.mark.parametrize(
    ("line", "at_once", "beyond", "is_it"),
    [
        ("TF32", 8, 2, True),
        ("fp16", 16, 2, True),
        ("TF32", 8, 1, False),  # a bit less
        ("TF32", 8, 3, False),  # a bit more
        ("TF32", 4, 2, False),  # two steps
    ],
)
def test_the_adder_of_the_page_has_the_recorded_error(line, at_once, beyond, is_it):
    rng = ct.rng(DEPTH)  # as in the example
    x, y = rng.random((64, DEPTH), "float32"), rng.random((DEPTH, 64), "float32")
    want = x.astype("float64") @ y
    got = product(FORMATS[line].round(x), FORMATS[line].round(y), at_once, beyond)
    error = np.max(abs(got - want) / want)
    near = error == pytest.approx(recorded(line), rel=0.001 if is_it else 0.1)
    assert near == is_it, f"{error:.4g} beside {recorded(line):.4g}"
