"""FlashAttention-3 as a rival: the package fa3-fwd, on Hopper.

run = fa3.rival(q, keys, values, causal=True)
"""

import importlib.util
from typing import Any

import cudatut as ct
from cudatut.book.rivals import torch_rival
from cudatut.book.rivals.absent import absent

# It imports einops, and does not say so.
PACKAGES = {"fa3_fwd_interface": "fa3-fwd", "einops": "einops"}


def rival(q: Any, keys: Any, values: Any, causal: bool = False) -> Any:
    """A contestant for ct.bench, whose call returns [sequences, tokens, heads,
    d]; what stands for it otherwise is as in `torch_rival`. Where the package
    is missing, or the GPU is not one of Hopper's, the reason. Raises
    ct.ToolMissing where it is missing while an example is recorded.

    q, keys, values: on the GPU, bf16 (as uint16) of [sequences, tokens, heads,
    d].
    """
    if ct.tool.running():
        return None
    if ct.device().compute_capability[0] != 9:
        return ct.vendor.Missing("FlashAttention-3 needs a GPU of Hopper")
    for module, package in PACKAGES.items():
        if importlib.util.find_spec(module) is None:
            return absent(f"the package {package} is not installed")

    def prepare(torch: Any, *tensors: Any) -> Any:
        from fa3_fwd_interface import flash_attn_func

        return lambda: flash_attn_func(*tensors, causal=causal)

    return torch_rival.rival(prepare, q, keys, values)
