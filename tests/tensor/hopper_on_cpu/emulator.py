"""Kernels for Hopper on a CPU: their own text, compiled with the stand-ins of this folder for CUDA's words and PTX."""

import hashlib
import re
import subprocess
import zlib
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import gpp
import kept

from cudatut.paths import examples_dir

HERE = Path(__file__).parent
SOURCE = examples_dir() / "tensor"
_MEMORY = "extern __shared__ __align__(1024) unsigned char memory[];"


def piece(file: str, pattern: str) -> str:
    """A function or struct of a file in examples/tensor, as it stands there; instructions.hpp has another `Descriptor`."""
    found = re.search(pattern, (SOURCE / file).read_text(), re.S)
    assert found, f"{file} has no {pattern}"
    return found[0].replace("Descriptor", "Address")


def region(file: str, *names: str) -> str:
    """What stands between the marks of these names."""
    marked = r"(?<=\[start:{0}\]\n).*?(?=// --8<-- \[end:{0}\])"
    return "\n".join(piece(file, marked.format(name)) for name in names)


def plain(text: str) -> str:
    """Without includes and pragmas, since their text is in place; dynamic shared memory is the emulated block's."""
    text = re.sub(r"^#(include|pragma once).*\n", "", text, flags=re.M)
    assert text.count(_MEMORY) <= 1
    return text.replace(_MEMORY, "unsigned char* const memory = dynamic_shared();")


_STAND_INS = {  # for PTX within functions of attention_softmax.cuh
    r'asm volatile\(\s*"\{ \.reg \.pred p;.*?@p st\.global\.v4.*?\);\n': "if (so) std::memcpy(to, w, 16);\n",
    r'asm volatile\("" : "\+r"\(row\), "\+r"\(head\)\);': "",
}


def attention_headers(folder: Path) -> None:
    """attention_*.cuh as the emulated kernels include them."""
    softmax = (
        (SOURCE / "attention_softmax.cuh").read_text().replace("<cuda_bf16.h>", '"machine.hpp"')
    )
    for name in (
        "unsigned pack",
        "float power_of_two",
    ):  # those that are PTX; machine.hpp has others
        softmax = re.sub(
            rf"__device__ __forceinline__ {name}\(float [^{{]*\{{\n[^}}]*asm.*?\n\}}\n",
            "",
            softmax,
            flags=re.S,
        )
    for before, after in _STAND_INS.items():
        softmax, count = re.subn(before, after, softmax, flags=re.S)
        assert count == 1, before
    (folder / "attention_softmax.cuh").write_text(softmax)
    ring = piece("attention_tma.cuh", r"template <int STAGES>\nstruct Ring.*?\n\};")
    factor = piece("attention_wgmma.cuh", r"struct Factor.*?\n\};")
    for name, text in (("tma", ring), ("wgmma", factor)):
        header = f'#pragma once\n#include "instructions.hpp"\n{text}\n'
        (folder / f"attention_{name}.cuh").write_text(header)


def compiled(folder: Path, program: Path, *defines: str) -> Path:
    """The program of a .cpp file, which includes what the caller has written into `folder`."""
    places = [f"-I{folder}", f"-I{HERE}", *(f"-D{one}" for one in defines)]
    return gpp.compiled(program, "-O1", "-std=c++17", places=places)


@cache
def _runs(folder: Path) -> kept.Kept:
    return kept.Kept(folder / "emulated")


def ended(
    program: Path, numbers: tuple, data: bytes = b"", timeout: float = 600
) -> tuple[bytes, str | None]:
    """What a program wrote, and what it says of its end if that was not a good one.

    A run follows from the program, its numbers (a seed is one of them) and its input alone: one that was made before is kept.
    """
    runs = _runs(kept.cache_folder())
    key = runs.key(*(hashlib.sha256(one).hexdigest() for one in (program.read_bytes(), data)), *map(str, numbers))  # fmt: skip
    known = runs.read(key)
    if known is None:
        done = subprocess.run(
            [program, *map(str, numbers)], input=data, capture_output=True, timeout=timeout
        )
        known = b"%d\n%s" % (done.returncode, done.stdout)
        if done.returncode >= 0:  # not ended by somebody
            runs.write(key, zlib.compress(known, 1))
    else:
        known = zlib.decompress(known)
    status, _, said = known.partition(b"\n")
    if status == b"0":
        return said, None
    return b"", said.decode(errors="replace").strip() or f"it ended with {status.decode()}"


def fault(before: str, after: str) -> Callable[[str], str]:
    """A change of a text in which `before` stands once."""

    def change(text: str) -> str:
        assert text.count(before) == 1, before
        return text.replace(before, after)

    return change


def expect(expected: str, runs: Iterable[str | None]) -> None:
    """One of these runs shows the fault that is expected, a pattern. They are made one after the other, until one does."""
    found = []
    for one in runs:
        if one and re.search(expected, one):
            return
        found.append(one)
    raise AssertionError(f"no run shows {expected!r}, but {found}")
