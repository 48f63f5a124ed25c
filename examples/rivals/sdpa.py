"""PyTorch's attention as a rival, with the backend that is asked for.

    run = sdpa.rival("CUDNN_ATTENTION", q, keys, values, causal=True)

MATH keeps the S x S scores in memory; EFFICIENT_ATTENTION, FLASH_ATTENTION
(FlashAttention-2) and CUDNN_ATTENTION (cuDNN) compute in tiles.
"""

from typing import Any

from cudatut.book.rivals import torch_rival


def rival(
    backend: str, q: Any, keys: Any, values: Any, causal: bool = False
) -> Any:
    """A contestant for ct.bench, whose call returns PyTorch's result, [sequences,
    heads, tokens, d]; what stands for it otherwise is as in `torch_rival`.

    q, keys, values: on the GPU, fp32 of [heads, tokens, d], or bf16 (as uint16)
    of [sequences, tokens, heads, d]; with as many KV heads as heads.
    """

    def prepare(torch: Any, *tensors: Any) -> Any:
        from torch.nn.attention import SDPBackend, sdpa_kernel

        chosen = getattr(SDPBackend, backend)
        arrays = [
            x[None] if x.dim() == 3 else x.transpose(1, 2) for x in tensors
        ]

        def run() -> Any:
            with sdpa_kernel(chosen):
                return torch.nn.functional.scaled_dot_product_attention(
                    *arrays, is_causal=causal
                )

        return run

    return torch_rival.rival(prepare, q, keys, values)
