"""Tables and charts as data: what `ct.table` and `ct.series` take, show and refuse. No GPU is needed."""

import json

import numpy as np
import pytest

import cudatut as ct
from cudatut.results import MIME
from cudatut.schema import validate

ROWS = {
    "128": {"FMAs": 12, "rate": 3.14159, "right": True},
    256: {"FMAs": np.int32(24), "what": "`add`", "rate": None},
}


def test_a_table(capsys):
    table = ct.table(
        "FMAs at the limit",
        ROWS,
        corner="threads per block",
        units={"rate": "GB/s", "FMAs": "FMAs"},
    )
    assert capsys.readouterr().out.splitlines() == [
        "FMAs at the limit",
        "  threads per block  FMAs  rate (GB/s)  right   what",
        "  128                  12        3.142   True",
        "  256                  24                      `add`",
    ]
    data = table.json()
    validate(json.loads(json.dumps(data, allow_nan=False)))
    assert data == {
        "kind": "table",
        "title": "FMAs at the limit",
        "corner": "threads per block",
        "columns": [
            {"name": "FMAs", "unit": "FMAs"},
            {"name": "rate", "unit": "GB/s"},
            {"name": "right", "unit": None},
            {"name": "what", "unit": None},
        ],
        "rows": [
            {"name": "128", "values": [12, 3.14159, True, None]},
            {"name": "256", "values": [24, None, None, "`add`"]},
        ],
    }
    bundle = table._repr_mimebundle_()
    assert bundle[MIME] == data
    assert "<th>rate (GB/s)</th>" in bundle["text/html"]
    assert table["256"]["FMAs"] == 24
    with pytest.raises(KeyError, match="no row '64' in table 'FMAs at the limit'.*'128', '256'"):
        table["64"]


@pytest.mark.parametrize(
    ("rows", "options", "error", "says"),
    [
        ({}, {}, ValueError, "no rows with values"),
        ({"a": {}}, {}, ValueError, "no rows with values"),
        ({"1": {"x": 1}, 1: {"x": 2}}, {}, ValueError, "two of its rows have one name"),
        ({"a": {"x": 1}}, {"units": {"y": "B"}}, ValueError, r"units has \['y'\]"),
        ({"a": {"x": [1]}}, {}, TypeError, "'a', 'x' is a list; give a number, string or bool"),
        ({"a": {"x": (1, "B")}}, {}, TypeError, "'a', 'x' is a tuple"),
    ],
)
def test_what_is_no_table_is_refused(rows, options, error, says):
    with pytest.raises(error, match=says):
        ct.table("t", rows, **options)


LINES = {f"line {k}": [(1, 2.0), (2, 3.0)] for k in range(8)}


def test_a_series_has_a_foreground(capsys):
    axes = ("n", "elements"), ("bandwidth", "GB/s")
    chosen = ct.series("by n", *axes, LINES, foreground=["line 7", "line 1"])
    assert chosen.json()["foreground"] == ["line 7", "line 1"]
    validate(json.loads(json.dumps(chosen.json())))
    first = ct.series("by n", *axes, LINES, foreground=None).json()["foreground"]
    assert first == list(LINES)[:6]  # the page draws what the text shows
    for wrong in ([], ["line 8"], list(LINES)):
        with pytest.raises(ValueError, match=r"foreground is .*; name 1 to 6 of the lines"):
            ct.series("by n", *axes, LINES, foreground=wrong)
