"""The vendor's rivals, as far as they go without a GPU: CUB's wrapper compiles with the nvcc that is here."""

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

import cudatut
from cudatut import ToolMissing, timing, vendor
from cudatut.nvcc import find_nvcc


def test_the_wrapper_of_cub_compiles(tmp_path):
    try:
        nvcc = find_nvcc()
    except ToolMissing as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    source = Path(cudatut.__file__).with_name("vendor_cub.cu")
    command = [nvcc, "-std=c++17", "-arch=sm_90", "-c", "-o", tmp_path / "cub.o", source]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("a", "b", "c", "options", "message"),
    [
        ((3, 4), (5, 6), (3, 6), {}, "3 x 4 and op.b. is 5 x 6"),
        ((3, 4), (4, 6), (6, 3), {}, "do not fit c"),
        ((4, 3), (4, 6), (3, 6), {}, "4 x 3"),
        ((4, 3), (4, 6), (3, 5), {"transpose_a": True}, "3 x 4"),
        ((3, 4), (6, 4), (3, 5), {"transpose_b": True}, "4 x 6"),
        ((3,), (3, 6), (1, 6), {}, "a has shape"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(a, b, c, options, message):
    arrays = (np.zeros(shape, "float32") for shape in (a, b, c))
    with pytest.raises(ValueError, match=message):
        vendor.gemm(*arrays, **options)


def test_gemm_takes_float32_only():
    a = np.zeros((2, 2), "float16")
    with pytest.raises(TypeError, match="a is float16"):
        vendor.gemm(a, a, a)


def test_a_rival_that_is_not_the_vendors(monkeypatch):
    """CuPy's generated kernels are timed beside ours; no ratio "to the vendor" comes of it."""

    class CuPy:
        asarray = staticmethod(lambda array: array)
        add = staticmethod(lambda a, b, out: "added")

    monkeypatch.setattr(vendor, "_cupy", lambda: CuPy)
    rival = vendor.add(1, 2, 3)
    assert rival() == "added"
    assert rival.vendor is False
    assert vendor.Vendor(rival).vendor is True
    rows = timing._result("add", {"ours": object(), "CuPy": rival}, {"ours": [2.0], "CuPy": [1.0]},
                          None, None, 1, None).rows_  # fmt: skip
    assert [(row.vendor, row.ratio_to_vendor) for row in rows] == [(False, None)] * 2
