# ---
# jupyter:
#   cudatut:
#     title: {en: "Divergence", zh: "分支发散"}
#     requires: sm_75
#     timeout_s: 180
#     sizes:
#       n: [500000, 40000]
# ---

# %% [markdown] about
# A switch with eight sides of equal length; the data choose the side. The
# program counts how many different sides the lanes of a warp take, then times
# the kernel.

# %% program
import numpy as np

import cudatut as ct

source = """
#define SIDE(a)       \
  _Pragma("unroll 4") \
  for (int j = 0; j < steps; ++j) v = fmaf(a, v, 0.001f)

__global__ void ways(const float* __restrict__ x,
                     const int* __restrict__ way,
                     float* __restrict__ out, int n, int steps) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = x[i];
  switch (way[i]) {
    case 0: SIDE(0.991f); break;
    case 1: SIDE(0.992f); break;
    case 2: SIDE(0.993f); break;
    case 3: SIDE(0.994f); break;
    case 4: SIDE(0.995f); break;
    case 5: SIDE(0.996f); break;
    case 6: SIDE(0.997f); break;
    default: SIDE(0.998f);
  }
  out[i] = v;
}
"""
kernel = ct.Kernel(source, "ways")

n = 500_000
steps, block = 2048, 256
thread = np.arange(n)
SIDES = {  # name: the side that each thread takes
    "all the same": 0 * thread,
    "two in turn": thread % 2,
    "eight in turn": thread % 8,
    "random": ct.rng(0).integers(0, 8, n),
    "runs of 8": thread // 8 % 8,
    "runs of 32": thread // 32 % 8,
}
x_host = ct.rng(1).random(n, dtype="float32")
x, out = ct.to_device(x_host), ct.empty(n, "float32")
factor = np.float32(0.991 + 0.001 * np.arange(8)).astype("float64")


def after(way):
    """What `steps` times v = a * v + 0.001 makes of x, in closed form."""
    power = (factor**steps)[way]
    return power * x_host + 0.001 * (1 - power) / (1 - factor[way])


def sides_of(way):
    """How many different sides a warp takes, on average."""
    return np.mean([len(set(warp)) for warp in way.reshape(-1, 32)])


print("               sides per warp, predicted")
ways, launches = {}, {}
for name, way in SIDES.items():
    ways[name] = ct.to_device(way.astype("int32"))

    def launch(way=ways[name]):
        kernel(x, way, out, n, steps, grid=ct.cdiv(n, block), block=block)

    launch()
    assert np.allclose(out.get(), after(way), rtol=1e-4)
    print(f"{name:13s}  {sides_of(way):14.2f}")
    launches[name] = launch

times = ct.bench(launches, name="eight sides of equal length")
one = times["all the same"].median_us
beside_one = {
    f"{row.name}, time / one side": (row.median_us / one, "x")
    for row in times.rows
}
ct.yours("basics/divergence#program", beside_one)

# %% [markdown] about-hoisted
# The same results from one loop: the sides differ in one number only, and the
# kernel chooses the number.

# %% check-sides
FILE = "basics/divergence/divergence.cu"
hoisted = ct.Kernel(FILE, "hoisted")


def run(name, m=n):
    grid = ct.cdiv(m, block)
    kernel(x, ways[name], out, m, steps, grid=grid, block=block)


def run_hoisted(m=n):
    grid = ct.cdiv(m, block)
    hoisted(x, ways["random"], out, m, steps, grid=grid, block=block)


for m in (1, 31, 33, 1000, n):
    for name, way in SIDES.items():
        ct.poison(out)
        run(name, m)
        wanted = after(way)[:m]
        ct.check(out[:m], wanted, name=f"{name}, n = {m}", rtol=1e-4)
    ct.poison(out)
    run_hoisted(m)
    wanted = after(SIDES["random"])[:m]
    ct.check(out[:m], wanted, name=f"hoisted, n = {m}", rtol=1e-4)

# %% bench-sides
times = ct.bench(
    {name: lambda name=name: run(name) for name in SIDES}
    | {"random, number chosen": run_hoisted},
    flops=2 * steps * n,
    name="eight sides of equal length",
)

# %% sides
alone = times["all the same"].median_us
ct.table(
    "Time, with one side as 1",
    {
        name: {
            "predicted": float(sides_of(SIDES[name])) if name in SIDES else 1.0,
            "measured": times[name].median_us / alone,
        }
        for name in (*SIDES, "random, number chosen")
    },
    corner="data",
)

# %% [markdown] about-shapes
# Which `if` is a branch in the machine code? Four kernels, counted.

# %% short
from cudatut.book.measure.machine_code import executed, sass

for i in sass(FILE, "short_if")[-4:]:
    print(f"{i.address:04x}  {i.predicate:4} {i.text}")

# %% shapes
SHAPES = ("short_if", "nested_if", "long_if", "loop_if")


