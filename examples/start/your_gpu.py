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

# %% check
for n in ct.RAGGED:
    src = ct.rng(n).integers(0, 2**32, n, dtype="uint32")
    dst = ct.empty(n, "uint32")
    copy(ct.to_device(src), dst, n, grid=ct.cdiv(n, 256), block=256)
    ct.check(dst, src, name=f"copy, n = {n}")

# %% copy
n = ct.size(2**27, 2**14)  # 512 MiB in, 512 MiB out: ten times any L2
src = ct.to_device(ct.rng(1).integers(0, 2**32, n, dtype="uint32"))
dst = ct.empty(n, "uint32")
ct.bench(
    {
        "copy": lambda: copy(src, dst, n, grid=ct.cdiv(n, 256), block=256),
        "vendor copy": ct.vendor.copy(dst, src),
    },
    bytes=2 * src.nbytes,
    name="copy within the GPU",
)
ct.check(dst, src.get(), name="copy")

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
mib = ct.size(2**20, 2**10)
traffic = 2**13 * mib  # per row, however often that reads the array
words = ct.rng(2).integers(0, 2**32, 256 * mib // 4, dtype="uint32")
array, total = ct.to_device(words), ct.to_device(np.zeros(1, "uint32"))


def read(size):
    blocks = 2 * gpu.sm_count  # as many as fit at once, 1024 threads each
    return lambda: read_again(array, total, size // 16, traffic // size, grid=blocks, block=1024)


sizes = {f"{m} MiB": m * mib for m in (2, 8, 16, 24, 32, 40, 48, 64, 128, 256)}
ct.bench(
    {name: read(size) for name, size in sizes.items()},
    bytes={name: traffic // size * size for name, size in sizes.items()},
    name="reading again and again",
)

# %% l2-check
cuda.memset_d32(total.gpudata, 0, 1)
read(sizes["24 MiB"])()
once = int(words[: sizes["24 MiB"] // 4].sum(dtype="uint64"))
ct.check(total, np.array([traffic // sizes["24 MiB"] * once % 2**32]), name="sum of all reads")

# %% host
nbytes = ct.size(2**28, 2**16)
pageable = ct.rng(3).integers(0, 256, nbytes, dtype="uint8")
pinned = cuda.pagelocked_empty(nbytes, np.uint8)
pinned[:] = pageable
on_gpu = ct.to_device(pageable)
ct.bench(
    {
        "HtoD, pageable": lambda: cuda.memcpy_htod(on_gpu.gpudata, pageable),
        "HtoD, pinned": lambda: cuda.memcpy_htod(on_gpu.gpudata, pinned),
        "DtoH, pinned": lambda: cuda.memcpy_dtoh(pinned, on_gpu.gpudata),
    },
    bytes=nbytes,
    name="between host and GPU",
)
ct.check(on_gpu, pageable, name="HtoD and back")

# %% arch
source = 'extern "C" __global__ void built_for(int *arch) { *arch = __CUDA_ARCH__; }'


def outcome(arch):
    target = "ptx" if arch.startswith("compute_") else "cubin"
    try:
        image = nvcc_compile(source, str(find_nvcc()), arch=arch, target=target, no_extern_c=True)
        module = cuda.module_from_buffer(image)
        built_for, answer = module.get_function("built_for"), ct.empty(1, "int32")
        built_for(answer, block=(1, 1, 1))
        return f"runs, __CUDA_ARCH__ = {answer.get()[0]}"
    except cuda.Error as error:
        return str(error).splitlines()[0]


archs = ["sm_75", "sm_80", "sm_90", "sm_90a", "sm_100", "compute_75", "compute_90", "compute_100"]
ct.facts("which code runs here", {arch: outcome(arch) for arch in archs})

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
