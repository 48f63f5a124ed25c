"""The rules for pages together: what reading the pages, the exercises and the examples of a chapter finds to be mended.

`python -m cudatut.site lint`, the preview and `python -m cudatut check` ask here, and the tests hold the whole book to it.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from cudatut import catalog, paths
from cudatut.catalog import ChapterFiles
from cudatut.errors import CudatutError
from cudatut.finding import Finding
from cudatut.rules import examples as rules_of_examples
from cudatut.rules import exercises as rules_of_exercises
from cudatut.rules.places import finding
from cudatut.site import (
    conditions,
    contents,
    exercise_fence,
    headings,
    lint,
    locale,
    overlaid,
    parity,
    terms,
    whole,
)
from cudatut.site.contents import Chapter

# What `new` leaves for the author to say, in both languages.
MARKS = ("(to write: ", "（待写：")
_CLOSING = str.maketrans("(（", ")）")


def of_book(docs: Path) -> list[Finding]:
    """Findings of all pages, of the chapters that are published, and of the words that the site shows besides."""
    found = lint.lint_files(lint.pages(docs), docs.parent) + lint.lint_words(docs.parent)
    for lang in locale.LANGUAGES:
        found += terms.findings(docs, lang) + terms.unintroduced(docs, lang)
    for chapter in contents.chapters(contents.load(docs / "contents.yml")):
        if chapter.written:
            found += of_pages(chapter, docs)
    return found


def of_chapter(name: str, docs: Path) -> list[Finding]:
    """Findings of one chapter, each file of it looked at; one in progress is judged as if it were published.

    Where a page is missing this is said, and what else has to be mended is told all the same. Raises CudatutError where
    the table of contents or the glossary cannot be read.
    """
    parts = contents.as_written(contents.load(docs / "contents.yml"), name)
    listed = list(contents.chapters(parts))
    chapter = next(one for one in listed if one.name == name)
    files, names = ChapterFiles(name), [one.name for one in listed]
    pages = [path for lang in locale.LANGUAGES if (path := files.page(lang)).is_file()]
    found = lint.lint_files(pages, docs.parent) + of_pages(chapter, docs)
    found += [one for one in lint.lint_words(docs.parent) if _concerns(one, files)]
    for lang in locale.LANGUAGES:
        found += terms.findings(docs, lang, parts, only=name)
        found += terms.unintroduced(docs, lang, parts, only=name)
    found += _of_code(files, names)
    found += overlaid.stale(files.folder)
    return found + left_to_write(
        [*pages, files.figures, files.labels, files.overlay, *files.code(names)]
    )


def of_pages(chapter: Chapter, docs: Path) -> list[Finding]:
    """Findings of a chapter's two pages, but for what the lint finds on any page."""
    found = parity.findings(chapter.page, docs) + conditions.findings(chapter.page, docs)
    for lang in locale.LANGUAGES:
        path, file = docs / lang / chapter.page, f"docs/{lang}/{chapter.page}"
        if path.is_file():
            markdown = path.read_text("utf-8", "replace")
            found += headings.findings(markdown, file, lang)
            found += whole.findings(markdown, file, lang, chapter)
            found += exercise_fence.findings(markdown, file, lang)
    return found


def _of_code(files: ChapterFiles, names: list[str]) -> list[Finding]:
    """Findings of a chapter's scripts, kernel files and exercises."""
    found: list[Finding] = []
    scripts = [path for path in files.code(names) if path.suffix == ".py"]
    if all(catalog.name_of(path).endswith(catalog.ENDINGS) for path in scripts):
        how = "write the chapter's example, as docs/en/contributing.md says under 'The example'"
        found.append(finding(files.script(), 0, f"this file is missing: {how}"))
    for path in files.code(names):
        if path.suffix != ".py":
            found += rules_of_examples.of_kernel_file(path)
        elif path != files.script(catalog.EXERCISES) and not _is_module(path, files):
            found += rules_of_examples.of_example(path)
    found += rules_of_exercises.of_chapter(files.name)
    with suppress(
        CudatutError, SyntaxError
    ):  # what it is made of cannot be read, which is told above
        found += rules_of_exercises.of_notebook(files.name)
    return found


def _is_module(path: Path, files: ChapterFiles) -> bool:
    """Whether a script beside the chapter's own has neither header nor cells: what examples share."""
    text = catalog.read_text(path)
    return path != files.script() and not text.startswith("# ---") and "\n# %%" not in f"\n{text}"


def _concerns(one: Finding, files: ChapterFiles) -> bool:
    own = (files.labels, files.overlay, files.script(catalog.EXERCISES), files.page("zh"))
    return one.file in map(paths.shown, own)


def left_to_write(files: list[Path]) -> list[Finding]:
    """What a new chapter's files still leave to the author."""
    found = []
    for path in filter(Path.is_file, files):
        for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1):
            for mark in MARKS:
                if mark in line:
                    what = line.partition(mark)[2]
                    what = what.rpartition(mark.translate(_CLOSING)[0])[0] or what
                    said = f"this is still to be written: {what.strip()}"
                    found.append(finding(path, number, said))
                    break
    return found
