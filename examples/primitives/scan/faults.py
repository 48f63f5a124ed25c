# ---
# jupyter:
#   cudatut:
#     title: {en: "Scan: planted faults", zh: "前缀和：植入的错误"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       n: [2_000_003, 100_003]
#       repeats: [50, 2]
# ---

# %% [markdown]
# Faults planted in the look-back, and which checks notice them. Each fault is
# one line of the source, replaced.

# %% faults
from dataclasses import dataclass

import numpy as np

import cudatut as ct
from cudatut.book.primitives.scan.scans import Shape, new_state, words_of_state

HEADER = "primitives/scan/look_back.cuh"


@dataclass(frozen=True)
class Fault:
    there: str  # the line of the source
    instead: str

    def of(self, text):
        assert text.count(self.there) == 1, self.there
        return text.replace(self.there, self.instead)


# A block tells that its tile's own sum is all that precedes the next tile.
EARLY = Fault("tag(number, tile ? SUM : PREFIX)", "tag(number, PREFIX)")
# Words of the last launch count as words of this one.
NUMBER = Fault("return found >> 3 == number;", "return state != 0;")
# The state goes before the sum, in a store of its own, and no fence between.
TWO_STORES = Fault(
    """  const Word both = (Word)tag << 32 | sum;
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(at), "l"(both)
               : "memory");""",
    """  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"((char*)at + 4),
               "r"(tag)
               : "memory");
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(at), "r"(sum)
               : "memory");""",
)
# The window adds its far halves first, in another order than memory's.
FAR_FIRST = Fault(
    "for (int reach = 1; reach < 32; reach *= 2) part = down",
    "for (int reach = 16; reach > 0; reach /= 2) part = down",
)
# A tile is blockIdx.x, so that it may wait for one that has not begun.
NO_TICKET = Fault(
    "{(int)(unsigned)drawn, number_of", "{(int)blockIdx.x, number_of"
)
FAULTS = {
    "none": None,
    "prefix told too early": EARLY,
    "no number of the launch": NUMBER,
    "sum and state in two stores": TWO_STORES,
    "window adds far halves first": FAR_FIRST,
    "no tickets": NO_TICKET,
}

# %% kernels
SHAPE = Shape(resident=4)


def planted(file, name, fault, shape):
    """The kernel of a file with a fault in its header."""
    folder = ct.paths.examples_dir()
    header = (folder / HEADER).read_text(encoding="utf-8")
    source = (folder / f"primitives/scan/{file}").read_text(encoding="utf-8")
    include = f'#include "{HEADER}"'
    assert source.count(include) == 1
    if fault:
        plain = header.replace("#pragma once", "")
        source = source.replace(include, fault.of(plain))
    return ct.Kernel(source, name, defines=shape.defines("int32"))


n = 2_000_003
repeats = 50
first = ct.rng(0).integers(-100, 101, n).astype("int32")
other = ct.rng(1).integers(-100, 101, n).astype("int32")
heads = (ct.rng(2).random(n) < 0.0005).astype("uint8")


def segmented(values):
    total, at = np.cumsum(values), np.arange(n)
    begin = np.maximum.accumulate(np.where(heads, at, 0))
    before = np.where(begin > 0, total[begin - 1], 0)
    return (total - before).astype("int32")


# %% noticed
a, b, flags = map(ct.to_device, (first, other, heads))
expected = {
    "a": np.cumsum(first, dtype="int32"),
    "b": np.cumsum(other, dtype="int32"),
}
out = ct.empty(n, "int32")


def wrong(kernel, shape, arrays, right):
    """Of `repeats` launches, one after the other, how many were wrong."""
    tiles = ct.cdiv(n, shape.tile("int32"))
    state = new_state(words_of_state(shape, tiles, 4))
    count = 0
    for k in range(repeats):
        ct.poison(out)
        kernel(
            *arrays[k % len(arrays)], out, n, state,
            grid=tiles, block=shape.block,
        )  # fmt: skip
        count += not np.array_equal(out.get(), right[k % len(right)])
    return count


SEGMENTS = Shape(vectors=4)
rows = {}
for name, fault in FAULTS.items():
    scan = planted("one_pass.cu", "scan_look_back", fault, SHAPE)
    segments = planted("segments.cu", "scan_segments", fault, SEGMENTS)
    if fault is NUMBER:  # segments.cu has a `peek` of its own
        segments = None
    rows[name] = {
        "same numbers": wrong(scan, SHAPE, [(a,)], [expected["a"]]),
        "two arrays by turns": wrong(
            scan, SHAPE, [(a,), (b,)], [expected["a"], expected["b"]]
        ),
        "segments": segments
        and wrong(segments, SEGMENTS, [(a, flags)], [segmented(first)]),
    }
ct.table(f"wrong of {repeats} launches", rows, corner="fault")
for check in ("same numbers", "two arrays by turns", "segments"):
    ct.check([rows["none"][check]], [0], name=f"no fault: {check}", rtol=0)
