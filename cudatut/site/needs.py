"""What runs where, in the page's language: below the titles of chapters, beside examples, in their index, on the landing page.

All of it follows from what the headers of examples require, and from `cudatut.runs_on`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from cudatut import runs_on
from cudatut.catalog import Example
from cudatut.site import contents, state
from cudatut.site.contents import Chapter, Part
from cudatut.site.locale import text


def mark(requires: str) -> str:
    """A compute capability in short: '8.0+', or '9.0' where no other will do."""
    capability, exactly = runs_on.capability(requires)
    return capability if exactly else f"{capability}+"


def gpus(requires: str) -> str:
    """The capability in words, with cards that have it: 'compute capability 8.0 or newer (A100, L4, RTX 30 or newer)'."""
    capability, exactly = runs_on.capability(requires)
    cards = text("needs.and").join(runs_on.cards(requires))
    return text("needs.exactly" if exactly else "needs.least", cc=capability, cards=cards)


def colab(requires: str) -> str:
    """What Colab has for it, and whether it costs something: 'L4, paid'."""
    gpu = runs_on.colab(requires)
    if gpu is None:
        return text("needs.nowhere")
    return text("needs.free" if gpu == runs_on.FREE else "needs.paid", gpu=gpu)


def line(required: Iterable[str]) -> str:
    """A paragraph that says what examples run on that require this, the most modest first; '' for none.

    Raises ValueError for what is no compute capability.
    """
    count = Counter(required)
    said = []
    for requires in sorted(count, key=_order):
        where = text("needs.where", gpus=gpus(requires), colab=colab(requires))
        several = {"n": count[requires], "all": count.total()}
        key = "needs.some" if len(count) > 1 else "needs.all"
        said.append(text(key, where=where, **several))
    return f'<p class="ct-needs">{"<br>".join(said)}</p>' if said else ""


def own(chapter: Chapter, parts: tuple[Part, ...]) -> list[Example]:
    """A chapter's own examples, the one that has its name first."""
    near = (one for one in state.current().examples if one.name.startswith(chapter.name))
    return sorted(
        (one for one in near if contents.chapter_of(one.name, parts) == chapter),
        key=lambda one: (one.name != chapter.name, one.name),
    )


def below_title(html: str, chapter: Chapter, parts: tuple[Part, ...]) -> str:
    """A chapter's content with a line below its title: what its own examples run on."""
    said = line(one.requires for one in own(chapter, parts))
    return html.replace("</h1>", f"</h1>{said}", 1)


def route(*parts: str) -> str:
    """What the examples of these parts of the book run on, for a way through it."""
    examples = state.current().examples
    return line(one.requires for one in examples if one.name.partition("/")[0] in parts)


def table(names: Iterable[str]) -> str:
    """The marks of the index of these examples: what they mean, and how many have them."""
    count = Counter(state.current().example(name).requires for name in names)
    columns = (text(f"needs.columns.{one}") for one in ("mark", "gpu", "colab", "examples"))
    head = "".join(f"<th>{words}</th>" for words in columns)
    rows = "".join(
        f"<tr><td>{mark(requires)}</td><td>{gpus(requires)}</td><td>{colab(requires)}</td>"
        f"<td>{count[requires]}</td></tr>"
        for requires in sorted(count, key=_order)
    )
    return f'<table class="ct-table"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'


def _order(requires: str) -> tuple[float, bool]:
    capability, exactly = runs_on.capability(requires)
    return float(capability), exactly
