# ---
# jupyter:
#   cudatut:
#     title: {en: "What really branches", zh: "哪些 if 真的会分支"}
#     requires: sm_75
#     timeout_s: 180
# ---

# %% [markdown]
# Some branches are no branches in the machine code; the others cost the sum of the paths that a warp takes.

# %% setup
import re

import numpy as np
from machine_code import executed, sass

import cudatut as ct

FILE = "basics/divergence.cu"
block = 256
rng = ct.rng(0)

# %% trips-check
# In the file this launch comes first: the profiler runs it again, and need not go further.
trips = ct.Kernel(FILE, "trips")
length = 1_000_192  # whole warps and whole blocks
count_host = rng.integers(1, 65, length, dtype="int32")
start_host = rng.random(length, dtype="float32")
start, count, out = ct.to_device(start_host), ct.to_device(count_host), ct.empty(length, "float32")
power = np.float64(np.float32(0.999)) ** count_host
b = np.float64(np.float32(0.001))
expected = power * start_host + b * (1 - power) / (1 - np.float64(np.float32(0.999)))
for m in (length, 1, 31, 33):
    ct.poison(out)
    trips(start, count, out, m, grid=ct.cdiv(m, block), block=block)
    ct.check(out[:m], expected[:m], name=f"trips, n={m}")

# %% short
for i in sass(FILE, "short_if")[-6:]:
    print(f"{i.address:04x}  {i.predicate:4} {i.text}")

# %% shapes
SHAPES = ("short_if", "nested_if", "long_if", "loop_if")


def shape(kernel):
    """How the branches of a kernel look in machine code."""
    code = sass(FILE, kernel)
    back = sum(i.op == "BRA" and i.target < i.address for i in code)
    return {
        "instructions": len(code),
        "predicated EXIT": sum(bool(i.predicate) and i.op == "EXIT" for i in code),
        "other predicated": sum(bool(i.predicate) and i.op not in ("EXIT", "BRA") for i in code),
        "minimum, maximum, select": sum(i.op in ("FMNMX", "FSEL", "SEL") for i in code),
        "branches forward": sum(i.op == "BRA" for i in code) - back,
        "branches back": back,
        "meeting points (BSYNC)": sum(i.op == "BSYNC" for i in code),
    }


ct.facts("machine code", {f"{k}: {what}": v for k in SHAPES for what, v in shape(k).items()})

# %% shapes-check
n = 100_000
x_host = rng.uniform(-1.3, 1.3, n).astype("float32")
x = ct.to_device(x_host)


def after_long_if(v):
    v = v.astype("float64")
    for _ in range(32):
        v = np.where(x_host < 0, v * v - 0.5, v)
    return v


def after_loop_if(v):
    while (low := v < 1.0).any():  # in float32, as the GPU does it, so that both stop together
        v = np.where(low, np.float32(0.5) * v + np.float32(0.75), v)
    return v


SHOULD = {
    "short_if": np.where(x_host < 0, np.float32(0.01) * x_host, x_host),
    "nested_if": np.where(x_host < 0, 0.5 * np.maximum(x_host, -1), np.minimum(x_host, 1)),
    "long_if": after_long_if(x_host),
    "loop_if": after_loop_if(x_host),
}
for name, expected in SHOULD.items():
    kernel = ct.Kernel(FILE, name)
    # long_if repeats v * v - 0.5, which pulls towards a fixed point: rounding errors die out.
    for m in (n, 1, 31, 33):
        out = ct.empty(m, "float32")
        kernel(x, out, m, grid=ct.cdiv(m, block), block=block)
        near = 1e-3 if name == "long_if" else 1e-5
        ct.check(out, expected[:m], name=f"{name}, n={m}", rtol=near)

# %% trips-predict
code = sass(FILE, "trips")
in_loop = sum(times - 1 for _, times in executed(code, trips=2))
once = len(code) - in_loop  # instructions outside the loop
by_warp = count_host.reshape(-1, 32)
warp_instructions = int((once + in_loop * by_warp.max(axis=1).astype("int64")).sum())
lane_instructions = int((once + in_loop * count_host.astype("int64")).sum())
ct.facts(
    "prediction",
    {
        "instructions outside the loop": once,
        "instructions of a turn": in_loop,
        "turns of a lane, mean": float(count_host.mean()),
        "turns of a warp, mean": float(by_warp.max(axis=1).mean()),
        "instructions, summed over lanes": lane_instructions,
        "instructions, summed over warps": warp_instructions,
        "lanes per instruction": lane_instructions / warp_instructions,
    },
)

# %% trips
counted = ct.profile(
    "basics/divergence", "trips", ["smsp__thread_inst_executed.sum", "smsp__inst_executed.sum"]
)

# %% trips-compare
if counted:
    lanes, warps = (entry["value"] for entry in counted.metrics.values())
    ct.facts(
        "a loop of 1 to 64 turns",
        {
            "summed over lanes, predicted": lane_instructions,
            "summed over lanes, measured": lanes,
            "summed over warps, predicted": warp_instructions,
            "summed over warps, measured": warps,
            "lanes per instruction, predicted": lane_instructions / warp_instructions,
            "lanes per instruction, measured": lanes / warps,
        },
    )


# %% trips-groups
def different(values):
    """How many different numbers stand in each row."""
    return 1 + (np.diff(np.sort(values, axis=1), axis=1) != 0).sum(axis=1)


if counted:
    groups = different(by_warp)  # lanes with the same number of turns leave the loop together
    later = int((groups - 1).sum())  # one arrival of each warp is in the prediction
    ct.facts(
        "arrivals at the meeting point",
        {
            "groups per warp, mean": float(groups.mean()),
            "arrivals that were not predicted": later,
            "instructions that were not predicted": warps - warp_instructions,
            "summed over warps, with all arrivals": warp_instructions + later,
            "summed over warps, measured": warps,
        },
    )

