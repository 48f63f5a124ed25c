# ---
# jupyter:
#   cudatut:
#     title: {en: "What changes on Blackwell", zh: "Blackwell 上有什么不同"}
#     requires: sm_75
#     timeout_s: 60
#     alone: false
# ---

# %% [markdown]
# Nothing here runs on a Blackwell GPU: formats are computed in NumPy, and a
# kernel is compiled only. First sixteen numbers as nvfp4, bit by bit.

# %% program
import numpy as np

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])  # by its lower three bits

x = np.random.default_rng(0).standard_normal(16)
scale = np.abs(x).max() / 6  # to be stored as e4m3, which we leave out here
nearest = np.abs(np.abs(x)[:, None] / scale - E2M1).argmin(axis=1)
words = nearest | (x < 0) << 3  # four bits: sign, then magnitude
packed = (words[0::2] | words[1::2] << 4).astype("uint8")  # lower half first

print("packed:", " ".join(f"{byte:08b}" for byte in packed[:4]), "...")
for number in range(4):
    word = int(packed[number // 2]) >> 4 * (number % 2) & 15
    back = E2M1[word & 7] * (-1) ** (word >> 3) * scale
    print(f"{x[number]:6.3f} -> {word:04b} -> {back:6.3f}")

# %% setup
from cudatut.book.tensor.blackwell.block_scaled import (
    BLOCKS,
    E2M1 as SHORT,
    one_scale,
)
from cudatut.book.numbers.formats import FORMATS

import cudatut as ct

from cudatut.book.measure import loops  # the reader of machine code

# %% values
# All of its numbers, from the decoder of the chapter on precision.
ct.facts(
    "e2m1",
    {
        "numbers of e2m1": ", ".join(
            f"{v:g}" for v in SHORT.decode(np.arange(8))
        )
    },
)

# %% predict
ct.table(
    "bits of a number, with its part of the scale",
    {
        name: {
            "bits": block.element.bits,
            "numbers in a block": block.size,
            "type of the scale": block.scale,
            "bits, scale included": block.bits,
        }
        for name, block in BLOCKS.items()
    },
    corner="format",
)

# %% check
# A block of 4 and the others 0.25: by hand.
x = np.full(32, 0.25)
x[0] = 4.0
expected = {
    # The largest exponent of e4m3 is 2^8, so the scale is 2^(2 - 8): all exact.
    "mxfp8": x,
    # The largest exponent of e2m1 is 2^2, so the scale is 1; a quarter lies in
    # the middle of 0 and 0.5, and goes to the even one, 0.
    "mxfp4": np.where(x == 4, 4.0, 0.0),
}
for name, right in expected.items():
    ct.check(BLOCKS[name].round(x), right, name=name, rtol=0)
# nvfp4: the second block has a scale of its own, and is exact but for e4m3.
found = BLOCKS["nvfp4"].round(x)
ct.check(found[16:], x[16:], name="nvfp4, second block", rtol=2**-4)

# %% errors
SIZE = 1 << 18


def data():
    rng = np.random.default_rng(1)
    normal = rng.standard_normal(SIZE)
    outliers = normal * np.where(rng.random(SIZE) < 0.001, 100, 1)
    rows = normal * np.repeat(2.0 ** rng.integers(-8, 8, SIZE // 1024), 1024)
    return {
        "normal": normal,
        "one in 1000 is 100 times as large": outliers,
        "rows of very different size": rows,
    }


def error(x, found):
    """Of a typical number: the median of |error| / |number|."""
    return float(np.median(np.abs(found - x) / np.abs(x))) * 100


ROUNDED = {
    "e4m3, one scale": lambda x: one_scale(x, FORMATS["e4m3"]),
    "mxfp8": BLOCKS["mxfp8"].round,
    "e2m1, one scale": lambda x: one_scale(x, SHORT),
    "mxfp4": BLOCKS["mxfp4"].round,
    "nvfp4": BLOCKS["nvfp4"].round,
}
samples = data()
errors = {
    name: {kind: error(x, round(x)) for kind, x in samples.items()}
    for name, round in ROUNDED.items()
}
ct.table(
    "relative error of a typical number",
    errors,
    corner="format",
    units=dict.fromkeys(samples, "%"),
)

# %% sums
# Where the sums of a tile of 128 x 256 are: 256 threads with registers of 32
# bits, or the 128 lanes and 512 columns of tensor memory.
ROWS, COLUMNS = 128, 256
ct.facts(
    "sums of a tile of 128 x 256",
    {
        "registers of each of 256 threads": ROWS * COLUMNS // 256,
        "columns of tensor memory": COLUMNS * ROWS // 128,
        "columns that there are": 512,
        "tensor memory of an SM": (128 * 512 * 4 / 1024, "KiB"),
    },
)

# %% pairs
# Rows of A and columns of B that a block has to bring for each step of depth.
ct.table(
    "rows and columns that a block brings",
    {
        "one block, 128 x 256": {
            "of A": 128,
            "of B": 256,
            "FLOPs for each": 2 * 128 * 256 / (128 + 256),
        },
        "a pair, 256 x 256": {
            "of A": 128,
            "of B": 128,
            "FLOPs for each": 2 * 128 * 256 / (128 + 128),
        },
    },
    corner="tile",
)

# %% [markdown]
# Which GPUs the kernel compiles for. Nothing is launched.

# %% compile
ARCHITECTURES = ("sm_90a", "sm_100", "sm_100a", "sm_103a", "sm_120a")
OF = {
    "sm_90a": "H100, H200",
    "sm_100": "any of compute capability 10.0 and later",
    "sm_100a": "B200",
    "sm_103a": "B300",
    "sm_120a": "RTX 50",
}
outcome, compiled = {}, None
for arch in ARCHITECTURES if not ct.tool.running() else ():
    try:
        kernel = ct.Kernel(
            "tensor/blackwell/tcgen05.cu",
            "tcgen05_product",
            arch=arch,
            load=False,
        )
        outcome[arch] = {"GPU": OF[arch], "compiles": True}
        compiled = kernel if arch == "sm_100a" else compiled
    except ct.KernelCompileError as error:
        assert "tcgen05" in str(error), error  # and not for another reason
        outcome[arch] = {"GPU": OF[arch], "compiles": False}

# %% targets
if outcome:
    ct.table("tcgen05.cu", outcome, corner="architecture")

# %% sass
if compiled:
    code = loops.disassemble(compiled)
    shown = ("UTCHMMA", "UTCBAR", "LDTM")
    print(*dict.fromkeys(i.text for i in code if i.op in shown), sep="\n")

# %% count
if compiled:
    count = loops.count((i, 1) for i in code)
    ct.facts(
        "instructions of tcgen05_product",
        {
            "UTCHMMA": count["UTCHMMA"],
            "FMAs of each": 128 * 64 * 16,
            "HMMA that would do the same": 128 * 64 * 16 // (16 * 8 * 16),
        },
    )

# %% check-count
if compiled:
    ct.check(np.array(count["UTCHMMA"]), 64 // 16, name="one per 16 of depth")
