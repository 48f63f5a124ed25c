"""What wgmma reads, in NumPy: boxes as the TMA writes them with its swizzle of
128 bytes, and the elements that a descriptor names.

Addresses are in bytes from a multiple of 1024.
"""

import numpy as np

LINE = 128  # bytes of a line of a box: 64 elements of 16 bits


# --8<-- [start:swizzled]
def swizzled(address):
    """Where the bytes at this place of a box really stand: bits 4 to 6, the
    piece of 16 bytes, change by an XOR with bits 7 to 9, the line.
    """
    return address ^ (address >> 7 & 7) << 4


# --8<-- [end:swizzled]


def image(boxes) -> np.ndarray:
    """Shared memory, 16-bit words, with boxes of lines of 64 one behind the
    other, as the TMA brings them.
    """
    words = np.concatenate([np.asarray(box).reshape(-1) for box in boxes])
    out = np.empty_like(words)
    out[swizzled(2 * np.arange(words.size)) // 2] = words
    return out


# --8<-- [start:address]
def address(along: bool, leading: int, stride: int, line, depth):
    """The byte at which wgmma looks for element (row of A or column of B,
    depth below 16), counted from where the descriptor begins.
    """
    if along:  # a line is one row or column
        plain = line % 8 * LINE + line // 8 * stride + depth * 2
    else:  # a line is one step of depth, over 64 rows or columns
        plain = line % 64 * 2 + line // 64 * leading
        plain += depth % 8 * LINE + depth // 8 * stride
    return plain


# --8<-- [end:address]


def factor(memory, along, leading, stride, extent, next_depth) -> np.ndarray:
    """A factor, extent x 64, as four wgmma read it; what lies outside of the
    memory is 0.
    """
    line, depth = np.indices((extent, 64))
    where = address(along, leading, stride, line, depth % 16)
    word = swizzled(where + depth // 16 * next_depth) // 2
    found = memory[np.minimum(word, memory.size - 1)]
    return np.where(word < memory.size, found, 0)
