"""The good calls of launchers, with arrays of exactly their sizes: what the sanitizers watch, since under them memory behind an
array is nobody's. tests/support has the tables.
"""

import os
from pathlib import Path

import launcher_tables
import numpy as np
from launcher_contents import ROWS, content

import cudatut as ct
from cudatut.gpu import ladder

RUNG = "rung "
SHAPES = [(40, 40, 72), (136, 264, 200)]


def multiply(name: str) -> None:
    """A rung's products, which are checked."""
    products = ladder.load_ladder("tensor")
    for shape in SHAPES:
        products.problem(*shape, integers=True).check(products[name])


def launch(names: list[str]) -> None:
    """'rung NAME' is that of the ladder of products on tensor cores, at shapes that end within tiles, pieces and stages.

    Where $CUDATUT_NOTE_KERNELS names a file, the kernels that ran are noted there (dealt.py).
    """
    if file := os.environ.get("CUDATUT_NOTE_KERNELS"):
        import dealt

        dealt.note_in(Path(file))
    cases = launcher_tables.cases(ROWS)
    for name in names:
        if name.startswith(RUNG):
            multiply(name.removeprefix(RUNG))
            continue
        rng = np.random.default_rng(5)
        arrays = {
            one: ct.to_device(content(name, one, spec.dtype, spec.shape, rng))
            for one, spec in cases[name].arrays.items()
        }
        cases[name].launch(arrays)
        ct.synchronize()
