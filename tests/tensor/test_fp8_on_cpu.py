"""examples/tensor/gemm/fp8.cu on a CPU: its own text, with stand-ins for PTX (hopper_on_cpu/), in random interleavings, against
whole numbers. Faults that are planted are noticed."""

from functools import cache

import numpy as np
import pytest
from emulator import HERE, built, ended, expect, fault

from cudatut.book.numbers import e4m3

PLANS = {  # sums, stages, blocks of a cluster
    "one level": ("OneLevel<128>", 3, 1),
    "one level, pairs": ("OneLevel<256>", 3, 2),
    "two levels": ("TwoLevels<256,128,false>", 3, 2),
    "two levels, alone": ("TwoLevels<256,128,false>", 3, 1),
    "blocks": ("TwoLevels<256,128,true>", 3, 2),
    "blocks, one part": ("TwoLevels<128,128,true>", 4, 1),
}


def program_of(plan, folder, change=lambda text: text):
    """The program for a plan, or for a kernel with a change."""
    sums, stages, cluster = plan
    instance = f"{sums},float,{stages},{cluster},1"
    return built(folder, HERE / "fp8.cpp", "tensor/gemm/fp8.cu", change, PLAN=instance)


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """Each plan's program, built when it is first asked for."""
    return cache(lambda name: program_of(PLANS[name], tmp_path_factory.mktemp("plan")))


def wrong(program, blocks, shape, seed, clusters=2):
    """What is wrong with the product of this shape, or None."""
    m, n, k = shape
    rng = np.random.default_rng(seed)
    a, b = (rng.integers(-2, 3, (rows, k)) for rows in (m, n))
    steps, pitch = -(-k // 128), 4 * -(-m // 4)
    sizes = ((steps, pitch), (-(-n // 128), steps)) if blocks else ((1,), (1,))
    of_a, of_b = (2.0 ** rng.integers(-1, 2, size) for size in sizes)
    given = [e4m3.to_e4m3(a), e4m3.to_e4m3(b), of_a.astype("float32"), of_b.astype("float32")]
    numbers = m, n, k, 2, clusters, seed
    out, bad = ended(program, numbers, b"".join(one.tobytes() for one in given))
    if bad:
        return bad
    if blocks:
        a = a * e4m3.spread(of_a.T, (m, k), (1, 128))
        b = b * e4m3.spread(of_b, (n, k), (128, 128))
    else:
        a = a * of_a * of_b
    found = np.frombuffer(out, "float32").reshape(m, n)
    return None if (found == a.astype("float64") @ b.T).all() else "results"


@pytest.mark.sweep
@pytest.mark.parametrize("shape", [(1, 8, 16), (300, 264, 400)], ids=str)
@pytest.mark.parametrize("name", PLANS)
def test_results(programs, name, shape):
    for seed in range(2):
        assert wrong(programs(name), "blocks" in name, shape, seed) is None


FAULTS = {  # the plan, what is replaced, by what, and what is then wrong
    "an empty barrier is not waited for": ("blocks", "wait(&s.empty[i], ring.parity ^ 1);", "", "arrival|results|sum"),
    "a parity is not turned": ("blocks", "wait_at(full + ring.stage * sizeof(Barrier), ring.parity);", "wait_at(full + ring.stage * sizeof(Barrier), 0);", "deadlock|results|arrival"),
    "a stage is given back too early": ("one level, pairs", "if (step > 0) release(before);", "release(at.index);", "arrival|results"),
    "a part is added too early": ("two levels", "wait_for_products<0>();\n      if (i ==", "wait_for_products<1>();\n      if (i ==", "touched|results"),
    "a stage is given back with its first part": ("two levels", "if (i == BN / PART - 1) release", "if (i == 0) release", "arrival|results"),
    "the scales of the first stage for all": ("blocks", "scales_b + step, next}", "scales_b, next}", "results"),
    "the scale of the first columns for all": ("blocks", "left + BK < work.n ? steps : 0", "0", "results"),
    "the scale of the upper rows for all": ("blocks", "j / 2 % 2", "0", "results"),
    "the next stage is not waited for": ("two levels", "if (step + 1 < steps) await_stage();", "", "results|arrival|sum"),
    "the next stage is waited for at the end of a tile, too": ("two levels", "if (step + 1 < steps) await_stage();", "await_stage();", "deadlock|wait|ever"),
    "a stage is given back before its last products": ("blocks", "if (i == BN / PART - 1) await_next();", "if (i == BN / PART - 1) await_next(), release(at.index);", "arrival|results|deadlock"),
    "the second part reads the columns of the first": ("two levels", "at.b + i * (PART * BK / 16)", "at.b", "results"),
    "a part begins with the last one": ("two levels", "i * (PART * BK / 16), false);", "i * (PART * BK / 16), true);", "results"),
}  # fmt: skip


@pytest.mark.sweep(3)
@pytest.mark.parametrize("which", FAULTS)
def test_planted_faults_are_noticed(which, tmp_path):
    name, before, after, expected = FAULTS[which]

    program = program_of(PLANS[name], tmp_path, fault(before, after))
    expect(expected, (wrong(program, "blocks" in name, (300, 264, 528), seed) for seed in range(2)))
