"""Compare what a kernel wrote with a reference, and look for what a comparison alone would miss."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from cudatut import words
from cudatut.errors import CheckError
from cudatut.fingerprint import ran
from cudatut.gpu import memory
from cudatut.results import Check, show
from cudatut.tool import size

# Lengths that find off-by-one bounds: one element, one less and one more than a warp, and no multiple of anything; this
# one is smaller under a tool, which would take seconds over it, time and again.
RAGGED = (1, 31, 33, size(1_111_111, 11_111))

_RTOL = {"float16": 2e-3, "float32": 1e-5, "float64": 1e-12}
_PIECE = 1 << 16  # elements
_say = words.section("check")


def check(
    out: Any,
    expected: Any,
    name: str | None = None,
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """Show that `out` equals `expected`, or raise CheckError.

    out: GPUArray or host array of numbers. expected: host array of the same shape, or a scalar where `out` has one element.
    Integers must be equal. Of complex numbers both parts are compared, as if they were two. Floats are compared in float64: |out - expected| <= atol + rtol * |expected|, where rtol is
    1e-5 for float32 (2e-3 for float16, 1e-12 for float64) and atol a tenth of rtol times the largest |expected|, unless
    given; NaN matches only NaN, infinity only the same infinity.

    CheckError also for: elements that no kernel wrote (they still hold poison), a red zone that was written to, beside
    any live array of the process, and a wrong shape. An integer may be expected to be what the poison is, such as -1 or 255:
    where that is more than one element in 16, so that an output which nobody wrote could pass, it is a CheckError, which
    says how to choose another poison. Waits for the GPU, so errors of earlier launches surface here too.
    """
    ran.use("checking")
    label = name or _say("output")
    on_gpu = hasattr(out, "gpudata")
    if on_gpu and (damage := memory.damaged_zones()):
        raise outside(damage, label)
    got, want = np.asarray(out.get() if on_gpu else out), np.asarray(expected)
    if want.ndim == 0 and got.size == 1:
        want = want.reshape(got.shape)
    if got.shape != want.shape:
        raise CheckError(_of(label, "shape", got=got.shape, want=want.shape), "shape")
    if wrong := [str(one.dtype) for one in (got, want) if one.dtype.kind not in "biufc"]:
        raise CheckError(_of(label, "no numbers", types=_say("and").join(wrong)))
    poison = memory.poison_of(out) if on_gpu else None
    if "c" in got.dtype.kind + want.dtype.kind:
        got, want = _parts(got), _parts(want)

    if rtol is None:
        rtol = 0.0 if got.dtype.kind in "iub" else _RTOL.get(str(got.dtype), 1e-5)
    if atol is None:
        with np.errstate(invalid="ignore"):  # a NaN that signals is cast as one that does not
            largest = (_largest(np.abs(piece, dtype="float64")) for piece in _pieces(want))
            atol = 0.1 * rtol * max(largest) if rtol else 0.0
    # In pieces that stay in the cache: the arrays of float64 for a hundred million elements take seconds to make.
    pieces = [
        _compare(one, other, rtol, atol, poison)
        for one, other in zip(_pieces(got), _pieces(want), strict=True)
    ]
    right, errors, relative_errors, unclear = zip(*pieces)
    if not all(piece.all() for piece in right):
        good = np.concatenate(right).reshape(got.shape)
        raise _wrong(label, got, want, good, poison, rtol, atol)
    if sum(unclear) * 16 > got.size:
        raise CheckError(_of(label, "unclear", count=sum(unclear), size=got.size, poison=poison))
    show(
        Check(
            name=label,
            passed=True,
            n=int(got.size),
            max_abs_err=max(errors),
            max_rel_err=max(relative_errors),
            atol=float(atol),
            rtol=float(rtol),
        )
    )


def outside(damage: Sequence[str], label: str | None = None) -> CheckError:
    """The error of kernels that wrote into red zones, of which `damage` tells."""
    head = _say("outside") if label is None else _of(label, "outside")
    brief = _say("brief zone", head=head.rstrip(".。"), places="; ".join(damage[:2]))
    return CheckError("\n  ".join([head, *damage]), "zone", brief)


def _of(label: str, key: str, **values: Any) -> str:
    return _say("labeled", label=label, what=_say(key, **values))


def _pieces(array) -> Iterator[Any]:
    flat = array.reshape(-1)
    return (flat[start : start + _PIECE] for start in range(0, max(flat.size, 1), _PIECE))


def _parts(numbers):
    """Complex or real numbers as pairs of real ones, in one more axis at the end."""
    single = numbers.dtype in ("complex64", "float32", "float16")
    numbers = np.ascontiguousarray(numbers, "complex64" if single else "complex128")
    return numbers.reshape(*numbers.shape, 1).view(numbers.real.dtype)


def _compare(
    got, want, rtol: float, atol: float, poison: int | None
) -> tuple[Any, float, float, int]:
    """Which elements are right, the largest absolute and relative error, and how many are right but look unwritten.

    poison: the byte of an output on the GPU.
    """
    good = got == want
    untouched = np.zeros(good.shape, bool) if poison is None else memory.poisoned(got, poison)
    if got.dtype.kind == "b" and poison is not None and poison > 1:
        good &= ~untouched  # a bool that was written is 0 or 1
    if good.all():
        return good, 0.0, 0.0, int(untouched.sum())
    exact = got.dtype.kind in "iub" and rtol == atol == 0  # float64 does not hold every integer
    with np.errstate(invalid="ignore"):
        one, other = got.astype("float64"), want.astype("float64")
        magnitude = np.abs(other)
        same = good | (np.isnan(one) & np.isnan(other))
        error = np.where(same, 0.0, np.abs(one - other))
        relative = error / np.where(magnitude > 0, magnitude, np.inf)
        if not exact:
            good = same | (error <= atol + rtol * magnitude) & np.isfinite(other)
    if got.dtype.kind == "f":
        good &= ~untouched  # a poison NaN must not pass for a NaN of the reference
    return good, _largest(error), _largest(relative), int((untouched & good).sum())


def _largest(values) -> float:
    """The largest finite value; 0 without any."""
    return float(np.max(values, where=np.isfinite(values), initial=0.0))


def _wrong(label: str, got, want, good, poison: int | None, rtol: float, atol: float) -> CheckError:
    wrong = np.argwhere(~good)
    head = _of(label, "wrong", count=len(wrong), size=got.size)
    lines, guard, brief = [_say("within", what=head, rtol=rtol, atol=atol)], "values", ""
    ends = {"first": wrong[0]} | ({"last": wrong[-1]} if len(wrong) > 1 else {})
    for which, place in ends.items():
        at = tuple(map(int, place))
        index = at[0] if len(at) == 1 else at
        values = _say("values", got=got[at], want=want[at])
        lines.append(_say(which, index=index, values=values))
        brief = brief or _say("brief", head=head, index=index, values=values)
    unwritten = 0 if poison is None else int((memory.poisoned(got, poison) & ~good).sum())
    nans = int((np.isnan(got) & ~good).sum()) - unwritten if got.dtype.kind == "f" else 0
    if nans > 0:
        guard = "nan"
    if unwritten:
        guard = "poison"
        lines.append(_say("unwritten", count=unwritten))
    if nans > 0:
        lines.append(_say("nan", count=nans))
    return CheckError("\n".join(lines), guard, brief)
