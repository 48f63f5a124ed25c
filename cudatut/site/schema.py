"""The page on contributing: the kinds of results and their fields, from their declarations in cudatut/results.py."""

from dataclasses import MISSING, fields

from cudatut.results import KINDS
from cudatut.site.render import table_html
from cudatut.site.svg import tr


def table() -> str:
    """A row for each kind: its fields, those in brackets may be left out."""
    rows = []
    for kind, cls in KINDS.items():
        names = [
            f"<code>{f.name}</code>"
            if f.default is f.default_factory is MISSING
            else f"[<code>{f.name}</code>]"
            for f in fields(cls)
            if f.repr
        ]
        rows.append([f"<code>{kind}</code>", f"<code>{cls.__name__}</code>", ", ".join(names)])
    head = [tr("kind", "种类"), tr("class", "类"), tr("fields", "字段")]
    return table_html(head, rows, words=(0, 1, 2))
