"""Radix sorts on the GPU: in three launches for each digit, in one sweep for
each digit, and, of few keys, in one block.

    sort = fastest(n, "float32", pairs=True)
    sort(keys, out, values, values_out)  # keys and values stay as they are

Keys are int32, uint32, float32, int64, uint64 or float64; values 32 bits. The
order is that of numpy.sort(kind="stable"): equal keys keep their order, NaN
come last, and -0.0 equals 0.0.
"""

import functools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import cudatut as ct
from cudatut.book.primitives import macros

KINDS = {"u": 0, "i": 1, "f": 2}
TYPES = tuple(
    f"{kind}{bits}" for kind in ("uint", "int", "float") for bits in (32, 64)
)
DIGITS = 256
WORDS = {0: DIGITS, 1: DIGITS // 2 * 32, 2: DIGITS * 32}  # by COLUMNS
MOST = (1 << 38) - 1  # keys: their states would not fit anywhere
THREADS_ALONE = 256  # of a block that sorts all keys
WIDE_FROM = 1 << 30  # keys that need counters of 64 bits


@functools.cache
def kernel(file: str, name: str, defines: tuple) -> ct.Kernel:
    return ct.Kernel(f"primitives/sort/{file}.cu", name, dict(defines))


def compile_ahead(sorts: Iterable[Any]) -> None:
    """Compiles the kernels of these sorts side by side."""
    macros.compile_ahead(
        (f"primitives/sort/{file}.cu", name, defines)
        for sort in sorts
        for file, name, defines in sort.kernels()
    )


@dataclass
class _Sort:
    """What all sorts here have: a type, a plan, and the arrays of their own,
    made for a number of keys at the first call with it.

    One object sorts on one stream at a time.
    """

    dtype: str = "uint32"
    pairs: bool = False
    plan: dict = field(default_factory=dict)  # macros of the kernels

    def __post_init__(self):
        if self.dtype not in TYPES:
            raise TypeError(f"sort: keys of {self.dtype}: {', '.join(TYPES)}")
        self.key = np.dtype(self.dtype)
        self.passes = self.key.itemsize
        self._n = -1

    @property
    def defines(self) -> dict:
        own: dict[str, int] = {
            "KEY_BITS": 8 * self.passes,
            "KIND": KINDS[self.key.kind],
        }
        wide = {"WIDE": 1} if self._n >= WIDE_FROM else {}
        pairs = {"PAIRS": 1} if self.pairs else {}
        return {**self.defaults(), **own, **pairs, **wide, **self.plan}

    def defaults(self) -> dict:
        """Threads of a block and keys of a thread: as the registers allow."""
        if self.passes == 8:
            return {"THREADS": 384, "ITEMS": 14}
        return {"THREADS": 256, "ITEMS": 24 if self.pairs else 32}

    @property
    def together(self) -> bool:
        """Whether values have shared memory of their own, beside the keys."""
        return self.pairs

    @property
    def threads(self) -> int:
        return self.defines["THREADS"]

    @property
    def tile(self) -> int:
        return self.threads * self.defines["ITEMS"]

    def compiled(self, file: str, name: str, **more: Any) -> ct.Kernel:
        return kernel(file, name, tuple(self.with_defines(**more).items()))

    def with_defines(self, **more: Any) -> dict:
        return dict(sorted({**self.defines, **more}.items()))

    @property
    def _count(self) -> str:
        return "uint64" if self.defines.get("WIDE") else "uint32"

    @property
    def n(self) -> np.integer:
        """As the kernels take it."""
        return np.dtype(self._count).type(self._n)

    def shared(self, staged: bool = True, match: int | None = None) -> int:
        """Bytes of shared memory of a block that moves a tile."""
        if match is None:
            match = self.defines.get("MATCH", 0)
        tile = self.tile if staged else 0
        size = self.key.itemsize + (4 if self.together else 0)
        count = np.dtype(self._count).itemsize
        lists = 1 if match == 3 else self.threads // 32
        return tile * size + DIGITS * count + 4 * DIGITS * lists

    def take(self, keys, out, values, values_out) -> int:
        """The number of keys. Raises TypeError, ValueError."""
        take = ct.operands("sort")
        n = take.read("keys", keys, self.dtype, (None,), most=MOST).shape[0]
        take.write("out", out, self.dtype, (n,), most=MOST)
        if (values is not None) != self.pairs or (
            values_out is not None
        ) != self.pairs:
            raise TypeError(
                "sort: values and values_out go with pairs=True, and only so"
            )
        if self.pairs:
            for name, array in (("values", values), ("values_out", values_out)):
                size = np.dtype(array.__cuda_array_interface__["typestr"])
                if size.itemsize != 4:
                    raise TypeError(f"sort: {name} of {size}, not of 32 bits")
            take.read("values", values, None, (n,), most=MOST)
            take.write("values_out", values_out, None, (n,), most=MOST)
        if n != self._n:
            self._n = n
            self.tiles = ct.cdiv(n, self.tile)
            if self.tiles >= 1 << 31:
                raise ValueError(f"sort: {n} keys are too many")
            self.allocate(n)
        return n

    def allocate(self, n: int) -> None:
        self.other = ct.empty(n, self.dtype)
        self.other_values = ct.empty(n if self.pairs else 1, "uint32")
        self.no_values = ct.empty(1, "uint32")

    def steps(self, keys, out, values, values_out):
        """From where to where each pass moves the keys and values; the last
        one ends in `out`."""
        if not self.pairs:
            values = values_out = self.no_values
        here = keys, values
        for step in range(self.passes):
            last = (self.passes - step) % 2 == 1
            there = (
                (out, values_out) if last else (self.other, self.other_values)
            )
            yield step, *here, *there
            here = there


def _zeros(n: int, dtype: str) -> Any:
    return ct.to_device(np.zeros(n, dtype))


class Passes(_Sort):
    """Three launches for each digit: count, scan, scatter. staged: keys are put
    in order in shared memory before they go.
    """

    staged = True

    def defaults(self) -> dict:
        """Tiles of 64-bit keys with values take 67 KB: fewer of these where a
        block has no more than 64 KB, as on sm_75."""
        own = super().defaults()
        if self.pairs and self.passes == 8:
            room = ct.device().shared_per_block_optin
            own["ITEMS"] = 12 if room > 68 << 10 else 10
        return own

    def allocate(self, n: int) -> None:
        super().allocate(n)
        self.counts = ct.empty(max(1, DIGITS * self.tiles), self._count)
        self.totals = _zeros(DIGITS, self._count)

    def kernels(self):
        defines = self.with_defines(STAGED=int(self.staged))
        for name in ("count_tiles", "scan_tiles", "scatter"):
            yield "counting", name, defines

    def one_digit(self, step, keys, values, keys_out, values_out, stream=None):
        """Moves n keys into the order of one digit, equal digits as before."""
        threads, own = self.threads, {"STAGED": int(self.staged)}
        count = self.compiled("counting", "count_tiles", **own)
        scan = self.compiled("counting", "scan_tiles", **own)
        scatter = self.compiled("counting", "scatter", **own)
        launch = {"grid": self.tiles, "block": threads, "stream": stream}
        count(keys, self.n, 8 * step, self.counts, self.totals, **launch)
        scan(
            self.counts, self.totals, self.tiles,
            grid=DIGITS, block=DIGITS, stream=stream,
        )  # fmt: skip
        scatter(
            keys, keys_out, values, values_out, self.n, 8 * step, self.counts,
            self.totals, shared=self.shared(self.staged), **launch,
        )  # fmt: skip

    def __call__(self, keys, out, values=None, values_out=None, stream=None):
        """out = the keys in order. Raises TypeError, ValueError."""
        if self.take(keys, out, values, values_out) == 0:
            return
        for step, *arrays in self.steps(keys, out, values, values_out):
            self.one_digit(step, *arrays, stream=stream)


class Direct(Passes):
    """As Passes, but each thread writes its keys to where they go."""

    staged = False


class Sweep(_Sort):
    """One launch counts all digits, and then each digit takes one sweep.

    A sweep that is interrupted leaves counters behind: make a new object then.
    """

    count_threads = 1024

    def defaults(self) -> dict:
        if not self.pairs:
            return super().defaults()
        return {"THREADS": 384, "ITEMS": 16 if self.passes == 8 else 24}

    @property
    def together(self) -> bool:
        return self.pairs and bool(self.plan.get("TOGETHER"))

    def allocate(self, n: int) -> None:
        super().allocate(n)
        states = max(1, DIGITS * self.tiles)
        self.states = [_zeros(states, self._count) for _ in range(2)]
        self.tickets = [_zeros(1, "uint32") for _ in range(2)]
        self.counts = _zeros(DIGITS * self.passes, self._count)
        self.places = ct.empty((self.passes, DIGITS), self._count)

    def any_order(self, step: int) -> bool:
        """Whether equal digits may come in any order: in the first pass of
        whole numbers without values, where equal keys cannot be told apart."""
        first = self.plan.get("FIRST_ANY", 1) and step == 0
        return bool(first) and not self.pairs and self.key.kind != "f"

    def kernels(self):
        counted = self.with_defines(COLUMNS=self.columns())
        yield "onesweep", "count_digits", counted
        yield "onesweep", "first_places", self.with_defines()
        for step in (0, 1):
            yield "onesweep", "sweep", self.with_defines(**self.match_of(step))

    def match_of(self, step: int) -> dict:
        match = 3 if self.any_order(step) else self.defines.get("MATCH", 0)
        return {"MATCH": match} if match else {}

    def sweep_of(self, step: int) -> tuple[ct.Kernel, int]:
        more = self.match_of(step)
        shared = self.shared(match=more.get("MATCH", 0))
        return self.compiled("onesweep", "sweep", **more), shared

    def columns(self) -> int:
        """How lanes count: in words of their own (2), in halves of such words
        (1), or all in one list (0), as shared memory allows."""
        most = ct.device().shared_per_block_optin
        fits = [c for c in (2, 1) if 4 * WORDS[c] * self.passes <= most]
        return self.plan.get("COLUMNS", [*fits, 0][0])

    def count_plan(self) -> tuple[ct.Kernel, int, int]:
        """The kernel that counts, its blocks, and bytes of shared memory."""
        columns = self.columns()
        shared = 4 * WORDS[columns] * self.passes
        counting = self.compiled("onesweep", "count_digits", COLUMNS=columns)
        threads = self.defines.get("COUNT_THREADS", self.count_threads)
        each = threads * 64 // self.key.itemsize
        resident = counting.resources(threads, shared).blocks_per_sm
        blocks = min(resident * ct.device().sm_count, ct.cdiv(self._n, each))
        return counting, blocks, shared

    def count(self, keys: Any, stream: Any = None) -> None:
        """places[pass][digit] = how many keys have a digit before this one."""
        counting, blocks, shared = self.count_plan()
        threads = self.defines.get("COUNT_THREADS", self.count_threads)
        counting(
            keys, self.n, self.counts,
            grid=blocks, block=threads, shared=shared, stream=stream,
        )  # fmt: skip
        self.compiled("onesweep", "first_places")(
            self.counts, self.places,
            grid=self.passes, block=self.threads, stream=stream,
        )  # fmt: skip

    def one_digit(self, step, keys, values, keys_out, values_out, stream=None):
        sweep, shared = self.sweep_of(step)
        now, then = step % 2, 1 - step % 2
        sweep(
            keys, keys_out, values, values_out, self.n, 8 * step,
            self.places[step], self.states[now], self.states[then],
            self.tickets[now], self.tickets[then],
            grid=self.tiles, block=self.threads, shared=shared, stream=stream,
        )  # fmt: skip

    def __call__(self, keys, out, values=None, values_out=None, stream=None):
        """out = the keys in order. Raises TypeError, ValueError."""
        if self.take(keys, out, values, values_out) == 0:
            return
        self.count(keys, stream)
        for step, *arrays in self.steps(keys, out, values, values_out):
            self.one_digit(step, *arrays, stream=stream)


class OneTile(_Sort):
    """One block sorts up to `most` keys in one launch."""

    def defaults(self) -> dict:
        items = self.items()
        fits = [i for i in items if THREADS_ALONE * i >= self._n]
        own = {"THREADS": THREADS_ALONE, "MIN_BLOCKS": 1}
        return {**own, "ITEMS": min(fits, default=items[-1])}

    def items(self) -> tuple[int, ...]:
        """Keys of a thread, from few to many, as registers and shared memory
        allow."""
        size = self.key.itemsize + (4 if self.pairs else 0)
        room = ct.device().shared_per_block_optin - 9 * 1024  # counters
        each = (4, 16) if self.passes == 8 else (4, 16, 32)
        return tuple(i for i in each if THREADS_ALONE * i * size <= room)

    @property
    def most(self) -> int:
        return THREADS_ALONE * self.items()[-1]

    def allocate(self, n: int) -> None:
        """Nothing: no array lies between the passes."""

    def shared(self, staged: bool = True, match: int | None = None) -> int:
        """As of a block that moves a tile, without the 256 places of digits."""
        places = DIGITS * np.dtype(self._count).itemsize
        return super().shared(staged, match) - places

    def kernels(self):
        yield "one_tile", "sort_tile", self.with_defines()

    def __call__(self, keys, out, values=None, values_out=None, stream=None):
        """out = the keys in order. Raises TypeError, ValueError."""
        if self.take(keys, out, values, values_out) == 0:
            return
        if self._n > self.most:
            raise ValueError(
                f"sort: {self._n} keys: one block sorts {self.most}"
            )
        if not self.pairs:
            values = values_out = np.uint64(0)
        self.compiled("one_tile", "sort_tile")(
            keys, out, values, values_out, np.uint32(self._n),
            grid=1, block=self.threads, shared=self.shared(), stream=stream,
        )  # fmt: skip


def fastest(n: int, dtype: str = "uint32", pairs: bool = False) -> _Sort:
    """A sort for n keys: in one block where they fit, else in sweeps.

    That each is fast there was measured on the H200, of keys alone.
    """
    alone = OneTile(dtype, pairs)
    return alone if n <= alone.most else Sweep(dtype, pairs)
