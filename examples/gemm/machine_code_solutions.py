# ---
# jupyter:
#   cudatut:
#     title: {en: "Machine code: solutions", zh: "机器码：参考答案"}
#     requires: sm_80
#     timeout_s: 120
# ---

# %% [markdown]
# A kernel whose share of FMAs is chosen, and how far ahead of its use a load is issued.

# %% setup
import loops
import numpy as np
from ladder import LADDER

import cudatut as ct
from cudatut import tool

gpu = ct.device()
CHAINS, STEPS = 16, ct.size(2048, 8)

# %% solution-1
MIX = """
// CHAINS independent FMAs a turn, and OTHERS that turn a word: neither waits for the other.
__global__ void mix(float* out, int n, int steps, float a, float b) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  float v[CHAINS];
  unsigned word[OTHERS + 1];
#pragma unroll
  for (int i = 0; i < CHAINS; ++i) v[i] = i;
#pragma unroll
  for (int i = 0; i <= OTHERS; ++i) word[i] = t + i;
#pragma unroll 1
  for (int s = 0; s < steps; ++s) {
#pragma unroll
    for (int i = 0; i < CHAINS; ++i) {
      v[i] = v[i] * a + b;
      if (i < OTHERS) word[i] = word[i] ^ (s | i);
    }
  }
  float sum = 0.0f;
  unsigned bits = 0;
#pragma unroll
  for (int i = 0; i < CHAINS; ++i) sum += v[i];
#pragma unroll
  for (int i = 0; i < OTHERS; ++i) bits |= word[i];
  if (t < n) out[t] = bits == 0xffffffffu ? 0.0f : sum;  // never so many bits: only to need them
}
"""
threads, a, b = (
    gpu.sm_count * ct.size(8, 1) * 256,
    np.float32(0.5),
    np.float32(1.0),
)
out, runs, shares = ct.empty(threads, "float32"), {}, {}
values = np.arange(CHAINS, dtype="float64")
for _ in range(STEPS):
    values = values * a + b
for others in (0, 4, 8):
    kernel = ct.Kernel(MIX, "mix", defines={"CHAINS": CHAINS, "OTHERS": others})

    def run(kernel=kernel):
        kernel(out, threads, STEPS, a, b, grid=threads // 256, block=256)

    ct.poison(out)
    run()
    ct.check(
        out, np.full(threads, values.sum()), name=f"{others} others", rtol=1e-5
    )
    runs[f"{others} others"] = run
    if not tool.running():
        shares[f"{others} others"] = loops.share(
            loops.main_turn(loops.disassemble(kernel), fmas=CHAINS)
        )

# %% rates
peak = gpu.sm_count * 4 * 32 * 2 * ct.attributes()["CLOCK_RATE"] / 1e9
ct.facts(
    "predicted from the code",
    {name: (share * peak, "TFLOP/s") for name, share in shares.items()},
)
rates = ct.bench(
    runs,
    flops=2 * CHAINS * STEPS * threads,
    name="FMAs among others",
    rounds=20,
)


# %% solution-2
def distances(turn):
    """From each load that sets a scoreboard, the instructions issued until one waits for that board."""
    found, way = [], [i for i, times in turn for _ in range(times)]
    for place, load in enumerate(way):
        if load.op == "LDS" and load.sets is not None:
            behind = way[place + 1 :] + way[: place + 1]  # the loop goes round
            found.append(
                next(
                    (
                        d
                        for d, i in enumerate(behind, 1)
                        if load.sets in i.waits
                    ),
                    0,
                )
            )
    return np.array(found)


rows = {}
for name in ("vectorized", "conflict_free", "double_buffer"):
    if not tool.running():
        rung = LADDER[name]
        code = loops.disassemble(rung.compile())
        far = distances(loops.main_turn(code, loops.fmas_of_turn(rung.kernel)))
        ct.check(
            (far > 0).astype("float64"),
            np.ones(len(far)),
            name=f"{name}: somebody waits",
        )
        rows |= {
            f"{name}: nearest": int(far.min()),
            f"{name}: median": float(np.median(far)),
        }
ct.facts("instructions between a load and the first that waits for it", rows)
