"""PyTorch as a contestant of `ct.bench`, on the memory of our arrays; and
medians of contestants where a whole table of them is wanted.

In a benchmark: {"PyTorch": rival(lambda torch, x: lambda: torch.relu(x), x)}
"""

import random
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

import cudatut as ct


def rival(prepare: Callable[..., Callable[[], Any]], *arrays: Any) -> Any:
    """prepare(torch, *tensors) returns what is timed; the tensors are the
    arrays, without a copy; uint16 is bfloat16.

    A rival, but not the vendor's. None under a sanitizer or profiler; where
    PyTorch cannot run, the reason. Raises ct.ToolMissing while an example is
    recorded.
    """
    if ct.tool.running():
        return None
    ct.activate()  # PyTorch then uses the same context
    try:
        import torch

        torch.zeros(1, device="cuda").sum().item()
    except Exception as error:
        reason = f"PyTorch cannot run here ({error})"
        if ct.tool.recording():
            raise ct.ToolMissing(reason) from error
        return ct.vendor.Missing(reason)
    call = prepare(torch, *(tensor(torch, array) for array in arrays))
    return ct.vendor.Vendor(call, vendor=False)


def medians(runs: dict[str, Any], rounds: int = 25) -> dict[str, float]:
    """Microseconds of each, taking turns; without those that cannot run. Under
    a sanitizer or profiler each runs once, and the dict is empty.
    """
    able = {name: run for name, run in runs.items() if run}
    for run in able.values():  # to compile and to load
        run()
    if ct.tool.running():
        return {}
    times = ct.take_turns(able, rounds, random.Random(0))
    return {name: median(some) for name, some in times.items()}


def tensor(torch: Any, array: Any) -> Any:
    """The same memory as a tensor."""
    if array.dtype != np.uint16:
        return torch.as_tensor(array, device="cuda")
    words = torch.as_tensor(array.view("int16"), device="cuda")
    return words.view(torch.bfloat16)
