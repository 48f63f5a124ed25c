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
import hopper_layers
import norms
from gpu_backend import GpuBackend
from hopper_backend import HopperBackend
from linear_hopper import SOURCE, choose, instance
from random_model import SMOLLM2

import cudatut as ct

ROWS, DIM = 300, 64


@pytest.fixture
def launched(monkeypatch):
    """Names of what a step launches, in order, each with what else counts."""
    found = []

    def note(name, *which):
        return lambda *a, **more: found.append((name, *(a[i] for i in which)))

    monkeypatch.setattr(hopper_backend, "available", lambda: True)
    monkeypatch.setattr(activation, "embed", note("embed"))
    monkeypatch.setattr(activation, "gather", note("gather"))
    monkeypatch.setattr(norms, "rms_norm", note("norm"))
    monkeypatch.setattr(hopper_backend, "stored", note("stored"))
    monkeypatch.setattr(GpuBackend, "_multiply", note("multiply"))
    monkeypatch.setattr(GpuBackend, "_forward", note("forward"))
    monkeypatch.setattr(GpuBackend, "_attend", note("attention"))
    monkeypatch.setattr(ct, "empty", np.zeros)

    def added(x, weights, y, norm, stream, later=()):
        found.append(("added", weights, norm and norm.weight, list(later)))
        return 32

    def gated(x, weights, out, norm, squares, stream, later=()):
        found.append(("gated", weights, norm.weight, squares, list(later)))

    def turned(x, weights, *more, stream, scales):
        *_, norm, squares = more
        found.append(("turned", weights, norm and norm.weight, squares))

    for name, product in (("added", added), ("gated", gated), ("turned", turned)):
        monkeypatch.setattr(hopper_layers, name, product)
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


def test_a_step_of_many_rows_has_one_norm_in_front_and_one_behind(launched):
    step(HopperBackend.beside(backend()), 200, 200)
    names = [one[0] for one in launched]
    layer = ["turned", "attention", "added", "gated", "added"]
    assert names == ["embed", "norm", *layer, *layer, "gather", "norm", "stored"]
    products = [one for one in launched if one[0] in ("turned", "added", "gated")]
    assert products == [
        ("turned", "qkv0", None, 0),
        ("added", "o0", "f0", ["gate_up0", "down0"]),
        ("gated", "gate_up0", "f0", 32, ["qkv1"]),
        ("added", "down0", "a1", []),
        ("turned", "qkv1", "a1", 32),
        ("added", "o1", "f1", ["gate_up1", "down1"]),
        ("gated", "gate_up1", "f1", 32, []),
        ("added", "down1", None, []),
    ]


def test_rows_decide_who_multiplies(launched):
    new = HopperBackend.beside(backend())
    found = {}
    for n, m in ((8, 8), (9, 9), (200, 8), (200, 0)):
        launched.clear()
        step(new, n, m)
        found[n, m] = launched[-1][0]
    assert found == {(8, 8): "forward", (9, 9): "stored", (200, 8): "multiply", (200, 0): "added"}
    new.least = 64
    for n, last in ((63, "forward"), (64, "stored")):
        launched.clear()
        step(new, n, n)
        assert launched[-1][0] == last


def test_many_rows_fetch_no_weights_ahead(launched):
    step(HopperBackend.beside(backend()), ROWS, 1)
    assert not any(one[-1] for one in launched if one[0] in ("added", "gated"))


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
    c = SMOLLM2
    known = {(one[0], one[1]) for one in hopper_layers.instances(c)}
    heads = c.heads * c.head_dim
    for n in (*range(9, 1200), 2048, 8192, 8448):
        for outputs, inputs, end in (
            (c.dim, heads, "Add"),
            (c.dim, c.ffn, "Add"),
            (2 * c.ffn, c.dim, "Gates"),
            (heads + 2 * c.kv_heads * c.head_dim, c.dim, "Turn<__nv_bfloat16>"),
            (c.vocab, c.dim, "Store"),
        ):
            assert (SOURCE, instance(choose(n, outputs, inputs), end)) in known
