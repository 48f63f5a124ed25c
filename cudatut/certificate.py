"""The form of what a recording says of its making, its birth certificate: text that pages, paths and commands are made of.

So a name is one plain word after the other, a hash is a hash, and a number is one that can be. Whether it is true is
asked elsewhere: `cudatut.agreement`, `cudatut.provenance`.
"""

import datetime
import re
from collections.abc import Callable
from pathlib import PurePath
from typing import Annotated, Any, NotRequired, TypedDict

from cudatut import catalog, instrument, results
from cudatut.schema import Count, Misfit, reader
from cudatut.tool import SANITIZERS

SCHEMA = 1


def read(found: Any, name: str, path: PurePath) -> dict[str, Any]:
    """The metadata of a recording of this example in this file, as it is. Raises ValueError saying what is wrong with it."""
    if not isinstance(found, dict):
        raise ValueError("it is not a notebook that cudatut made (it has no metadata of its own)")
    if type(found.get("schema")) is not int or found["schema"] != SCHEMA:
        shown = results.short(found.get("schema"))
        raise ValueError(f"its schema is {shown}, and this cudatut reads schema {SCHEMA}")
    try:
        reader(Certificate)(found)
    except Misfit as error:
        raise ValueError(f"of its metadata, {error}") from None
    if found["name"] != name:
        raise ValueError(f"it is the recording of another example, {found['name']}")
    if catalog.script_in(name, found["sources"]) is None:
        raise ValueError(f"its sources lack the script of {name}")
    if unknown := set(found.get("meanings", ())) - set(found["sources"]):
        raise ValueError(f"it has the meaning of {min(unknown)}, which is none of its sources")
    if (found.get("slim") is True) != (path.suffix == ".json"):
        raise ValueError(
            "only the results of another GPU, in recordings/, are slim, and all of them"
        )
    return found


# --- what a value has to be ------------------------------------------------------------------------


def _like(pattern: str) -> Callable[[str], Any]:
    return re.compile(pattern, re.ASCII).fullmatch


def _is_time(value: str) -> bool:
    """Whether it is a time in UTC, to the second."""
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", value, re.ASCII):
        return False
    try:
        datetime.datetime.fromisoformat(value)
    except ValueError:  # the 99th of a month
        return False
    return True


# Words on one line.
Text = Annotated[str, str.isprintable, str.strip]
# A path that stays below the folder that it is relative to: no part of it begins with a dot.
File = Annotated[str, _like(r"(?:[A-Za-z0-9_-][A-Za-z0-9_.-]*/)*[A-Za-z0-9_-][A-Za-z0-9_.-]*")]
Hash = Annotated[str, _like(r"[0-9a-f]{64}")]
Commit = Annotated[str, _like(r"[0-9a-f]{7,64}")]
Version = Annotated[str, _like(r"[0-9A-Za-z][\w.+!-]*")]
Arch = Annotated[str, catalog.ARCH.fullmatch]


class Gpu(TypedDict):
    name: Text
    compute_capability: Annotated[str, _like(r"\d{1,2}\.\d")]
    memory_bytes: Count
    sm_count: Count
    driver: Version


class Verdict(TypedDict):
    kind: Annotated[str, results.Sanitizer.kind.__eq__]
    tool: Annotated[str, SANITIZERS.__contains__]
    errors: int


class Kernel(TypedDict):
    file: NotRequired[File | None]
    name: Text
    defines: list[Text]
    options: list[Text]
    arch: Arch
    code: Hash


class Instrument(TypedDict):
    numbers: dict[instrument.Aspect, Count]
    files: dict[File, Hash | None]


Accepted = TypedDict(
    "Accepted",
    {"ground": Text, "was": Hash, "now": NotRequired[Hash | None], "as": NotRequired[File | None]},
)
Restamp = TypedDict("Restamp", {"from": Commit, "to": Commit, "files": dict[File, Accepted]})


class Certificate(TypedDict):
    """What a recording says of its making. What may be left out, those lack that were made before it was recorded."""

    name: File
    title: Annotated[dict[str, Text], lambda title: set(title) == set(catalog.LANGUAGES)]
    requires: Arch
    sources: dict[File, Hash]
    gpu: Gpu
    toolchain: dict[Annotated[str, _like(r"[\w.-]+")], Version | None]
    recorded_at: Annotated[str, _is_time]
    commit: Annotated[str, _like(r"unknown|[0-9a-f]{7,64}(?:-dirty)?")]
    duration_s: Annotated[float, lambda seconds: 0 <= seconds < 1e9]
    sanitizers: list[Verdict]
    digest: NotRequired[Hash]
    meanings: NotRequired[dict[File, Hash]]
    kernels: NotRequired[list[Kernel]]
    instrument: NotRequired[Instrument]
    rivals: NotRequired[dict[Text, Text]]
    launched: NotRequired[dict[Text, list[Text]]]
    restamped: NotRequired[list[Restamp]]
