"""Poison: what no kernel wrote is found."""

import ctypes
import math
import sys
import types
import weakref
from pathlib import Path

import numpy as np
import pytest

from cudatut.errors import NoGpuError
from cudatut.gpu import memory


@pytest.mark.parametrize("dtype", ["?", "u1", "f2", "i4", "f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 5)])
def test_poison_is_found_where_every_byte_of_an_element_is(dtype, shape):
    host = np.zeros(shape, dtype)
    written = np.random.default_rng(0).choice(
        [True, False], (host.size, host.itemsize), p=[0.2, 0.8]
    )
    if host.size:
        host.reshape(-1).view("u1")[:] = np.where(written, 1, memory.POISON_BYTE).reshape(-1)
    found = memory.poisoned(host)
    assert found.shape == host.shape and found.dtype == bool
    assert np.array_equal(found.reshape(-1), ~written.any(axis=1))


class Driver:
    """The driver's calls on memory of the host."""

    MemoryError = OSError

    def __init__(self):
        self.buffers, self.waited = [], []

    def mem_alloc(self, count):
        buffer = (ctypes.c_uint8 * count)()
        self.buffers.append(buffer)
        return ctypes.addressof(buffer)

    def memset_d8(self, address, byte, count):
        ctypes.memset(int(address), byte, count)

    def Stream(self, flags):
        assert flags == 1  # CU_STREAM_NON_BLOCKING
        return types.SimpleNamespace(synchronize=lambda: self.waited.append("stream"))

    def memset_d8_async(self, address, byte, count, stream):
        self.waited.append("fill")
        self.memset_d8(address, byte, count)

    def memcpy_htod_async(self, address, host, stream):
        assert host.flags.c_contiguous
        self.waited.append("copy")
        ctypes.memmove(int(address), host.ctypes.data, host.nbytes)

    def memcpy_dtoh(self, host, address):
        ctypes.memmove(host.ctypes.data, int(address), host.nbytes)


class Array:
    """As PyCUDA's GPUArray."""

    def __init__(self, shape, dtype, base, gpudata):
        self.shape, self.dtype, self.base, self.gpudata = shape, np.dtype(dtype), base, gpudata
        self.nbytes = math.prod(shape) * self.dtype.itemsize

    def set(self, host):
        assert host.flags.c_contiguous and host.shape == self.shape
        ctypes.memmove(self.gpudata, host.ctypes.data, host.nbytes)

    def get(self):
        host = np.empty(self.shape, self.dtype)
        ctypes.memmove(host.ctypes.data, self.gpudata, host.nbytes)
        return host


@pytest.fixture
def driver(monkeypatch):
    driver = Driver()
    monkeypatch.delenv("CUDATUT_TOOL", raising=False)
    monkeypatch.setattr(memory, "pycuda_driver", lambda: driver)
    memory._own_stream.cache_clear()
    monkeypatch.setattr(memory, "activate", lambda: None)
    monkeypatch.setattr(memory, "synchronize", lambda: None)
    monkeypatch.setattr(memory, "_live", weakref.WeakSet())
    monkeypatch.setitem(sys.modules, "pycuda", types.ModuleType("pycuda"))
    monkeypatch.setitem(sys.modules, "pycuda.gpuarray", types.SimpleNamespace(GPUArray=Array))
    yield driver
    memory._own_stream.cache_clear()


def poke(address, byte=0):
    ctypes.memset(address, byte, 1)


@pytest.mark.parametrize(
    ("offset", "said"),
    [
        (-1, "1 bytes before it were overwritten (offsets -1 to -1)"),
        (-memory.RED_ZONE, f"1 bytes before it were overwritten (offsets -{memory.RED_ZONE} to "),
        (40, "1 bytes after it were overwritten (offsets 40 to 40)"),
        (40 + memory.RED_ZONE - 1, "1 bytes after it were overwritten"),
    ],
)
def test_damage_on_either_side_is_told(driver, offset, said):
    array, other = memory.empty(10, "float32"), memory.to_device(np.arange(3))
    assert memory.damaged_zones() == []
    poke(array.gpudata + offset)
    (report,) = memory.damaged_zones()
    assert said in report and report.startswith("empty(10 float32): ")
    del other


def test_every_byte_of_a_zone_counts_and_none_of_the_array(driver):
    array = memory.empty((2, 5), "float32")
    for offset in range(40):
        poke(array.gpudata + offset)
    assert memory.damaged_zones() == []
    for offset in (-3, -1, 41):
        poke(array.gpudata + offset, memory.POISON_BYTE)
    (report,) = memory.damaged_zones()
    assert "2 bytes before it were overwritten (offsets -3 to -1)" in report


def test_what_is_not_in_the_order_of_c_is_copied_in_it(driver):
    host = np.asfortranarray(np.arange(12, dtype="float32").reshape(3, 4))
    for one in (host, host.T, host[:, ::2]):
        assert np.array_equal(memory.to_device(one).get(), one)


def test_a_new_array_is_poison_and_can_be_poisoned_again(driver):
    array = memory.empty(5, "int16")
    assert memory.poisoned(array.get()).all()
    array.set(np.arange(5, dtype="int16"))
    assert not memory.poisoned(array.get()).any()
    memory.poison(array)
    assert memory.poisoned(array.get()).all() and memory.damaged_zones() == []
    memory.poison(array, 0x5A)
    assert memory.poisoned(array.get(), 0x5A).all() and memory.poison_of(array) == 0x5A
    for byte in (0, 255):
        memory.poison(array, byte)
        assert memory.poison_of(array) == byte
    for byte in (-1, 256):
        with pytest.raises(ValueError, match=f"a byte is 0 to 255, not {byte}"):
            memory.poison(array, byte)


def test_what_fills_a_new_array_has_ended_before_anybody_gets_it(driver):
    """A kernel on a stream that waits for no other may be next."""
    for how, make in (
        ("fill", lambda: memory.empty(5, "int16")),
        ("copy", lambda: memory.to_device(np.arange(3))),
    ):
        driver.waited.clear()
        kept = make()
        assert driver.waited[-2:] == [how, "stream"], kept


def test_poison_waits_for_what_was_launched_and_is_there_before_the_next_launch(
    driver, monkeypatch
):
    array = memory.empty(5, "int16")
    monkeypatch.setattr(memory, "synchronize", lambda: driver.waited.append("context"))
    driver.waited.clear()
    memory.poison(array)
    assert driver.waited == ["context", "fill", "stream"]


def test_without_a_gpu_an_array_says_so_before_pycuda_is_asked(driver, monkeypatch):
    def missing():
        raise NoGpuError("no driver")

    monkeypatch.setattr(memory, "activate", missing)
    monkeypatch.setitem(sys.modules, "pycuda.gpuarray", None)
    for make in (lambda: memory.empty(5, "int16"), lambda: memory.to_device(np.arange(3))):
        with pytest.raises(NoGpuError, match="no driver"):
            make()


def test_random_data_are_the_same_in_every_run():
    for seed in (0, 7):
        drawn = memory.rng(seed).integers(1 << 30, size=4)
        assert np.array_equal(drawn, np.random.default_rng(seed).integers(1 << 30, size=4))
    assert memory.rng().integers(1 << 30) == memory.rng(0).integers(1 << 30)


def test_a_view_has_the_poison_of_the_array_that_it_shows(driver):
    array = memory.empty(6, "int16")
    view = Array((2, 3), "int16", Array((6,), "int16", array, array.gpudata), array.gpudata)
    memory.poison(view, 0x5A)  # all of it, by another shape
    assert memory.poison_of(array) == memory.poison_of(view) == 0x5A
    assert memory.poisoned(array.get(), 0x5A).all()
    part = Array((2,), "int16", array, array.gpudata)
    with pytest.raises(ValueError, match=r"these 4 bytes are a part of empty\(6 int16\)"):
        memory.poison(part, 0x3C)
    assert memory.poisoned(array.get(), 0x5A).all()
    memory.poison(part, 0x5A)  # as it was
    assert memory.poison_of(object()) == memory.POISON_BYTE


def test_what_no_array_can_be_is_refused(driver):
    with pytest.raises(TypeError, match="holds Python objects"):
        memory.to_device(np.array([{}]))
    with pytest.raises(ValueError, match="negative extent"):
        memory.empty((3, -1), "int8")
    assert memory.empty(0, "int8").get().size == 0 and memory.empty((), "f4").get().shape == ()


def test_the_gpu_is_waited_for_before_anybody_looks(driver, monkeypatch):
    """A kernel that writes too far may still run."""
    array = memory.empty(10, "float32")
    monkeypatch.setattr(memory, "synchronize", lambda: poke(array.gpudata + 40))
    (report,) = memory.damaged_zones()
    assert "1 bytes after it" in report


def test_too_little_memory_is_told_in_gibibytes(driver, monkeypatch):
    def full(count):
        raise driver.MemoryError

    monkeypatch.setattr(driver, "mem_alloc", full)
    driver.mem_get_info = lambda: (1 << 30, 80 << 30)
    message = "needs 4.000 GiB, but only 1.000 of 80.000 GiB are free"
    with pytest.raises(memory.OutOfDeviceMemory, match=message):
        memory.empty(1 << 30, "float32")


def test_under_a_tool_arrays_have_no_zones_and_no_poison(driver, monkeypatch):
    monkeypatch.setenv("CUDATUT_TOOL", "memcheck")
    array = memory.empty(10, "uint8")
    assert [len(buffer) for buffer in driver.buffers] == [10]
    assert not memory.poisoned(array.get()).all() and memory.damaged_zones() == []


def test_only_what_lies_in_an_array_that_holds_nothing_is_poisoned(driver, monkeypatch):
    """Before the TMA stores there, under initcheck."""
    array, other = memory.to_device(np.zeros(64, "uint8")), memory.to_device(np.zeros(64, "uint8"))
    monkeypatch.setattr(memory, "_unwritten", weakref.WeakSet([array.base]))
    for begin, count, written in ((0, 64, 64), (8, 16, 16), (0, 65, 0), (-1, 64, 0), (60, 8, 0)):
        array.set(np.zeros(64, "uint8"))
        memory.poison_unwritten(array.gpudata + begin, count)
        assert np.count_nonzero(array.get()) == written, (begin, count)
    memory.poison_unwritten(other.gpudata, 64)
    assert not other.get().any()
    memory.launched()
    array.set(np.zeros(64, "uint8"))
    memory.poison_unwritten(array.gpudata, 64)
    assert not array.get().any(), "a kernel may have written it"


def test_tests_on_a_gpu_notice_what_is_written_beside_arrays(driver, monkeypatch):
    """tests/gpu/zones.py: when an array is freed, and of those that live on once."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "gpu"))
    monkeypatch.delenv("CUDATUT_WATCH_ZONES", raising=False)
    monkeypatch.setattr(memory, "Allocation", memory.Allocation)
    import zones

    zones.watch()
    zones.damaged()
    good, freed, kept = (memory.empty(10, "uint8") for _ in range(3))
    for array in (freed, kept):
        poke(array.gpudata + 10)
    del good, freed
    found = zones.damaged()
    assert len(found) == 2 and all("1 bytes after it" in said for said in found)
    assert zones.damaged() == [], "told once"
    del kept, array
    assert zones.damaged() == []
    monkeypatch.setattr(memory, "synchronize", lambda: 1 / 0)  # the context is lost
    lost = memory.empty(10, "uint8")
    poke(lost.gpudata - 1)
    del lost
    assert zones.damaged() == []
    monkeypatch.setenv("CUDATUT_WATCH_ZONES", "0")
    monkeypatch.setattr(memory, "synchronize", lambda: None)
    last = memory.empty(10, "uint8")
    poke(last.gpudata - 1)
    assert zones.damaged() == []
