"""Kernels whose warps wait now and then, each for a time of its own: what only a lucky schedule keeps right goes wrong.

A barrier that is missing seldom shows, since the warps of a block run almost side by side. Here the text of a kernel, and of
every header that it includes, gets calls of `uneven()` before each `asm` and each barrier that synchronizes, orders or moves
memory, and after each that waits: a warp sleeps there, mostly not at all, often for less than a microsecond, seldom for some. A kernel
that is right under every schedule gives what it gave before.

And before every second launch, random words fill the shared memory of all SMs: what is read there before it is written, a
barrier that is not yet one among them, is then hardly ever by chance what it should be.

And the red zones around arrays hold NaN.

The shards `uneven-*` of shards.py run tests of tests/gpu so.
"""

import hashlib
import itertools
import shutil
import tempfile
from pathlib import Path

import cuda_mutants
import numpy as np

# One line, so that the numbers of all others stay. Who sleeps is drawn anew from the clock, for a warp as a whole.
SLEEP = (
    "__device__ __forceinline__ void uneven() { "
    "unsigned drawn = (unsigned)clock() / 8 * 0x9E3779B1u ^ (threadIdx.x / 32 + 1) * 0x85EBCA6Bu ^ blockIdx.x * 0xC2B2AE35u; "
    "drawn = (drawn ^ drawn >> 15) * 0x2C1B3C6Du, drawn ^= drawn >> 12; "
    "const unsigned often = drawn & 7, long_ = drawn >> 3 & 31; "
    '__nanosleep(often > 1 ? 0 : (drawn >> 8 & 511) + (long_ == 0 ? 4000 : 0)); asm volatile("" ::: "memory"); } '
)
# `volatile`, since nobody reads what it writes.
RANDOM_WORDS = """
extern "C" __global__ void random_words(unsigned count, unsigned seed) {
  extern __shared__ volatile unsigned words[];
  for (unsigned i = threadIdx.x; i < count; i += blockDim.x) {
    unsigned drawn = (i + count * (blockIdx.x + gridDim.x * seed)) * 0x9E3779B1u;
    drawn = (drawn ^ drawn >> 15) * 0x2C1B3C6Du, drawn = (drawn ^ drawn >> 12) * 0x297A2D39u;
    words[i] = drawn ^ drawn >> 15;
  }
}
"""
# Between these the compiler allows little else; and to sleep there shows nothing, as the products go on.
_NOT_AMONG = ("wgmma", "setmaxnreg", 'asm volatile(""')
_MOVES = ("shared", "cp.async", "ldmatrix", "stmatrix", "bulk")


def woven(text: str) -> str:
    """CUDA C++ with `uneven()` around what synchronizes or moves memory; the lines are the same ones."""
    code, sites = cuda_mutants.blanked(text), {}
    for at, old, new, named in cuda_mutants.statements(code):
        if new != ";" or not old.endswith(";"):
            continue
        real = text[at : at + len(old)]
        family = cuda_mutants.family_of(old, real, named)
        # What the book's own functions do stands in an `asm` of theirs.
        is_asm = old.startswith("asm")
        waits = family == "barrier" if is_asm else old.startswith("__sync") or ".sync(" in old
        moves = is_asm and (family == "fence" or any(word in real for word in _MOVES))
        if not (waits or moves) or any(word in real for word in _NOT_AMONG):
            continue
        sites[at] = (at + len(old), waits)
    pieces, done = [], 0
    for at, (end, after) in sorted(sites.items()):
        if at < done:
            continue
        pieces += [text[done:at], "{ uneven(); ", text[at:end], " uneven(); }" if after else " }"]
        done = end
    return "".join([*pieces, text[done:]])


def weave_all(examples: Path, into: Path) -> Path:
    """Copy all kernels and headers below `examples`, woven, to a folder below `into` whose name is that of their texts.

    Processes side by side, and later ones, find one folder: what they compile is kept under its name.
    """
    texts = {
        path.relative_to(examples): woven(path.read_text(encoding="utf-8"))
        for path in sorted((*examples.rglob("*.cu"), *examples.rglob("*.cuh")))
    }
    folder = into / f"uneven-{hashlib.sha256(repr(texts).encode()).hexdigest()[:16]}"
    if folder.is_dir():
        return folder
    made = Path(tempfile.mkdtemp(dir=into))
    for name, text in texts.items():
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(text, encoding="utf-8")
    try:
        made.rename(folder)
    except OSError:  # another process was quicker
        shutil.rmtree(made)
    return folder


def begin() -> None:
    """From here on, this process compiles each kernel from a woven text, and finds its headers woven."""
    from cudatut import paths
    from cudatut.gpu import cubins, memory

    examples, compiled = paths.examples_dir(), cubins.compiled
    folder = weave_all(examples, Path(tempfile.gettempdir()))

    def compile_woven(source, nvcc, **how):
        places = [Path(place) for place in how["include_dirs"]]
        how["include_dirs"] = [
            str(folder / place.relative_to(examples)) if place.is_relative_to(examples) else str(place)
            for place in places
        ]  # fmt: skip
        return compiled(f"{SLEEP}\n{woven(source)}", nvcc, **how)

    cubins.compiled = compile_woven
    # NaN as bf16, fp16, FP8 and float: what a kernel reads beside an array shows where it is multiplied by zero, too.
    memory.ZONE_BYTE = 0xFF
    fill_shared_memory()


def fill_shared_memory() -> None:
    """From here on, random words fill the shared memory of all SMs before the first, third, fifth ... launch of `ct.Kernel`.

    Not before the others: a kernel that may begin while the one before still runs has to find one.
    """
    import cudatut as ct

    launch, launches = ct.Kernel.__call__, itertools.count()
    fillers: dict[object, ct.Kernel] = {}

    def filled_launch(kernel, *args, stream=None, **how):
        number, gpu = next(launches), ct.device()
        if number % 2 == 0:
            size = gpu.shared_per_block_optin
            filler = fillers.get(gpu) or fillers.setdefault(
                gpu, ct.Kernel(RANDOM_WORDS, "random_words")
            )
            many = {"grid": gpu.sm_count, "block": 1024, "shared": size, "stream": stream}
            launch(filler, np.uint32(size // 4), np.uint32(number), **many)
        launch(kernel, *args, stream=stream, **how)

    ct.Kernel.__call__ = filled_launch
