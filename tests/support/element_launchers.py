"""The launchers of primitives/fusion, primitives/random and primitives/transpose; see launcher_cases.py."""

from launcher_cases import FLOATS, Case, Spec, f32, place

from cudatut.book.primitives.fusion import launch as fusion
from cudatut.book.primitives.random import launch as random
from cudatut.book.primitives.transpose import launch as turn

TYPES = (
    "float16",
    "uint16",
    "int16",
    "int32",
    "uint32",
    "float32",
    "float64",
    "int64",
    "uint8",
    "int8",
)


def cases(n: int) -> dict[str, Case]:
    """By a name of each: with n rows."""
    found = {}

    def case(name, launcher, launch, arrays, **more):
        found[name] = Case(place(launcher), launch, arrays, **more)

    for dtype in FLOATS:
        matrix = Spec(dtype, (n, 40))
        to = matrix._replace(written=True)
        for one in (False, True):
            case(
                f"gelu, {dtype}, {one=}", fusion.gelu,
                lambda a, one=one: fusion.gelu(a["x"], a["out"], one=one)(), {"x": matrix, "out": to},
                over=frozenset({("out", "x")}), most=fusion.MOST,
            )  # fmt: skip
        arrays = {"x": matrix, "bias": Spec(dtype, (40,)), "residual": matrix, "out": to}
        for launcher, kernels, over in (
            (fusion.bias_gelu_residual, 1, ("x", "residual")),
            (fusion.three_kernels, 3, ("x",)),
        ):
            case(
                f"{launcher.__name__}, {dtype}", launcher,
                lambda a, launcher=launcher: launcher(a["x"], a["bias"], a["residual"], a["out"])(), arrays,
                kernels=kernels, over=frozenset(("out", name) for name in over),
            )  # fmt: skip
    for kind in random.KINDS:
        numbers = f32(n, 40, written=True, free=(0, 1, None))
        if kind == "words":
            numbers = numbers._replace(dtype="uint32")
        case(
            f"fill, {kind}", random.fill, lambda a, kind=kind, **more: random.fill(a["out"], kind, **more)(),
            {"out": numbers}, most=random.MOST,
        )  # fmt: skip

    def turned(name, launcher, dtype="float32", per=1, align=1, **how):
        case(
            f"transpose, {name}", launcher, lambda a: launcher(a["x"], a["out"], **how)(),
            {"x": Spec(dtype, (per * n, 48), rows=1, align=align), "out": Spec(dtype, (48, per * n), True, rows=1, align=align)},
        )  # fmt: skip

    for columns in (False, True):
        turned(f"naive, {columns=}", turn.naive, columns=columns)
    for kind in ("tiled", "padded", "swizzled"):
        turned(kind, turn.tiled, kind=kind)
    turned("several", turn.several, tile=(32, 32), threads=256)
    for dtype in ("uint8", "uint16", "float32", "float64"):
        turned(f"chosen, {dtype}", turn.transpose, dtype)
        turned(f"aligned, {dtype}", turn.aligned, dtype)
        turned(f"vectors, {dtype}", turn.vectors, dtype, per=16, align=16)
    for walk in (False, True):
        turned(f"tma, {walk=}", turn.tma, per=4, align=16, walk=walk)
    for wide, both in ((False, True), (True, True), (True, False)):
        side = (4 * n, 4 * n) if wide else (n, n)
        case(
            f"transpose in place, {wide=}, {both=}", turn.in_place,
            lambda a, wide=wide, both=both: turn.in_place(a["x"], wide=wide, both=both)(),
            {"x": Spec("float32", side, True, rows=1, align=16 if wide else 1, kinds=TYPES)},
        )  # fmt: skip
    return found
