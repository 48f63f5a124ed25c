"""Launchers give a kernel addresses, which keep nothing alive: each array must live until the launch, even if the caller
has no name for it, and a call from Python to Python hands references over. Fake arrays and kernels, no GPU."""

import weakref
from types import SimpleNamespace

import numpy as np
import pytest

from cudatut.book.llm.kernels.attention import decode, flash, flash_hopper_paged, flash_parts

LIVE = weakref.WeakSet()


class Array:
    """What a launcher asks of an array on the GPU, each at an address of its own; gone from LIVE with the last reference to
    it."""

    after = 1 << 40

    def __init__(self, dtype, *shape):
        self.shape = shape
        self.__cuda_array_interface__ = {
            "shape": shape, "typestr": np.dtype(dtype).str, "data": (Array.after, False), "version": 3,
        }  # fmt: skip
        Array.after += 1 << 32
        LIVE.add(self)


class Kernel:
    """Notes how many arrays are there when it is launched."""

    launched = None

    def __call__(self, *args, **_):
        Kernel.launched = len(LIVE)


def paged(kind, scales):
    flash.paged(
        Array("uint16", 9, 4, 64), Array(kind, 32, 2, 64), Array(kind, 32, 2, 64), Array("uint16", 9, 4, 64),
        Array("int32", 3), Array("int32", 2), Array("int32", 2, 3), 16, Array("int32", 4, 2),
        Array("float32", 9, 4), scales=scales(),
    )  # fmt: skip


def parts_paged(kind, scales):
    flash_parts.paged(
        Array("uint16", 9, 4, 64), Array(kind, 32, 2, 64), Array(kind, 32, 2, 64), Array("uint16", 9, 4, 64),
        Array("int32", 3), Array("int32", 2), Array("int32", 2, 3), 16, Array("int32", 4, 2), 2,
        Array("float32", 4 * 4 * 2 * 128 * 66), Array("float32", 9, 4), scales=scales(),
    )  # fmt: skip


def contiguous(kind, scales):
    flash.contiguous(
        Array("uint16", 1, 9, 4, 64), Array(kind, 1, 9, 2, 64), Array(kind, 1, 9, 2, 64),
        Array("uint16", 1, 9, 4, 64), Array("float32", 1, 9, 4), scales=scales(),
    )  # fmt: skip


def decode_paged(kind, scales):
    need = decode.sizes(2, 4, 2, 64, 48)
    decode.paged(
        Array("uint16", 2, 4, 64), Array(kind, 64, 2, 64), Array(kind, 64, 2, 64), Array("int32", 2, 3),
        Array("int32", 2), 16, Array("uint16", 2, 4, 64), Array("float32", 2, 4),
        Array("float32", need.partials), Array("uint32", need.tickets), 48, scales=scales(),
    )  # fmt: skip


def decode_contiguous(kind, scales):
    need = decode.sizes(2, 4, 2, 64, 48)
    decode.contiguous(
        Array("uint16", 2, 4, 64), Array(kind, 2, 48, 2, 64), Array(kind, 2, 48, 2, 64),
        Array("int32", 2), Array("uint16", 2, 4, 64), Array("float32", 2, 4),
        Array("float32", need.partials), Array("uint32", need.tickets), 48, scales=scales(),
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["uint16", "uint8"])
@pytest.mark.parametrize(
    ("launch", "arrays"),
    [(paged, 9), (parts_paged, 10), (contiguous, 5), (decode_paged, 9), (decode_contiguous, 8)],
)
def test_arrays_live_until_the_launch(monkeypatch, launch, arrays, kind):
    monkeypatch.setattr(flash, "instance", lambda *_: Kernel())
    monkeypatch.setattr(flash_parts, "instances", lambda *_: (Kernel(), Kernel()))
    monkeypatch.setattr(decode, "instance", lambda *_: (Kernel(), 0))
    fp8 = kind == "uint8"
    launch(kind, lambda: Array("float32", 2, 2) if fp8 else None)
    assert Kernel.launched == arrays + fp8
    assert not LIVE


def test_arrays_live_until_the_launch_on_hopper(monkeypatch):
    monkeypatch.setattr(flash_hopper_paged, "instance", lambda *_: Kernel())
    monkeypatch.setattr(flash_hopper_paged, "counters", lambda *_: None)
    monkeypatch.setattr(flash_hopper_paged.hopper, "tensor_map", lambda *_: b"")
    monkeypatch.setattr(flash_hopper_paged.ct, "device", lambda: SimpleNamespace(sm_count=132))
    flash_hopper_paged.paged(
        Array("uint16", 9, 4, 64), Array("uint16", 32, 2, 64), Array("uint16", 32, 2, 64), Array("uint16", 9, 4, 64),
        Array("int32", 3), Array("int32", 2), Array("int32", 2, 3), 16, Array("int32", 4, 2),
        Array("float32", 9, 4),
    )  # fmt: skip
    assert Kernel.launched == 9
    assert not LIVE


@pytest.mark.parametrize(("count", "fits"), [(65_535, True), (65_536, False)])
def test_a_grid_has_room_for_so_many_sequences(monkeypatch, count, fits):
    monkeypatch.setattr(decode, "instance", lambda *_: (Kernel(), 0))
    need, Kernel.launched = decode.sizes(count, 4, 2, 64, 16), None
    arrays = (
        Array("uint16", count, 4, 64), Array("uint16", 64, 2, 64), Array("uint16", 64, 2, 64),
        Array("int32", count, 1), Array("int32", count), 16, Array("uint16", count, 4, 64),
        Array("float32", count, 4), Array("float32", need.partials), Array("uint32", need.tickets), 16,
    )  # fmt: skip
    if fits:
        decode.paged(*arrays)
    else:
        with pytest.raises(ValueError, match="blocks, and a grid has up to"):
            decode.paged(*arrays)
    assert (Kernel.launched is not None) == fits
