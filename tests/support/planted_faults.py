"""The faults that a test on a GPU plants, read without importing it: it imports what a machine without a GPU lacks."""

import ast
from pathlib import Path
from typing import Any

GPU = Path(__file__).resolve().parents[1] / "gpu"


def of(file: str) -> dict[str, Any]:
    """FAULTS of a file of tests/gpu, by name."""
    (faults,) = (
        ast.literal_eval(node.value)
        for node in ast.parse((GPU / file).read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "FAULTS"
    )
    return faults
