"""C = alpha op(A) op(B) + beta C in fp32, by the kernel of final.cu: which of its instances, and with how many blocks.

    from sgemm import sgemm

    sgemm(a, b, c, alpha=2.0, beta=1.0, transpose_a=True)

a, b, c: GPUArrays of float32 with two axes, C-contiguous. `launch` takes leading dimensions as well, `launcher` returns
a callable for `ct.bench`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import cudatut as ct

SOURCE = "gemm/final.cu"
SPLITS = (
    1,
    2,
    3,
    4,
    5,
    6,
    8,
    10,
    12,
    16,
    24,
    32,
)  # blocks that may share the depth of a tile


@dataclass(frozen=True)
class Config:
    """An instance of the kernel: tile and thread tile, stages, blocks per SM; and how fast it is.

    rate: share of the FMA limit that an SM reaches with all its blocks. alone: with one block.
    """

    bm: int
    bn: int
    bk: int
    tm: int
    tn: int
    stages: int
    blocks: int
    rate: float
    alone: float = 0.5

    @property
    def threads(self) -> int:
        return self.bm * self.bn // (self.tm * self.tn)

    def name(self, vec: int, transpose_a: bool, transpose_b: bool) -> str:
        """The kernel's name. Transpositions decide whether copies can be of 4 words at all: see final.cu."""
        if not transpose_a and transpose_b:
            vec = 1  # as the kernel does anyway: one instance less
        numbers = (
            self.bm,
            self.bn,
            self.bk,
            self.tm,
            self.tn,
            self.stages,
            self.blocks,
            vec,
        )
        flags = (
            "true" if flag else "false" for flag in (transpose_a, transpose_b)
        )
        return f"sgemm<{','.join([*map(str, numbers), *flags])}>"

    def shared(self, transpose_a: bool, transpose_b: bool) -> int:
        """Bytes of shared memory: tiles that run along the depth in memory are padded by 4 words; C needs some at the end."""
        pitch = self.bm + 4 * (not transpose_a) + self.bn + 4 * transpose_b
        columns = (
            self.threads // 32 * 4 * self.tn * 36
        )  # of each warp 4 TN, each 32 rows and padding
        return 4 * max(self.stages * self.bk * pitch, columns)


CONFIGS = (
    Config(64, 128, 16, 8, 8, 3, 3, rate=0.84, alone=0.5),
    Config(64, 64, 16, 8, 4, 4, 4, rate=0.74, alone=0.5),
    Config(32, 64, 16, 4, 4, 4, 5, rate=0.62, alone=0.4),
)


class Plan(NamedTuple):
    """How a product is computed: the first `whole` tiles by a block each, the others by `splits` blocks each."""

    config: Config
    splits: int
    whole: int


# --8<-- [start:cost]
def span(config: Config, blocks: int, depth: int, sms: int) -> float:
    """Cycles that so many blocks take, each with a tile of that depth, if the SMs have nothing else to do."""
    work = (
        config.bm * config.bn * depth / 128
    )  # of one block, if it kept all 128 lanes of an SM busy
    start_and_end = (
        1500 + config.bm * config.bn * 4 / 32
    )  # an empty pipeline, and its part of C
    rounds, rest = divmod(blocks, sms * config.blocks)
    cycles = rounds * (config.blocks * work / config.rate + start_and_end)
    if rest:
        most = ct.cdiv(rest, sms)  # on one SM
        cycles += (
            most * work / min(config.rate, most * config.alone) + start_and_end
        )
    return cycles


def cost(plan: Plan, m: int, n: int, k: int, sms: int) -> float:
    """Cycles that a plan is expected to take."""
    config, splits, whole = plan
    rest = ct.cdiv(m, config.bm) * ct.cdiv(n, config.bn) - whole
    cycles = span(config, whole, k, sms)
    if rest:
        cycles += span(
            config, rest * splits, depth_of_part(k, config, splits), sms
        )
        # The last block of a tile reads what all of them have left.
        cycles += 2500 + (splits + 1) * config.bm * config.bn * 4 / 48
    traffic = (
        4 * (m * k + k * n + m * n) / 1700
    )  # bytes that memory brings in a cycle
    return max(cycles, traffic)


