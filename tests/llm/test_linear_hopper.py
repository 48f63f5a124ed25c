"""examples/llm/kernels/linear_hopper.cu on a CPU: its own text, with stand-ins for PTX (tests/tensor/hopper_on_cpu), in random
interleavings, against float64. Faults that are planted are noticed."""

from pathlib import Path

import numpy as np
import pytest
from emulator import built, ended, expect, fault

from cudatut.book.numbers.bf16 import to_bf16, to_float

HERE = Path(__file__).parent
PLANS = {
    "narrow": "1,32,3,true",
    "narrowest": "1,16,2,true",
    "pair": "2,64,3,true",
    "flat": "1,96,2,false",
    "flat and narrow": "1,32,4,false",
    "wide": "2,192,3,false",
}


def program_of(plan, end, folder, change=lambda text: text):
    kernel = "llm/kernels/linear_hopper.cu"
    return built(folder, HERE / "hopper_on_cpu/linear.cpp", kernel, change, PLAN=plan, END=end)


def close(got, want):
    return np.allclose(got, want, rtol=2**-7, atol=2e-3)


class Job:
    """Factors of whole numbers, what an end reads besides, and whether its results are right."""

    def __init__(self, end, n, outputs, inputs, seed):
        self.n, self.outputs, self.inputs, self.end = n, outputs, inputs, end
        self.rng = rng = np.random.default_rng(seed)
        x, w = (rng.integers(-3, 4, (rows, inputs)) for rows in (n, outputs))
        self.product = (x @ w.T).astype("float64")
        self.factors = to_bf16(x).tobytes() + to_bf16(w).tobytes()
        parts = rng.uniform(0.1, inputs, (n, 3)).astype("float32")
        self.scaled = self.product / np.sqrt(parts.sum(1, keepdims=True) / inputs + 1e-5)
        if end == "Store":
            self.more = b""
        elif end == "Add":
            self.old = rng.integers(-50, 50, (n, outputs)).astype("float32")
            self.weight = rng.uniform(0.5, 2, outputs).astype("float32")
            self.more = self.old.tobytes() + self.weight.tobytes()
        else:
            parts = parts * 64  # not all gates are shut or open
            self.scaled = self.product / np.sqrt(parts.sum(1, keepdims=True) / inputs + 1e-5)
            self.more = parts.tobytes()

    def wrong(self, data, width):
        n, outputs = self.n, self.outputs
        if self.end == "Store":
            assert len(data) == 4 * n * outputs
            return not np.array_equal(
                np.frombuffer(data, "float32").reshape(n, outputs), self.product
            )
        if self.end == "Add":
            want = self.old + self.product
            tiles, size = -(-outputs // width), n * outputs
            y = np.frombuffer(data, "float32", size).reshape(n, outputs)
            h = np.frombuffer(data, "uint16", size, 4 * size).reshape(n, outputs)
            squares = np.frombuffer(data, "float32", offset=6 * size).reshape(n, tiles)
            padded = np.pad(want, ((0, 0), (0, tiles * width - outputs)))
            sums = (padded.reshape(n, tiles, width) ** 2).sum(2)
            return not (
                np.array_equal(y, want)
                and close(to_float(h), want * self.weight)
                and np.allclose(squares, sums, rtol=1e-5)
            )
        both = self.scaled.reshape(n, outputs // 16, 2, 8)
        gate, up = both[:, :, 0].reshape(n, -1), both[:, :, 1].reshape(n, -1)
        got = to_float(np.frombuffer(data, "uint16").reshape(n, outputs // 2))
        return not close(got, gate / (1 + np.exp(-gate)) * up)


def wrong(program, plan, end, shape, seed, early=1, blocks=None):
    """What is wrong with the results, or None. blocks: fewer than there are tiles."""
    consumers, width, _, turned = plan.split(",")
    consumers, width = int(consumers) * 64, int(width)
    rows, columns = (width, consumers) if turned == "true" else (consumers, width)
    n, outputs, _ = shape
    tiles = -(-n // rows) * -(-outputs // columns)
    job = Job(end, *shape, seed)
    numbers = (*shape, 2, early, min(tiles, blocks or tiles), seed)
    out, bad = ended(program, numbers, job.factors + job.more)
    if bad:
        return bad
    return "results" if job.wrong(out, width) else None


ENDS = "Add", "Store", "Gates"


@pytest.mark.parametrize(
    ("name", "end"), [(name, end) for name in PLANS for end in ENDS[: 3 if name in ("pair", "wide") else 1]]
)  # fmt: skip
def test_results(name, end, tmp_path):
    program = program_of(PLANS[name], end, tmp_path)
    outputs = 208
    for seed, (n, inputs, early, blocks) in enumerate(
        [(1, 64, 1, None), (75, 200, 0, 2), (131, 392, 1, 3)]
    ):
        assert (
            wrong(program, PLANS[name], end, (n, outputs, inputs), seed, early, blocks) is None
        ), n
    if end == "Store":  # rows that begin at no pair
        assert wrong(program, PLANS[name], end, (40, 207, 64), 3) is None


FAULTS = {  # what is replaced, by what, and what is then wrong
    "an empty barrier is not waited for": ("wait(&s.empty[stage], ring.parity ^ 1);", "", "arrival|results"),
    "a parity is not turned": ("wait(&s.full[stage], ring.parity);", "wait(&s.full[stage], 0);", "deadlock|results|arrival"),
    "the last stage is not given back": ("    if (t == 0) arrive(&s.empty[before]);\n    if (!early", "    if (!early", "deadlock"),
    "a stage is given back too early": ("if (step > 0 && t == 0) arrive(&s.empty[before]);", "if (step > 0 && t == 0) arrive(&s.empty[stage]);", "deadlock|arrival|results"),
    "sums are used in flight": ("    wait_for_products<0>();", "", "touched|results"),
    "x is read too early": ("      wait_for_previous();\n      int asked", "      int asked", "results"),
    "old sums are read too early": ("  wait_for_previous();\n  for (int tile", "  for (int tile", "results|has not waited"),
    "sums are read before all are there": ("    sync_consumer(consumer);\n    const float* const from", "    const float* const from", "results"),
    "weights are not asked for": ("asked++ >= ahead", "asked++ > ahead", "arrival|deadlock|results"),
    "rows of the tile beside are squared, too": (" && left < outputs)", ")", "results"),
}  # fmt: skip


@pytest.mark.sweep(3)
@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_noticed(name, tmp_path):
    before, after, expected = FAULTS[name]

    program = program_of(PLANS["pair"], "Add", tmp_path, fault(before, after))
    runs = (
        wrong(program, PLANS["pair"], "Add", (200, 144, 392), seed, blocks=2) for seed in range(4)
    )
    expect(expected, runs)
