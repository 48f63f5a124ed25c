"""Ladders: kernels that solve one problem, each a step from the one before, checked and timed together.

A part that climbs has a folder `ladder` among its examples, with its rungs and a `ladder.py`, which says how any of them is
launched, checked and compared. A rung is a `.cu` file; what its launch needs to know stands in the file itself:

    // @rung 30 kernel=reduce_sequential block=256 blocks=64,128,256,512,1024 per_thread=1

The number is its place in the order of its folder; a file without one is on no ladder, such as a variant or a reader's own
(`python -m cudatut try`), and is launched like the rest. So a new rung is one file, and no list changes that recordings
depend on.
Of a template the line names the instance to launch, without blanks: `kernel=gemm<128,256,16>`.
"""

import importlib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from cudatut import catalog, paths, words
from cudatut.errors import CudatutError
from cudatut.gpu.bench import bench
from cudatut.gpu.kernel import Kernel
from cudatut.results import Benchmark

_say = words.section("ladder")
_RUNG = re.compile(r"^[ \t]*//[ \t]*@rung[ \t]+(?:(\d+)[ \t]+)?(.*)$", re.MULTILINE)


class RungError(CudatutError):
    """A `.cu` file that cannot stand on a ladder: no `@rung` line, or one that lacks what the ladder needs."""


@dataclass(frozen=True)
class Rung:
    """One kernel of a ladder. `options` are the words of its `@rung` line beside `kernel`.

    With a line `// requires: sm_90`, the smallest compute capability that has what the kernel uses, `requires` is one more.
    beside: a folder whose headers the file may include as well as those that lie beside it.
    """

    name: str
    path: str
    kernel: str
    options: dict[str, str] = field(default_factory=dict)
    beside: str = ""

    def number(self, option: str, default: int | None = None) -> int:
        """An option as an integer. Raises RungError if it is missing (and has no default) or is no number."""
        text: Any = self.options.get(option, default)
        try:
            return int(text)
        except (TypeError, ValueError):
            raise RungError(_say("number", path=self.path, option=option, text=text)) from None

    def numbers(self, option: str) -> tuple[int, ...]:
        """An option as a list of integers, `a,b,c`; empty if it is missing. Raises RungError for what is no number."""
        text = self.options.get(option, "")
        try:
            return tuple(int(word) for word in text.split(",") if word)
        except ValueError:
            raise RungError(_say("numbers", path=self.path, option=option, text=text)) from None

    def compile(self, **defines: Any) -> Kernel:
        """The kernel, with macros defined. Raises as `Kernel` does."""
        more: dict[str, Any] = {"options": [f"-I{self.beside}"]} if self.beside else {}
        needs = self.options.get("requires", "")
        # Instructions of one generation: nvcc knows them by its full name only.
        if needs.endswith("a"):
            more["arch"] = needs
        return Kernel(self.path, self.kernel, defines=defines, **more)


def read_rung(path: str | Path) -> Rung:
    """The rung in a `.cu` file (a path, or relative to the examples). Raises RungError, FileNotFoundError."""
    source = paths.resolve_source(path)
    text = source.read_text(encoding="utf-8")
    line = _RUNG.search(text)
    if not line:
        raise RungError(_say("no rung line", path=path))
    options = {name: value for name, _, value in (word.partition("=") for word in line[2].split())}
    if "kernel" not in options:
        raise RungError(_say("no kernel", path=path))
    if requires := re.search(r"^// requires: (\w+)$", text, flags=re.MULTILINE):
        options["requires"] = requires[1]
    return Rung(source.stem, str(path), options.pop("kernel"), options)


@dataclass(eq=False)
class Ladder:
    """The rungs of one part, in order.

    part: folder of the examples ('reduction'); the `.cu` files with a place in its folder `ladder` are the rungs.
    problem: makes an instance from keyword arguments. It has `bytes` and `flops` for `ct.bench`, one of them None;
    `launcher(rung)`, which gives a callable that solves it once; `check(rung)`, which solves it and compares with the
    reference; and `vendors()`, the vendor's solutions by name.
    name: what `python -m cudatut try` calls it; default the part. trials: instances that every kernel must solve.
    more_trials: further ones for a reader's kernel. contest: the instance on which kernels are timed against each other.
    refuses: a rung and an instance's keyword arguments -> why this kernel does not claim it, or None.
    """

    part: str
    problem: Callable[..., Any]
    name: str = ""
    trials: Sequence[dict[str, Any]] = ()
    more_trials: Sequence[dict[str, Any]] = ()
    contest: dict[str, Any] = field(default_factory=dict)
    refuses: Callable[..., str | None] = lambda rung, **instance: None

    def __post_init__(self):
        self.name = self.name or self.part

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The rungs' names in their order. Raises RungError for two at one place."""
        places: dict[int, str] = {}
        # Looked at, not noted as read: a recording depends on the rungs that it used, not on those that there are.
        for file in sorted(folder_of(self.part).glob("*.cu")):
            line = _RUNG.search(file.read_text(encoding="utf-8"))
            if line and line[1]:
                other = places.setdefault(int(line[1]), file.stem)
                if other != file.stem:
                    raise RungError(
                        f"{catalog.shown(file.with_stem(other))} and {catalog.shown(file)} both stand at {line[1]} on the ladder"
                    )
        return tuple(places[place] for place in sorted(places))

    def __getitem__(self, name: str) -> Rung:
        if name not in self.names:
            names = ", ".join(self.names)
            raise RungError(_say("no rung", ladder=self.part, name=name, names=names))
        file = folder_of(self.part) / f"{name}.cu"
        return read_rung(catalog.relative(file, paths.examples_dir()))

    def upto(self, last: str) -> list[Rung]:
        """The rungs from the first up to and including `last`."""
        self[last]
        return [self[name] for name in self.names[: self.names.index(last) + 1]]

    def check(self, name: str, instances: Iterable[dict[str, Any]]) -> None:
        """Check one rung on instances of the problem, each given by its keyword arguments. Raises CheckError."""
        for arguments in instances:
            self.problem(**arguments).check(self[name])

    def bench(
        self,
        rungs: Iterable[Rung | str],
        name: str | None = None,
        rounds: int | None = None,
        **instance: Any,
    ) -> Benchmark:
        """Time rungs and the vendor's solutions on one instance, interleaved in this process."""
        problem = self.problem(**instance)
        steps = [self[rung] if isinstance(rung, str) else rung for rung in rungs]
        rows = {rung.name: problem.launcher(rung) for rung in steps}
        return bench(
            {**rows, **problem.vendors()},
            bytes=problem.bytes,
            flops=problem.flops,
            name=name,
            rounds=rounds,
        )


def load_ladder(name: str) -> Ladder:
    """The ladder of this name, or of the part of this name, from its `ladder.py`. Raises RungError if there is none."""
    files = sorted(paths.examples_dir().glob("*/ladder/ladder.py"))
    parts = (file.parts[-3] for file in files)
    found = (importlib.import_module(f"cudatut.book.{part}.ladder.ladder") for part in parts)
    ladders = {ladder.name: ladder for ladder in (module.LADDER for module in found)}
    for ladder in ladders.values():
        if name in (ladder.name, ladder.part):
            return ladder
    known = ", ".join(sorted(ladders)) or _say("none")
    raise RungError(_say("no ladder", name=name, known=known))


def folder_of(part: str) -> Path:
    """Where the rungs of a part lie."""
    return paths.examples_dir() / part / "ladder"
