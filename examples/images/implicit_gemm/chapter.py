# ---
# jupyter:
#   cudatut:
#     title: {en: "Implicit GEMM", zh: "隐式 GEMM"}
#     requires: sm_80
#     timeout_s: 180
#     sizes:
#       images: [32, 1, 32]
#       rounds: [20, 1]
#       ragged: [13, 8]
# ---

# %% [markdown]
# A convolution as a product whose second factor is never stored. First the
# whole program: each word of that factor is found by its row and its column.

# %% program
import numpy as np

import cudatut as ct

images = 32
channels, height, width = 128, 28, 28
filters, rows, columns, pad = 128, 3, 3, 1
out_height = height + 2 * pad - rows + 1
out_width = width + 2 * pad - columns + 1
rng = ct.rng(0)
x = rng.standard_normal((images, channels, height, width), "float32")
w = rng.standard_normal((filters, channels, rows, columns), "float32")

implicit = ct.Kernel("images/implicit_gemm/maps.cu", "implicit_maps")
numbers = (
    images, 1, channels, height, width, filters, rows, columns, out_height,
    out_width, 1, 1, pad, pad, 1, 1,
)  # fmt: skip
shape = np.array(numbers, "int32").tobytes()  # the kernel's struct Shape
x_gpu, w_gpu = ct.to_device(x), ct.to_device(w)
y_gpu = ct.empty((images, filters, out_height, out_width), "float32")
pixels = images * out_height * out_width
implicit(
    shape, x_gpu, w_gpu, y_gpu,
    grid=(ct.cdiv(pixels, 16), ct.cdiv(filters, 16)), block=(16, 16),
)  # fmt: skip

around = (0, 0), (0, 0), (pad, pad), (pad, pad)
windows = np.lib.stride_tricks.sliding_window_view(
    np.pad(x.astype("float64"), around), (rows, columns), axis=(2, 3)
)
expected = np.einsum("nchwrs,kcrs->nkhw", windows, w, optimize=True)
depth = channels * rows * columns
most = np.abs(expected).max()
ct.check(y_gpu, expected, name="results", rtol=0, atol=depth * 2**-24 * most)
print("a factor of", depth, "rows")

# %% [markdown]
# The second factor, counted: how large it would be, and how much of it lies
# outside the images.

# %% predict
inside_down, inside_right = (
    sum(
        0 <= place - pad + tap < size
        for place in range(out)
        for tap in range(window)
    )
    for size, out, window in (
        (height, out_height, rows),
        (width, out_width, columns),
    )
)
taps = rows * columns * out_height * out_width
border = 1 - (height - 2) * (width - 2) / (height * width)
ct.facts(
    "the factor that is not stored",
    {
        "its size": (4 * depth * pixels / 1e6, "MB"),
        "size of the images": (4 * x.size / 1e6, "MB"),
        "outside the image": (
            100 * (1 - inside_down * inside_right / taps),
            "%",
        ),
        "results at the border": (100 * border, "%"),
        "FMAs of a thread in a step": 64 * 128 * 16 // 128,
        "its copies, by offsets": 64 * 16 // 128 + 128 * 16 // 128,
        "its copies, by taps": 64 * 16 // 4 // 128 + 128 * 16 // 128,
        "its copies, by lines": (3 * 64 + 128) * 16 / 4 / 128 / 3,
    },
)

# %% [markdown]
# The rungs: offsets from a table; depth in the order of taps; three taps that
# share a copy.

# %% rungs
from cudatut.book.images.implicit_gemm import launch
from cudatut.book.images.shapes import RAGGED, Shape, reference

case = Shape(
    images, channels, height, width, filters, (rows, columns), pad=(pad, pad)
)
arrays = x_gpu, w_gpu, y_gpu
runs = {
    "offsets": launch.offsets(case, *arrays, tile=launch.WIDE),
    "taps": launch.taps(case, *arrays, tile=launch.WIDE),
    "lines": launch.lines(case, *arrays),
}
for name, run in runs.items():
    ct.poison(y_gpu)
    run()
    ct.check(y_gpu, expected, name=name, rtol=0, atol=depth * 2**-24 * most)

