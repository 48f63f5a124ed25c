"""A reader of machine code: what a GPU runs in one turn of a kernel's main loop, and how its instructions wait.

    code = disassemble(ct.Kernel("gemm/ladder/vectorized.cu", "sgemm_vectorized<128,128,8,8,8>"))
    turn = main_turn(code, fmas=512)          # BK * TM * TN of them belong to a turn
    share(turn)                               # part of the issue slots that FMAs take

Nothing is launched. cuobjdump comes with the CUDA toolkit.
"""

import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import cudatut as ct
from cudatut.book.measure import machine_code


@dataclass(frozen=True)
class Instruction(machine_code.Instruction):
    """upper: half of its 128 bits."""

    upper: int

    @property
    def name(self) -> str:
        """'LDG.E.128.CONSTANT'."""
        return self.text.split()[0]

    # What the compiler tells the scheduler stands in the top bits: NVIDIA does not document them, others have found out.
    @property
    def stall(self) -> int:
        """Cycles that the scheduler waits before the next instruction of this warp."""
        return self.upper >> 41 & 15

    @property
    def sets(self) -> int | None:
        """The scoreboard, 0 to 5, that is released when the result has arrived."""
        return None if (number := self.upper >> 46 & 7) == 7 else number

    @property
    def guards(self) -> int | None:
        """The scoreboard that is released when the operands have been read, so that they may be overwritten."""
        return None if (number := self.upper >> 49 & 7) == 7 else number

    @property
    def waits(self) -> tuple[int, ...]:
        """The scoreboards that have to be released before this instruction is issued."""
        return tuple(
            number for number in range(6) if self.upper >> 52 + number & 1
        )

    @property
    def reuse(self) -> int:
        """A bit per source operand: keep it for the next instruction."""
        return self.upper >> 58 & 15


_LINE = re.compile(
    r"^\s+/\*([0-9a-f]{4,})\*/\s+(?:(@!?U?P\w+)\s+)?(\S[^;]*?)\s*;.*\n\s+/\* 0x([0-9a-f]{16}) \*/",
    re.M,
)


def disassemble(kernel: ct.Kernel) -> tuple[Instruction, ...]:
    """The instructions of a kernel, up to the branch to itself behind its end. Raises ToolMissing without cuobjdump."""
    program = shutil.which(
        "cuobjdump", path=ct.nvcc_env(ct.find_nvcc())["PATH"]
    )
    if program is None:
        raise ct.ToolMissing(
            "cuobjdump is not on PATH; it comes with the CUDA toolkit"
        )
    with tempfile.TemporaryDirectory() as folder:
        cubin = Path(folder) / "kernel.cubin"
        cubin.write_bytes(kernel.cubin)
        command = [program, "-sass", "-fun", kernel.symbol, cubin]
        text = subprocess.run(
            command, capture_output=True, text=True, check=True
        ).stdout
    found = [
        Instruction(int(a, 16), p, what, int(u, 16))
        for a, p, what, u in _LINE.findall(text)
    ]
    return tuple(i for i in found if i.op != "NOP" and i.target != i.address)


def disassemble_all(
    kernels: Iterable[ct.Kernel],
) -> list[tuple[Instruction, ...]]:
    """`disassemble` for several at a time: cuobjdump takes half a second for each."""
    with ThreadPoolExecutor() as pool:
        return list(pool.map(disassemble, kernels))


def ptx(kernel: ct.Kernel) -> list[str]:
    """The lines of a kernel's PTX, what nvcc hands to ptxas."""
    nvcc, source = (
        ct.find_nvcc(),
        ct.instances.assemble(kernel.source, kernel.name),
    )
    if ct.instances.wrapped(kernel.source, kernel.name):
        source = f'extern "C" {{\n{source}\n}}\n'
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cu"
        path.write_text(source)
        command = [
            nvcc,
            "-ptx",
            f"-arch={ct.device().arch}",
            "-o",
            path.with_suffix(".ptx"),
            path,
        ]
        subprocess.run(
            command, capture_output=True, check=True, env=ct.nvcc_env(nvcc)
        )
        text = path.with_suffix(".ptx").read_text()
    return [line.strip() for line in text.splitlines() if line.strip()]


def fmas_of_turn(name: str) -> int:
    """FMAs of a thread per step of depth of a kernel <BM,BN,BK,TM,TN> or <BM,BN,BK,WM,WN,TM,TN,...> of this part."""
    numbers = [
        int(number) for number in re.findall(r"\d+", name.partition("<")[2])
    ]
    tm, tn = numbers[3:5] if len(numbers) == 5 else numbers[5:7]
    return numbers[2] * tm * tn


