# ---
# jupyter:
#   cudatut:
#     title: {en: "Knowing your GPU", zh: "认识你的 GPU"}
#     requires: sm_75
#     timeout_s: 120
# ---
# %% [markdown]
# What the driver says about this GPU, what that means for a launch, and what it really delivers.

# %% setup
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pycuda.driver as cuda
from pycuda.compiler import compile as nvcc_compile

import cudatut as ct
from cudatut.nvcc import find_nvcc

gpu = ct.device()

# %% query
ct.facts(
    "device",
    {
        "name": gpu.name,
        "compute capability": "{}.{}".format(*gpu.compute_capability),
        "sm_count": gpu.sm_count,
        "memory": (gpu.memory_bytes / 2**30, "GiB"),
        "l2": (gpu.l2_bytes / 2**20, "MiB"),
        "clock": (gpu.clock_khz / 1e6, "GHz"),
        "memory clock": (gpu.memory_clock_khz / 1e6, "GHz"),
        "bus": (gpu.bus_bits, "bit"),
        "attributes in all": len(ct.attributes()),
    },
)

# %% limits
ct.facts(
    "limits",
    {
        "max_threads_per_block": gpu.max_threads_per_block,
        "max_block.x": gpu.max_block[0],
        "max_block.y": gpu.max_block[1],
        "max_block.z": gpu.max_block[2],
        "max_grid.x": gpu.max_grid[0],
        "max_grid.y": gpu.max_grid[1],
        "max_grid.z": gpu.max_grid[2],
        "max_threads_per_sm": gpu.max_threads_per_sm,
        "max_blocks_per_sm": gpu.max_blocks_per_sm,
        "registers_per_sm": gpu.registers_per_sm,
        "shared_per_sm": (gpu.shared_per_sm // 1024, "KiB"),
        "shared_per_block": (gpu.shared_per_block // 1024, "KiB"),
        "shared_per_block_optin": (gpu.shared_per_block_optin // 1024, "KiB"),
    },
)

# %% theory
# The bus is counted in bits, and DDR memory moves two of them per line and clock.
bandwidth_theory = 2 * gpu.memory_clock_khz * 1e3 * gpu.bus_bits / 8 / 1e9
# FP32 lanes per SM are not an attribute: the programming guide lists them by compute capability.
lanes = 64 if gpu.compute_capability in ((7, 0), (7, 5), (8, 0)) else 128
fma_theory = gpu.sm_count * lanes * 2 * gpu.clock_khz * 1e3 / 1e12  # an FMA is two operations
ct.facts(
    "theory",
    {
        "bandwidth": (bandwidth_theory, "GB/s"),
        "lanes per SM": lanes,
        "fma": (fma_theory, "TFLOP/s"),
    },
)

# %% compile
copy = ct.Kernel("start/your_gpu.cu", "copy")
wide = ct.Kernel("start/your_gpu.cu", "copy_wide")
wide4 = ct.Kernel("start/your_gpu.cu", "copy_wide", defines={"LOADS": 4})


def launcher(kernel, per_thread):
    return lambda s, d, n: kernel(s, d, n, grid=ct.cdiv(n, 256 * per_thread), block=256)


copies = {"4 B": launcher(copy, 1), "16 B": launcher(wide, 4), "4 x 16 B": launcher(wide4, 16)}

# %% check
for n in ct.RAGGED:
    words = ct.rng(n).integers(0, 2**32, n, dtype="uint32")
    src, dst = ct.to_device(words), ct.empty(n, "uint32")
    for name, run in copies.items():
        ct.poison(dst)
        run(src, dst, n)
        ct.check(dst, words, name=f"{name}, n = {n}")

# %% copy
n = ct.size(2**27, 2**14)  # 512 MiB in, 512 MiB out
words = ct.rng(1).integers(0, 2**32, n, dtype="uint32")
src, dst = ct.to_device(words), ct.empty(n, "uint32")
contestants = {name: lambda run=run: run(src, dst, n) for name, run in copies.items()}
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

# %% measured
ct.facts(
    "measured",
    {
        "bandwidth": (ct.limits.bandwidth(), "GB/s"),
        "of theory": (100 * ct.limits.bandwidth() / bandwidth_theory, "%"),
        "fma": (ct.limits.fma(), "TFLOP/s"),
        "fma of theory": (100 * ct.limits.fma() / fma_theory, "%"),
    },
)

# %% l2
read_again = ct.Kernel("start/your_gpu.cu", "read_again")
block = 512
blocks = ct.size(gpu.max_threads_per_sm // block * gpu.sm_count, 4)  # all resident
sweep = 16 * block * blocks  # bytes in one step of the grid: sizes are whole steps
l2_bytes = ct.size(gpu.l2_bytes, 2**18)
sizes = {
    f"{part:g} x L2": max(1, round(part * l2_bytes / sweep)) * sweep
    for part in (0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 4)
}
passes = {name: max(1, ct.size(2**32, 2**22) // size) for name, size in sizes.items()}
words = ct.rng(2).integers(0, 2**32, max(sizes.values()) // 4, dtype="uint32")
array, total = ct.to_device(words), ct.to_device(np.zeros(1, "uint32"))


def read(name):
    vectors = sizes[name] // 16
    return lambda: read_again(array, total, vectors, passes[name], grid=blocks, block=block)


ct.bench(
    {name: read(name) for name in sizes},
    bytes={name: passes[name] * size for name, size in sizes.items()},
    name="reading again and again",
    rounds=20,
)

# %% l2-check
for name in ("0.5 x L2", "4 x L2"):
    cuda.memset_d32(total.gpudata, 0, 1)
    read(name)()
    once = int(words[: sizes[name] // 4].sum(dtype="uint64"))
    ct.check(total, np.array([passes[name] * once % 2**32]), name=f"sum of all reads, {name}")

# %% host
count = ct.size(2**23, 2**13)  # 8-byte words: 64 MiB
pageable = ct.rng(3).integers(0, 2**63, count, dtype="uint64")
pinned, back = cuda.pagelocked_empty(count, np.uint64), cuda.pagelocked_empty(count, np.uint64)
pinned[:] = pageable[::-1]
on_gpu = ct.empty(count, "uint64")
for name, source in {"pageable": pageable, "pinned": pinned}.items():
    ct.poison(on_gpu)
    cuda.memcpy_htod(on_gpu.gpudata, source)
    ct.check(on_gpu, source, name=f"HtoD, {name}")
cuda.memcpy_dtoh(back, on_gpu.gpudata)
ct.check(back, pinned, name="DtoH, pinned")
ct.bench(
    {
        "HtoD, pageable": lambda: cuda.memcpy_htod(on_gpu.gpudata, pageable),
        "HtoD, pinned": lambda: cuda.memcpy_htod(on_gpu.gpudata, pinned),
        "DtoH, pinned": lambda: cuda.memcpy_dtoh(back, on_gpu.gpudata),
    },
    bytes=pageable.nbytes,
    name="between host and GPU",
    rounds=20,
)

# %% arch
source = 'extern "C" __global__ void built_for(int *arch) { *arch = __CUDA_ARCH__; }'


def build(arch):
    target = "ptx" if arch.startswith("compute_") else "cubin"
    try:
        return nvcc_compile(source, str(find_nvcc()), arch=arch, target=target, no_extern_c=True)
    except cuda.CompileError:
        return None


def outcome(image):
    if image is None:
        return "unknown to this nvcc"
    try:
        module = cuda.module_from_buffer(image)
    except cuda.Error as error:  # "cuModuleLoadDataEx failed: <reason> - <detail>": the reason
        return str(error).partition(": ")[2].split(" -")[0].split(" for ")[0]
    built_for, answer = module.get_function("built_for"), ct.empty(1, "int32")
    built_for(answer, block=(1, 1, 1))
    return f"runs, __CUDA_ARCH__ = {answer.get()[0]}"


archs = ["sm_75", "sm_80", "sm_90", "sm_90a", "sm_100", "compute_75", "compute_90", "compute_100"]
with ThreadPoolExecutor() as pool:  # each build is a run of nvcc
    images = pool.map(build, archs)
ct.facts("which code runs here", {arch: outcome(image) for arch, image in zip(archs, images)})

# %% grid
count_blocks = ct.Kernel("start/your_gpu.cu", "count_blocks")
many = ct.size(1_111_111, 70_001)
for grid in ((65_536,), (many,), (1, 65_535), (1, 65_536)):
    blocks = ct.to_device(np.zeros(1, "uint32"))
    try:
        count_blocks(blocks, grid=grid, block=32)
        ct.check(blocks, np.array([np.prod(grid)]), name=f"blocks of grid {grid}")
    except ct.LaunchError as error:
        print(error)

# %% resident
ct.facts(
    "blocks of 32 threads",
    {"in the grid": many, "resident at once, at most": gpu.max_blocks_per_sm * gpu.sm_count},
)
