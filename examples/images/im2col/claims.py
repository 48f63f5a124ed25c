# ---
# jupyter:
#   cudatut:
#     title: {en: "im2col and GEMM: claims", zh: "im2col 与 GEMM：说法的检验"}
#     requires: sm_80
#     timeout_s: 90
#     sizes:
#       small: [[32, 128, 28, 28, 128], [4, 8, 8, 8, 64], [32, 128, 28, 28, 128]]
# ---

# %% [markdown]
# CUDATutorial 12/02 leads from the direct convolution to a product. It says
# what the first has too much of. Here are both on the small anchor. They are
# launched before anything else, so that the profiler comes to them soon.

# %% flops
import numpy as np

import cudatut as ct
from cudatut.book.images.direct import launch as direct
from cudatut.book.images.im2col import launch
from cudatut.book.images.im2col.reference import matrix as by_numpy
from cudatut.book.images.shapes import Shape, reference
from cudatut.book.published.sgemm import sgemm

small = (32, 128, 28, 28, 128)
layer = Shape(*small, (3, 3), pad=(1, 1))
rng = ct.rng(0)
x_host = rng.integers(-4, 5, small[:4]).astype("float32")
w_host = rng.integers(-4, 5, (small[4], small[1], 3, 3)).astype("float32")
x, w = ct.to_device(x_host), ct.to_device(w_host)
y = ct.empty((small[0], small[4], *layer.out), "float32")
naive = direct.naive(layer, x, w, y)
whole = launch.convolve(layer, x, w, y)
first = reference(layer._replace(images=1), x_host[:1], w_host)
for name, run in (("direct", naive), ("im2col and product", whole)):
    ct.poison(y)
    run()
    ct.check(y[:1], first, name=f"{name}, the first image", rtol=0)
FMAS = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"
counted = ct.profile_launches(
    "images/im2col_claims", "regex:^(direct_naive|sgemm)", [FMAS], launches=2
)
theirs = ct.Kernel("images/im2col/claims.cu", "notes_im2col")
m = ct.empty(launch.extents(layer), "float32")
count = layer.images * layer.channels * layer.out[0] * layer.out[1]


def notes():
    theirs(layer.struct(), count, x, m, grid=ct.cdiv(count, 512), block=512)


ours = launch.im2col(layer, x, m)
wanted = by_numpy(layer, x_host)  # its columns are a multiple of 4
for name, run in (("theirs", notes), ("ours", ours)):
    ct.poison(m)
    run()
    ct.check(m, wanted, name=f"im2col, {name}", rtol=0)
times = ct.bench(
    {
        "direct": naive,
        "direct, again": naive,
        "im2col and product": whole,
        "im2col, theirs": notes,
        "im2col, theirs again": notes,
        "im2col, ours": ours,
    },
    name="small anchor",
    rounds=20,
)

# %% claims-flops
INTRO = "CUDATutorial 12/02"
if counted:
    direct_fmas, product_fmas = (one[FMAS] for one in counted)
    rows, columns, depth = layer.product
    ct.claim(
        id="direct-convolution-computes-more",
        source=INTRO,
        place={"en": "the first paragraph", "zh": "第一段"},
        form="said",
        statement={
            "en": "To compute a convolution directly has the drawback of much "
            "computation, which turning it into a product cures. (FMAs of the "
            "direct kernel / of the product, counted by the profiler.)",
            "zh": "直接模拟卷积的过程，缺点是计算量大，把卷积转换为矩阵乘法可以解决。（直接卷积的 "
            "FMA 次数 / 矩阵乘法的 FMA 次数，由性能分析器计数。）",
        },
        expected=1.0,
        measured=direct_fmas / product_fmas,
        rule="above",
        unit="×",
        control=(
            {
                "en": "FMAs of the product / rows × columns × depth",
                "zh": "矩阵乘法的 FMA 次数 / 行数 × 列数 × 深度",
            },
            product_fmas / (rows * columns * depth),
            (0.97, 1.03),
        ),
    )
if not ct.tool.running():
    us = {row.name: row.median_us for row in times.rows}
    ct.claim(
        id="convolution-as-a-product-is-faster",
        source=INTRO,
        place={"en": "the summary", "zh": "总结"},
        form="said",
        statement={
            "en": "As a product, a convolution makes use of what makes products "
            "fast. (Time of the direct kernel, one result a thread / of im2col "
            "and product.)",
            "zh": "把卷积变成矩阵乘法，就能利用矩阵乘法的高效实现。（每个线程一个结果的直接卷积的"
            "用时 / im2col 加矩阵乘法的用时。）",
        },
        expected=1.0,
        measured=us["direct"] / us["im2col and product"],
        rule="above",
        unit="×",
        control=(
            {
                "en": "the direct kernel beside itself",
                "zh": "直接卷积与自己相比",
            },
            us["direct"] / us["direct, again"],
            (0.97, 1.03),
        ),
    )

# %% [markdown]
# Its loops over rows, columns and depth of the product, and what it says these
# numbers are: with the second of its seven layers. Then the words of an image
# that the loops read outside of it.

# %% claims-maps
second = Shape(49, 128, 35, 35, 384, (3, 3), (2, 2))
ct.claim(
    id="implicit-gemm-depth",
    source=INTRO,
    place={"en": "section 3, after the code", "zh": "第 3 节，代码之后"},
    form="said",
    statement={
        "en": "GEMM_K is the size of the input's feature map. (Channels × height "
        "× width of the second layer of 12/03's program; measured: the depth of the product.)",
        "zh": "GEMM_K 表示输入特征图的大小。（12/03 的程序中第二个算例的通道数 × 高 × 宽；实测为乘法的深度。）",
    },
    expected=second.channels * second.height * second.width,
    measured=second.product[2],
    rule="equal",
    found="computed",
    control=(
        {
            "en": "channels × rows × columns of the window, as its code has it",
            "zh": "通道数 × 窗口的行数 × 列数，即其代码中的写法",
        },
        second.channels * second.window[0] * second.window[1],
        1152,
    ),
)


