"""What initcheck is told of outputs that the TMA writes: stand-ins for PyCUDA and the driver, real arrays' bookkeeping."""

import math
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import cudatut as ct
from cudatut.gpu import device, kernel, memory


class GPUArray:
    """PyCUDA's, as far as memory.py, tensor_maps.py and these tests ask it."""

    def __init__(self, shape, dtype, base=None, gpudata=None):
        self.shape, self.dtype, self.base, self.gpudata = shape, np.dtype(dtype), base, gpudata
        self.nbytes = math.prod(shape) * self.dtype.itemsize
        self.writes = []

    @property
    def __cuda_array_interface__(self):
        return {"shape": self.shape, "data": (self.gpudata, False), "strides": None}

    def set(self, host):
        self.writes.append("set")

    def fill(self, value):
        self.writes.append("fill")

    def __getitem__(self, index):
        """Some of its rows."""
        rows = self.shape[0] - (index.start or 0)
        at = self.gpudata + (index.start or 0) * self.nbytes // self.shape[0]
        return GPUArray((rows, *self.shape[1:]), self.dtype, self, at)

    def __setitem__(self, index, value):
        self.writes.append("assign")


class Driver:
    """PyCUDA's driver, and the one of CUDA that encodes maps. Memory is handed out at ever higher addresses."""

    MemoryError = MemoryError

    def __init__(self):
        self.end, self.filled, self.mapped = 0x10000, [], []

    def mem_alloc(self, nbytes):
        self.end += math.ceil(nbytes / 256) * 256
        return self.end - math.ceil(nbytes / 256) * 256

    def Stream(self, flags):
        return SimpleNamespace(synchronize=lambda: None)

    def memset_d8_async(self, address, value, nbytes, stream):
        self.memset_d8(address, value, nbytes)

    def memcpy_htod_async(self, address, host, stream):
        pass

    def memset_d8(self, address, value, nbytes):
        self.filled.append((address, value, nbytes))

    def cuTensorMapEncodeTiled(self, *arguments):
        self.mapped.append(arguments[3].value)
        return 0


@pytest.fixture
def driver(monkeypatch):
    fake = Driver()
    monkeypatch.setitem(sys.modules, "pycuda.gpuarray", SimpleNamespace(GPUArray=GPUArray))
    memory._watched_array.cache_clear()
    monkeypatch.setattr(memory, "activate", lambda: None)
    monkeypatch.setattr(memory, "pycuda_driver", lambda: fake)
    hopper = SimpleNamespace(compute_capability=(9, 0), name="NVIDIA Test", arch="sm_90")
    monkeypatch.setattr(device, "device", lambda: hopper)
    monkeypatch.setattr(device, "installed_driver", lambda: fake)
    monkeypatch.setenv("CUDATUT_TOOL", "initcheck")
    memory._own_stream.cache_clear()
    yield fake
    memory._own_stream.cache_clear()
    memory._watched_array.cache_clear()
    memory.launched()


def launch(*args):
    """As ct.Kernel launches, without one."""
    some = object.__new__(kernel.Kernel)
    some.parameters, some.name = None, "k"
    some._check_launch = lambda *_: None
    some._function = lambda *_, **__: None
    some(*args, grid=1, block=32)


def test_an_output_that_nothing_wrote_is_poisoned_when_it_is_mapped(driver):
    c, other = ct.empty((20, 24), "uint16"), ct.empty((20, 24), "uint16")
    assert not driver.filled  # nobody has said yet who writes it
    ct.tensor_map(c, (8, 8))
    assert driver.filled == [(c.gpudata, memory.POISON_BYTE, 20 * 24 * 2)]
    assert driver.mapped == [c.gpudata] and other.gpudata != c.gpudata


def test_rows_that_are_further_apart_are_poisoned_from_the_first_byte_to_the_last(driver):
    wide = ct.empty((20, 32), "uint16")
    interface = {"shape": (20, 24), "data": (wide.gpudata + 16, False), "strides": (64, 2)}
    view = SimpleNamespace(dtype=np.dtype("uint16"), __cuda_array_interface__=interface)
    ct.tensor_map(view, (8, 8))
    assert driver.filled == [(wide.gpudata + 16, memory.POISON_BYTE, 19 * 64 + 24 * 2)]


def test_after_any_launch_an_array_may_hold_something(driver):
    """Its address may have come in a struct, or lie in the GPU's memory: the arguments do not tell."""
    codes = ct.empty((16, 32), "uint8")
    launch(b"a struct with the address of codes")
    ct.tensor_map(codes, (8, 16))
    assert not driver.filled and driver.mapped
    made_later = ct.empty((16, 32), "uint8")
    ct.tensor_map(made_later, (8, 16))
    assert [address for address, *_ in driver.filled] == [made_later.gpudata]


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.set(np.zeros(x.shape, x.dtype)),
        lambda x: x.fill(1),
        lambda x: x.__setitem__(slice(None), 1),
        lambda x: x[4:].set(np.zeros((12, 32), x.dtype)),
    ],
    ids=["set", "filled", "assigned", "a part is set"],
)
def test_what_the_host_has_written_stays(driver, write):
    x, untouched = ct.empty((16, 32), "uint8"), ct.empty((16, 32), "uint8")
    write(x)
    for array in (x, untouched):
        ct.tensor_map(array, (8, 16))
    assert [address for address, *_ in driver.filled] == [untouched.gpudata]


def test_the_host_writes_through(driver):
    x = ct.empty((16, 32), "uint8")
    x.set(None), x.fill(1)
    x[:] = 1
    assert x.writes == ["set", "fill", "assign"]
    assert x[12:].shape == (4, 32) and x[12:].gpudata == x.gpudata + 12 * 32


def test_inputs_and_the_memory_of_others_stay(driver):
    x = ct.to_device(np.zeros((16, 32), "uint8"))
    gone = ct.empty((16, 32), "uint8")
    at = gone.gpudata
    del gone
    for address in (x.gpudata, at, 0x7000):
        interface = {"shape": (16, 32), "data": (address, False), "strides": None}
        some = SimpleNamespace(dtype=np.dtype("uint8"), __cuda_array_interface__=interface)
        ct.tensor_map(some, (8, 16))
    assert not driver.filled and driver.mapped == [x.gpudata, at, 0x7000]


@pytest.mark.parametrize("watched", ["memcheck", "racecheck", "synccheck", "ncu"])
def test_other_tools_see_nothing_of_it(driver, monkeypatch, watched):
    monkeypatch.setenv("CUDATUT_TOOL", watched)
    c = ct.empty((20, 24), "uint16")
    ct.tensor_map(c, (8, 8))
    assert type(c) is GPUArray and not driver.filled


def test_without_a_tool_poison_is_where_it_always_was(driver, monkeypatch):
    monkeypatch.delenv("CUDATUT_TOOL")
    c = ct.empty((20, 24), "uint16")
    filled = list(driver.filled)
    assert (c.gpudata, memory.POISON_BYTE, c.nbytes) in filled
    ct.tensor_map(c, (8, 8))
    assert type(c) is GPUArray and driver.filled == filled
