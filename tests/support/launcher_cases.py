"""What a test knows of a launcher: a good call on few rows, which arrays it writes, and which views it takes.

Specifications only: a test makes the arrays. The tables are llm_launchers.py and product_launchers.py; a new launcher needs
an entry, and `tests/launchers/test_what_launchers_want.py` looks for all of them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

FLOATS = "float32", "uint16"


class Spec(NamedTuple):
    """An array of a good call. The rest is what a launcher may take instead.

    written: it is. align: bytes at a multiple of which it begins, and its rows where they lie apart. rows: leading axes
    that may lie apart, 0 for a contiguous one. free: axes whose extent nothing else decides; None among them: the rank
    neither. kinds: dtypes that would do. optional: None would.
    """

    dtype: str
    shape: tuple[int, ...]
    written: bool = False
    align: int = 1
    rows: int = 0
    free: tuple[int | None, ...] = ()
    kinds: tuple[str, ...] = ()
    optional: bool = False


@dataclass(frozen=True)
class Call:
    """A function that takes arrays by their names, and its other arguments in a good call."""

    function: Callable[..., Any]
    numbers: dict[str, Any]

    def __call__(self, arrays: dict[str, Any], **numbers: Any) -> Any:
        """numbers: instead of those of the good call."""
        return self.function(**arrays, **self.numbers | numbers)


@dataclass(frozen=True)
class Case:
    """launcher: as `place` says. launch: takes the arrays by name. kernels: launches of a good call, at least. empty: with
    no rows; None: then it refuses. most: rows; it refuses more. over: pairs of arrays, of which the first may be the second, the same elements. apart:
    pairs of arrays whose rows lie equally far apart.
    """

    launcher: str
    launch: Callable[..., Any]
    arrays: dict[str, Spec]
    kernels: int = 1
    empty: int | None = 0
    over: frozenset = field(default_factory=frozenset)
    apart: tuple[tuple[str, str], ...] = ()
    most: int = (1 << 31) - 1

    @property
    def module(self) -> str:
        """Of the launcher."""
        return self.launcher.rpartition(".")[0]


def place(launcher: Callable[..., Any]) -> str:
    """A launcher's module and name, below examples/: 'llm.kernels.activation.swiglu'."""
    return f"{launcher.__module__.removeprefix('cudatut.book.')}.{launcher.__name__}"


def i32(*shape, **more):
    return Spec("int32", shape, **more)


def f32(*shape, **more):
    return Spec("float32", shape, **more)


def bf16(*shape, **more):
    return Spec("uint16", shape, **more)
