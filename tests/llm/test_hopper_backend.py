"""Which launches a step of HopperBackend consists of, without a GPU, and what it shares with another backend."""

import sys
from collections import OrderedDict
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "examples/llm"))

import activation
import hopper_backend
import linear_hopper
import norms
from gpu_backend import GpuBackend
from hopper_backend import HopperBackend
from linear_hopper import FASTER, SOURCE, Tile, choose, instance

import cudatut as ct

ROWS, DIM = 5000, 64


@pytest.fixture
def launched(monkeypatch):
    """Names of what a step launches, in order, each with what else counts."""
    found = []

    def note(name, *which):
        return lambda *a, **more: found.append((name, *(a[i] for i in which)))

    monkeypatch.setattr(hopper_backend, "available", lambda: True)
    monkeypatch.setattr(activation, "embed", note("embed"))
    monkeypatch.setattr(activation, "gather", note("gather"))
    monkeypatch.setattr(norms, "rms_norm", note("norm", 1))
    monkeypatch.setattr(hopper_backend, "stored", note("stored"))

    def multiply(self, x, matrix, out, add=False):
        found.append(("multiply", matrix.bf16, add))

    monkeypatch.setattr(GpuBackend, "_multiply", multiply)
    monkeypatch.setattr(GpuBackend, "_forward", note("forward"))
    monkeypatch.setattr(GpuBackend, "_attend", note("attention"))
    monkeypatch.setattr(ct, "empty", np.zeros)

    def added(x, weights, y, tile, norm, stream):
        found.append(("added", weights, norm and norm.weight))
        return 16

    def gated(x, weights, out, tile, norm, squares, stream):
        found.append(("gated", weights, norm and norm.weight, squares))

    for name, product in (("added", added), ("gated", gated)):
        monkeypatch.setattr(hopper_backend, name, product)
    monkeypatch.setattr(
        hopper_backend, "linear_qkv", lambda h, w, *a, **how: found.append(("qkv", w))
    )
    monkeypatch.setattr(
        hopper_backend, "linear", lambda h, w, *a, **how: found.append(("linear", w))
    )
    return found


def backend(**more):
    def matrix(name):
        return SimpleNamespace(bf16=name)

    layers = [
        SimpleNamespace(
            attention_norm=f"a{i}", ffn_norm=f"f{i}",
            **{name: matrix(f"{name}{i}") for name in ("qkv", "o", "gate_up", "down")},
        )
        for i in range(2)
    ]  # fmt: skip
    room = {
        name: np.zeros((ROWS, DIM), "uint16")
        for name in ("x", "h", "queries", "attended", "act", "last", "logits")
    }
    weights = SimpleNamespace(layers=layers, embedding=None, norm="n", head=matrix("head"))
    found = GpuBackend.__new__(GpuBackend)
    found.__dict__.update(
        config=SimpleNamespace(dim=DIM, rms_eps=1e-5), weights=weights, stream=None, **room,
        turns=None, drawn=None, caches=["cache"] * 2, scales=[None] * 2, recorded=3,
        batch_invariant=False, _graphs=OrderedDict(a=1), **more,
    )  # fmt: skip
    return found


def step(of, n, m):
    d = {"tokens": range(n), "wanted": range(m), "positions": "p", "slots": "s"}
    of.caches = [("k", "v")] * 2
    of._forward(d, None)


def layers_of(launched):
    """Launches of the layers, without what is in front of them and behind them."""
    names = [one[0] for one in launched]
    return launched[1 : names.index("gather")]


def test_some_hundred_rows_need_no_norm_between_output_and_gates(launched):
    step(HopperBackend.beside(backend()), 200, 200)
    assert layers_of(launched) == [
        one
        for i in range(2)
        for one in (
            ("norm", f"a{i}"), ("qkv", f"qkv{i}"), ("attention",), ("added", f"o{i}", f"f{i}"),
            ("gated", f"gate_up{i}", f"f{i}", 16), ("multiply", f"down{i}", True),
        )
    ]  # fmt: skip
    assert launched[0][0] == "embed" and [one[0] for one in launched[-3:]] == [
        "gather",
        "norm",
        "stored",
    ]


def test_thousands_of_rows_have_all_norms(launched):
    step(HopperBackend.beside(backend()), 5000, 20)
    assert layers_of(launched) == [
        one
        for i in range(2)
        for one in (
            ("norm", f"a{i}"), ("qkv", f"qkv{i}"), ("attention",), ("multiply", f"o{i}", True),
            ("norm", f"f{i}"), ("gated", f"gate_up{i}", None, 0), ("added", f"down{i}", None),
        )
    ]  # fmt: skip
    assert launched[-1] == ("multiply", "head", False)


def test_rows_between_have_the_launches_of_the_other_backend(launched, monkeypatch):
    """And where only one of two products is new, their norm is a launch."""
    step(HopperBackend.beside(backend()), 1000, 0)
    other = [
        ("multiply", "o0", True),
        ("norm", "f0"),
        ("linear", "gate_up0"),
        ("multiply", "down0", True),
    ]
    assert launched[4:8] == other
    launched.clear()
    monkeypatch.setattr(
        linear_hopper, "FASTER", FASTER | {"o": {range(2000): Tile(1, 32, 9, True)}}
    )
    step(HopperBackend.beside(backend()), 1000, 0)
    assert launched[4:8] == [("added", "o0", None), *other[1:]]


def test_rows_decide_who_multiplies(launched):
    new = HopperBackend.beside(backend())
    found = {}
    for n, m in ((8, 8), (99, 99), (100, 100), (200, 8), (384, 384), (385, 385)):
        launched.clear()
        step(new, n, m)
        found[n, m] = launched[-1][0]
    assert found == {
        (8, 8): "forward", (99, 99): "forward", (100, 100): "stored", (200, 8): "multiply",
        (384, 384): "stored", (385, 385): "multiply",
    }  # fmt: skip


def test_beside_another_backend(launched):
    old = backend()
    new = HopperBackend.beside(old)
    assert new.x is old.x and new.weights is old.weights
    assert not new._graphs and not new.recorded
    assert old._graphs and old.recorded


def test_what_it_cannot_be_beside(launched, monkeypatch):
    invariant = backend()
    invariant.batch_invariant = True
    with pytest.raises(ValueError, match="batch-invariant"):
        HopperBackend.beside(invariant)
    monkeypatch.setattr(hopper_backend, "available", lambda: False)
    with pytest.raises(RuntimeError, match="9.0"):
        HopperBackend.beside(backend())


def test_all_kernels_are_compiled_ahead():
    known = {(one[0], one[1]) for one in hopper_backend.instances()}
    ends = {"o": "Add", "down": "Add", "gate_up": "Gates", "logits": "Store"}
    needed = {
        (SOURCE, instance(tile, end))
        for product, end in ends.items()
        for n in range(1, 10000)
        if (tile := choose(product, n))
    }
    assert known == needed and set(FASTER) == set(ends)


def test_sums_of_squares_fit(launched):
    """`_prepare` takes a sum for 16 columns: no tile of `o` is narrower."""
    assert all(tile.squares >= 16 for tile in FASTER["o"].values())
