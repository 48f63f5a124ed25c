# ---
# jupyter:
#   cudatut:
#     title: {en: "Scoreboard of convolutions: depthwise layers", zh: "卷积排行榜：逐通道卷积"}
#     requires: sm_90
#     timeout_s: 200
#     sizes:
#       most_pixels: [4_096, 20]
#       most_images: [4_096, 2]
#       rounds: [20, 1]
# ---

# %% [markdown]
# Depthwise layers of three networks, beside cuDNN, PyTorch and a copy of as
# many bytes.

# %% layers
import cudatut as ct
from cudatut.book.images.depthwise import launch
from cudatut.book.images.implicit_gemm import launch as implicit
from cudatut.book.images.scoreboard import choose, shapes
from cudatut.book.images.scoreboard.field import Field
from cudatut.book.images.shapes import Shape

most_pixels = 4_096
most_images = 4_096
rounds = 20
LAYERS = {
    "3 x 3, 112 pixels": ("MobileNetV2", "features.1.depthwise"),
    "3 x 3, 14 pixels": ("MobileNetV2", "features.8.depthwise"),
    "5 x 5, stride 2": ("EfficientNet-B0", "features.3.0.depthwise"),
    "5 x 5, 7 pixels": ("EfficientNet-B0", "features.6.1.depthwise"),
    "7 x 7, 56 pixels": ("ConvNeXt-T", "features.1.0.depthwise"),
    "7 x 7, 7 pixels": ("ConvNeXt-T", "features.7.0.depthwise"),
}
cases = {
    name: shapes.shrunk(shapes.named(*layer, 32), most_pixels, most_images)
    for name, layer in LAYERS.items()
}
ct.compile_ahead(choose.instances(launch.FOLDER))

# %% [markdown]
# The launch by hand: a thread for each strip of seven rows and four columns.

# %% launch
one = Shape(2, 5, 30, 32, 5, (3, 3), pad=(1, 1), groups=5)
x = ct.rng(1).standard_normal((2, 5, 30, 32), dtype="float32")
w = ct.rng(2).standard_normal((5, 1, 3, 3), dtype="float32")
y = ct.empty((2, 5, 30, 32), "float32")
ct.poison(y)
kernel = ct.Kernel("images/depthwise/planes.cu", "planes<3,1,4,7,2,4>")
segments, bands = 32 // 4, ct.cdiv(30, 7)
threads = 2 * 5 * bands * segments
kernel(
    one.struct(), segments, bands, threads,
    ct.to_device(x), ct.to_device(w), y,
    grid=ct.cdiv(threads, 128), block=128,
)  # fmt: skip
from cudatut.book.images.shapes import reference

ct.check(y, reference(one, x, w), name="launched by hand", atol=1e-5)


# %% race
def copy(field, case):
    """The driver's copy of half of the bytes that must move."""
    x, _, y = field.arrays(case)
    count = (x.nbytes + y.nbytes) // 2
    a, b = (ct.empty(count, "uint8") for _ in range(2))
    return ct.vendor.copy(b, a)


times = {}
for kind in choose.WAYS:
    field = Field(kind, [*cases.values()])
    for name, case in cases.items():
        arrays = field.arrays(case)
        runs = field.contest(case)
        general = implicit.offsets if kind == "fp32" else implicit.bf16
        runs["implicit GEMM"] = general(Shape(*case.numbers), *arrays)
        ct.poison(arrays[2])
        runs["ours"]()
        field.check(case)
        times[name, kind] = ct.bench(
            {**runs, "copy": copy(field, case)},
            bytes=arrays[0].nbytes + arrays[2].nbytes,
            name=f"{name}, {kind}",
            rounds=rounds,
            limit=False,
        )
    del field

# %% table
if not ct.tool.running():
    ct.table(
        "depthwise layers, times as fast",
        {
            f"{name}, {kind}": {
                f"as {rival}": one.ratio("ours", rival).median
                for rival in ("cuDNN", "PyTorch", "implicit GEMM", "copy")
                if any(row.name == rival for row in one.rows)
            }
            for (name, kind), one in times.items()
        },
        corner="layer",
    )

# %% goals
BOUND = "3 x 3, 112 pixels"
if not ct.tool.running() and any(
    row.name == "cuDNN" for row in times[BOUND, "fp32"].rows
):
    ct.goals(
        "depthwise",
        {
            f"{name}, {kind} / {rival}": times[name, kind].goal(
                "ours", rival, wanted
            )
            for kind in choose.WAYS
            for name, rival, wanted in (
                (BOUND, "copy", 0.9),
                (BOUND, "cuDNN", 1.0),
                ("7 x 7, 56 pixels", "cuDNN", 1.0),
            )
        },
    )
