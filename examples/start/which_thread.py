# ---
# jupyter:
#   cudatut:
#     title: {en: "Which thread am I", zh: "我是哪个线程"}
#     requires: sm_75
#     alone: false
#     timeout_s: 60
# ---

# %% [markdown]
# Every thread writes down its block, warp, lane and id; NumPy checks the formulas, and atomic tickets show the order.

# %% setup
import itertools

import numpy as np

import cudatut as ct

FILE = "start/which_thread.cu"
gpu = ct.device()

# %% predict
shapes = {"(64, 1, 1)": 64, "(8, 8, 1)": 64, "(33, 1, 1)": 33, "(12, 5, 1)": 60, "(5, 3, 3)": 45}
ct.facts("warps per block", {shape: ct.cdiv(threads, 32) for shape, threads in shapes.items()})
ct.facts("lanes without a thread", {shape: -threads % 32 for shape, threads in shapes.items()})

# %% one-dimension
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


for name, out in ids(128, grid=2, block=64).items():
    ct.check(out, expected_ids(128, 64)[name], name=name)
for n in ct.RAGGED:
    out = ids(n, grid=ct.cdiv(n, 64), block=64)
    together = np.stack([array.get() for array in out.values()])
    ct.check(together, np.stack(list(expected_ids(n, 64).values())), name=f"all five, n={n}")

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
    out = np.stack([array.get() for array in ids_2d(width, height, grid, block)])
    expected = np.stack(expected_ids_2d(width, height, grid, block))
    ct.check(out, expected, name=f"{width} x {height}, grid {grid}, block {block}")

# %% three-dimensions
what_is_my_id_3d = ct.Kernel(FILE, "what_is_my_id_3d")

for grid, block in (
    ((2, 1, 1), (33, 1, 1)),
    ((2, 3, 1), (12, 5, 1)),
    ((3, 2, 2), (8, 4, 2)),
    ((1, 2, 3), (5, 3, 3)),
    ((4, 1, 2), (1, 1, 64)),
):
    threads, blocks = int(np.prod(block)), int(np.prod(grid))
    linear, lane, leader = (ct.empty(blocks * threads, "int32") for _ in range(3))
    what_is_my_id_3d(linear, lane, leader, grid=grid, block=block)
    in_block = np.arange(blocks * threads) % threads
    ct.check(linear, np.arange(blocks * threads), name=f"id, grid {grid}, block {block}")
    ct.check(lane, in_block % 32, name=f"%laneid, block {block}")
    ct.check(leader, in_block // 32 * 32, name=f"thread in lane 0, block {block}")

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
ct.check(np.sort(orders, axis=1), np.tile(np.arange(blocks), (launches, 1)), name="each block once")
ct.facts(
    "order of the blocks",
    {
        "blocks": blocks,
        "launches": launches,
        "launches in order 0, 1, 2, ...": sum(bool((np.diff(o) == 1).all()) for o in orders),
        "different orders": len({o.tobytes() for o in orders}),
        "launch 0 begins": " ".join(map(str, orders[0][:8])),
        "launch 1 begins": " ".join(map(str, orders[1][:8])),
        "SMs of blocks 0, 1, 2, ...": " ".join(map(str, sms[0][:8])),
        "SMs used": len(np.unique(sms[0])),
    },
)

# %% warp-order
warp_arrival = ct.Kernel(FILE, "warp_arrival")
warps = gpu.max_threads_per_block // 32
order = ct.empty((blocks, warps), "int32")
warp_arrival(order, grid=blocks, block=32 * warps)
order = order.get()
ct.check(np.sort(order, axis=1), np.tile(np.arange(warps), (blocks, 1)), name="each warp once")
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

# %% pixel-or-thread
for grid, block in (((1, 4), (32, 4)), ((2, 4), (16, 4)), ((4, 4), (8, 4)), ((4, 4), (32, 1))):
    width, height = grid[0] * block[0], grid[1] * block[1]
    pixel, linear, *_ = (array.get() for array in ids_2d(width, height, grid, block))
    ct.facts(
        f"grid {grid}, block {block}",
        {"threads": pixel.size, "pixel differs from thread": int((pixel != linear).sum())},
    )

# %% when-they-agree
shapes = list(itertools.product(range(1, 4), repeat=4))  # gridDim.x, gridDim.y, blockDim.x, .y
agree = []
for gx, gy, bx, by in shapes:
    pixel, linear, *_ = (array.get() for array in ids_2d(gx * bx, gy * by, (gx, gy), (bx, by)))
    agree.append((pixel == linear).all())
rule = [gx == 1 or by == 1 for gx, gy, bx, by in shapes]
ct.check(
    np.array(agree, int), np.array(rule, int), name="agree = (gridDim.x == 1 or blockDim.y == 1)"
)

# %% swapped
for grid, block in ((2, 64), (64, 2)):
    out = ids(128, grid=grid, block=block)
    ct.check(out["global_id"], np.arange(128), name=f"global_id, grid={grid}, block={block}")
    blocks_and_warps = np.stack([out["block"].get(), out["warp"].get()])
    ct.facts(
        f"grid={grid}, block={block}",
        {
            "warps": np.unique(blocks_and_warps, axis=1).shape[1],
            "lanes in use": int(out["lane"].get().max()) + 1,
        },
    )
