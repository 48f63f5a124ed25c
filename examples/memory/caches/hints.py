# ---
# jupyter:
#   cudatut:
#     title: {en: "Caches: hints of a load", zh: "缓存：读取指令的提示"}
#     requires: sm_75
#     timeout_s: 60
#     sizes:
#       ring_kib: [16, 1]
#       stream_mib: [4, 0.01]
#       repeats: [11, 1]
# ---

# %% [markdown]
# What does a hint do? First a ring that fits into L1, walked twice by each kind of
# load: is it in L1 the second time? Then a ring that plain loads have brought into
# L1, and a stream of other data by each kind of load: is the ring still there?

# %% hints
import numpy as np

import cudatut as ct
from cudatut.book.memory.caches.staircase import (
    CG, CS, LINE, NO_ALLOCATE, PLAIN, SOURCE, Room, ring,
)  # fmt: skip

HINTS = {
    "plain load": PLAIN,
    "__ldcg": CG,
    "__ldcs": CS,
    "L1::no_allocate": NO_ALLOCATE,
}
ring_kib = 16
stream_mib = 4
repeats = 11
n = ring_kib * 1024 // LINE
room = Room(n * LINE)
room.link(16 * ring(n, ct.rng(0)))
host = ct.rng(1).integers(
    0, 1 << 32, int(stream_mib * (1 << 18)) // 4 * 4, dtype="uint32"
)
stream, vectors = ct.to_device(host), host.size // 4
sums, out = ct.empty(1024, "uint32"), ct.empty(2, "int64")


def after(hint, length):
    """Cycles of a load of the ring, after a stream of `length` vectors."""
    kernel = ct.Kernel(SOURCE, f"ring_after_stream<{hint}>")
    found = []
    for _ in range(repeats):
        kernel(room.first(), n, stream, length, sums, out, grid=1, block=1024)
        cycles, end = out.get()
        assert end == room.address(0)  # two rounds lead back to the first
        found.append(cycles / n)
    return float(np.median(found))


rows = {}
for name, hint in HINTS.items():
    walks = [room.walk(hint, n, n)[0] / n for _ in range(repeats)]
    rows[name] = {
        "second walk": float(np.median(walks)),
        "ring after such a stream": after(hint, vectors),
    }
    total = host.reshape(-1, 4).sum(axis=1, dtype="uint64")
    total = np.pad(total, (0, -total.size % 1024)).reshape(-1, 1024).sum(axis=0)
    ct.check(
        sums,
        (total % 2**32).astype("uint32"),
        name=f"sums of the stream, {name}",
    )
rows["control: no stream"] = {"ring after such a stream": after(PLAIN, 0)}

# %% table
cycles = ("second walk", "ring after such a stream")
ct.table(
    "hints, and what L1 keeps",
    rows,
    corner="load",
    units=dict.fromkeys(cycles, "cycles"),
)
