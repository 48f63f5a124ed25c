"""CUTLASS's convolution, called from Python: compiled by nvcc from CUTLASS's
headers, behind C functions that ctypes calls.

    run = Made(TILES[0], shape, images, weights, results)
    run()
    run = prepare(shape, images, weights, results)    # a contestant

bf16 as uint16, images [image][row][column][channel], weights
[filter][row][column][channel]; Hopper only. The headers come with the package
`nvidia-cutlass`, which needs nothing else for that: its own Python interface
has no convolution for Hopper but those of Ampere.
"""

import ctypes
import hashlib
import json
import os
import random
import re
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from platformdirs import user_cache_dir

import cudatut as ct
from cudatut.book.images.implicit_gemm.shapes import Shape
from cudatut.book.rivals.absent import absent

SOURCE = "images/cutlass_conv/conv.cu"
ARCH = "90a"
PACKAGE = "nvidia-cutlass==4.2.0.0"
# By CUTLASS's number, what it says.
STATUS = (
    "success",
    "misaligned operand",
    "invalid type",
    "invalid layout",
    "invalid problem",
    "not supported",
    "no workspace",
    "internal error",
    "another architecture",
    "driver too old",
    "out of memory",
    "invalid",
)
# What the C function `chosen` tells, in its order.
CHOSEN = (
    "stages",
    "threads of a block",
    "shared memory",
    "shared memory of the epilogue",
    "wgmma, rows",
    "wgmma, columns",
    "wgmma, depth",
    "blocks of a cluster",
)


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
        raise ct.ToolMissing(
            "the package nvidia-cutlass is not installed: "
            f"`pip install --no-deps {PACKAGE}`"
        )
    source = Path(found.submodule_search_locations[0]) / "source"
    return [source / "include", source / "tools/util/include"]


# --8<-- [start:build]
def build(tile: Tile) -> Path:
    """Compiles the library of a tile where it is not kept: up to a minute. Any
    thread may, and no GPU is needed. Raises ct.ToolMissing,
    ct.KernelCompileError."""
    kept = library_file(tile)
    if kept.is_file():
        return kept
    source, folders, nvcc = source_file(), headers(), ct.find_nvcc()
    kept.parent.mkdir(parents=True, exist_ok=True)
    instance = [f"-D{word.upper()}={n}" for word, n in tile._asdict().items()]
    with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
        made = Path(folder) / kept.name
        command = [
            nvcc, "-O3", "-std=c++17", "--expt-relaxed-constexpr", "--shared",
            f"-gencode=arch=compute_{ARCH},code=sm_{ARCH}", "-DNDEBUG",
            "-Xcompiler", "-fPIC", "-Xptxas", "-v", *instance,
            *ct.nvcc_flags(nvcc),
            *(f"-I{one}" for one in folders), "-o", made, source,
        ]  # fmt: skip
        begin = time.perf_counter()
        done = subprocess.run(
            list(map(str, command)),
            env=ct.nvcc_env(nvcc) | {"LD_PRELOAD": ""},
            capture_output=True,
            text=True,
        )
        if done.returncode:
            said = done.stderr.strip()[:1500]
            raise ct.KernelCompileError(f"nvcc refused {source.name}: {said}")
        report = {
            "compiled in": time.perf_counter() - begin,
            "registers": largest(r"Used (\d+) registers", done.stderr),
            "spilled": largest(r"(\d+) bytes spill stores", done.stderr),
        }
        kept.with_suffix(".json").write_text(json.dumps(report))
        os.replace(made, kept)  # whole, or not there
    return kept


# --8<-- [end:build]


def source_file() -> Path:
    return ct.paths.examples_dir() / SOURCE


def library_file(tile: Tile) -> Path:
    """Where the library of a tile is kept. Its name tells all that it is made
    of. Raises ct.ToolMissing."""
    text = source_file().read_text(encoding="utf-8")
    folder = headers()[0]
    version = (folder / "cutlass/version.h").read_text(encoding="utf-8")
    made_of = f"{text} {version} {ct.find_nvcc()} {tile}"
    key = hashlib.sha256(made_of.encode()).hexdigest()[:16]
    return Path(user_cache_dir("cudatut", "cudatut")) / f"cutlass-{key}.so"


def largest(pattern: str, text: str) -> int:
    return max(map(int, re.findall(pattern, text)), default=0)