def shape(kernel):
    """How the branches of a kernel look in machine code."""
    code = sass(FILE, kernel)
    chosen = sum(i.op in ("FMNMX", "FSEL", "SEL") for i in code)
    guarded = sum(
        bool(i.predicate) and i.op not in ("EXIT", "BRA") for i in code
    )
    return {
        "instructions": len(code),
        "predicated": guarded,
        "minimum, maximum": chosen,
        "branches": sum(i.op == "BRA" for i in code),
        "meeting points": sum(i.op == "BSYNC" for i in code),
    }


ct.table("Machine code", {k: shape(k) for k in SHAPES}, corner="kernel")

# %% check-shapes
values_host = ct.rng(2).uniform(-1.3, 1.3, 100_000).astype("float32")
values = ct.to_device(values_host)


def after_long_if(v):
    v, low = v.astype("float64"), v < 0
    for _ in range(32):
        v = np.where(low, v * v - 0.5, v)
    return v


def after_loop_if(v):
    # In float32, as the GPU does it, so that both stop together.
    while (low := v < 1.0).any():
        v = np.where(low, np.float32(0.5) * v + np.float32(0.75), v)
    return v


v = values_host
SHOULD = {
    "short_if": np.where(v < 0, np.float32(0.01) * v, v),
    "nested_if": np.where(v < 0, 0.5 * np.maximum(v, -1), np.minimum(v, 1)),
    "long_if": after_long_if(v),
    "loop_if": after_loop_if(v),
}
for name, expected in SHOULD.items():
    shaped = ct.Kernel(FILE, name)
    for m in (1, 31, 33, v.size):
        result = ct.empty(m, "float32")
        shaped(values, result, m, grid=ct.cdiv(m, block), block=block)
        # long_if pulls towards a fixed point: rounding errors die out.
        near = 1e-3 if name == "long_if" else 1e-5
        ct.check(result, expected[:m], name=f"{name}, n = {m}", rtol=near)

# %% [markdown] about-turns
# A loop of 1 to 64 turns, drawn at random for each lane. Data and machine code
# predict how many instructions lanes and warps run.

# %% check-trips
trips = ct.Kernel(FILE, "trips")
length = 1_000_192  # whole warps and whole blocks
count_host = ct.rng(3).integers(1, 65, length, dtype="int32")
start_host = ct.rng(4).random(length, dtype="float32")
start, count = ct.to_device(start_host), ct.to_device(count_host)
a, b = np.float64(np.float32(0.999)), np.float64(np.float32(0.001))
power = a**count_host
ends = power * start_host + b * (1 - power) / (1 - a)
result = ct.empty(length, "float32")
for m in (length, 1, 31, 33):
    ct.poison(result)
    trips(start, count, result, m, grid=ct.cdiv(m, block), block=block)
    ct.check(result[:m], ends[:m], name=f"trips, n = {m}")

# %% predict-turns
code = sass(FILE, "trips")
in_loop = sum(times - 1 for _, times in executed(code, trips=2))
once = len(code) - in_loop  # instructions outside the loop
by_warp = count_host.reshape(-1, 32).astype("int64")
most = by_warp.max(axis=1)
of_lanes = int((once + in_loop * by_warp).sum())
of_warps = int((once + in_loop * most).sum())
# Lanes with equally many turns leave the loop together, and each such group but
# one adds an instruction: its arrival at the meeting point.
groups = 1 + (np.diff(np.sort(by_warp, axis=1), axis=1) != 0).sum(axis=1)
arrivals = int((groups - 1).sum())
ct.facts(
    "A loop of 1 to 64 turns",
    {
        "instructions of a turn": in_loop,
        "turns of a lane, mean": float(by_warp.mean()),
        "turns of a warp, mean": float(most.mean()),
        "groups per warp, mean": float(groups.mean()),
    },
)

# %% count-turns

LANES = "smsp__thread_inst_executed.sum"
WARPS = "smsp__inst_executed.sum"
counted = ct.profile_launches(
    "basics/divergence", kernel="trips", metrics=[LANES, WARPS], launches=1
)

# %% turns
if counted:
    lanes, warps = counted[0][LANES], counted[0][WARPS]
    ct.table(
        "Instructions of the loop",
        {
            "maximum of the turns": {
                "lanes": of_lanes / 1e6,
                "warps": of_warps / 1e6,
                "lanes per instruction": of_lanes / of_warps,
            },
            "with the arrivals": {
                "lanes": of_lanes / 1e6,
                "warps": (of_warps + arrivals) / 1e6,
                "lanes per instruction": of_lanes / (of_warps + arrivals),
            },
            "counted": {
                "lanes": lanes / 1e6,
                "warps": warps / 1e6,
                "lanes per instruction": lanes / warps,
            },
        },
        corner="rule",
        units={"lanes": "million", "warps": "million"},
    )
