# ---
# jupyter:
#   cudatut:
#     title: {en: "Tuning the final kernel: equal budgets of registers", zh: "为最终的 kernel 自动调优：寄存器预算相同"}
#     requires: sm_80
#     timeout_s: 60
#     alone: false
#     sizes: {BLOCKS: [[1, 2, 3, 4], [3]]}
# ---

# %% [markdown]
# A rule that we believed in, tried: equal budgets of registers, equal code?

# %% setup
from cudatut.book.gemm.ladder import autotuning_space as space

import cudatut as ct

limits = space.Limits.of(ct.device())
SPACE, Candidate = space.SPACE, space.Candidate

# %% budgets
BLOCKS = (1, 2, 3, 4)
FAMILY = [
    space.config_of(bm=64, bn=128, bk=16, tm=8, tn=8, stages=4, blocks=blocks)
    for blocks in BLOCKS
]
ct.compile_ahead([SPACE.instance(Candidate(config)) for config in FAMILY])
kernels = [
    space.SGEMM.kernel(config.name(4, False, False)) for config in FAMILY
]
codes = [kernel.machine_code() for kernel in kernels]
rows = {}
for config, kernel, code in zip(FAMILY, kernels, codes):
    needs = kernel.resources(config.threads, config.shared(False, False))
    same = FAMILY[codes.index(code)].blocks
    rows[config.blocks] = {
        "budget": space.register_budget(config, limits),
        "registers": needs.registers,
        "blocks per SM": needs.blocks_per_sm,
        "first with this code": f"blocks={same}",
    }
ct.table("64x128x16 8x8, 4 stages", rows, corner="blocks")
