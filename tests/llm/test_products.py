"""Which launches the products of a layer are, for each number of rows, GPU and mode, without a GPU."""

from types import SimpleNamespace

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.llm.backends import products
from cudatut.book.llm.backends.products import Products
from cudatut.book.llm.kernels import fused, linear_hopper, norms
from cudatut.book.llm.kernels.linear_hopper import FASTER, SOURCE, Tile, choose, instance

ROWS, DIM = 5000, 64
CONFIG = SimpleNamespace(dim=DIM, rms_eps=1e-5)


@pytest.fixture
def launched(monkeypatch):
    """Names of what is launched, in order, each with what else counts; on a Hopper GPU."""
    found = []

    def note(name, *which, options=()):
        def launch(*a, **more):
            found.append((name, *(a[i] for i in which), *(more.get(o) for o in options)))

        return launch

    monkeypatch.setattr(linear_hopper, "available", lambda: True)
    monkeypatch.setattr(ct, "empty", np.zeros)
    monkeypatch.setattr(norms, "rms_norm", note("norm", 1))
    monkeypatch.setattr(fused, "norm_qkv", note("norm and qkv", 1, 2))
    monkeypatch.setattr(fused, "norm_gate_up", note("norm and gates", 1, 2))
    monkeypatch.setattr(products, "gemv", note("gemv", 1, 3))
    monkeypatch.setattr(products, "linear_qkv", note("qkv", 1))
    monkeypatch.setattr(linear_hopper, "stored", note("stored", 1))

    def linear(x, weights, out, add=False, stream=None, swiglu=False, fast=False):
        found.append(("linear", weights, add, swiglu, fast))

    def added(x, weights, y, tile, norm, stream):
        found.append(("added", weights, norm and norm.weight))

    def gated(x, weights, out, tile, norm, squares, stream):
        found.append(("gated", weights, norm and norm.weight, squares))

    monkeypatch.setattr(products, "linear", linear)
    monkeypatch.setattr(linear_hopper, "added", added)
    monkeypatch.setattr(linear_hopper, "gated", gated)
    return found


def layer(of, n):
    """Launches of a layer and the logits of n rows."""

    def matrix(name):
        return SimpleNamespace(bf16=name, stored=f"stored {name}")

    weights = SimpleNamespace(
        attention_norm="a", ffn_norm="f",
        **{name: matrix(name) for name in ("qkv", "o", "gate_up", "down")},
    )  # fmt: skip
    x = np.zeros((n, DIM), "uint16")
    of.qkv(x, weights, ("positions", "slots", "table"), ("keys", "values"), x, None)
    of.output(x, weights, x)
    of.gate_up(x, weights, x)
    of.down(x, weights, x)
    of.logits(x, "n", matrix("head"), x)


def by_mma_sync(fast):
    return [
        ("norm", "a"), ("qkv", "qkv"), ("linear", "o", True, False, fast), ("norm", "f"),
        ("linear", "gate_up", False, True, fast), ("linear", "down", True, False, fast),
        ("norm", "n"), ("linear", "head", False, False, fast),
    ]  # fmt: skip


def test_few_rows_come_from_stored_blocks(launched):
    for by in products.BY:
        launched.clear()
        layer(Products(CONFIG, ROWS, by=by), 8)
        assert launched == [
            ("norm and qkv", "a", "stored qkv"), ("gemv", "stored o", True),
            ("norm and gates", "f", "stored gate_up"), ("gemv", "stored down", True),
            ("norm", "n"), ("gemv", "stored head", False),
        ]  # fmt: skip


def test_some_hundred_rows_need_no_norm_between_output_and_gates(launched):
    layer(Products(CONFIG, ROWS), 200)
    assert launched == [
        ("norm", "a"), ("qkv", "qkv"), ("added", "o", "f"), ("gated", "gate_up", "f", 16),
        ("added", "down", None), ("norm", "n"), ("stored", "head"),
    ]  # fmt: skip


def test_thousands_of_rows_have_all_norms(launched):
    layer(Products(CONFIG, ROWS), 5000)
    assert launched == [
        ("norm", "a"), ("qkv", "qkv"), ("linear", "o", True, False, True), ("norm", "f"),
        ("gated", "gate_up", None, 0), ("added", "down", None),
        ("norm", "n"), ("linear", "head", False, False, True),
    ]  # fmt: skip


def test_where_only_one_of_two_products_is_new_their_norm_is_a_launch(launched, monkeypatch):
    faster = FASTER | {"o": {range(2000): Tile(1, 32, 9, True)}}
    monkeypatch.setattr(linear_hopper, "FASTER", faster)
    layer(Products(CONFIG, ROWS), 1000)
    assert launched[2:5] == [
        ("added", "o", None),
        ("norm", "f"),
        ("linear", "gate_up", False, True, True),
    ]


@pytest.mark.parametrize("n", [9, 99, 385, 2047])
def test_rows_that_the_table_leaves_to_mma_sync(launched, n):
    layer(Products(CONFIG, ROWS), n)
    assert launched == by_mma_sync(fast=True)


@pytest.mark.parametrize("n", [1, 200, 5000])
def test_batch_invariant_products_are_all_by_one_kernel(launched, n):
    of = Products(CONFIG, ROWS, batch_invariant=True)
    assert of.by == "mma.sync"
    layer(of, n)
    assert launched == by_mma_sync(fast=False)


@pytest.mark.parametrize("n", [200, 5000])
def test_the_old_ones_can_be_asked_for(launched, n):
    layer(Products(CONFIG, ROWS, by="mma.sync"), n)
    assert launched == by_mma_sync(fast=True)


def test_what_a_gpu_takes(launched, monkeypatch):
    assert Products(CONFIG, 1).by == "wgmma"
    with pytest.raises(ValueError, match="batch-invariant"):
        Products(CONFIG, 1, batch_invariant=True, by="wgmma")
    monkeypatch.setattr(linear_hopper, "available", lambda: False)
    assert Products(CONFIG, 1).by == "mma.sync"
    for by in ("wgmma", "tcgen05"):
        with pytest.raises(ValueError, match=f"'{by}'.*9.0"):
            Products(CONFIG, 1, by=by)


def test_all_kernels_are_compiled_ahead():
    known = {(one[0], one[1]) for one in linear_hopper.instances()}
    ends = {"o": "Add", "down": "Add", "gate_up": "Gates", "logits": "Store"}
    needed = {
        (SOURCE, instance(tile, end))
        for product, end in ends.items()
        for n in range(1, 10000)
        if (tile := choose(product, n))
    }
    assert known == needed and set(FASTER) == set(ends)


def test_sums_of_squares_fit():
    """`Products` has room for a sum for 16 columns: no tile of `o` is narrower."""
    assert all(tile.squares >= 16 for tile in FASTER["o"].values())
