"""`python -m cudatut status`: what is wrong with the recordings, and what is only to be known of them.

A problem stops a build or a landing. A note does not: what older recordings lack, what was skipped, and why.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from cudatut import agreement, catalog, exercises, instrument, paths, provenance, recording, written
from cudatut.catalog import Example
from cudatut.errors import CudatutError
from cudatut.history import History, NoHistory, history
from cudatut.recording import Recording


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


def status() -> Status:
    """Look at everything. Raises BadHeaderError for an example that cannot be read."""
    found = Status()
    every = catalog.examples(drafts=True)
    patterns = catalog.draft_patterns()
    drafts = [one for one in every if catalog.matches(f"{one.name}.py", patterns)]
    examples = [one for one in every if one not in drafts]
    recordings = list(_fit(examples, found))
    found.problems += judge(recordings)
    found.problems += instrument.problems()
    found.problems += _hidden(drafts)
    found.problems += _strangers(every)
    try:
        found.problems += judge_history(recordings, history())
    except NoHistory as error:
        found.notes.append(f"no commit that a recording names was looked up: {error}")
    if drafts:
        found.notes.append(
            f"{len(drafts)} examples in progress are left out: see examples/drafts.txt"
        )
    found.notes += _notes(recordings)
    return found


def _fit(examples: Iterable[Example], found: Status) -> Iterator[Recording]:
    """The recordings that may be shown, each by itself; of others the reason is among the problems."""
    for example in examples:
        try:
            yield recording.require_good(example.name)
            found.own += 1
        except CudatutError as error:
            found.unfit += 1
            found.problems.append(str(error))
        try:
            others = recording.on_other_gpus(example.name)
            found.others += len(others)
            yield from others
        except CudatutError as error:
            found.problems.append(str(error))


# --- problems -----------------------------------------------------------------------------------------


def judge(recordings: Iterable[Recording]) -> list[str]:
    """What does not fit in recordings that may be shown, laid beside the code of their cells and beside each other."""
    recordings = list(recordings)
    found, code = [], {}
    for one in recordings:
        if one.name not in code:
            text = catalog.read_text(catalog.get(one.name).path)
            cells = {t: source for t, kind, source in catalog.cells_of(text) if kind == "code"}
            code[one.name] = written.Code(cells)
        shown = {cell.title: cell.results() for cell in one.cells}
        found += [f"{one.file}: {problem}" for problem in code[one.name].problems(shown)]
    return [*found, *agreement.among(recordings)]


# What is asked of a recording that is laid beside the history; each says what it found as the end of a sentence.
_OF_HISTORY: tuple[Callable[[Recording, History], Iterable[str]], ...] = (provenance.problems,)


def judge_history(recordings: Iterable[Recording], past: History) -> list[str]:
    """What recordings say of commits and that the history does not."""
    return [
        f"{one.file} {problem}"
        for one in recordings
        for ask in _OF_HISTORY
        for problem in ask(one, past)
    ]


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
    known = {example.name for example in every}
    known |= {chapter + catalog.EXERCISES for chapter in exercises.chapters()}
    root = paths.examples_dir()
    for path in sorted(root.rglob("*.ipynb")):
        name = catalog.relative(path.with_suffix(""), root)
        if name not in known and "/." not in f"/{name}":
            yield f"examples/{name}.ipynb is a recording without an example: remove it"
    for file in recording.orphans():
        yield f"results/{file} belongs to no example: remove it"


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
    if dirty := [one.file for one in recordings if provenance.dirty(one)]:
        yield f"{len(dirty)} recordings were made from files that no commit has: {', '.join(dirty)}"
    if older := [one.file for one in recordings if f"{one.name}.py" in one.rewritten()]:
        yield (
            f"{len(older)} recordings show an older text of their example, which means the same "
            f"(`python -m cudatut restamp` renews it): {', '.join(older)}"
        )
