"""Products with what is before and behind them in one launch, for 1 to 8 rows,
by the kernels of fused.cu. A layer is then five launches:

    norm_qkv(x, norm, qkv, positions, slots, table, keys, values, q, eps)
    decode.paged(q, keys, values, ..., attended, ...)
    gemv(attended, o, x, add=True)
    norm_gate_up(x, norm, interleaved, act, eps)
    gemv(act, down, x, add=True)

bf16 travels as uint16, FP8 as uint8. The normalized x is rounded to bf16, as norms.py does
it; products stay fp32 until they are turned, or until silu(gate) * up is there,
and are rounded once. Launches one by one round each product too, so the last
bits are others. The same row gives the same bits whatever rows are beside it.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

import cudatut as ct
from cudatut.gpu.operands import Operand, Operands
from cudatut.book.llm.kernels.gemv import ROWS, Format, Plan, weights_of
from cudatut.book.llm.kernels.turning import turning

from cudatut.book.llm.kernels.rows import begin_at

SOURCE = "llm/kernels/fused.cu"


# --8<-- [start:interleave]
def interleave(gate_up: np.ndarray) -> np.ndarray:
    """The rows of W_gate_up in the order that `norm_gate_up` needs: of every 16
    the first 8 are gates j to j + 7, the others ups j to j + 7.

    gate_up: on the host, [2 * ffn, anything], bf16 or stored blocks, all gates
    before all ups; ffn is a multiple of 8. Raises ValueError.
    """
    outputs, columns = gate_up.shape
    if outputs % 16:
        raise ValueError(
            f"{outputs} rows: of gates and ups there have to be as many, a multiple of 8"
        )
    both = gate_up.reshape(2, outputs // 16, 8, columns)
    found = both.transpose(1, 0, 2, 3).reshape(outputs, columns)
    return np.ascontiguousarray(found)


# --8<-- [end:interleave]


def shared_bytes(plan: Plan, format: Format, inputs: int) -> int:
    """Of shared memory: W's spans on their way, and all of x."""
    x = ROWS * (ct.cdiv(inputs, 64) * 128 + 32)
    return plan.stages * plan.outputs * format.pitch + x


def choose(
    format: Format, outputs: int, inputs: int, room: int = 227 << 10
) -> Plan:
    """As many stages as there is room for, in bytes that a block can have; the
    bits do not depend on them. Raises ValueError.
    """
    parts = (32, 4) if outputs >= 3800 else (16, 8)
    for stages in (4, 3, 2):
        plan = Plan(*parts, stages)
        if shared_bytes(plan, format, inputs) <= room:
            return plan
    raise ValueError(
        f"rows of {inputs}: 8 of them do not fit into the {room} bytes of shared memory of a block"
    )


def instance(base: str, format: Format, plan: Plan, *more: str) -> str:
    """The kernel's name with its template arguments."""
    return f"{base}<{', '.join(map(str, (format.name, *plan, *more)))}>"


@cache
def _kernel(base: str, format: Format, plan: Plan, *more: str) -> Any:
    return ct.Kernel(SOURCE, instance(base, format, plan, *more))


def norm_qkv(
    x: Any,
    weight: Any,
    weights: Any,
    positions: Any,
    slots: Any,
    table: Any,
    keys: Any,
    values: Any,
    q: Any,
    eps: float,
    stream: Any = None,
    plan: Plan | None = None,
    scales: Any = None,
) -> None:
    """`rms_norm` of x, times W_qkv; queries and keys turned to their positions;
    keys and values put into their slots of one layer's cache.

    x: float32, [n, dim], n at most 8; weight: float32, [dim], of the norm.
    weights: [(heads + 2 kv_heads) * head_dim, ...], as `gemv` takes them.
    positions, slots, table, keys, values, q, scales: see `turning`. plan:
    instead of `choose`'s. Raises TypeError, ValueError.
    """
    take = ct.operands("norm_qkv")
    factors = _factors(take, x, weight, weights)
    (n, inputs), outputs = factors.x.shape, factors.stored.count
    more = positions, slots, table, keys, values, q
    to = turning(take, n, outputs, *more, scales)
    if n:
        _launch(
            "norm_qkv", factors, plan, stream,
            *to.arrays, n, inputs, to.heads, to.kv_heads, to.head_dim, eps,
            to.cache.scales, cache=to.cache.arguments,
        )  # fmt: skip


def norm_gate_up(
    x: Any,
    weight: Any,
    weights: Any,
    out: Any,
    eps: float,
    stream: Any = None,
    plan: Plan | None = None,
) -> None:
    """out = silu(gate) * up, where gate and up are `rms_norm` of x, times
    `weights`.

    x, weight: as for `norm_qkv`. weights: as `interleave` orders them, [2 *
    ffn, ...], ffn a multiple of 8. out: bf16, [n, ffn]. plan: instead of
    `choose`'s. Raises TypeError, ValueError.
    """
    take = ct.operands("norm_gate_up")
    factors = _factors(take, x, weight, weights)
    (n, inputs), outputs = factors.x.shape, factors.stored.count
    if outputs % 16:
        raise ValueError(
            f"norm_gate_up: {outputs} rows of weights: of gates and ups there have to be as many, a multiple of 8"
        )
    to = take.write("out", out, "uint16", (n, outputs // 2))
    if n and outputs:
        _launch(
            "norm_gate_up", factors, plan, stream,
            to.address, n, outputs, inputs, eps,
        )  # fmt: skip


class Factors(NamedTuple):
    """What both multiply, and how W is stored."""

    x: Operand
    weight: Operand
    stored: Operand
    format: Format


def _factors(take: Operands, x: Any, weight: Any, weights: Any) -> Factors:
    of_x = take.read("x", x, "float32", (None, None))
    n, inputs = of_x.shape
    if n > ROWS:
        raise ValueError(
            f"{take.launcher}: x has {n} rows; these kernels take up to {ROWS}"
        )
    of_norm = take.read("weight", weight, "float32", (inputs,))
    stored, format = weights_of(take, weights, inputs)
    begin_at(take, 16, of_x, of_norm)
    return Factors(of_x, of_norm, stored, format)


def _launch(
    base: str,
    factors: Factors,
    plan: Plan | None,
    stream: Any,
    *arguments: Any,
    cache: tuple[str, ...] = (),
) -> None:
    x, weight, stored, format = factors
    outputs, inputs = stored.count, x.width
    room = ct.device().shared_per_block_optin
    plan = plan or choose(format, outputs, inputs, room)
    _kernel(base, format, plan, *cache)(
        x.address, weight.address, stored.address, *arguments,
        grid=ct.cdiv(outputs, plan.outputs), block=plan.threads,
        shared=shared_bytes(plan, format, inputs), stream=stream,
    )  # fmt: skip
