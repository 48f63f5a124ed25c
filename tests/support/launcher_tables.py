"""All tables of launchers."""

import element_launchers
import llm_launchers
import product_launchers
from launcher_cases import Case

# How the names of those begin whose kernels are Hopper's.
NEEDS_HOPPER = (
    *("gemm,", "gemm with", "tf32", "fp8", "grouped", "a list", "stored", "added", "gated"),
    *("flash_hopper", "softmax, cluster", "transpose, tma", "linear, {'add': True, 'split'"),
)


def cases(n: int) -> dict[str, Case]:
    """By name, with n rows."""
    tables = llm_launchers, product_launchers, element_launchers
    return {name: case for table in tables for name, case in table.cases(n).items()}
