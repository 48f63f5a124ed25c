"""The kernels of a step one by one: which there are, what each has to move and
to compute, and how long it takes by itself.

    with noted() as launches:
        engine.step()
    for kernel in distinct(launches):
        print(work_of(kernel, backend.weights, config, tokens=1, seen=300))
"""

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import cudatut as ct
from cudatut.book.llm.model.checkpoint import Config
from cudatut.book.llm.model.weights import Weights

CACHE = 2  # bytes of a number in the KV cache, bf16


# --8<-- [start:noted]
class Launch(NamedTuple):
    kernel: ct.Kernel
    arguments: tuple
    how: dict[str, Any]  # grid, block, shared, stream

    @property
    def base(self) -> str:
        """The kernel's name without template arguments."""
        return re.match(r"\w+", self.kernel.name)[0]

    @property
    def numbers(self) -> tuple[int, ...]:
        """Of its arguments those that are sizes: addresses are np.uint64."""
        return tuple(n for n in self.arguments if type(n) is int)

    @property
    def blocks(self) -> int:
        grid = self.how["grid"]
        return math.prod(grid) if isinstance(grid, tuple) else grid

    def again(self) -> None:
        self.kernel(*self.arguments, **self.how)


@contextmanager
def noted() -> Iterator[list[Launch]]:
    """All launches of a `ct.Kernel` meanwhile, in a list; they run as ever."""
    launches, call = [], ct.Kernel.__call__

    def note(kernel, *arguments, **how):
        launches.append(Launch(kernel, arguments, how))
        call(kernel, *arguments, **how)

    ct.Kernel.__call__ = note
    try:
        yield launches
    finally:
        ct.Kernel.__call__ = call


def distinct(launches: list[Launch]) -> list[list[Launch]]:
    """Launches of the same kernel, grid and sizes together, in the order in
    which they came first. What differs in them is which layer's arrays.
    """
    found: dict[Any, list[Launch]] = {}
    for one in launches:
        what = one.kernel.name, one.how["grid"], one.numbers
        found.setdefault(what, []).append(one)
    return list(found.values())


def replay(launches: list[Launch]) -> Callable[[], None]:
    """What starts them once more, for a Graph."""

    def work() -> None:
        for one in launches:
            one.again()

    return work


# --8<-- [end:noted]


# --8<-- [start:work]
class Work(NamedTuple):
    """Of one launch. bytes: each array that it needs once, twice what it adds
    to; None for a kernel that is not known here.
    """

    name: str
    bytes: int | None
    flops: int | None


def work_of(
    launch: Launch, weights: Weights, config: Config, tokens: int, seen: int
) -> Work:
    """What a launch of a step has to do in which each of `tokens` requests gets
    one token; `seen` tokens are looked at, those of all requests together.
    """
    c, n, layer = config, tokens, weights.layers[0]
    heads, kv = c.heads * c.head_dim, 2 * c.kv_heads * c.head_dim
    # Rows in fp32 with their norm; rows and what is between gate and down in
    # bf16; queries, keys and values with positions, slots and RoPE's angles.
    rows, to_norm = 4 * n * c.dim, 4 * n * c.dim + 4 * c.dim
    normed, wide = 2 * n * c.dim, 2 * n * c.ffn
    stored = 2 * n * heads + CACHE * n * kv + n * (8 + 4 * c.head_dim)
    # Operations of a norm, of RoPE, of silu(gate) * up, as in costs.py.
    norm, turn = 4 * n * c.dim, 3 * n * (heads + kv // 2)
    silu = 5 * n * c.ffn
    qkv, gates = 2 * n * c.dim * (heads + kv), 4 * n * c.dim * c.ffn
    match launch.base:
        case "embed_q8" | "embed_bf16":
            row = weights.embedding.nbytes // c.vocab
            return Work("embedding", n * (4 + row) + rows, 0)
        case "norm_qkv":
            nbytes = to_norm + layer.qkv.stored.nbytes + stored
            return Work("norm, q, k, v", nbytes, norm + qkv + turn)
        case "linear_qkv":
            nbytes = normed + layer.qkv.bf16.nbytes + stored
            return Work("q, k, v", nbytes, qkv + turn)
        case "decode" | "flash" | "flash_parts" | "flash_hopper_paged":
            nbytes = CACHE * seen * kv + 4 * n * heads + 4 * n * c.heads
            return Work(
                "attention", nbytes, (4 * c.head_dim + 4) * c.heads * seen
            )
        case "merge_parts":  # one part of each result; there may be more
            return Work("attention's parts", 6 * n * heads, 0)
        case "norm_gate_up":
            nbytes = to_norm + layer.gate_up.stored.nbytes + wide
            return Work("norm, gate, up", nbytes, norm + gates + silu)
        case "rms_norm":
            return Work("norm", to_norm + normed, norm)
        case "gather":
            return Work("last rows", 4 * n + 2 * rows, 0)
        case "sample":
            return Work("sampling", 4 * n * c.vocab, 0)
        case "gemv" | "linear" | "linear_split" | "linear_hopper":
            _, outputs, inputs = launch.numbers[:3]
            found = {
                (c.vocab, c.dim): ("logits", 4 * n * c.vocab, 0),
                (2 * c.ffn, c.dim): ("gate, up", wide, silu),
                (c.dim, c.ffn): ("down", 2 * rows, n * c.dim),
                (c.dim, heads): ("attention output", 2 * rows, n * c.dim),
            }.get((outputs, inputs))
            if found:
                name, out, more = found
                if launch.base == "linear_hopper":  # by a map of W, in bf16
                    stored = 2 * outputs * inputs
                    half = half_of_a_norm(launch.arguments[2], c, n)
                    out, more = out + half.bytes, more + half.flops
                else:
                    stored = launch.arguments[1].nbytes
                nbytes = 2 * n * inputs + stored + out
                return Work(name, nbytes, 2 * n * inputs * outputs + more)
    return Work(launch.base, None, None)


def half_of_a_norm(end: Any, config: Config, n: int) -> Work:
    """What an end of linear_hopper.py has to do for a norm between products:
    the first half stores a row and its sums of squares, in the narrowest tiles,
    the second reads the sums.
    """
    row, squares = 2 * n * config.dim, 4 * n * ct.cdiv(config.dim, 16)
    if getattr(end, "weight", 0):
        nbytes = row + 4 * config.dim + squares
        return Work("first half", nbytes, 4 * n * config.dim)
    second = getattr(getattr(end, "scale", None), "parts", 0)
    return Work("second half", squares if second else 0, 0)


# --8<-- [end:work]
