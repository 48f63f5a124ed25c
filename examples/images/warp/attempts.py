# ---
# jupyter:
#   cudatut:
#     title: {en: "Affine warp: attempts", zh: "仿射变换：尝试"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       side: [4096, 64, 2048]
#       rounds: [25, 1]
# ---

# %% [markdown]
# What made the exact kernel faster, and what did not. Each row changes one thing
# of another row. Where a prediction stands, it was written down before the row
# ran.

# %% variants
from dataclasses import dataclass

from cudatut.book.images.warp import reference, warp

import cudatut as ct

side = 4096
rounds = 25
ANGLES = (0, 30, 90)


@dataclass(frozen=True)
class Variant:
    way: str
    block: tuple
    of: str  # the row that it changes
    predicted: float | None = None  # times as fast as that one, by 30 degrees
    plan: tuple = ()


WIDE, TALL = (32, 8), (8, 16)
VARIANTS = {
    "plain": Variant("plain", WIDE, ""),
    # At 30 degrees a warp of 32 x 1 pixels looks at 18 rows, of 8 x 4 at 9.
    "plain, tall": Variant("plain", TALL, "plain", 1.3),
    # Six loads of a pixel in place of twelve.
    "words": Variant("words", TALL, "plain, tall", 1.6),
    # The same cache lines; stores of neighbors, and fewer instructions.
    "packed": Variant("packed", TALL, "words", 1.1),
    # Cache lines no longer count: 12 wavefronts for 32 pixels, not 45.
    "tile": Variant("tile", warp.TILE, "packed", 2.0),
    # Half as many boxes, each a little less than twice as large.
    "tile of 64 rows": Variant(
        "tile", warp.TILE, "tile", 1.05, (("HIGH", 64),)
    ),
    # Dot products of bytes: a third of the instructions fewer.
    "tile, 16-bit weights": Variant(
        "tile", warp.TILE, "tile", 1.3, (("WEIGHTS", 1),)
    ),
    # One read of a texture brings what six loads of a word do.
    "gathered": Variant("gathered", WIDE, "packed", 2.2, (("ROWS", 4),)),
    # Half of the permutations, which have half of the rate, elsewhere.
    "gathered, half by dots": Variant(
        "gathered", WIDE, "gathered", 1.1, (("ROWS", 4), ("DOTS", 1))
    ),
}

# %% [markdown]
# Each variant at three angles, and the last angle against NumPy.

# %% check
warp.compile_ahead()
host = ct.rng(0).integers(0, 256, (side, side, 3), "uint8")
x, out = ct.to_device(host), ct.empty(host.shape, "uint8")
pixels = ct.empty((side, warp.pitch_of(side), 4), "uint8")
warp.pad(x, pixels)()


def matrix(degrees):
    turn = reference.rotation(degrees, side, side)
    turn[:, 2] += 0.3, 0.4  # between pixels at 0 degrees, too
    return turn


def launcher(one, degrees):
    m, plan = matrix(degrees), dict(one.plan)
    if one.way != "gathered":
        return warp.warp(x, out, m, way=one.way, block=one.block, **plan)
    return warp.by_texture(
        pixels, side, out, m, block=one.block, gather=True, **plan
    )


few = min(side, 64)
runs = {degrees: {} for degrees in ANGLES}
for name, one in VARIANTS.items():
    for degrees in ANGLES:
        run = launcher(one, degrees)
        runs[degrees][name] = run
        run()
    values = reference.warp(host, matrix(ANGLES[-1]), few, side)
    near = 0.02 if "weights" in name else reference.NEAR
    wanted = reference.rounded(values, out[:few].get(), near)
    ct.check(out[:few], wanted, name=name)

# %% times
by_angle = {
    degrees: ct.bench(
        runs[degrees],
        bytes=2 * host.nbytes,
        name=f"{side} x {side}, turned by {degrees}°",
        rounds=rounds,
    )
    for degrees in ANGLES
}

# %% [markdown]
# The profiler runs this file again. Counted are the launches of the check.

# %% counted
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts.sum"
EXECUTED = "smsp__inst_executed.sum"
ISSUED = "smsp__issue_active.avg.pct_of_peak_sustained_active"
MEMORY = "dram__bytes_read.sum"
counted = ct.profile_launches(
    "images/warp_attempts",
    kernel="regex:^warp",
    metrics=[WAVEFRONTS, EXECUTED, ISSUED, MEMORY],
    launches=len(VARIANTS) * len(ANGLES),
)
PROFILED = 2048  # the side of the image that the profiler sees
warps = PROFILED**2 / 32  # of pixels
of = {
    (name, degrees): counted[k * len(ANGLES) + i] if counted else {}
    for k, name in enumerate(VARIANTS)
    for i, degrees in enumerate(ANGLES)
}

# %% wavefronts
if counted:
    ct.table(
        "wavefronts of the L1 cache for 32 pixels",
        {
            name: {f"{d}°": of[name, d][WAVEFRONTS] / warps for d in ANGLES}
            for name in VARIANTS
        },
        corner="kernel",
    )

# %% table
if not ct.tool.running():
    rows = {}
    for name, one in VARIANTS.items():
        rows[name] = {
            "changes": one.of or None,
            "predicted": one.predicted,
            "measured": by_angle[30].ratio(name, one.of or name).median,
        } | {f"{d}°": by_angle[d][name].median_us for d in ANGLES}
        if counted:
            c = of[name, 30]
            rows[name] |= {
                "instructions for 32 pixels": c[EXECUTED] / warps,
                "schedulers issue": c[ISSUED],
                "bytes from memory / bytes of the image": c[MEMORY]
                / (3 * PROFILED**2),
            }
    ct.table(
        "gains, predicted and measured",
        rows,
        corner="variant",
        units={
            "predicted": "×",
            "measured": "×",
            "schedulers issue": "%",
        }
        | {f"{d}°": "us" for d in ANGLES},
    )
