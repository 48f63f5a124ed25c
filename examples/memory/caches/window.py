"""The part of L2 that is set aside, and the window of addresses that may use it.

window = Window()
window.set_aside(window.most)   # bytes of L2
window.put(stream, array)       # what this stream's kernels read of it, stays
window.clear(stream)
window.reset()                  # what stays may go
"""

from typing import Any

import cudatut as ct


def _bindings() -> Any:
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise ct.ToolMissing(
            "A window in L2 needs cuda-bindings, of the version of your CUDA: "
            "pip install 'cuda-bindings==13.*', or 12.*"
        ) from error
    return driver


# --8<-- [start:window]
class Window:
    """`most`: bytes that may be set aside. Raises ToolMissing, CudatutError."""

    def __init__(self):
        driver = self._driver = _bindings()
        ct.activate()
        gpu = self._call("cuCtxGetDevice")
        attribute = driver.CUdevice_attribute
        self.most, self._widest = (
            self._call("cuDeviceGetAttribute", which, gpu)
            for which in (
                attribute.CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE,
                attribute.CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE,
            )
        )

    def set_aside(self, nbytes: int) -> None:
        limit = self._driver.CUlimit.CU_LIMIT_PERSISTING_L2_CACHE_SIZE
        self._call("cuCtxSetLimit", limit, nbytes)

    # --8<-- [start:put]
    def put(self, stream: Any, array: Any) -> None:
        """Hold for all that is launched on the PyCUDA stream from now on."""
        kinds = self._driver.CUaccessProperty
        window = self._driver.CUaccessPolicyWindow()
        window.base_ptr = int(array.gpudata)
        window.num_bytes = min(array.nbytes, self._widest)
        window.hitRatio = 1.0
        window.hitProp = kinds.CU_ACCESS_PROPERTY_PERSISTING
        window.missProp = kinds.CU_ACCESS_PROPERTY_STREAMING
        self._set(stream, window)

    # --8<-- [end:put]
    def clear(self, stream: Any) -> None:
        """A window of no bytes is none."""
        self._set(stream, self._driver.CUaccessPolicyWindow())

    def reset(self) -> None:
        self._call("cuCtxResetPersistingL2Cache")

    def _set(self, stream: Any, window: Any) -> None:
        name = "CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW"
        which = getattr(self._driver.CUstreamAttrID, name)
        value = self._driver.CUstreamAttrValue()
        value.accessPolicyWindow = window
        handle = self._driver.CUstream(stream.handle)
        self._call("cuStreamSetAttribute", handle, which, value)

    # --8<-- [end:window]

    def _call(self, name: str, *arguments: Any) -> Any:
        status, *found = getattr(self._driver, name)(*arguments)
        if status != self._driver.CUresult.CUDA_SUCCESS:
            raise ct.CudatutError(f"{name}: {status.name}")
        return found[0] if found else None