def outside(shape):
    """Words that the loops, as printed, read outside of the image."""
    (high, wide), found = shape.out, 0
    for oh, ow, fh, fw in np.ndindex(high, wide, *shape.window):
        ih = oh * shape.stride[0] - shape.pad[0] + fh
        iw = ow * shape.stride[1] - shape.pad[1] + fw
        found += not (0 <= ih < shape.height and 0 <= iw < shape.width)
    return found


padded = Shape(1, 1, 4, 4, 1, (3, 3), pad=(1, 1))
ct.claim(
    id="implicit-gemm-reads-inside",
    source=INTRO,
    place={"en": "section 3, the code", "zh": "第 3 节的代码"},
    form="code",
    statement={
        "en": "The loops subtract the padding and read x(n, ic, ih, iw) without "
        "a check. (Words that they read outside of an image of 4 × 4, window 3 × 3, padding 1.)",
        "zh": "这些循环减去填充之后，不作检查就读 x(n, ic, ih, iw)。（图像 4 × 4，窗口 3 × 3，填充 1 "
        "时读到图像之外的次数。）",
    },
    expected=0,
    measured=outside(padded),
    rule="equal",
    found="computed",
    control=(
        {"en": "without padding", "zh": "没有填充时"},
        outside(padded._replace(pad=(0, 0))),
        0,
    ),
)

# %% [markdown]
# CUDATutorial 12/03 says in which order its im2col writes, and why. Each word
# of these images is another number, so that its place can be seen.

# %% claims-order
tiny = Shape(2, 4, 6, 6, 8, (3, 3))
images = np.arange(2 * 4 * 36, dtype="float32").reshape(2, 4, 6, 6)
rows, pitch = launch.extents(tiny)  # 36 rows, 2 images of 16 places
written = ct.empty((rows, pitch), "float32")
ct.poison(written)
theirs(
    tiny.struct(), 2 * 4 * 16, ct.to_device(images), written,
    grid=1, block=512,
)  # fmt: skip
found = written.get().ravel()
matrix = by_numpy(tiny, images)  # [C, KH, KW][B, H, W]
SOURCE = "CUDATutorial 12/03"
ct.claim(
    id="im2col-order",
    source=SOURCE,
    place={"en": "section 1, before the interface", "zh": "第 1 节，接口之前"},
    form="said",
    statement={
        "en": "Its im2col writes an array [B, H', W', C, KH, KW]. (Words that are "
        "at their place in that order; its code with 2 images of 4 channels.)",
        "zh": "im2col 的输出是 [B, H', W', C, KH, KW]。（在这种次序下位于自己位置上的字数；按其"
        "代码，2 个 4 通道的图像。）",
    },
    expected=found.size,
    measured=int((found == matrix.T.ravel()).sum()),
    rule="equal",
    found="counted",
    control=(
        {
            "en": "in the order [C, KH, KW, B, H', W']",
            "zh": "按 [C, KH, KW, B, H', W'] 的次序",
        },
        int((found == matrix.ravel()).sum()),
        1152,
    ),
)
filters = ct.rng(1).integers(-4, 5, (8, 4, 3, 3)).astype("float32")
right = reference(tiny, images, filters).transpose(1, 0, 2, 3).reshape(8, -1)


def wrong(factor):
    """Results that are wrong, of a product of this factor and the matrix."""
    out = ct.empty((8, pitch), "float32")
    factor = ct.to_device(np.ascontiguousarray(factor).reshape(8, rows))
    sgemm.sgemm(factor, written, out)
    return int((out.get() != right).sum())


ct.claim(
    id="im2col-filters-transposed",
    source=SOURCE,
    place={"en": "section 2, the second box", "zh": "第 2 节，第二个提示框"},
    form="said",
    statement={
        "en": "In the order [B, C, KH, KW, H', W'] the filters would have to be "
        "transposed. (The product takes each image by itself, as it would. Wrong results of the product "
        "with filters that are not; with the matrix that its code writes.)",
        "zh": "如果次序是 [B, C, KH, KW, H', W']，卷积核就要转置。（乘法对每张图像单独进行，与之相符。不转置卷积核时"
        "乘积里错误的结果数；矩阵由其代码写出。）",
    },
    expected=right.size,
    measured=wrong(filters),
    rule="equal",
    found="counted",
    control=(
        {"en": "with filters that are transposed", "zh": "转置卷积核时"},
        wrong(filters.reshape(8, rows).T),
        256,
    ),
)

# %% [markdown]
# It says that im2col itself has not much to optimize.

# %% claims-speed
if not ct.tool.running():
    ct.claim(
        id="im2col-little-to-optimize",
        source=SOURCE,
        place={"en": "section 1, first paragraph", "zh": "第 1 节第一段"},
        form="said",
        statement={
            "en": "im2col itself has not much that needs to be optimized. (Time of "
            "its kernel / of ours, small anchor; we take 1.1 as the bound.)",
            "zh": "im2col 算子本身没有太多需要优化的地方。（它的 kernel 的用时 / 我们的用时，小基准形状；"
            "以 1.1 为界。）",
        },
        expected=1.1,
        measured=us["im2col, theirs"] / us["im2col, ours"],
        rule="below",
        unit="×",
        control=(
            {"en": "theirs beside itself", "zh": "它与自己相比"},
            us["im2col, theirs"] / us["im2col, theirs again"],
            (0.97, 1.03),
        ),
    )
