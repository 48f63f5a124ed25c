# ---
# jupyter:
#   cudatut:
#     title: {en: "Reading CUTLASS and CuTe: solutions", zh: "读 CUTLASS 与 CuTe：参考答案"}
#     requires: sm_75
#     timeout_s: 60
#     alone: false
# ---

# %% [markdown]
# Every swizzle by three numbers, and the fragments of mma.sync as layouts.

# %% given-1
import numpy as np


# %% solution-1
def swizzle(bits, base, shift, address):
    mask = (1 << bits) - 1 << base
    return address ^ address >> shift & mask


# %% check-1
import numpy as np
import cudatut as ct

address = np.arange(1 << 14)
for bits, base, shift in ((3, 4, 3), (2, 4, 3), (1, 4, 3), (0, 4, 3),
                          (3, 3, 3), (2, 0, 5)):  # fmt: skip
    # Bit by bit, as the task says it.
    want = address.copy()
    for bit in range(bits):
        want ^= (address >> base + shift + bit & 1) << base + bit
    got = swizzle(bits, base, shift, address)
    ct.check(np.asarray(got), want, name=f"S<{bits},{base},{shift}>")
# A swizzle of bytes is one of 16-bit elements with a base less by one.
got = 2 * swizzle(3, 3, 3, address)
ct.check(got, swizzle(3, 4, 3, 2 * address), name="elements of two bytes")

# %% given-2
import numpy as np


def offset(shape, stride, place):
    """Where `place` lies: a number, or a tuple as shape is one."""
    if not isinstance(shape, tuple):
        return place * stride
    if not isinstance(place, tuple):  # count: the first extent changes fastest
        parts = []
        for extent in shape:
            place, part = place // np.prod(extent), place % np.prod(extent)
            parts.append(part)
        place = tuple(parts)
    return sum(map(offset, shape, stride, place))


# %% solution-2
# Four lanes go along a row, two columns each; eight go down.
SUMS = ((4, 8), (2, 2)), ((32, 1), (16, 8))
# Then eight rows further, then eight columns.
FACTOR = ((4, 8), (2, 2, 2)), ((32, 1), (16, 8, 128))

# %% check-2
import numpy as np
import cudatut as ct

lane, value = np.indices((32, 4))
row, column = lane // 4 + value // 2 * 8, lane % 4 * 2 + value % 2
found = np.asarray(offset(*SUMS, (lane, value)))
ct.check(found, row + 16 * column, name="sums of mma.sync")
lane, value = np.indices((32, 8))
row = lane // 4 + value // 2 % 2 * 8
column = lane % 4 * 2 + value % 2 + value // 4 * 8
found = np.asarray(offset(*FACTOR, (lane, value)))
ct.check(found, row + 16 * column, name="factor A")
