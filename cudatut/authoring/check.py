"""`python -m cudatut check PART/NAME`: the one judge of a chapter.

All that reading tells (`cudatut.site.judge`), formatting, what nvcc says of the kernels, and what a build of its pages finds:
budgets, figures, references and labels. A chapter in progress is judged as if it were published, but for recordings that it
does not have yet.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from cudatut import catalog, exercises, paths, recording
from cudatut.catalog import ChapterFiles
from cudatut.errors import CudatutError, ToolMissing
from cudatut.rules import formatting, kernels
from cudatut.site import contents, judge, locale
from cudatut.site.building import BuildError, build

Say = Callable[[str], None]


@dataclass
class Verdict:
    """findings: what has to be mended, each with its place and the cure. notes: what could not be looked at, and why."""

    findings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def check(
    name: str, say: Say = lambda line: None, compiler: kernels.Compile | None = None
) -> Verdict:
    """Judge a chapter of the checkout. say: told what is being looked at, where that takes seconds.

    compiler: another one than this machine's nvcc.

    Raises CudatutError where there is no such chapter, or what all chapters share cannot be read.
    """
    root, docs = checkout(), paths.docs_dir()
    names = [one.name for one in contents.chapters(contents.load(docs / "contents.yml"))]
    files, verdict = ChapterFiles(name), Verdict()
    verdict.findings += map(str, sorted(set(judge.of_chapter(name, docs))))
    rules = (
        lambda: _formatting(files, names, root),
        lambda: _kernels(files, names, compiler or kernels.Nvcc.found(), say),
        lambda: _build(files, root, say),
    )
    for rule in rules:
        try:
            verdict.findings += rule()
        except ToolMissing as error:
            verdict.notes.append(f"not looked at: {error}")
    verdict.notes += _recordings(files, names)
    verdict.findings = list(dict.fromkeys(verdict.findings))
    return verdict


def checkout() -> Path:
    """The folder that holds examples and pages. Raises CudatutError in an installed package, which has no pages."""
    if not (paths.docs_dir() / "contents.yml").is_file():
        raise CudatutError(
            f"there are no pages at {paths.docs_dir()}: chapters are written in a checkout of {paths.repository()}"
        )
    return paths.docs_dir().parent


def _formatting(files: ChapterFiles, names: list[str], root: Path) -> list[str]:
    written = [*files.code(names), *filter(Path.is_file, [files.figures])]
    python = [path for path in written if path.suffix == ".py"]
    cuda = [path for path in written if path.suffix != ".py"]
    found = [*formatting.of_python(python, root), *formatting.of_cuda(cuda, root)]
    return list(map(str, found))


def _kernels(
    files: ChapterFiles, names: list[str], compiler: kernels.Compile, say: Say
) -> list[str]:
    stubs: list[exercises.Exercise] = []
    with suppress(CudatutError):  # told by the rules of exercises
        stubs = exercises.of_chapter(files.name)
    return list(map(str, kernels.of_files(files.code(names), stubs, compiler, say)))


def _build(files: ChapterFiles, root: Path, say: Say) -> list[str]:
    """What a build of the chapter's pages finds; without them there is none, which the judge has told."""
    if not all(files.page(lang).is_file() for lang in locale.LANGUAGES):
        return []
    say("building the pages")
    with tempfile.TemporaryDirectory(prefix="cudatut-check-") as folder:
        out = Path(folder) / "site"
        try:
            return build(root, out, "preview", [files.name], say=lambda line: None)
        except BuildError as error:
            return [str(error)]


def _recordings(files: ChapterFiles, names: list[str]) -> Iterator[str]:
    """Examples whose outputs the pages cannot show: a GPU is needed, so it is told and no fault."""
    scripts = [path for path in files.code(names) if path.suffix == ".py"]
    for path in scripts:
        with suppress(CudatutError):  # a module, or a header that the judge has told of
            example = catalog.get(catalog.shown(path))
            try:
                recording.require_good(example.name)
            except CudatutError as error:
                yield f"without outputs: {error}"
