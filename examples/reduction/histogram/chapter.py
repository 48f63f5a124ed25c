# ---
# jupyter:
#   cudatut:
#     title: {en: "Atomics and the histogram", zh: "原子操作与直方图"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       count: [10000019, 10007]
#       n: [268435456, 65536, 1048576]
#       long: [2147483661, 65549]
#       warps: [20000, 100]
# ---

# %% [markdown]
# How often does each value of a byte occur? Counters in L2, in shared memory,
# and one set of them per lane. First the last of these as a whole program.

# %% program
import numpy as np
import cudatut as ct

count = 10_000_019
values = ct.rng(0).integers(0, 256, count, dtype="uint8")
data = ct.to_device(values)
counts = ct.to_device(np.zeros(256, "uint32"))  # 0 before the launch

kernel = ct.Kernel("reduction/histogram/histogram.cu", "histogram_private")
blocks = kernel.resources(1024).blocks_per_sm * ct.device().sm_count
kernel(data, counts, count, grid=blocks, block=1024)

expected = np.bincount(values, minlength=256).astype("uint32")
ct.check(counts, expected)

# %% setup
import pycuda.driver as cuda

gpu = ct.device()
n = 268_435_456
BLOCK = 1024
period = min(n, 1 << 24)  # random bytes; the rest repeats them
random = ct.rng(0).integers(0, 256, period, dtype="uint8")
HOST = {
    "uniform": random,
    "one-hot": np.full(period, 77, "uint8"),  # every byte the same
    # The 8 multiples of 32: different counters, but all in one bank.
    "one bank": random & 224,
}


def repeated(host, n):
    """n bytes on the GPU: `host` again and again, copied there rather than sent
    each time."""
    piece, whole = ct.to_device(host), ct.empty(n, "uint8")
    for first in range(0, n, period):
        size = min(period, n - first)
        cuda.memcpy_dtod(int(whole.gpudata) + first, piece.gpudata, size)
    return whole


DATA = {name: repeated(host, n) for name, host in HOST.items()}


def counts_of(host, times=1):
    return (times * np.bincount(host, minlength=256)).astype("uint32")


