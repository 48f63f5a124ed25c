# ---
# jupyter:
#   cudatut:
#     title: {en: "A pipeline: solutions", zh: "流水线：参考答案"}
#     requires: sm_90a
#     timeout_s: 60
#     alone: false
# ---

# %% [markdown]
# The phases of a ring on the CPU, and a third warpgroup that multiplies.

# %% given-1
import random


class Barrier:
    """Counts one arrival in each phase."""

    def __init__(self):
        self.phase = 0

    def arrive(self):
        self.phase += 1

    def ready(self, parity):
        """Whether the phase of this parity has ended."""
        return self.phase % 2 != parity


# %% solution-1
def waits(step, stages):
    """Stage, parity of the consumer's wait, parity of the producer's wait."""
    parity = step // stages % 2
    return step % stages, parity, 1 - parity


# %% check-1
import random

import numpy as np
import cudatut as ct


def play(stages, steps, order):
    """Both parts take turns at random; what is multiplied, in order."""
    full, empty = ([Barrier() for _ in range(stages)] for _ in "fe")
    ring, seen, made, used = [None] * stages, [], 0, 0
    for _ in range(1000 * steps):
        if made < steps and order.random() < 0.5:
            stage, _, parity = waits(made, stages)
            if empty[stage].ready(parity):
                ring[stage] = made
                full[stage].arrive()
                made += 1
        elif used < steps:
            stage, parity, _ = waits(used, stages)
            if full[stage].ready(parity):
                seen.append(ring[stage])
                empty[stage].arrive()
                used += 1
    return seen


for stages in (1, 2, 3, 5):
    for steps in (1, 2, 7, 23):
        for seed in range(20):
            seen = play(stages, steps, random.Random(seed))
            # A step that nobody multiplied is -1.
            seen += [-1] * (steps - len(seen))
            if seen != list(range(steps)):
                name = f"steps in order, {stages} stages"
                ct.check(np.array(seen), np.arange(steps), name=name)
ct.check(np.array(seen), np.arange(23), name="steps in order, 5 stages")

# %% given-2
import numpy as np
import cudatut as ct
from cudatut.book.numbers.bf16 import to_bf16, to_float


def product(a, b, changes):
    (m, k), n = a.shape, b.shape[1]
    path = ct.paths.resolve_source("tensor/ladder/two_consumers.cu")
    text = path.read_text()
    for old, new in changes:
        if old not in text:
            raise ValueError(f"two_consumers.cu does not say: {old}")
        text = text.replace(old, new)
    text = text.replace('"products.cuh"', '"tensor/ladder/products.cuh"')
    kernel = ct.Kernel(text, "gemm_two_consumers<4>", arch="sm_90a")
    c = ct.empty((m, n), "uint16")
    on_gpu = [ct.to_device(to_bf16(x)) for x in (a, b)]
    maps = [
        ct.tensor_map(x, box, swizzle=128)
        for x, box in zip(on_gpu, ((192, 64), (64, 64)))
    ]
    threads = 512 if "(512, 1)" in text else 384
    shared = 4 * ((192 + 192) * 128 + 16)
    grid = ct.cdiv(n, 192), ct.cdiv(m, 192)
    kernel(*maps, c, m, n, k, grid=grid, block=threads, shared=shared)
    return to_float(c.get())


# %% solution-2
CHANGES = [
    ("BM = 128, BN = 256", "BM = 192, BN = 192"),
    ("__launch_bounds__(384, 1)", "__launch_bounds__(512, 1)"),
    ("init(&s.empty[i], 2)", "init(&s.empty[i], 3)"),
    # 128 * 24 + 384 * 160 = 64512 registers
    ("give_registers_back<40>", "give_registers_back<24>"),
    ("take_registers<232>", "take_registers<160>"),
]

# %% check-2
import cudatut as ct

ct.require("sm_90a")
for m, n, k in ((192, 256, 64), (100, 200, 136), (500, 520, 1032)):
    rng = ct.rng(m)
    a, b = rng.integers(-3, 4, (m, k)), rng.integers(-3, 4, (k, n))
    exact = (a @ b).astype("float32")
    # bf16 keeps 8 significant bits.
    got = product(a, b, CHANGES)
    ct.check(got, exact, rtol=2**-8, name=f"{m} x {n} x {k}")
