"""What `tuner.py` searches: the instances of final.cu, and the rules that leave out hopeless ones.

A rule needs no compiler and no GPU, only the numbers of one. All are stated for A and B as they lie in memory (none
transposed) and for copies of 16 bytes.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import cudatut as ct

from cudatut.book.gemm.kernels import sgemm as SGEMM
from cudatut.book.gemm.ladder import ladder as GEMM

Config = SGEMM.Config

# --8<-- [start:ranges]
RANGES = {
    "bm": (32, 64, 128, 256),  # rows and
    "bn": (32, 64, 128, 256),  # columns of C that a block computes
    "bk": (8, 16, 32),  # depth of a step
    "tm": (4, 8, 16),  # rows and
    "tn": (4, 8, 16),  # columns of C that a thread computes
    "stages": (2, 3, 4),  # steps that shared memory holds
    "blocks": (1, 2, 3, 4, 5, 6),  # per SM, as __launch_bounds__ says it
}
# --8<-- [end:ranges]

MOST_SPLITS = 32  # blocks that share the depth of a tile
FEWEST_WARPS = 8  # of a multiprocessor: two for each scheduler
L2_BYTES = 28  # that a multiprocessor gets in a cycle, measured on an H100 (roofline.py)
REGISTERS_BESIDES = (
    32  # addresses, counters, predicates; found by compiling a dozen instances
)


@dataclass(frozen=True)
class Limits:
    """What a GPU has; bytes of shared memory, 32-bit registers."""

    sms: int
    threads_per_block: int
    threads_per_sm: int
    registers_per_sm: int
    shared_per_block: int
    shared_per_sm: int

    @classmethod
    def of(cls, gpu: Any) -> "Limits":
        """Those of a `ct.device()`."""
        return cls(
            gpu.sm_count,
            gpu.max_threads_per_block,
            gpu.max_threads_per_sm,
            gpu.registers_per_sm,
            gpu.shared_per_block_optin,
            gpu.shared_per_sm,
        )


H100 = Limits(132, 1024, 2048, 65536, 227 << 10, 228 << 10)
RTX_3090 = Limits(82, 1024, 1536, 65536, 99 << 10, 100 << 10)


def numbers(config: Config) -> dict[str, int]:
    """The template's arguments by name: what tells a configuration from another."""
    return {name: getattr(config, name) for name in RANGES}


def config_of(**numbers: int) -> Config:
    """The configuration of these numbers (all of RANGES)."""
    return replace(SGEMM.CONFIGS[0], **numbers)


def label(config: Config) -> str:
    """Such as '128x256x16 8x16, 4 stages, 1 block'."""
    c, s = config, "s" * (config.blocks > 1)
    return f"{c.bm}x{c.bn}x{c.bk} {c.tm}x{c.tn}, {c.stages} stages, {c.blocks} block{s}"


def everything() -> Iterator[Config]:
    """The whole product of the ranges."""
    for values in product(*RANGES.values()):
        yield config_of(**dict(zip(RANGES, values)))


# --8<-- [start:rules]
def whole_warps(c: Config, gpu: Limits) -> bool:
    """The tile consists of warps' parts, 8 x 4 lanes each; 1 to 32 warps."""
    fits = c.bm % (8 * c.tm) == 0 and c.bn % (4 * c.tn) == 0
    return fits and 32 <= c.threads <= gpu.threads_per_block


