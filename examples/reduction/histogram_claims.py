# ---
# jupyter:
#   cudatut:
#     title: {en: "The histogram: claims", zh: "直方图：有关说法"}
#     requires: sm_75
#     timeout_s: 60
#     alone: false
# ---

# %% [markdown]
# What other sources say of atomics and of barriers, tried.

# %% setup
import numpy as np
import cudatut as ct

FILE = "reduction/histogram_atomics.cu"

# %% exist-claim
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
table = ct.empty((4, 10), "int32")
ct.Kernel(FILE, "atomics_exist")(table, grid=1, block=1)
of_float = table.get().astype(bool)[2]  # int, unsigned, float, double
ct.claim(
    id="histogram-float-atomics",
    source="CS179 notes",
    statement={
        "en": "Add, Sub, Exch, Min, Max, Inc, Dec, And, Or and Xor all exist as atomic operations on float.",
        "zh": "Add、Sub、Exch、Min、Max、Inc、Dec、And、Or、Xor 这些原子操作都有 float 版本。",
    },
    predicted=len(OPERATIONS),
    measured=int(of_float.sum()),
    unit="operations",
    verdict="confirmed" if of_float.all() else "refuted",
)

# %% barrier-claim
few = 1 << 16
some = ct.to_device(ct.rng(0).integers(0, 256, few, dtype="uint8"))
counts = ct.to_device(np.zeros(256, "uint32"))
ct.Kernel(FILE, "count_barrier")(some, counts, few, grid=1, block=32)
counted = int(counts.get().sum())
ct.claim(
    id="histogram-barrier-is-enough",
    source="CS179 notes",
    statement={
        "en": "A block counts in shared memory, with barriers where necessary (atomics are not mentioned). "
        "Counts that are lost with barriers alone:",
        "zh": "线程块在共享内存里计数，必要时用栅栏（没有提到原子操作）。只用栅栏时丢失的计数：",
    },
    predicted=0,
    measured=few - counted,
    unit=f"of {few}",
    verdict="confirmed"
    if counted == few
    else "depends",  # on what else is done
)
