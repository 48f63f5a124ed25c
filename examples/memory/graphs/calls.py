"""The calls of the CUDA driver that PyCUDA has no words for: graphs, through
cuda.bindings, on the same context and the same streams.

    graph = captured(stream, work)     # what work() launches on it
    ready = call("cuGraphInstantiate", graph, 0)
    call("cuGraphLaunch", ready, handle(stream))
"""

from collections.abc import Callable, Sequence
from typing import Any

import cudatut as ct


def bindings() -> Any:
    """The module cuda.bindings.driver. Raises ToolMissing."""
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise ct.ToolMissing(
            "CUDA graphs need cuda-bindings, of the version of your CUDA: "
            "pip install 'cuda-bindings==13.*', or 12.*"
        ) from error
    return driver


# --8<-- [start:call]
def call(name: str, *arguments: Any) -> Any:
    """What a function of the driver gives besides its status. Raises
    CudatutError with the name of the status, if it is an error.
    """
    status, *found = getattr(bindings(), name)(*arguments)
    if status != bindings().CUresult.CUDA_SUCCESS:
        raise ct.CudatutError(f"{name}: {status.name}")
    return found[0] if len(found) == 1 else tuple(found)


def handle(stream: Any = None) -> Any:
    """A PyCUDA stream, or the default one, as cuda.bindings wants it."""
    return bindings().CUstream(stream.handle if stream else 0)


def address(array: Any) -> int:
    """Where an array lies on the GPU."""
    return int(array.__cuda_array_interface__["data"][0])


# --8<-- [end:call]


# --8<-- [start:captured]
def captured(stream: Any, work: Callable[[], object], into: Any = None) -> Any:
    """The graph of what work() puts on a stream; nothing of it runs. into: a
    graph that is still empty. Ends the capture also where work() raises.
    """
    on = handle(stream)
    mode = bindings().CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    if into is None:
        call("cuStreamBeginCapture", on, mode)
    else:
        call("cuStreamBeginCaptureToGraph", on, into, None, None, 0, mode)
    try:
        work()
    except BaseException:
        bindings().cuStreamEndCapture(on)  # or the stream stays unusable
        raise
    return call("cuStreamEndCapture", on)


# --8<-- [end:captured]


# --8<-- [start:update]
def latest(stream: Any) -> Any:
    """The node of the last launch on a stream that is being captured."""
    return call("cuStreamGetCaptureInfo", handle(stream))[3][0]


def set_arguments(
    ready: Any, node: Any, values: Sequence[Any], types: Sequence[Any]
) -> None:
    """Other arguments for a kernel of an executable graph, from its next
    launch on. types: those of ctypes, a c_void_p for an address.
    """
    params = call("cuGraphKernelNodeGetParams", node)
    params.kernelParams, params.extra = (tuple(values), tuple(types)), 0
    call("cuGraphExecKernelNodeSetParams", ready, node, params)


# --8<-- [end:update]


# --8<-- [start:node]
def function_of(kernel: ct.Kernel) -> Any:
    """A kernel of the book as cuda.bindings knows functions."""
    module = call("cuModuleLoadData", kernel.cubin)
    return call("cuModuleGetFunction", module, kernel.symbol.encode())


def add_kernel(
    graph: Any,
    after: Sequence[Any],
    function: Any,
    values: Sequence[Any],
    types: Sequence[Any],
    grid: int = 1,
    block: int = 1,
) -> Any:
    """A new node: this kernel, to be run after those nodes."""
    params = bindings().CUDA_KERNEL_NODE_PARAMS()
    params.func = function
    params.gridDimX, params.gridDimY, params.gridDimZ = grid, 1, 1
    params.blockDimX, params.blockDimY, params.blockDimZ = block, 1, 1
    params.kernelParams = tuple(values), tuple(types)
    return call("cuGraphAddKernelNode", graph, list(after), len(after), params)


# --8<-- [end:node]


# --8<-- [start:conditional]
def condition(graph: Any, first: int) -> Any:
    """A handle whose value is `first` whenever the graph begins."""
    driver = bindings()
    context = call("cuCtxGetCurrent")
    with_default = driver.CU_GRAPH_COND_ASSIGN_DEFAULT
    return call(
        "cuGraphConditionalHandleCreate", graph, context, first, with_default
    )


def add_conditional(
    graph: Any, after: Sequence[Any], kind: str, found: Any
) -> Any:
    """A new node that asks a handle, of kind "IF" or "WHILE": the graph of
    what it then does, which is still empty.
    """
    driver = bindings()
    params = driver.CUgraphNodeParams()
    params.type = driver.CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL
    kinds = driver.CUgraphConditionalNodeType
    params.conditional.type = getattr(kinds, f"CU_GRAPH_COND_TYPE_{kind}")
    params.conditional.handle, params.conditional.size = found, 1
    params.conditional.ctx = call("cuCtxGetCurrent")
    after = list(after) or None
    how = after, None, len(after or ())
    if driver.CUDA_VERSION < 13000:  # arrows have no properties there
        call("cuGraphAddNode", graph, how[0], how[2], params)
    else:
        call("cuGraphAddNode", graph, *how, params)
    return params.conditional.phGraph_out[0]


# --8<-- [end:conditional]


# --8<-- [start:count]
def sizes(graph: Any) -> tuple[int, int]:
    """How many nodes and how many arrows a graph has."""
    end = "" if bindings().CUDA_VERSION >= 13000 else "_v2"
    return (
        call("cuGraphGetNodes", graph, 0)[-1],
        call(f"cuGraphGetEdges{end}", graph, 0)[-1],
    )


# --8<-- [end:count]