def report(tile: Tile) -> dict[str, float]:
    """What nvcc said, and what the builder chose: by name."""
    numbers = (ctypes.c_int * len(CHOSEN))()
    library(tile).chosen(numbers)
    said = build(tile).with_suffix(".json").read_text()
    return {**json.loads(said), **dict(zip(CHOSEN, numbers))}


@cache
def library(tile: Tile) -> ctypes.CDLL:
    found = ctypes.CDLL(str(build(tile)))
    found.drop.restype = found.chosen.restype = None
    return found


def libraries(tiles: tuple[Tile, ...] = TILES) -> None:
    """Compiles them side by side."""
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        list(pool.map(build, tiles))


class Refused(ValueError):
    """What CUTLASS says to a convolution that this kernel cannot do."""


# --8<-- [start:made]
class Made:
    """An instance of a tile, for its arrays: a call launches it. Raises
    TypeError, ValueError, and Refused where CUTLASS does."""

    def __init__(self, tile: Tile, shape: Shape, x: Any, w: Any, y: Any):
        if shape.groups > 1:
            raise Refused("CUTLASS's convolution for Hopper has no groups")
        self.library, self.kept = library(tile), taken(shape, x, w, y)
        self.made, size = ctypes.c_void_p(), ctypes.c_size_t()
        places = [ctypes.c_void_p(int(one.address)) for one in self.kept]

        def ask(scratch: Any) -> None:
            status = self.library.make(
                *places,
                numbers(shape),
                scratch,
                ctypes.byref(size),
                ctypes.byref(self.made),
            )
            if status:
                raise Refused(f"{tile.name}: {said(status)}")

        ask(None)
        self.scratch = ct.empty(max(size.value, 1), "uint8")
        ask(ctypes.c_void_p(int(self.scratch.gpudata)))

    def __call__(self) -> None:
        if status := self.library.run(self.made, None):
            raise ct.CudatutError(said(status))

    def __del__(self) -> None:
        if getattr(self, "made", None):
            self.library.drop(self.made)


# --8<-- [end:made]


def numbers(shape: Shape) -> Any:
    """As the C functions take them."""
    batch, channels, high, wide, filters, *pairs, _ = shape
    window, stride, pad, dilation = pairs
    return (ctypes.c_int * 13)(
        batch, high, wide, channels, filters,
        *window, *stride, *pad, *dilation,
    )  # fmt: skip


def said(status: int) -> str:
    """Of a number that a C function returned: 1 + CUTLASS's."""
    return f"CUTLASS says: {STATUS[min(status, len(STATUS)) - 1]}"


def refused(tile: Tile, shape: Shape) -> str:
    """What CUTLASS says to a convolution, before there are arrays; no GPU is
    needed. "" where it takes it."""
    if shape.groups > 1:
        return "no groups"
    size, made, null = ctypes.c_size_t(), ctypes.c_void_p(), ctypes.c_void_p()
    status = library(tile).make(
        null, null, null, numbers(shape), None,
        ctypes.byref(size), ctypes.byref(made),
    )  # fmt: skip
    return STATUS[min(status, len(STATUS)) - 1] if status else ""


def taken(shape: Shape, images: Any, weights: Any, results: Any) -> tuple:
    """The operands. Raises TypeError, ValueError."""
    shape.check("cutlass_conv")
    batch, channels, high, wide, filters, window, *_ = shape
    take = ct.operands("cutlass_conv")
    return (
        take.read("images", images, "uint16", (batch, high, wide, channels)),
        take.read(
            "weights",
            weights,
            "uint16",
            (filters, *window, channels // shape.groups),
        ),
        take.write("results", results, "uint16", (batch, *shape.out, filters)),
    )


def prepare(
    case: Any,
    images: Any,
    weights: Any,
    results: Any,
    tiles: tuple[Tile, ...] = TILES,
) -> Any:
    """A contestant of ct.bench: the fastest of these tiles. case: a Shape, or
    what has its numbers. None under a
    sanitizer or profiler; where CUTLASS is missing or refuses, the reason.
    Raises ct.ToolMissing while an example is recorded and CUTLASS is missing.
    """
    if ct.tool.running():
        return None
    shape = Shape(*getattr(case, "numbers", case))
    taken(shape, images, weights, results)
    try:
        libraries(tiles)
    except (ct.ToolMissing, ct.KernelCompileError) as error:
        return absent(f"CUTLASS cannot be compiled here: {error}", error)
    try:
        found = {
            tile: Made(tile, shape, images, weights, results) for tile in tiles
        }
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
