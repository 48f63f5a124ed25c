"""examples/tensor/gemm/tf32.cu without a GPU: what its descriptors read, what one may expect of a product, and its plans."""

import ctypes
import re

import numpy as np
import pytest
from on_gpu import Told

from cudatut.book.tensor.gemm import gemm, tf32_product
from cudatut.book.tensor.wgmma import layouts
from cudatut.paths import examples_dir

CU = (examples_dir() / "tensor/gemm/tf32.cu").read_text()
CUH = (examples_dir() / "ptx/tf32_wgmma.cuh").read_text()


def image(lines):
    """Shared memory, words of 32 bits: lines of 32 of them, as the TMA brings a box with its swizzle of 128 bytes."""
    out = np.empty(lines.size, lines.dtype)
    out[layouts.swizzled(4 * np.arange(lines.size)) // 4] = lines.reshape(-1)
    return out


def read(memory, extent, stride=1024, further=32):
    """A factor, extent x 32, as four wgmma of 8 steps read it along the depth: rows of eight lines, words of 4 bytes."""
    line, depth = np.indices((extent, 32))
    plain = line % 8 * 128 + line // 8 * stride + depth % 8 * 4 + depth // 8 * further
    word = layouts.swizzled(plain) // 4
    return np.where(word < memory.size, memory[np.minimum(word, memory.size - 1)], 0)


@pytest.mark.parametrize("extent", [64, 128, 256])
def test_the_descriptors_read_the_factor(extent):
    rng = np.random.default_rng(0)
    factor = rng.integers(1, 1 << 32, (extent, 32), dtype="uint32")
    memory = image(factor)
    np.testing.assert_array_equal(read(memory, extent), factor)
    assert (read(memory, extent, stride=2048) != factor).any()
    assert (read(memory, extent, further=64) != factor).any()
    # These are the numbers of the kernel: `at(i * 32)`, a quarter of a line, and Descriptor's own 1024.
    assert "of_a.at(i * 32), of_b.at(i * 32)" in CUH and "i < DEPTH / 8" in CUH
    assert "unsigned stride = 1024" in (examples_dir() / "ptx/wgmma.cuh").read_text()


@pytest.mark.parametrize(
    ("file", "depth", "type_", "columns"),
    [("tf32_wgmma.cuh", 8, "tf32", (64, 128, 192, 256)), ("fp8_wgmma.cuh", 32, "e4m3", (128, 192, 256))],
)  # fmt: skip
def test_each_instruction_names_its_registers_once_and_in_order(file, depth, type_, columns):
    folder = examples_dir() / "ptx"
    names = (folder / "named_sums.cuh").read_text()
    upto = 0
    for size in (32, 64, 96, 128):  # each list goes on where the one before ends
        text = re.search(rf"#define NAMES{size} (.*?)(?=#define|\n\n)", names, re.S)[1]
        assert (f"NAMES{upto}" in text) == (upto > 0)
        assert [int(one) for one in re.findall(r"%(\d+)", text)] == list(range(upto, size))
        upto = size
    text = (folder / file).read_text()
    found = re.findall(r"float \(&sum\)\[(\d+)\].*?START_ALONG\((.*?)\);", text, re.S)
    assert [int(size) for size, _ in found] == [n // 2 for n in columns]
    for size, words in ((int(size), " ".join(words.split())) for size, words in found):
        sums = ", ".join(f"SUM32({i})" for i in range(0, size, 32))
        assert words == (
            f'"m64n{2 * size}k{depth}", "{type_}", NAMES{size}, "%{size}", "%{size + 1}", "%{size + 2}", {sums}'
        )


def test_the_instructions_for_16_bits_name_theirs_likewise():
    text = (examples_dir() / "ptx/wgmma.cuh").read_text()
    found = re.findall(r"float \(&sum\)\[(\d+)\].*?START_OF\((.*?)\);", text, re.S)
    assert [int(size) for size, _ in found] == [32, 64, 96, 128]
    for size, words in ((int(size), " ".join(words.split())) for size, words in found):
        sums = ", ".join(f"SUM32({i})" for i in range(0, size, 32))
        behind = ", ".join(f'"%{size + i}"' for i in range(5))
        assert words == f'"{2 * size}", NAMES{size}, {behind}, {sums}'


def test_its_struct_has_the_fields_of_the_kernel():
    text = re.search(r"struct Work \{(.*?)\};", CU, re.S)[1]
    names = re.findall(r"[\w*]+(?=[,;])", text)
    fields = [name for name, _ in tf32_product._Work._fields_]
    assert [name.strip("*") for name in names] == fields
    assert ctypes.sizeof(tf32_product._Work) == 56 and tf32_product._Work.C.offset == 32


def test_tiles_fit_and_are_instances():
    for tile in tf32_product.TILES:
        assert tile.shared <= 227 << 10 < tile._replace(stages=tile.stages + 1).shared
        assert (
            f"@instance tf32_product<{tile.columns},{tile.stages},{tile.cluster},{tile.buffers}>"
            in CU
        )


@pytest.mark.parametrize(
    "shape", [(1, 1, 4), (4096, 4096, 4096), (300, 70, 20_000), (8192, 8192, 8192)]
)
def test_what_is_chosen_covers_the_depth(shape):
    m, n, k = shape
    plan = tf32_product.choose(m, n, k, 132)
    steps = -(-k // tf32_product.DEPTH)
    tiles = -(-m // (gemm.ROWS * plan.tile.cluster)) * -(-n // plan.tile.columns)
    assert plan in gemm.plans(m, n, 2 * k, plan.tile, 132)
    if plan.share:
        assert plan.workers * plan.share >= (tiles - plan.whole) * steps
    else:
        assert plan.whole == tiles
    if min(shape) >= 4096:
        assert plan.tile.columns == 256


def test_the_bound_holds_for_factors_that_are_cut_off_and_is_no_larger_than_needed():
    rng = np.random.default_rng(1)
    a, b = (rng.random((64, 512), "float32") for _ in range(2))  # all of one sign: no error cancels
    cut = [(x.view("uint32") & np.uint32(0xFFFFE000)).view("float32") for x in (a, b)]
    exact, got = (x.astype("float64") @ y.astype("float64").T for x, y in ((a, b), cut))
    error = (abs(got - exact) / exact).max()
    bound = tf32_product.error_bound(512)
    assert 0.2 * bound < error <= bound


@pytest.mark.parametrize(
    ("a", "b", "c", "turned", "said"),
    [((4, 6), (6, 8), (4, 8), False, "k must be a multiple of 4"), ((4, 0), (0, 8), (4, 8), False, "above 0"),
     ((4, 8), (8, 8), (4, 9), False, "C is "), ((4, 8), (7, 9), (4, 7), True, "B is ")],
)  # fmt: skip
def test_what_does_not_fit_is_refused(a, b, c, turned, said):
    with pytest.raises(ValueError, match=said):
        tf32_product.prepare(*(Told("float32", *one) for one in (a, b, c)), transpose_b=turned)
