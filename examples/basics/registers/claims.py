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

from cudatut.book.measure.machine_code import sass

import cudatut as ct

# The driver puts the parameters into constant bank 0, behind words of its own.
# Where they begin depends on the architecture.
BEGIN = {7: 0x160, 8: 0x160, 9: 0x210, 10: 0x380, 12: 0x380}
begin = BEGIN[ct.device().compute_capability[0]]


def offset(instruction):
    """Byte of constant bank 0 that an instruction reads; -1 for none."""
    found = re.search(r"c\[0x0\]\[0x([0-9a-f]+)\]", instruction.text)
    return int(found[1], 16) if found else -1


def read_from(code):
    """Where the values lie that a kernel of this machine code reads in."""
    places = {
        "constant memory": any(offset(i) >= begin for i in code),
        "shared memory": any(i.op == "LDS" for i in code),
    }
    found = [place for place, used in places.items() if used]
    return " and ".join(found) if found else "registers"


code = sass("basics/registers/registers.cu", "ring", MIN_BLOCKS=1)
parameters = [i.text for i in code if offset(i) >= begin]
print(*parameters, sep="\n")

# %% claim-parameters
stated, found = "shared memory or registers", read_from(code)
ct.claim(
    id="parameters-in-shared-memory",
    source="Learn CUDA Programming, notes",
    place={
        "en": "section on registers, the example with X and Y",
        "zh": "“Registers in GPU”一节，X 和 Y 的例子",
    },
    form="said",
    statement={
        "en": "In an example, the parameters X and Y of a kernel are in "
        "shared memory or in registers. From where the machine code of "
        "our kernel ring reads its parameters:",
        "zh": "例子中，kernel 的参数 X 和 Y 存放在共享内存或寄存器里。我们名"
        "为 ring 的 kernel，其机器码从哪里读取参数：",
    },
    expected=stated,
    measured=stated if found in ("shared memory", "registers") else found,
    rule="equal",
    found="counted",
    control=(
        {
            "en": "the tiled product, whose tiles are in shared memory",
            "zh": "分块矩阵乘法，它的分块在共享内存里",
        },
        read_from(sass("basics/ladder/tiled.cu", "matmul_tiled")),
        "constant memory and shared memory",
    ),
    elsewhere=True,  # shared memory was right on compute capability 1.x
)
