# ---
# jupyter:
#   cudatut:
#     title: {en: "CUTLASS's convolution", zh: "CUTLASS 的卷积"}
#     requires: sm_90a
#     timeout_s: 300
#     sizes:
#       rounds: [25, 1]
#       most: [1_000_000_000, 1]
# ---

# %% [markdown]
# CUTLASS's convolution for Hopper, from Python. First one convolution as a
# whole program: it is compiled where it is not kept, and called by ctypes.

# %% program
import numpy as np

import cudatut as ct
from cudatut.book.images.cutlass_conv import conv
from cudatut.book.images.implicit_gemm.shapes import Shape, reference
from cudatut.book.numbers.bf16 import to_bf16, to_float

shape = Shape(2, 16, 9, 11, 24, (3, 3), pad=(1, 1))
images = to_bf16(ct.rng(1).standard_normal((2, 9, 11, 16)))
weights = to_bf16(ct.rng(2).standard_normal((24, 3, 3, 16)))
results = ct.empty((2, *shape.out, 24), "uint16")
tile = conv.Tile(pixels=128, filters=128, step=64, down=1, across=1)
run = conv.prepare(
    shape, ct.to_device(images), ct.to_device(weights), results, (tile,)
)
if run:  # False where CUTLASS is missing, None under a sanitizer
    run()
    exact = reference(
        shape,
        to_float(images).transpose(0, 3, 1, 2),
        to_float(weights).transpose(0, 3, 1, 2),
    ).transpose(0, 2, 3, 1)
    found = to_float(results.get())
    ct.check(found, exact, name="CUTLASS", rtol=2**-8, atol=1e-4)
    print("results:", found.shape)
elif run is not None:
    print("without CUTLASS:", run.reason)

# %% [markdown]
# What nvcc said of the two libraries of this chapter, and what the builder
# chose for them.

# %% chosen
WIDE = conv.Tile(64, 256, 64, 2, 1)
TILES = {"128 x 128": tile, "64 x 256": WIDE}
able = not ct.tool.running()
if able:
    conv.libraries(tuple(TILES.values()))  # side by side
    rows = {}
    for name, one in TILES.items():
        said = conv.report(one)
        sides = (
            said[f"wgmma, {side}"] for side in ("rows", "columns", "depth")
        )
        rows[name] = {
            "compiled in": said["compiled in"],
            "registers": said["registers"],
            "stages": said["stages"],
            "threads of a block": said["threads of a block"],
            "shared memory": said["shared memory"],
            "of it the epilogue's": said["shared memory of the epilogue"],
            "wgmma": " x ".join(map(str, sides)),
            "blocks of a cluster": said["blocks of a cluster"],
        }
    memory = dict.fromkeys(("shared memory", "of it the epilogue's"), "B")
    ct.table(
        "two tiles", rows, corner="tile", units={"compiled in": "s", **memory}
    )

# %% [markdown]
# Which convolutions it takes, and why not: CUTLASS is asked, and so is our
# launcher.

# %% refused
from cudatut.book.images.implicit_gemm import im2col

ASKED = {
    "3 channels": Shape(32, 3, 224, 224, 64, (7, 7), (2, 2), (3, 3)),
    "8 channels": Shape(32, 8, 224, 224, 64, (7, 7), (2, 2), (3, 3)),
    "12 filters": Shape(32, 64, 28, 28, 12, (3, 3), pad=(1, 1)),
    "two groups": Shape(32, 64, 28, 28, 64, (3, 3), pad=(1, 1), groups=2),
    "stride 8": Shape(1, 64, 99, 99, 64, (3, 3), (8, 8)),
    "stride 9": Shape(1, 64, 99, 99, 64, (3, 3), (9, 9)),
    "dilation 64": Shape(1, 64, 400, 400, 64, (3, 3), dilation=(64, 64)),
    "dilation 65": Shape(1, 64, 400, 400, 64, (3, 3), dilation=(65, 65)),
    "dilation beyond the image": Shape(
        1, 8, 8, 8, 8, (3, 3), pad=(36, 36), dilation=(36, 36)
    ),
    "one pixel": Shape(1, 8, 1, 1, 8, (1, 1)),
}
if able:
    rows = {}
    for name, one in ASKED.items():
        rows[name] = {
            "CUTLASS": conv.refused(tile, one) or "taken",
            "the im2col mode": im2col.refused(one) or "taken",
        }
    ct.table("what is taken", rows, corner="convolution")

