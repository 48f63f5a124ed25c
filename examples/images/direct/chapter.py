# ---
# jupyter:
#   cudatut:
#     title: {en: "Direct convolution", zh: "直接卷积"}
#     requires: sm_75
#     timeout_s: 150
#     sizes:
#       small: [[32, 128, 28, 28, 128], [2, 16, 12, 12, 40], [32, 128, 28, 28, 128]]
#       most: [100_000_000, 300_000]
# ---

# %% [markdown]
# A convolution as networks have it, with one thread for each result. First the
# whole program.

# %% program
import numpy as np

import cudatut as ct
from cudatut.book.images.shapes import Shape, reference

# 2 images of 3 channels, 5 filters with windows of 3 x 3, and a border of 1.
shape = Shape(2, 3, 10, 12, 5, (3, 3), stride=(1, 1), pad=(1, 1))
rng = ct.rng(0)
images = rng.integers(-4, 5, (2, 3, 10, 12)).astype("float32")
weights = rng.integers(-4, 5, (5, 3, 3, 3)).astype("float32")

x, w = ct.to_device(images), ct.to_device(weights)
y = ct.empty((2, 5, *shape.out), "float32")
naive = ct.Kernel("images/direct/naive.cu", "direct_naive")
naive(shape.struct(), x, w, y, grid=ct.cdiv(y.size, 256), block=256)

print("results:", " x ".join(map(str, y.shape)))
print("the first:", y.get()[0, 0, 0, :6].astype(int))
# Sums of small whole numbers are exact.
ct.check(y, reference(shape, images, weights), name="program", rtol=0)

# %% [markdown]
# The steps of this chapter on one layer: 32 images of 128 channels and 28 x 28
# pixels, 128 filters of 3 x 3. They are launched before anything else, so that
# the profiler comes to them soon.

# %% rungs
from cudatut.book.images.direct import launch

small = (32, 128, 28, 28, 128)
layer = Shape(*small, (3, 3), pad=(1, 1))
numbers = ct.rng(1)
x_host = numbers.integers(-4, 5, small[:4]).astype("float32")
w_host = numbers.integers(-4, 5, (small[4], small[1], 3, 3)).astype("float32")
x, w = ct.to_device(x_host), ct.to_device(w_host)
y = ct.empty((small[0], small[4], *layer.out), "float32")
RUNGS = ("naive", "constant", "tiled", "several", "window", "ahead")
runs = {name: getattr(launch, name)(layer, x, w, y) for name in RUNGS}
first = reference(layer._replace(images=1), x_host[:1], w_host)
for name, run in runs.items():
    ct.poison(y)
    run()
    ct.check(y[:1], first, name=f"{name}, the first image", rtol=0)

# %% [markdown]
# How many loads a thread needs for its FMAs, as counted in the source, and what
# rate that leaves: an SM starts one load of a warp in a cycle, and four FMAs.

# %% predict
part, window = launch.MANY, 9  # weights of a window
P, F = part.results, part.filters
column = P + 2  # words of a column, for all rows of the window
LOADS = {  # FMAs of a thread, its loads of words, its loads of weights
    "naive": (1, 1, 1),
    "constant": (1, 1, 0),  # weights come by another way
    "tiled": (1, 1, 1),
    "several": (P * F, P, F / 4),  # four weights by one load
    "window": (P * F * window, column * 3, F / 4 * window),
}
limit = ct.limits.fma()
predicted = {}
for name, (fmas, words, of_weights) in LOADS.items():
    loads = (words + of_weights) / fmas
    predicted[name] = {
        "FMAs": fmas,
        "loads": words + of_weights,
        "loads / FMA": loads,
        "rate at most": limit * min(1, 1 / (4 * loads)),
    }
ct.table(
    "loads of a thread, and the rate that they leave",
    predicted,
    corner="kernel",
    units={"rate at most": "TFLOP/s"},
)

# %% [markdown]
# Right before fast: windows beyond the image, strides, dilation, groups, one
# pixel. Sums of small whole numbers are exact, so no result may be off at all.

# %% check
from cudatut.book.images.shapes import RAGGED

