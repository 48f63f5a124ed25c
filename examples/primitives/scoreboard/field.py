"""The contests of the scoreboard: for each primitive our kernel and its rivals
on the same arrays, for any number of elements that is a power of two.

    field = Field(1 << 28)
    field.contest("scan", 20)  # {"ours": ..., "CUB": ...} for 2^20 elements

Ours is what the launcher of the chapter chooses for this size. The arrays are
made once, and a contest takes their beginning.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import cudatut as ct
from cudatut.book.primitives.compaction import compactions
from cudatut.book.primitives.fusion import launch as fusion
from cudatut.book.primitives.fusion.fuse import gelu
from cudatut.book.primitives.random import launch as random
from cudatut.book.primitives.random import philox
from cudatut.book.primitives.scan import scans
from cudatut.book.primitives.sort import sort as sorts
from cudatut.book.primitives.topk.topk import TopK
from cudatut.book.primitives.transpose import launch as transposes
from cudatut.book.rivals import compute, cub
from cudatut.book.rivals.absent import absent
from cudatut.book.rivals.torch_rival import rival

Contest = dict[str, Callable[[], Any] | None]
COLUMNS = 4096  # of a matrix with a bias
ROWS, K = 64, 50  # of top-k
PHILOX4_32_10 = 161  # cuRAND's number for it

# Bytes that must move for each element, half of them kept by a compaction.
BYTES = {
    "transpose": 8,
    "GELU": 8,
    "fused": 12,
    "scan": 8,
    "compaction": 6,
    "sort": 36,
    "top-k": 4,
    "random": 4,
}


# --8<-- [start:field]
class Field:
    """Arrays of up to `most` elements, and what runs on them."""

    def __init__(self, most: int):
        self.x, self.out = ct.empty(most, "float32"), ct.empty(most, "float32")
        random.fill(self.x, "normal", seed=1)()
        self.residual = ct.empty(most, "float32")
        random.fill(self.residual, "normal", seed=2)()
        self.keys, self.sorted = (ct.empty(most, "uint32") for _ in range(2))
        random.fill(self.keys, "words", seed=3)()
        self.bias = self.residual[:COLUMNS]
        self.count, self.counts = ct.empty(1, "int64"), ct.empty(2, "uint64")

    def contest(self, name: str, exponent: int) -> Contest:
        """name: a key of BYTES."""
        makers = {"GELU": self.gelu, "top-k": self.by_row}
        maker = makers.get(name) or getattr(self, name)
        return maker(exponent)

    def pair(self, exponent: int) -> tuple[Any, Any]:
        n = 2**exponent
        return self.x[:n], self.out[:n]

    def transpose(self, exponent: int) -> Contest:
        """A square, or twice as wide as high."""
        rows = 2 ** (exponent // 2)
        x, out = self.pair(exponent)
        columns = x.size // rows
        a, b = x.reshape(rows, columns), out.reshape(columns, rows)
        return {
            "ours": transposes.transpose(a, b),
            "copy": ct.vendor.copy(out, x),
            "PyTorch": rival(lambda torch, s, t: lambda: t.copy_(s.t()), a, b),
        }

    def gelu(self, exponent: int) -> Contest:
        x, out = self.pair(exponent)

        def by_torch(torch, s, t):
            return lambda: torch.ops.aten.gelu.out(s, out=t)

        return {
            "ours": fusion.gelu(x, out),
            "copy": ct.vendor.copy(out, x),
            "PyTorch": rival(by_torch, x, out),
        }

    def fused(self, exponent: int) -> Contest:
        """gelu(x + bias) + residual of a matrix."""
        columns = min(2**exponent, COLUMNS)
        shape = 2**exponent // columns, columns
        x, out = (one.reshape(shape) for one in self.pair(exponent))
        residual = self.residual[: x.size].reshape(shape)
        bias = self.bias[:columns]

        def by_torch(torch, s, bias, residual):
            gelu = torch.nn.functional.gelu
            return lambda: gelu(s + bias) + residual

        return {
            "ours": fusion.bias_gelu_residual(x, bias, residual, out, each=1),
            "PyTorch": rival(by_torch, x, bias, residual),
        }

    # --8<-- [start:scan]
    def scan(self, exponent: int) -> Contest:
        x, out = self.pair(exponent)
        own = scans.fastest(x.size)
        call = "float32_InclusiveSum"
        return {
            "ours": lambda: own(x, out),
            "CUB": cub.contestant("scan", call, x, out, x.size),
            "cuda.compute": compute.scan(x, out),
            "PyTorch": rival(
                lambda torch, s, t: lambda: torch.cumsum(s, 0, out=t), x, out
            ),
        }

    # --8<-- [end:scan]
    def compaction(self, exponent: int) -> Contest:
        """What is above 0, which is about half."""
        x, out = self.pair(exponent)
        own, count = compactions.fastest(x.size), self.count
        call = "float32_SelectIf"
        return {
            "ours": lambda: own(x, out, count),
            "CUB": cub.contestant("select", call, x, out, count, x.size),
            "cuda.compute": compute.select(x, out, self.counts),
            "PyTorch": rival(
                lambda torch, s: lambda: torch.masked_select(s, s > 0), x
            ),
        }

    def sort(self, exponent: int) -> Contest:
        n = 2**exponent
        keys, out, own = self.keys[:n], self.sorted[:n], sorts.fastest(n)
        call = "uint32_SortKeys"
        return {
            "ours": lambda: own(keys, out),
            "CUB": cub.contestant("sort", call, keys, out, n),
            "cuda.compute": compute.sort(keys, out),
            "PyTorch": rival(
                lambda torch, k: lambda: torch.sort(k.view(torch.int32)), keys
            ),
        }

    def pairs(self, exponent: int) -> Contest:
        """Keys with values of 32 bits."""
        n = 2**exponent
        keys, out = self.keys[:n], self.sorted[:n]
        own = sorts.fastest(n, pairs=True)
        values = self.residual[:n].view("uint32")
        moved = self.out[:n].view("uint32")
        call = "uint32_SortPairs"
        return {
            "ours": lambda: own(keys, out, values, moved),
            "CUB": cub.contestant("sort", call, keys, out, values, moved, n),
        }

    def topk(self, n: int) -> Contest:
        """The best K of n numbers, or all of fewer, in each of ROWS rows."""
        x, k = self.x[: ROWS * n].reshape(ROWS, n), min(K, n)
        self.best = ct.empty((ROWS, k), "float32")
        values, places = self.best, ct.empty((ROWS, k), "int32")
        own = TopK(ROWS, n, k)
        return {
            "ours": lambda: own(x, values, places),
            "PyTorch": rival(lambda torch, s: lambda: torch.topk(s, k), x),
        }

    def by_row(self, exponent: int) -> Contest:
        return self.topk(2**exponent // ROWS)

    def random(self, exponent: int) -> Contest:
        """Uniform numbers."""
        _, out = self.pair(exponent)
        return {
            "ours": random.fill(out, "uniform", seed=1),
            "cuRAND": by_curand(out),
            "PyTorch": rival(lambda torch, t: lambda: t.uniform_(), out),
        }


# --8<-- [end:field]
def by_curand(out: Any) -> Any:
    """cuRAND's own Philox, as CuPy calls it; None under a tool."""
    if ct.tool.running():
        return None
    try:
        from cupy.cuda import curand
    except ImportError as error:
        return absent("CuPy is not installed", error)
    ct.activate()
    generator = curand.createGenerator(PHILOX4_32_10)
    to, n = int(out.gpudata), out.size
    run = ct.vendor.Vendor(lambda: curand.generateUniform(generator, to, n))
    return run


