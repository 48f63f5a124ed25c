# ---
# jupyter:
#   cudatut:
#     title: {en: "Occupancy: claims of other sources", zh: "占用率：其他资料的说法"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       work: [524288, 8192]
#       stay_steps: [100000, 2000]
# ---

# %% [markdown] about
# Two statements on how many blocks an SM holds, one worked out and one counted,
# and two on how many clock cycles an instruction takes, measured with the SM's
# clock.

# %% k3
import numpy as np

import cudatut as ct

gpu = ct.device()


def blocks_that_fit(sm, threads, registers, shared):
    """By each resource of an SM, with the four divisions of the chapter."""
    warps, blocks, of_registers, of_shared, reserved = sm
    per_warp = 256 * ct.cdiv(32 * registers, 256)
    return {
        "warps": warps // ct.cdiv(threads, 32),
        "blocks": blocks,
        "registers": 4
        * (of_registers // 4 // per_warp)
        // ct.cdiv(threads, 32),
        "shared memory": of_shared // (128 * ct.cdiv(shared + reserved, 128)),
    }


# An RTX A6000 (8.6): 48 warps, 16 blocks, 65536 registers, 102400 B per SM.
fits = blocks_that_fit((48, 16, 65536, 102400, 1024), 1024, 37, 8192)
blocks = min(fits.values())
ct.facts("Blocks of kernel 3 that an RTX A6000 has room for", fits)

# The same divisions for this GPU, and what its driver says.
tiled = ct.Kernel("basics/ladder/tiled.cu", "matmul_tiled").resources((32, 32))
reserved = gpu.shared_per_sm - gpu.shared_per_block_optin
here = (gpu.max_threads_per_sm // 32, gpu.max_blocks_per_sm)
here += (gpu.registers_per_sm, gpu.shared_per_sm, reserved)
fits_here = blocks_that_fit(here, 1024, tiled.registers, tiled.shared_bytes)
blocks_here = min(fits_here.values())
ct.check(
    np.array([tiled.blocks_per_sm]),
    np.array([blocks_here]),
    name="matmul_tiled",
)

# %% claim-k3
ct.claim(
    id="k3-occupancy",
    source="SGEMM worklog, kernel 3",
    place={
        "en": "the example calculation of occupancy",
        "zh": "占用率的计算示例",
    },
    form="printed",
    statement={
        "en": "Kernel 3 (37 registers, 8192 B, 1024 threads) has one block on an "
        "SM of an RTX A6000: 32 of 48 warps, 66 %. Worked out again, blocks and "
        "warps:",
        "zh": "kernel 3（37 个寄存器、8192 B、1024 个线程）在 RTX A6000 的一个 "
        "SM 上只放得下一个线程块：48 个线程束里的 32 个，66 %。重新计算，"
        "线程块数和线程束数：",
    },
    expected=(1, 32),
    measured=(blocks, 32 * blocks),
    rule="equal",
    found="computed",
    control=(
        {
            "en": "the tiled kernel on this GPU; the driver says the same",
            "zh": "这块 GPU 上的分块 kernel；驱动给出的也是这个数",
        },
        (blocks_here, 32 * blocks_here),
        (tiled.blocks_per_sm, 32 * tiled.blocks_per_sm),
    ),
)

# %% [markdown] about-limits
# How many blocks are on an SM at a time? Each block notes its SM, and the SM's
# clock at its start and its end.

# %% limits
long_chains = ct.Kernel("basics/occupancy/occupancy.cu", "chains")
stay_steps = 100_000
starts_host = ct.rng(1).random(1024, dtype="float32")
starts = ct.to_device(starts_host)


def at_once(block, shared=0):
    """The most blocks of `block` threads, each with so many bytes of shared memory,
    that one SM ran at a time."""
    grid = gpu.sm_count * (gpu.max_blocks_per_sm + 8)
    out, sm_of = ct.empty(grid * block, "float32"), ct.empty(grid, "int32")
    begin, end = ct.empty(grid, "int64"), ct.empty(grid, "int64")
    arrays = starts, out, begin, end, sm_of
    long_chains(
        *arrays, 0, 0, stay_steps, grid=grid, block=block, shared=shared
    )
    v = starts_host[:block]
    for _ in range(400):  # long before that it stands still
        v = v * v - np.float32(0.5)
    name = f"blocks of {block} threads"
    ct.check(out, np.tile(v, grid), name=name, rtol=1e-4)
    begin, end, where = begin.get(), end.get(), sm_of.get()
    most = 0
    for sm in np.unique(where):
        here = where == sm
        changes = [(t, -1) for t in end[here].tolist()]
        changes += [(t, 1) for t in begin[here].tolist()]
        # At equal times the ends come first.
        most = max(most, *np.cumsum([step for _, step in sorted(changes)]))
    return int(most)


def room(blocks):
    """Bytes per block with which so many blocks, and no more, fit on an SM."""
    return gpu.shared_per_sm // blocks // 1024 * 1024 - reserved


small, large = at_once(32), at_once(512)

# %% claim-limits
seen = small, 512 * large
fewer = at_once(32, room(8)), 512 * at_once(512, room(3))
ct.claim(
    id="sm-holds-8-blocks",
    source="CUDATutorial 00",
    place={
        "en": "section on the SM and the parallel execution model, last "
        "paragraph",
        "zh": "“SM 和并行执行模型”一节，最后一段",
    },
    form="said",
    statement={
        "en": "Recent CUDA devices, for example, run at most 8 blocks and "
        "1536 threads on an SM at a time. (The section on the thread "
        "block scheduler takes 2048 threads and 32 blocks as its "
        "example.) Seen at a time: blocks of one warp, and threads in "
        "blocks of 512:",
        "zh": "比如较近的 CUDA 设备，一个 SM 上最多同时运行 8 个线程块和 "
        "1536 个线程。（讲 Thread Block Scheduler 的一节，举的例子是 "
        "2048 个线程和 32 个线程块。）同时看到的：只有一个线程束的线程"
        "块，以及每块 512 个线程时的线程数：",
    },
    expected=(8, 1536),
    measured=seen,
    rule="equal",
    found="counted",
    control=(
        {
            "en": "the same with so much shared memory per block that 8 and 3 "
            "blocks fit",
            "zh": "同样的测量，但每块占用的共享内存多到只放得下 8 个和 3 个线程块",
        },
        fewer,
        (8, 1536),
    ),
    elsewhere=True,  # the limits of compute capability 2.x
)

# %% chains
# Rate of FMAs on each SM: warps on an SM, and independent chains per thread.
work = 1024 * 64 * 8


def fmas_per_cycle(warps, chains):
    """FMA instructions of an SM per clock cycle."""
    steps = work // (warps * chains)
    block = min(32 * warps, 1024)
    grid = gpu.sm_count * 32 * warps // block
    defines = {"CHAINS": chains}
    kernel = ct.Kernel(
        "basics/occupancy/occupancy.cu", "chains", defines=defines
    )
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
    "Cycles of an FMA",
    {
        "one warp, each waits for the one before": (latency, "cycles"),
        "of a scheduler with enough warps": (per_instruction, "cycles"),
    },
)

# %% claim-eight
ct.claim(
    id="eight-fma-eight-clocks",
    source="CUDA slides 2.3",
    place={
        "en": "the product of 4 x 8 and 8 x 4 matrices, one element of C",
        "zh": "4×8 与 8×4 的矩阵乘法，C 的一个元素",
    },
    form="said",
    statement={
        "en": "An element of C needs 8 FMAs, so it takes 8 clock cycles. "
        "Whole cycles from one FMA to the next that needs its result, "
        "times 8:",
        "zh": "C 的一个元素需要 8 次 FMA，所以需要 8 个时钟周期。后一次 FMA "
        "要等前一次的结果，相隔的周期数取整，再乘以 8：",
    },
    expected=8,
    depends={
        "en": "whether other warps fill the time in which this one waits",
        "zh": "这个线程束等待时，有没有别的线程束来填补",
    },
    sides=(
        (
            {"en": "a single warp", "zh": "只有一个线程束"},
            8 * round(latency),
        ),
        (
            {
                "en": "share of one warp among many, which keep its scheduler "
                "busy",
                "zh": "线程束很多、调度器一直忙时，每个线程束分摊",
            },
            8 * round(per_instruction),
        ),
    ),
    unit="cycles",
    rule="equal",
    control=(
        {
            "en": "a single warp with eight chains, none of which waits for "
            "another: were the warp itself slow, it would show here, too",
            "zh": "只有一个线程束，但有八条互不等待的链；若是线程束本身慢，"
            "这里也会慢",
        },
        8 * round(4 / fmas_per_cycle(4, 8)),
        8,
    ),
)

# %% claim-scheduler
ct.claim(
    id="warp-instruction-four-cycles",
    source="CUDATutorial 00",
    place={
        "en": "section on the execution model and kernels",
        "zh": "“执行模型与核函数”一节",
    },
    form="said",
    statement={
        "en": "A warp instruction is executed every 4 cycles, and the SM "
        "schedules the warps. Cycles of a scheduler for each FMA of a warp, with "
        "enough warps, rounded:",
        "zh": "每 4 个周期执行一条线程束指令，由 SM 调度。线程束足够多时，"
        "调度器的一条 FMA 指令平均占几个周期，取整：",
    },
    expected=4,
    measured=round(per_instruction),
    unit="cycles",
    rule="equal",
    control=(
        {
            "en": "a single warp, which waits for each result: two cycles and "
            "more on every GPU",
            "zh": "只有一个线程束，每次都等结果：任何 GPU 上都不止一个周期",
        },
        round(latency),
        (2, 40),
    ),
    elsewhere=True,  # compute capability 1.x: eight units for the 32 lanes
)
