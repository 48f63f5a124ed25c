"""examples/tensor/ladder/final.cu on a CPU: its own text, with stand-ins for PTX (hopper_on_cpu/), in random interleavings, against
whole numbers. Faults that are planted are noticed."""

from functools import cache

import numpy as np
import pytest
from emulator import HERE, built, ended, expect, fault

from cudatut.book.numbers.bf16 import to_bf16, to_float
from cudatut.book.tensor.gemm import gemm

# Columns, stages, cluster, boxes; which factor is transposed; rows read by threads; fp16 instead of bf16.
PLANS = {
    "wide": (128, 3, 2, 2, False, False, False, False),
    "alone": (128, 2, 1, 2, True, False, False, True),
    "pairs": (128, 4, 2, 1, False, True, False, False),
    "bare": (128, 3, 2, 1, False, False, False, False),
    "bare, in turns": (256, 3, 2, 1, False, False, False, False),
    "by halves": (256, 3, 2, 1, False, False, False, False),
    "by halves, turned": (256, 3, 2, 2, False, True, False, False),
    "fused": (128, 3, 2, 2, False, False, False, False),
    "threads": (64, 2, 1, 1, False, False, True, False),
    "threads, fp16": (64, 2, 1, 1, True, True, True, True),
}


def program_of(plan, folder, change=lambda text: text, end="Linear"):
    """The program for a plan, or for a kernel with a change."""
    *numbers, turned_a, turned_b, by_threads, fp16 = plan
    out = "__half" if fp16 else "__nv_bfloat16"
    flags = [str(flag).lower() for flag in (turned_a, turned_b)]
    instance = ",".join([*map(str, numbers), *flags, out, str(by_threads).lower(), end])
    return built(folder, HERE / "final.cpp", "tensor/ladder/final.cu", change, PLAN=instance)


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """Each plan's program, built when it is first asked for."""
    ends = {"bare": "Bare", "by halves": "ByHalves", "fused": "Fused<Relu>"}
    return cache(
        lambda name: program_of(
            PLANS[name],
            tmp_path_factory.mktemp("plan"),
            end=ends.get(name.split(",")[0], "Linear"),
        )
    )


def wrong(program, plan, shape, shares, seed, workers=3, alpha=1.0, beta=0.0, fused=False):
    """What is wrong with the product of this shape, or None. shares: whether the last tiles are shared."""
    *numbers, turned_a, turned_b, _, fp16 = plan
    to_bits, from_bits = (
        (
            lambda x: x.astype("float16").view("uint16"),
            lambda x: x.view("float16").astype("float32"),
        )
        if fp16
        else (to_bf16, to_float)
    )
    m, n, k = shape
    tile = gemm.Tile(*numbers)
    chosen = gemm.plans(m, n, k, tile, workers * tile.cluster)[-1 if shares else 0]
    assert bool(chosen.share) == shares, "a shape for another test"
    rng = np.random.default_rng(seed)
    a, b = rng.integers(-4, 5, (m, k)), rng.integers(-4, 5, (k, n))
    old = rng.integers(-8, 9, (m, n)).astype("float32")
    c = old if beta else np.full((m, n), np.nan, "float32")
    stored = [
        to_bits(np.ascontiguousarray(x.T if turned else x))
        for x, turned in ((a, turned_a), (b, turned_b))
    ]
    words = (
        m, n, k, 2, chosen.whole, chosen.share, chosen.workers, int(n % 8 == 0), alpha, beta, seed,
    )  # fmt: skip
    bias = rng.integers(-64, 65, n).astype("float32")
    inputs = *stored, to_bits(c), *([to_bits(bias)] if fused else [])
    out, bad = ended(program, words, b"".join(x.tobytes() for x in inputs))
    if bad:
        return bad
    found = from_bits(np.frombuffer(out, "uint16").reshape(m, n))
    expected = alpha * (a @ b)
    if fused:
        expected = np.maximum(expected + bias, 0)
    if beta:
        expected = expected + beta * old
    return None if np.array_equal(found, from_bits(to_bits(expected))) else "results"


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("shape", "shares"),
    [((1, 1, 1), False), ((130, 72, 40), False), ((300, 203, 130), False), ((700, 129, 200), True), ((520, 264, 456), True)],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("name", PLANS)
