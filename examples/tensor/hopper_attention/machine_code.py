# ---
# jupyter:
#   cudatut:
#     title: {en: "FlashAttention on Hopper: machine code", zh: "Hopper 上的 FlashAttention：机器码"}
#     requires: sm_90a
#     timeout_s: 60
#     alone: false
# ---

# %% [markdown]
# What a step of the loop is in machine code, and what a block needs. Nothing is
# launched.

# %% setup
from cudatut.book.measure import loops
from cudatut.book.tensor.attention import flash_hopper

import cudatut as ct

tokens = 8192
plans = {d: flash_hopper.plan_for(d, False, tokens, tokens) for d in (128, 64)}

# %% loop
OPS = {
    "HGMMA": "HGMMA",
    "exponentials": "MUFU.EX2",
    "maxima": "FMNMX",
    "multiply-adds": "FFMA",
    "additions": "FADD",
    "conversions": "F2FP",
}


def main_loop(code):
    """The shortest loop that holds products and exponentials."""
    return min(
        (
            loop
            for loop in loops.loops_of(code)
            if any(i.op == "HGMMA" for i in loop)
            and any(i.name.startswith("MUFU.EX2") for i in loop)
        ),
        key=len,
    )


counted = {}
for d, plan in plans.items():
    loop = main_loop(loops.disassemble(flash_hopper.instance(plan)))
    counted[f"D = {d}"] = {
        name: sum(i.name.startswith(op) for i in loop)
        for name, op in OPS.items()
    }
ct.table("machine code of a step of the loop", counted, corner="heads")

# %% resources
for plan in plans.values():
    kernel = flash_hopper.instance(plan)
    ct.show(kernel.resources(128 * (plan.consumers + 1), plan.shared))
