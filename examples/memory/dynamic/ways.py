"""The ways to draw the Mandelbrot set that the chapter compares.

scene = Scene(n=4096, most=1024)
runs = scene.ways()        # name -> a function that draws into scene.out
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import cudatut as ct
from cudatut.book.memory.dynamic.linked import linked

BLOCK = 256
LEFT, TOP, WIDTH = -2.25, -1.5, 3.0


@cache
def subdivider(pending: int = 16384) -> Any:
    """The kernel that launches itself."""
    module = linked(
        "memory/dynamic/dynamic.cu",
        options=("-rdc=true", "--fmad=false"),
        pending=pending,
    )
    return module.get_function("subdivide")


class Scene:
    """A picture of n x n pixels with at most `most` steps for each, and how it
    is divided: into tiles of `first` pixels, these into split x split parts,
    down to `least` pixels. Raises ValueError where no such parts have `least`.
    """

    def __init__(
        self,
        n: int,
        most: int,
        first: int = 128,
        split: int = 2,
        least: int = 16,
        corner: tuple[float, float, float] = (LEFT, TOP, WIDTH),
    ):
        import pycuda.driver as cuda

        side = first
        while side > least:
            side //= split
        if side != least or n % first:
            raise ValueError(f"{n} pixels: {first} by {split} to {least}")
        self.n, self.most = n, most
        self.first, self.split, self.least = first, split, least
        left, top, width = corner
        self.out = ct.empty(n * n, "uint16")
        self.where = left, top, width / n, n, most
        self.told = cuda.pagelocked_zeros(1, np.int32)
        along = range(0, n, first)
        self.starts = [(x, y) for y in along for x in along]
        tiles = [x + 65536 * y for x, y in self.starts]
        self.roots = ct.to_device(np.array(tiles, "uint32"))
        room = (n // least) ** 2
        self.lists = [ct.to_device(np.zeros(room, "uint32")) for _ in "ab"]
        self.count = ct.to_device(np.zeros(1, "int32"))
        self.failed = ct.to_device(np.zeros(1, "int32"))
        self._make_queue(room)

    def _kernel(self, name: str) -> Any:
        return ct.Kernel(
            "memory/dynamic/plain.cu", name, options=("--fmad=false",)
        )

    def ways(self) -> dict[str, Callable[[], object]]:
        """By name; no launches from the GPU where a tool would follow them."""
        found = {
            "every pixel": self.flat(),
            "launches by the GPU": self.by_gpu(),
            "a launch for each level": self.by_level(),
            "a queue": self.by_queue(),
        }
        if ct.tool.running():
            del found["launches by the GPU"]
        return found

    def flat(self) -> Callable[[], object]:
        kernel, grid = self._kernel("flat"), (ct.cdiv(self.n, 32), self.n // 8)
        return lambda: kernel(self.out, *self.where, grid=grid, block=(32, 8))

    # --8<-- [start:by-gpu]
    def by_gpu(self) -> Callable[[], object]:
        if ct.tool.running():
            return lambda: None
        kernel, across = subdivider(), self.n // self.first
        left, top, step, n, most = self.where
        numbers = *np.float32((left, top, step)), np.int32(n), np.int32(most)
        how = np.int32((0, 0, self.first, self.split, self.least))
        return lambda: kernel(
            self.out, *numbers, *how, self.failed,
            grid=(across, across), block=(BLOCK, 1, 1),
        )  # fmt: skip

    # --8<-- [end:by-gpu]

    # --8<-- [start:by-level]
    def by_level(self) -> Callable[[], object]:
        import pycuda.driver as cuda

        kernel = self._kernel("level")

        def draw():
            tiles, side, number = self.roots, self.first, len(self.starts)
            free = self.lists
            while number:
                cuda.memset_d32_async(self.count.gpudata, 0, 1)
                kernel(
                    self.out, *self.where, tiles, side, self.split,
                    self.least, free[0], self.count, grid=number, block=BLOCK,
                )  # fmt: skip
                if side <= self.least:
                    break
                cuda.memcpy_dtoh(self.told, self.count.gpudata)  # waits
                number, side = int(self.told[0]), side // self.split
                tiles, free = free[0], free[::-1]

        return draw

    # --8<-- [end:by-level]

    def _make_queue(self, room: int) -> None:
        """Room for every tile that there can be, and a ticket more a block."""
        kernel = self._kernel("work_queue")
        resident = kernel.resources(BLOCK).blocks_per_sm * ct.device().sm_count
        tiles = [
            1 << 31 | y // self.least << 14 | x // self.least
            for x, y in self.starts
        ]
        start = np.zeros(2 * room + resident, "uint32")
        start[: len(tiles)] = tiles
        self.queue, self.queued = ct.to_device(start), ct.to_device(start)
        state = np.array([0, len(tiles), len(tiles), 0], "int32")
        self.state, self.begun = ct.to_device(state), ct.to_device(state)
        self.resident, self.queue_kernel = resident, kernel

    # --8<-- [start:by-queue]
    def by_queue(self) -> Callable[[], object]:
        import pycuda.driver as cuda

        def draw():
            for to, start in (
                (self.queue, self.queued),
                (self.state, self.begun),
            ):
                cuda.memcpy_dtod_async(to.gpudata, start.gpudata, to.nbytes)
            self.queue_kernel(
                self.out, *self.where, self.queue, self.state, self.first,
                self.split, self.least, grid=self.resident, block=BLOCK,
            )  # fmt: skip

        return draw

    # --8<-- [end:by-queue]
