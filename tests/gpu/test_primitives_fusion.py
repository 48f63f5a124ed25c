"""Element-wise kernels: every length, address and type, in place; planted faults; the fuser's kernels."""

import gc
import math
import weakref

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.numbers.bf16 import to_bf16, to_float
from cudatut.book.primitives.fusion import fuse, launch
from cudatut.book.primitives.random import launch as random
from cudatut.book.primitives.transpose import launch as turn
from cudatut.paths import examples_dir

LENGTHS = (0, 2, 3, 4, 7, 8, 9, 2047, 2048, 2049, *ct.RAGGED)
FP32 = {"erf": 1e-6, "erf, fast": 2e-6, "tanh": 5e-4, "tanh, fast": 5e-4}
erfc = np.vectorize(math.erfc, otypes=["float64"])


def exact(x):
    return 0.5 * x * erfc(-x.astype("float64") / math.sqrt(2))


def drawn(shape, bf16, seed=0):
    """Numbers on the host, and what they are as float32."""
    x = 3 * ct.rng(seed).standard_normal(shape, dtype="float32")
    given = to_bf16(x) if bf16 else x
    return given, to_float(given) if bf16 else x


def placed(host, begin=0):
    """On the GPU, so many elements behind a multiple of 16 bytes."""
    room = ct.empty(host.size + begin, host.dtype)[begin:]
    if host.size:
        room.set(host.reshape(-1))
    return room.reshape(host.shape)


def values(out):
    return to_float(out.get()) if out.dtype == np.uint16 else out.get()


def close(out, wanted, atol):
    """bf16: rounded once more, by at most 2^-8 of the value."""
    ct.check(values(out), wanted, atol=atol, rtol=2**-8 if out.dtype == np.uint16 else 1e-6)


@pytest.mark.parametrize(
    "taken, build",
    [
        ("x out", launch.gelu),
        ("x out", lambda x, out: launch.three_kernels(x, x[0], x, out)),
        ("x out", lambda x, out: fuse.Fused(lambda x: x + 1).launcher(x, out=out)),
        ("x out", turn.naive),
        ("x out", turn.vectors),
        ("out", lambda x, out: turn.in_place(out)),
        ("out", lambda x, out: random.fill(out, "uniform")),
    ],
)
def test_what_launches_keeps_its_arrays(taken, build):
    """An address keeps no array alive: freed, its memory is another's, or nobody's."""
    arrays = {
        "x": ct.to_device(np.zeros((64, 64), "float32")),
        "out": ct.to_device(np.zeros((64, 64), "float32")),
    }
    alive = {name: weakref.ref(one) for name, one in arrays.items()}
    run = build(**arrays)
    arrays.clear()
    gc.collect()
    assert [name for name, one in alive.items() if one() is not None] == taken.split()
    run()
    ct.synchronize()
    del run
    gc.collect()
    assert not any(one() is not None for one in alive.values())


@pytest.mark.parametrize("bf16", [False, True])
@pytest.mark.parametrize("op", launch.OPS)
def test_gelu_of_every_length_and_address(op, bf16):
    for n in LENGTHS:
        host, seen = drawn(n, bf16, n)
        wanted = exact(seen)
        for begin in (0, 1, 2, 4):
            out = placed(host, begin)
            launch.gelu(out, out, op)()
            close(out, wanted, FP32[op])
        out = placed(np.zeros_like(host), 1)
        launch.gelu(placed(host), out, op)()
        close(out, wanted, FP32[op])


def test_what_is_no_number_and_what_is_large():
    x = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e30, -1e30, 88, -88, 200, -200], "float32")
    for op in launch.OPS:
        out = ct.empty(x.size, "float32")
        launch.gelu(ct.to_device(x), out, op)()
        got = out.get()
        assert got[0] == np.inf and np.isnan(got[2]), op
        assert (got[3:5] == 0).all() and got[5] == np.float32(1e30), op
        assert np.allclose(got[[7, 9]], x[[7, 9]]) and np.allclose(
            got[[6, 8, 10]], 0, atol=1e-30
        ), op


@pytest.mark.parametrize("each, block", [(1, 32), (1, 1024), (4, 256), (2, 64)])
def test_other_shapes_of_launches(each, block):
    host, seen = drawn(100_003, False)
    out = ct.empty(host.size, "float32")
    launch.gelu(ct.to_device(host), out, each=each, block=block)()
    close(out, exact(seen), 1e-6)
    ct.poison(out)
    launch.gelu(ct.to_device(host), out, block=block, one=True)()
    close(out, exact(seen), 1e-6)