# %% [markdown]
# Right before fast: strides, padding and dilation beyond the image, groups, one
# pixel. Whole numbers, so the results are exact.


# %% check
def whole(shape, seed):
    rng = ct.rng(seed)
    per_group = shape.channels // shape.groups
    sizes = (
        (shape.images, shape.channels, shape.height, shape.width),
        (shape.filters, per_group, *shape.window),
    )
    return [rng.integers(-4, 5, size).astype("float32") for size in sizes]


ragged = 13
for some in RAGGED[:ragged]:
    given, weights = whole(some, 1)
    wanted = reference(some, given, weights)
    out = ct.empty(wanted.shape, "float32")
    ways = {"maps": launch.maps, "offsets": launch.offsets, "taps": launch.taps}
    for name, way in ways.items():
        run = way(some, ct.to_device(given), ct.to_device(weights), out)
        for _ in range(2):  # a second launch finds its tickets at 0
            ct.poison(out)
            run()
        name = f"{name}, {some.height} x {some.width}, groups {some.groups}"
        ct.check(out, wanted, name=name, rtol=0, atol=0)

# %% [markdown]
# The rungs, the two steps of the chapter before, and cuDNN.

# %% bench
from cudatut.book.images.im2col import launch as explicit
from cudatut.book.rivals import cudnn_conv

rounds = 20
contestants = {
    "im2col and product": explicit.convolve(case, *arrays),
    "maps": launch.maps(case, *arrays),
    **runs,
    **cudnn_conv.contestants(*arrays, pad=(pad, pad)),
}
bench = ct.bench(
    contestants,
    flops=case.flops,
    name=f"{channels} channels of {height} x {width}",
    rounds=rounds,
)

# %% [markdown]
# What the profiler counts: how many instructions a warp executes for one FMA
# instruction, which does 32 FMAs.

# %% counters
# The profiler runs this file again: its first launches are those above.
counters = ct.profile_launches(
    "images/implicit_gemm",
    kernel="regex:^(implicit_maps|convolution)",
    metrics=[
        "smsp__inst_executed.sum",
        "smsp__issue_active.avg.pct_of_peak_sustained_active",
    ],
    launches=4,
)
if counters:
    ct.table(
        "counted",
        {
            name: {
                "instructions for an FMA": executed / (case.flops / 64),
                "schedulers issue": issued,
            }
            for name, (executed, issued) in zip(
                ("maps", *runs), (one.values() for one in counters)
            )
        },
        corner="kernel",
        units={"schedulers issue": "%"},
    )

# %% [markdown]
# The same kernel without its mask: every word is read, wherever it lies. The
# images are the inner ones of an array, so no address leaves the array.

# %% no-mask
path = ct.paths.examples_dir() / "images/implicit_gemm/offsets.cu"
source = path.read_text(encoding="utf-8")
TEST = "inside ? 4 : 0"
assert source.count(TEST) == 1
several = 3
inner = Shape(several, 8, 28, 28, 16, (3, 3), pad=(1, 1))
given, weights = whole(inner._replace(images=several + 2), 2)
around = ct.to_device(given)
middle = around[1:-1]
weights_gpu = ct.to_device(weights)
wanted = reference(inner, given[1:-1], weights)
out = ct.empty(wanted.shape, "float32")
masked = launch.offsets(inner, middle, weights_gpu, out, tile=launch.WIDE)
masked()
ct.check(out, wanted, name="with the mask", rtol=0, atol=0)
name = launch.WIDE.name(True)
unmasked = ct.Kernel(source.replace(TEST, "4"), name)
masked.launched_by(unmasked)()
wrong = out.get() != wanted
at_border = np.ones((28, 28), bool)
at_border[1:-1, 1:-1] = False
ct.facts(
    "without the mask",
    {
        "wrong results": (100 * float(wrong.mean()), "%"),
        "of those at the border": (
            100 * float(wrong[..., at_border].mean()),
            "%",
        ),
        "wrong results inside": int(wrong[..., ~at_border].sum()),
    },
)
