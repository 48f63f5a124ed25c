"""What the compiler made of a kernel: ptxas's report and the machine code.

Both come from compiling once more with nvcc; nothing is launched. cuobjdump
comes with the CUDA toolkit.
"""

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import cudatut as ct


@dataclass(frozen=True)
class Report:
    """Registers; bytes per thread of stack, of spill stores and of loads."""

    registers: int
    stack: int
    spill_stores: int
    spill_loads: int


@dataclass(frozen=True)
class Instruction:
    """One line of SASS: address, predicate ('@P0' or ''), the rest."""

    address: int
    predicate: str
    text: str

    @property
    def op(self) -> str:
        """The name without its suffixes: 'LDG' of 'LDG.E.128'."""
        return self.text.split()[0].split(".")[0]

    @property
    def target(self) -> int | None:
        """Where a branch goes to."""
        found = (
            re.search(r"\b0x([0-9a-f]+)$", self.text)
            if self.op == "BRA"
            else None
        )
        return int(found[1], 16) if found else None


def compile_report(source: str, kernel: str, **defines: object) -> Report:
    """What `nvcc -Xptxas -v` says about a kernel of a .cu file."""
    log = _compile(source, tuple(defines.items()))[1]
    entry = log.split(f"Compiling entry function '{kernel}'")[1].split(
        "Compiling entry function"
    )[0]
    stack, stores, loads = (
        int(re.search(rf"(\d+) bytes {what}", entry)[1])
        for what in ("stack frame", "spill stores", "spill loads")
    )
    return Report(
        int(re.search(r"Used (\d+) registers", entry)[1]), stack, stores, loads
    )


@cache
def sass(
    source: str, kernel: str, **defines: object
) -> tuple[Instruction, ...]:
    """The instructions of a kernel, as `cuobjdump -sass` prints them."""
    text = _disassemble(source, tuple(defines.items()))[kernel]
    lines = re.findall(
        r"^\s+/\*([0-9a-f]{4,})\*/\s+(?:(@!?U?P\w+)\s+)?(\S[^;]*?)\s*;",
        text,
        re.M,
    )
    found = [
        Instruction(int(at, 16), predicate, what)
        for at, predicate, what in lines
    ]
    # Behind the last EXIT stand a branch to itself and NOPs.
    return tuple(i for i in found if i.op != "NOP" and i.target != i.address)


def executed(
    code: tuple[Instruction, ...], trips: int
) -> list[tuple[Instruction, int]]:
    """Each instruction and how often a warp runs it: loops make `trips` turns.

    A branch to an earlier address closes a loop; what stands between the two
    runs once per turn.
    """
    loops = [
        (i.target, i.address)
        for i in code
        if i.target is not None and i.target < i.address
    ]
    return [
        (i, trips if any(a <= i.address <= b for a, b in loops) else 1)
        for i in code
    ]


@cache
def _disassemble(
    source: str, defines: tuple[tuple[str, object], ...]
) -> dict[str, str]:
    """What `cuobjdump -sass` prints of each kernel of a file, in one run."""
    program = shutil.which(
        "cuobjdump", path=ct.nvcc_env(ct.find_nvcc())["PATH"]
    )
    if program is None:
        raise ct.ToolMissing(
            "cuobjdump is not on PATH; it comes with the CUDA toolkit"
        )
    with tempfile.TemporaryDirectory() as folder:
        cubin = Path(folder) / "kernel.cubin"
        cubin.write_bytes(_compile(source, defines)[0])
        command = [program, "-sass", cubin]
        text = subprocess.run(
            command, capture_output=True, text=True, check=True
        ).stdout
    parts = re.split(r"^\s*Function : (\S+)\s*$", text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


@cache
def _compile(
    source: str, defines: tuple[tuple[str, object], ...]
) -> tuple[bytes, str]:
    """The cubin for this GPU, and what ptxas reported."""
    nvcc, path = ct.find_nvcc(), ct.paths.resolve_source(source)
    ct.paths.note_read(path)
    with tempfile.TemporaryDirectory() as folder:
        cubin = Path(folder) / "kernel.cubin"
        command = [
            nvcc,
            "-cubin",
            f"-arch={ct.device().arch}",
            "-Xptxas",
            "-v",
            "-o",
            cubin,
            path,
        ]
        command += [f"-D{name}={value}" for name, value in defines]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=True,
            env=ct.nvcc_env(nvcc),
        )
        return cubin.read_bytes(), done.stderr + done.stdout
