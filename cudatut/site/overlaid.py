"""Code and narration of examples in the page's language: in Chinese with the words of the overlays (see `cudatut.overlays`).

What an overlay lacks stays English on the page and fails a strict build. `python -m cudatut.site.overlaid [folder ...]`
prints what is lacking as pairs to fill in, and what no file below its folder says any more.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from cudatut import catalog, comments, exercises, overlays, paths
from cudatut.errors import CudatutError
from cudatut.finding import Finding
from cudatut.site import state

_SNIPPET = re.compile(r'--8<-- "(?P<file>[^":]+)(?::(?P<section>[\w-]+))?"')
_SECTION = re.compile(r"--8<--\s*\[\s*(?P<type>start|end)\s*:\s*(?P<name>[\w-]+)")
_CODE = (".py", ".cu", ".cuh", ".cpp", ".hpp", "Makefile")  # how their names end
# Of the cell in front of every notebook (`catalog.Example.first_cell`).
_FIRST_CELL = {"such as in Colab: this compiles PyCUDA, which takes minutes"}


def code(source: str, file: str) -> str:
    """Code of `file`, a path below examples/, with the comments of the page's language."""
    return _shown(overlays.code, source, file)


def words(text: str, file: str) -> str:
    """Narration of `file` in the page's language."""
    return _shown(overlays.words, text, file)


def title(name: str, file: str) -> str:
    """The title of a cell of `file` in the page's language."""
    return _shown(overlays.title, name, file)


def _shown(translated: Callable[..., str], text: str, file: str) -> str:
    build = state.current()
    if build.lang == "en":
        return text
    try:
        found, lacking = _chinese(translated, text, file)
    except CudatutError as error:
        build.report(error)
        return text
    for overlay, english in lacking:
        build.report(f"{overlay} lacks the Chinese of '{english}' ({file})")
    return found


@cache  # chapters and pages of examples show the same
def _chinese(
    translated: Callable[..., str], text: str, file: str
) -> tuple[str, list[tuple[str, str]]]:
    lacking: list[tuple[str, str]] = []
    found = translated(text, file, lambda overlay, english: lacking.append((overlay, english)))
    return found, lacking


def forget() -> None:
    """A build that is repeated sees what has changed."""
    overlays.load.cache_clear()
    _chinese.cache_clear()


# --- all of it, without a build ------------------------------------------------------------------


def shown(docs: Path) -> Iterator[tuple[str, Callable[..., str], str]]:
    """(file, function of `overlays`, text) of all that pages show: cells and titles of examples, exercises, snippets."""
    root = paths.examples_dir()
    for example in catalog.examples(drafts=True):
        for title, kind, source in catalog.cells_of(catalog.read_text(example.path)):
            yield example.file, overlays.code if kind == "code" else overlays.words, source
            if kind == "code":
                yield example.file, overlays.title, title
    for chapter in exercises.chapters():
        path = catalog.ChapterFiles(chapter).script(catalog.EXERCISES)
        for source in catalog.cells(path).values():
            yield catalog.relative(path, root), overlays.code, source
    for page in sorted(docs.rglob("*.md")):
        for match in _SNIPPET.finditer(page.read_text(encoding="utf-8")):
            if (root / match["file"]).is_file():
                yield match["file"], overlays.code, _section(root / match["file"], match["section"])


def _section(path: Path, name: str | None) -> str:
    """The lines of a region, or of a whole file, without the marks of regions."""
    inside, lines = name is None, []
    for line in path.read_text(encoding="utf-8").split("\n"):
        mark = _SECTION.search(line)
        if mark and mark["name"] == name:
            inside = mark["type"] == "start"
        elif inside and not mark:
            lines.append(line)
    return "\n".join(lines)


def lacking(docs: Path) -> dict[str, dict[str, str]]:
    """By overlay file: what it lacks, and where that is shown. Raises BadOverlayError."""
    found: dict[str, dict[str, str]] = {}
    for file, translated, text in shown(docs):
        for overlay, english in _chinese(translated, text, file)[1]:
            found.setdefault(overlay, {}).setdefault(english, file)
    return found


def stale(folder: Path | None = None) -> list[Finding]:
    """Pairs whose English no file below their folder says; folder: whose overlays, or all."""
    found = []
    for path in sorted((folder or paths.examples_dir()).rglob(overlays.FILE)):
        said = set()
        for file in path.parent.rglob("*"):
            if file.name.endswith(_CODE) and file.is_file():
                said |= _texts(file)
        for english, pair in overlays.load(path).items():
            if english not in said:
                what = f"'{english[:80]}' stands in no file below this folder: take the pair out, or say it as the code does"
                found.append(Finding(paths.shown(path), pair.line, what))
    return found


@cache
def _texts(file: Path) -> set[str]:
    """All texts of a file for which there may be a pair."""
    text = catalog.read_text(file)
    if cells := list(catalog.cells_of(text)) if file.suffix == ".py" else []:
        said = set(_FIRST_CELL)
        for title, kind, source in cells:
            if kind == "markdown":
                said.add(overlays.folded(source))
            else:
                said |= {overlays.said_by_title(title)[0], *_comments(source, "python")}
        return said
    language = "python" if file.name.endswith((".py", "Makefile")) else "cuda"
    said = _comments(text, language)
    for name in {mark["name"] for mark in _SECTION.finditer(text)}:  # may begin inside a comment
        said |= _comments(_section(file, name), language)
    return said


def _comments(code: str, language: str) -> set[str]:
    return {overlays.folded(one.text) for one in comments.comments(code, language)}


def main(folders: list[str]) -> int:
    """Print what overlays (below `folders`, relative to examples/) lack, as pairs to fill in, and what is stale; 1 if anything."""
    docs, wanted = paths.docs_dir() / "zh", tuple(f"examples/{one}" for one in folders) or ("",)
    found = {
        overlay: texts for overlay, texts in lacking(docs).items() if overlay.startswith(wanted)
    }
    for overlay, texts in sorted(found.items()):
        print(f"\n# {overlay}")
        for english, file in texts.items():
            print(f"- en: {_block(english)}\n  zh:   # {file}")
    old = [finding for finding in stale() if finding.file.startswith(wanted)]
    for finding in old:
        print(finding)
    return 1 if found or old else 0


def _block(text: str) -> str:
    """A text as YAML has it: plain where that is safe, else a block."""
    plain = re.fullmatch(r"[A-Za-z][^:#\n]*[^:#\s]", text) and ": " not in text
    if plain and len(text) < 200 and text.lower() not in ("yes", "no", "true", "false", "null", "on", "off"):  # fmt: skip
        return text
    return "|-\n    " + text.replace("\n", "\n    ")


if __name__ == "__main__":
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8")
    sys.exit(main(sys.argv[1:]))