# --8<-- [start:turn]
def loops_of(code: Sequence[Instruction]) -> list[list[Instruction]]:
    """Each loop, from where a branch backwards goes to, up to this branch."""
    return [
        [i for i in code if branch.target <= i.address <= branch.address]
        for branch in code
        if branch.target is not None and branch.target < branch.address
    ]


def main_turn(
    code: Sequence[Instruction], fmas: int
) -> list[tuple[Instruction, int]]:
    """Each instruction that a warp runs in a turn of the main loop, and how
    often.

    The main loop is the outermost that holds FMAs; a loop within it that holds
    FMAs makes as many turns as it takes for `fmas` of them. Where the code
    forks, the warp takes the way on which most words are fetched from global
    memory, that of a tile inside the matrices, and of these the shortest, that
    of aligned ones.
    """
    with_fmas = [
        loop for loop in loops_of(code) if any(i.op == "FFMA" for i in loop)
    ]
    main = max(with_fmas, key=len)
    way = shortest_way(main)
    inner = [loop for loop in with_fmas if len(loop) < len(main)]
    repeated = {i.address for loop in inner for i in loop}
    once = sum(i.op == "FFMA" and i.address not in repeated for i in way)
    often = sum(i.op == "FFMA" and i.address in repeated for i in way)
    turns = (fmas - once) // often if often else 1
    return [(i, turns if i.address in repeated else 1) for i in way]


def shortest_way(loop: Sequence[Instruction]) -> list[Instruction]:
    """One way from the head of a loop to the branch that closes it; branches
    backwards on it are not taken."""
    at = {i.address: position for position, i in enumerate(loop)}
    # Of every place: words, -length, what follows.
    best: list[tuple[int, int, int | None]] = []
    for position in reversed(range(len(loop))):
        i = loop[position]
        words = (
            (4 if ".128" in i.name else 1) if i.op in ("LDG", "LDGSTS") else 0
        )
        ahead = [position + 1] if position + 1 < len(loop) else []
        if i.target in at and at[i.target] > position:
            ahead = (
                [at[i.target]] if not i.predicate else [*ahead, at[i.target]]
            )
        elif i.op == "BRA" and not i.predicate and ahead:
            ahead = []  # backwards for certain, or away: not on the way
        ends = [
            (*best[len(loop) - 1 - to][:2], to)
            for to in ahead
            if best[len(loop) - 1 - to]
        ]
        if position == len(loop) - 1:
            best.append((words, -1, None))
        elif ends:
            fetched, length, to = max(ends, key=lambda end: end[:2])
            best.append((fetched + words, length - 1, to))
        else:
            best.append(())
    way, position = [], 0
    while position is not None:
        way.append(loop[position])
        position = best[len(loop) - 1 - position][2]
    return way


# --8<-- [end:turn]


def count(turn: Iterable[tuple[Instruction, int]]) -> Counter:
    """How often each instruction is run, by name; of memory instructions with their width, of others without suffixes."""
    found = Counter()
    for i, times in turn:
        memory = i.op in ("LDG", "LDS", "STS", "LDGSTS", "LDL", "STL")
        width = (
            next((f".{w}" for w in ("128", "64") if f".{w}" in i.name), "")
            if memory
            else ""
        )
        found[i.op + width] += times
    return found


def share(turn: Iterable[tuple[Instruction, int]]) -> float:
    """FMAs among the instructions of a turn."""
    counted = count(turn)
    return counted["FFMA"] / counted.total()


# --8<-- [start:banks]
def bank_conflicts(turn: Iterable[tuple[Instruction, int]]) -> int:
    """FMAs of a turn that fetch two or three registers of one bank, even or odd.

    An operand that the FMA before has kept (`.reuse`), in the same place, is
    not fetched.
    """
    conflicts, kept = 0, {}
    for i, times in turn:
        if i.op != "FFMA":
            kept = {}  # another instruction may come in between: be cautious
            continue
        places = [p.strip() for p in i.text.split(None, 1)[1].split(",")[1:4]]
        registers = [re.match(r"-?R(\d+)", place) for place in places]
        numbers = [int(found[1]) if found else None for found in registers]
        fetched = {
            n
            for p, n in enumerate(numbers)
            if n is not None and kept.get(p) != n
        }
        conflicts += times * (len({n % 2 for n in fetched}) < len(fetched))
        kept = {
            p: numbers[p] for p, place in enumerate(places) if ".reuse" in place
        }
    return conflicts


# --8<-- [end:banks]
