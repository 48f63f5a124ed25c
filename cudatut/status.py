"""`python -m cudatut status`: what is wrong with the recordings, and what is only to be known of them.

A problem stops a build or a landing. A note does not: what older recordings lack, what was skipped, and why.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any

from cudatut import (
    agreement,
    catalog,
    exercises,
    history,
    instrument,
    made_of,
    paths,
    provenance,
    recording,
    written,
)
from cudatut.catalog import Example
from cudatut.errors import CudatutError
from cudatut.history import History, NoHistory
from cudatut.recording import Recording, StaleRecordingError
from cudatut.restamp import verify
from cudatut.restamp.compiled import uncovered_sources


@dataclass
class Status:
    """What was found. own, others: how many recordings of the book's own and of other GPUs were looked at and are good.

    unfit: examples whose own recording may not be shown.
    """

    own: int = 0
    others: int = 0
    unfit: int = 0
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """What the command prints."""
        yield from self.problems
        if not self.problems:
            also = f" and {self.others} of other GPUs" if self.others else ""
            yield f"all {self.own} recordings{also} are whole, good and fresh"
        elif self.unfit:
            yield f"{self.unfit} recordings need a GPU: `python -m cudatut record --stale`"
        yield from (f"note: {note}" for note in self.notes)


def status(compiling: Callable[[str], None] | None = None) -> Status:
    """Look at everything. Raises BadHeaderError for an example that cannot be read.

    compiling: hears of each restamp whose kernels are compiled again; None: their machine code is not looked at.
    """
    found = Status()
    every = catalog.examples(drafts=True)
    patterns = catalog.draft_patterns()
    drafts = [one for one in every if catalog.matches(f"{one.name}.py", patterns)]
    past: History | None = None
    try:
        past = history.of(paths.examples_dir().parent)
    except NoHistory as error:
        found.notes.append(f"no commit that a recording names was looked up: {error}")
    recordings = list(_fit([one for one in every if one not in drafts], found))
    found.problems += [problem for one in recordings for problem in judge(one, past)]
    if past and compiling and not found.problems:
        found.problems += verify.compiled(recordings, past, compiling)
    found.problems += agreement.among(recordings)
    found.problems += instrument.problems()
    found.problems += _hidden(drafts)
    found.problems += _strangers(every)
    if drafts:
        left = f"{len(drafts)} examples in progress are left out"
        found.notes.append(f"{left}: see examples/drafts.txt")
    found.notes += _notes(recordings)
    return found


def _fit(examples: Iterable[Example], found: Status) -> Iterator[Recording]:
    """The recordings that may be shown, each by itself; of others the reason is among the problems."""
    for example in examples:
        try:
            own = recording.at_home(recording.require_good(example.name))
            found.own += 1
            yield own
        except CudatutError as error:
            found.unfit += 1
            found.problems.append(str(error))
        for other in recording.of_other_gpus(example.name):
            if isinstance(other, Recording):
                found.others += 1
                yield other
            elif isinstance(other, StaleRecordingError):  # no page shows it any more
                found.notes.append(str(other))
            else:
                found.problems.append(str(other))


# --- problems -----------------------------------------------------------------------------------------

# What is asked of a recording that is laid beside the history.
_OF_HISTORY: tuple[Callable[[Recording, History], Iterable[str]], ...] = (
    provenance.problems,
    verify.problems,
)


def judge(one: Recording, past: History | None) -> Iterator[str]:
    """What does not fit in a recording that may be shown, beside its code and, where there is any, the history.

    More than `recording.good` asks, which every build waits for.
    """
    shown = {cell.title: cell.results() for cell in one.cells}
    found = [*of_code(one, shown)]
    if past:
        found += [problem for ask in _OF_HISTORY for problem in ask(one, past)]
    yield from (f"{one.file}: {problem}" for problem in found)


def of_code(one: Recording, shown: dict[str, list[dict[str, Any]]]) -> Iterator[str]:
    """Where the results that each cell shows, and its sources, are not those of the code of its example.

    shown: by the cells' titles the results (schema v1); those of the recording, unless somebody wonders about others.
    """
    example = catalog.get(one.name)
    code = _code(catalog.read_text(example.path))
    yield from code.problems(shown, lambda: _words(one))
    yield from made_of.problems(example.file, code.files, one.metadata)


@lru_cache(maxsize=256)  # a GPU's recording and another's are of one example
def _code(text: str) -> written.Code:
    return written.Code(
        {title: source for title, kind, source in catalog.cells_of(text) if kind == "code"}
    )


def _words(one: Recording) -> set[str]:
    """What the modules behind a recording say, and what its files are called: a result may be named by either."""
    root, found = paths.examples_dir(), set()
    for file in one.metadata["sources"]:
        found.add(PurePosixPath(file).stem)
        own = catalog.relative(catalog.path_of(one.name), root)
        if file.endswith(".py") and file != own and (root / file).is_file():
            found |= written.words_of(catalog.read_text(root / file))
    return found


def _hidden(drafts: Iterable[Example]) -> Iterator[str]:
    """Examples that drafts.txt leaves out, and whose chapter is published."""
    written_chapters = _chapters()
    for example in drafts:
        fitting = [name for name in written_chapters if f"{example.name}_".startswith(f"{name}_")]
        chapter = max(fitting, key=len, default=None)
        if chapter and written_chapters[chapter]:
            yield (
                f"examples/drafts.txt hides {example.name}, and its chapter is published: remove the pattern, or say "
                f"`written: draft` for {chapter} in docs/contents.yml"
            )


def _chapters() -> dict[str, bool]:
    """The chapters of docs/contents.yml, and whether each is published; none where the book's pages are not here."""
    import yaml

    path = paths.examples_dir().parent / "docs" / "contents.yml"
    if not path.is_file():
        return {}
    try:
        parts = yaml.safe_load(catalog.read_text(path))["parts"]
        return {
            f"{part['id']}/{chapter['id']}": chapter["written"] is True
            for part in parts
            for chapter in part["chapters"]
        }
    except (yaml.YAMLError, LookupError, TypeError) as error:
        raise CudatutError(f"docs/contents.yml is no table of contents: {error!r}") from error


