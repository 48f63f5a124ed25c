"""Ways to move bytes: copies of every shape, batches and handles that are refused, memory that two processes share."""

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.memory.moving.batch import copy_batch

LENGTHS = (0, 3, 4, 5, *ct.RAGGED)


def copies(kernel, shapes):
    for n in LENGTHS:
        x, out = ct.rng(n).random(n + 8, dtype="float32"), ct.empty(n + 8, "float32")
        for shape in shapes:
            ct.poison(out)
            kernel(ct.to_device(x), out, n, **shape)
            ct.check(out[:n], x[:n])
            assert np.isnan(out[n:].get()).all(), "it wrote past the end"


@pytest.mark.parametrize("ahead", [1, 2, 4, 7])
def test_copies_by_cp_async_of_every_depth(ahead):
    kernel = ct.Kernel("memory/moving/moving.cu", "copy_async", defines={"AHEAD": ahead})
    copies(
        kernel,
        [{"grid": g, "block": b, "shared": 16 * ahead * b} for g in (1, 7, 132) for b in (32, 256)],
    )


@pytest.mark.parametrize("piece", [16, 1024, 16384])
@pytest.mark.parametrize("ahead", [2, 3, 4])
def test_copies_by_the_tma_of_every_depth(ahead, piece):
    ct.require("sm_90")
    kernel = ct.Kernel(
        "memory/moving/bulk.cu", "copy_bulk", defines={"AHEAD": ahead, "PIECE": piece}
    )
    copies(kernel, [{"grid": g, "block": 32, "shared": ahead * piece} for g in (1, 7, 264)])


def test_a_batch_copies_in_its_stream_and_refuses_the_default_one():
    from types import SimpleNamespace

    import pycuda.driver as cuda

    ct.activate()
    n = 100
    host = cuda.pagelocked_empty((2 * n, 32), "float32")
    host[:] = ct.rng(0).random(host.shape, dtype="float32")
    order, out = ct.rng(1).permutation(2 * n)[:n], ct.empty((n, 32), "float32")
    targets = np.uint64(int(out.gpudata)) + 128 * np.arange(n, dtype="uint64")
    sources = np.uint64(host.ctypes.data) + np.uint64(128) * order.astype("uint64")
    sizes = np.full(n, 128, "uint64")
    stream = cuda.Stream()
    copy_batch(targets, sources, sizes, stream)
    stream.synchronize()
    ct.check(out, host[order])
    with pytest.raises(RuntimeError, match="error"):
        copy_batch(targets, sources, sizes, SimpleNamespace(handle=0))


def test_handles_that_are_none_are_refused():
    import pycuda.driver as cuda

    ct.activate()
    memory = cuda.mem_alloc(1 << 21)
    try:
        handle = cuda.mem_get_ipc_handle(memory)
    except cuda.Error as error:
        pytest.skip(f"this machine makes no handles: {error}")
    assert len(handle) == 64
    with pytest.raises(cuda.Error):
        cuda.IPCMemoryHandle(handle)  # not in the process that it comes from
    with pytest.raises(cuda.Error):
        cuda.IPCMemoryHandle(handle[:63])
    managed = cuda.managed_empty(1024, "float32", mem_flags=cuda.mem_attach_flags.GLOBAL)
    with pytest.raises(cuda.Error):
        cuda.mem_get_ipc_handle(int(managed.base))
