"""y = x @ W.T for few rows of x, W in bf16 or as the blocks of a GGUF file, by
the kernel of gemv.cu: each byte of W is read once for 8 rows.

    gemv(x, checkpoint_blocks, out)       # out, bf16 or fp32, is overwritten
    gemv(x, weights, out, add=True)       # out, fp32, is the residual stream

bf16 travels as uint16. The same x and W give a row of the result the same bits
in every launch, whatever rows are beside it: the order of a sum depends on the
shape of W alone. (The bits of linear.py are others.)
"""

from functools import cache
from typing import Any, NamedTuple

import cudatut as ct
from cudatut.gpu.operands import Operand, Operands

from cudatut.book.llm.kernels.rows import (
    CTYPES,
    FLOATS,
    LONGEST,
    MOST,
    begin_at,
    grid,
)

SOURCE = "llm/kernels/gemv.cu"
ROWS = 8  # of x, that a block multiplies at the price of one


class Format(NamedTuple):
    """How W is stored, as in gemv.cu: bytes of a block of 32 weights, depths
    that are copied at a time, bytes between rows in shared memory.
    """

    name: str
    block: int
    span: int
    pitch: int

    def row_bytes(self, inputs: int) -> int:
        return inputs * self.block // 32


BF16 = Format("BF16", 64, 256, 544)
Q8_0 = Format("Q8_0", 34, 512, 560)
Q4_1 = Format("Q4_1", 20, 768, 496)


# --8<-- [start:plan]
class Plan(NamedTuple):
    """How blocks share the work: outputs of a block, warps that share the depth
    of 16 of them, spans in shared memory.
    """

    outputs: int
    parts: int
    stages: int

    @property
    def threads(self) -> int:
        return 32 * self.outputs // 16 * self.parts

    def shared(self, format: Format, inputs: int = 1 << 30) -> int:
        """Bytes of shared memory. A block whose rows are few spans long leaves
        the other stages to more blocks on the same SM.
        """
        x = 2 * format.span + 32  # a row of x, and the row of zeros
        stages = min(self.stages, ct.cdiv(inputs, format.span))
        return x + stages * (self.outputs * format.pitch + ROWS * x)


def choose(
    format: Format, outputs: int, inputs: int, shared: int = 227 << 10
) -> Plan:
    """Many small blocks for a small W, so that all SMs load; large ones for a
    large W, since every block reads x again. Quantized weights take more
    instructions a byte: two blocks or three on an SM, so that one multiplies
    while another waits. The parts, and with them the bits, do not depend on
    `shared`, the bytes that a block can have.
    """
    if outputs >= 7500 and format is not BF16:
        return Plan(64, 2, 2)
    if outputs >= 15000 and inputs >= 4096:
        plan = Plan(128, 2, 3)
        return plan if plan.shared(format) <= shared else Plan(64, 2, 2)
    if outputs >= 3800:
        return Plan(32, 4, 3)
    return Plan(16, 8, 4)


# --8<-- [end:plan]


def instance(format: Format, plan: Plan, dtype: str, add: bool) -> str:
    """The kernel's name with its template arguments."""
    arguments = format.name, *plan, CTYPES[dtype], str(add).lower()
    return f"gemv<{', '.join(map(str, arguments))}>"


@cache
def _kernel(format: Format, plan: Plan, dtype: str, add: bool) -> Any:
    return ct.Kernel(SOURCE, instance(format, plan, dtype, add))


def format_of(stored: Operand, inputs: int) -> Format:
    """How a matrix of so many inputs is stored: uint16 is bf16, uint8 the
    blocks of a GGUF file, told by the length of a row. Raises ValueError.
    """
    if stored.dtype == "uint16":
        if inputs and stored.width == inputs and inputs % 8 == 0:
            return BF16
    elif inputs and inputs % 32 == 0:
        for format in (Q4_1, Q8_0):
            if stored.width == format.row_bytes(inputs):
                return format
    raise ValueError(
        f"weights are {stored.dtype} of shape {list(stored.shape)}; for {inputs} "
        "inputs, needed is a matrix of uint16 with as many columns, a multiple "
        "of 8, or of uint8 with 20 (Q4_1) or 34 (Q8_0) columns for every 32"
    )


def weights_of(
    take: Operands, weights: Any, inputs: int
) -> tuple[Operand, Format]:
    """W, [outputs, ...], and how it is stored. Raises TypeError, ValueError."""
    kinds, shape = ("uint16", "uint8"), (None, None)
    stored = take.read("weights", weights, kinds, shape, most=MOST)
    begin_at(take, 16, stored)
    if inputs >= LONGEST:
        raise ValueError(
            f"{take.launcher}: {inputs} inputs; bytes of a row are counted in an int, so that there must be fewer than {LONGEST}"
        )
    return stored, format_of(stored, inputs)


def gemv(
    x: Any,
    weights: Any,
    out: Any,
    add: bool = False,
    stream: Any = None,
    plan: Plan | None = None,
) -> None:
    """out = x @ W.T, or out += x @ W.T with `add`.

    x: bf16 (uint16), [n, inputs]; weights: bf16, [outputs, inputs], or as
    `Checkpoint.blocks` gives them, uint8, [outputs, bytes of a row]; out: [n,
    outputs], bf16 or float32, float32 with `add`. All are contiguous. n: up to
    8 * 65535, though W is read again for every 8 rows. plan: instead of
    `choose`'s; the bits depend on its parts. Raises TypeError, ValueError.
    """
    take = ct.operands("gemv")
    of_x = take.read("x", x, "uint16", (None, None))
    n, inputs = of_x.shape
    stored, format = weights_of(take, weights, inputs)
    outputs, kinds = stored.count, "float32" if add else FLOATS
    to = take.write("out", out, kinds, (n, outputs))
    begin_at(take, 16, of_x)
    if not n or not outputs:
        return
    most = ct.device().shared_per_block_optin
    plan = plan or choose(format, outputs, inputs, most)
    blocks = grid(take, ct.cdiv(outputs, plan.outputs), ct.cdiv(n, ROWS))
    _kernel(format, plan, to.dtype, add)(
        x, weights, out, n, outputs, inputs, grid=blocks,
        block=plan.threads, shared=plan.shared(format, inputs), stream=stream,
    )  # fmt: skip
