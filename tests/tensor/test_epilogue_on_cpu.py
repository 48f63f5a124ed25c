"""examples/tensor/gemm/epilogue.cuh on a CPU: its own text, with stand-ins for PTX (hopper_on_cpu/), in random interleavings.
Results against float64; faults that are planted are noticed."""

import numpy as np
import pytest
from emulator import HERE, built, ended, expect, fault

from cudatut.book.numbers.bf16 import to_bf16, to_float
from cudatut.book.tensor.gemm import epilogue

TILES = {
    256: 2,
    192: 3,
    128: 2,
    64: 1,
}  # columns of a tile: boxes of a consumer, as gemm.TILES has them


def program_of(folder, columns, activation="None", change=lambda text: text):
    return built(
        folder, HERE / "epilogue.cpp", "tensor/gemm/epilogue.cuh", change,
        COLUMNS=columns, BOXES=TILES[columns], ACTIVATION=activation,
    )  # fmt: skip


def wrong(program, m, n, boxes, by_tma, seed, activation="none", integers=True, beta=-1.0):
    """What is wrong with C, or None."""
    rng = np.random.default_rng(seed)
    if integers:
        make = lambda shape: rng.integers(-8, 9, shape).astype("float32")  # noqa: E731
    else:
        make = lambda shape: 2 * rng.standard_normal(shape, dtype="float32")  # noqa: E731
    sums, bias, residual = make((m, n)), to_bf16(make(n)), to_bf16(make((m, n)))
    alpha, scale = 2.0, 0.5
    c = to_bf16(np.full((m, n), np.nan, "float32"))
    numbers = m, n, int(boxes), int(by_tma), seed, alpha, beta, scale
    out, bad = ended(program, numbers, b"".join(x.tobytes() for x in (sums, bias, residual, c)))
    if bad:
        return bad
    got = to_float(np.frombuffer(out, "uint16").reshape(m, n))
    x = alpha * sums.astype("float64") + to_float(bias)
    want = scale * epilogue.reference(x, activation) + beta * to_float(residual)
    if integers:
        want = to_float(to_bf16(want))
        return None if np.array_equal(got, want) else "results"
    return None if np.allclose(got, want, rtol=2**-8, atol=1e-5) else "results"


@pytest.mark.parametrize("columns", TILES)
def test_every_tile_and_way(columns, tmp_path):
    program = program_of(tmp_path, columns)
    for seed, (m, n) in enumerate([(1, 8), (130, 264), (200, 520)]):
        for boxes, by_tma in ((True, True), (True, False), (False, False)):
            assert wrong(program, m, n, boxes, by_tma, seed) is None, (m, n, boxes, by_tma)
        assert wrong(program, m, n, True, False, seed, beta=0.0) is None, (m, n, "no R")
    # Rows begin anywhere; they end in every place of a box, and a pair of columns may be half.
    for seed, (m, n) in enumerate(
        [(1, 1), (70, 133), (17, 64), (18, 65), (3, 127), (130, 255), (15, 257), (5, 2)]
    ):
        assert wrong(program, m, n, False, False, seed) is None, (m, n)


@pytest.mark.parametrize("activation", ["relu", "gelu-tanh", "gelu-erf"])
def test_activations(activation, tmp_path):
    program = program_of(tmp_path, 128, epilogue.ACTIVATIONS[activation])
    assert wrong(program, 130, 264, True, True, 1, activation, integers=False) is None
    assert wrong(program, 130, 263, False, False, 2, activation, integers=False) is None


FAULTS = {  # what is replaced, by what, and what is then wrong
    "R is not waited for": ("wait(loaded + i, phase & 1);", "", "results|arrival"),
    "the phase stands still": ("if (i == BUFFERS - 1) ++phase;", "", "results|arrival|deadlock"),
    "a box is overwritten before it is stored": ("          wait_for_reads<0>();\n          fetch_box", "          fetch_box", "results"),
    "the tile before still stores": ("    wait_for_reads<0>();\n    for (int i", "    for (int i", "results"),
    "columns of a box are swapped": ("s[0] += beta * __uint_as_float(word[i] << 16);", "s[1] += beta * __uint_as_float(word[i] << 16);", "results"),
    "the swizzle is off by one": ("ldmatrix(word, line + ((2 * pair + lane / 16) ^ lane % 8)", "ldmatrix(word, line + ((2 * pair + lane / 16) ^ (lane + 1) % 8)", "results"),
    "a line's last column": ("if (odd && lane == 31 && columns == 64)", "if (false)", "results"),
    "the half before a word": ("odd ? __funnelshift_r(before, word, 16) : word;", "word;", "results"),
    "columns beyond C": ("    if (columns <= 0) break;\n", "", "results"),
    "without R, a box is overwritten before it is stored": ("wait_for_reads<BUFFERS == 1 ? 0 : BUFFERS - 2>();", ";", "results"),
    "another lane's bias": ("4 * j + threadIdx.x % 4", "4 * j + threadIdx.x / 8 % 4", "results"),
    "the bias of another 64 columns": ("% 32 * 2 + 64 * which;", "% 32 * 2 + 64 * (which ^ 1);", "results"),
    "bytes are not announced": ("arrive_and_expect(loaded, 64 * 128);", "arrive_and_expect(loaded, 0);", "results|arrival|deadlock|copies"),
}  # fmt: skip


@pytest.mark.sweep(3)
@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_noticed(name, tmp_path):
    before, after, expected = FAULTS[name]

    program = program_of(tmp_path, 256, change=fault(before, after))
    ways = (520, True, True, -1.0), (520, True, False, 0.0), (321, False, False, -1.0)
    runs = (wrong(program, 260, *way, seed, beta=beta) for seed in range(4) for *way, beta in ways)
    expect(expected, runs)
