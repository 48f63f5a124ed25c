"""CUDA graphs: launches that are recorded once and then started together.

PyCUDA has no graphs. It shares its stream with cuda.bindings, which records
what is launched on it.
"""

from collections.abc import Callable
from typing import Any

import cudatut as ct


def _bindings() -> Any:
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise ct.ToolMissing(
            "CUDA graphs need cuda-bindings, of the version of your CUDA: "
            "pip install 'cuda-bindings==13.*', or 12.*"
        ) from error
    return driver


# --8<-- [start:graph]
class Graph:
    """What `work` launches on a PyCUDA stream, recorded and not run. Everything
    that it needs is compiled and allocated before; addresses, sizes and grids
    are those of the recording.

    overlap: each kernel may begin while the one before it still runs. All of
    them have to be made for that: see overlap.cuh. Raises ToolMissing,
    CudatutError.
    """

    def __init__(
        self, work: Callable[[], None], stream: Any, overlap: bool = False
    ):
        driver = self._driver = _bindings()
        self._stream = driver.CUstream(stream.handle)
        relaxed = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        self._call("cuStreamBeginCapture", self._stream, relaxed)
        try:
            work()
        finally:  # also after an error: a stream in capture is of no other use
            graph = self._call("cuStreamEndCapture", self._stream)
        self._graph = graph
        if overlap:
            self._overlap()
        self._ready = self._call("cuGraphInstantiate", graph, 0)
        _, self.nodes = driver.cuGraphGetNodes(graph, 0)[1:]

    # --8<-- [start:overlap]
    def _overlap(self) -> None:
        """Replace each arrow by one that starts when its kernel lets it."""
        driver, graph = self._driver, self._graph
        # What takes properties of arrows has a name of its own before CUDA 13.
        end = "" if driver.CUDA_VERSION >= 13000 else "_v2"
        count = self._call(f"cuGraphGetEdges{end}", graph, 0)[-1]
        if not count:
            return
        found = self._call(f"cuGraphGetEdges{end}", graph, count)
        early = driver.CUgraphEdgeData()
        early.from_port = driver.CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC
        kind = driver.CUgraphDependencyType
        early.type = kind.CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC.value
        for name, how in (
            ("cuGraphRemoveDependencies", None),
            ("cuGraphAddDependencies", [early] * count),
        ):
            self._call(name + end, graph, *found[:2], how, count)

    # --8<-- [end:overlap]

    def launch(self, stream: Any = None) -> None:
        """Start all of it, on the stream of the recording or another CUstream;
        returns at once.
        """
        stream = self._stream if stream is None else stream
        self._call("cuGraphLaunch", self._ready, stream)

    def _call(self, name: str, *arguments: Any) -> Any:
        status, *found = getattr(self._driver, name)(*arguments)
        if status != self._driver.CUresult.CUDA_SUCCESS:
            raise ct.CudatutError(f"{name}: {status.name}")
        return found[0] if len(found) == 1 else found or None

    def __del__(self):
        # No matter if the driver is gone already.
        if getattr(self, "_ready", None) is not None:
            self._driver.cuGraphExecDestroy(self._ready)
            self._driver.cuGraphDestroy(self._graph)


# --8<-- [end:graph]


# --8<-- [start:recorded]
def recorded(work: Callable[[Any], None]) -> Callable[[], None]:
    """A function that starts all that work(stream) launches, on the default
    stream, and returns at once: Python does not stand between the launches, nor
    in their time. `work` runs once before. Keep its arrays.
    """
    import pycuda.driver as cuda

    ct.synchronize()  # its arrays were filled on another stream
    stream = cuda.Stream()
    work(stream)  # compiles
    stream.synchronize()
    graph, default = (
        Graph(lambda: work(stream), stream),
        _bindings().CUstream(0),
    )
    return lambda: graph.launch(default)


# --8<-- [end:recorded]


def elapsed(stream: Any, work: Callable[[], None]) -> float:
    """Microseconds that a PyCUDA stream takes for what work() launches on it."""
    import pycuda.driver as cuda

    begin, end = cuda.Event(), cuda.Event()
    begin.record(stream)
    work()
    end.record(stream)
    end.synchronize()
    return 1e3 * begin.time_till(end)


def torch_recorded(torch: Any, call: Callable[[], Any]) -> Callable[[], None]:
    """The same of what PyTorch launches in `call`, by a graph of its own: a
    rival of those above.
    """
    side = torch.cuda.Stream()  # runs first, as PyTorch wants it
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay
