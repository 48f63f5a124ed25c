"""Pinned memory: what a recording of the chapter cannot show, wrong uses above all."""

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.measure import link
from cudatut.book.memory.pinned import in_place

FILE = "memory/pinned/pinned.cu"


def test_memory_is_pinned_once_and_freed_after_a_failure():
    ct.activate()
    array = np.ones(1 << 20, "float32")
    with pytest.raises(RuntimeError, match="cuMemHostUnregister"):
        in_place.unpin(array)
    with pytest.raises(ZeroDivisionError), in_place.pinned(array):
        with pytest.raises(RuntimeError, match="cuMemHostRegister"):
            in_place.pin(array)
        raise ZeroDivisionError
    in_place.pin(array)  # it is not pinned any more, so this works
    in_place.unpin(array)


def test_the_link_is_one_that_is_known():
    import pycuda.driver as cuda

    ct.activate()
    found = link.now(cuda.Context.get_device().pci_bus_id())
    assert found.generation in range(1, 7) and found.lanes in (1, 2, 4, 8, 16, 32)


@pytest.mark.parametrize("streaming", [0, 1])
@pytest.mark.parametrize("vectors", [2, 4, 8])
@pytest.mark.parametrize("grid", [1, 7, None])
def test_every_shape_copies_every_length(vectors, streaming, grid):
    copy = ct.Kernel(FILE, "copy", defines={"VECTORS": vectors, "STREAMING": streaming})
    for n in (0, 3, 4, 5, *ct.RAGGED):
        x, out = ct.rng(n).random(n + 8, dtype="float32"), ct.empty(n + 8, "float32")
        blocks = grid or max(1, ct.cdiv(n, 4 * vectors * 128))
        copy(ct.to_device(x), out, n, grid=blocks, block=128)
        ct.check(out[:n], x[:n])
        assert np.isnan(out[n:].get()).all(), "it wrote past the end"


def test_the_waiting_kernel_ends_by_the_word_and_by_its_limit():
    import time

    import pycuda.driver as cuda

    ct.activate()
    wait_for = ct.Kernel(FILE, "wait_for")
    word = cuda.pagelocked_zeros(1, "uint32", mem_flags=cuda.host_alloc_flags.DEVICEMAP)
    at = np.uint64(word.base.get_device_pointer())
    for opened, least, most in ((True, 0.0, 0.4), (False, 0.49, 2.0)):
        word[0] = 0
        begin = time.perf_counter()
        wait_for(at, 1, 500_000_000, grid=1, block=1)
        if opened:
            word[0] = 1
        cuda.Context.synchronize()
        assert least <= time.perf_counter() - begin <= most
