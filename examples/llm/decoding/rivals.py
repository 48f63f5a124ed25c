"""PyTorch on our own arrays, as the rival of a step of decoding.

    ct.bench({"ours": run, "PyTorch": decoding_rivals.sdpa(q, keys, values)})

Each function returns what `torch_rival.rival` does, on bf16 as uint16.
"""

from collections.abc import Callable
from typing import Any

from cudatut.book.rivals.torch_rival import rival


def sdpa(q: Any, keys: Any, values: Any) -> Any:
    """scaled_dot_product_attention of one query per sequence, by its
    FlashAttention. q: [s, heads, d]; keys, values: [s, n, kv_heads, d].
    """

    def prepare(torch: Any, q: Any, keys: Any, values: Any) -> Callable:
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

    return rival(prepare, q, keys, values, vendor=True)


def matmul(x: Any, weights: Any) -> Any:
    """x @ weights.T."""
    return rival(
        lambda torch, x, w: lambda: torch.matmul(x, w.T),
        *(x, weights),
        vendor=True,
    )