@pytest.mark.parametrize("bf16", [False, True])
@pytest.mark.parametrize(
    "shape", [(0, 8), (1, 1), (3, 5), (7, 6), (33, 8), (5, 4096), (129, 1000), (1, 100_001)]
)
def test_bias_gelu_residual(shape, bf16):
    x, seen = drawn(shape, bf16, 1)
    bias, b = drawn(shape[1], bf16, 2)
    residual, r = drawn(shape, bf16, 3)
    wanted = exact(seen + b) + r
    for over in (None, "x", "residual"):
        arrays = {"x": placed(x), "residual": placed(residual)}
        out = arrays[over] if over else ct.empty(shape, x.dtype)
        launch.bias_gelu_residual(arrays["x"], placed(bias), arrays["residual"], out)()
        if shape[0]:
            # What cancels in the last addition leaves the rounding of the terms.
            close(out, wanted, 4e-6)
    out = ct.empty(shape, x.dtype)
    launch.three_kernels(placed(x), placed(bias), placed(residual), out)()
    if shape[0]:  # bf16: rounded three times
        size = np.abs(wanted).max() + np.abs(seen).max() + np.abs(r).max()
        ct.check(values(out), wanted, atol=(2**-6 if bf16 else 1e-6) * size, rtol=0)


def test_planted_faults_are_noticed():
    """A tail that is one element short, a vector too few, another constant."""
    text = (examples_dir() / launch.SOURCE).read_text()
    text = text.replace('#include "', '#include "primitives/fusion/')
    name, n = "gelu<float,4,2,256,0>", 10_003
    host, seen = drawn(n, False)
    faults = {
        "": "",
        "tail < n)\n": "tail < n - 1)\n",
        "if (first + e * BLOCK < vectors) to[": "if (first + e * BLOCK < vectors - 1) to[",
        "rounded<T>(gelu_of<OP>(to_float(v[e].at[k])))": "rounded<T>(gelu_of<1>(to_float(v[e].at[k])))",
    }
    for right, wrong in faults.items():
        assert right in text
        kernel = ct.Kernel(text.replace(right, wrong) if right else text, name)
        out = ct.empty(n, "float32")
        kernel(ct.to_device(host), out, n, grid=ct.cdiv(n, 2048), block=256)
        if right:
            with pytest.raises(ct.CheckError):
                close(out, exact(seen), 1e-6)
        else:
            close(out, exact(seen), 1e-6)


def layer(x, bias, scale, residual):
    y = x * scale + bias
    return fuse.where(y > 0.5, fuse.gelu(y), fuse.tanh(y)) * fuse.silu(residual) + fuse.sqrt(
        fuse.absolute(x)
    )


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (33, 8), (129, 1000), (7, 4098)])
def test_the_fuser_with_rows_columns_numbers_and_both_types(shape, fast):
    made = fuse.Fused(layer, fast=fast)
    for bf16 in (False, True):
        x, seen = drawn(shape, bf16, 1)
        bias, b = drawn(shape[1], bf16, 2)
        residual, r = drawn((shape[0], 1), bf16, 3)
        out = ct.empty(shape, "float32")
        made(placed(x), placed(bias), 1.25, placed(residual), out=out)
        wanted = layer(seen.astype("float64"), b.astype("float64"), 1.25, r.astype("float64"))
        ct.check(out, wanted, rtol=1e-5, atol=2e-5)


def test_the_fuser_of_views_that_begin_anywhere_and_in_place():
    made = fuse.Fused(lambda x, y: x * y + 1.0)
    for n in LENGTHS[1:]:
        x, y = ct.rng(n).standard_normal((2, n), dtype="float32")
        a, b = placed(x, 1), placed(y, 3)
        made(a, b, out=a)
        ct.check(a, x * y + np.float32(1), rtol=1e-6, atol=1e-6)


def test_what_the_fuser_refuses():
    made = fuse.Fused(lambda x, y: x + y)
    x, out = ct.empty((4, 8), "float32"), ct.empty((4, 8), "float32")
    for arrays, kind in (
        ((x,), TypeError), ((x, ct.empty(4, "float32")), ValueError), ((x, ct.empty((4, 8), "float64")), TypeError),
        ((x, np.zeros((4, 8), "float32")), TypeError),
    ):  # fmt: skip
        with pytest.raises(kind):
            made(*arrays, out=out)
    row = ct.empty(8, "float32")
    with pytest.raises(ValueError):
        made(x, row, out=row.reshape(1, 8))
