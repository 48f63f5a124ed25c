"""The ladder of transposes: how any of its kernels is launched, checked and compared.

A kernel `(in, out, rows, columns, pitch_in, pitch_out)` writes out = in^T, in float32: `in` has `rows` rows of `columns`
elements, one row `pitch_in` elements behind the other (`long long`, as `pitch_out`), and `out` has `columns` rows. Its
`@rung` line says how it is launched:

    block=32x8     threads of a block (x, y), or one number
    tile=32x8      columns x rows of the input that a block turns; the grid is one number of blocks, a block for each tile
    shared=16384   bytes of dynamic shared memory
    align=16       rows of both have to begin at multiples of so many bytes; other inputs are not checked
    group=all      one more argument, `int group`: rows of tiles in a band, as order.cuh counts them; a number, or all of them
"""

from collections.abc import Callable

import numpy as np

import cudatut as ct
from cudatut.book.rivals import torch_rival

FOLDER = "primitives/transpose"
MARK = np.float32(7)  # what lies between the rows, and stays


class Transpose:
    """out = in^T, of random float32 elements.

    rows, columns: any lengths, 0 included. more_in, more_out: elements between the end of a row and the next one.
    """

    def __init__(
        self,
        rows: int = 1024,
        columns: int = 1024,
        more_in: int = 0,
        more_out: int = 0,
        seed: int = 0,
    ):
        self.rows, self.columns = rows, columns
        self.pitch_in, self.pitch_out = columns + more_in, rows + more_out
        shape = (rows, self.pitch_in)
        self.host = ct.rng(seed).random(shape, dtype="float32")
        self.x = ct.to_device(self.host)
        self.out = ct.empty((columns, self.pitch_out), "float32")
        self.bytes, self.flops = 2 * 4 * rows * columns, None

    def launcher(self, rung: ct.Rung) -> Callable[[], object]:
        """A callable that transposes once. Raises ct.RungError for an input that the rung does not take."""
        if why := refuses(
            rung,
            self.rows,
            self.columns,
            self.pitch_in - self.columns,
            self.pitch_out - self.rows,
        ):
            raise ct.RungError(why)
        wide, high = rung.pair("tile")
        down = ct.cdiv(self.rows, high)
        grid = down * ct.cdiv(self.columns, wide)
        text = rung.options.get("block", "")
        block = rung.pair("block") if "x" in text else rung.number("block")
        group = rung.options.get("group")
        more = () if group is None else (down,)
        if group not in (None, "all"):
            more = (min(down, rung.number("group")),)
        kernel, shared = rung.compile(), rung.number("shared", 0)
        sizes = (self.rows, self.columns, self.pitch_in, self.pitch_out)
        if not grid:
            return lambda: None

        def run() -> None:
            kernel(
                self.x, self.out, *sizes, *more,
                grid=grid, block=block, shared=shared,
            )  # fmt: skip

        return run

    def check(self, rung: ct.Rung) -> None:
        """Transpose once between marks and compare with NumPy, the marks too; raises CheckError."""
        wanted = np.full((self.columns, self.pitch_out), MARK)
        if wanted.size:
            self.out.set(wanted)
        wanted[:, : self.rows] = self.host[:, : self.columns].T
        self.launcher(rung)()
        pitches = f"pitches {self.pitch_in} and {self.pitch_out}"
        name = f"{rung.name}, {self.rows} x {self.columns}, {pitches}"
        ct.check(self.out, wanted, name=name, rtol=0)

    def vendors(self) -> dict[str, Callable[[], object] | None]:
        """PyTorch, and a copy of as many bytes."""
        torch = torch_rival.rival(
            lambda torch, x, out: lambda: out.copy_(x.t()), self.x, self.out
        )
        return {"PyTorch": torch, "copy": ct.vendor.copy(self.out, self.x)}


def refuses(
    rung: ct.Rung,
    rows: int,
    columns: int,
    more_in: int = 0,
    more_out: int = 0,
    **_,
) -> str | None:
    """Why a kernel does not take rows that lie so; None where it does."""
    align = rung.number("align", 4)
    apart = (4 * (columns + more_in), 4 * (rows + more_out))
    return next(
        filter(None, (rung.takes_rows_at(align, b) for b in apart)), None
    )


def _rung(name: str, file: str, kernel: str, **options: str) -> ct.Rung:
    return ct.Rung(name, f"{FOLDER}/{file}.cu", kernel, options)


RAGGED = ((1, 1), (31, 33), (1, 257), (255, 1), (257, 255), (1001, 777))
# What the tiled kernels of the chapter have in common.
SQUARE = {"block": "32x32", "tile": "32x32"}
LADDER = ct.Ladder(
    "primitives",
    Transpose,
    trials=[  # rows at multiples of 16 bytes, which every kernel takes
        {
            "rows": rows,
            "columns": columns,
            "more_in": 4 - columns % 4,
            "more_out": 8 - rows % 4,
        }
        for rows, columns in ((64, 128), *RAGGED)
    ],
    more_trials=[
        {"rows": 0, "columns": 5},
        {"rows": 5, "columns": 0},
        *(
            {"rows": rows, "columns": columns, "more_in": more, "more_out": 3}
            for rows, columns in RAGGED
            for more in (0, 5)
        ),
    ],
    contest={"rows": 8192, "columns": 8192},
    refuses=refuses,
    folder="transpose",
    rungs=[
        _rung(
            "naive",
            "naive",
            "transpose_naive<float>",
            block="32x8",
            tile="32x8",
        ),
        _rung(
            "naive_columns",
            "naive",
            "transpose_naive_columns<float>",
            block="32x8",
            tile="8x32",
        ),
        _rung("tiled", "tiled", "transpose_tiled<float>", **SQUARE),
        _rung("padded", "tiled", "transpose_padded<float>", **SQUARE),
        _rung("swizzled", "tiled", "transpose_swizzled<float>", **SQUARE),
        _rung(
            "several",
            "several",
            "transpose_several<float,64,64,512>",
            block="512",
            tile="64x64",
            group="all",
        ),
        _rung(
            "vectors",
            "vectors",
            "transpose_vectors<float,64,64,256,0>",
            block="256",
            tile="64x64",
            shared="16384",
            align="16",
            group="all",
        ),
    ],
)
