"""PyTorch on our own arrays, as the rival of a step of decoding.

    ct.bench({"ours": run, "PyTorch": decoding_rivals.sdpa(q, keys, values)})

Each function returns a callable for `ct.bench`; None while a tool watches the
process; a `ct.vendor.Missing` where PyTorch cannot run, which is an error while
an example is recorded.
"""

import functools
from collections.abc import Callable
from typing import Any

import cudatut as ct


class _Bits:
    """An array of bf16, which travels as uint16, for PyTorch to look at."""

    def __init__(self, array: Any):
        self.kept = array
        given = array.__cuda_array_interface__
        self.__cuda_array_interface__ = {
            "data": (given["data"][0], False), "shape": tuple(array.shape),
            "typestr": "<i2", "strides": None, "version": 3,
        }  # fmt: skip


def _rival(prepare: Callable[..., Any]) -> Callable[..., Any]:
    """`prepare(torch, *tensors)` gives the call; here the arrays become tensors
    and the call runs once, so that one that fails is known before the contest.
    """

    @functools.wraps(prepare)
    def found(*arrays: Any, **how: Any) -> Any:
        if ct.tool.running():
            return None
        try:
            ct.activate()
            import torch

            tensors = [
                torch.as_tensor(_Bits(a), device="cuda").view(torch.bfloat16)
                for a in arrays
            ]
            call = prepare(torch, *tensors, **how)
            call()
            torch.cuda.synchronize()
        except Exception as error:
            first = (str(error).strip() or repr(error)).splitlines()[0]
            message = f"PyTorch cannot run here ({first})"
            if ct.tool.recording():
                raise ct.ToolMissing(message) from error
            return ct.vendor.Missing(message)
        return ct.vendor.Vendor(call)

    return found


@_rival
def sdpa(torch: Any, q: Any, keys: Any, values: Any) -> Callable[[], Any]:
    """scaled_dot_product_attention of one query per sequence, by its
    FlashAttention. q: [s, heads, d]; keys, values: [s, n, kv_heads, d].
    """
    from torch.nn.attention import SDPBackend, sdpa_kernel

    query = q.unsqueeze(2)
    k, v = keys.transpose(1, 2), values.transpose(1, 2)
    shared = query.shape[1] != k.shape[1]

    def call() -> Any:
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            return torch.nn.functional.scaled_dot_product_attention(
                query, k, v, enable_gqa=shared
            )

    return call


@_rival
def matmul(torch: Any, x: Any, weights: Any) -> Callable[[], Any]:
    """x @ weights.T in bf16."""
    return lambda: torch.matmul(x, weights.T)
