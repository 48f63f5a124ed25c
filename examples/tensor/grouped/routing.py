"""Experts as tokens choose them, and matrices for their products.

layer = Layer(experts=64, of=256, taken=8, tokens=4096, k=7168, n=2048)
some = Products(layer)     # some.x, some.weights, some.ends, some.out
"""

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import cudatut as ct


class Layer(NamedTuple):
    """The first product of the experts: this GPU has `experts` of the `of` ones
    in the model, and each token takes some. Their chances fall with their rank,
    rank^-zipf: with 0 all are equal.
    """

    experts: int
    of: int
    taken: int
    tokens: int
    k: int
    n: int
    zipf: float = 0.0


def rows_of_experts(layer: Layer, seed: int = 1) -> np.ndarray:
    """How many tokens each expert of this GPU gets."""
    rng = ct.rng(seed)
    chance = np.arange(1, layer.of + 1) ** -layer.zipf
    # The largest of these keys are a draw by chance, without repetition.
    keys = np.log(chance) + rng.gumbel(size=(layer.tokens, layer.of))
    ranks = np.argsort(-keys, axis=1)[:, : layer.taken]
    names = rng.permutation(layer.of)  # the popular ones are anywhere
    counts = np.bincount(names[ranks].ravel(), minlength=layer.of)
    return counts[: layer.experts]


def random_matrix(shape: tuple[int, ...], seed: int) -> Any:
    """bf16 (uint16) numbers from -1 to 1, of an even size, on the GPU. Raises
    ValueError for an odd one: the kernel writes pairs.
    """
    if math.prod(shape) % 2:
        raise ValueError(f"random_matrix: {shape} has an odd size")
    out = ct.empty(shape, "uint16")
    if out.size:
        address = out.__cuda_array_interface__["data"][0]
        grid = min(ct.cdiv(out.size, 512), 16 * ct.device().sm_count)
        _kernel()(
            np.uint64(address), np.uint64(out.size // 2), seed,
            grid=grid, block=256,
        )  # fmt: skip
    return out


@cache
def _kernel():
    return ct.Kernel("tensor/gemm/random_bf16.cu", "random_bf16")


class Products:
    """What a layer multiplies: rows sorted by expert, and where each expert's
    rows end, on the GPU and on the host.
    """

    def __init__(self, layer: Layer, seed: int = 1):
        self.layer, self.counts = layer, rows_of_experts(layer, seed)
        self.host_ends = np.cumsum(self.counts).astype("int32")
        self.rows = int(self.host_ends[-1])
        self.ends = ct.to_device(self.host_ends)
        self.x = random_matrix((self.rows, layer.k), seed)
        self.weights = random_matrix(
            (layer.experts, layer.n, layer.k), seed + 1
        )
        self.out = ct.empty((self.rows, layer.n), "uint16")
        self.flops = 2 * self.rows * layer.n * layer.k
