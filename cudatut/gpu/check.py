"""Compare what a kernel wrote with a reference, and look for what a comparison alone would miss."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cudatut.errors import CheckError
from cudatut.gpu import memory
from cudatut.results import Check, show
from cudatut.tool import size

# Lengths that find off-by-one bounds: one element, one less and one more than a warp, and no multiple of anything; this
# one is smaller under a tool, which would take seconds over it, time and again.
RAGGED = (1, 31, 33, size(1_111_111, 11_111))

_RTOL = {"float16": 2e-3, "float32": 1e-5, "float64": 1e-12}


def check(
    out: Any,
    expected: Any,
    name: str | None = None,
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """Show that `out` equals `expected`, or raise CheckError.

    out: GPUArray or host array. expected: host array of the same shape, or a scalar where `out` has one element.
    Integers must be equal. Floats are compared in float64: |out - expected| <= atol + rtol * |expected|, where rtol is
    1e-5 for float32 (2e-3 for float16, 1e-12 for float64) and atol a tenth of rtol times the largest |expected|, unless
    given; NaN matches only NaN, infinity only the same infinity.

    CheckError also for: elements that no kernel wrote (they still hold poison), a red zone that was written to, beside
    any live array of the process, and a wrong shape. Waits for the GPU, so errors of earlier launches surface here too.
    """
    import numpy as np

    label = name or "output"
    on_gpu = hasattr(out, "gpudata")
    if on_gpu and (damage := memory.damaged_zones()):
        raise CheckError(
            f"check {label}: a kernel wrote outside its arrays.\n  " + "\n  ".join(damage)
        )
    got, want = np.asarray(out.get() if on_gpu else out), np.asarray(expected)
    if want.ndim == 0 and got.size == 1:
        want = want.reshape(got.shape)
    if got.shape != want.shape:
        raise CheckError(
            f"check {label}: the output has shape {got.shape}, the reference {want.shape}"
        )

    rtol = _rtol(got.dtype) if rtol is None else rtol
    if atol is None:
        atol = 0.1 * rtol * _scale(want) if rtol else 0.0
    # In pieces that stay in the cache: the arrays of float64 for a hundred million elements take seconds to make.
    pieces = [
        _compare(one, other, rtol, atol, on_gpu)
        for one, other in zip(_pieces(got), _pieces(want), strict=True)
    ]
    result = Check(
        name=label,
        passed=all(piece.passed for piece in pieces),
        n=int(got.size),
        max_abs_err=max((piece.error for piece in pieces), default=0.0),
        max_rel_err=max((piece.relative for piece in pieces), default=0.0),
        atol=float(atol),
        rtol=float(rtol),
    )
    if not result.passed:
        good = np.concatenate([piece.good for piece in pieces]).reshape(got.shape)
        raise CheckError(_explain(label, got, want, good, on_gpu, rtol, atol))
    show(result)


_PIECE = 1 << 16  # elements


def _pieces(array) -> Iterator[Any]:
    flat = array.reshape(-1)
    return (flat[start : start + _PIECE] for start in range(0, flat.size, _PIECE))


def _rtol(dtype) -> float:
    return 0.0 if dtype.kind in "iub" else _RTOL.get(str(dtype), 1e-5)


def _scale(want) -> float:
    """The largest finite magnitude."""
    import numpy as np

    return max((_largest(np.abs(piece, dtype="float64")) for piece in _pieces(want)), default=0.0)


@dataclass(frozen=True)
class _Compared:
    """What became of a piece: which elements are right, and its largest errors."""

    good: Any
    error: float = 0.0
    relative: float = 0.0

    @property
    def passed(self) -> bool:
        return bool(self.good.all())


def _compare(got, want, rtol: float, atol: float, on_gpu: bool) -> _Compared:
    import numpy as np

    good = got == want
    if good.all():
        return _Compared(good)
    if got.dtype.kind in "iub" and rtol == atol == 0:
        error = np.where(good, 0.0, np.abs(got.astype("float64") - want.astype("float64")))
    else:
        good, error = _close(got.astype("float64"), want.astype("float64"), rtol, atol)
    if on_gpu and got.dtype.kind == "f":
        good &= ~memory.poisoned(got)  # a poison NaN must not pass for a NaN of the reference
    magnitude = np.abs(want, dtype="float64")
    with np.errstate(invalid="ignore"):
        relative = error / np.where(magnitude > 0, magnitude, np.inf)
    return _Compared(good, _largest(error), _largest(relative))


def _close(got, want, rtol: float, atol: float):
    import numpy as np

    with np.errstate(invalid="ignore"):
        same = (got == want) | (np.isnan(got) & np.isnan(want))
        error = np.where(same, 0.0, np.abs(got - want))
        return same | (error <= atol + rtol * np.abs(want)) & np.isfinite(want), error


def _largest(values) -> float:
    import numpy as np

    values = values[np.isfinite(values)]
    return float(values.max()) if values.size else 0.0


def _explain(label: str, got, want, good, on_gpu: bool, rtol: float, atol: float) -> str:
    import numpy as np

    wrong = np.argwhere(~good)
    first = tuple(int(i) for i in wrong[0])
    where = first[0] if len(first) == 1 else first
    lines = [
        f"check {label}: {len(wrong)} of {got.size} elements are wrong (rtol {rtol:.3g}, atol {atol:.3g})",
        f"  first at index {where}: got {got[first]!s}, expected {want[first]!s}",
    ]
    if len(wrong) > 1:
        last = tuple(int(i) for i in wrong[-1])
        lines.append(
            f"  last at index {last[0] if len(last) == 1 else last}: got {got[last]!s}, expected {want[last]!s}"
        )
    unwritten = int((memory.poisoned(got) & ~good).sum()) if on_gpu else 0
    if unwritten:
        lines.append(f"  {unwritten} of them were never written: they still hold ct.empty's poison")
    if got.dtype.kind == "f":
        nans = int((np.isnan(got) & ~good).sum()) - unwritten
        if nans > 0:
            lines.append(f"  {nans} of them are NaN")
    return "\n".join(lines)
