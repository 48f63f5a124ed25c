"""C = alpha op(A) op(B) + beta C in fp32: which kernel, which of its instances, and with how many blocks.

    from sgemm import sgemm

    sgemm(a, b, c, alpha=2.0, beta=1.0, transpose_a=True)

a, b, c: GPUArrays of float32 with two axes, C-contiguous. `launch` takes leading dimensions as well, `launcher` returns
a callable for `ct.bench`. The product is computed by final.cu; one with few rows or columns by skinny.cu (skinny.py).
Launches on one stream share memory for sums that are not complete; each stream has its own, so launches on different
streams may overlap.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, NamedTuple

import cudatut as ct

SOURCE = "gemm/ladder/final.cu"
TOGETHER = 16  # parts of a tile that one block adds, as in final.cu
LARGEST = 2**31 - 1 - 1024  # of an extent: tiles may reach past it
# Blocks that may share the depth of a tile.
SPLITS = (*range(1, 17), 18, 20, 22, 24, 28, 32, 40, 48, 64, 96, 128, 192, 256)


@dataclass(frozen=True)
class Config:
    """An instance of the kernel: tile and thread tile, stages, blocks per SM; and how fast it is.

    rate: share of the FMA limit that an SM approaches with many blocks; alone: with one warp for each of its schedulers;
    words: these two are that much less where words are copied one by one. start, end: cycles before the first step of a
    block, and after the last one for its part of C.
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
    start: float = 2500.0
    end: float = 700.0
    words: float = 0.95

    @property
    def threads(self) -> int:
        return self.bm * self.bn // (self.tm * self.tn)

    @property
    def label(self) -> str:
        """Such as '64 x 128'; with the depth where it is not 16, and a thread's results where they are not 8 x 8."""
        depth = "" if self.bk == 16 else f" x {self.bk}"
        results = "" if self.tm == self.tn == 8 else f", {self.tm} x {self.tn}"
        return f"{self.bm} x {self.bn}{depth}{results}"

    @property
    def turned(self) -> "Config":
        """The same with rows and columns exchanged."""
        return replace(self, bm=self.bn, bn=self.bm, tm=self.tn, tn=self.tm)

    def name(self, vec: int, transpose_a: bool, transpose_b: bool) -> str:
        """The kernel's name. Transpositions decide whether copies can be of 4 words at all: see final.cu."""
        if not transpose_a and transpose_b:
            vec = 1  # as the kernel does anyway: one instance less
        tile = self.bm, self.bn, self.bk, self.tm, self.tn
        numbers = *tile, self.stages, self.blocks, vec
        flags = (str(bool(f)).lower() for f in (transpose_a, transpose_b))
        return f"sgemm<{','.join([*map(str, numbers), *flags])}>"

    def shared(self, transpose_a: bool, transpose_b: bool) -> int:
        """Bytes of shared memory: tiles that run along the depth in memory are padded by 4 words; C needs some at the end."""
        pitch = self.bm + 4 * (not transpose_a) + self.bn + 4 * transpose_b
        lanes_down = 8 if self.bm % (8 * self.tm) == 0 else 4
        # Of each warp so many columns, each of 4 rows per lane, and padding.
        columns = 32 // lanes_down * self.tn * (4 * lanes_down + 4)
        return 4 * max(
            self.stages * self.bk * pitch, self.threads // 32 * columns
        )


@dataclass(frozen=True)
class Costs:
    """What a product costs besides the steps of its tiles; cycles, and bytes per cycle."""

    launch: float
    share_tile: float  # once, if tiles are shared
    leave: float  # bytes per cycle: a block leaves the sums of a tile
    collect: float  # and another one reads them
    memory: float
    crowd: float  # 0: blocks spread evenly over the SMs, 1: they fill SM by SM


