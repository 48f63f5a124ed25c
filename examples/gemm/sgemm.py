"""C = alpha op(A) op(B) + beta C in fp32, by the kernel of final.cu: which of its instances, and with how many blocks.

    from sgemm import sgemm

    sgemm(a, b, c, alpha=2.0, beta=1.0, transpose_a=True)

a, b, c: GPUArrays of float32 with two axes, C-contiguous. `launch` takes leading dimensions as well, `launcher` returns
a callable for `ct.bench`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import cudatut as ct

SPLITS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32)  # blocks that may share the depth of a tile


@dataclass(frozen=True)
class Config:
    """An instance of the kernel: tile and thread tile, stages, blocks per SM, and its share of the FMA limit when busy."""

    bm: int
    bn: int
    bk: int
    tm: int
    tn: int
    stages: int
    blocks: int
    rate: float

    @property
    def threads(self) -> int:
        return self.bm * self.bn // (self.tm * self.tn)

    def name(self, vec: int, transpose_a: bool, transpose_b: bool) -> str:
        """The kernel's name. Transpositions decide whether copies can be of 4 words at all: see final.cu."""
        if not transpose_a and transpose_b:
            vec = 1  # as the kernel does anyway: one instance less
        numbers = self.bm, self.bn, self.bk, self.tm, self.tn, self.stages, self.blocks, vec
        flags = ("true" if flag else "false" for flag in (transpose_a, transpose_b))
        return f"sgemm<{','.join([*map(str, numbers), *flags])}>"

    def shared(self, transpose_a: bool, transpose_b: bool) -> int:
        """Bytes of shared memory: tiles that run along the depth in memory are padded by 4 words; C needs some at the end."""
        pitch = self.bm + 4 * (not transpose_a) + self.bn + 4 * transpose_b
        columns = self.threads // 32 * 4 * self.tn * 36  # of each warp 4 TN, each 32 rows and padding
        return 4 * max(self.stages * self.bk * pitch, columns)


CONFIGS = (
    Config(128, 256, 16, 8, 16, 4, 1, rate=0.90),
    Config(128, 128, 16, 8, 16, 4, 2, rate=0.88),
    Config(128, 128, 16, 8, 8, 4, 2, rate=0.84),
    Config(64, 128, 16, 8, 8, 4, 3, rate=0.82),
    Config(128, 64, 16, 8, 8, 4, 3, rate=0.82),
    Config(64, 64, 16, 8, 8, 3, 6, rate=0.80),
    Config(64, 64, 16, 8, 4, 4, 4, rate=0.72),
    Config(32, 64, 16, 4, 4, 4, 6, rate=0.60),
)


# --8<-- [start:cost]
def cost(config: Config, splits: int, m: int, n: int, k: int, sms: int) -> float:
    """Cycles that a launch is expected to take: what the SM with most blocks has to do, one round after the other."""
    blocks = ct.cdiv(m, config.bm) * ct.cdiv(n, config.bn) * splits
    depth = ct.cdiv(ct.cdiv(k, config.bk), splits) * config.bk
    words = config.bm * config.bn
    alone = words * depth / 128  # of one block, if it kept all 128 lanes of an SM busy
    rounds, rest = divmod(ct.cdiv(blocks, sms), config.blocks)
    cycles = rounds * config.blocks * alone / config.rate
    if rest:  # few warps cannot hide their own latency: each keeps 0.6 of a scheduler busy at most
        warps = rest * config.threads / 32
        cycles += rest * alone / min(config.rate, 0.6 * warps / 4)
    # Each round starts with an empty pipeline, and ends with its part of C.
    cycles += (rounds + bool(rest)) * 1500 + ct.cdiv(blocks, sms) * words * 4 / 32
    if splits > 1:  # the last block of a tile reads what all have left
        cycles += 2500 + (splits + 1) * words * 4 / 48
    traffic = 4 * (m * k + k * n + m * n) / 1700  # bytes that memory brings in a cycle
    return max(cycles, traffic)


