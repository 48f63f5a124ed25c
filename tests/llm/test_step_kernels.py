"""What the kernels of a step have to do: that no kernel of a step is unknown, and that together they do what costs.py counts.
Fake arrays and kernels, no GPU."""

import functools
import runpy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.llm.backends import products
from cudatut.book.llm.kernels import (
    activation,
    fused,
    gemv,
    linear,
    linear_hopper,
    linear_qkv,
    norms,
    rows,
    sampling,
)
from cudatut.book.llm.kernels.attention import decode
from cudatut.book.llm.model.costs import operations, total
from cudatut.book.llm.model.random_model import SMOLLM2
from cudatut.book.llm.model.weights import Layer, Matrix
from cudatut.book.llm.serving.step_kernels import Launch, distinct, noted, replay, work_of

CONFIG = replace(SMOLLM2, layers=3)
CONTEXT = 300
KERNELS = runpy.run_path(str(Path(__file__).with_name("test_overlap.py")))["KERNELS"]


class Array:
    """What a launcher asks of an array on the GPU, each at an address of its own."""

    after = 1 << 40

    def __init__(self, dtype, *shape):
        self.shape, self.dtype = shape, np.dtype(dtype)
        self.nbytes = int(np.prod(shape)) * self.dtype.itemsize
        self.__cuda_array_interface__ = {
            "shape": shape, "typestr": self.dtype.str, "data": (Array.after, False), "version": 3,
        }  # fmt: skip
        Array.after += self.nbytes + 255 & ~255

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, rows):
        """All of it: whoever asks for rows asks for the first ones, which are all."""
        assert rows == slice(len(self))
        return self


class Kernel:
    def __init__(self, source, name, arch=None):
        self.name = name

    def __call__(self, *arguments, grid, block, shared=0, stream=None):
        pass


@pytest.fixture(autouse=True)
def without_gpu(monkeypatch):
    """Kernels that do nothing, on an H100; what was cached of them is forgotten afterwards."""
    gpu = SimpleNamespace(
        sm_count=132,
        shared_per_sm=233472,
        shared_per_block_optin=232448,
        compute_capability=(9, 0),
        max_threads_per_block=1024,
    )
    monkeypatch.setattr(ct, "Kernel", Kernel)
    monkeypatch.setattr(ct, "device", lambda: gpu)
    monkeypatch.setattr(ct, "empty", lambda shape, dtype: Array(dtype, *shape))
    monkeypatch.setattr(ct, "tensor_map", lambda array, box, swizzle: object())
    cached = [
        found
        for module in (
            activation,
            decode,
            fused,
            gemv,
            linear,
            linear_hopper,
            linear_qkv,
            norms,
            rows,
            sampling,
        )
        for found in vars(module).values()
        if isinstance(found, functools._lru_cache_wrapper)
    ]
    for found in cached:
        found.cache_clear()
    yield
    for found in cached:
        found.cache_clear()


