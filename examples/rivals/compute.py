"""Algorithms of `cuda.compute` (the package cuda-cccl), which compiles CUB's
templates for the arrays it is given, as contestants of `ct.bench`.

    compute.scan(x, out); compute.select(x, out, counts); compute.sort(x, out)

It is a rival that a page may lack: where the package is not installed, or does
not run, the reason stands in the place of its row, also while an example is
recorded. None under a sanitizer or profiler. By the names of cuda-cccl 1.2.
"""

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from typing import Any

import cudatut as ct

PACKAGE = "cuda-cccl"


def version() -> str | None:
    """The release that is installed here, if there is one."""
    try:
        return version_of(PACKAGE)
    except PackageNotFoundError:
        return None


def scan(x: Any, out: Any) -> Any:
    """out = the inclusive sums of x."""

    def prepare(compute: Any) -> tuple[Any, dict]:
        plus = compute.OpKind.PLUS
        own = {"d_in": x, "d_out": out, "op": plus, "init_value": None}
        return compute.make_inclusive_scan(**own), own | {"num_items": x.size}

    return _contestant(prepare)


def select(x: Any, out: Any, counts: Any) -> Any:
    """out = what is above 0 in x, and counts[0] how many that are.

    counts: two elements, since a partition into three parts does the work.
    """

    def above(element):
        return element > 0

    def prepare(compute: Any) -> tuple[Any, dict]:
        own = {
            "d_in": x,
            "d_out": out,
            "d_num_selected_out": counts,
            "cond": above,
        }
        return compute.make_select(**own), own | {"num_items": x.size}

    return _contestant(prepare)


def sort(keys: Any, out: Any) -> Any:
    """out = the keys in order."""

    def prepare(compute: Any) -> tuple[Any, dict]:
        own = {
            "d_in_keys": keys,
            "d_out_keys": out,
            "d_in_values": None,
            "d_out_values": None,
        }
        order = compute.SortOrder.ASCENDING
        made = compute.make_radix_sort(**own, order=order)
        return made, own | {"num_items": keys.size}

    return _contestant(prepare)


def _contestant(prepare: Callable[[Any], tuple[Any, dict]]) -> Any:
    if ct.tool.running():
        return None
    if version() is None:
        return ct.vendor.Missing(f"the package {PACKAGE} is not installed")
    try:
        ct.activate()  # it then uses the same context
        compute = import_module("cuda.compute")
        # --8<-- [start:call]
        made, arguments = prepare(compute)
        nbytes = made(temp_storage=None, **arguments)
        scratch = ct.empty(max(int(nbytes), 1), "uint8")

        def call() -> None:
            made(temp_storage=scratch, **arguments)

        # --8<-- [end:call]
        call()
        ct.synchronize()
    except Exception as error:
        line = (str(error).strip() or repr(error)).splitlines()[0]
        return ct.vendor.Missing(f"cuda.compute cannot run here ({line})")
    return ct.vendor.Vendor(call)
