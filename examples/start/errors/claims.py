# ---
# jupyter:
#   cudatut:
#     title: {en: "Errors: a launch of other sources", zh: "错误：其他资料里的一次启动"}
#     requires: sm_75
#     alone: false
#     timeout_s: 60
# ---
# %% [markdown]
# Public notes add 50,000 elements with 10 blocks of 5000 threads. Here is that launch, and one with blocks of 256. Each
# adds the same vectors; how many elements come out right?

# %% launches
import numpy as np
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

import cudatut as ct

ct.activate()
add = SourceModule("""
__global__ void add(const float *x, const float *y, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
""").get_function("add")
n = 50_000
x, y = ct.rng(0).standard_normal((2, n), dtype="float32")
d_x, d_y = ct.to_device(x), ct.to_device(y)


def right(blocks, threads):
    """Elements that are right after this launch; before it, none is."""
    out = ct.to_device(np.full(n, np.nan, "float32"))
    try:
        shape = {"grid": (blocks, 1), "block": (threads, 1, 1)}
        add(d_x, d_y, out, np.int32(n), **shape)
        print(blocks, "x", threads, "-> no error")
    except cuda.Error as error:
        print(blocks, "x", threads, "->", error)
    return int((out.get() == x + y).sum())


of_notes, of_256 = right(10, 5000), right(196, 256)

# %% claim-launch
ct.claim(
    id="ten-blocks-of-5000",
    source="CS179 notes",
    place={
        "en": "section with the simple example, all four programs",
        "zh": "“简单的例子”一节，四个程序都是这样",
    },
    form="code",
    statement={
        "en": "The programs add 50,000 elements with vectorAdd<<<10, 5000>>>. "
        "Elements that come out right:",
        "zh": "程序用 vectorAdd<<<10, 5000>>> 把 50,000 个元素相加。算对的元素：",
    },
    expected=n,
    measured=of_notes,
    rule="equal",
    found="counted",
    control=(
        {"en": "196 blocks of 256", "zh": "196 个线程块，每块 256 个"},
        of_256,
        50_000,
    ),
)
