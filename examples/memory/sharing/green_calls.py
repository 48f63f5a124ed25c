"""Green contexts, through cuda.bindings: the SMs in two groups, each with a
stream. What is launched in the stream of a group runs on its SMs alone.

    green = Green(16)                          # 16 SMs, and the rest
    launch(kernel, 16, 1024, green.small, values, types)
    green.close()
"""

from collections.abc import Sequence
from typing import Any

import cudatut as ct

try:
    from cuda.bindings import driver
except ImportError as error:
    raise ct.ToolMissing(
        "green contexts need cuda-bindings, of the version of your CUDA: "
        "pip install 'cuda-bindings==13.*', or 12.*"
    ) from error


def call(name: str, *arguments: Any) -> Any:
    """What a function of the driver gives besides its status. Raises
    CudatutError with the name of the status, if it is an error.
    """
    status, *found = getattr(driver, name)(*arguments)
    if status != driver.CUresult.CUDA_SUCCESS:
        raise ct.CudatutError(f"{name}: {status.name}")
    return found[0] if len(found) == 1 else tuple(found)


# --8<-- [start:green]
SM = driver.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM
FLAGS = driver.CUgreenCtxCreate_flags.CU_GREEN_CTX_DEFAULT_STREAM
NON_BLOCKING = driver.CUstream_flags.CU_STREAM_NON_BLOCKING


class Green:
    """At least `wanted` SMs for one group, what is left for the other."""

    def __init__(self, wanted: int):
        ct.synchronize()  # the primary context is there, and current
        device = call("cuCtxGetDevice")
        whole = call("cuDeviceGetDevResource", device, SM)
        (small,), _, rest = call(
            "cuDevSmResourceSplitByCount", 1, whole, 0, wanted
        )
        self.small_sms, self.rest_sms = small.sm.smCount, rest.sm.smCount
        self._contexts, self._streams = [], []
        try:
            for group in (small, rest):
                described = call("cuDevResourceGenerateDesc", [group], 1)
                made = call("cuGreenCtxCreate", described, device, FLAGS)
                self._contexts.append(made)
                self._streams.append(
                    call("cuGreenCtxStreamCreate", made, NON_BLOCKING, 0)
                )
        except BaseException:
            self.close()
            raise
        self.small, self.rest = self._streams

    def close(self) -> None:
        """Gives the SMs back; nothing may be running in the streams."""
        for stream in self._streams:
            call("cuStreamDestroy", stream)
        for context in self._contexts:
            call("cuGreenCtxDestroy", context)
        self._streams, self._contexts = [], []


# --8<-- [end:green]


# --8<-- [start:launch]
def loaded(kernel: ct.Kernel) -> Any:
    """A kernel of the book that belongs to no context: it runs in that of the
    stream which it is launched in.
    """
    library = call(
        "cuLibraryLoadData", kernel.cubin, None, None, 0, None, None, 0
    )
    found = call("cuLibraryGetKernel", library, kernel.symbol.encode())
    return driver.CUfunction(int(found))


def launch(
    kernel: Any,
    grid: int,
    block: int,
    stream: Any,
    values: Sequence[Any],
    types: Sequence[Any],
) -> None:
    """types: those of ctypes, a c_void_p for an address."""
    shape = grid, 1, 1, block, 1, 1
    arguments = tuple(values), tuple(types)
    call("cuLaunchKernel", kernel, *shape, 0, stream, arguments, 0)


# --8<-- [end:launch]


def address(array: Any) -> int:
    """Where an array lies on the GPU."""
    return int(array.__cuda_array_interface__["data"][0])