def most_splits(config: Config, m: int, n: int, k: int, sms: int) -> int:
    """Four steps of depth for each block, and no more blocks than two rounds of them: they are to fill idle SMs."""
    tiles = ct.cdiv(m, config.bm) * ct.cdiv(n, config.bn)
    return min(k // (4 * config.bk), 2 * sms * config.blocks // max(tiles, 1))


@cache
def plan(m: int, n: int, k: int, sms: int) -> tuple[Config, int]:
    """The configuration, and the number of blocks per tile, of least cost."""
    candidates = [
        (config, splits)
        for config in CONFIGS
        for splits in SPLITS
        if splits == 1 or splits <= most_splits(config, m, n, k, sms)
    ]
    return min(candidates, key=lambda candidate: cost(*candidate, m, n, k, sms))


# --8<-- [end:cost]


@cache
def kernel(name: str) -> ct.Kernel:
    return ct.Kernel("gemm/final.cu", name)


class Workspace:
    """Memory where blocks that share a tile leave their sums, allocated when it is first needed and kept.

    A launch leaves the tickets at 0, as the next one needs them. Launches that run at the same time must not share it.
    """

    def __init__(self):
        self.partials = self.tickets = None

    def provide(self, words: int, tiles: int) -> tuple[Any, Any]:
        """Two arrays, of at least that many words, and of at least that many tickets."""
        if self.partials is None or self.partials.size < words:
            self.partials = ct.empty(words, "float32")
        if self.tickets is None or self.tickets.size < tiles:
            self.tickets = ct.empty(tiles, "uint32")
            self.tickets.fill(0)
        return self.partials, self.tickets


WORKSPACE = Workspace()


def vector_words(
    m: int, n: int, a: Any, lda: int, b: Any, ldb: int, transpose_a: bool, transpose_b: bool
) -> int:
    """Words per copy: 4 where whole 16 bytes can be copied of every operand that is not turned on its way."""
    across = [(m, lda, a)] * transpose_a + [(n, ldb, b)] * (not transpose_b)
    aligned = all(
        extent % 4 == 0 and ld % 4 == 0 and address(x) % 16 == 0 for extent, ld, x in across
    )
    return 4 if aligned else 1


def address(array: Any) -> int:
    return array.__cuda_array_interface__["data"][0] or 0


def launcher(
    m: int,
    n: int,
    k: int,
    alpha: float,
    a: Any,
    lda: int,
    b: Any,
    ldb: int,
    beta: float,
    c: Any,
    ldc: int,
    transpose_a: bool = False,
    transpose_b: bool = False,
    config: Config | None = None,
    splits: int | None = None,
    workspace: Workspace = WORKSPACE,
) -> Callable[[], None]:
    """A callable that computes C = alpha op(A) op(B) + beta C once; `.config`, `.splits`, `.kernel` say how.

    op(A) is m x k, op(B) is k x n; lda, ldb, ldc: words from a row to the next, as a matrix lies in memory. config,
    splits: instead of what `plan` chooses. Everything is compiled and allocated here, not in the callable.
    """
    chosen = plan(m, n, k, ct.device().sm_count)
    config = config or chosen[0]
    splits = splits or (chosen[1] if config == chosen[0] else 1)
    vec = vector_words(m, n, a, lda, b, ldb, transpose_a, transpose_b)
    function = kernel(config.name(vec, transpose_a, transpose_b))
    per_split = max(1, ct.cdiv(ct.cdiv(k, config.bk), splits)) * config.bk
    splits = max(1, ct.cdiv(k, per_split))  # none without depth
    tiles = ct.cdiv(m, config.bm) * ct.cdiv(n, config.bn)
    whole = splits == 1
    partials, tickets = workspace.provide(
        4 if whole else tiles * splits * config.bm * config.bn, 1 if whole else tiles
    )
    arguments = m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, per_split, partials, tickets
    grid, shared = (tiles, splits), config.shared(transpose_a, transpose_b)

    def run() -> None:
        if tiles:  # a launch of no blocks is an error, and there is nothing to compute
            function(*arguments, grid=grid, block=config.threads, shared=shared)

    run.config, run.splits, run.kernel, run.shared = config, splits, function, shared
    return run


def launch(*args: Any, **kwargs: Any) -> None:
    """Compute once, with the arguments of `launcher`."""
    launcher(*args, **kwargs)()


def sgemm(
    a: Any,
    b: Any,
    c: Any,
    alpha: float = 1.0,
    beta: float = 0.0,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> None:
    """C = alpha op(A) op(B) + beta C; op transposes where asked. With beta = 0, C is only written. Raises ValueError."""
    prepare(a, b, c, alpha, beta, transpose_a, transpose_b)()


def prepare(
    a: Any,
    b: Any,
    c: Any,
    alpha: float = 1.0,
    beta: float = 0.0,
    transpose_a: bool = False,
    transpose_b: bool = False,
    **how: Any,
) -> Callable[[], None]:
    """As `sgemm`, but returns the callable of `launcher`. Raises ValueError for shapes that do not fit."""
    m, k = a.shape[::-1] if transpose_a else a.shape
    depth, n = b.shape[::-1] if transpose_b else b.shape
    if depth != k or tuple(c.shape) != (m, n):
        raise ValueError(
            f"op(A) is {m} x {k}, op(B) {depth} x {n} and C {' x '.join(map(str, c.shape))}: "
            "they must be m x k, k x n and m x n"
        )
    return launcher(
        m, n, k, alpha, a, a.shape[1], b, b.shape[1], beta, c, n, transpose_a, transpose_b, **how
    )  # fmt: skip
