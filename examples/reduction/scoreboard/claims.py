# ---
# jupyter:
#   cudatut:
#     title: {en: "The scoreboard of sums: claims", zh: "求和排行榜：有关说法"}
#     requires: sm_75
#     timeout_s: 60
#     alone: false
#     sizes: {width: [1024, 32]}
# ---

# %% [markdown]
# A tolerance from slides, on the product that they check with it: 1024 x 1024
# numbers in [0, 1). Every element is a sum of 1024 products. First by the loop
# of the CPU, then by a kernel that adds in the same order, or in two halves.

# %% tolerance-claim
import numpy as np
import cudatut as ct

width = 1024
a, b = (ct.rng(k).random((width, width), dtype="float32") for k in (1, 2))
by_cpu = np.zeros((width, width), "float32")
for k in range(width):
    by_cpu += a[:, k : k + 1] * b[k]

PRODUCT = """
// Of each sum the terms up to `last`, in `parts` parts.
__global__ void product(const float* a, const float* b, float* c, int width,
                        int last, int parts) {
  const int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y;
  const long long first = (long long)row * width;  // of this row
  float sum = 0;
  for (int part = 0; part < parts; ++part) {
    float of_part = 0;
    for (int k = part * last / parts; k < (part + 1) * last / parts; ++k)
      of_part += a[first + k] * b[(long long)k * width + column];
    sum += of_part;
  }
  c[first + column] = sum;
}
"""
product = ct.Kernel(PRODUCT, "product")
on_gpu = [ct.to_device(matrix) for matrix in (a, b)]


def refused(last=width, parts=1):
    """How many elements differ by more than 1e-4 from the CPU's."""
    c = ct.empty((width, width), "float32")
    grid = width // 32, width
    product(*on_gpu, c, width, last, parts, grid=grid, block=32)
    if last == width:  # right, within what float32 can promise
        exact, bound = a.astype("float64") @ b, width * 2.0**-23
        ct.check(c, exact, name=f"{parts} part(s)", rtol=bound, atol=0)
    return int((np.abs(by_cpu - c.get()) > 1e-4).sum())


ct.claim(
    id="product-absolute-tolerance",
    source="CUDA slides 2.3",
    place={
        "en": "the comment at the comparison of two matrices, utils.cpp",
        "zh": "utils.cpp 里比较两个矩阵处的注释",
    },
    form="said",
    statement={
        "en": "Between CPU and GPU, an error within 1e-4 is generally "
        "acceptable (its test refuses what differs by more). Elements of a "
        "right product, of 1,048,576, that differ by more:",
        "zh": "CPU 与 GPU 的结果相差在 1e-4 之内，一般可以接受（它的检验拒绝相差更多的）。正确的乘积中"
        "（共 1,048,576 个元素）相差更多的有几个：",
    },
    expected=0,
    depends={
        "en": "the order of the additions, and the size of the sums",
        "zh": "加法的次序，以及和有多大",
    },
    sides=(
        (
            {
                "en": "the kernel adds as the CPU does",
                "zh": "kernel 按 CPU 的次序加",
            },
            refused(),
        ),
        (
            {"en": "the kernel adds two halves", "zh": "kernel 分两半加"},
            refused(parts=2),
        ),
    ),
    rule="equal",
    found="counted",
    control=(
        {
            "en": "a wrong product, the last term left out: the test has to "
            "refuse elements of it",
            "zh": "错误的乘积，漏了最后一项：检验必须拒绝其中的元素",
        },
        refused(last=width - 1),
        (1, width * width),
    ),
)