# --8<-- [start:check]
def check(field: Field, name: str, exponent: int) -> None:
    """Our kernel's result for 2^exponent elements against the host's. Raises
    ct.CheckError."""
    n, label = 2**exponent, f"{name}, 2^{exponent}"
    x, out = field.x[:n].get(), field.out[:n]
    if name == "transpose":
        wanted = x.reshape(2 ** (exponent // 2), -1).T.reshape(-1)
        ct.check(out, wanted, name=label, rtol=0, atol=0)
    elif name == "GELU":
        ct.check(out, gelu(x.astype("float64")), name=label)
    elif name == "fused":
        columns = min(n, COLUMNS)
        row = np.tile(field.bias[:columns].get(), n // columns)
        wanted = gelu(x.astype("float64") + row) + field.residual[:n].get()
        ct.check(out, wanted, name=label)
    elif name == "scan":
        sums = np.cumsum(x, dtype="float64")
        # At most so many roundings, of partial sums no larger than this.
        bound = 128 * 2.0**-24 * float(np.abs(x).sum(dtype="float64"))
        ct.check(out, sums, name=label, rtol=0, atol=bound)
    elif name == "compaction":
        wanted = x[x > 0]
        ct.check(field.count, [wanted.size], name=f"{label}: count", rtol=0)
        ct.check(out[: wanted.size], wanted, name=label, rtol=0, atol=0)
    elif name == "sort":
        wanted = np.sort(field.keys[:n].get())
        ct.check(field.sorted[:n], wanted, name=label, rtol=0)
    elif name == "top-k":
        rows = x.reshape(ROWS, -1)
        wanted = -np.sort(-rows, axis=1)[:, : field.best.shape[1]]
        ct.check(field.best, wanted, name=label, rtol=0, atol=0)
    else:
        wanted = philox.uniform(philox.words(n, 1))
        ct.check(out, wanted, name=label, rtol=0, atol=0)


# --8<-- [end:check]
