# ---
# jupyter:
#   cudatut:
#     title: {en: "The final kernel: claims", zh: "最终的 kernel：有关说法"}
#     requires: sm_80
#     timeout_s: 60
#     alone: false
# ---

# %% [markdown]
# Two claims about a right product: what may stand past the end of the depth,
# and whether a result has to equal that of the CPU.

# %% setup
import numpy as np
import sgemm

import cudatut as ct

# %% [markdown]
# One thread per result. The depth is rounded up to 32; the words of B past its
# end are zeros, those of A what stands there.

# %% zeroed-tail
tail = ct.Kernel(
    """
__global__ void zeroed_tail(const float* A, const float* B, float* C, int m,
                            int n, int k) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
  if (column >= n) return;
  float sum = 0.0f;
  for (int i = 0; i < (k + 31) / 32 * 32; ++i) {
    const int place = row * k + i;  // past the row's end: in the next row
    const float a = place < m * k ? A[place] : 0.0f;
    const float b = i < k ? B[i * n + column] : 0.0f;
    sum += a * b;
  }
  C[row * n + column] = sum;
}
""",
    "zeroed_tail",
)
left = ct.rng(8).random((20, 40), dtype="float32")
right = ct.rng(9).random((40, 20), dtype="float32")
b = ct.to_device(right)
for bad in (0.0, np.nan):
    left[10, 3] = bad
    c = ct.empty((20, 20), "float32")
    tail(ct.to_device(left), b, c, 20, 20, 40, grid=(1, 20), block=32)
    if not bad:
        exact = left.astype("float64") @ right
        ct.check(c, exact, name="zeroed tail, finite data", rtol=1e-5)
touched = int(np.isnan(c.get()).any(axis=1).sum())
ct.facts(
    "one NaN in row 10 of A",
    {"rows of C with NaN": touched, "rows by IEEE arithmetic": 1},
)

# %% zeroed-tail-claim
ct.claim(
    id="gemm-zeroed-tail",
    source="CUDATutorial 07 (code)",
    statement={
        "en": "Past the end of the depth it does not matter which words of A "
        "a thread reads, if those of B are replaced by 0. Rows of C that one "
        "NaN in A reaches.",
        "zh": "越过深度末尾之后，只要 B 的元素换成 0，读到 A 的哪个元素都"
        "无所谓。下面是 A 中一个 NaN 影响到的 C 的行数。",
    },
    predicted=1,
    measured=touched,
    unit="rows",
    verdict="confirmed" if touched == 1 else "refuted",
)

# %% [markdown]
# The same sums in the same order as on the CPU. There each operation is
# rounded; an FMA is rounded once.

# %% exact-compare
left, right = (ct.rng(i).random((256, 256), dtype="float32") for i in (10, 11))
a, b, c = (
    ct.to_device(left),
    ct.to_device(right),
    ct.empty((256, 256), "float32"),
)
# One block for each tile, so that products are added in order of depth.
sgemm.prepare(a, b, c, config=sgemm.CONFIGS[0], splits=1)()
on_cpu = np.zeros((256, 256), "float32")
for i in range(256):
    on_cpu += left[:, i : i + 1] * right[i : i + 1]
equal = 100 * float((c.get() == on_cpu).mean())
ct.claim(
    id="gemm-exact-compare",
    source="CUDATutorial 06",
    statement={
        "en": "A product is right when each element equals that of the CPU "
        "exactly (it was tested with small whole numbers). Equal elements for "
        "random numbers in [0, 1), n = 256.",
        "zh": "每个元素都与 CPU 的结果完全相等，才算正确（原文用的是小整数）。"
        "下面是 [0, 1) 随机数、n = 256 时相等元素的比例。",
    },
    predicted=100.0,
    measured=round(equal, 1),
    unit="% equal",
    verdict="confirmed" if equal == 100 else "depends",
)