# Fitted to the sweep of scoreboard_plans.py, on an H100.
CONFIGS = (
    Config(64, 128, 16, 8, 8, 3, 3, 0.937, 1.01, 3080, 683, 0.881),
    # By 32, half as many barriers; the first step takes longer: for great depth.
    Config(64, 128, 32, 8, 8, 2, 3, 0.941, 1.01, 6080, 683, 0.858),
    Config(64, 64, 16, 8, 8, 3, 6, 0.923, 0.458, 3590, 411, 0.862),
    Config(64, 64, 16, 8, 4, 4, 4, 0.836, 0.754, 1080, 901, 0.908),
    Config(32, 64, 16, 4, 8, 4, 8, 0.799, 0.449, 1000, 594, 0.850),
    Config(32, 32, 16, 4, 4, 4, 8, 0.652, 0.332, 186, 404, 0.836),
    Config(16, 128, 16, 4, 8, 4, 6, 0.779, 0.496, 1020, 371, 0.709),
    Config(128, 16, 16, 8, 4, 4, 6, 0.509, 0.348, 1700, 593, 0.910),
)
COSTS = Costs(
    launch=11_200, share_tile=2800, leave=25.7, collect=55.9, memory=978,
    crowd=0.0523,
)  # fmt: skip


class Plan(NamedTuple):
    """How a product is computed: the first `whole` tiles by a block each, the others by `splits` blocks each."""

    config: Config
    splits: int
    whole: int = 0


class Product(NamedTuple):
    """C = alpha op(A) op(B) + beta C: op(A) is m x k, op(B) is k x n; lda, ldb, ldc: words from a row to the next."""

    m: int
    n: int
    k: int
    alpha: float
    a: Any
    lda: int
    b: Any
    ldb: int
    beta: float
    c: Any
    ldc: int
    transpose_a: bool = False
    transpose_b: bool = False

    def check(self, launcher: str) -> None:
        """Raises ValueError, TypeError for what no kernel can compute: C shares no memory with A and B, for example."""
        m, n, k = self[:3]
        if not 0 <= min(m, n, k) <= max(m, n, k) <= LARGEST:
            raise ValueError(f"{m} x {n} x {k}: extents go up to {LARGEST}")
        take = ct.operands(launcher)
        a, b = (
            (m, k)[:: -1 if self.transpose_a else 1],
            (k, n)[:: -1 if self.transpose_b else 1],
        )
        take.read("A", self.a, "float32", lies=(*a, self.lda))
        take.read("B", self.b, "float32", lies=(*b, self.ldb))
        take.write("C", self.c, "float32", lies=(m, n, self.ldc))

    @property
    def words(self) -> int:
        """Words per copy, 4, 2 or 1: what divides all lines of the operands that are not turned on their way."""
        across = [(self.m, self.lda, self.a)] * self.transpose_a
        across += [(self.n, self.ldb, self.b)] * (not self.transpose_b)
        return math.gcd(
            4, *(x for one in across for x in (*one[:2], _words(one[2])))
        )


