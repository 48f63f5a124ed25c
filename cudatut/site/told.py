"""Numbers in prose that no recording holds, and what they are instead: the reader sees it when pointing at them.

{{ quote "570 ms" from "CUDATutorial 03, V100" }}     somebody else's number
{{ given "two seconds" as "setting" }}                a number that is no result: KINDS says which there are
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from cudatut.errors import CudatutError
from cudatut.site import locale

# What a number may be that nobody measured; locale/*.yml says it to the reader.
KINDS = ("prediction", "goal", "assumption", "setting", "count", "claim")

_QUOTE = re.compile(r'quote\s+"(?P<text>[^"]+)"\s+from\s+"(?P<source>[^"]+)"')
_GIVEN = re.compile(r'given\s+"(?P<text>[^"]+)"\s+as\s+"(?P<kind>[^"]+)"')


class BadTellingError(CudatutError):
    """A `{{ quote ... }}` or `{{ given ... }}` that cannot be read; the message says how it is written."""


@dataclass(frozen=True)
class Told:
    """A number as it stands in the sentence, the class of its element, and what is said about it."""

    text: str
    css: str
    title: str


def read(body: str) -> Told | None:
    """What stands between the braces, or None if it is a reference or arithmetic."""
    body = body.strip()
    if quote := _QUOTE.fullmatch(body):
        return Told(quote["text"], "ct-quoted", quote["source"])
    if (given := _GIVEN.fullmatch(body)) and given["kind"] in KINDS:
        return Told(given["text"], "ct-given", locale.text(f"given.{given['kind']}"))
    if not begins(body):
        return None
    if body.startswith("quote"):
        raise BadTellingError(f'{{{{ {body} }}}}: write {{{{ quote "570 ms" from "its source" }}}}')
    raise BadTellingError(
        f'{{{{ {body} }}}}: write {{{{ given "two seconds" as "setting" }}}}; '
        f"besides 'setting' there are {', '.join(kind for kind in KINDS if kind != 'setting')}"
    )


def begins(body: str) -> bool:
    """Whether what stands between the braces wants to be told, right or wrong."""
    return body.strip().startswith(("quote", "given"))


def text_of(body: str) -> str:
    """The text of a number that is told, "" for all else."""
    found = _QUOTE.fullmatch(body.strip()) or _GIVEN.fullmatch(body.strip())
    return found["text"] if found else ""
