# ---
# jupyter:
#   cudatut:
#     title: {en: "Transpose: by the TMA", zh: "转置：用 TMA"}
#     requires: sm_90
#     timeout_s: 120
#     sizes:
#       n: [16_384, 192]
# ---

# %% [markdown]
# The TMA brings the tiles and takes them away. Is that faster? And what does it
# do with a row whose length is no multiple of 16 bytes?

# %% setup
import numpy as np

import cudatut as ct
from cudatut.book.primitives.transpose import launch

n = 16_384
T = "primitives/transpose"
KINDS = {"a tile per block": (1, 1, False), "a ring of tiles": (2, 2, True)}
NAMES = {
    name: f"transpose_tma<float,64,64,256,{stages},{going},false>"
    for name, (stages, going, _) in KINDS.items()
}
ct.compile_ahead([(f"{T}/tma.cu", name) for name in NAMES.values()])


def make(kind, x, out, group=launch.ALL):
    stages, going, walk = KINDS[kind]
    return launch.tma(
        x, out, group=group, stages=stages, going=going, walk=walk
    )


# %% check
for rows, columns in ((64, 64), (4, 7), (132, 33), (1000, 777), (2100, 3011)):
    for kind in KINDS:
        pitch = 4 * ct.cdiv(columns, 4)
        small = ct.rng(rows).random((rows, pitch), dtype="float32")
        wanted = np.full((columns, rows + 4), 7, "float32")
        a, b = ct.to_device(small), ct.to_device(wanted)
        make(kind, a[:, :columns], b[:, :rows], group=2)()
        wanted[:, :rows] = small[:, :columns].T
        ct.check(b, wanted, name=f"{kind}, {rows} x {columns}", rtol=0)

# %% [markdown]
# The launcher refuses rows of the output that are no multiple of 16 bytes. Here
# the kernel is launched without it. Before the launch all of `out` is 7.

# %% beyond
kernel = ct.Kernel(f"{T}/tma.cu", NAMES["a tile per block"])
beyond = {}
for width in (64, 63, 62, 61, 60, 33):
    small = ct.rng(width).random((width, 64), dtype="float32")
    a, b = ct.to_device(small), ct.to_device(np.full((64, 72), 7, "float32"))
    view = b[:, :width]
    maps = (ct.tensor_map(one, (64, 32), swizzle=128) for one in (a, view))
    kernel(
        *maps, width, 64, 1, grid=1, block=256, shared=2 * 64 * 64 * 4 + 1024
    )
    whole = b.get()
    ct.check(whole[:, :width], small.T, name=f"rows of {width}", rtol=0)
    changed = (whole[:, width:] != 7).any(axis=0).nonzero()[0]
    beyond[width] = {
        "to the next 16 bytes": -width % 4,
        "elements written beyond": len(changed),
    }
ct.table(
    "beyond the end of a row", beyond, corner="floats in a row of the output"
)

# %% bench
host = ct.rng(1).random((n, n), dtype="float32")
x, out = ct.to_device(host), ct.empty((n, n), "float32")
runs = {kind: make(kind, x, out) for kind in KINDS}
runs["a tile per block, along in"] = make("a tile per block", x, out, group=1)
runs["vectors, along out"] = launch.vectors(x, out)
runs["vectors"] = launch.vectors(x, out, group=1)
some = ct.rng(2).integers(0, n, 8)
for name, run in runs.items():
    ct.poison(out)
    run()
    got = np.stack([out[int(k)].get() for k in some])
    ct.check(got, host[:, some].T, name=name, rtol=0)
bench = ct.bench(
    runs | {"copy": ct.vendor.copy(out, x)},
    bytes=2 * x.nbytes,
    name=f"{n} x {n} float32, by the TMA",
)

# %% against-copy
if not ct.tool.running():
    ct.facts(
        "of the copy",
        {name: bench.ratio(name, "copy").median for name in runs},
    )
