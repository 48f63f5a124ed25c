# ---
# jupyter:
#   cudatut:
#     title: {en: "Atomics and the histogram", zh: "原子操作与直方图"}
#     requires: sm_75
#     timeout_s: 120
# ---

# %% [markdown]
# How often does each value of a byte occur? Counters in L2, in shared memory, and one set of them per lane.

# %% setup
import numpy as np
import pycuda.driver as cuda

import cudatut as ct
from cudatut.profiler import profile_launches

gpu = ct.device()
profiled_n = 1 << 20  # what a profiler sees
n, BLOCK = ct.size(1 << 28, 1 << 16, profiled=profiled_n), 1024
period = min(n, 1 << 24)  # random bytes; the rest repeats them
random = ct.rng(0).integers(0, 256, period, dtype="uint8")
HOST = {
    "uniform": random,
    "one-hot": np.full(period, 77, "uint8"),  # every byte the same
    "one bank": random
    & 224,  # the 8 multiples of 32: different counters, but all in one bank
}


def repeated(host):
    """n bytes on the GPU: `host` again and again, copied there rather than sent each time."""
    piece, whole = ct.to_device(host), ct.empty(n, "uint8")
    for first in range(0, n, period):
        cuda.memcpy_dtod(int(whole.gpudata) + first, piece.gpudata, period)
    return whole


DATA = {name: repeated(host) for name, host in HOST.items()}


def counts_of(host, times=1):
    return (times * np.bincount(host, minlength=256)).astype("uint32")


