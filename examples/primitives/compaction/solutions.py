# ---
# jupyter:
#   cudatut:
#     title: {en: "Compaction and partition: solutions", zh: "压缩与划分：参考答案"}
#     requires: sm_75
#     timeout_s: 60
# ---

# %% [markdown]
# Rows of a warp by a ballot; one of each run of equal numbers; and a partition
# that keeps the order of both parts, which is a step of a radix sort.

# %% given-1
import numpy as np
import cudatut as ct

# %% solution-1
compact_rows = ct.Kernel(
    """
__global__ void compact_rows(const float* in, float* out, int* counts,
                             int rows) {
  const int row = (blockIdx.x * 128 + threadIdx.x) / 32;
  const int lane = threadIdx.x % 32;
  if (row >= rows) return;  // the whole warp
  const float x = in[row * 32 + lane];
  const unsigned kept = __ballot_sync(0xffffffffu, x > 0);
  const int before = __popc(kept & ((1u << lane) - 1));
  if (x > 0) out[row * 32 + before] = x;
  if (lane == 0) counts[row] = __popc(kept);
}
""",
    "compact_rows",
)

# %% check-1
import cudatut as ct

for rows in (1, 3, 5, 1_111):
    x = ct.rng(rows).standard_normal((rows, 32), dtype="float32")
    x[rows // 2] = -1  # a row of which nothing stays
    out, counts = ct.to_device(np.full_like(x, np.nan)), ct.empty(rows, "int32")
    ct.poison(counts)
    grid = ct.cdiv(rows, 4)
    compact_rows(ct.to_device(x), out, counts, rows, grid=grid, block=128)
    ct.check(counts, (x > 0).sum(axis=1), name=f"{rows} rows: counts", rtol=0)
    got = out.get()
    for r in (0, rows // 3, rows - 1):
        own = x[r][x[r] > 0]
        if own.size:
            ct.check(got[r][: own.size], own, name=f"row {r}", rtol=0, atol=0)
        rest = np.isnan(got[r][own.size :])
        ct.check([rest.sum()], [32 - own.size], name="left alone", rtol=0)

# %% given-2
import numpy as np
import cudatut as ct
from cudatut.book.primitives.compaction.compactions import Compaction

# %% solution-2
heads = ct.Kernel(
    """
__global__ void heads(const int* in, unsigned char* flags, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) flags[i] = i == 0 || in[i] != in[i - 1];
}
""",
    "heads",
)

# %% check-2
import cudatut as ct

for n in ct.RAGGED:
    x = ct.rng(n).integers(0, 3, n).astype("int32")
    first = np.concatenate([[True], x[1:] != x[:-1]])
    data, flags = ct.to_device(x), ct.empty(n, "uint8")
    ct.poison(flags)
    heads(data, flags, n, grid=ct.cdiv(n, 256), block=256)
    ct.check(flags, first.astype("uint8"), name=f"n={n}: flags", rtol=0)
    out, count = ct.empty(n, "int32"), ct.empty(1, "int64")
    Compaction(n, "int32", flags=True)(data, out, count, flags)
    ct.check(count, [first.sum()], name=f"n={n}: runs", rtol=0)
    ct.check(out[: int(first.sum())], x[first], name=f"n={n}", rtol=0)

# %% given-3
import numpy as np
import cudatut as ct
from cudatut.book.primitives.scan.scans import Scan

# %% solution-3
split = ct.Kernel(
    """
__global__ void split(const unsigned* keys, const int* before, unsigned* out,
                      int zeros, int bit, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= n) return;
  const unsigned key = keys[i];
  // Of the i keys before this one, i - before[i] have a 1.
  const bool one = key >> bit & 1;
  out[one ? zeros + i - before[i] : before[i]] = key;
}
""",
    "split",
)

# %% check-3
import cudatut as ct

for n in ct.RAGGED:
    x = ct.rng(n).integers(0, 1 << 32, n, dtype="uint32")
    scan = Scan("look_back", n, "int32", exclusive=True)
    expected = x
    for bit in range(8):
        zero = (expected >> bit & 1) == 0
        keys, out = ct.to_device(expected), ct.empty(n, "uint32")
        before = ct.empty(n, "int32")
        scan(ct.to_device(zero.astype("int32")), before)
        ct.poison(out)
        split(
            keys, before, out, int(zero.sum()), bit, n,
            grid=ct.cdiv(n, 256), block=256,
        )  # fmt: skip
        expected = np.concatenate([expected[zero], expected[~zero]])
        ct.check(out, expected, name=f"n={n}, bit {bit}", rtol=0)
    low = out.get() & 255
    ct.check([np.sum(low[1:] < low[:-1])], [0], name="not sorted", rtol=0)
