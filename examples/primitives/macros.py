"""Kernels with macros, compiled side by side."""

from collections.abc import Iterable

import cudatut as ct


class Macros(dict):
    """Macros of a kernel, which ct.compile_ahead can tell from others."""

    def __hash__(self) -> int:  # type: ignore[override] # not changed once made
        return hash(frozenset(self.items()))


def compile_ahead(kernels: Iterable[tuple[str, str, dict]]) -> None:
    """Compiles kernels side by side, and loads none: of each its file, its name
    and its macros. One that does not compile says so when it is asked for."""
    ct.compile_ahead((file, name, Macros(own)) for file, name, own in kernels)