def weights_of(c):
    def matrix(outputs, inputs):
        stored = Array("uint8", outputs, inputs // 32 * 20)
        return Matrix(Array("uint16", outputs, inputs), stored)

    width, kv = c.heads * c.head_dim, c.kv_heads * c.head_dim
    layers = [
        Layer(
            Array("float32", c.dim), matrix(width + 2 * kv, c.dim), matrix(c.dim, width),
            Array("float32", c.dim), matrix(2 * c.ffn, c.dim), matrix(c.dim, c.ffn),
        )
        for _ in range(c.layers)
    ]  # fmt: skip
    table = Array("uint8", c.vocab, c.dim // 32 * 34)
    head = Matrix(Array("uint16", c.vocab, c.dim), table)
    return SimpleNamespace(layers=layers, embedding=table, head=head, norm=Array("float32", c.dim))


def step(c, w, n, by="mma.sync"):
    """The launches of a step of n requests that get a token each, as gpu_backend.py makes them."""
    width = c.heads * c.head_dim
    x = Array("float32", n, c.dim)
    queries, act = Array("uint16", n, width), Array("uint16", n, c.ffn)
    out = Array("uint16", n, c.heads, c.head_dim)
    attended = Array("uint16", n, width)
    numbers = [Array("int32", n) for _ in range(4)]
    turns = Array("float32", c.context, c.head_dim // 2, 2)
    need = decode.sizes(n, c.heads, c.kv_heads, c.head_dim, 512)
    partials, tickets = Array("float32", need.partials), Array("uint32", need.tickets)
    lse, logits = Array("float32", n, c.heads), Array("float32", n, c.vocab)
    of = products.Products(c, n, by=by)

    with noted() as launches:
        activation.embed(numbers[0], w.embedding, x)
        for layer in w.layers:
            cache = [Array("uint16", n * 512, c.kv_heads, c.head_dim) for _ in "kv"]
            of.qkv(x, layer, (*numbers[1:3], turns), cache, queries, None)
            decode.paged(
                Array("uint16", n, c.heads, c.head_dim), *cache, Array("int32", n, 32), numbers[3], 16,
                out, lse, partials, tickets, 512,
            )  # fmt: skip
            of.output(attended, layer, x)
            of.gate_up(x, layer, act)
            of.down(act, layer, x)
        last = Array("float32", n, c.dim)
        activation.gather(numbers[0], x, last)
        of.logits(last, w.norm, w.head, logits)
        each = [
            Array(kind, n)
            for kind in ("float32", "int32", "float32", "uint64", "int32", "int32", "int32")
        ]
        sampling.sample(logits, *each, Array("uint64", n), Array("uint32", n))
    return launches


@pytest.mark.parametrize(
    ("n", "by"), [(1, "wgmma"), (8, "wgmma"), (256, "mma.sync"), (256, "wgmma"), (8192, "wgmma")]
)
def test_the_kernels_of_a_step_do_what_a_step_has_to_do(n, by):
    c, w = CONFIG, weights_of(CONFIG)
    launches = step(c, w, n, by)
    assert any(one.base == "linear_hopper" for one in launches) == (by == "wgmma" and n > 8)
    found = [work_of(one, w, c, n, n * CONTEXT) for one in launches]
    expected = total(operations(c, 1, CONTEXT, sequences=n))
    assert sum(work.flops for work in found) == expected.flops
    # Each weight once; each key and value once.
    matrices = [m for layer in w.layers for m in layer if isinstance(m, Matrix)] + [w.head]
    read = sum((m.stored if n <= gemv.ROWS else m.bf16).nbytes for m in matrices)
    read += c.layers * n * CONTEXT * 2 * 2 * c.kv_heads * c.head_dim
    between = sum(work.bytes for work in found) - read
    # Rows that travel between launches: less than 100 numbers for each of a row's.
    assert 0 < between < n * c.layers * 100 * c.dim + 8 * n * c.vocab + 10_000 * c.layers


@pytest.mark.parametrize(
    ("n", "by", "norms"), [(1, "wgmma", 0), (256, "mma.sync", 2), (256, "wgmma", 1)]
)
def test_launches_of_the_same_work_stand_together(n, by, norms):
    """norms: launches of a layer."""
    c, w = CONFIG, weights_of(CONFIG)
    launches = step(c, w, n, by)
    kernels = distinct(launches)
    assert sum(map(len, kernels)) == len(launches)
    names = [[work_of(one, w, c, n, n * CONTEXT).name for one in those] for those in kernels]
    assert all(len(set(those)) == 1 for those in names)
    assert len({those[0] for those in names}) == len(kernels), "each work has one row"
    counts = {those[0]: len(those) for those in names}
    assert counts["attention"] == counts["down"] == c.layers
    assert counts["norm"] == norms * c.layers + 1


def test_no_kernel_of_a_step_is_unknown():
    c, w = CONFIG, weights_of(CONFIG)
    matrix = w.layers[0].down.bf16
    for name in (name for names in KERNELS.values() for name in names):
        launch = Launch(Kernel("", name), (None, matrix, None, 1, c.dim, c.ffn), {"grid": 1})
        assert work_of(launch, w, c, 1, 1).bytes, name


def test_other_kernels_have_no_bytes():
    launch = Launch(Kernel("", "merge<4>"), (), {"grid": (2, 3)})
    assert work_of(launch, weights_of(CONFIG), CONFIG, 1, 1) == ("merge", None, None)
    assert launch.blocks == 6


def test_launches_are_noted_only_meanwhile_and_can_be_repeated():
    kernel = Kernel("", "gather")
    with pytest.raises(RuntimeError), noted() as launches:
        kernel(1, grid=2, block=3)
        raise RuntimeError
    kernel(2, grid=2, block=3)
    assert [one.arguments for one in launches] == [(1,)]
    with noted() as again:
        replay(launches)()
    assert [(one.arguments, one.how) for one in again] == [((1,), {"grid": 2, "block": 3})]
