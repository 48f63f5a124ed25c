"""examples/memory/moving without a GPU: what a batch of copies hands to the driver, of CUDA 13 and of 12.8."""

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.memory.moving import batch


def numbers(*values):
    return np.array(values, "uint64")


def copied(monkeypatch, **functions):
    """copy_batch with a driver that has these functions alone."""
    monkeypatch.setattr(batch, "installed_driver", lambda: SimpleNamespace(**functions))
    stream = SimpleNamespace(handle=77)
    batch.copy_batch(numbers(10, 20), numbers(30, 40), numbers(1, 2), stream)


def test_the_attributes_lie_as_in_cuda_h():
    fields = {
        name: getattr(batch._Attributes, name).offset for name, _ in batch._Attributes._fields_
    }
    assert fields == {"source_access_order": 0, "source_hint": 4, "target_hint": 12, "flags": 20}
    assert ctypes.sizeof(batch._Attributes) == 24


@pytest.mark.parametrize("name, more", [("cuMemcpyBatchAsync_v2", 0), ("cuMemcpyBatchAsync", 1)])
def test_each_version_gets_the_arguments_that_it_has(monkeypatch, name, more):
    seen = []

    def driver(*arguments):
        arrays = [(ctypes.c_uint64 * 2).from_address(one.value)[:] for one in arguments[:3]]
        seen.append((arrays, arguments[3].value, len(arguments), arguments[-1].value))
        return 0

    copied(monkeypatch, **{name: driver})
    assert seen == [([[10, 20], [30, 40], [1, 2]], 2, 8 + more, 77)]


def test_the_newer_version_goes_first(monkeypatch):
    def older(*arguments):
        raise AssertionError("the older one was called")

    copied(monkeypatch, cuMemcpyBatchAsync_v2=lambda *arguments: 0, cuMemcpyBatchAsync=older)


def test_a_driver_without_it_or_that_refuses_is_told(monkeypatch):
    with pytest.raises(ct.ToolMissing, match=r"12\.8"):
        copied(monkeypatch)
    with pytest.raises(RuntimeError, match="error 1"):
        copied(monkeypatch, cuMemcpyBatchAsync_v2=lambda *arguments: 1)


@pytest.mark.parametrize("what", ["targets", "sources", "sizes"])
def test_arrays_of_another_kind_are_refused(monkeypatch, what):
    arrays = {"targets": numbers(1, 2), "sources": numbers(3, 4), "sizes": numbers(5, 6)}
    for wrong in (arrays[what].astype("int32"), numbers(1), numbers(1, 0, 2, 0)[::2]):
        with pytest.raises(ValueError, match="uint64"):
            batch.copy_batch(**arrays | {what: wrong}, stream=SimpleNamespace(handle=77))