# %% ways-predict
WAYS, steps = 8, 2048
size = ct.size(500_000, 40_000)
thread = np.arange(size)
random = rng.integers(0, WAYS, size, dtype="int32")
identity = thread.astype("int32")
by_way = np.argsort(random, kind="stable").astype("int32")
CASES = {  # name: side of each element, and which element each thread takes
    "one side": (np.zeros(size, "int32"), identity),
    "two sides": ((thread % 2).astype("int32"), identity),
    "four sides": ((thread % 4).astype("int32"), identity),
    "eight sides": ((thread % 8).astype("int32"), identity),
    "random": (random, identity),
    "runs of 8": ((thread // 8 % 8).astype("int32"), identity),
    "runs of 32": ((thread // 32 % 8).astype("int32"), identity),
    "random, through an index": (random, by_way),
    "random, moved together": (np.sort(random), identity),
}


def paths(way, order):
    """Different sides that a warp takes, on average over the warps: it runs each of them once."""
    return float(different(way[order].reshape(-1, 32)).mean())


predicted = {name: paths(*case) for name, case in CASES.items()}
ct.facts("sides per warp", predicted)

# %% ways-check
ways, hoisted = ct.Kernel(FILE, "ways"), ct.Kernel(FILE, "hoisted")
v_host = rng.random(size, dtype="float32")
v, result = ct.to_device(v_host), ct.empty(size, "float32")
factor = np.array([0.991 + 0.001 * w for w in range(WAYS)], "float32").astype("float64")
arrays = {name: (ct.to_device(way), ct.to_device(order)) for name, (way, order) in CASES.items()}


def run(name):
    way, order = arrays[name]
    return lambda: ways(v, way, order, result, size, steps, grid=ct.cdiv(size, block), block=block)


def run_hoisted():
    way, _ = arrays["random"]
    hoisted(v, way, result, size, steps, grid=ct.cdiv(size, block), block=block)


def closed(way):
    power = (factor**steps)[way]
    return power * v_host + b * (1 - power) / (1 - factor[way])


for name, (way, _) in CASES.items():
    ct.poison(result)
    run(name)()
    ct.check(result, closed(way), name=name, rtol=1e-4)
ct.poison(result)
run_hoisted()
ct.check(result, closed(random), name="hoisted", rtol=1e-4)

# %% ways
times = ct.bench(
    {**{name: run(name) for name in CASES}, "random, hoisted": run_hoisted},
    flops=2 * steps * size,
    name="eight sides of equal length",
)

# %% ways-compare
alone = times["one side"].median_us
further = (times["eight sides"].median_us - alone) / (WAYS - 1)
ct.facts(
    "time, relative to one side",
    {
        key: value
        for name in CASES
        for key, value in {
            f"{name}, predicted": predicted[name],
            f"{name}, measured": times[name].median_us / alone,
        }.items()
    }
    | {
        "random, hoisted, predicted": 1.0,
        "random, hoisted, measured": times["random, hoisted"].median_us / alone,
    },
)
ct.facts(
    "what a side costs",
    {
        "each further side": (further, "us"),
        "everything beside the sides": (alone - further, "us"),
    },
)

# %% partition
ratio = times["runs of 8"].median_us / alone
ct.claim(
    id="partition-removes-divergence",
    source="Learn CUDA Programming, notes",
    statement={
        "en": "Partitioning a warp into tiles, so that each tile agrees, reduces the cost of divergence.",
        "zh": "把线程束划分成更小的组，让每组内部走向一致，就能减轻分支发散的代价。",
    },
    predicted=1,
    measured=ratio,
    unit="time / one side",
    verdict="confirmed" if ratio < 1.5 else "refuted",
)

# %% locked
locked = ct.Kernel(FILE, "locked")
lock, total = ct.to_device(np.zeros(1, "int32")), ct.to_device(np.zeros(1, "int32"))
happens, joined = (ct.to_device(np.zeros(32, "uint32")) for _ in range(2))
patience = 200_000_000  # cycles: a tenth of a second, then a lane gives up
locked(lock, total, happens, joined, patience, grid=1, block=32)


def lanes_of(masks):
    """Lanes that each lane of the warp saw, by its mask."""
    return [int(mask).bit_count() for mask in masks.get()]


got = int((joined.get() != 0).sum())
ct.check(total, np.array([got], "int32"), name="one at a time")
ct.facts(
    "32 lanes, one lock",
    {
        "lanes that got the lock": got,
        "lanes seen by __activemask(), fewest": min(lanes_of(happens)),
        "lanes seen by __activemask(), most": max(lanes_of(happens)),
        "lanes seen after __syncwarp(), fewest": min(lanes_of(joined)),
    },
)
code = sass(FILE, "locked")
for i in code:
    if re.match(r"ATOM|YIELD|BSSY|BSYNC|VOTE|WARPSYNC|BRA", i.text):
        print(f"{i.address:04x}  {i.predicate:4} {i.text}")

# %% activemask
fewest = min(lanes_of(happens))
ct.claim(
    id="activemask-is-the-warp",
    source="Learn CUDA Programming, notes",
    statement={
        "en": "__activemask() gives the lanes for a warp primitive: those that reach the same line.",
        "zh": "用 __activemask() 就能得到线程束原语所需的掩码，即到达同一行代码的所有 lane。",
    },
    predicted=32,
    measured=fewest,
    unit="lanes",
    verdict="refuted" if fewest < 32 else "depends",
)
