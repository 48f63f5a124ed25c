# ---
# jupyter:
#   cudatut:
#     title: {en: "Affine warp: what the L1 cache does", zh: "仿射变换：L1 缓存在做什么"}
#     requires: sm_75
#     timeout_s: 60
#     sizes:
#       side: [2048, 64, 2048]
# ---

# %% [markdown]
# The same kernels at three angles, in blocks of two shapes. The profiler runs
# this file again, and counts these launches.

# %% launches
from cudatut.book.images.warp import reference, warp

import cudatut as ct

side = 2048
host = ct.rng(0).integers(0, 256, (side, side, 3), "uint8")
x, out = ct.to_device(host), ct.empty(host.shape, "uint8")
ANGLES = (0, 30, 90)
CASES = {
    f"{way}, {block[0]} x {block[1]}": (way, block)
    for way in ("plain", "words", "packed")
    for block in ((32, 8), (8, 32))
}
for way, block in CASES.values():
    for degrees in ANGLES:
        m = reference.rotation(degrees, side, side)
        m[:, 2] += 0.3, 0.4  # between pixels
        warp.warp(x, out, m, way=way, block=block)()

# %% check
values = reference.warp(host, m, side, side)
ct.check(out, reference.rounded(values, out.get()), name="the last one")

# %% counted
REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts.sum"
EXECUTED = "smsp__inst_executed.sum"
MEMORY = "dram__bytes_read.sum"
TIME = "gpu__time_duration.sum"
counted = ct.profile_launches(
    "images/warp_counters",
    kernel="regex:^warp",
    metrics=[REQUESTS, SECTORS, WAVEFRONTS, EXECUTED, MEMORY, TIME],
    launches=len(CASES) * len(ANGLES),
)
warps = side * side / 32  # of pixels
of = {
    (name, degrees): counted[k * len(ANGLES) + i] if counted else {}
    for k, name in enumerate(CASES)
    for i, degrees in enumerate(ANGLES)
}

# %% wavefronts
if counted:
    ct.table(
        "wavefronts of the L1 cache for 32 pixels",
        {
            name: {f"{d}°": of[name, d][WAVEFRONTS] / warps for d in ANGLES}
            for name in CASES
        },
        corner="kernel, block",
    )

# %% others
if counted:
    ct.table(
        f"{side} x {side} pixels",
        {
            f"{name}, {d}°": {
                "sectors per request": c[SECTORS] / c[REQUESTS],
                "instructions for 32 pixels": c[EXECUTED] / warps,
                "bytes from memory / bytes of the image": c[MEMORY]
                / host.nbytes,
                "time": c[TIME],
            }
            for (name, d), c in of.items()
        },
        corner="kernel, block, angle",
        units={"time": "us"},
    )
