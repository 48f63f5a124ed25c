"""Schema v1 of what examples record, and the check of anything that is read from a file: which fields, of which types."""

import math
from collections.abc import Iterable
from typing import Any

from cudatut.results import FOREGROUND, VERDICTS

NUMBER = (int, float)
GPU = {"name": str, "compute_capability": str, "memory_bytes": int, "sm_count": int}
_FIELDS: dict[str, dict[str, Any]] = {
    "check": {
        "name": (str, None),
        "passed": bool,
        "n": int,
        "max_abs_err": NUMBER,
        "max_rel_err": NUMBER,
        "atol": NUMBER,
        "rtol": NUMBER,
    },
    "benchmark": {"name": (str, None), "unit": str, "peak": (NUMBER, None), "rows": list},
    "resources": {
        "kernel": str,
        "registers": int,
        "shared_bytes": int,
        "spill_bytes": int,
        "occupancy": NUMBER,
    },
    "profile": {"kernel": str, "metrics": dict},
    "sanitizer": {"tool": str, "errors": int},
    "facts": {"title": (str, None), "rows": list},
    "table": {"title": str, "corner": str, "columns": list, "rows": list},
    "claim": {
        "id": str,
        "source": str,
        "statement": dict,
        "predicted": (str, NUMBER),
        "measured": (str, NUMBER),
        "unit": (str, None),
        "verdict": str,
    },
    "series": {"title": str, "x": dict, "y": dict, "lines": dict, "limit": (NUMBER, None)},
}
_BENCH_ROW = {
    "name": str,
    "median_us": NUMBER,
    "p20_us": NUMBER,
    "p80_us": NUMBER,
    "value": (NUMBER, None),
    "of_peak": (NUMBER, None),
    "vendor": bool,
    "ratio_to_vendor": (NUMBER, None),
}
_FACT_ROW = {"name": str, "value": (str, bool, NUMBER), "unit": (str, None)}
_COLUMN = {"name": str, "unit": (str, None)}
_TABLE_ROW = {"name": str, "values": list}
_CELL = (str, bool, NUMBER, None)
_METRIC = {"value": (str, NUMBER), "unit": (str, None)}


def validate(result: Any) -> None:
    """Check a result against schema v1: its kind, the presence and the type of each field.

    Raises ValueError that names the kind, the field and what was found.
    """
    if not isinstance(result, dict) or "kind" not in result:
        raise ValueError(f"a result is an object with a kind, not {short(result)}")
    kind = result["kind"]
    if not isinstance(kind, str) or kind not in _FIELDS:
        known = ", ".join(_FIELDS)
        raise ValueError(f"schema v1 has no kind {short(kind)}; it has {known}")
    require(
        result, _FIELDS[kind], f"{kind} {result.get('name') or result.get('kernel') or ''}".strip()
    )
    rows = {"benchmark": _BENCH_ROW, "facts": _FACT_ROW}.get(kind)
    if rows:
        for i, row in enumerate(result["rows"]):
            require(row, rows, f"{kind} {result.get('name') or result.get('title')!r}, row {i}")
    if kind == "profile":
        for name, metric in result["metrics"].items():
            require(metric, _METRIC, f"profile {result['kernel']!r}, metric {name!r}")
    if kind == "series":
        for axis in ("x", "y"):
            require(result[axis], {"name": str, "unit": str}, f"series {result['title']!r}, {axis}")
        for name, line in result["lines"].items():
            _require_line(line, f"series {result['title']!r}, line {name!r}")
        _require_foreground(result)
    if kind == "table":
        _require_cells(result)
    if kind == "claim":
        where = f"claim {result['id']!r}"
        require(result["statement"], {"en": str, "zh": str}, f"{where}, statement")
        if result["verdict"] not in VERDICTS:
            raise ValueError(f"{where}: verdict {short(result['verdict'])} is unknown")


def _require_line(line: Any, where: str) -> None:
    if not isinstance(line, list) or not line:
        raise ValueError(f"{where}: expected a list of points, found {short(line)}")
    for point in line:
        whole = isinstance(point, (list, tuple)) and len(point) == 2
        if not whole or not all(_is_number(value) for value in point):
            raise ValueError(f"{where}: {short(point)} is no point (x, y)")


def _require_foreground(series: dict[str, Any]) -> None:
    names = series.get("foreground")
    if names is None:
        return
    known = isinstance(names, list) and all(
        isinstance(name, str) and name in series["lines"] for name in names
    )
    if not known or not 1 <= len(names) <= FOREGROUND:
        raise ValueError(f"series {series['title']!r}: field 'foreground' is {short(names)}")


def _require_cells(table: dict[str, Any]) -> None:
    where = f"table {table['title']!r}"
    if not table["columns"] or not table["rows"]:
        raise ValueError(f"{where}: it has no {'rows' if table['columns'] else 'columns'}")
    for i, column in enumerate(table["columns"]):
        require(column, _COLUMN, f"{where}, column {i}")
    for i, row in enumerate(table["rows"]):
        require(row, _TABLE_ROW, f"{where}, row {i}")
        if len(row["values"]) != len(table["columns"]):
            raise ValueError(
                f"{where}, row {row['name']!r}: {len(row['values'])} values for {len(table['columns'])} columns"
            )
        for column, value in zip(table["columns"], row["values"], strict=True):
            place = f"{where}, row {row['name']!r}"
            require({column["name"]: value}, {column["name"]: _CELL}, place)


def _is_number(value: Any) -> bool:
    return isinstance(value, NUMBER) and not isinstance(value, bool) and math.isfinite(value)


def require(found: Any, fields: dict[str, Any], where: str) -> None:
    """Check that `found` is an object with these fields, each of one of its types (None: null is allowed).

    fields: name -> type, or tuple of types. NaN and infinity are no numbers, True is none either. Raises ValueError,
    which begins with `where`.
    """
    if not isinstance(found, dict):
        raise ValueError(f"{where}: expected an object, found {short(found)}")
    for field, types in fields.items():
        if field not in found:
            raise ValueError(f"{where}: field {field!r} is missing")
        value = found[field]
        allowed = list(_flat(types))
        if value is None:
            if None not in allowed:
                raise ValueError(f"{where}: field {field!r} is null")
            continue
        # bool is an int to Python; a measurement it is not.
        fits = (
            bool in allowed
            if isinstance(value, bool)
            else isinstance(value, tuple(t for t in allowed if t is not None and t is not bool))
        )
        if not fits or (isinstance(value, float) and not math.isfinite(value)):
            raise ValueError(f"{where}: field {field!r} is {short(value)}")


def _flat(types: Any) -> Iterable[Any]:
    for one in types if isinstance(types, tuple) else (types,):
        if isinstance(one, tuple):
            yield from _flat(one)
        else:
            yield one


def short(value: Any) -> str:
    """A value as an error message shows it, cut at 60 characters."""
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."
