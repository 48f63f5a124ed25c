# ---
# jupyter:
#   cudatut:
#     title: {en: "Pixels: the contest", zh: "像素：比赛"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       large: [[4_320, 7_680], [33, 65], [1_080, 1_920]]
#       sizes: [[[1_080, 1_920], [2_160, 3_840], [4_320, 7_680]], [[33, 65]]]
#       rounds: [40, 1]
# ---

# %% [markdown]
# Every kernel once on a large image, beside NumPy. These are the launches that
# the profiler counts.

# %% setup
import numpy as np
from cudatut.book.images.pixels import launch
from cudatut.book.rivals import vision
from cudatut.book.rivals.torch_rival import rival

import cudatut as ct

large = (4_320, 7_680)
rounds = 40
KERNELS = {  # name: launcher, its function, whether it makes CHW
    "one pixel": (launch.swap_channels, "swap_channels", False),
    "grid turned": (launch.swap_turned, "swap_turned", False),
    "one pixel to CHW": (launch.to_chw, "to_chw", True),
    "four pixels": (launch.swap_four, "swap_four", False),
    "four pixels to CHW": (launch.to_chw_four, "to_chw_four", True),
    "16 pixels": (launch.swap_sixteen, "swap_sixteen", False),
}
launch.compile_ahead()

# %% check
host = ct.rng(0).integers(0, 255, (*large, 3), np.uint8)
image = ct.to_device(host)
swapped, planes = ct.empty((*large, 3), "uint8"), ct.empty((3, *large), "uint8")
for name, (make, _, chw) in KERNELS.items():
    target = planes if chw else swapped
    ct.poison(target)
    make(image, target)()
    got, wanted = (
        (target[0].get(), host[:, :, 0])
        if chw
        else (target[-1].get(), host[-1, :, ::-1])
    )
    ct.check(got, wanted, name=name, rtol=0, atol=0)

# %% [markdown]
# Requests, sectors and time of each kernel on an image of 1080 x 1920 pixels,
# counted by the profiler.

# %% counted
UNITS = "l1tex__t_{}_pipe_lsu_mem_global_op_{}.sum"
BUSY = "{}.avg.pct_of_peak_sustained_elapsed"
LOADS, STORES = UNITS.format("requests", "ld"), UNITS.format("requests", "st")
LOADED, STORED = UNITS.format("sectors", "ld"), UNITS.format("sectors", "st")
WRITTEN = "lts__t_sectors_op_write.sum"
L1, L2 = BUSY.format("l1tex__throughput"), BUSY.format("lts__throughput")
ISSUED = "smsp__issue_active.avg.pct_of_peak_sustained_active"
functions = [function for _, function, _ in KERNELS.values()]
counted = ct.profile_launches(
    "images/pixels_contest",
    kernel=f"regex:^({'|'.join(functions)})$",
    metrics=[LOADS, STORES, LOADED, STORED, WRITTEN, L1, L2, ISSUED],
    launches=len(functions),
)
if counted:
    groups = 1_080 * 1_920 / 128
    ct.table(
        "per 128 pixels, and how busy",
        {
            name: {
                "requests": (c[LOADS] + c[STORES]) / groups,
                "sectors of a store": c[STORED] / c[STORES],
                "sectors written to L2": c[WRITTEN] / groups,
                "L1 is busy": c[L1],
                "L2 is busy": c[L2],
                "slots used": c[ISSUED],
            }
            for name, c in zip(KERNELS, counted)
        },
        corner="kernel",
        units={
            "L1 is busy": "%",
            "L2 is busy": "%",
            "slots used": "%",
        },
    )

# %% [markdown]
# By size, beside a copy of as many bytes, and PyTorch.

# %% sizes
sizes = ((1_080, 1_920), (2_160, 3_840), (4_320, 7_680))


def contest(rows, columns):
    own = ct.to_device(np.ascontiguousarray(host[:rows, :columns]))
    same, three = (
        ct.empty((rows, columns, 3), "uint8"),
        ct.empty((3, rows, columns), "uint8"),
    )
    return ct.bench(
        {
            "four pixels": launch.swap_four(own, same),
            "16 pixels": launch.swap_sixteen(own, same),
            "four pixels to CHW": launch.to_chw_four(own, three),
            "copy": rival(lambda torch, a, b: lambda: b.copy_(a), own, same),
            "PyTorch": rival(lambda torch, a: lambda: a.flip(-1), own),
            "PyTorch to CHW": rival(
                lambda torch, a, b: lambda: b.copy_(a.movedim(-1, 0)),
                own,
                three,
            ),
        },
        bytes=6 * rows * columns,
        name=f"{rows} x {columns} pixels",
        rounds=rounds,
    )


by_size = {
    f"{rows} x {columns}": contest(rows, columns) for rows, columns in sizes
}

# %% opencv
us = vision.opencv_us(lambda cv2: lambda: cv2.cvtColor(host, cv2.COLOR_BGR2RGB))
if isinstance(us, float):
    ct.facts("OpenCV on the CPU", {"4320 x 7680 pixels": (us, "us")})

# %% goals
if not ct.tool.running():
    ct.goals(
        "beside a copy, and beside PyTorch",
        {
            f"{size}, {name}, {wanted} x {other}": one.goal(name, other, wanted)
            for size, one in by_size.items()
            for name, other, wanted in (
                ("four pixels", "copy", 0.9),
                ("four pixels to CHW", "copy", 0.9),
                ("four pixels", "PyTorch", 2.0),
                ("four pixels to CHW", "PyTorch to CHW", 2.0),
            )
        },
    )
