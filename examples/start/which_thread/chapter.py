# ---
# jupyter:
#   cudatut:
#     title: {en: "Which thread am I", zh: "我是哪个线程"}
#     requires: sm_75
#     alone: false
#     timeout_s: 120
#     sizes: {n: [1111111, 1111]}
# ---
# %% [markdown]
# Each thread computes which element is its own from its place in its block and the place of its block in the grid.
# The first program prints these numbers.

# %% program
import numpy as np
import pycuda.autoprimaryctx
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

module = SourceModule("""
__global__ void who_am_i(int *block, int *thread, int *element, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    block[i] = blockIdx.x;
    thread[i] = threadIdx.x;
    element[i] = i;
  }
}
""")
who_am_i = module.get_function("who_am_i")

length, threads = 10, 4
blocks = (length + threads - 1) // threads  # rounded up: 3
block, thread, element = np.zeros((3, length), np.int32)
arrays = cuda.Out(block), cuda.Out(thread), cuda.Out(element)
who_am_i(*arrays, np.int32(length), grid=(blocks, 1), block=(threads, 1, 1))

print("element  block  thread")
for row in zip(element, block, thread):
    print("{:7}  {:5}  {:6}".format(*row))

# %% [markdown]
# The vector addition of the last chapter, now with one thread for each element. The loop is gone.

# %% program-2
import numpy as np
import pycuda.autoprimaryctx
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

module = SourceModule("""
__global__ void add(const float *x, const float *y, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
""")
add = module.get_function("add")

n = 1_111_111
rng = np.random.default_rng(0)
x = rng.random(n, dtype=np.float32)
y = rng.random(n, dtype=np.float32)
out = np.zeros_like(x)

threads = 256
blocks = (n + threads - 1) // threads
arguments = cuda.In(x), cuda.In(y), cuda.Out(out), np.int32(n)
add(*arguments, grid=(blocks, 1), block=(threads, 1, 1))

print(blocks, "blocks of", threads, "threads")
print(np.array_equal(out, x + y))

# %% [markdown]
# The same launch with the number of blocks rounded down. The last elements are missing, and nothing reports it.

# %% rounded-down
out[:] = 0
arguments = cuda.In(x), cuda.In(y), cuda.InOut(out), np.int32(n)
blocks = n // threads
add(*arguments, grid=(blocks, 1), block=(threads, 1, 1))
print(np.count_nonzero(out != x + y), "elements are wrong")

# %% [markdown]
# Answers to 'Try it': other sizes of a block, and the most threads that a block may have.

# %% try-1
for threads in (8, 3):
    blocks = (length + threads - 1) // threads
    idle = blocks * threads - length
    print(
        threads, "threads:", blocks, "blocks,", idle, "threads without element"
    )

# %% try-2
out[:] = 0
add(*arguments, grid=(n, 1), block=(1, 1, 1))
print(np.array_equal(out, x + y))

# %% try-3
try:
    add(*arguments, grid=(1, 1), block=(1025, 1, 1))
except cuda.LogicError as error:
    print("LogicError:", error)

# %% [markdown]
# The book's own checks. Each thread also writes its warp and its lane, and NumPy compares all numbers at several lengths.

# %% check-ids
import itertools

import cudatut as ct

FILE = "start/which_thread/which_thread.cu"
gpu = ct.device()
what_is_my_id = ct.Kernel(FILE, "what_is_my_id")
NAMES = ("block", "thread", "warp", "lane", "global_id")


def ids(n, grid, block):
    """What each of the n elements' threads wrote: one array per name."""
    out = {name: ct.empty(n, "int32") for name in NAMES}
    what_is_my_id(*out.values(), n, grid=grid, block=block)
    return out


def expected_ids(n, block):
    i = np.arange(n)
    thread = i % block
    return {
        "block": i // block,
        "thread": thread,
        "warp": thread // 32,
        "lane": thread % 32,
        "global_id": i,
    }


for length in ct.RAGGED:
    written = ids(length, grid=ct.cdiv(length, 64), block=64)
    together = np.stack([array.get() for array in written.values()])
    wanted = np.stack(list(expected_ids(length, 64).values()))
    ct.check(together, wanted, name=f"all five numbers, n = {length}")

