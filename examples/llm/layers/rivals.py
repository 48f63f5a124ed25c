"""PyTorch's norms, for `torch_rival.rival`: each gives a call."""

from collections.abc import Callable
from typing import Any

from cudatut.book.llm.layers.arrays import EPS


def rms_norm(torch: Any, x: Any, weight: Any) -> Callable[[], Any]:
    norm, shape = torch.nn.functional.rms_norm, x.shape[-1:]
    return lambda: norm(x, shape, weight, EPS)


def layer_norm(torch: Any, x: Any, weight: Any, bias: Any) -> Callable[[], Any]:
    norm, shape = torch.nn.functional.layer_norm, x.shape[-1:]
    return lambda: norm(x, shape, weight, bias, EPS)