EXPECTED = {name: counts_of(host, n // period) for name, host in HOST.items()}

# %% exist
OPERATIONS = (
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
)
exist = ct.Kernel("reduction/histogram_atomics.cu", "atomics_exist")
table = ct.empty((4, 10), "int32")
exist(table, grid=1, block=1)
found = dict(
    zip(("int", "unsigned", "float", "double"), table.get().astype(bool))
)
ct.facts(
    "atomics by type",
    {
        kind: ", ".join(np.array(OPERATIONS)[which])
        for kind, which in found.items()
    },
)
ct.claim(
    id="histogram-float-atomics",
    source="CS179 notes",
    statement={
        "en": "Add, Sub, Exch, Min, Max, Inc, Dec, And, Or and Xor all exist as atomic operations on float.",
        "zh": "Add、Sub、Exch、Min、Max、Inc、Dec、And、Or、Xor 这些原子操作都有 float 版本。",
    },
    predicted=len(OPERATIONS),
    measured=int(found["float"].sum()),
    unit="operations",
    verdict="confirmed" if found["float"].all() else "refuted",
)

# %% lost
few = 1 << 16
some, some_expected = ct.to_device(random[:few]), counts_of(random[:few])
plain = ct.Kernel("reduction/histogram_atomics.cu", "count_plain")
counts = ct.to_device(np.zeros(256, "uint32"))
plain(some, counts, few, grid=ct.cdiv(few, 256), block=256)
try:
    ct.check(counts, some_expected, name="without atomics")
except ct.CheckError as error:
    print("CheckError:", error)
ct.facts("without atomics", {"bytes": few, "counted": int(counts.get().sum())})

# %% barrier
barrier = ct.Kernel("reduction/histogram_atomics.cu", "count_barrier")
counts = ct.to_device(np.zeros(256, "uint32"))
barrier(some, counts, few, grid=1, block=32)
# One warp: all 32 load, all add 1, all store. Of each value that occurs, one addition remains.
remain = sum(len(set(step)) for step in random[:few].reshape(-1, 32).tolist())
counted = int(counts.get().sum())
ct.facts(
    "one warp, a barrier after each step",
    {"bytes": few, "counted, predicted": remain, "counted, measured": counted},
)
ct.claim(
    id="histogram-barrier-is-enough",
    source="CS179 notes",
    statement={
        "en": "Barriers keep the threads of a block from disturbing each other's counts; atomics are not needed. "
        "Then no count is lost:",
        "zh": "有了栅栏，同一线程块的线程就不会互相干扰计数，用不着原子操作。照此说来，丢失的计数是：",
    },
    predicted=0,
    measured=few - counted,
    unit=f"of {few}",
    verdict="confirmed" if counted == few else "refuted",
)

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
def passes(values):
    """Mean passes of a warp's atomic on shared counters, and requests to the most wanted sector of global ones.

    values: (warps, 32). Both in two ways: lanes that meet are merged, or each takes its turn.
    """
    hits = np.zeros(
        (len(values), 256), "int32"
    )  # of each warp: the lanes that want each counter
    np.add.at(hits, (np.arange(len(values))[:, None], values), 1)
    bank = hits.reshape(-1, 8, 32)  # counter 32 * k + b lies in bank b
    sector = hits.reshape(-1, 32, 8).sum(axis=2)  # 8 counters of 4 bytes
    return {
        "most different counters in a bank": float(
            (bank > 0).sum(axis=1).max(axis=1).mean()
        ),
        "most lanes in a bank": float(bank.sum(axis=1).max(axis=1).mean()),
        "sectors": float((sector > 0).sum(axis=1).mean()),
        "most wanted sector, a request per warp": float(
            (sector > 0).mean(axis=0).max()
        ),
        "most wanted sector, a request per lane": float(
            sector.mean(axis=0).max()
        ),
    }


sample = 32 * ct.size(20_000, 100)
expect = {
    name: passes(host[:sample].reshape(-1, 32)) for name, host in HOST.items()
}
for name, rows in expect.items():
    ct.facts(f"{name}: one atomic of a warp", rows)

# %% predict
bandwidth = ct.limits.bandwidth()
clock = gpu.clock_khz / 1e3  # cycles per us
atomics = n / 32  # of whole warps
shared_rate = gpu.sm_count * clock  # passes per us: one per cycle and SM
bytes_us = n / bandwidth / 1e3
rows = {
    "the bytes alone": (bytes_us, "us"),
    "private, any data": (max(bytes_us, atomics / shared_rate), "us"),
}
for name, each in expect.items():
    # A sector lives in one slice of L2; if that takes one request per cycle, the most wanted sector sets the pace.
    rows |= {
        f"shared, {name}: equal counters merged": (
            max(
                bytes_us,
                atomics
                * each["most different counters in a bank"]
                / shared_rate,
            ),
            "us",
        ),
        f"shared, {name}: lane by lane": (
            max(bytes_us, atomics * each["most lanes in a bank"] / shared_rate),
            "us",
        ),
        f"global, {name}: warp by warp": (
            round(
                atomics * each["most wanted sector, a request per warp"] / clock
            ),
            "us",
        ),
        f"global, {name}: lane by lane": (
            round(
                atomics * each["most wanted sector, a request per lane"] / clock
            ),
            "us",
        ),
    }
ct.facts("prediction", rows)

# %% compile
FILE = "reduction/histogram.cu"
WAYS = ("global", "shared", "private")
KERNELS = {
    way: ct.Kernel(FILE, f"histogram_{way}", defines={"BLOCK": BLOCK})
    for way in WAYS
}


def launcher(kernel, data):
    """A call that counts all of `data` into `.out`: the counters are zeroed, then the kernel runs, on a full GPU."""
    out = ct.empty(256, "uint32")
    grid = kernel.resources(BLOCK).blocks_per_sm * gpu.sm_count

    def run():
        cuda.memset_d32(out.gpudata, 0, 256)
        kernel(data, out, data.size, grid=grid, block=BLOCK)

    run.out = out
    return run


# %% check
for (
    name,
    host,
) in HOST.items():  # the contests below check what they have counted, too
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


# %% vendors
def bincount(data):
    """CuPy's bincount, as a user calls it."""
    cupy = ct.vendor.cupy()
    if cupy is None:
        return None
    array = cupy.asarray(data)
    return ct.vendor.Vendor(lambda: cupy.bincount(array, minlength=256))


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
bench = {}


def contest(name, ways=WAYS, vendors=("CUB", "CuPy bincount"), rounds=3):
    """Few rounds, since global counters take long; in each of them the fast ones run often."""
    runs = {way: launcher(KERNELS[way], DATA[name]) for way in ways}
    runs["shared, ATOMS.ADD"] = launcher(add, DATA[name])
    runs |= {
        vendor: run for vendor, run in RIVALS[name].items() if vendor in vendors
    }
    bench[name] = ct.bench(
        runs, bytes=n, name=f"histogram of {n} bytes, {name}", rounds=rounds
    )
    for way in (*ways, "shared, ATOMS.ADD"):
        ct.check(runs[way].out, EXPECTED[name], name=f"{way}, {name}")


contest("uniform")

# %% bench-one-hot
contest("one-hot")

# %% bench-one-bank
contest("one bank", ways=("shared", "private"), vendors=("CUB",), rounds=50)

# %% counters
METRICS = [
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum",
    "lts__t_sectors_op_red.sum",
]
# The first launches of these three kernels: those of the cell 'check'.
launches = profile_launches(
    "reduction/histogram",
    kernel="regex:histogram_(global|shared|private)",
    metrics=METRICS,
    launches=len(DATA) * len(WAYS),
)
atomics = profiled_n / 32  # of whole warps
counters = dict(zip([(name, way) for name in DATA for way in WAYS], launches))
for way in WAYS if counters else ():
    rows = {}
    for name, each in expect.items():
        wavefronts, sectors = (
            count / atomics for count in counters[name, way].values()
        )
        if way == "global":
            rows[f"{name}: sectors per atomic, predicted, merged"] = each[
                "sectors"
            ]
            rows[f"{name}: sectors per atomic, predicted, lane by lane"] = 32
            rows[f"{name}: sectors per atomic, measured"] = sectors
        elif way == "shared":
            merged, each_lane = (
                "most different counters in a bank",
                "most lanes in a bank",
            )
            rows[f"{name}: passes per atomic, predicted, merged"] = each[merged]
            rows[f"{name}: passes per atomic, predicted, lane by lane"] = each[
                each_lane
            ]
            rows[f"{name}: passes per atomic, measured"] = wavefronts
        else:
            rows[f"{name}: passes per atomic, predicted"] = 1
            rows[f"{name}: passes per atomic, measured"] = wavefronts
    ct.facts(f"{way}: counters", rows)