# --8<-- [start:cost]
def share(config: Config, blocks: float, vec: int = 4) -> float:
    """Share of its FMA limit that an SM reaches with so many blocks.

    An SM has four schedulers, and all of them work only as long as the one with
    most warps: three blocks of two warps take as long as four.
    """
    fit = max(1, 4 // (config.threads // 32))  # blocks that use each once
    filled = -(-blocks // fit) * fit if fit > 1 else blocks
    # Single words are 12 copies more per step than words by four; pairs are 4.
    slow = config.words ** ((4 / vec - 1) / 3)
    # Few warps wait for their own words, many for free FMA units.
    waits = (1 / (slow * config.alone)) ** 4
    queues = (filled / (slow * config.rate)) ** 4
    return blocks / (waits + queues) ** 0.25


def span(
    config: Config,
    blocks: int,
    depth: int,
    sms: int,
    vec: int = 4,
    crowd: float = 0.0,
) -> float:
    """Cycles that so many blocks take, each with a tile of that depth.

    crowd: as in Costs; blocks that start when others end go where there is room.
    """

    def together(on_an_sm: float) -> float:
        work = config.bm * config.bn * depth / 128  # with all 128 lanes busy
        fmas = on_an_sm * work / share(config, on_an_sm, vec)
        return config.start + fmas + on_an_sm * config.end

    rounds, rest = divmod(blocks, sms * config.blocks)
    cycles = rounds * together(config.blocks)
    if rest:
        even = ct.cdiv(rest, sms)
        full = min(config.blocks, rest)
        cycles += together(even + (full - even) * (crowd if rounds else 0.0))
    return cycles


def cost(
    plan: Plan,
    m: int,
    n: int,
    k: int,
    sms: int,
    vec: int | None = None,
    costs: Costs = COSTS,
) -> float:
    """Cycles that a plan is expected to take; vec: words per copy (what n allows)."""
    config, splits, whole = plan
    vec = vec or math.gcd(n, 4)
    slots, work = sms * config.blocks, config.bm * config.bn / 128
    rest = ct.cdiv(m, config.bm) * ct.cdiv(n, config.bn) - whole
    depth = ct.cdiv(k, config.bk) * config.bk
    cycles = span(config, whole, depth, sms, vec, costs.crowd)
    if rest:
        parts, part = rest * splits, depth_of_part(k, config, splits)
        # The last block of a tile reads what all of them have left.
        read = min(splits, TOGETHER) + ct.cdiv(splits, TOGETHER) - 1
        left = min(config.blocks, ct.cdiv(parts, sms))
        sharing = costs.share_tile * (1 + (splits > TOGETHER))
        sharing += 4 * config.bm * config.bn * left / costs.leave
        sharing += 4 * config.bm * config.bn * read / costs.collect
        if whole % slots == sms:
            # A part runs beside a whole tile. While it is added up, the whole
            # one goes on.
            together = work * part * 2 / share(config, 2, vec)
            alone = work * (depth - part) / share(config, 1, vec)
            cycles -= span(config, sms, depth, sms, vec)
            cycles += config.start + together + max(alone, sharing)
            cycles += 2 * config.end
        else:
            # The parts are no first round if whole tiles were there before.
            full = slots if whole else 0
            cycles += sharing - span(config, full, part, sms, vec)
            cycles += span(config, full + parts, part, sms, vec, costs.crowd)
    traffic = 4 * (m * k + k * n + m * n) / costs.memory
    return costs.launch + (cycles**3 + traffic**3) ** (1 / 3)


def plans(m: int, n: int, k: int, sms: int) -> list[Plan]:
    """What is worth considering. As many tiles as fill the GPU once or several times have a block of their own.

    The rest would leave SMs idle; so as many blocks share each of them as it takes to fill the GPU up to five times more,
    with two steps of depth at least for each. Or of a rest that is a little more than the SMs, only this little is shared.
    """
    found = []
    for config in CONFIGS:
        tiles = ct.cdiv(m, config.bm) * ct.cdiv(n, config.bn)
        slots, least = sms * config.blocks, 2 * config.bk
        rest = tiles % slots
        found.append(Plan(config, 1, tiles))
        if not rest:
            continue
        most = min(k // least, 5 * slots // rest)
        found += [
            Plan(config, s, tiles - rest) for s in SPLITS if 1 < s <= most
        ]
        # Or each SM has one whole tile more, and beside it most have a part.
        # Of more parts than SMs, some would push two whole tiles together.
        if 0 < (few := rest - sms) < sms and config.blocks > 1:
            most = min(k // least, (sms - 1) // few)
            found += [
                Plan(config, s, tiles - few) for s in SPLITS if 1 < s <= most
            ]
    return found


@cache
def plan(m: int, n: int, k: int, sms: int, vec: int | None = None) -> Plan:
    """The plan of least cost."""
    return min(
        plans(m, n, k, sms),
        key=lambda candidate: cost(candidate, m, n, k, sms, vec),
    )


# --8<-- [end:cost]


def depth_of_part(k: int, config: Config, splits: int) -> int:
    """Depth of the parts that so many blocks have of a tile: a multiple of BK, the last one may be less."""
    return max(1, ct.cdiv(ct.cdiv(k, config.bk), splits)) * config.bk


def tickets_of(parts: int) -> int:
    """Tickets of a tile that so many blocks share: one for each group of them, groups of groups included."""
    found = 0
    while parts > 1:
        parts = ct.cdiv(parts, TOGETHER)
        found += parts
    return found


@cache
def kernel(name: str, source: str = SOURCE) -> ct.Kernel:
    """An instance; source: a file, or the text of a changed kernel."""
    return ct.Kernel(source, name)


# --8<-- [start:workspace]
class Workspace:
    """Memory where blocks that share a result leave their sums, allocated when it is first needed and kept.

    A launch leaves the tickets at 0, as the next one needs them. Launches that run at the same time must not share it.
    """

    def __init__(self):
        self._arrays = {}

    def words(self, what: str, count: int) -> Any:
        """An array of at least so many words."""
        if what not in self._arrays or self._arrays[what].size < count:
            self._arrays[what] = ct.empty(max(4, count), "float32")
        return self._arrays[what]

    def tickets(self, count: int) -> Any:
        """At least so many, all of them 0."""
        found = self._arrays.get("tickets")
        if found is None or found.size < count:
            found = self._arrays["tickets"] = ct.empty(count, "uint32")
            found.fill(0)
            ct.synchronize()  # the next launch may be on another stream
        return found


@lru_cache(maxsize=32)
def workspace_of(stream: Any) -> Workspace:
    """The one of a stream (None: the default stream), whose launches run one after the other.

    The stream is kept as long: a later one, with launches of its own, could get its handle. To free memory that a launch
    still uses, the driver waits.
    """
    return Workspace()


# --8<-- [end:workspace]


def _words(array: Any) -> int:
    """Words in front of an array: a view may begin at any."""
    return (array.__cuda_array_interface__["data"][0] or 0) // 4


def launcher(
    *product: Any,
    config: Config | None = None,
    splits: int | None = None,
    whole: int | None = None,
    by: Plan | None = None,
    workspace: Workspace | None = None,
    source: str = SOURCE,
    stream: Any = None,
) -> Callable[[], None]:
    """A callable that computes a product once; `.config`, `.splits`, `.whole`, `.kernel` say how.

    product: the fields of `Product`. by, or config, splits, whole: instead of what `plan` chooses; splits alone: all tiles
    are shared by that many blocks. workspace: instead of the stream's own. source: as `kernel` takes it. stream: a PyCUDA
    stream. Everything is compiled and allocated here, not in the callable. Raises ValueError, TypeError as `Product.check`.
    """
    product = Product(*product)
    product.check("sgemm")
    m, n, k = product[:3]
    workspace = workspace or workspace_of(stream)
    free = config is None and splits is None and by is None
    if free and source == SOURCE:
        from cudatut.book.gemm.kernels import skinny

        if skinny.suits(product):
            return skinny.launcher(product, workspace, stream)
        if (
            product.transpose_b
            and not product.transpose_a
            and turning_pays(m, n, k)
        ):
            return _with_b_turned(product, workspace, stream)
    if free:
        by = _plan_for(product)
    elif by is None:
        config = config or plan(m, n, k, ct.device().sm_count).config
        by = Plan(config, splits or 1, whole or 0)
    return _launcher(product, by, workspace, source, stream)


def _plan_for(product: Product) -> Plan:
    """The plan; with both transposed, of the product with rows and columns exchanged.

    The narrow side of a tile belongs to the operand that runs along the depth, whose words are copied one by one: A, or B
    if both are transposed.
    """
    m, n, k = product[:3]
    sms = ct.device().sm_count
    if not (product.transpose_a and product.transpose_b):
        return plan(m, n, k, sms, product.words)
    found = plan(n, m, k, sms, product.words)
    return found._replace(config=found.config.turned)


def _launcher(
    product: Product, by: Plan, workspace: Workspace, source: str, stream: Any
) -> Callable[[], None]:
    """As `launcher`, for one plan."""
    m, n, k = product[:3]
    config, flags = by.config, (product.transpose_a, product.transpose_b)
    function = kernel(config.name(product.words, *flags), source)
    tiles = ct.cdiv(m, config.bm) * ct.cdiv(n, config.bn)
    part = depth_of_part(k, config, by.splits)
    splits = max(1, ct.cdiv(k, part))  # none without depth
    whole = tiles if splits == 1 else min(by.whole, tiles)
    shared_tiles = tiles - whole
    partials = workspace.words(
        "partials", shared_tiles * splits * config.bm * config.bn
    )
    tickets = workspace.tickets(max(1, shared_tiles * tickets_of(splits)))
    arguments = *product[:11], whole, splits, part, partials, tickets
    grid, shared = whole + shared_tiles * splits, config.shared(*flags)

    def run() -> None:
        if tiles:  # no blocks would be an error: there is nothing to compute
            function(
                *arguments, grid=grid, block=config.threads, shared=shared,
                stream=stream,
            )  # fmt: skip

    run.config, run.splits, run.whole = config, splits, whole
    run.kernel, run.shared = function, shared
    return run


# --8<-- [start:turn]
def turning_pays(m: int, n: int, k: int) -> bool:
    """Whether B transposed is turned in memory first: A B^T then takes as long as A B, and without that a tenth more.

    Turning moves each word of B twice, the product a tenth of its time longer: it pays from about a thousand rows on.
    """
    sms = ct.device().sm_count
    cycles = cost(plan(m, n, k, sms, 4), m, n, k, sms, 4)
    turning = 4000 + 8 * n * k / COSTS.memory
    return turning < 0.1 * cycles


def _with_b_turned(
    product: Product, workspace: Workspace, stream: Any
) -> Callable[[], None]:
    m, n, k = product[:3]
    ld = ct.cdiv(n, 4) * 4  # so that copies of 16 bytes are possible
    turned = workspace.words("turned", k * ld)
    transpose = ct.Kernel("gemm/kernels/transpose.cu", "transpose")
    blocks = ct.cdiv(n, 64) * ct.cdiv(k, 64)
    multiply = _launcher(
        product._replace(b=turned, ldb=ld, transpose_b=False),
        plan(m, n, k, ct.device().sm_count, 4), workspace, SOURCE, stream,
    )  # fmt: skip

    def run() -> None:
        transpose(
            product.b, product.ldb, turned, ld, n, k, grid=blocks, block=256,
            stream=stream,
        )  # fmt: skip
        multiply()

    vars(run).update(vars(multiply))
    return run


# --8<-- [end:turn]


def launch(*args: Any, **kwargs: Any) -> None:
    """Compute once, with the arguments of `launcher`."""
    launcher(*args, **kwargs)()


def sgemm(
    a: Any, b: Any, c: Any, alpha: float = 1.0, beta: float = 0.0,
    transpose_a: bool = False, transpose_b: bool = False, stream: Any = None,
) -> None:  # fmt: skip
    """C = alpha op(A) op(B) + beta C; op transposes where asked. With beta = 0, C is only written; in no case does it share
    memory with A or B. Raises ValueError, TypeError.
    """
    prepare(a, b, c, alpha, beta, transpose_a, transpose_b, stream=stream)()


def prepare(
    a: Any, b: Any, c: Any, alpha: float = 1.0, beta: float = 0.0,
    transpose_a: bool = False, transpose_b: bool = False, **how: Any,
) -> Callable[[], None]:  # fmt: skip
    """As `sgemm`, but returns the callable of `launcher`. Raises ValueError, TypeError for arrays that do not fit."""
    take = ct.operands("sgemm")
    of_a = take.read("A", a, "float32", (None, None)).shape
    m, k = of_a[::-1] if transpose_a else of_a
    shape = (None, k) if transpose_b else (k, None)
    of_b = take.read("B", b, "float32", shape).shape
    n = of_b[0 if transpose_b else 1]
    take.write("C", c, "float32", (m, n))
    return launcher(
        m, n, k, alpha, a, a.shape[1], b, b.shape[1], beta, c, n, transpose_a, transpose_b, **how
    )  # fmt: skip
