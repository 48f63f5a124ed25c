"""Both tables of launchers, whose modules lie among the examples and find each other by name."""

import sys

import llm_launchers
import product_launchers
from launcher_cases import Case

from cudatut.paths import examples_dir

for part in ("tensor", "gemm", "llm"):
    sys.path.insert(0, str(examples_dir() / part))


def cases(n: int) -> dict[str, Case]:
    """By name, with n rows."""
    return llm_launchers.cases(n) | product_launchers.cases(n)
