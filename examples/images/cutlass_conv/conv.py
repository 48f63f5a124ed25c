"""CUTLASS's convolution, called from Python: compiled by nvcc from CUTLASS's
headers, behind C functions that ctypes calls.

    run = prepare(case, images, weights, results)     # a contestant
    run()

bf16 as uint16, images [image][row][column][channel], weights
[filter][row][column][channel]; Hopper only. The headers come with the package
`nvidia-cutlass`, which needs nothing else for that: its own Python interface
has no convolution for Hopper but those of Ampere.
"""

import ctypes
import hashlib
import os
import random
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from platformdirs import user_cache_dir

import cudatut as ct
from cudatut.book.rivals.absent import absent

SOURCE = "images/cutlass_conv/conv.cu"
ARCH = "90a"


class Tile(NamedTuple):
    """An instance: a block makes `pixels` x `filters` results, by steps of
    `step` channels; `down` x `across` blocks share what they read."""

    pixels: int
    filters: int
    step: int
    down: int
    across: int

    @property
    def name(self) -> str:
        cluster = f"{self.down} x {self.across}"
        return f"{self.pixels} x {self.filters}, cluster {cluster}"


TILES = (
    Tile(128, 128, 64, 1, 1),
    Tile(128, 128, 64, 2, 1),
    Tile(64, 256, 64, 2, 1),
    Tile(128, 64, 64, 2, 1),
    Tile(64, 64, 64, 1, 1),
)


def headers() -> list[Path]:
    """The folders to include. Raises ct.ToolMissing."""
    found = find_spec("cutlass_library")
    if found is None or not found.submodule_search_locations:
        raise ct.ToolMissing("the package nvidia-cutlass is not installed")
    source = Path(found.submodule_search_locations[0]) / "source"
    return [source / "include", source / "tools/util/include"]


def build(tile: Tile) -> Path:
    """Compiles the library of a tile where it is not kept: up to a minute. Any
    thread may, and no GPU is needed. Raises ct.ToolMissing,
    ct.KernelCompileError."""
    source = ct.paths.examples_dir() / SOURCE
    folders, nvcc = headers(), ct.find_nvcc()
    text = source.read_text(encoding="utf-8")
    version = (folders[0] / "cutlass/version.h").read_text(encoding="utf-8")
    made_of = f"{text} {version} {nvcc} {tile}"
    key = hashlib.sha256(made_of.encode()).hexdigest()[:16]
    kept = Path(user_cache_dir("cudatut", "cudatut")) / f"cutlass-{key}.so"
    if kept.is_file():
        return kept
    kept.parent.mkdir(parents=True, exist_ok=True)
    instance = [f"-D{word.upper()}={n}" for word, n in tile._asdict().items()]
    with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
        made = Path(folder) / kept.name
        command = [
            nvcc, "-O3", "-std=c++17", "--expt-relaxed-constexpr", "--shared",
            f"-gencode=arch=compute_{ARCH},code=sm_{ARCH}", "-DNDEBUG",
            "-Xcompiler", "-fPIC", *instance,
            *ct.nvcc_flags(nvcc),
            *(f"-I{one}" for one in folders), "-o", made, source,
        ]  # fmt: skip
        done = subprocess.run(
            list(map(str, command)),
            env=ct.nvcc_env(nvcc) | {"LD_PRELOAD": ""},
            capture_output=True,
            text=True,
        )
        if done.returncode:
            said = done.stderr.strip()[:1500]
            raise ct.KernelCompileError(f"nvcc refused {source.name}: {said}")
        os.replace(made, kept)  # whole, or not there
    return kept


@cache
def library(tile: Tile) -> ctypes.CDLL:
    found = ctypes.CDLL(str(build(tile)))
    found.drop.restype = None
    return found


def libraries(tiles: tuple[Tile, ...] = TILES) -> None:
    """Compiles them side by side."""
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        list(pool.map(build, tiles))


class Refused(ValueError):
    """What CUTLASS says to a convolution that this kernel cannot do."""


class Made:
    """An instance of a tile, for its arrays: a call launches it."""

    def __init__(self, tile: Tile, case: Any, x: Any, w: Any, y: Any):
        batch, channels, high, wide, filters, *pairs, groups = case.numbers
        window, stride, pad, dilation = pairs
        if groups > 1:
            raise Refused("CUTLASS's convolution for Hopper has no groups")
        numbers = (ctypes.c_int * 13)(
            batch, high, wide, channels, filters,
            *window, *stride, *pad, *dilation,
        )  # fmt: skip
        self.library, self.kept = library(tile), (x, w, y)
        self.made, size = ctypes.c_void_p(), ctypes.c_size_t()
        places = [ctypes.c_void_p(int(one.address)) for one in (x, w, y)]

        def ask(scratch: Any) -> None:
            status = self.library.make(
                *places,
                numbers,
                scratch,
                ctypes.byref(size),
                ctypes.byref(self.made),
            )
            if status:
                raise Refused(f"{tile.name}: CUTLASS's status {status - 1}")

        ask(None)
        self.scratch = ct.empty(max(size.value, 1), "uint8")
        ask(ctypes.c_void_p(int(self.scratch.gpudata)))

    def __call__(self) -> None:
        if status := self.library.run(self.made, None):
            raise ct.CudatutError(f"CUTLASS's status {status - 1}")

    def __del__(self) -> None:
        if getattr(self, "made", None):
            self.library.drop(self.made)


def taken(case: Any, images: Any, weights: Any, results: Any) -> tuple:
    """The operands. Raises TypeError, ValueError."""
    batch, channels, high, wide, filters, window, *_ = case.numbers
    take = ct.operands("cutlass_conv")
    channels_of_group = channels // case.layer.groups
    return (
        take.read("images", images, "uint16", (batch, high, wide, channels)),
        take.read(
            "weights", weights, "uint16", (filters, *window, channels_of_group)
        ),
        take.write(
            "results", results, "uint16", (batch, *case.layer.out, filters)
        ),
    )


def prepare(
    case: Any,
    images: Any,
    weights: Any,
    results: Any,
    tiles: tuple[Tile, ...] = TILES,
) -> Any:
    """A contestant of ct.bench: the fastest of these tiles. None under a
    sanitizer or profiler; where CUTLASS is missing or refuses, the reason.
    Raises ct.ToolMissing while an example is recorded and CUTLASS is missing.
    """
    if ct.tool.running():
        return None
    operands = taken(case, images, weights, results)
    try:
        libraries(tiles)
    except (ct.ToolMissing, ct.KernelCompileError) as error:
        return absent(f"CUTLASS cannot be compiled here: {error}", error)
    try:
        found = {tile: Made(tile, case, *operands) for tile in tiles}
    except Refused as error:
        return ct.vendor.Missing(str(error))
    best = fastest(found)
    run = ct.vendor.Vendor(found[best])
    run.tile = best
    return run


def fastest(runs: dict[Tile, Any], rounds: int = 7) -> Tile:
    """All take turns."""
    if len(runs) == 1:
        return next(iter(runs))
    turns = ct.take_turns(runs, rounds, random.Random(0))
    return min(runs, key=lambda tile: median(turns[tile]))