# %% [markdown]
# The largest block and the largest grid, and what happens beyond them.

# %% limits
arrays = [ct.empty(1, "int32") for _ in NAMES]


def refusal(grid, block):
    """Name of the error that the launch raises, or 'none'. Every launch below is over a limit."""
    try:
        what_is_my_id(*arrays, 1, grid=grid, block=block)
    except ct.LaunchError as error:
        return type(error).__name__
    return "none"


ct.facts(
    "limits",
    {
        "blockDim.x": gpu.max_block[0],
        "blockDim.y": gpu.max_block[1],
        "blockDim.z": gpu.max_block[2],
        "threads per block": gpu.max_threads_per_block,
        "gridDim.x": gpu.max_grid[0],
        "gridDim.y": gpu.max_grid[1],
        "gridDim.z": gpu.max_grid[2],
        "block (1, 1, 65)": refusal(1, (1, 1, 65)),
        "block (32, 32, 2)": refusal(1, (32, 32, 2)),
        "grid (1, 65536)": refusal((1, 65536), 64),
    },
)

# %% [markdown]
# The order of the blocks: the first thread of each block draws a ticket from a counter that all blocks share.

# %% arrival
arrival = ct.Kernel(FILE, "arrival")
blocks, launches = 4 * gpu.sm_count, 20
orders, sms = [], []
for _ in range(launches):
    counter = ct.to_device(np.zeros(1, "int32"))
    order, sm = ct.empty(blocks, "int32"), ct.empty(blocks, "int32")
    arrival(counter, order, sm, grid=blocks, block=64)
    orders.append(order.get())
    sms.append(sm.get())
each_once = np.tile(np.arange(blocks), (launches, 1))
ct.check(np.sort(orders, axis=1), each_once, name="each block once")
ct.facts(
    "order of the blocks",
    {
        "blocks": blocks,
        "launches": launches,
        "launches in order 0, 1, 2, ...": sum(
            bool((np.diff(o) == 1).all()) for o in orders
        ),
        "different orders": len({o.tobytes() for o in orders}),
        "launch 0 begins": " ".join(map(str, orders[0][:8])),
        "launch 1 begins": " ".join(map(str, orders[1][:8])),
        "SMs used": len(np.unique(sms[0])),
    },
)

# %% [markdown]
# The order of the warps within a block, in the same way.

# %% warp-order
warp_arrival = ct.Kernel(FILE, "warp_arrival")
warps = gpu.max_threads_per_block // 32
order = ct.empty((blocks, warps), "int32")
warp_arrival(order, grid=blocks, block=32 * warps)
order = order.get()
each_once = np.tile(np.arange(warps), (blocks, 1))
ct.check(np.sort(order, axis=1), each_once, name="each warp once")
in_order = (order == np.arange(warps)).all(axis=1)
ct.facts(
    "order of the warps",
    {
        "blocks": blocks,
        "warps per block": warps,
        "blocks in order 0, 1, 2, ...": int(in_order.sum()),
        "block 0 begins": " ".join(map(str, order[0][:8])),
        "block 1 begins": " ".join(map(str, order[1][:8])),
    },
)

# %% [markdown]
# Two dimensions: the index of a pixel and the number of a thread, for several shapes.

# %% two-dimensions
what_is_my_id_2d = ct.Kernel(FILE, "what_is_my_id_2d")


def ids_2d(width, height, grid, block):
    """pixel, linear, warp, lane: arrays of shape (height, width)."""
    out = [ct.empty((height, width), "int32") for _ in range(4)]
    what_is_my_id_2d(*out, width, height, grid=grid, block=block)
    return out


def expected_ids_2d(width, height, grid, block):
    y, x = np.indices((height, width))
    in_block = y % block[1] * block[0] + x % block[0]
    number = y // block[1] * grid[0] + x // block[0]
    linear = number * block[0] * block[1] + in_block
    return y * width + x, linear, in_block // 32, in_block % 32