# %% gpu
ct.facts("this GPU", {"SMs": ct.device().sm_count})

# %% [markdown]
# How many tiles, in how many turns on all SMs, and how much of the work in
# these turns is asked for.

# %% predict
SMALL = Shape(32, 128, 28, 28, 128, (3, 3), pad=(1, 1))
LARGE = Shape(64, 256, 56, 56, 256, (3, 3), pad=(1, 1))
DILATED = Shape(8, 2048, 65, 65, 256, (3, 3), pad=(36, 36), dilation=(36, 36))
sms = ct.device().sm_count


def turns(shape, pixels, filters):
    """Tiles, turns in which each SM has one of them, and the share of the
    products in these turns that are wanted."""
    n, m, _ = shape.product
    count = ct.cdiv(m, pixels) * ct.cdiv(n, filters)
    turns = ct.cdiv(count, sms)
    return {
        "tiles": count,
        "turns": turns,
        "wanted": 100 * n * m / (turns * sms * pixels * filters),
    }


ct.table(
    f"tiles on {sms} SMs",
    {
        f"{name}, {pixels} x {filters}": turns(one, pixels, filters)
        for name, one in (
            ("small anchor", SMALL),
            ("large anchor", LARGE),
            ("dilated", DILATED),
        )
        for pixels, filters in ((128, 128), (64, 256), (128, 256))
    },
    corner="convolution and tile",
    units={"wanted": "%"},
)

# %% [markdown]
# Right before fast: strides, dilation, windows of one row or column, sizes
# that fit no tile. Some results of each are computed again in fp64.

# %% check
from cudatut.book.images.implicit_gemm import launch
from cudatut.book.images.implicit_gemm.shapes import RAGGED

most = 1_000_000_000  # products that NumPy may compute
TAKEN = [
    one
    for one in RAGGED
    if one.groups == 1 and not im2col.refused(one) and one.flops // 2 <= most
]


def arrays(shape, seed=0):
    """Images, weights and results on the GPU; the same in fp32 for NumPy."""
    n, c, h, w = shape[:4]
    host = [
        to_bf16(ct.rng(seed).standard_normal((n, h, w, c), dtype="float32")),
        to_bf16(
            ct.rng(seed + 1).standard_normal(
                (shape.filters, *shape.window, c), dtype="float32"
            )
        ),
    ]
    results = ct.empty((n, *shape.out, shape.filters), "uint16")
    return (*map(ct.to_device, host), results), host


for one in TAKEN if able else []:
    (x, w, y), host = arrays(one)
    exact = reference(
        one, *(to_float(a).transpose(0, 3, 1, 2) for a in host)
    ).transpose(0, 2, 3, 1)
    for name, made in TILES.items():
        ct.poison(y)
        conv.Made(made, one, x, w, y)()
        name = f"{name}, {one.product}"
        ct.check(to_float(y.get()), exact, name=name, rtol=2**-8, atol=1e-3)

# %% [markdown]
# The two anchors: ours, CUTLASS and cuDNN take turns, on the same arrays.

# %% contest
from cudatut.book.rivals import cudnn_conv

rounds = 25


chosen = {}  # the tile that our launcher chose


def contest(shape, name, tiles=TILES):
    """A benchmark of ours, CUTLASS's tiles, and cuDNN."""
    (x, w, y), _ = arrays(shape)
    rest = shape.stride, shape.pad, shape.dilation, shape.groups
    own = launch.bf16(shape, x, w, y)
    boxes = getattr(own, "boxes", None)
    chosen[name] = f"{boxes.consumers * 64} x {boxes.bn}" if boxes else "none"
    runs = {
        "ours": own,
        **{
            f"CUTLASS, {one}": conv.prepare(shape, x, w, y, (made,))
            for one, made in tiles.items()
        },
        "cuDNN": cudnn_conv.contestants(x, w, y, *rest)["cuDNN"],
    }
    return ct.bench(
        runs, flops=shape.flops, name=name, rounds=rounds, limit=False
    )


# %% anchors
if able:
    small = contest(SMALL, "small anchor")
    large = contest(LARGE, "large anchor")

# %% [markdown]
# Other shapes, from published networks.

