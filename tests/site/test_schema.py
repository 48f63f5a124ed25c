"""The table of kinds of results on the page on contributing."""

import re

from cudatut.results import KINDS
from cudatut.site import schema


def test_a_row_for_each_kind_below_its_head():
    head, *rows = re.findall(r"<tr>(.*?)</tr>", schema.table(), re.DOTALL)
    assert re.findall(r"<th(?: [^>]*)?>(.*?)</th>", head, re.DOTALL) == ["kind", "class", "fields"]
    cells = [re.findall(r"<t[dh](?: [^>]*)?>(.*?)</t[dh]>", row, re.DOTALL) for row in rows]
    assert [row[:2] for row in cells] == [
        [f"<code>{kind}</code>", f"<code>{cls.__name__}</code>"] for kind, cls in KINDS.items()
    ]
    (fields,) = (row[2] for row in cells if row[0] == "<code>benchmark</code>")
    assert fields.startswith("<code>name</code>, ") and fields.endswith("[<code>most_mhz</code>]")
