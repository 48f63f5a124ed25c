"""CUPTI, the library beneath NVIDIA's profilers, as `cupti-python` has it: who listens to this process, and to what."""

import ctypes
import importlib
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from cudatut import paths, words
from cudatut.errors import ToolMissing
from cudatut.gpu import device

KERNEL = 10  # CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL in cupti_activity.h
_BUFFER_BYTES = 8 << 20
_say = words.section("cupti")

_hears: Callable[[list[Any]], None] | None = None  # who listens now
_registered = False


def listening() -> bool:
    """Whether somebody listens in this process: then no second one can."""
    return _hears is not None


@contextmanager
def listen(kinds: Iterable[int], hear: Callable[[list[Any]], None]) -> Iterator[ModuleType]:
    """While the block runs, `hear` is given CUPTI's records of these kinds, of which it must keep copies; all of them by its end.

    To see the calls of the API that make the context, begin before PyCUDA is imported. One at a time. Raises ToolMissing
    where cupti-python is missing or CUPTI does not start.
    """
    global _hears, _registered
    if listening():
        raise RuntimeError("somebody listens to this process already")
    cupti, kinds = _cupti(), list(kinds)
    _hears = hear
    try:
        try:
            for kind in kinds:
                cupti.activity_enable(kind)
            if not _registered:
                cupti.activity_register_callbacks(lambda: (_BUFFER_BYTES, 0), _completed)
                _registered = True
        except Exception as error:  # cupti-python has an error class of its own for each layer
            raise ToolMissing(_say("does not start", error=error, how=install_advice())) from error
        yield cupti
        device.installed_driver().cuCtxSynchronize()
        cupti.activity_flush_all(1)
    finally:
        _hears = None
        for kind in kinds:
            cupti.activity_disable(kind)


def _completed(records: list[Any]) -> None:
    if _hears:
        _hears(records)


def _cupti() -> ModuleType:
    """The module of cupti-python. Raises ToolMissing."""
    try:
        return importlib.import_module("cupti.cupti")
    except ImportError as error:
        raise ToolMissing(_say("missing", error=error, how=install_advice())) from error


def install_advice() -> str:
    """The command that installs cupti-python."""
    return f"`{paths.pip_install(device.trace_extra())}`"


def demangled(name: str) -> str:
    """`gemm<128>` for `_Z4gemmILi128EEvPf`: without type and parameters; as it is where it is no C++ name."""
    if not name.startswith("_Z"):
        return name
    try:
        demangle = ctypes.CDLL("libstdc++.so.6").__cxa_demangle
    except (OSError, AttributeError):
        return name
    demangle.restype, status = ctypes.c_void_p, ctypes.c_int(0)
    text = demangle(name.encode(), None, None, ctypes.byref(status))
    if status.value or not text:
        return name
    whole = ctypes.string_at(text).decode()  # a name is short, and freeing it is libc's business
    return _without_parameters(whole.removeprefix("void "))  # a kernel returns nothing


def _without_parameters(name: str) -> str:
    """`k<(Mode)1, f::operator()>` for `k<(Mode)1, f::operator()>(int)`: what stands before the parameters' parenthesis."""
    depth = 0  # of template arguments, which hold parentheses of their own
    for at, sign in enumerate(name):
        depth += (sign == "<") - (sign == ">" and name[at - 1 : at] != "-")
        # `(anonymous namespace)::k` begins with one, too.
        if sign == "(" and depth == 0 and re.fullmatch(r"[\w>]", name[at - 1 : at]):
            return name[:at]
    return name
