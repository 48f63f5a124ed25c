"""initcheck and outputs that the TMA writes: clean, and what nothing wrote is still found."""

import pytest

import cudatut as ct
from cudatut.gpu import sanitizer
from cudatut.gpu.device import supports

SCRIPT = '''
import numpy as np
import cudatut as ct

SOURCE = """
#include "ptx/tma.cuh"

// One block; out is columns wide. All boxes, or all but the first, are filled
// with what an element's place is, and stored by the TMA.
extern "C" __global__ void store(const __grid_constant__ CUtensorMap out,
                                 int rows, int columns, int first) {
  __shared__ __align__(128) unsigned box[8][8];
  const int i = threadIdx.x / 8, j = threadIdx.x % 8;
  const int across = columns / 8;
  for (int k = first; k < (rows + 7) / 8 * across; ++k) {
    const int row = k / across * 8, column = k % across * 8;
    box[i][j] = (row + i) * columns + column + j;
    fence_for_tma();
    __syncthreads();
    if (threadIdx.x == 0) {
      store_box(out, row, column, box);
      close_stores();
      wait_for_reads<0>();
    }
    __syncthreads();
  }
}
"""
store = ct.Kernel(SOURCE, "store")
rows, columns = 20, 24
c = ct.empty((rows, columns), "uint32")
expected = np.arange(c.size, dtype="uint32").reshape(c.shape)


def run(first=0):
    box = ct.tensor_map(c, (8, 8))
    store(box, rows, columns, first, grid=1, block=64)

'''
CHECK = "ct.check(c, expected)\n"


@pytest.fixture(autouse=True)
def hopper():
    if not supports(ct.device().compute_capability, "sm_90"):
        pytest.skip("the TMA needs sm_90")


def watch(tmp_path, end: str):
    script = tmp_path / "stores.py"
    script.write_text(SCRIPT + end)
    return sanitizer.run(script, "initcheck", timeout_s=120)


def test_what_the_tma_stores_counts_as_written(tmp_path):
    found = watch(tmp_path, "run()\n" + CHECK)
    assert found.errors == 0, found.log


def test_what_nothing_wrote_is_reported(tmp_path):
    assert watch(tmp_path, "c.get()\n").errors > 0


def test_a_box_that_the_tma_left_out_is_found_by_the_check(tmp_path):
    with pytest.raises(sanitizer.SanitizerFailed, match="64 of them were never written"):
        watch(tmp_path, "run(first=1)\n" + CHECK)


def test_an_array_that_a_kernel_has_filled_keeps_what_it_holds(tmp_path):
    """Mapped as an input after a launch that was given nothing but the number of its address."""
    fill = '''
KERNEL = ct.Kernel("""
extern "C" __global__ void number(unsigned long long out, unsigned n) {
  for (unsigned i = threadIdx.x; i < n; i += blockDim.x) ((unsigned *)out)[i] = i;
}""", "number")
KERNEL(c.__cuda_array_interface__["data"][0], c.size, grid=1, block=64)
ct.tensor_map(c, (8, 8))
'''
    found = watch(tmp_path, fill + CHECK)
    assert found.errors == 0, found.log
