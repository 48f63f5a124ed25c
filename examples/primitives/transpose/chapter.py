# ---
# jupyter:
#   cudatut:
#     title: {en: "Transpose", zh: "转置"}
#     requires: sm_75
#     timeout_s: 180
#     sizes:
#       n: [16_384, 96, 2_048]
# ---

# %% [markdown]
# A matrix of any size is turned through a tile in shared memory, which has one
# column more than it needs.

# %% program
import numpy as np

import cudatut as ct

rows, columns = 4_099, 3_001
host = ct.rng(0).random((rows, columns), dtype="float32")
x, out = ct.to_device(host), ct.empty((columns, rows), "float32")
sizes = (rows, columns, columns, rows)  # the last two: from row to row
naive = ct.Kernel("primitives/transpose/naive.cu", "transpose_naive<float>")
padded = ct.Kernel("primitives/transpose/tiled.cu", "transpose_padded<float>")


def by_rows():
    tiles = ct.cdiv(rows, 8) * ct.cdiv(columns, 32)
    naive(x, out, *sizes, grid=tiles, block=(32, 8))


def by_tiles():
    tiles = ct.cdiv(rows, 32) * ct.cdiv(columns, 32)
    padded(x, out, *sizes, grid=tiles, block=(32, 32))


for name, run in {"naive": by_rows, "padded": by_tiles}.items():
    ct.poison(out)
    run()
    ct.check(out, host.T, name=name, rtol=0)
both = ct.bench(
    {"naive": by_rows, "padded": by_tiles},
    bytes=2 * x.nbytes,
    name=f"{rows} x {columns}",
)
gain = both["naive"].median_us / both["padded"].median_us
ct.yours("primitives/transpose#program", {"naive / padded": (gain, "x")})

# %% [markdown]
# All rungs, on a matrix of a gigabyte. Each runs once, and some rows of its
# result are compared.

# %% setup
from cudatut.book.primitives.transpose import launch, model
from cudatut.book.rivals.torch_rival import rival

n = 16_384
T = "primitives/transpose"
SOURCES = {  # kernel, threads, bytes of dynamic shared memory
    "naive": (f"{T}/naive.cu", "transpose_naive<float>", 256, 0),
    "naive, reads columns": (
        f"{T}/naive.cu",
        "transpose_naive_columns<float>",
        256,
        0,
    ),
    "tiled": (f"{T}/tiled.cu", "transpose_tiled<float>", 1024, 0),
    "padded": (f"{T}/tiled.cu", "transpose_padded<float>", 1024, 0),
    "swizzled": (f"{T}/tiled.cu", "transpose_swizzled<float>", 1024, 0),
    "several": (
        f"{T}/several.cu",
        "transpose_several<float,32,32,256>",
        256,
        0,
    ),
    "vectors": (
        f"{T}/vectors.cu",
        "transpose_vectors<float,64,64,256,0>",
        256,
        64 * 64 * 4,
    ),
}
ct.compile_ahead([(file, name) for file, name, *_ in SOURCES.values()])
MAKE = {
    "naive": launch.naive,
    "naive, reads columns": lambda x, out: launch.naive(x, out, columns=True),
    "tiled": launch.tiled,
    "padded": lambda x, out: launch.tiled(x, out, "padded"),
    "swizzled": lambda x, out: launch.tiled(x, out, "swizzled"),
    "several": lambda x, out: launch.several(x, out, (32, 32), 256, group=1),
    "vectors": lambda x, out: launch.vectors(x, out, group=1),
    "vectors, along out": launch.vectors,
}
host = ct.rng(1).random((n, n), dtype="float32")
x, out = ct.to_device(host), ct.empty((n, n), "float32")
runs = {name: make(x, out) for name, make in MAKE.items()}

# %% first
for name, run in runs.items():
    ct.poison(out)
    run()
    some = ct.rng(2).integers(0, n, 8)
    got = np.stack([out[int(k)].get() for k in some])
    ct.check(got, host[:, some].T, name=name, rtol=0)

