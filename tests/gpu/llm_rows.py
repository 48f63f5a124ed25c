"""What the tests of kernels for rows share: bfloat16 as uint16, strided rows, and what an error may be."""

import numpy as np

import cudatut as ct

HALF_ULP = 2.0**-8  # of bfloat16, at most, relative to the number


def to_bf16(x):
    """Rounded to the nearest, ties to even; the top half of a float32."""
    bits = np.ascontiguousarray(x, "float32").view("uint32")
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("uint16")
    return np.where(np.isnan(x), np.uint16(0x7FC0), rounded)


def from_bf16(x):
    """In float64."""
    return (x.astype("uint32") << 16).view("float32").astype("float64")


def stored(x, kind):
    """x as `kind` ('float32' or 'bf16') has it: what is stored, and its value in float64."""
    if kind == "bf16":
        return to_bf16(x), from_bf16(to_bf16(x))
    return x.astype("float32"), x.astype("float32").astype("float64")


def value(array):
    """A host array of either kind in float64."""
    return from_bf16(array) if array.dtype == np.uint16 else array.astype("float64")


def padded(host, pad, fill=0xFF):
    """On the GPU, with `pad` elements more per row, all bits of which are set: NaN. The view and the whole array."""
    rows, width = host.shape
    wide = np.full((rows, width + pad), -1).astype(host.dtype) if host.dtype == np.uint16 else None
    if wide is None:
        wide = np.full((rows, width + pad), np.nan, host.dtype)
    wide[:, :width] = host
    whole = ct.to_device(wide)
    return (whole[:, :width] if pad else whole), whole


def assert_close(got, want, absolute, relative=HALF_ULP * 1.01):
    """got: host array; want: float64. Rounded once to bfloat16, `relative` is what that costs."""
    got = value(got)
    assert got.shape == want.shape
    wrong = ~(np.abs(got - want) <= absolute + relative * np.abs(want))
    if wrong.any():
        at = tuple(np.argwhere(wrong)[0])
        raise AssertionError(
            f"{wrong.sum()} of {wrong.size} are wrong; at {at}: {got[at]}, not {want[at]}"
        )
