# ---
# jupyter:
#   cudatut:
#     title: {en: "Reading PTX and SASS: what register banks cost", zh: "读懂 PTX 与 SASS：寄存器存储体的代价"}
#     requires: sm_80
#     timeout_s: 120
#     sizes:
#       turns: [2000, 4]
#       WARPS: [[1, 2, 3, 4], [1]]
# ---

# %% [markdown]
# How long does an FMA take that fetches two words of one register bank? CUDA
# C++ cannot name a register, so the registers are written into the machine
# code: the same 256 FMAs in a loop, with other registers each time.

# %% setup
import re
from collections import Counter
from types import SimpleNamespace

from cudatut.book.measure import loops
import numpy as np
import pycuda.driver as cuda

import cudatut as ct

turns = 2000
WARPS = (1, 2, 3, 4)  # of a scheduler; an SM has four schedulers
chains = ct.Kernel("gemm/machine_code/machine_code_banks.cu", "chains")
code = loops.disassemble(chains)
fmas = [i for i in code if i.op == "FFMA"]
operands = [list(map(int, re.findall(r"\bR(\d+)", i.text))) for i in fmas]
sums, a, b = (sorted({one[place] for one in operands}) for place in range(3))
ct.check(
    [len(fmas), len(sums), len(a), len(b)],
    [256, 64, 8, 2],
    name="FFMAs; sums and factors that they use",
    rtol=0,
)

# %% [markdown]
# The sum and the factor of each FMA, by bank: 0 is even, 1 is odd. The second
# factor, b, is always the same register. Where it is kept (`.reuse`), two words
# are fetched, otherwise three.

# %% patterns
PATTERNS = {  # of the FMA at place p: bank of the sum, of a; is b kept?
    "one word of each bank": lambda p: (p % 2, 1 - p % 2, True),
    "two of one bank, alternating": lambda p: (p % 2, p % 2, True),
    "two of one bank, four in a row": lambda p: (p // 4 % 2, p // 4 % 2, True),
    "two of one bank, always": lambda p: (0, 0, True),
    "three words, two of one bank": lambda p: (p % 2, 1 - p % 2, False),
    "three of one bank, always": lambda p: (0, 0, False),
}


def in_turn(registers):
    """By bank, what gives its registers one after the other."""

    def take(bank):
        mine = [one for one in registers if one % 2 == bank]
        taken[bank] += 1
        return mine[taken[bank] % len(mine)]

    taken = Counter()
    return take


def chosen(pattern):
    """The registers of each FMA, sum, a and b, and whether b is kept."""
    next_sum, next_a = in_turn(sums), in_turn(a)
    even_b = next(one for one in b if one % 2 == 0)
    found = []
    for place in range(len(fmas)):
        of_sum, of_a, keep = pattern(place)
        found.append((next_sum(of_sum), next_a(of_a), even_b, keep))
    return found


# %% [markdown]
# An instruction has 16 bytes. In an FFMA the registers stand in bytes 2 (the
# result), 3, 4 and 8 (the operands); bit 59 of the upper half keeps the second.


# %% write
def with_registers(registers):
    """The kernel's cubin with these registers in its FMAs."""
    cubin = bytearray(chains.cubin)
    start = cubin.index(chains.machine_code())
    for fma, (of_sum, of_a, of_b, keep) in zip(fmas, registers):
        at = start + fma.address
        cubin[at + 2], cubin[at + 8] = of_sum, of_sum
        cubin[at + 3], cubin[at + 4] = of_a, of_b
        cubin[at + 15] = cubin[at + 15] & ~0b111100 | (keep << 3)
    return bytes(cubin)


# What cuobjdump prints of it.
cubins = {}
for name, pattern in PATTERNS.items():
    registers = chosen(pattern)
    cubins[name] = with_registers(registers)
    changed = SimpleNamespace(cubin=cubins[name], symbol=chains.symbol)
    texts = [i.text for i in loops.disassemble(changed) if i.op == "FFMA"]
    ct.check(
        [re.findall(r"\bR(\d+)", text) for text in texts]
        == [[str(one) for one in (s, x, y, s)] for s, x, y, _ in registers]
        and [".reuse" in text for text in texts]
        == [keep for *_, keep in registers],
        True,
        name=f"{name}: registers, written and printed",
    )
    print(name, *texts[:4], sep="\n    ")

# %% [markdown]
# Each thread adds 3 to a sum with each FMA. Two runs of different length: the
# difference is free of what stands before and behind the loop.

# %% time
factors = ct.to_device(np.array([1.5] * 8 + [2.0] * 2, "float32"))
gpu = ct.device()


def cycles(function, warps, turns, expected):
    """Of a block with so many warps per scheduler, checked."""
    threads = 128 * warps
    out = ct.empty((gpu.sm_count * threads, 64), "float32")
    took = ct.to_device(np.zeros(gpu.sm_count * 4 * warps, "uint32"))
    pointers = [np.uintp(int(x.gpudata)) for x in (factors, out, took)]
    function(
        *pointers,
        np.int32(turns),
        grid=(gpu.sm_count, 1),
        block=(threads, 1, 1),
    )
    found = np.sort(out.get(), axis=1)
    ok = (found == np.sort(expected * 3 * turns)).all()
    # A scheduler may prefer some of its warps: the last one tells what all took.
    return float(took.get().max()), bool(ok)


table, right = {}, True
for name, pattern in PATTERNS.items():
    module = cuda.module_from_buffer(cubins[name])
    function = module.get_function(chains.symbol)
    adds = Counter(of_sum for of_sum, *_ in chosen(pattern))
    expected = np.array([adds[one] for one in sums], "float32")
    table[name] = {}
    for warps in WARPS:
        cycles(function, warps, turns, expected)  # fetches the code
        short, ok = cycles(function, warps, turns, expected)
        longer, ok_too = cycles(function, warps, 2 * turns, expected)
        right = right and ok and ok_too
        per_fma = (longer - short) / (turns * len(fmas) * warps)
        table[name][f"{warps} warps"] = per_fma
ct.check(right, True, name="sums of all threads")
ct.table(
    "cycles of a scheduler per FMA, by warps of a scheduler",
    table,
    corner="an FMA fetches",
)