def plans(m: int, n: int, k: int, sms: int) -> list[Plan]:
    """What is worth considering. As many tiles as fill the GPU once or several times have a block of their own.

    The rest would leave SMs idle; so as many blocks share each of them as it takes to fill the GPU once more or twice,
    with four steps of depth at least for each.
    """
    found = []
    for config in CONFIGS:
        tiles, slots = (
            ct.cdiv(m, config.bm) * ct.cdiv(n, config.bn),
            sms * config.blocks,
        )
        found.append(Plan(config, 1, tiles))
        most = min(k // (4 * config.bk), 2 * slots // max(tiles % slots, 1))
        found += [
            Plan(config, s, tiles - tiles % slots)
            for s in SPLITS
            if 1 < s <= most
        ]
    return found


@cache
def plan(m: int, n: int, k: int, sms: int) -> Plan:
    """The plan of least cost."""
    return min(
        plans(m, n, k, sms), key=lambda candidate: cost(candidate, m, n, k, sms)
    )


# --8<-- [end:cost]


def depth_of_part(k: int, config: Config, splits: int) -> int:
    """Depth of the parts that so many blocks have of a tile: a multiple of BK, the last one may be less."""
    return max(1, ct.cdiv(ct.cdiv(k, config.bk), splits)) * config.bk


@cache
def kernel(name: str, source: str = SOURCE) -> ct.Kernel:
    """An instance; source: a file, or the text of a changed kernel."""
    return ct.Kernel(source, name)


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
    m: int,
    n: int,
    a: Any,
    lda: int,
    b: Any,
    ldb: int,
    transpose_a: bool,
    transpose_b: bool,
) -> int:
    """Words per copy: 4 where whole 16 bytes can be copied of every operand that is not turned on its way."""
    across = [(m, lda, a)] * transpose_a + [(n, ldb, b)] * (not transpose_b)
    aligned = all(
        extent % 4 == 0 and ld % 4 == 0 and address(x) % 16 == 0
        for extent, ld, x in across
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
    whole: int | None = None,
    workspace: Workspace = WORKSPACE,
    source: str = SOURCE,
) -> Callable[[], None]:
    """A callable that computes C = alpha op(A) op(B) + beta C once; `.config`, `.splits`, `.whole`, `.kernel` say how.

    op(A) is m x k, op(B) is k x n; lda, ldb, ldc: words from a row to the next, as a matrix lies in memory. config,
    splits, whole: instead of what `plan` chooses; splits alone: all tiles are shared by that many blocks. source: as
    `kernel` takes it.
    Everything is compiled and allocated here, not in the callable.
    """
    chosen = plan(m, n, k, ct.device().sm_count)
    if config or splits:
        config = config or chosen.config
        splits = splits or 1
    else:
        config, splits, whole = chosen
    vec = vector_words(m, n, a, lda, b, ldb, transpose_a, transpose_b)
    function = kernel(config.name(vec, transpose_a, transpose_b), source)
    tiles = ct.cdiv(m, config.bm) * ct.cdiv(n, config.bn)
    per_part = depth_of_part(k, config, splits)
    splits = max(1, ct.cdiv(k, per_part))  # none without depth
    whole = tiles if splits == 1 else whole or 0
    shared_tiles = tiles - whole
    partials, tickets = workspace.provide(
        max(4, shared_tiles * splits * config.bm * config.bn),
        max(1, shared_tiles),
    )
    arguments = (
        m,
        n,
        k,
        alpha,
        a,
        lda,
        b,
        ldb,
        beta,
        c,
        ldc,
        whole,
        splits,
        per_part,
        partials,
        tickets,
    )
    grid, shared = (
        whole + shared_tiles * splits,
        config.shared(transpose_a, transpose_b),
    )

    def run() -> None:
        if (
            tiles
        ):  # a launch of no blocks is an error, and there is nothing to compute
            function(*arguments, grid=grid, block=config.threads, shared=shared)

    run.config, run.splits, run.whole = config, splits, whole
    run.kernel, run.shared = function, shared
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
