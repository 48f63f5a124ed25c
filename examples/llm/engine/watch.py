"""Time for an engine on the GPU as its users would see it, without what only a
first step costs.

    watch = Watch()
    backend = Rehearsed(GpuBackend(model, 4096, 16), watch)
    engine = Engine(backend, scheduler, clock=watch)
    replay(engine, requests, watch.wait)
"""

from collections.abc import Callable
from time import perf_counter
from typing import Any

import cudatut as ct


# --8<-- [start:watch]
class Watch:
    """The clock on the wall in seconds, on which nobody waits for an arrival:
    it is then moved on. skipped: seconds that it was moved.
    """

    def __init__(self):
        self.begin, self.skipped = perf_counter(), 0.0

    def __call__(self) -> float:
        return perf_counter() - self.begin + self.skipped

    def wait(self, until: float) -> None:
        """Let the time come."""
        while (missing := until - self()) > 0:
            self.skipped += max(missing, 1e-9)


class Rehearsed:
    """A GpuBackend whose steps of a new size run twice: the first time compiles
    and records a graph, which takes as long as many steps, and the watch is set
    back by it. The second time counts. It computes the same and stores it in
    the same slots.
    """

    def __init__(self, backend: Any, watch: Watch | None = None):
        self.backend, self.watch = backend, watch or Watch()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.backend, name)

    def run(self, batch: Any) -> Any:
        return self._rehearse(self.backend.run, batch)

    def sample(self, logits: Any, draws: Any) -> Any:
        return self._rehearse(self.backend.sample, logits, draws)

    def _rehearse(self, work: Callable, *arguments: Any) -> Any:
        recorded, begin = self.backend.recorded, self.watch()
        found = work(*arguments)
        if self.backend.recorded > recorded:
            ct.synchronize()
            self.watch.skipped -= self.watch() - begin
            found = work(*arguments)
        return found


# --8<-- [end:watch]
