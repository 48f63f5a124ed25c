# ---
# jupyter:
#   cudatut:
#     title: {en: "Occupancy: claims of other sources", zh: "占用率：其他资料的说法"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       work: [524288, 8192]
# ---

# %% [markdown] about
# Two statements on how many blocks an SM holds, worked out and looked up, and
# two on how many clock cycles an instruction takes, measured with the SM's clock.

# %% k3
import numpy as np

import cudatut as ct

# An RTX A6000 (8.6): 48 warps, 16 blocks, 65536 registers, 102400 B per SM.
threads, registers, shared = 1024, 37, 8192
warps = threads // 32
per_warp = 256 * ct.cdiv(32 * registers, 256)
fits = {
    "warps": 48 // warps,
    "blocks": 16,
    "registers": 4 * (65536 // 4 // per_warp) // warps,
    "shared memory": 102400 // (128 * ct.cdiv(shared + 1024, 128)),
}
blocks = min(fits.values())
ct.facts("Blocks of kernel 3 that an RTX A6000 has room for", fits)

# %% claim-k3
ct.claim(
    id="k3-occupancy",
    source="SGEMM worklog, kernel 3",
    statement={
        "en": "Kernel 3 (37 registers, 8192 B, 1024 threads) has one block per SM on an A6000: 66 % occupancy",
        "zh": "kernel 3（37 个寄存器、8192 B、1024 个线程）在 A6000 上每个 SM 只放得下一个线程块，占用率 66 %",
    },
    predicted=66,
    measured=100 * blocks * warps / 48,
    unit="%",
    verdict="confirmed"
    if blocks == 1 and 100 * blocks * warps // 48 == 66
    else "refuted",
)

# %% claim-limits
gpu = ct.device()
held = gpu.max_blocks_per_sm, gpu.max_threads_per_sm
ct.claim(
    id="sm-holds-8-blocks",
    source="CUDATutorial 00",
    statement={
        "en": "On the GPU that it describes, an SM holds 8 blocks and 1536 threads",
        "zh": "在它所描述的 GPU 上，一个 SM 可容纳 8 个线程块、1536 个线程",
    },
    predicted="8, 1536",
    measured=f"{held[0]}, {held[1]}",
    # The limits belong to a compute capability; its own GPU is not at hand.
    verdict="confirmed" if held == (8, 1536) else "depends",
)

# %% chains
# Rate of FMAs on each SM: warps on an SM, and independent chains per thread.
work = 1024 * 64 * 8
starts_host = ct.rng(1).random(1024, dtype="float32")
starts = ct.to_device(starts_host)


def fmas_per_cycle(warps, chains):
    """FMA instructions of an SM per clock cycle."""
    steps = work // (warps * chains)
    block = min(32 * warps, 1024)
    grid = gpu.sm_count * 32 * warps // block
    defines = {"CHAINS": chains}
    kernel = ct.Kernel("basics/occupancy.cu", "chains", defines=defines)
    out, sm_of = ct.empty(grid * block, "float32"), ct.empty(grid, "int32")
    begin, end = ct.empty(grid, "int64"), ct.empty(grid, "int64")
    arrays = starts, out, begin, end, sm_of
    for _ in range(2):  # the first run fetches the code
        kernel(*arrays, 0, 0, steps, grid=grid, block=block)
    v = starts_host[:block, None] * (1 - 0.1 * np.arange(chains))
    for _ in range(min(steps, 400)):  # long before that it stands still
        v = v * v - 0.5
    name = f"{warps} warps, {chains} chains"
    ct.check(out, np.tile(v.sum(axis=1), grid), name=name, rtol=1e-4)
    begin, end, where = begin.get(), end.get(), sm_of.get()
    rates = []
    for one in np.unique(where):
        here = where == one
        cycles = end[here].max() - begin[here].min()
        rates.append(here.sum() * block // 32 * chains * steps / cycles)
    return float(np.median(rates))


latency = 4 / fmas_per_cycle(4, 1)  # one warp on each of four schedulers
per_instruction = 4 / fmas_per_cycle(gpu.max_threads_per_sm // 32, 8)
ct.facts(
    "Eight FMAs that wait for each other",
    {
        "one warp": (8 * latency, "cycles"),
        "share of one warp among many": (8 * per_instruction, "cycles"),
    },
)

# %% claim-eight
ct.claim(
    id="eight-fma-eight-clocks",
    source="CUDA slides 2.3",
    statement={
        "en": "One output of eight multiply-adds takes 8 clock cycles",
        "zh": "一个输出要做 8 次乘加，需要 8 个时钟周期",
    },
    predicted=8,
    measured=8 * latency,
    unit="cycles",
    # As a rate, with enough other warps, it holds; for the thread itself not.
    verdict="confirmed"
    if latency < 1.5
    else "depends"
    if 0.75 < per_instruction < 1.33
    else "refuted",
)

# %% claim-scheduler
ct.claim(
    id="warp-instruction-four-cycles",
    source="CUDATutorial 00",
    statement={
        "en": "Each warp instruction occupies its scheduler for 4 cycles",
        "zh": "每条线程束指令占用调度器 4 个周期",
    },
    predicted=4,
    measured=per_instruction,
    unit="cycles",
    verdict="confirmed" if 3 < per_instruction < 5 else "refuted",
)
