"""Ladders: kernels that solve one problem, each a step from the one before, checked and timed together.

A part that climbs has a folder `ladder` among its examples, with its rungs and a `ladder.py`, which says how any of them is
launched, checked and compared. A rung is a `.cu` file; what its launch needs to know stands in the file itself:

    // @rung 30 kernel=reduce_sequential block=256 blocks=64,128,256,512,1024 per_thread=1

The number is its place in the order of its folder; a file without one is on no ladder, such as a variant or a reader's own
(`python -m cudatut try`), and is launched like the rest. So a new rung is one file, and no list changes that recordings
depend on.
Of a template the line names the instance to launch, without blanks: `kernel=gemm<128,256,16>`.

A chapter can have a ladder of its own: a `ladder.py` in its folder, whose name is the ladder's. Where files of a chapter
hold several kernels, that module lists the rungs, and no file has a line.
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

    def pair(self, option: str) -> tuple[int, int]:
        """An option as two integers, `64x32`. Raises RungError if it is missing or something else."""
        text = self.options.get(option, "")
        if not (found := re.fullmatch(r"([1-9]\d*)x([1-9]\d*)", text)):
            raise RungError(_say("pair", path=self.path, option=option, text=text))
        return int(found[1]), int(found[2])

    def choice(self, option: str, *choices: str) -> str:
        """An option that is one of these words; empty if it is missing. Raises RungError for another one."""
        text = self.options.get(option, "")
        if text and text not in choices:
            known = ", ".join(choices)
            raise RungError(_say("choice", path=self.path, option=option, text=text, known=known))
        return text

    def takes_rows_at(self, align: int, apart: int) -> str | None:
        """Why this kernel, whose rows have to begin at multiples of `align` bytes, does not take rows so many bytes apart.

        Raises RungError for no multiples at all.
        """
        if align < 1:
            raise RungError(_say("number", path=self.path, option="align", text=align))
        return _say("rows at", name=self.name, align=align, apart=apart) if apart % align else None

    def takes_tiles_of(self, multiple: int, tile: int) -> str | None:
        """Why a block of this kernel cannot have a tile of so many elements, which has to be a multiple; None where it can."""
        if tile > 0 and tile % multiple == 0:
            return None
        return _say("tiles of", path=self.path, multiple=multiple, tile=tile)

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

    part: folder of the examples ('reduction'). folder: the one in it where the ladder lies: `ladder`, or a chapter's. The
    `.cu` files with a place there are the rungs, or the given `rungs`, in their order.
    problem: makes an instance from keyword arguments. It has `bytes` and `flops` for `ct.bench`, one of them None;
    `launcher(rung)`, which gives a callable that solves it once; `check(rung)`, which solves it and compares with the
    reference; and `vendors()`, the vendor's solutions by name.
    name: what `python -m cudatut try` calls it; default the part, or the chapter's folder. trials: instances that every
    kernel must solve.
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
    folder: str = "ladder"
    rungs: Sequence[Rung] = ()

    def __post_init__(self):
        self.name = self.name or (self.part if self.folder == "ladder" else self.folder)

    @property
    def where(self) -> Path:
        """The folder of its files, which a reader's kernel may include."""
        return paths.examples_dir() / self.part / self.folder

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The rungs' names in their order. Raises RungError for two at one place."""
        if self.rungs:
            return tuple(rung.name for rung in self.rungs)
        places: dict[int, str] = {}
        # Looked at, not noted as read: a recording depends on the rungs that it used, not on those that there are.
        for file in sorted(self.where.glob("*.cu")):
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
            raise RungError(_say("no rung", ladder=self.name, name=name, names=names))
        if self.rungs:
            return self.rungs[self.names.index(name)]
        file = self.where / f"{name}.cu"
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
    files = sorted(paths.examples_dir().glob("*/*/ladder.py"))
    # No more are loaded than need be: recordings note what their run has read.
    chapters = {file.parent.name: file for file in files if file.parent.name != "ladder"}
    if name in chapters:
        return _ladder_in(chapters[name])
    of_parts = [_ladder_in(file) for file in files if file.parent.name == "ladder"]
    for ladder in of_parts:
        if name in (ladder.name, ladder.part):
            return ladder
    known = ", ".join(sorted([*(ladder.name for ladder in of_parts), *chapters])) or _say("none")
    raise RungError(_say("no ladder", name=name, known=known))


def _ladder_in(file: Path) -> Ladder:
    part, folder = file.parts[-3:-1]
    return importlib.import_module(f"cudatut.book.{part}.{folder}.ladder").LADDER
