# ---
# jupyter:
#   cudatut:
#     title: {en: "Clusters and the last few per cent: what L2 and the clock have to do with it", zh: "线程块集群与最后几个百分点：L2 与时钟起了什么作用"}
#     requires: sm_90a
#     timeout_s: 240
#     sizes:
#       side: [8192, 512, 8192]
#       large: [16384, 1024]
#       VECTORS: [262144, 512, 262144]
# ---

# %% [markdown]
# Hopper has a unit between the SMs and the L2 cache that merges requests for the
# same line. NVIDIA calls it the L2 request coalescer. If it merges enough,
# blocks that run in step need no multicast. First the launches that the
# profiler counts. In a small kernel each block reads the same bytes: all of them
# from the first on, or each block from another place on. Then rungs of the
# ladder.

# %% setup
import ctypes
import os
import subprocess
from dataclasses import replace

import numpy as np

import cudatut as ct
from cudatut import processes
from cudatut.book.numbers.bf16 import to_float
from cudatut.book.tensor.ladder import faults, ladder
from cudatut.book.tensor.ladder.ladder import LADDER
from cudatut.gpu.device import installed_driver

SMS = ct.device().sm_count
VECTORS = 262144  # of 16 bytes, 4 MB: far less than the L2 cache holds
READ_ALL = """
extern "C" __global__ void read_all(const uint4* data, unsigned* sink,
                                    int count, int apart) {
  unsigned sum = 0;
  const int begin = blockIdx.x * apart;
  for (int i = threadIdx.x; i < count; i += blockDim.x) {
    const uint4 four = __ldcg(data + (begin + i) % count);
    sum += four.x + four.y + four.z + four.w;
  }
  sink[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
"""
read_all = ct.Kernel(READ_ALL, "read_all")
words = ct.rng(3).integers(0, 1 << 32, 4 * VECTORS, dtype="uint32")
data, sink = ct.to_device(words), ct.empty(SMS * 1024, "uint32")
PLACES = {"all from the first on": 0, "each from another on": VECTORS // SMS}


def variant(name, kernel):
    return replace(LADDER[name], kernel=kernel)


COUNTED = {
    "two_consumers": LADDER["two_consumers"],
    "persistent, 1 tile downwards": variant(
        "persistent", "gemm_persistent<4,1>"
    ),
    "persistent, 4 tiles downwards": variant(
        "persistent", "gemm_persistent<4,4>"
    ),
    "persistent, 16 tiles downwards": LADDER["persistent"],
    "clusters": LADDER["clusters"],
}
side = 8192


def random_bf16(rows, columns, seed):
    """Both signs, from 0.5 to 1: made quickly, of random bits."""
    bits = ct.rng(seed).integers(0, 1 << 16, (rows, columns), dtype="uint16")
    return bits & 0x807F | 0x3F00


host = random_bf16(side, side, 0), random_bf16(side, side, 1)
a, b = map(ct.to_device, host)
c = ct.empty((side, side), "uint16")

# %% counted
want = np.uint32(SMS * int(words.sum(dtype="uint64")) % (1 << 32))
for name, apart in PLACES.items():
    read_all(data, sink, VECTORS, apart, grid=SMS, block=1024)
    total = sink.get().sum(dtype="uint32")
    ct.check(np.array([total]), np.array([want]), name=name, rtol=0, atol=0)
rows = np.unique(ct.rng(2).integers(0, side, 8))
wanted = None  # of these rows
if ct.tool.running() != "ncu":
    wanted = to_float(host[0][rows]) @ to_float(host[1])
# One rounding to bf16, and what sums in fp32 lose.
BOUNDS = {"rtol": 1.02 * 2.0**-8, "atol": 0.05}


def checked(name, run):
    """Run it once into poisoned memory, and compare some rows."""
    ct.poison(c)
    run()
    if wanted is not None:
        ct.check(to_float(c.get()[rows]), wanted, name=name, **BOUNDS)


for name, rung in COUNTED.items():
    checked(name, ladder.launcher(rung, a, b, c))

# %% names
# Which of the coalescer's counters does this ncu know for this GPU?
WANTED = {
    "lrc__lts2lrc_sectors_op_read": "from L2 to the coalescer",
    "lrc__xbar2gpc_sectors_op_read": "on to the SMs",
}


def known_counters():
    """Names that begin with lrc__, as ncu lists them."""
    try:
        done = processes.run(["ncu", "--query-metrics"], 60, dict(os.environ))
    except (OSError, subprocess.TimeoutExpired):
        return []
    first = (line.split()[0] for line in done.stdout.splitlines() if line)
    return sorted({name for name in first if name.startswith("lrc__")})


lrc = [] if ct.tool.running() else known_counters()
if not ct.tool.running():
    some = [name for name in lrc if "sectors" in name]
    print(f"counters of the coalescer that ncu lists: {len(lrc)}")
    print("of sectors:", ", ".join(some) or "none")
chosen = [name for name in WANTED if name in lrc]

# %% traffic
# Predicted, if the unit merges what is asked for at nearly the same time: with
# all blocks from the first vector on, L2 delivers far less than is asked for,
# and with each from another on as much. For the rungs, what comes to the SMs is
# what they ask for; from L2 comes less, and in clusters hardly less than that.
MEMORY, L2 = "dram__bytes_read.sum", "lts__t_sectors_op_read.sum"
KERNELS = "read_all|gemm_(two_consumers|persistent|clusters)"
metrics = [MEMORY, L2, *(f"{name}.sum" for name in chosen)]
try:
    found = ct.profile_launches(
        "tensor/clusters_causes",
        kernel=f"regex:^({KERNELS})$",
        metrics=metrics,
        launches=len(PLACES) + len(COUNTED),
    )
except ct.ToolMissing as error:  # ncu lists them, and cannot count them here
    if not chosen:
        raise
    print(f"not counted: {', '.join(chosen)}: {str(error).splitlines()[0]}")
    chosen = []
    found = ct.profile_launches(
        "tensor/clusters_causes",
        kernel=f"regex:^({KERNELS})$",
        metrics=metrics[:2],
        launches=len(PLACES) + len(COUNTED),
    )
asked = dict.fromkeys(PLACES, SMS * VECTORS * 16)
for name in COUNTED:
    lines = 256 if name == "clusters" else 384  # that a block asks for itself
    asked[name] = side**2 // (128 * 256) * lines * side * 2
if found:
    columns = {MEMORY: ("from memory", 1), L2: ("from L2", 32)}
    columns |= {f"{name}.sum": (WANTED[name], 32) for name in chosen}
    table = {
        name: {"asked for": asked[name] / 1e9}
        | {
            label: size * counts[metric] / 1e9
            for metric, (label, size) in columns.items()
        }
        for name, counts in zip(asked, found)
    }
    shown = ("asked for", *(label for label, _ in columns.values()))
    ct.table(
        "read, by the counters of L2 and of what stands before it",
        table,
        corner="kernel",
        units=dict.fromkeys(shown, "GB"),
    )

# %% [markdown]
# What makes `persistent` faster than `two_consumers`? Between them stand the
# fourth stage, blocks that stay, and the order of tiles. Predicted at 8192: as
# the memory has time to spare, blocks that stay gain, the order does not; at
# 16384 it does.

# %% steps
STEPS = {
    "two_consumers": LADDER["two_consumers"],
    "four stages": variant("two_consumers", "gemm_two_consumers<4>"),
    "four stages, blocks stay": COUNTED["persistent, 1 tile downwards"],
    "four stages, blocks stay, order": LADDER["persistent"],
}
checked("four stages", ladder.launcher(STEPS["four stages"], a, b, c))
small = ct.bench(
    {name: ladder.launcher(rung, a, b, c) for name, rung in STEPS.items()},
    flops=2 * side**3,
    rounds=40,
    name="the steps to persistent, 8192 x 8192 x 8192",
)

# %% four
# Clusters of four blocks, 512 x 256 results: one word of the file differs. How
# many of them does the GPU hold at a time, and what is gained with as many?


class Attribute(ctypes.Structure):
    """CUlaunchAttribute with a cluster's extents."""

    _fields_ = [
        ("id", ctypes.c_int),
        ("pad", ctypes.c_char * 4),
        ("extents", ctypes.c_uint * 3),
        ("rest", ctypes.c_char * 52),
    ]


class Config(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = [
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(Attribute)),
        ("count", ctypes.c_uint),
    ]


def that_fit(kernel, blocks, shared):
    """Clusters that run at a time, by cuOccupancyMaxActiveClusters; None, after
    a note, where the driver does not say."""
    driver, module = installed_driver(), ctypes.c_void_p()
    function, count = ctypes.c_void_p(), ctypes.c_int(0)
    size = Attribute(4, b"", (ctypes.c_uint * 3)(blocks, 1, 1), b"")
    config = Config((1024 * blocks, 1, 1), (384, 1, 1), shared, None)
    config.attributes, config.count = ctypes.pointer(size), 1
    status = driver.cuModuleLoadData(ctypes.byref(module), kernel.cubin)
    name = kernel.symbol.encode()
    status = status or driver.cuModuleGetFunction(
        ctypes.byref(function), module, name
    )
    status = status or driver.cuFuncSetAttribute(function, 8, shared)
    status = status or driver.cuOccupancyMaxActiveClusters(
        ctypes.byref(count), function, ctypes.byref(config)
    )
    if status:
        print(f"clusters of {blocks}: the driver answers with error {status}")
    return None if status else count.value


def launched(kernel, blocks, clusters):
    """The rung `clusters` with clusters of so many blocks."""
    maps = [
        ct.tensor_map(a, (128, 64), swizzle=128),
        ct.tensor_map(b, (64, 64), swizzle=128),
    ]
    most = ct.cdiv(side, 128 * blocks) * ct.cdiv(side, 256)
    return lambda: kernel(
        *maps, c, side, side, side, grid=blocks * min(clusters, most),
        block=384, shared=SHARED,
    )  # fmt: skip


SHARED = 4 * (49152 + 16)
rung = LADDER["clusters"]
two, four = rung.compile(), faults.broken(rung, ("CLUSTER = 2", "CLUSTER = 4"))
fits = {blocks: that_fit(kernel, blocks, SHARED)
        for blocks, kernel in ((2, two), (4, four))}  # fmt: skip
runs = {"clusters of 2": launched(two, 2, SMS // 2)}
runs["clusters of 4, on nearly all SMs"] = launched(four, 4, SMS // 4 - 1)
if fits[4]:
    ct.facts(
        "clusters of the kernel that run at a time",
        {f"of {blocks}": count for blocks, count in fits.items() if count}
        | {"SMs without work with clusters of 4": SMS - 4 * fits[4]},
    )
    runs["clusters of 4, as many as fit"] = launched(four, 4, fits[4])
for name, run in runs.items():
    checked(name, run)
ct.bench(
    runs,
    flops=2 * side**3,
    rounds=25,
    name="clusters of two and of four, 8192 x 8192 x 8192",
)

# %% large
# The order of tiles alone at 16384; the same numbers, repeated.
large = 16384
times = large // side
del a, b, c, runs, run
a, b = (ct.to_device(np.tile(one, (times, times))) for one in host)
c = ct.empty((large, large), "uint16")
runs = {
    name: ladder.launcher(STEPS[name], a, b, c)
    for name in STEPS
    if name != "four stages"
}
for name, run in runs.items():
    ct.poison(c)
    run()
    if wanted is not None:  # twice the depth, so twice the sums
        got = to_float(c.get()[rows, :side])
        ct.check(got, times * wanted, name=f"{name}, {large}", **BOUNDS)
ct.bench(
    runs,
    flops=2 * large**3,
    rounds=11,
    name="the order of tiles, 16384 x 16384 x 16384",
)
