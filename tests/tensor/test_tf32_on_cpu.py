"""examples/tensor/gemm/tf32.cu on a CPU: its own text, with stand-ins for PTX (hopper_on_cpu/), in random interleavings, against
whole numbers. Faults that are planted are noticed."""

from functools import cache

import numpy as np
import pytest
from emulator import HERE, built, ended, expect, fault

from cudatut.book.tensor.gemm import gemm, tf32_product

PLANS = {
    "64": "64,4,1,2",
    "128": "128,3,1,1",
    "pairs": "128,3,2,2",
}  # columns, stages, cluster, boxes of a consumer


def program_of(plan, folder, change=lambda text: text):
    """The program for a plan, or for a kernel with a change."""
    return built(folder, HERE / "product.cpp", "tensor/gemm/tf32.cu", change, PLAN=plan)


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """Each plan's program, built when it is first asked for."""
    return cache(lambda name: program_of(PLANS[name], tmp_path_factory.mktemp("plan")))


def wrong(program, name, shape, shares, seed, workers=3):
    """What is wrong with the product of this shape, or None. shares: whether the last tiles are shared."""
    columns, stages, cluster = map(int, PLANS[name].split(",")[:3])
    m, n, k = shape
    tile = gemm.Tile(columns, stages, cluster, 0)
    plan = gemm.plans(m, n, 2 * k, tile, workers * cluster)[-1 if shares else 0]
    assert bool(plan.share) == shares, "a shape for another test"
    rng = np.random.default_rng(seed)
    a, b = (rng.integers(-4, 5, (rows, k)).astype("float32") for rows in (m, n))
    numbers = (m, n, k, 2, plan.whole, plan.share, plan.workers, seed)
    out, bad = ended(program, numbers, a.tobytes() + b.tobytes())
    if bad:
        return bad
    found = np.frombuffer(out, "float32").reshape(m, n)
    return None if (found == a.astype("float64") @ b.T).all() else "results"


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("shape", "shares"),
    [((1, 1, 4), False), ((130, 67, 36), False), ((300, 200, 100), False), ((700, 129, 200), True),
     ((260, 300, 420), True)],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("name", PLANS)
def test_results(programs, name, shape, shares):
    for seed in range(2):
        columns, _, cluster = map(int, PLANS[name].split(",")[:3])
        tiles = -(-shape[0] // (128 * cluster)) * -(-shape[1] // columns)
        assert wrong(programs(name), name, shape, shares and tiles % 3 > 0, seed) is None


FAULTS = {  # what is replaced, by what, and what is then wrong
    "an empty barrier is not waited for": ("wait(&s.empty[i], ring.parity ^ 1);", "", "arrival|results|sum"),
    "a parity is not turned": ("wait(&s.full[i], ring.parity);", "wait(&s.full[i], 0);", "deadlock|results|arrival"),
    "the last stage is not given back": ("      release(before);\n      const auto slot", "      const auto slot", "deadlock"),
    "a stage is given back too early": ("if (step > piece.begin) release(before);", "release(i);", "arrival|results|deadlock"),
    "results are used in flight": ("wait_for_products<0>();", "", "touched|results"),
    "the other half of B is not fetched": ("step * DEPTH, &s.full[i], rank);", "step * DEPTH, &s.full[i], 0);", "results"),
    "a step of 64": ("top, step * DEPTH", "top, step * 2 * DEPTH", "results"),
    "a part is not added": ("end < work.steps;", "false;", "flag|results"),
}  # fmt: skip


@pytest.mark.sweep(3)
@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_noticed(name, tmp_path):
    before, after, expected = FAULTS[name]

    program = program_of(PLANS["pairs"], tmp_path, fault(before, after))
    runs = (wrong(program, "pairs", (260, 300, 420), True, seed, workers=4) for seed in range(3))
    expect(expected, runs)


def test_the_costs_of_bf16_are_asked_for_twice_the_depth():
    assert tf32_product.DEPTH * 2 == gemm.DEPTH