EXPECTED = {name: counts_of(host, n // period) for name, host in HOST.items()}

# %% [markdown]
# Which atomic operations exist, and what happens without any.

# %% exist
OPERATIONS = [
    "Add",
    "Sub",
    "Exch",
    "Min",
    "Max",
    "Inc",
    "Dec",
    "And",
    "Or",
    "Xor",
]
exist = ct.Kernel("reduction/histogram/histogram_atomics.cu", "atomics_exist")
table = ct.empty((4, 10), "int32")
exist(table, grid=1, block=1)
TYPES = ("int", "unsigned", "float", "double")
found = dict(zip(TYPES, table.get().astype(bool)))
ct.facts(
    "atomics by type",
    {
        f"atomics on {kind}": ", ".join(np.array(OPERATIONS)[which])
        for kind, which in found.items()
    },
)

# %% lost
few = 1 << 16
some, some_expected = ct.to_device(random[:few]), counts_of(random[:few])
plain = ct.Kernel("reduction/histogram/histogram_atomics.cu", "count_plain")
counts = ct.to_device(np.zeros(256, "uint32"))
plain(some, counts, few, grid=ct.cdiv(few, 256), block=256)
try:
    ct.check(counts, some_expected, name="without atomics")
except ct.CheckError as error:
    print("CheckError:", error)
ct.facts("without atomics", {"bytes": few, "counted": int(counts.get().sum())})

# %% barrier
barrier = ct.Kernel("reduction/histogram/histogram_atomics.cu", "count_barrier")
counts = ct.to_device(np.zeros(256, "uint32"))
barrier(some, counts, few, grid=1, block=32)
# One warp: all 32 load, all add 1, all store. Of each value that occurs, one
# addition remains.
groups = random[:few].reshape(-1, 32).tolist()
remain = sum(len(set(group)) for group in groups)
counted = int(counts.get().sum())
ct.facts(
    "one warp, a barrier after each step",
    {"bytes": few, "counted, predicted": remain, "counted, measured": counted},
)

# %% [markdown]
# How many passes an atomic of a warp takes, computed from the data.

# %% bank-of
lane, value = np.meshgrid(np.arange(32), np.arange(256))
word = 32 * value + lane
ct.facts(
    "a counter for each value and lane",
    {
        "counters": len(np.unique(word)),
        "KiB per block": 4 * word.size / 1024,
        "counters of another bank than their lane's": int(
            (word % 32 != lane).sum()
        ),
    },
)

# %% conflicts
MERGED, TURNS = "most different counters in a bank", "most lanes in a bank"
BY_WARP = "most wanted sector, a request per warp"
BY_LANE = "most wanted sector, a request per lane"


def passes(values):
    """Mean passes of a warp's atomic on shared counters, and requests to the
    most wanted sector of global ones.

    values: (warps, 32). Both in two ways: lanes that meet are merged, or each
    takes its turn.
    """
    # Of each warp: the lanes that want each counter.
    hits = np.zeros((len(values), 256), "int32")
    np.add.at(hits, (np.arange(len(values))[:, None], values), 1)
    bank = hits.reshape(-1, 8, 32)  # counter 32 * k + b lies in bank b
    sector = hits.reshape(-1, 32, 8).sum(axis=2)  # 8 counters of 4 bytes
    wanted = sector > 0
    return {
        MERGED: float((bank > 0).sum(axis=1).max(axis=1).mean()),
        TURNS: float(bank.sum(axis=1).max(axis=1).mean()),
        "sectors": float(wanted.sum(axis=1).mean()),
        BY_WARP: float(wanted.mean(axis=0).max()),
        BY_LANE: float(sector.mean(axis=0).max()),
    }


warps = 20_000
expect = {
    name: passes(host[: 32 * warps].reshape(-1, 32))
    for name, host in HOST.items()
}
ct.table("one atomic of a warp", expect, corner="data")

# %% predict
bandwidth = ct.limits.bandwidth()
clock = gpu.clock_khz / 1e3  # cycles per us
of_warps = n / 32  # atomics of whole warps
shared_rate = gpu.sm_count * clock  # passes per us: one per cycle and SM
bytes_us = n / bandwidth / 1e3


def by_passes(each):
    return max(bytes_us, of_warps * each / shared_rate)


def by_sectors(each):
    """A sector lives in one slice of L2; if that takes one request per cycle,
    the most wanted sector decides."""
    return round(of_warps * each / clock)


predicted = {
    name: {
        "private": by_passes(1),
        "shared, merged": by_passes(each[MERGED]),
        "shared, in turn": by_passes(each[TURNS]),
        "global, merged": by_sectors(each[BY_WARP]),
        "global, in turn": by_sectors(each[BY_LANE]),
    }
    for name, each in expect.items()
}
COLUMNS = predicted["uniform"]
ct.table(
    "prediction",
    predicted,
    corner="data",
    units=dict.fromkeys(COLUMNS, "us"),
)
ct.facts(
    "limit of the time",
    {
        "the bytes alone": (bytes_us, "us"),
        "time of the bytes / passes of private counters": (
            bytes_us / (of_warps / shared_rate),
            "×",
        ),
    },
)

# %% [markdown]
# The three kernels: resources, right counts, and then the time.

# %% compile
FILE = "reduction/histogram/histogram.cu"
WAYS = ("global", "shared", "private")
KERNELS = {
    way: ct.Kernel(FILE, f"histogram_{way}", defines={"BLOCK": BLOCK})
    for way in WAYS
}


def launcher(kernel, data):
    """A call that counts all of `data` into `.out`: the counters are zeroed,
    then the kernel runs, on a full GPU."""
    out = ct.empty(256, "uint32")
    grid = kernel.resources(BLOCK).blocks_per_sm * gpu.sm_count

    def run():
        cuda.memset_d32(out.gpudata, 0, 256)
        kernel(data, out, data.size, grid=grid, block=BLOCK)

    run.out = out
    return run


# %% check
# The contests below check what they have counted, too.
for name, host in HOST.items():
    for way, kernel in KERNELS.items():
        run = launcher(kernel, ct.to_device(host))
        run()
        ct.check(run.out, counts_of(host), name=f"{way}, {name}")

# %% check-ragged
for m in (0, 15, 16, 17, *ct.RAGGED):
    host = ct.rng(m).integers(0, 256, m, dtype="uint8")
    for way, kernel in KERNELS.items():
        run = launcher(kernel, ct.to_device(host))
        run()
        ct.check(run.out, counts_of(host), name=f"{way}, n={m}")

# %% check-views
# An array may begin at any byte: views of a longer one, by two blocks.
host = ct.rng(1).integers(0, 256, 64, dtype="uint8")
whole = ct.to_device(host)
for way, kernel in KERNELS.items():
    got, right = [], []
    for first in (1, 7, 15, 16):
        for m in (0, 1, 9, 15, 31, 48):
            out = ct.to_device(np.zeros(256, "uint32"))
            view = whole[first : first + m]
            kernel(view, out, m, grid=2, block=BLOCK)
            got.append(out.get())
            right.append(counts_of(host[first : first + m]))
    ct.check(np.stack(got), np.stack(right), name=f"{way}, views")

# %% check-long
# More bytes than an int can count.
long = 2_147_483_661
many = repeated(random, long)
right = counts_of(random, long // period) + counts_of(random[: long % period])
for way, kernel in KERNELS.items():
    run = launcher(kernel, many)
    run()
    ct.check(run.out, right, name=f"{way}, n={long}")
del many, run


# %% vendors
def bincount(data):
    """CuPy's bincount, as a user calls it: a rival, but not the vendor's."""
    cupy = ct.vendor.cupy()
    if cupy is None:
        return None
    array = cupy.asarray(data)
    return ct.vendor.Vendor(
        lambda: cupy.bincount(array, minlength=256), vendor=False
    )


def rivals(name):
    return {
        "CUB": ct.vendor.histogram(DATA[name]),
        "CuPy bincount": bincount(DATA[name]),
    }


RIVALS = {name: rivals(name) for name in DATA}
for name, runs in RIVALS.items():
    for vendor, run in runs.items():
        if run:
            got = run()
            got = (
                run.out.get() if vendor == "CUB" else got.get().astype("uint32")
            )
            ct.check(got, EXPECTED[name], name=f"{vendor}, {name}")

# %% bench-uniform
# The same kernel, but the compiler cannot know that it adds 1.
add = ct.Kernel(
    FILE,
    "histogram_shared",
    defines={"BLOCK": BLOCK, "ONE": "(n < 0 ? 2u : 1u)"},
)
ADD = "shared, ATOMS.ADD"
bench = {}


def contest(name, ways=WAYS, vendors=("CUB", "CuPy bincount"), rounds=3):
    """Few rounds, since global counters take long; in each of them the fast
    ones run often."""
    runs = {way: launcher(KERNELS[way], DATA[name]) for way in ways}
    runs[ADD] = launcher(add, DATA[name])
    runs |= {
        vendor: run for vendor, run in RIVALS[name].items() if vendor in vendors
    }
    bench[name] = ct.bench(
        runs, bytes=n, name=f"histogram of {n} bytes, {name}", rounds=rounds
    )
    for way in (*ways, ADD):
        ct.check(runs[way].out, EXPECTED[name], name=f"{way}, {name}")


contest("uniform")

# %% bench-one-hot
contest("one-hot")

# %% bench-one-bank
contest("one bank", ways=("shared", "private"), vendors=("CUB",), rounds=50)

# %% [markdown]
# The same times by the kind of data.

# %% by-data
timed = {
    name: {row.name: row.median_us for row in result.rows}
    for name, result in bench.items()
}
ROWS = ("global", "shared", ADD, "private", "CUB", "CuPy bincount")
table = {}
for way in ROWS:
    if way not in timed["uniform"]:
        continue
    table[way] = {name: timed[name].get(way) for name in timed}
    table[way]["one-hot / uniform"] = (
        timed["one-hot"][way] / timed["uniform"][way]
    )
ct.table(
    "time by data",
    table,
    corner="counters",
    units=dict.fromkeys(timed, "us") | {"one-hot / uniform": "×"},
)
ours = {name: bench[name]["private"].median_us for name in bench}
if "CUB" in table:
    ct.facts(
        "time / time of private counters",
        {
            f"CUB, {name}": (timed[name]["CUB"] / ours[name], "×")
            for name in timed
        },
    )
ct.facts(
    "shared: measured - predicted",
    {
        name: (timed[name]["shared"] - predicted[name]["shared, merged"], "us")
        for name in ("uniform", "one bank")
    },
)

# %% [markdown]
# The profiler counts passes and sectors.

# %% counters
METRICS = [
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum",
    "lts__t_sectors_op_red.sum",
]
# The profiler runs this file again. The first launch is that of the program,
# the next ones are those of the cell 'check', on 1 Mi bytes.
launches = ct.profile_launches(
    "reduction/histogram",
    kernel="regex:histogram_(global|shared|private)",
    metrics=METRICS,
    launches=len(DATA) * len(WAYS),
    skip=1,
)
per_atomic = {}
for at, launch in enumerate(launches):
    key = list(HOST)[at // len(WAYS)], WAYS[at % len(WAYS)]
    per_atomic[key] = [value / ((1 << 20) / 32) for value in launch.values()]
if per_atomic:
    ct.table(
        "passes per atomic of a warp",
        {
            name: {
                "shared, merged": each[MERGED],
                "shared, in turn": each[TURNS],
                "shared, measured": per_atomic[name, "shared"][0],
                "private, measured": per_atomic[name, "private"][0],
            }
            for name, each in expect.items()
        },
        corner="data",
    )

# %% counters-global
if per_atomic:
    sectors = {name: per_atomic[name, "global"][1] for name in HOST}
    ct.table(
        "sectors in L2 per atomic of a warp",
        {
            name: {
                "merged": each["sectors"],
                "in turn": 32,
                "measured": sectors[name],
            }
            for name, each in expect.items()
        },
        corner="data",
    )
    ct.facts(
        "sectors per cycle of the SMs, global",
        {
            name: sectors[name] * of_warps / clock / timed[name]["global"]
            for name in ("uniform", "one-hot")
        },
    )
