# ---
# jupyter:
#   cudatut:
#     title: {en: "OpenCL's indices in CUDA", zh: "用 CUDA 表示 OpenCL 的索引"}
#     requires: sm_75
#     alone: false
# ---

# %% [markdown]
# OpenCL's functions, written in CUDA, tell each thread what OpenCL's
# specification says. The model in NumPy knows nothing of blocks: only how many
# threads there are in each dimension, and the size of a work-group.

# %% indices
import numpy as np

import cudatut as ct

NAMES = (
    "get_group_id",
    "get_local_id",
    "get_local_size",
    "get_num_groups",
    "get_global_id",
    "get_global_size",
)


def specified(sizes, locals_):
    """By the specification: [function, dimension, thread]."""
    shape = sizes[::-1]  # dimension 0 runs fastest
    number = np.indices(shape).reshape(3, -1)[::-1]
    size, local = (np.array(v)[:, None] for v in (sizes, locals_))
    full = np.zeros_like(number)
    return np.stack(
        [
            number // local,
            number % local,
            full + local,
            full + size // local,
            number,
            full + size,
        ]
    ).astype("uint32")


told_by = ct.Kernel("memory/bindings/indices.cu", "told_by")
cases = {
    "one dimension": ((96, 1, 1), (32, 1, 1)),
    "two dimensions": ((24, 10, 1), (8, 2, 1)),
    "three dimensions": ((12, 10, 6), (4, 5, 2)),
}
rows = {name: {} for name in NAMES}
for case, (sizes, locals_) in cases.items():
    expected = specified(sizes, locals_)
    told = ct.empty(expected.shape, "uint32")
    # OpenCL is told how many threads there are, CUDA how many blocks.
    grid = tuple(size // local for size, local in zip(sizes, locals_))
    told_by(told, grid=grid, block=locals_)
    ct.check(told, expected, name=case)
    for name, found, model in zip(NAMES, told.get(), expected):
        rows[name][case] = bool((found == model).all())
ct.table("as the specification says", rows, corner="function")
