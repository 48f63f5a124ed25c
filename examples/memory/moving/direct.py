"""A kernel of the book without the checks of `ct.Kernel`, which take longer than
a small copy.

    copy = prepared(ct.Kernel("memory/pinned/pinned.cu", "copy"), "PPQ")
    copy(here, there, n, grid=132, block=256)  # addresses as whole numbers
"""

from collections.abc import Callable
from typing import Any

import cudatut as ct


# --8<-- [start:prepared]
def prepared(kernel: ct.Kernel, types: str) -> Callable[..., None]:
    """A function that launches it. types: one letter for each argument, as in
    Python's `struct`; nothing else is looked at.
    """
    import pycuda.driver as cuda

    ct.activate()
    module = cuda.module_from_buffer(kernel.cubin)
    function = module.get_function(kernel.symbol).prepare(types)

    def launch(*arguments: Any, grid: int, block: int, stream: Any = None):
        shape = (grid, 1), (block, 1, 1)
        function.prepared_async_call(*shape, stream, *arguments)

    launch.module = module  # which has to live as long as its function
    return launch


# --8<-- [end:prepared]