def test_results(programs, name, shape, shares):
    plan = PLANS[name]
    if not plan[-2]:  # the TMA wants rows at multiples of 8, which gemm.py makes of others
        m, n, k = shape
        shape = (-(-m // 8) * 8 if plan[4] else m, n if plan[5] else -(-n // 8) * 8, -(-k // 8) * 8)
    halves = name.startswith("by halves")
    bare = halves or name.startswith("bare")
    if halves:  # more steps than a tile ends with by halves
        shape = *shape[:2], max(shape[2], 64 * gemm.HALVED + 8)
    tiles = -(-shape[0] // (128 * plan[2])) * -(-shape[1] // plan[0])
    for seed in range(2):
        shared = shares and tiles % 3 > 0 and not bare
        assert wrong(programs(name), plan, shape, shared, seed, fused=name == "fused") is None
    if bare:
        return
    fused = name == "fused"
    assert wrong(programs(name), plan, shape, False, 2, alpha=2.0, beta=0.5, fused=fused) is None


def test_an_epilogue_is_computed_once_for_a_shared_tile(programs):
    plan, program = PLANS["fused"], programs("fused")
    assert wrong(program, plan, (520, 264, 456), True, 0, workers=4, fused=True) is None
    assert wrong(program, plan, (300, 136, 456), True, 1, fused=True) is None


FAULTS = {  # what is replaced, by what, and what is then wrong
    "an empty barrier is not waited for": ("          wait(&s.empty[ring.stage], ring.parity ^ 1);\n          arrive_and_expect", "          arrive_and_expect", "arrival|results"),
    "a parity is not turned": ("wait(&s.full[stage], ring.parity);", "wait(&s.full[stage], 0);", "deadlock|results|arrival"),
    "the other half of B is not fetched": ("step * BK, full, rank);", "step * BK, full, 0);", "results"),
    "a part is not added": ("end < work.steps;", "false;", "flag|results"),
    "a block ends before its last box is read": ("if (t == 0) wait_for_reads<0>();", "", "before its stores|has ended|results"),
    "a box is overwritten before it is stored": ("if (first) wait_for_reads<BUFFERS - 1>();", "", "results"),
    "fused: the bias of the first tile": ("bias.template load<true>(work, left);", "bias.template load<true>(work, 0);", "results"),
}  # fmt: skip


@pytest.mark.sweep(3)
@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_noticed(name, tmp_path):
    before, after, expected = FAULTS[name]

    fused = name.startswith("fused")
    # Linear writes each box twice for a tile.
    plan = (128, 3, 2, 2 if fused else 1, False, False, False, False)
    program = program_of(plan, tmp_path, fault(before, after), "Fused<Relu>" if fused else "Linear")
    shapes = ((520, 264, 456), True), ((260, 264, 200), False)
    runs = (
        wrong(program, plan, shape, shares, seed, workers=4 if shares else 1, fused=fused)
        for seed in range(2) for shape, shares in shapes
    )  # fmt: skip
    expect(expected, runs)


PTX_FAULTS = {  # the same of the words around an instruction, with B across the depth, or along it
    "row and column of a box are swapped": ("pairs", '"r"(column), "r"(row), "r"(shared_address(barrier))\n      : "memory"', '"r"(row), "r"(column), "r"(shared_address(barrier))\n      : "memory"', "results"),
    "one block gets the box of all": ("pairs", '"h"(blocks)', '"h"((unsigned short)1)', "results|deadlock|arrival|ended"),
    "an arrival at the block of number 0": ("pairs", '"r"(rank)', '"r"(0)', "deadlock|arrival|results"),
    "bytes that nobody expects": ("pairs", "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;", "mbarrier.arrive.shared::cta.b64 _, [%0];", "results|arrival|deadlock|copies"),
    "a wait for the other parity": ("pairs", '"r"(parity)', '"r"(parity ^ 1)', "results|deadlock|arrival|initialized"),
    "a factor across the depth is not turned": ("wide", '"n"(!A_ALONG), "n"(!B_ALONG))', '"n"(!A_ALONG), "n"(0))', "results"),
    "distances in bytes": ("wide", "(unsigned long long)(stride / 16) << 32", "(unsigned long long)stride << 32", "results"),
    "sums of the tile before count": ("wide", '"r"((int)add), "n"(!A_ALONG)', '"r"(1), "n"(!A_ALONG)', "results"),
    "groups are not closed": ("wide", "wgmma.commit_group.sync.aligned;", "", "results|touched"),
    "words of two rows are swapped": ("wide", '"r"(w0), "r"(w1)', '"r"(w1), "r"(w0)', "results"),
    "the first number in the upper half": ("wide", "cvt.rn.bf16x2.f32 %0, %1, %2;", "cvt.rn.bf16x2.f32 %0, %2, %1;", "results"),
}  # fmt: skip


@pytest.mark.sweep(3)
@pytest.mark.parametrize("name", PTX_FAULTS)
def test_planted_faults_around_instructions_are_noticed(name, tmp_path):
    plan, before, after, expected = PTX_FAULTS[name]
    program = program_of(PLANS[plan], tmp_path, fault(before, after))
    m, n, k = (260, 264, 200)
    runs = (wrong(program, PLANS[plan], (m, n, k), False, seed, workers=2) for seed in range(2))
    expect(expected, runs)


END_FAULTS = {  # of which end, what is replaced, by what, and what is then wrong
    "the left half is stored before its products": ("ByHalves", "wait_for_products<LAST>();", "wait_for_products<2 * LAST>();", "touched|results"),
    "a stage is given back before the right half has read it": ("ByHalves", "consumer);\n  wait_for_products<0>();", "consumer);\n  wait_for_products<LAST>();", "touched|results|arrival"),
    "the right half with the columns of the left": ("ByHalves", "+ BN / 2 * 128", "", "results"),
    "the stage before is not given back": ("ByHalves", "  release(before);\n  Ring", "  Ring", "deadlock"),
    "the right half is stored over the left": ("ByHalves", "left + BN / 2,", "left,", "results"),
    "the other consumer is not let": ("Bare", "          let_other_consumer();", "          ;", "deadlock"),
}  # fmt: skip


@pytest.mark.sweep(3)
@pytest.mark.parametrize("name", END_FAULTS)
def test_planted_faults_in_the_end_of_a_tile_are_noticed(name, tmp_path):
    end, before, after, expected = END_FAULTS[name]
    plan = PLANS["by halves"]
    program = program_of(plan, tmp_path, fault(before, after), end)
    runs = (wrong(program, plan, (520, 264, 456), False, seed, workers=1) for seed in range(3))
    expect(expected, runs)
