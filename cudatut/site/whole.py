"""A chapter's page is whole: its title, a figure, an executed cell, exercises that can be begun; in `start` two warm-ups."""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml

from cudatut import catalog, exercises, paths
from cudatut.errors import CudatutError
from cudatut.finding import Finding
from cudatut.site import lint, parity, references
from cudatut.site.contents import Chapter

_FIGURE = 'python exec="on"'
_TRY = re.compile(r"^## [^\n]*\{ #try \}$(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
_TASK = re.compile(r"^(?:\d+\. |### |\*\*)", re.MULTILINE)
_FEWEST = 2  # exercises


def findings(markdown: str, file: str, lang: str, chapter: Chapter) -> list[Finding]:
    """What a chapter's page lacks, and where its titles say something else than the table of contents."""
    found = [Finding(file, line, said) for line, said in _titles(markdown, chapter.title[lang])]
    shown = [item for _, item in parity.directives(markdown) if len(item) == 2]
    how = f"draw one in docs/figures/{chapter.name}.py and print it in a fence ```{_FIGURE}"
    if not any(info.startswith(_FIGURE) for info, _ in shown):
        found.append(Finding(file, 0, f"there is no figure: {how}"))
    # Of the example of its name, or of one that goes on from it: a module `cutlass` would hide the package.
    own = re.compile(rf"{chapter.name}(_(?!solutions#|exercises#|claims#)\w+)?#")
    if not any(own.match(text) for info, text in shown if info.split(" ")[0] == "example"):
        script = paths.shown(catalog.ChapterFiles(chapter.name).script())
        said = f"no cell of {script} is shown: show one in a fence ```example"
        found.append(Finding(file, 0, said))
    found += [Finding(file, 0, said) for said in _exercises(markdown, chapter.name)]
    if chapter.part == "start":
        found += [Finding(file, line, said) for line, said in _warm_ups(markdown)]
    return found


def _titles(markdown: str, wanted: str) -> Iterator[tuple[int, str]]:
    """`title:` becomes <title> and what a preview of a link shows, the heading what the search shows."""
    of = f"the table of contents calls this chapter '{wanted}'"
    for number, line, kind, _ in references.scan(markdown):
        if kind == "front" and line.startswith("title:") and _value(line) != wanted:
            yield number, f"{of}, and the front matter '{_value(line)}': write the same"
            break
    heading = re.search(r"(?m)^# (.*?)[ \t]*\{", markdown)
    if not heading:
        yield 0, f"the page has no heading of its own: begin it with '# {wanted} {{ #top }}'"
    elif heading[1] != wanted:
        number = markdown[: heading.start()].count("\n") + 1
        yield number, f"{of}, and this heading '{heading[1]}': write the same"


def _value(line: str) -> str:
    try:
        return str(yaml.safe_load(line)["title"])
    except (yaml.YAMLError, TypeError, KeyError):
        return line.partition(":")[2].strip()


def _exercises(markdown: str, chapter: str) -> Iterator[str]:
    begun = [
        text
        for _, (info, *rest) in parity.directives(markdown)
        for text in rest
        if info == "exercise"
    ]
    if len(begun) < _FEWEST:
        count = len(begun)
        yield (
            f"a chapter has at least two exercises, and this page begins {count}: "
            f"add a fence ```exercise with the line '{chapter} {count + 1}'"
        )
    if begun != [f"{chapter} {number}" for number in range(1, len(begun) + 1)]:
        yield f"its exercises are {', '.join(begun)}: number them from '{chapter} 1' on, in order"
    ids = {name for _, _, name in lint.headings(markdown)}
    for number in range(1, len(begun) + 1):
        if f"exercise-{number}" not in ids:
            yield f"no heading has the id of exercise {number}: write '### ... {{ #exercise-{number} }}' above it"
    try:
        listed = [exercise.name for exercise in exercises.of_chapter(chapter)]
    except CudatutError:  # the rules of exercises say why
        return
    if missing := [name for name in listed if name not in begun]:
        yield f"it does not show {', '.join(missing)}: add a fence ```exercise for each"


def _warm_ups(markdown: str) -> Iterator[tuple[int, str]]:
    section = _TRY.search(markdown)
    if not section:
        yield 0, "there is no section with the id 'try': in `start` a page has two tasks to try"
        return
    line = markdown[: section.start()].count("\n") + 1
    tasks, answers = section[1].partition("???")[0], section[1].count('??? success "')
    if max(len(_TASK.findall(section[1])), answers) < 2:
        yield (
            line,
            f"in `start` there are two tasks to try, and here: {' '.join(tasks.split())[:80]}",
        )
    if not answers:
        yield line, 'no task to try has its answer: fold one below it, ??? success "..."'
