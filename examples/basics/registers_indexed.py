# ---
# jupyter:
#   cudatut:
#     title: {en: "A local array, indexed by data or by constants", zh: "局部数组：下标来自数据，还是常量"}
#     requires: sm_75
#     timeout_s: 120
# ---

# %% [markdown]
# Registers have no addresses: an array whose index is known only at run time lives in memory.

# %% setup
import numpy as np
from machine_code import compile_report, sass

import cudatut as ct

FILE = "basics/registers.cu"
block, BINS = 256, 16
n, each = 100_000, 64  # threads (whole warps), values per thread
warps = n // 32
rng = ct.rng(0)
values = rng.integers(0, BINS, (each, n), dtype="int32")
x, out = ct.to_device(values), ct.empty((BINS, n), "int32")

indexed = ct.Kernel(FILE, "count_indexed")
unrolled = ct.Kernel(FILE, "count_unrolled")

# %% check
same = np.ascontiguousarray(np.repeat(values[:, ::32], 32, axis=1))  # a warp counts one value
same_x = ct.to_device(same)
for source, host in ((x, values), (same_x, same)):
    expected = np.stack([(host == k).sum(axis=0, dtype="int32") for k in range(BINS)])
    for kernel in (indexed, unrolled):
        for m in (n, 1, 31, 33):
            data = source if m == n else ct.to_device(np.ascontiguousarray(host[:, :m]))
            result = ct.empty((BINS, m), "int32")
            kernel(data, result, m, each, grid=ct.cdiv(m, block), block=block)
            name = f"{kernel.name}, {'random' if source is x else 'one value'}, n={m}"
            ct.check(result, expected[:, :m], name=name)

# %% compile
ct.show(indexed.resources(block))
ct.show(unrolled.resources(block))
ct.facts(
    "ptxas",
    {
        f"{kernel.name}: {what}": value
        for kernel in (indexed, unrolled)
        for what, value in vars(compile_report(FILE, kernel.name)).items()
    },
)

# %% sass
for i in sass(FILE, "count_indexed"):
    if i.op in ("LDL", "STL"):
        print(f"{i.address:04x}  {i.text}")


# %% predict
def sectors_of(values):
    """Sectors that a warp's access c[x] touches, over all warps and values.

    Word k of all lanes lies in one line of 128 bytes; eight neighboring lanes share a sector of it. So each
    different (value, group of eight lanes) is a sector of its own.
    """
    grouped = np.sort(values.reshape(each, n // 8, 8), axis=2)
    return int((1 + (np.diff(grouped, axis=2) != 0).sum(axis=2)).sum())


whole_array = 4 * BINS * warps  # sectors to write 16 zeros per lane, or to read 16 counts
random, one_value = sectors_of(values), sectors_of(same)
ct.facts(
    "prediction",
    {
        "accesses c[x]": each * warps,
        "sectors per access, random": random / (each * warps),
        "sectors per access, one value per warp": one_value / (each * warps),
        "sectors, loads": random + whole_array,
        "sectors, stores": random + whole_array,
    },
)


# %% bench
def run(kernel, source):
    return lambda: kernel(source, out, n, each, grid=ct.cdiv(n, block), block=block)


ct.bench(
    {
        "indexed, random": run(indexed, x),
        "indexed, one value per warp": run(indexed, same_x),
        "unrolled, random": run(unrolled, x),
        "unrolled, one value per warp": run(unrolled, same_x),
    },
    bytes=4 * (each + BINS) * n,
    name="16 counters per thread",
)

# %% counters
COUNTERS = [
    "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum",
]
ct.profile("basics/registers_indexed", "count_indexed", COUNTERS)
