"""The launchers of primitives/fusion and primitives/random; see launcher_cases.py."""

from launcher_cases import FLOATS, Case, Spec, f32, place

from cudatut.book.primitives.fusion import launch as fusion
from cudatut.book.primitives.random import launch as random


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
        for launcher, kernels in ((fusion.bias_gelu_residual, 1), (fusion.three_kernels, 3)):
            case(
                f"{launcher.__name__}, {dtype}", launcher,
                lambda a, launcher=launcher: launcher(a["x"], a["bias"], a["residual"], a["out"])(), arrays,
                kernels=kernels, over=frozenset({("out", "x"), ("out", "residual")}),
            )  # fmt: skip
    for kind in random.KINDS:
        numbers = f32(n, 40, written=True, free=(0, 1, None))
        if kind == "words":
            numbers = numbers._replace(dtype="uint32")
        case(
            f"fill, {kind}", random.fill, lambda a, kind=kind, **more: random.fill(a["out"], kind, **more)(),
            {"out": numbers}, most=random.MOST,
        )  # fmt: skip
    return found
