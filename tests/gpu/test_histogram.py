"""The three histograms on a real GPU: ragged lengths, uniform and one-hot data, sanitizers."""

import numpy as np
import pytest

import cudatut as ct
from cudatut.gpu import sanitizer
from cudatut.tool import SANITIZERS

KERNELS = ("global", "shared", "private")


def count(name: str, host: np.ndarray, grid: int, block: int) -> None:
    kernel = ct.Kernel(
        "reduction/histogram/histogram.cu", f"histogram_{name}", defines={"BLOCK": block}
    )
    counts = ct.to_device(np.zeros(256, "uint32"))
    kernel(ct.to_device(host), counts, host.size, grid=grid, block=block)
    ct.check(
        counts, np.bincount(host, minlength=256).astype("uint32"), name=f"{name}, n = {host.size}"
    )


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("n", [0, 15, 16, 17, *ct.RAGGED])
def test_ragged_lengths(name, n):
    for grid, block in ((1, 64), (7, 256), (264, 1024)):
        count(name, ct.rng(n).integers(0, 256, n, dtype="uint8"), grid, block)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("value", [0, 77, 255])
def test_one_hot(name, value):
    count(name, np.full(1_000_003, value, "uint8"), 264, 1024)


def test_cub_counts_the_same():
    host = ct.rng(3).integers(0, 256, 1_000_003, dtype="uint8")
    vendor = ct.vendor.histogram(ct.to_device(host))
    vendor()
    ct.check(vendor.out, np.bincount(host, minlength=256).astype("uint32"))


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_cub_sums_the_same(dtype):
    host = ct.rng(3).integers(-9, 9, 1_000_003).astype(dtype)
    vendor = ct.vendor.sum(ct.to_device(host))
    vendor()
    ct.check(vendor.out, host.sum(dtype="float64").astype(dtype))


@pytest.mark.parametrize("tool", SANITIZERS)
def test_clean_under(tool, tmp_path):
    script = tmp_path / "histograms.py"
    script.write_text(
        "import numpy as np, cudatut as ct\n"
        "for name in ('global', 'shared', 'private'):\n"
        "    kernel = ct.Kernel('reduction/histogram/histogram.cu', f'histogram_{name}')\n"
        "    for n in (1, 33, 100_003):\n"
        "        host, counts = ct.rng(n).integers(0, 256, n, dtype='uint8'), ct.to_device(np.zeros(256, 'uint32'))\n"
        "        kernel(ct.to_device(host), counts, n, grid=5, block=1024)\n"
        "        ct.check(counts, np.bincount(host, minlength=256).astype('uint32'))\n"
    )
    found = sanitizer.run(script, tool)
    assert found.errors == 0, found.log
