"""examples/primitives/scoreboard without a GPU: what its exercises ask for, and cuda.compute where it is not installed."""

import re
from pathlib import Path

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.rivals import compute

SOLUTIONS = Path(ct.paths.examples_dir()) / "primitives/scoreboard/solutions.py"


def solution(number: int) -> dict:
    """The names that a solution defines, with its imports."""
    cells = SOLUTIONS.read_text(encoding="utf-8").split("# %% ")
    own = {cell.splitlines()[0]: cell.split("\n", 1)[1] for cell in cells}
    names: dict = {}
    exec(own[f"given-{number}"] + own[f"solution-{number}"], names)
    return names


def test_a_mean_of_ratios_goes_both_ways():
    mean = solution(1)["mean_ratio"]
    ratios = ct.rng(1).uniform(0.1, 5, 17).tolist()
    assert mean(ratios) * mean([1 / one for one in ratios]) == pytest.approx(1)
    assert mean([1.5] * 3) == pytest.approx(1.5)


def test_ranks_of_the_sign_test():
    """As tables of the sign test have them for 5 %, two-sided."""
    rank = solution(2)["rank"]
    found = {n: rank(n) for n in (6, 8, 9, 10, 12, 14, 15, 20, 25, 30, 40)}
    assert found == {6: 0, 8: 0, 9: 1, 10: 1, 12: 2, 14: 2, 15: 3, 20: 5, 25: 7, 30: 9, 40: 13}


def test_a_sort_of_few_keys_is_a_sorting_network():
    """The pairs that the solution's kernel orders, here one after another: of 2^5 keys, zeros and ones at random."""
    source = SOLUTIONS.read_text(encoding="utf-8")
    pair = re.search(r"const int i = (t / step.*);", source)[1].replace("/", "//")
    order = re.search(r"const bool ascending = (.*);", source)[1]
    pair, order = (compile(one, "<solution>", "eval") for one in (pair, order))
    n, chance = 32, np.random.default_rng(0)
    for _ in range(300):
        tile = chance.integers(0, 2, n).tolist()
        size = 2
        while size <= n:
            step = size // 2
            while step:
                for t in range(n // 2):
                    i = eval(pair, {"t": t, "step": step})
                    a, b = tile[i], tile[i + step]
                    if (a > b) == eval(order, {"i": i, "size": size}):
                        tile[i], tile[i + step] = b, a
                step //= 2
            size *= 2
        assert tile == sorted(tile)


def test_cuda_compute_is_left_out_where_it_is_not_installed(monkeypatch):
    monkeypatch.setattr(compute, "version", lambda: None)
    for missing in (compute.scan(1, 2), compute.select(1, 2, 3), compute.sort(1, 2)):
        assert not missing
        assert missing.reason == "the package cuda-cccl is not installed"


def test_cuda_compute_that_does_not_run_says_why(monkeypatch):
    def broken(name):
        raise ImportError(f"{name} is broken\nand more")

    monkeypatch.setattr(compute, "version", lambda: "1.2.1")
    monkeypatch.setattr(compute, "import_module", broken)
    monkeypatch.setattr(ct, "activate", lambda: None, raising=False)
    array = np.zeros(3)
    assert compute.scan(array, array).reason == (
        "cuda.compute cannot run here (cuda.compute is broken)"
    )
