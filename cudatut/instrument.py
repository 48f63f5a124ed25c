"""The instrument: what times, checks and profiles, and how a recording says by which one it was made.

Each aspect has a number in instrument.yml, raised by hand when a value or a verdict could come out otherwise. A recording
carries the numbers of the aspects that it used, and a raise makes stale those that used it. Besides, the ledger has the
meaning of each file at its aspects' last raise; a file that means something else since then needs an entry saying why no
value can move. So nobody changes a tolerance, or leaves out a flush, without saying one or the other. What lies in
cudatut/gpu, and what a file of the instrument imports of the package, is of the instrument, too, or is told `apart`, with
the reason.
"""

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypedDict

from cudatut import yaml_text
from cudatut.errors import CudatutError
from cudatut.fingerprint.meaning import meaning_hash
from cudatut.schema import Count, Misfit, reader

ASPECTS = ("timing", "checking", "profiling")
LEDGER = Path(__file__).with_suffix(".yml")

Aspect = Annotated[str, ASPECTS.__contains__]
Words = Annotated[str, str.strip]  # not blank


class File(TypedDict):
    of: list[Aspect]
    meaning: Words


class Same(TypedDict):
    file: str
    meaning: str
    why: Words


class Ledger(TypedDict):
    """The form of instrument.yml."""

    numbers: Annotated[dict[Aspect, Count], lambda numbers: len(numbers) == len(ASPECTS)]
    files: dict[str, File]
    same: list[Same]
    apart: dict[str, Words]


@cache
def ledger() -> Ledger:
    """instrument.yml. Raises CudatutError where it is not of this form."""
    found = yaml_text.load(LEDGER.read_text(encoding="utf-8"))
    try:
        return reader(Ledger)(found)
    except Misfit as error:
        raise CudatutError(
            f"{LEDGER.name} is no ledger of the instrument ({error}): see cudatut/instrument.py"
        ) from error


def files() -> list[Path]:
    """The files of the instrument, and the ledger."""
    return [LEDGER, *(LEDGER.parent / name for name in ledger()["files"])]


def meaning(name: str) -> str | None:
    """The hash of what a file of the instrument means now; None if it is gone."""
    path = LEDGER.parent / name
    return meaning_hash(name, path.read_bytes()) if path.is_file() else None


def unsaid(recorded: dict[str, Any]) -> Iterator[str]:
    """Aspects that a recording says it used, without a word on any of the files behind them."""
    for aspect in recorded.get("numbers", {}):
        behind = {name for name, one in ledger()["files"].items() if aspect in one["of"]}
        if not behind & set(recorded["files"]):
            yield f"it does not say which files were behind {aspect}"


def used(aspects: Iterable[str]) -> dict[str, Any]:
    """What a recording carries that used these aspects: the number of each, and the meaning of each file behind them."""
    wanted = sorted(set(aspects))
    behind = [name for name, one in ledger()["files"].items() if set(one["of"]) & set(wanted)]
    numbers = {aspect: ledger()["numbers"][aspect] for aspect in wanted}
    return {"numbers": numbers, "files": {name: meaning(name) for name in sorted(behind)}}


def outdated(recorded: dict[str, Any]) -> list[str]:
    """What a recording was measured by and is not any more: 'timing 1, now 2', or a file by another meaning than the ledger
    knows for its aspects' numbers.
    """
    now = ledger()["numbers"]
    numbers = recorded.get("numbers", {})
    raised = [f"{a} {n}, now {now.get(a)}" for a, n in sorted(numbers.items()) if now.get(a) != n]
    if raised:
        return raised
    return [
        f"{name}, of which {LEDGER.name} does not know that it meant the same"
        for name, meant in sorted(recorded.get("files", {}).items())
        if meant not in _told(name)
    ]


def _told(name: str) -> list[str]:
    """What a file of the instrument may mean: at its aspects' last raise, and by each entry since then, the last one last."""
    known = ledger()
    entries = [one["meaning"] for one in known["same"] if one.get("file") == name]
    return [known["files"][name]["meaning"], *entries] if name in known["files"] else entries


def problems() -> Iterator[str]:
    """Files of the instrument that mean something else than at their aspects' last raise, and no entry says why that is well;
    and files beside them, or that they import, that are neither of the instrument nor told apart.
    """
    known = ledger()
    told = {*known["files"], *known["apart"]}
    for name, one in known["files"].items():
        # The last word counts: a file that goes back to an older form is told again.
        if (now := meaning(name)) != _told(name)[-1]:
            aspects = " and ".join(one["of"])
            yield (
                f"cudatut/{name} means something else than when {aspects} got its number. If a value or a verdict could "
                f"come out otherwise, raise {aspects} in cudatut/{LEDGER.name}; if none can, add an entry under 'same': "
                f"file: {name}, meaning: {now}, why: ..."
            )
        for imported in sorted(_imported(name) - told):
            told.add(imported)
            yield _not_told(f"cudatut/{name} imports cudatut/{imported}")
    beside = (path for path in (LEDGER.parent / "gpu").iterdir() if path.suffix in (".py", ".cu"))
    for name in sorted({f"gpu/{path.name}" for path in beside if path.stat().st_size > 1} - told):
        yield _not_told(f"cudatut/{name} lies beside the instrument")


def _not_told(what: str) -> str:
    return (
        f"{what}, and cudatut/{LEDGER.name} says nothing of it. List it under 'files', or under 'apart' with the reason why "
        "no value and no verdict comes from it."
    )


def _imported(name: str) -> set[str]:
    """The modules of the package that a file of it imports, by their files."""
    path, root = LEDGER.parent / name, LEDGER.parent
    if path.suffix != ".py" or not path.is_file():
        return set()
    named = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            named |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    inside = (one.removeprefix("cudatut.") for one in named if one.startswith("cudatut."))
    files = (f"{one.replace('.', '/')}.py" for one in inside)
    return {file for file in files if (root / file).is_file()}
