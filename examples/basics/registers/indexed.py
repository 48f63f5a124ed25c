# ---
# jupyter:
#   cudatut:
#     title: {en: "An array of a thread, indexed by data or by constants", zh: "线程的数组：下标来自数据，还是常量"}
#     requires: sm_75
#     timeout_s: 120
# ---

# %% [markdown] about
# A register has no address. An array whose index is known only at run time lies
# in memory, even if there are enough registers.

# %% setup
import numpy as np

import cudatut as ct

FILE = "basics/registers/registers.cu"
BINS, block = 16, 256
n, each = 100_000, 64  # threads (whole warps), values per thread
values = ct.rng(0).integers(0, BINS, (each, n), dtype="int32")
# The same with one value for all lanes of a warp.
same = np.ascontiguousarray(np.repeat(values[:, ::32], 32, axis=1))
DATA = {"random": values, "one value per warp": same}
on_gpu = {name: ct.to_device(host) for name, host in DATA.items()}
out = ct.empty((BINS, n), "int32")

KERNELS = {
    name: ct.Kernel(FILE, name) for name in ("count_indexed", "count_unrolled")
}

# %% check-counts
for data, host in DATA.items():
    expected = np.stack([(host == k).sum(axis=0) for k in range(BINS)])
    expected = expected.astype("int32")
    for name, kernel in KERNELS.items():
        for m in (n, 1, 31, 33):
            x = ct.to_device(np.ascontiguousarray(host[:, :m]))
            result = ct.empty((BINS, m), "int32")
            kernel(x, result, m, each, grid=ct.cdiv(m, block), block=block)
            label = f"{name}, {data}, n = {m}"
            ct.check(result, expected[:, :m], name=label)

# %% sass
from cudatut.book.measure.machine_code import compile_report, sass

for i in sass(FILE, "count_indexed"):
    if i.op in ("LDL", "STL"):
        print(f"{i.address:04x}  {i.text}")


# %% predict
def sectors_of(host):
    """Sectors that the accesses c[x] of all warps touch.

    Word k of all lanes lies in one line of 128 bytes; eight neighboring lanes
    share a sector of it. Each different value among eight lanes is a sector.
    """
    grouped = np.sort(host.reshape(each, n // 8, 8), axis=2)
    return int((1 + (np.diff(grouped, axis=2) != 0).sum(axis=2)).sum())


warps = n // 32
accesses = each * warps
whole = 4 * BINS * warps  # sectors to read 16 counts of every lane
touched = {name: sectors_of(host) for name, host in DATA.items()}
ct.facts(
    "Sectors of one access c[x]",
    {name: count / accesses for name, count in touched.items()},
)


# %% bench
def run(name, data):
    grid = ct.cdiv(n, block)
    return lambda: KERNELS[name](
        on_gpu[data], out, n, each, grid=grid, block=block
    )


times = ct.bench(
    {f"{name}, {data}": run(name, data) for name in KERNELS for data in DATA},
    bytes=4 * (each + BINS) * n,
    name="16 counters per thread",
)

# %% indexed
reports = {name: compile_report(FILE, name) for name in KERNELS}
ct.table(
    "Counters per thread",
    {
        name: {
            "registers": kernel.resources(block).registers,
            "local memory": kernel.resources(block).spill_bytes,
            "spilled": reports[name].spill_stores,
            **{data: times[f"{name}, {data}"].median_us for data in DATA},
        }
        for name, kernel in KERNELS.items()
    },
    corner="kernel",
    units={"local memory": "B", "spilled": "B"} | dict.fromkeys(DATA, "us"),
)

# %% counters

LOADS = "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum"
counted = ct.profile_launches(
    "basics/registers_indexed",
    kernel="count_indexed",
    metrics=[LOADS],
    launches=1,
)
if counted:
    ct.facts(
        "Sectors of local loads, random values",
        {
            "predicted": touched["random"] + whole,
            "counted": counted[0][LOADS],
        },
    )
