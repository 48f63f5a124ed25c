# ---
# jupyter:
#   cudatut:
#     title: {en: "Atomics and the histogram: solutions", zh: "原子操作与直方图：参考答案"}
#     requires: sm_75
#     timeout_s: 60
#     alone: false
# ---

# %% [markdown]
# A largest float by an atomic on integers, and a histogram of more values than 32 copies have room for.

# %% setup
import numpy as np

import cudatut as ct

gpu = ct.device()
rng = ct.rng(0)

# %% solution-1
FILE = "reduction/histogram_solutions.cu"
largest_kernel = ct.Kernel(FILE, "largest")


def largest(x):
    """The largest element of float32 x (n >= 1), which holds no NaN."""
    out = ct.to_device(np.zeros(1, "uint32"))  # below the key of every number
    largest_kernel(
        x,
        out,
        x.size,
        grid=min(ct.cdiv(x.size, 256), 8 * gpu.sm_count),
        block=256,
    )
    key = out.get()[0]
    bits = key ^ np.uint32(0x80000000) if key >> 31 else ~key
    return np.array([bits], "uint32").view("float32")


for m in ct.RAGGED:
    x_host = rng.standard_normal(m, dtype="float32")
    for sign, shift in ((1, 0), (-1, 0), (1, -1e6)):
        y_host = np.float32(sign) * x_host + np.float32(shift)
        ct.check(
            largest(ct.to_device(y_host)),
            y_host.max(keepdims=True),
            name=f"n={m}",
            rtol=0,
        )
for special in ([-0.0, 0.0], [-np.inf, -1.0], [np.inf, 1.0], [-1e-45, -3e-45]):
    x_host = np.array(special, "float32")
    ct.check(
        largest(ct.to_device(x_host)),
        x_host.max(keepdims=True),
        name=f"{special}",
        rtol=0,
    )

# %% solution-2
BINS = 1024
values = rng.integers(0, BINS, (20_000, 32))  # of 20,000 warps
lanes = np.arange(32)


def passes(copies):
    """Mean of the most lanes in a bank, if lane l keeps to copy l % copies."""
    word = copies * values + lanes % copies
    banks = np.zeros((len(word), 32), "int32")
    np.add.at(banks, (np.arange(len(word))[:, None], word % 32), 1)
    return float(banks.max(axis=1).mean())


predicted = {copies: passes(copies) for copies in (1, 2, 4, 8, 16, 32)}
ct.facts(
    f"{BINS} counters",
    {f"{copies} copies: passes": mean for copies, mean in predicted.items()}
    | {
        f"{copies} copies: memory": (BINS * copies * 4 / 1024, "KiB")
        for copies in predicted
    },
)


def histogram(x, copies):
    """Counts of the values of uint16 x, all below 1024."""
    kernel = ct.Kernel(
        FILE, "histogram_copies", defines={"BINS": BINS, "COPIES": copies}
    )
    counts = ct.to_device(np.zeros(BINS, "uint32"))
    shared = BINS * copies * 4
    kernel(x, counts, x.size, grid=gpu.sm_count, block=512, shared=shared)
    return counts


fits = max(c for c in predicted if BINS * c * 4 <= gpu.shared_per_block_optin)
ct.facts("this GPU", {"copies that fit": fits, "passes": predicted[fits]})
for copies in sorted({1, 8, fits}):
    for m in ct.RAGGED:
        for name, x_host in (
            ("random", rng.integers(0, BINS, m, dtype="uint16")),
            ("one value", np.full(m, 1023, "uint16")),
        ):
            expected = np.bincount(x_host, minlength=BINS).astype("uint32")
            counts = histogram(ct.to_device(x_host), copies)
            ct.check(counts, expected, name=f"{copies} copies, {name}, n={m}")