for (width, height), block in (
    ((32, 16), (32, 4)),
    ((1, 1), (32, 4)),
    ((31, 33), (16, 8)),
    ((33, 31), (8, 8)),
    ((1111, 1001), (32, 4)),
):
    grid = ct.cdiv(width, block[0]), ct.cdiv(height, block[1])
    written = np.stack(
        [array.get() for array in ids_2d(width, height, grid, block)]
    )
    expected = np.stack(expected_ids_2d(width, height, grid, block))
    ct.check(
        written,
        expected,
        name=f"{width} x {height}, grid {grid}, block {block}",
    )

# %% [markdown]
# Three dimensions: the number of a thread by formula, beside the warp and the lane that the hardware gives it.

# %% three-dimensions
what_is_my_id_3d = ct.Kernel(FILE, "what_is_my_id_3d")


def digits(number, shape):
    """z, y and x of a place in a box of this shape, as zzyyxx."""
    z, y, x = np.unravel_index(number, shape[::-1])
    return (100 * z + y) * 100 + x


for grid, block in (
    ((2, 1, 1), (33, 1, 1)),
    ((2, 3, 1), (12, 5, 1)),
    ((3, 2, 2), (8, 4, 2)),
    ((1, 2, 3), (5, 3, 3)),
    ((4, 1, 2), (1, 1, 64)),
):
    per_block, blocks = int(np.prod(block)), int(np.prod(grid))
    block_at, thread_at, lane, leader = (
        ct.empty(blocks * per_block, "int32") for _ in range(4)
    )
    arrays = block_at, thread_at, lane, leader
    what_is_my_id_3d(*arrays, grid=grid, block=block)
    everyone = np.arange(blocks * per_block)
    in_block = everyone % per_block
    # Place i belongs to the thread of this block, with these z, y and x.
    coordinates = digits(everyone // per_block, grid), digits(in_block, block)
    ct.check(
        np.stack([block_at.get(), thread_at.get()]),
        np.stack(coordinates),
        name=f"thread number, grid {grid}, block {block}",
    )
    ct.check(lane, in_block % 32, name=f"lane of the hardware, block {block}")
    ct.check(
        leader, in_block // 32 * 32, name=f"thread in lane 0, block {block}"
    )

# %% [markdown]
# When is the index of a pixel the same as the number of its thread?

# %% pixel-or-thread
differ = {}
for grid, block in (
    ((1, 4), (32, 4)),
    ((2, 4), (16, 4)),
    ((4, 4), (8, 4)),
    ((4, 4), (32, 1)),
):
    width, height = grid[0] * block[0], grid[1] * block[1]
    pixel, linear, *_ = (
        array.get() for array in ids_2d(width, height, grid, block)
    )
    differ[f"grid {grid}, block {block}"] = {
        "threads": pixel.size,
        "differ": int((pixel != linear).sum()),
    }
ct.table("pixel index and thread number", differ, corner="launch")

# %% when-they-agree
# The extents of grid and block, each from 1 to 3.
shapes = list(itertools.product(range(1, 4), repeat=4))
agree = []
for gx, gy, bx, by in shapes:
    numbers = ids_2d(gx * bx, gy * by, (gx, gy), (bx, by))
    pixel, linear, *_ = (array.get() for array in numbers)
    agree.append((pixel == linear).all())
rule = [gx == 1 or by == 1 for gx, gy, bx, by in shapes]
ct.check(
    np.array(agree, int),
    np.array(rule, int),
    name="equal if gridDim.x == 1 or blockDim.y == 1",
)

# %% [markdown]
# Grid and block swapped: the same ids, but in many small blocks.

# %% swapped
launches = {}
for grid, block in ((2, 64), (64, 2)):
    written = ids(128, grid=grid, block=block)
    ct.check(
        written["global_id"],
        np.arange(128),
        name=f"global_id, grid={grid}, block={block}",
    )
    blocks_and_warps = np.stack([written["block"].get(), written["warp"].get()])
    launches[f"grid={grid}, block={block}"] = {
        "warps": np.unique(blocks_and_warps, axis=1).shape[1],
        "lanes in use": int(written["lane"].get().max()) + 1,
    }
ct.table("grid and block swapped", launches, corner="launch")
