"""The names of the kernels that a launch runs: which of its many kernels a library has chosen."""

from collections.abc import Callable
from typing import Any

from cudatut import tool
from cudatut.errors import ToolMissing
from cudatut.gpu import cupti


def kernels_of(launch: Callable[[], object]) -> list[str] | None:
    """The kernels that a launch runs, each once, in the order in which they first ran.

    None where nobody can tell: without cupti-python, and while another listens (a tool, `python -m cudatut trace`).
    """
    if tool.running() or cupti.listening():
        return None
    found: list[tuple[int, str]] = []

    def hear(records: list[Any]) -> None:
        found.extend((record.start, record.name) for record in records)

    try:
        with cupti.listen([cupti.KERNEL], hear):
            launch()
    except ToolMissing:
        return None
    return list(dict.fromkeys(cupti.demangled(name) for _, name in sorted(found)))