def _strangers(every: Iterable[Example]) -> Iterator[str]:
    """Files among the recordings that are none."""
    chapters, root = map(catalog.ChapterFiles, exercises.chapters()), paths.examples_dir()
    known = {one.exercises_notebook(lang) for one in chapters for lang in catalog.LANGUAGES}
    for path in sorted(root.rglob("*.ipynb")):
        if path not in known and "/." not in f"/{catalog.relative(path, root)}":
            yield f"{catalog.shown(path)} belongs to no exercises: remove it"
    for file in recording.orphans():
        yield f"recordings/{file} belongs to no example: remove it"


# --- notes --------------------------------------------------------------------------------------------

# What older recordings lack.
_LACKING = {
    "instrument": "do not say which instrument measured them",
    "kernels": "do not name their kernels",
    "rivals": "do not name the versions of their rivals",
    "meanings": "do not say what their sources mean",
}


def _notes(recordings: Iterable[Recording]) -> Iterator[str]:
    recordings = list(recordings)
    for key, what in _LACKING.items():
        if lacking := sum(key not in one.metadata for one in recordings):
            yield f"{lacking} recordings {what}"
    if uncovered := uncovered_sources(recordings):
        yield (
            f"of {len(uncovered)} sources no declared instance stands for the kernels that ran, so machine code cannot tell "
            f"that a change is without effect: {', '.join(one.partition(':')[0] for one in uncovered)}"
        )
    if dirty := [one.file for one in recordings if one.dirty]:
        yield f"{len(dirty)} recordings were made from files that no commit has: {', '.join(dirty)}"
    if older := [one.file for one in recordings if catalog.script_in(one.name, one.rewritten())]:
        yield (
            f"{len(older)} recordings show an older text of their example, which means the same "
            f"(`python -m cudatut restamp` renews it): {', '.join(older)}"
        )
