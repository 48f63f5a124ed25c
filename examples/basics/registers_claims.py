# ---
# jupyter:
#   cudatut:
#     title: {en: "Registers: claims of other sources", zh: "寄存器：其他资料的说法"}
#     requires: sm_75
#     timeout_s: 120
# ---

# %% [markdown] about
# Where do a kernel's parameters lie? The machine code names the place of every
# operand.

# %% parameters
import re

from machine_code import sass

import cudatut as ct

# The driver puts the parameters into constant bank 0, behind words of its own.
# Where they begin depends on the architecture.
BEGIN = {7: 0x160, 8: 0x160, 9: 0x210, 10: 0x380, 12: 0x380}
begin = BEGIN[ct.device().compute_capability[0]]
code = sass("basics/registers.cu", "ring", MIN_BLOCKS=1)


def offset(instruction):
    """Byte of constant bank 0 that an instruction reads; -1 for none."""
    found = re.search(r"c\[0x0\]\[0x([0-9a-f]+)\]", instruction.text)
    return int(found[1], 16) if found else -1


parameters = [i.text for i in code if offset(i) >= begin]
from_shared = [i.text for i in code if i.op == "LDS"]
print(*parameters, sep="\n")

# %% claim-parameters
ct.claim(
    id="parameters-in-shared-memory",
    source="Learn CUDA Programming, notes",
    statement={
        "en": "A kernel's parameters lie in shared memory or registers",
        "zh": "kernel 的参数存放在共享内存或寄存器里",
    },
    predicted="c[0x0]: 0",
    measured=f"c[0x0]: {len(parameters)}, LDS: {len(from_shared)}",
    verdict="refuted" if parameters and not from_shared else "confirmed",
)
