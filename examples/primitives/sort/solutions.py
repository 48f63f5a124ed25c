# ---
# jupyter:
#   cudatut:
#     title: {en: "Radix sort: solutions", zh: "基数排序：参考答案"}
#     requires: sm_75
#     timeout_s: 60
# ---

# %% [markdown]
# Keys in falling order; ranks by two ballots; and bytes that are sorted by
# their counts alone.

# %% given-1
import numpy as np
import cudatut as ct
from cudatut.book.primitives.sort.sort import Sweep

# %% solution-1
turn = ct.Kernel(
    """
__global__ void turn(const int* keys, unsigned* turned, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  // The sign makes unsigned order of signed order; ~ turns it round.
  if (i < n) turned[i] = ~((unsigned)keys[i] ^ 0x80000000u);
}
""",
    "turn",
)

# %% check-1
import cudatut as ct

for n in ct.RAGGED:
    x = ct.rng(n).integers(-(1 << 31), 1 << 31, n).astype("int32")
    keys, turned = ct.to_device(x), ct.empty(n, "uint32")
    ct.poison(turned)
    turn(keys, turned, n, grid=ct.cdiv(n, 256), block=256)
    numbers = ~(x.view("uint32") ^ np.uint32(1 << 31))
    ct.check(turned, numbers, name=f"n={n}: numbers", rtol=0)
    out, falling = ct.empty(n, "uint32"), ct.empty(n, "int32")
    Sweep("uint32", pairs=True)(turned, out, keys, falling)
    ct.check(falling, np.sort(x)[::-1], name=f"n={n}", rtol=0)

# %% given-2
import numpy as np
import cudatut as ct

# %% solution-2
rank_warp = ct.Kernel(
    """
__global__ void rank_warp(const int* digits, int* ranks, int n) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i >= n) return;  // the whole warp
  const int digit = digits[i];
  const unsigned low = __ballot_sync(0xffffffffu, digit & 1);
  const unsigned high = __ballot_sync(0xffffffffu, digit & 2);
  const unsigned same_high = digit & 2 ? high : ~high;
  const unsigned same = same_high & (digit & 1 ? low : ~low);
  unsigned smaller = digit & 2 ? ~high : 0;
  if (digit & 1) smaller |= same_high & ~low;
  const unsigned below = (1u << threadIdx.x % 32) - 1;
  ranks[i] = __popc(smaller) + __popc(same & below);
}
""",
    "rank_warp",
)

# %% check-2
import cudatut as ct

for warps in (1, 3, 4, 33):
    digits = ct.rng(warps).integers(0, 4, (warps, 32)).astype("int32")
    digits[warps // 2] = 3  # a warp of equal digits
    order = np.argsort(digits, axis=1, kind="stable")
    expected = np.argsort(order, axis=1).astype("int32")
    n, ranks = digits.size, ct.empty(digits.shape, "int32")
    ct.poison(ranks)
    grid = ct.cdiv(n, 128)
    rank_warp(ct.to_device(digits), ranks, n, grid=grid, block=128)
    ct.check(ranks, expected, name=f"{warps} warps", rtol=0)

# %% given-3
import numpy as np
import cudatut as ct

# %% solution-3
fill = ct.Kernel(
    """
__global__ void fill(const int* starts, unsigned char* out, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= n) return;
  int value = 0;
  for (int half = 128; half > 0; half /= 2)
    if (starts[value + half] <= i) value += half;
  out[i] = value;
}
""",
    "fill",
)

# %% check-3
import cudatut as ct

for n in ct.RAGGED:
    x = ct.rng(n).integers(0, 200, n, dtype="uint8")
    counts = np.bincount(x, minlength=256)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype("int32")
    out = ct.empty(n, "uint8")
    ct.poison(out)
    fill(ct.to_device(starts), out, n, grid=ct.cdiv(n, 256), block=256)
    ct.check(out, np.sort(x), name=f"n={n}", rtol=0)
