# ---
# jupyter:
#   cudatut:
#     title: {en: "Machine code: solutions", zh: "机器码：参考答案"}
#     requires: sm_80
#     timeout_s: 120
#     sizes: {steps: [2048, 8], blocks_per_sm: [8, 1]}
# ---

# %% [markdown]
# A kernel whose share of FMAs is chosen, and how far ahead of its use a load is
# issued.

# %% given-1
import cudatut as ct
from cudatut.book.measure import loops
import numpy as np

# %% solution-1
# Neither the FMAs nor the other instructions wait for one another.
MIX = """
__global__ void mix(float* out, int n, int steps, float a, float b) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  float v[16], sum = 0.0f;
  unsigned word[16], bits = 0;
#pragma unroll
  for (int i = 0; i < 16; ++i) v[i] = i;
#pragma unroll
  for (int i = 0; i < 16; ++i) word[i] = t + i;
#pragma unroll 1
  for (int s = 0; s < steps; ++s) {
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      v[i] = v[i] * a + b;
      if (i < OTHERS) word[i] = word[i] ^ (s | i);
    }
  }
#pragma unroll
  for (int i = 0; i < 16; ++i) sum += v[i];
#pragma unroll
  for (int i = 0; i < OTHERS; ++i) bits |= word[i];
  // Never so many bits: only so that the words are needed.
  if (t < n) out[t] = bits == 0xffffffffu ? 0.0f : sum;
}
"""

# %% check-1
steps = 2048
blocks_per_sm = 8
grid = ct.device().sm_count * blocks_per_sm
a, b = np.float32(0.5), np.float32(1.0)
out = ct.empty(grid * 256, "float32")
values = np.arange(16, dtype="float64")
for _ in range(steps):
    values = values * a + b
expected = np.full(grid * 256, values.sum())
kernels, turns = {}, {}
for others in (0, 4, 8):
    kernels[others] = ct.Kernel(MIX, "mix", defines={"OTHERS": others})
    ct.poison(out)
    kernels[others](out, grid * 256, steps, a, b, grid=grid, block=256)
    ct.check(out, expected, name=f"{others} others", rtol=1e-5)
    code = loops.disassemble(kernels[others])
    turns[others] = loops.main_turn(code, fmas=16)
    more = len(turns[others]) - len(turns[0])
    name = f"{others} others in a turn"
    ct.check([min(more, others)], [others], name=name, rtol=0)

# %% [markdown]
# The rates, predicted from the code and measured.

# %% rates-1
peak = ct.device().sm_count * 4 * 32 * 2 * ct.attributes()["CLOCK_RATE"] / 1e9


def run(others):
    """A callable that launches this kernel."""
    kernel = kernels[others]
    return lambda: kernel(out, grid * 256, steps, a, b, grid=grid, block=256)


rates = ct.bench(
    {f"{others} others": run(others) for others in kernels},
    flops=2 * 16 * steps * grid * 256,
    name="FMAs among others",
    rounds=20,
)

# %% compare-1
ct.table(
    "rate of the FMAs",
    {
        others: {
            "instructions": len(turn),
            "predicted": loops.share(turn) * peak,
            "measured": rates[f"{others} others"].value,
        }
        for others, turn in turns.items()
    },
    corner="others",
    units={"predicted": "TFLOP/s", "measured": "TFLOP/s"},
)

# %% given-2
from cudatut.book.measure import loops
from cudatut.book.gemm.ladder.ladder import LADDER


# %% solution-2
def distances(turn):
    """For each LDS that sets a scoreboard, in order: the number of instructions
    issued until one waits for that board."""
    way = [i for i, times in turn for _ in range(times)]
    found = []
    for place, load in enumerate(way):
        if load.op == "LDS" and load.sets is not None:
            after = way[place + 1 :] + way[: place + 1]  # the loop goes round
            waiting = (
                d for d, i in enumerate(after, 1) if load.sets in i.waits
            )
            found.append(next(waiting, 0))
    return found


# %% check-2
import cudatut as ct


def made(op, sets=7, waits=()):
    """An instruction that sets and waits for these scoreboards."""
    upper = sets << 46 | sum(1 << 52 + board for board in waits)
    return loops.Instruction(0, "", op, upper), 1


made_up = [made("FFMA", waits=[2]), made("LDS", 0), made("LDS", 1)]
made_up += [made("FFMA", waits=[0]), made("FFMA"), made("FFMA", waits=[1])]
made_up += [made("LDS", 2)]
ct.check(distances(made_up), [2, 3, 1], name="a made-up turn", rtol=0)

far = {}
for name in ("vectorized", "conflict_free", "double_buffer"):
    code = loops.disassemble(LADDER[name].compile())
    turn = loops.main_turn(code, loops.fmas_of_turn(LADDER[name].kernel))
    far[name] = distances(turn)
    ct.check([int(min(far[name]) > 0)], [1], name=f"{name}: somebody waits")

# %% far-2
from statistics import median

ct.table(
    "instructions between a load and the first that waits for it",
    {
        name: {"nearest": min(found), "median": float(median(found))}
        for name, found in far.items()
    },
    corner="kernel",
)