# %% [markdown]
# Matrices that no tile divides, with rows that lie apart: `vectors` wants them
# at multiples of 16 bytes. What lies between the rows has to stay 7.

# %% check
SHAPES = ((1, 1), (31, 33), (1, 257), (255, 1), (257, 255), (1000, 777))
for rows, columns in SHAPES:
    for name, make in MAKE.items():
        in_pitch, out_pitch = columns + 5, rows + 3
        if name.startswith("vectors"):
            in_pitch, out_pitch = (
                4 * ct.cdiv(p, 4) for p in (in_pitch, out_pitch)
            )
        small = ct.rng(rows).random((rows, in_pitch), dtype="float32")
        wanted = np.full((columns, out_pitch), 7, "float32")
        a, b = ct.to_device(small), ct.to_device(wanted)
        make(a[:, :columns], b[:, :rows])()
        wanted[:, :rows] = small[:, :columns].T
        ct.check(b, wanted, name=f"{name}, {rows} x {columns}", rtol=0)

# %% [markdown]
# Before the run: how many passes the port of an SM needs for 128 bytes of the
# matrix, the time of these at one pass in a cycle, and the bytes that all
# threads of an SM request before the first of them has come.

# %% predict
gpu = ct.device()
rows_of = {}
REQUESTS = {"several": 4 * 4, "vectors": 4 * 16}  # of a thread; else 4 bytes
for name, (file, kernel, threads, shared) in SOURCES.items():
    steps = model.per_line(name)
    cycles = sum(steps.values()) * n * n / 32 / gpu.sm_count
    found = ct.Kernel(file, kernel).resources(threads, shared)
    rows_of[name] = {
        "passes": sum(steps.values()),
        "time of the passes": cycles / (gpu.clock_khz / 1e3),
        "requested": found.blocks_per_sm
        * threads
        * REQUESTS.get(name, 4)
        / 1e3,
    }
ct.table(
    "prediction",
    rows_of,
    corner="rung",
    units={"time of the passes": "us", "requested": "kB"},
)

# %% bench
bench = ct.bench(
    runs
    | {
        "PyTorch": rival(
            lambda torch, x, out: lambda: out.copy_(x.t()), x, out
        ),
        "copy": ct.vendor.copy(out, x),
    },
    bytes=2 * x.nbytes,
    name=f"{n} x {n} float32",
)

# %% against-copy
if not ct.tool.running():
    ct.table(
        "beside the copy",
        {
            row.name: {
                "of the copy": bench.ratio(row.name, "copy").median,
                "predicted at most": min(
                    1.0,
                    bench["copy"].median_us
                    / rows_of[row.name]["time of the passes"],
                )
                if row.name in rows_of
                else None,
            }
            for row in bench.rows
            if row.name != "copy"
        },
        corner="rung",
    )

# %% goal
if not ct.tool.running():
    ct.goals(
        "transpose / copy",
        {f"{n} x {n}": bench.goal("vectors, along out", "copy", 0.95)},
    )

# %% [markdown]
# Nsight Compute counts passes and sectors, on a smaller matrix.

# %% count
ALL = "l1tex__data_pipe_lsu_wavefronts.sum"
LOADS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
STORES = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"
WRITTEN = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"
counted = ct.profile_launches(
    "primitives/transpose",
    kernel="regex:^transpose_.*$",
    metrics=[ALL, LOADS, STORES, WRITTEN],
    launches=len(MAKE),
    skip=4,  # the launches of the program
)
small = 2_048**2 // 32  # as in the header, in pieces of 128 bytes
if counted:
    ct.table(
        "counted for 128 bytes",
        {
            name: {
                "stores to the tile": of[STORES] / small,
                "loads from the tile": of[LOADS] / small,
                "all passes": of[ALL] / small,
                "predicted": rows_of[name]["passes"],
                "sectors written": of[WRITTEN] / small,
            }
            for name, of in zip(MAKE, counted)
            if name in rows_of
        },
        corner="rung",
    )
