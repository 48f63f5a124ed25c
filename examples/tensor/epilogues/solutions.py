# ---
# jupyter:
#   cudatut:
#     title: {en: "Epilogues: solutions", zh: "尾声运算：参考答案"}
#     requires: sm_80
# ---

# %% [markdown]
# Which sums a thread has, and a gate of pairs.

# %% given-1
import numpy as np


# %% solution-1
def places(t, size):
    """Rows and columns of a thread's sums in a tile of 64 rows."""
    warp, lane = t // 32, t % 32
    rows = [warp * 16 + lane // 4 + i // 2 % 2 * 8 for i in range(size)]
    columns = [i // 4 * 8 + lane % 4 * 2 + i % 2 for i in range(size)]
    return rows, columns


# %% check-1
import cudatut as ct

# As the instruction has it: `sum[4 j], sum[4 j + 1]` in row g, the two after
# them in row g + 8, columns 8 j + 2 t and + 1, with lane = 4 g + t.
for columns_1 in (64, 256):
    size_1 = columns_1 // 2
    owner = np.full((64, columns_1, 2), -1)
    for warp_1 in range(4):
        for g_1 in range(8):
            for t_1 in range(4):
                for i_1 in range(size_1):
                    high = i_1 % 4 // 2
                    at = i_1 // 4 * 8 + 2 * t_1 + i_1 % 2
                    thread = warp_1 * 32 + g_1 * 4 + t_1
                    owner[warp_1 * 16 + g_1 + 8 * high, at] = thread, i_1
    got = np.full_like(owner, -1)
    for thread in range(128):
        rows_1, at_1 = places(thread, size_1)
        for i_1 in range(size_1):
            got[rows_1[i_1], at_1[i_1]] = thread, i_1
    ct.check(
        got.astype("float64"),
        owner.astype("float64"),
        name=f"row and column, a tile of {columns_1} columns",
        rtol=0,
    )

# %% given-2
import numpy as np

# %% solution-2
SOURCE = """
#include <cuda_bf16.h>

extern "C" __global__ void gate_pairs(const __nv_bfloat162 *C,
                                      __nv_bfloat16 *out, int pairs) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= pairs) return;
  const float2 pair = __bfloat1622float2(C[i]);
  const float silu = pair.x / (1.0f + __expf(-pair.x));
  out[i] = __float2bfloat16_rn(silu * pair.y);
}
"""

# %% check-2
import cudatut as ct

from cudatut.book.numbers import bf16

kernel = ct.Kernel(SOURCE, "gate_pairs")
for m_2, n_2 in ((1, 1), (7, 33), (300, 1000)):
    numbers = ct.rng(n_2).standard_normal((m_2, 2 * n_2), dtype="float32")
    c_2 = bf16.to_bf16(4 * numbers)
    gate, value = (
        bf16.to_float(c_2[:, side_2::2]).astype("float64") for side_2 in (0, 1)
    )
    out_2 = ct.empty((m_2, n_2), "uint16")
    kernel(
        ct.to_device(c_2).view("uint32"),
        out_2,
        m_2 * n_2,
        grid=ct.cdiv(m_2 * n_2, 256),
        block=256,
    )
    ct.check(
        bf16.to_float(out_2.get()),
        gate / (1 + np.exp(-gate)) * value,
        name=f"{m_2} x {n_2}",
        rtol=2.0**-8,
        atol=1e-5,
    )

# %% [markdown]
# What the gate saves where the product's epilogue does it, in bytes.

# %% saved-2
m_2, n_2 = 8192, 14336
separate = 2 * m_2 * n_2 * (2 + 2 + 1)  # C written and read, out written
fused = 2 * m_2 * n_2
ct.table(
    f"gate, {m_2} x {n_2}",
    {
        "by a kernel of its own": {"bytes": separate / 1e6},
        "in the epilogue": {"bytes": fused / 1e6},
    },
    corner="where",
    units={"bytes": "MB"},
)