# %% shapes
SHAPES = {
    "1 x 1, 256 to 64 channels": Shape(32, 256, 56, 56, 64, (1, 1)),
    "1 x 1, 512 to 2048": Shape(32, 512, 7, 7, 2048, (1, 1)),
    "3 x 3, stride 2": Shape(32, 256, 56, 56, 256, (3, 3), (2, 2), (1, 1)),
    "3 x 3, 32 channels": Shape(32, 32, 208, 208, 64, (3, 3), pad=(1, 1)),
    "1 x 7": Shape(32, 128, 17, 17, 128, (1, 7), pad=(0, 3)),
    "dilation 36": DILATED,
}
by_shape = {}
if able:
    by_shape = {name: contest(one, name) for name, one in SHAPES.items()}

# %% by-shape
if able:
    NAMES = "CUTLASS, 128 x 128", "CUTLASS, 64 x 256"
    rows = {}
    for name, one in {
        "small anchor": small,
        "large anchor": large,
        **by_shape,
    }.items():
        best = min(NAMES, key=lambda row: one[row].median_us)
        rows[name] = {
            "ours": one["ours"].value,
            "CUTLASS": one[best].value,
            "cuDNN": one["cuDNN"].value,
            "CUTLASS / cuDNN": one.ratio(best, "cuDNN").median,
            "CUTLASS / ours": one.ratio(best, "ours").median,
            "tile": best.removeprefix("CUTLASS, "),
            "our tile": chosen[name],
        }
    ct.table(
        "the faster of two tiles",
        rows,
        corner="convolution",
        units=dict.fromkeys(("ours", "CUTLASS", "cuDNN"), "TFLOP/s"),
    )

# %% [markdown]
# A block of CUTLASS's kernel makes one tile and ends; the next one begins anew.
# What does that cost? The same tiles, with few and with many steps.

# %% depth
DEPTHS = (64, 128, 256, 512, 1024, 2048)
if able:
    lines = {"ours": [], "CUTLASS": []}
    ONE = {"128 x 128": tile}
    for depth in DEPTHS:
        one = Shape(64, depth, 28, 28, 128, (1, 1))
        (x, w, y), _ = arrays(one)
        found = ct.bench(
            {
                "ours": launch.bf16(one, x, w, y),
                "CUTLASS": conv.prepare(one, x, w, y, (tile,)),
            },
            flops=one.flops,
            name=f"{depth} channels",
            rounds=rounds,
            limit=False,
        )
        for name, line in lines.items():
            line.append((depth, found[name].median_us))
    ct.series(
        "1 x 1, 128 filters, 50,176 pixels",
        x=("channels", ""),
        y=("time", "us"),
        lines=lines,
    )

# %% fixed
if able:
    # A straight line through the deeper ones: what is left without depth?
    ct.facts(
        "time without depth",
        {
            name: (
                float(np.polyfit(*np.array(line[2:], float).T, 1)[1]),
                "us",
            )
            for name, line in lines.items()
        },
    )

# %% [markdown]
# Three channels, padded to eight: what the padding costs, and what it brings.

# %% padded
pad_channels = ct.Kernel(
    """
extern "C" __global__ void pad_channels(const unsigned short* in,
                                        unsigned short* out, int pixels) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= pixels) return;
  const unsigned short* const at = in + 3LL * i;
  ((uint4*)out)[i] = {at[0] | unsigned(at[1]) << 16, at[2], 0, 0};
}
""",
    "pad_channels",
)
first = Shape(32, 3, 224, 224, 64, (7, 7), (2, 2), (3, 3))
eight = first._replace(channels=8)
(x, w, y), host = arrays(first)
pixels = first.images * first.height * first.width
padded = ct.empty((*x.shape[:3], 8), "uint16")


def pad():
    pad_channels(x, padded, pixels, grid=ct.cdiv(pixels, 256), block=256)


pad()
ct.check(padded[0].get()[..., :3], host[0][0], name="padded", rtol=0)
wide = np.zeros((64, 7, 7, 8), "uint16")
wide[..., :3] = host[1]
if able:
    by_cutlass = conv.prepare(eight, padded, ct.to_device(wide), y, (tile,))

    def both():
        pad()
        by_cutlass()

    of_first = ct.bench(
        {
            "padded, then CUTLASS": both if by_cutlass else by_cutlass,
            "CUTLASS alone": by_cutlass,
            "cuDNN": cudnn_conv.contestants(x, w, y, first.stride, first.pad)[
                "cuDNN"
            ],
        },
        flops=first.flops,
        name="ResNet-50's first layer, bf16",
        rounds=rounds,
        limit=False,
    )
