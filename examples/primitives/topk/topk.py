"""The k largest numbers of each row on the GPU, the largest first, and where
they lie.

    TopK(rows, n, k)(x, values, indices)

As in PyTorch NaN is the largest. -0.0 equals 0.0. Of equal numbers the one with
the smaller index comes first, as in numpy.argsort(-x, kind="stable"): the same
arguments always give the same result.
"""

import functools
from collections.abc import Iterable
from typing import Any

import numpy as np

import cudatut as ct
from cudatut.book.primitives import macros

PATH = "primitives/topk/topk.cu"
MOST_NUMBERS = 1 << 30  # of a row
DEFAULTS = {
    "THREADS": 1024,
    "ROOM": 2048,
    "SLACK": 256,
    "AHEAD": 4,
    "DIGIT_BITS": 11,
}


@functools.cache
def kernel(name: str, defines: tuple) -> ct.Kernel:
    return ct.Kernel(PATH, name, dict(defines))


def compile_ahead(plans: Iterable[tuple[str, dict]]) -> None:
    """Compiles kernels side by side: a way and a plan each, for rows that begin
    at multiples of 16 bytes and for others."""
    macros.compile_ahead(
        (
            PATH,
            f"topk_{way}",
            dict(sorted({**DEFAULTS, **plan, "VEC": vec}.items())),
        )
        for way, plan in plans
        for vec in ((1, 4) if way == "stream" else (1,))
    )


def power_of_two(k: int) -> int:
    return 1 << (k - 1).bit_length()


class TopK:
    """The best k of n numbers in each of `rows` rows.

    way: "stream", one pass over the numbers; "select", a pass for each digit;
    or "lanes", for k of at most 32. plan: macros of topk.cu.
    """

    def __init__(
        self, rows: int, n: int, k: int, way: str = "stream", **plan: Any
    ):
        if not (1 <= k <= n <= MOST_NUMBERS and 1 <= rows < 1 << 31):
            raise ValueError(f"top-k: {k} of {n} in {rows} rows")
        self.rows, self.n, self.k, self.way = rows, n, k, way
        self.size = power_of_two(k)
        self.plan = {**DEFAULTS, **plan}
        if way == "stream" and "BLOCKS" not in plan:
            self.plan["BLOCKS"] = self.blocks_of_row()
        room, slack = self.plan["ROOM"], self.plan["SLACK"]
        self.capacity = room + 4 * self.plan["THREADS"]
        blocks = self.plan.get("BLOCKS", 1) if way == "stream" else 1
        if self.size + slack > room or blocks * self.size > self.capacity:
            raise ValueError(f"top-k: k = {k} is too large for this plan")
        if way == "lanes" and k > 32:
            raise ValueError(f"top-k: k = {k}: a warp keeps 32")
        first = 4 * self.plan["THREADS"]  # numbers of a block's first step
        if way == "stream" and k > first:
            raise ValueError(
                f"top-k: k = {k}, but a block's first step has {first} numbers:"
                f" take THREADS={self.size // 4}"
            )
        if way == "stream" and blocks * rows >= 1 << 31:
            raise ValueError(f"top-k: {rows} rows are too many")
        lists = rows * blocks * self.size if way == "stream" else 1
        self.lists = ct.empty(lists, "uint64")
        self.tickets = ct.to_device(np.zeros(rows, "uint32"))

    def blocks_of_row(self) -> int:
        """Blocks that share a row: a power of two, as many as fill the GPU."""
        sms, blocks = ct.device().sm_count, 1
        while (
            2 * blocks * self.rows <= sms
            and 2 * blocks * self.size <= 4096
            and self.n >= 16384 * blocks
        ):
            blocks *= 2
        return blocks

    @property
    def shared(self) -> int:
        return 8 * self.capacity + 4 * (1 << self.plan["DIGIT_BITS"])

    def compiled(self, vec: int) -> ct.Kernel:
        defines = {**self.plan, "VEC": vec}
        return kernel(f"topk_{self.way}", tuple(sorted(defines.items())))

    def __call__(self, x: Any, values: Any, indices: Any, stream: Any = None):
        """values, indices = the best k of each row of x. Rows may be strided.
        Raises TypeError, ValueError.
        """
        take, shape = ct.operands("top-k"), (self.rows, self.k)
        row = take.read("x", x, "float32", (self.rows, self.n), rows=1)
        best = [
            take.write("values", values, "float32", shape).address,
            take.write("indices", indices, "int32", shape).address,
        ]
        launch = {"block": self.plan["THREADS"], "stream": stream}
        arguments = [row.address, row.stride, self.n, self.k]
        if self.way == "lanes":
            self.compiled(1)(*arguments, *best, grid=self.rows, **launch)
            return
        arguments.append(self.size)
        if self.way == "select":
            self.compiled(1)(
                *arguments, *best, grid=self.rows, shared=self.shared, **launch
            )
            return
        vec = 4 if row.aligned(16) else 1
        self.compiled(vec)(
            *arguments, *best, self.lists, self.tickets,
            grid=self.rows * self.plan["BLOCKS"], shared=self.shared, **launch,
        )  # fmt: skip