def whole_copies(c: Config, gpu: Limits) -> bool:
    """The threads share the words of both tiles evenly, as the kernel's
    static_assert wants it."""
    # Threads on a row of B, 16 bytes each.
    lanes = min(max(c.threads // c.bk, 8), c.bn // 4)
    rows_at_a_time = c.threads // 8  # of A: 8 threads on a row
    return (
        c.bm % rows_at_a_time == 0
        and c.threads % lanes == 0
        and c.bk % (c.threads // lanes) == 0
        and c.bn % (4 * lanes) == 0
    )


def fits_threads(c: Config, gpu: Limits) -> bool:
    return c.threads * c.blocks <= gpu.threads_per_sm


def fits_shared(c: Config, gpu: Limits) -> bool:
    """Every block also takes what the system keeps for itself, 1 KiB."""
    needs, system = (
        c.shared(False, False),
        gpu.shared_per_sm - gpu.shared_per_block,
    )
    return (
        needs <= gpu.shared_per_block
        and c.blocks * (needs + system) <= gpu.shared_per_sm
    )


def fits_registers(c: Config, gpu: Limits) -> bool:
    """The sums, two depths of factors, and what every kernel needs besides."""
    needs = c.tm * c.tn + 2 * (c.tm + c.tn) + REGISTERS_BESIDES
    return needs <= register_budget(c, gpu)


def enough_warps(c: Config, gpu: Limits) -> bool:
    return c.threads * c.blocks >= 32 * FEWEST_WARPS


def little_from_l2(c: Config, gpu: Limits) -> bool:
    """A step of depth takes bm * bn / 128 cycles and brings 4 (bm + bn) bytes:
    in a cycle no more than the L2 cache has for an SM."""
    return 4 * (c.bm + c.bn) <= L2_BYTES * c.bm * c.bn / 128


# --8<-- [end:rules]


def register_budget(c: Config, gpu: Limits) -> int:
    """The most registers that the compiler may give a thread so that `blocks` blocks fit."""
    return min(255, gpu.registers_per_sm // (c.blocks * c.threads) // 8 * 8)


def each(rule: Callable[[Config, Limits], bool]) -> Callable[..., list[Config]]:
    return lambda configs, gpu: [
        config for config in configs if rule(config, gpu)
    ]


RULES = {  # in order; each takes and gives a list
    "whole warps": each(whole_warps),
    "whole copies": each(whole_copies),
    "threads": each(fits_threads),
    "shared memory": each(fits_shared),
    "registers": each(fits_registers),
    "8 warps per SM": each(enough_warps),
    "bytes from L2": each(little_from_l2),
}


def prune(gpu: Limits) -> tuple[list[tuple[str, int]], list[Config]]:
    """How many candidates are left after each rule, 'all' first; and those that are left in the end."""
    left = list(everything())
    steps = [("all", len(left))]
    for name, rule in RULES.items():
        left = rule(left, gpu)
        steps.append((name, len(left)))
    return steps, left


@dataclass(frozen=True)
class Candidate:
    """A configuration, and how many blocks share each of the tiles that do not fill the GPU once more."""

    config: Config
    splits: int = 1
    untuned: bool = False  # then it is `sgemm` itself that chooses

    @property
    def label(self) -> str:
        shared_by = f", rest by {self.splits}" if self.splits > 1 else ""
        return label(self.config) + shared_by

    @property
    def numbers(self) -> dict[str, int]:
        return {**numbers(self.config), "splits": self.splits}


class Space:
    """What `cudatut.tuning` has to know of products: candidates, how one is compiled, launched and checked."""

    name = "gemm"
    requires = "sm_80"
    source = "gemm/ladder/final.cu"
    files = (
        "gemm/ladder/final.cu",
        "gemm/kernels/sgemm.py",
        "gemm/ladder/autotuning_space.py",
    )
    sizes = ({"m": 4096, "n": 4096, "k": 4096},)
    axes = ("m", "n", "k")

    def prune(
        self, gpu: Any, size: dict[str, int]
    ) -> tuple[list[tuple[str, int]], list[Candidate]]:
        """Steps as of `prune`, and the candidates for a product of this size on a GPU (`ct.device()`)."""
        limits = Limits.of(gpu)
        steps, configs = prune(limits)
        found = [
            Candidate(config, splits)
            for config in configs
            for splits in splits_of(config, limits, **size)
        ]
        return [*steps, ("with shared tiles", len(found))] if len(found) > len(
            configs
        ) else steps, found

    def instance(self, candidate: Candidate) -> tuple[str, str]:
        """Source file and kernel name, to be compiled ahead."""
        return self.source, candidate.config.name(4, False, False)

    def problem(self, size: dict[str, int]) -> Any:
        """Random matrices of this size."""
        return GEMM.Gemm(**size)

    def trials(self) -> list[Any]:
        """Small products of every kind, on which a candidate has to be right: extents that no tile divides, scalars."""
        return [
            GEMM.Gemm(129, 260, 132, integers=True),
            GEMM.Gemm(
                *ct.size((257, 260), (130, 132)), 100, 0.5, -3.0, integers=True
            ),
        ]

    def launcher(
        self, problem: Any, candidate: Candidate
    ) -> Callable[[], None]:
        """A callable that multiplies once; `.kernel`, `.block` and `.shared` say what it launches."""
        p, how = problem, {}
        if not candidate.untuned:
            how = {"config": candidate.config, "splits": candidate.splits}
            if candidate.splits > 1:
                how["whole"] = whole_tiles(
                    candidate.config, ct.device().sm_count, p.m, p.n
                )[1]
        run = SGEMM.prepare(p.a, p.b, p.c, p.alpha, p.beta, **how)
        run.block = run.config.threads
        return run

    def default(self, problem: Any, gpu: Any) -> Candidate:
        """What `sgemm` chooses untuned, by its cost model."""
        plan = SGEMM.plan(problem.m, problem.n, problem.k, gpu.sm_count)
        return Candidate(plan.config, plan.splits, untuned=True)

    def check(self, problem: Any, candidate: Candidate) -> None:
        """Multiply once and compare with the reference. Raises CheckError."""
        if problem.beta:
            problem.c.set(problem.host_c)
        else:
            ct.poison(problem.c)
        self.launcher(problem, candidate)()
        problem.compare(
            f"{candidate.label}, {problem.m} x {problem.n} x {problem.k}"
        )


def whole_tiles(config: Config, sms: int, m: int, n: int) -> tuple[int, int]:
    """All tiles of C; and those of them that fill the GPU once or several times."""
    tiles, slots = -(-m // config.bm) * -(-n // config.bn), sms * config.blocks
    return tiles, tiles - tiles % slots


def splits_of(config: Config, gpu: Limits, m: int, n: int, k: int) -> list[int]:
    """1; and where the last tiles do not fill the GPU, as many blocks for each as do, with four steps of depth each."""
    tiles, whole = whole_tiles(config, gpu.sms, m, n)
    if tiles == whole:
        return [1]
    fill = min(
        gpu.sms * config.blocks // (tiles - whole),
        k // (4 * config.bk),
        MOST_SPLITS,
    )
    return [1, fill] if fill > 1 else [1]


SPACE = Space()
