# ---
# jupyter:
#   cudatut:
#     title: {en: "Knowing your GPU", zh: "认识你的 GPU"}
#     requires: sm_75
#     timeout_s: 180
#     sizes:
#       parts: [[0.25, 0.5, 1, 2, 16], [0.1, 0.2]]
#       budget: [4000000000, 2000000]
#       n: [134217728, 16384]
#       moved: [8388608, 8192]
#       reads: [4294967296, 4194304]
#       shares: [[0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 4], [0.1, 0.2]]
#       many: [1111111, 70001]
# ---
# %% [markdown]
# What the driver says about this GPU, and two peak rates that follow from it.

# %% program
import pycuda.autoprimaryctx
import pycuda.driver as cuda

gpu = cuda.Context.get_device()
major, minor = gpu.compute_capability()
sms = gpu.multiprocessor_count
units = 64 if (major, minor) in [(7, 0), (7, 5), (8, 0)] else 128
clock = gpu.clock_rate * 1e3  # the driver counts in kHz
memory_clock = gpu.memory_clock_rate * 1e3
bus = gpu.global_memory_bus_width / 8  # the driver counts in bits
peak_gb = 2 * memory_clock * bus / 1e9
peak_tflop = 2 * clock * sms * units / 1e12

print(gpu.name(), f"compute capability {major}.{minor}")
print(f"multiprocessors  {sms:8}")
print(f"memory           {gpu.total_memory() / 2**30:8.1f} GiB")
print(f"L2 cache         {gpu.l2_cache_size / 2**20:8.1f} MiB")
print(f"clock            {clock / 1e9:8.2f} GHz")
print(f"peak bandwidth   {peak_gb:8.1f} GB/s")
print(f"peak arithmetic  {peak_tflop:8.1f} TFLOP/s")

# %% [markdown]
# What the memory delivers: a copy, then a kernel that reads arrays of several sizes again and again.

# %% program-2
import numpy as np
import pycuda.autoprimaryctx
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

read_again = SourceModule("""
__global__ void read_again(const float *x, float *out, int n, int passes) {
  size_t stride = (size_t)gridDim.x * blockDim.x;
  float sum = 0.0f;
  for (int pass = 0; pass < passes; ++pass) {
    size_t block = (blockIdx.x + pass) % gridDim.x;  // another in each pass
    for (size_t i = block * blockDim.x + threadIdx.x; i < n; i += stride)
      sum += x[i];
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
""").get_function("read_again")

gpu = cuda.Context.get_device()
l2, sms = gpu.l2_cache_size, gpu.multiprocessor_count
blocks = sms * gpu.max_threads_per_multiprocessor // 256
shape = {"grid": (blocks, 1), "block": (256, 1, 1)}
parts = (0.25, 0.5, 1, 2, 16)  # sizes of the array, in units of the L2 cache
budget = 4_000_000_000  # bytes to read for each size
count = int(max(parts) * l2) // 4
x = np.random.default_rng(1).random(count, dtype=np.float32)
source, target = cuda.to_device(x), cuda.mem_alloc(x.nbytes)


def rate(nbytes, call, *args):
    """GB/s by events, the median of five after a warm-up run."""
    times = []
    for _ in range(6):
        start, stop = cuda.Event(), cuda.Event()
        start.record()
        call(*args)
        stop.record()
        stop.synchronize()
        times.append(start.time_till(stop))
    return nbytes / np.median(times[1:]) / 1e6


def read(n, passes):
    read_again(source, target, np.int32(n), np.int32(passes), **shape)


