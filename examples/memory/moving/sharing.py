# ---
# jupyter:
#   cudatut:
#     title: {en: "Every way to move bytes: shared, not copied", zh: "传输数据的各种方法：共享而不复制"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       rounds: [101, 1]
#       sizes: [[4_096, 1_048_576, 268_435_456], [4_096]]
# ---

# %% [markdown]
# One array, three libraries. Each makes an array of its own of what PyCUDA has
# allocated, or of what another library has. Is it the same memory?

# %% libraries
import statistics
import time

import numpy as np
from cudatut.book.rivals.torch_rival import rival

import cudatut as ct

rounds = 101
x = ct.to_device(ct.rng(0).random(1_048_576, dtype="float32"))


def addresses(torch):
    """name -> (what makes an array, where that array lies, given where)."""
    cupy = ct.vendor.cupy()
    tensor = torch.as_tensor(x, device="cuda")
    of_cupy = cupy.asarray(x)

    def of_torch(made):
        return made.data_ptr()

    def of_array(made):
        return made.data.ptr

    return {
        "torch.as_tensor": (
            lambda: torch.as_tensor(x, device="cuda"),
            of_torch,
        ),
        "cupy.asarray": (lambda: cupy.asarray(x), of_array),
        "torch.from_dlpack": (lambda: torch.from_dlpack(of_cupy), of_torch),
        "cupy.from_dlpack": (lambda: cupy.from_dlpack(tensor), of_array),
        "control: cupy.array": (lambda: cupy.array(x), of_array),
    }


def prepare(torch):
    ways = addresses(torch)
    return lambda: ways


found = rival(prepare)
ways = found() if found else {}

# %% shared
rows = {}
for name, (make, where) in ways.items():
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        made = make()
        ct.synchronize()
        times.append(1e6 * (time.perf_counter() - begin))
    rows[name] = {
        "time": statistics.median(times),
        "same memory": where(made) == int(x.gpudata),
    }
if rows:
    ct.table(
        "4 MB, from one library to another",
        rows,
        corner="call",
        units={"time": "us"},
    )

# %% check
if ways:
    tensor = ways["torch.from_dlpack"][0]()
    tensor.fill_(3)  # PyTorch writes what PyCUDA has allocated
    ct.synchronize()
    ct.check(x, np.full(x.size, 3, "float32"), name="PyTorch wrote to it")

# %% [markdown]
# Memory has to come from somewhere first. What an allocation costs that is
# freed again: by the driver; from its pool, in the order of a stream; and from
# the pools of PyCUDA and PyTorch, which keep what was freed.

# %% allocating
import pycuda.driver as cuda
from cudatut.book.memory.graphs.calls import bindings, call, handle
from pycuda.tools import DeviceMemoryPool

sizes = (4_096, 1_048_576, 268_435_456)
stream = cuda.Stream()
pool = call("cuDeviceGetDefaultMemPool", call("cuDeviceGet", 0))
keeps = bindings().CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
own_pool = DeviceMemoryPool()


def keep(nbytes):
    """How much the driver's pool keeps when the GPU is idle."""
    call("cuMemPoolSetAttribute", pool, keeps, bindings().cuuint64_t(nbytes))


def by_driver(nbytes):
    cuda.mem_alloc(nbytes).free()


def in_stream_order(nbytes):
    memory = call("cuMemAllocAsync", nbytes, handle(stream))
    call("cuMemFreeAsync", memory, handle(stream))


def by_pycuda(nbytes):
    own_pool.allocate(nbytes).free()


def by_torch(torch):
    return lambda nbytes: torch.empty(nbytes, dtype=torch.uint8, device="cuda")


def median_us(allocate, nbytes):
    """Of an allocation that is freed, until the GPU is done with both."""
    times = []
    for turn in range(rounds // 5 + 1):
        begin = time.perf_counter()
        allocate(nbytes)
        cuda.Context.synchronize()
        if turn:
            times.append(1e6 * (time.perf_counter() - begin))
    return statistics.median(times or [0.0])


def medians(allocate):
    return {size: median_us(allocate, size) for size in sizes}


def prepare_torch(torch):
    allocate = by_torch(torch)
    allocate(4)
    return lambda: allocate


costs = {"cuMemAlloc": medians(by_driver)}
try:
    keep(0)
    costs["cuMemAllocAsync, nothing kept"] = medians(in_stream_order)
    keep(2**63)
    costs["cuMemAllocAsync, all kept"] = medians(in_stream_order)
finally:
    keep(0)  # as it was
    call("cuMemPoolTrimTo", pool, 0)
costs["PyCUDA's pool"] = medians(by_pycuda)
own_pool.free_held()
found = rival(prepare_torch)
if found:
    costs["PyTorch's pool"] = medians(found())

# %% costs
heads = dict(zip(sizes, ("4 KiB", "1 MiB", "268 MB")))
ct.table(
    "an allocation, and freed again",
    {
        name: {heads[size]: us for size, us in of_sizes.items()}
        for name, of_sizes in costs.items()
    },
    corner="from",
    units=dict.fromkeys(heads.values(), "us"),
)