most = 100_000_000  # FLOPs
for one in RAGGED:
    if one.flops > most:
        continue
    rng = ct.rng(2)
    of_images = one.images, one.channels, one.height, one.width
    of_weights = one.filters, one.channels // one.groups, *one.window
    images = rng.integers(-4, 5, of_images).astype("float32")
    weights = rng.integers(-4, 5, of_weights).astype("float32")
    a, b = ct.to_device(images), ct.to_device(weights)
    out = ct.empty((one.images, one.filters, *one.out), "float32")
    expected = reference(one, images, weights)
    takes = ["naive", "constant", "direct"]
    takes += ["tiled"] * (launch.refuses_tiles(one) is None)
    takes += ["several"] * (launch.refuses_several(one) is None)
    takes += ["window", "ahead"] * (launch.refuses_window(one) is None)
    for name in takes:
        ct.poison(out)
        getattr(launch, name)(one, a, b, out)()
        ct.check(out, expected, name=f"{name}, {one.text}", rtol=0)

# %% [markdown]
# The layer from above, with random numbers, beside cuDNN.

# %% bench
from cudatut.book.rivals import cudnn_conv

x.set(numbers.standard_normal(x.shape, "float32"))
w.set(numbers.standard_normal(w.shape, "float32"))
rivals = cudnn_conv.contestants(x, w, y, pad=(1, 1), tries=0)
times = ct.bench(
    {**runs, "cuDNN": rivals["cuDNN"]},
    flops=layer.flops,
    name=f"{layer.text}",
    rounds=20,
)

# %% [markdown]
# Why are tiles with halos no gain? The profiler counts the launches of the
# first cells: instructions of a warp for each of its FMAs, and what warps wait
# for.

# %% counted
STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
METRICS = {
    "instructions": "smsp__inst_executed.sum",
    "FMAs": "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
    "L1 hits": "l1tex__t_sector_hit_rate.pct",
    "slots used": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "barrier": STALL.format("barrier"),
    "L1": STALL.format("long_scoreboard"),
    "shared memory": STALL.format("short_scoreboard"),
    "load queue": STALL.format("lg_throttle"),
    "shared queue": STALL.format("mio_throttle"),
}
# Constant memory holds the weights of some filters: a launch for each so many.
parts = ct.cdiv(layer.filters, launch.HELD // layer.product[2])
at = {"naive": 0, "constant": 1, "tiled": 1 + parts}
at |= {"several": 2 + parts, "window": 3 + parts, "ahead": 4 + parts}
counted = ct.profile_launches(
    "images/direct",
    "regex:^direct_",
    list(METRICS.values()),
    launches=5 + parts,
    skip=1,  # that of the program
)

# %% look
if counted:
    rows = {}
    for name, index in at.items():
        found = {what: counted[index][one] for what, one in METRICS.items()}
        fmas = found.pop("FMAs") / 32
        rows[name] = {
            "instructions / FMA": found.pop("instructions") / fmas,
            **found,
            "rate": times[name].value,
        }
    ct.table(
        "warps that wait, per issued instruction",
        rows,
        corner="kernel",
        units={"L1 hits": "%", "slots used": "%", "rate": "TFLOP/s"},
    )

# %% [markdown]
# 'Convolution' in a network and in a text book: the second turns the window
# round by 180 degrees.

# %% turned
ramp = np.arange(9, dtype="float32").reshape(1, 1, 3, 3)
point = np.zeros((1, 1, 5, 5), "float32")
point[0, 0, 2, 2] = 1  # a picture of one point
single = Shape(1, 1, 5, 5, 1, (3, 3), pad=(1, 1))
found = ct.empty((1, 1, 5, 5), "float32")
launch.direct(single, ct.to_device(point), ct.to_device(ramp), found)()
print("the window:", ramp[0, 0].astype(int), sep="\n")
print("around the point:", found.get()[0, 0, 1:4, 1:4].astype(int), sep="\n")
turned = ramp[..., ::-1, ::-1]
ct.check(found[:, :, 1:4, 1:4], turned, name="the window turned", rtol=0)
