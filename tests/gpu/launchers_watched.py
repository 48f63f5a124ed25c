"""`python tests/gpu/launchers_watched.py NAME ...`: the good calls of launchers, with arrays of exactly their sizes.

'rung NAME' is that of the ladder of products on tensor cores, at shapes that end within tiles, pieces and stages. That is what the sanitizers watch: under them, memory behind an array is nobody's. tests/support has the tables. Where
$CUDATUT_NOTE_KERNELS names a file, the kernels that ran are noted there (dealt.py).
"""

import os
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]


RUNG = "rung "
SHAPES = [(40, 40, 72), (136, 264, 200)]


def multiply(name: str) -> None:
    """A rung's products, which are checked."""
    from cudatut.gpu import ladder

    products = ladder.load_ladder("tensor")
    for shape in SHAPES:
        products.problem(*shape, integers=True).check(products[name])


def main(names: list[str]) -> None:
    import launcher_tables
    from launcher_contents import ROWS, content

    import cudatut as ct

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


if __name__ == "__main__":
    if file := os.environ.get("CUDATUT_NOTE_KERNELS"):
        import dealt

        dealt.note_in(Path(file))
    main(sys.argv[1:])
