"""Managed memory on a GPU: the limit holds before anything is allocated, and what is wrong is said."""

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.memory.unified import managed, touches
from cudatut.book.memory.unified.managed import GPU, HOST


@pytest.fixture(autouse=True)
def both_sides_at_once():
    if not ct.attributes().get("CONCURRENT_MANAGED_ACCESS", 0):
        pytest.skip("this system moves managed memory as a whole")


def test_more_than_half_of_what_is_free_is_refused_before_it_is_allocated(monkeypatch):
    import pycuda.driver as cuda

    def must_not(*arguments, **more):
        raise AssertionError("it was asked for")

    monkeypatch.setattr(cuda, "managed_empty", must_not)
    free, _ = cuda.mem_get_info()
    for need in (free // 2 + (64 << 20), free + 1, 1 << 50):
        with pytest.raises(ct.OutOfDeviceMemory, match="managed memory"):
            managed.managed_empty(need, "uint8")


def test_all_arrays_together_count_until_they_are_gone():
    before = sum(managed._held.values())
    x, y = (managed.managed_empty((1 << 20,), "float32") for _ in range(2))
    assert sum(managed._held.values()) == before + x.nbytes + y.nbytes
    part = y[1024:]
    del x, y
    assert sum(managed._held.values()) == before + (4 << 20), "a view keeps the array alive"
    del part
    assert sum(managed._held.values()) == before


@pytest.mark.parametrize("shape", [0, (3, 0), -1])
def test_no_elements_are_refused(shape):
    with pytest.raises(ValueError, match="no elements"):
        managed.managed_empty(shape, "float32")


def test_what_is_not_managed_is_not_prefetched():
    if ct.attributes().get("PAGEABLE_MEMORY_ACCESS", 0):
        pytest.skip("this system prefetches any memory")
    with pytest.raises(ct.CudatutError, match="cuMemPrefetchAsync"):
        managed.prefetch(np.zeros(1024, "float32"), GPU)


def test_an_unknown_place_or_advice_is_refused():
    x = managed.managed_empty(1024, "float32")
    with pytest.raises(KeyError):
        managed.prefetch(x, "moon")
    with pytest.raises(AttributeError):
        managed.advise(x, "SOMETIMES")


def test_a_kernel_takes_the_allocation_and_no_view():
    negate = ct.Kernel("memory/unified/unified.cu", "negate")
    x = managed.managed_empty(2048, "float32")
    x[:] = 1
    with pytest.raises(TypeError):
        negate(x[1024:].base, 1024, grid=4, block=256)  # an array: its base is the allocation
    negate(x.base, 1024, grid=4, block=256)
    ct.synchronize()
    ct.check(x, np.repeat(np.float32([-1, 1]), 1024), name="half")


def test_a_prefetch_on_a_stream_comes_before_its_kernel():
    import pycuda.driver as cuda

    negate = ct.Kernel("memory/unified/unified.cu", "negate")
    x = managed.managed_empty(1 << 20, "float32")
    x[:] = want = ct.rng(0).random(x.size, dtype="float32")
    stream = cuda.Stream()
    for where in (GPU, HOST, GPU):
        managed.prefetch(x, where, stream)
        negate(x.base, x.size, grid=256, block=256, stream=stream)
    stream.synchronize()
    ct.check(x, -want, name="three times negated", rtol=0, atol=0)


def test_the_driver_notes_advice_and_prefetches():
    x = managed.managed_empty(1 << 20, "float32")
    x[:] = 0
    nothing = {
        "read mostly": "no",
        "preferred location": "-",
        "accessed by": "-",
        "last prefetch": "-",
    }
    assert managed.told(x) == nothing
    managed.advise(x, "PREFERRED_LOCATION", HOST)
    managed.advise(x, "ACCESSED_BY", GPU)
    managed.prefetch(x, HOST)
    ct.synchronize()
    assert managed.told(x) == nothing | {
        "preferred location": HOST,
        "accessed by": GPU,
        "last prefetch": HOST,
    }


def test_a_touch_that_finds_another_word_is_noticed():
    x = touches.blocks_of_2mb(1)
    x[3 * touches.WORDS] = 5
    for walk in touches.by_gpu, touches.by_host:
        with pytest.raises(ct.CheckError):
            walk(x, range(8))