# A copy reads every byte and writes it, so it moves each twice.
copied = rate(2 * x.nbytes, cuda.memcpy_dtod, target, source, x.nbytes)
print(f"copy             {copied:7.1f} GB/s")
rates = {}
for part in parts:
    n = int(part * l2) // 4
    passes = max(1, budget // (4 * n))
    rates[part] = rate(4 * n * passes, read, n, passes)
    print(f"read {part:5.2f} x L2  {rates[part]:7.1f} GB/s")
peak = 2e-6 * gpu.memory_clock_rate * gpu.global_memory_bus_width / 8  # GB/s
print(f"copy / peak bandwidth      {copied / peak:.2f}")
print(f"half of L2 / largest array {rates[parts[1]] / rates[parts[-1]]:.2f}")

# %% [markdown]
# Answers to 'Try it': two of the limits of a launch, and the same reading by one block for each multiprocessor.

# %% try-1
print("threads in a block:", gpu.max_threads_per_block)
print("blocks in a grid:  ", gpu.max_grid_dim_x)

# %% try-2
shape = {"grid": (sms, 1), "block": (256, 1, 1)}
print(
    f"read {max(parts):5.2f} x L2  {rate(x.nbytes, read, count, 1):7.1f} GB/s"
)

# %% [markdown]
# The results that the text uses, each computed once; then checks of the program's kernel.

# %% check-rates
import cudatut as ct

half, largest = sorted(parts)[1], max(parts)
ct.facts(
    "measured by the programs",
    {
        "copy, of the peak": (100 * copied / peak_gb, "%"),
        "half of L2 / 16 x L2": rates[half] / rates[largest],
    },
)

# %% check-read
shape = {"grid": (blocks, 1), "block": (256, 1, 1)}
for m in ct.RAGGED:
    values = ct.rng(m).random(m, dtype="float32")
    on_gpu, sums = ct.to_device(values), ct.empty(256 * blocks, "float32")
    read_again(on_gpu, sums, np.int32(m), np.int32(3), **shape)
    steps = ct.cdiv(m, sums.size)
    padded = np.zeros(steps * sums.size)
    padded[:m] = values
    slices = padded.reshape(steps, blocks, 256).sum(axis=0)
    # In pass p, block b reads what block b + p reads in pass 0.
    expected = sum(np.roll(slices, -p, axis=0) for p in range(3))
    ct.check(sums, expected.reshape(-1), name=f"n = {m}")

# %% [markdown]
# All that this page says about the GPU that recorded it, and the limits of a launch.

# %% query
device = ct.device()
ct.facts(
    "device",
    {
        "name": device.name,
        "compute capability": "{}.{}".format(*device.compute_capability),
        "sm_count": device.sm_count,
        "memory": (device.memory_bytes / 2**30, "GiB"),
        "l2": (device.l2_bytes / 2**20, "MiB"),
        "clock": (device.clock_khz / 1e6, "GHz"),
        "memory clock": (device.memory_clock_khz / 1e6, "GHz"),
        "bus": (device.bus_bits, "bit"),
        "attributes in all": len(ct.attributes()),
    },
)

# %% limits
ct.facts(
    "limits",
    {
        "max_threads_per_block": device.max_threads_per_block,
        "max_block.x": device.max_block[0],
        "max_block.y": device.max_block[1],
        "max_block.z": device.max_block[2],
        "max_grid.x": device.max_grid[0],
        "max_grid.y": device.max_grid[1],
        "max_grid.z": device.max_grid[2],
        "max_threads_per_sm": device.max_threads_per_sm,
        "max_blocks_per_sm": device.max_blocks_per_sm,
        "registers_per_sm": device.registers_per_sm,
        "shared_per_sm": (device.shared_per_sm // 1024, "KiB"),
        "shared_per_block": (device.shared_per_block // 1024, "KiB"),
        "shared_per_block_optin": (
            device.shared_per_block_optin // 1024,
            "KiB",
        ),
    },
)

# %% [markdown]
# The peaks once more, beside what the book's probes measure: kernels that only read or copy, and one of FMAs only.

# %% theory
ct.facts(
    "theory",
    {
        "bandwidth": (peak_gb, "GB/s"),
        "units per SM": units,
        "fma": (peak_tflop, "TFLOP/s"),
    },
)

# %% measured
ct.facts(
    "measured",
    {
        "bandwidth": (ct.limits.bandwidth(), "GB/s"),
        "of theory": (100 * ct.limits.bandwidth() / peak_gb, "%"),
        "fma": (ct.limits.fma(), "TFLOP/s"),
        "fma of theory": (100 * ct.limits.fma() / peak_tflop, "%"),
    },
)

# %% [markdown]
# Copies with 4, 16 and 64 bytes per thread.

# %% compile
copy_4 = ct.Kernel("start/your_gpu/your_gpu.cu", "copy")
wide = ct.Kernel("start/your_gpu/your_gpu.cu", "copy_wide")
wide4 = ct.Kernel(
    "start/your_gpu/your_gpu.cu", "copy_wide", defines={"LOADS": 4}
)


def launcher(kernel, per_thread):
    return lambda s, d, n: kernel(
        s, d, n, grid=ct.cdiv(n, 256 * per_thread), block=256
    )


copies = {
    "4 B": launcher(copy_4, 1),
    "16 B": launcher(wide, 4),
    "4 x 16 B": launcher(wide4, 16),
}

# %% check
for n in ct.RAGGED:
    words = ct.rng(n).integers(0, 2**32, n, dtype="uint32")
    src, dst = ct.to_device(words), ct.empty(n, "uint32")
    for name, run in copies.items():
        ct.poison(dst)
        run(src, dst, n)
        ct.check(dst, words, name=f"{name}, n = {n}")

# %% copy
n = 134_217_728  # 512 MiB in, 512 MiB out
words = ct.rng(1).integers(0, 2**32, n, dtype="uint32")
src, dst = ct.to_device(words), ct.empty(n, "uint32")
contestants = {
    name: lambda run=run: run(src, dst, n) for name, run in copies.items()
}
last = min(n, 2**20)  # of the large array the CPU compares the end
for name, launch in contestants.items():
    ct.poison(dst)
    launch()
    ct.check(dst[n - last :], words[n - last :], name=f"{name}, end of {n}")
ct.bench(
    {**contestants, "vendor": ct.vendor.copy(dst, src)},
    bytes=2 * src.nbytes,
    name="copy within the GPU, bytes per thread",
)

# %% [markdown]
# The L2 cache again, with loads of 16 bytes that go past the L1 cache, at more sizes.

# %% l2
read_wide = ct.Kernel("start/your_gpu/your_gpu.cu", "read_again")
block = 512
blocks = device.max_threads_per_sm // block * device.sm_count  # all resident
sweep = 16 * block * blocks  # bytes in one step of the grid
shares = (0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 4)
reads = 4_294_967_296
sizes = {
    f"{part:g} x L2": max(1, round(part * device.l2_bytes / sweep)) * sweep
    for part in shares
}
passes = {name: max(1, reads // size) for name, size in sizes.items()}
words = ct.rng(2).integers(0, 2**32, max(sizes.values()) // 4, dtype="uint32")
array, total = ct.to_device(words), ct.to_device(np.zeros(1, "uint32"))


def reading(name):
    vectors = sizes[name] // 16
    return lambda: read_wide(
        array, total, vectors, passes[name], grid=blocks, block=block
    )


ct.bench(
    {name: reading(name) for name in sizes},
    bytes={name: passes[name] * size for name, size in sizes.items()},
    name="reading again and again",
    rounds=20,
)

# %% l2-check
for name in (list(sizes)[1], list(sizes)[-1]):
    cuda.memset_d32(total.gpudata, 0, 1)
    reading(name)()
    once = int(words[: sizes[name] // 4].sum(dtype="uint64"))
    ct.check(
        total,
        np.array([passes[name] * once % 2**32]),
        name=f"sum of all reads, {name}",
    )

# %% [markdown]
# Copies between host and GPU, from ordinary and from page-locked memory.

# %% host
moved = 8_388_608  # 8-byte words: 64 MiB
pageable = ct.rng(3).integers(0, 2**63, moved, dtype="uint64")
pinned = cuda.pagelocked_empty(moved, np.uint64)
back = cuda.pagelocked_empty(moved, np.uint64)
pinned[:] = pageable[::-1]
on_gpu = ct.empty(moved, "uint64")
for name, source in {"pageable": pageable, "pinned": pinned}.items():
    ct.poison(on_gpu)
    cuda.memcpy_htod(on_gpu.gpudata, source)
    ct.check(on_gpu, source, name=f"HtoD, {name}")
cuda.memcpy_dtoh(back, on_gpu.gpudata)
ct.check(back, pinned, name="DtoH, pinned")
crossing = ct.bench(
    {
        "HtoD, pageable": lambda: cuda.memcpy_htod(on_gpu.gpudata, pageable),
        "HtoD, pinned": lambda: cuda.memcpy_htod(on_gpu.gpudata, pinned),
        "DtoH, pinned": lambda: cuda.memcpy_dtoh(back, on_gpu.gpudata),
    },
    bytes=pageable.nbytes,
    name="between host and GPU",
    rounds=20,
)

# %% host-facts
# Like for like: bytes of the array that arrive each second. The copy inside the GPU moves each byte
# twice, it reads and writes it, so its rate counts half.
inside = copied / 2
over = crossing["HtoD, pinned"].value
ct.facts(
    "arriving each second",
    {
        "inside the GPU": (inside, "GB/s"),
        "over the bus, page-locked": (over, "GB/s"),
        "inside / over the bus": inside / over,
    },
)

# %% [markdown]
# Which compiled code runs here: one kernel that stores what it was compiled for, in eight versions.

# %% arch
arch_source = (
    'extern "C" __global__ void built_for(int *arch) { *arch = __CUDA_ARCH__; }'
)


from concurrent.futures import ThreadPoolExecutor

from pycuda.compiler import compile as nvcc_compile


def build(arch):
    target = "ptx" if arch.startswith("compute_") else "cubin"
    try:
        return nvcc_compile(
            arch_source,
            str(ct.find_nvcc()),
            arch=arch,
            target=target,
            no_extern_c=True,
        )
    except cuda.CompileError:
        return None


def outcome(image):
    if image is None:
        return "unknown to this nvcc"
    try:
        module = cuda.module_from_buffer(image)
    except cuda.Error as error:
        # "cuModuleLoadDataEx failed: <reason> - <detail>": the reason
        return str(error).partition(": ")[2].split(" -")[0].split(" for ")[0]
    built_for, answer = module.get_function("built_for"), ct.empty(1, "int32")
    built_for(answer, block=(1, 1, 1))
    return f"runs, __CUDA_ARCH__ = {answer.get()[0]}"


def expected(arch):
    """What a kernel stores that was compiled for `arch`."""
    digits = arch.partition("_")[2].rstrip("a")
    return f"runs, __CUDA_ARCH__ = {10 * int(digits)}"


archs = [
    "sm_75",
    "sm_80",
    "sm_90",
    "sm_90a",
    "sm_100",
    "compute_75",
    "compute_90",
    "compute_100",
]
with ThreadPoolExecutor() as pool:  # each build is a run of nvcc
    images = pool.map(build, archs)
found = {arch: outcome(image) for arch, image in zip(archs, images)}
for arch, answer in found.items():
    assert not answer.startswith("runs") or answer == expected(arch), answer
ct.facts("which code runs here", found)

# %% [markdown]
# How many blocks a grid may have.

# %% grid
count_blocks = ct.Kernel("start/your_gpu/your_gpu.cu", "count_blocks")
many = 1_111_111
for grid in ((65_536,), (many,), (1, 65_535), (1, 65_536)):
    blocks = ct.to_device(np.zeros(1, "uint32"))
    try:
        count_blocks(blocks, grid=grid, block=32)
        ct.check(
            blocks, np.array([np.prod(grid)]), name=f"blocks of grid {grid}"
        )
    except ct.LaunchError as error:
        print(error)

# %% resident
ct.facts(
    "blocks of 32 threads",
    {
        "in the grid": many,
        "resident at once, at most": device.max_blocks_per_sm * device.sm_count,
    },
)
