# ---
# jupyter:
#   cudatut:
#     title: {en: "Unified memory: solutions", zh: "统一内存：参考答案"}
#     requires: sm_75
#     timeout_s: 60
#     sizes:
#       allowed: [0, 1_000_000]
#       expected: [17, 32]
# ---

# %% [markdown] about
# A prefetch by the driver's own function; the order of pages that costs the most
# faults; and advice for an array that both read, and for one that crosses.

# %% given-1
from cuda.bindings import driver
from cudatut.book.memory.unified import touches
from cudatut.book.memory.unified.managed import told


# %% solution-1
def to_gpu(x):
    """Move all of x, x.nbytes bytes at x.ctypes.data, to GPU 0."""
    gpu = driver.CUmemLocation()
    gpu.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    gpu.id = 0
    (status,) = driver.cuMemPrefetchAsync(
        x.ctypes.data, x.nbytes, gpu, 0, driver.CUstream(0)
    )
    if status != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(status.name)


# %% check-1
import numpy as np

import cudatut as ct

allowed = 0  # slow touches
x = touches.blocks_of_2mb(4)
to_gpu(x)
ct.synchronize()
noted = told(x)["last prefetch"]
slow = touches.slow(touches.by_gpu(x, range(x.size // touches.WORDS)))
ct.check(np.array([slow <= allowed]), np.array([True]), name="no slow touches")
ct.check(np.array([noted == "GPU"]), np.array([True]), name="noted")

# %% given-2
from cudatut.book.memory.unified import touches
from cudatut.book.memory.unified.prefetcher import BIG, faults

# faults(pages): for each touch whether it faults; BIG: pages in 64 KB


# %% solution-2
def worst():
    """The numbers 0 to 31, in the order with the most faults."""
    # Half of each region and never more: nothing is prefetched. The next touch
    # makes it more than half everywhere, and the rest comes at once.
    return [*range(0, 32, 2), *range(1, 32, 2)]


# %% check-2
import numpy as np
from cudatut.book.memory.unified.managed import HOST, prefetch

import cudatut as ct

expected = 17
order = worst()
ct.check(np.array(sorted(order)), np.arange(32), name="all pieces")
pages = [BIG * piece for piece in order]
count = sum(faults(pages))
ct.check(np.array([count]), np.array([17]), name="faults by the rule")
x = touches.blocks_of_2mb(1)
prefetch(x, HOST)
ct.synchronize()
slow = touches.slow(touches.by_gpu(x, pages))
ct.facts("the order with the most faults", {"rule": count, "GPU": slow})
ct.check(
    np.array([slow]), np.array([17]), name="on the GPU", atol=expected - 17
)

# %% given-3
from cudatut.book.memory.unified import touches
from cudatut.book.memory.unified.managed import GPU, HOST, advise

SOURCE = """
__global__ void store(int *result, int pages) {
  int page = blockIdx.x * blockDim.x + threadIdx.x;
  if (page < pages) result[page * 1024] = page;
}
"""


# %% solution-3
def give_advice(table, result):
    """Advice after which neither side waits for pages."""
    advise(table, "READ_MOSTLY")
    advise(result, "PREFERRED_LOCATION", HOST)
    advise(result, "ACCESSED_BY", GPU)


# %% check-3
import numpy as np

import cudatut as ct

allowed = 0
store = ct.Kernel(SOURCE, "store")
table, result = touches.blocks_of_2mb(4), touches.blocks_of_2mb(4)
pages = range(table.size // touches.WORDS)
address = np.uint64(result.ctypes.data)
give_advice(table, result)
walks = {"table, GPU": [], "table, host": [], "result, host": []}
for _ in range(6):
    store(address, len(pages), grid=ct.cdiv(len(pages), 256), block=256)
    walks["table, GPU"].append(touches.by_gpu(table, pages))
    walks["table, host"].append(touches.by_host(table, pages))
    walks["result, host"].append(touches.by_host(result, pages))
# An interrupt of the host makes a touch slow, too. A page that has to move is
# slow in every round.
rows = {
    name: {
        "round 1": touches.slow(first),
        "fewest later": min(map(touches.slow, later)),
        "most later": max(map(touches.slow, later)),
        "the same page in all later": touches.slow_each_time(later),
    }
    for name, (first, *later) in walks.items()
}
ct.table("slow touches of 2048 pages", rows, corner="walk")
slow = sum(row["the same page in all later"] for row in rows.values())
ct.check(np.array([slow <= allowed]), np.array([True]), name="no slow touches")
