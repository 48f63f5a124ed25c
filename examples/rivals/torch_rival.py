"""PyTorch as a contestant of `ct.bench`, on the memory of our arrays.

In a benchmark: {"PyTorch": rival(lambda torch, x: lambda: torch.relu(x), x)}
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import cudatut as ct
from cudatut.book.rivals.absent import absent


def rival(
    prepare: Callable[..., Callable[[], Any]],
    *arrays: Any,
    vendor: bool = False,
) -> Any:
    """prepare(torch, *tensors) returns what is timed; the tensors are the
    arrays, without a copy; uint16 is bfloat16.

    vendor: PyTorch calls a library of NVIDIA's here, so ratios are to this row.
    It is called once, so that what fails is known before the contest. None
    under a sanitizer or profiler; where PyTorch cannot run, the reason. Raises
    ct.ToolMissing while an example is recorded.
    """
    if ct.tool.running():
        return None
    try:
        ct.activate()  # PyTorch then uses the same context
        import torch

        call = prepare(torch, *(tensor(torch, array) for array in arrays))
        call()
        torch.cuda.synchronize()
    except ct.ToolMissing as error:
        return absent(str(error), error)
    except Exception as error:
        line = (str(error).strip() or repr(error)).splitlines()[0]
        return absent(f"PyTorch cannot run here ({line})", error)
    return ct.vendor.Vendor(call, vendor=vendor)


def tensor(torch: Any, array: Any) -> Any:
    """The same memory as a tensor."""
    if array.dtype != np.uint16:
        return torch.as_tensor(array, device="cuda")
    words = torch.as_tensor(array.view("int16"), device="cuda")
    return words.view(torch.bfloat16)
