# ---
# jupyter:
#   cudatut:
#     title: {en: "Python, C++ and back: claims", zh: "Python 与 C++ 互相调用：说法的检验"}
#     requires: sm_75
#     timeout_s: 180
#     alone: false
# ---

# %% [markdown]
# What the slides and the notes say of compilers, given to the compilers.

# %% setup
import subprocess

import numpy as np

import cudatut as ct
from cudatut.book.memory.bindings.building import (
    cuda_include,
    here,
    unwatched,
)

nvcc = ct.find_nvcc()
include = cuda_include()
folder = here("claims")
SOURCE = """
#include <cuda_runtime.h>
extern "C" __global__ void twice(float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = 2.0f * x[i];
}
int main() { twice<<<1, 1>>>(nullptr, 0); return cudaDeviceSynchronize(); }
"""
THREADS = """
#include <cstdio>
int main() {
  int threads = 0;
#pragma omp parallel reduction(+ : threads)
  threads += 1;
  std::printf("%d", threads);
}
"""
for name, source in (
    ("main.cu", SOURCE),
    ("main.cpp", SOURCE),
    ("omp.cu", THREADS),
):
    (folder / name).write_text(source)


def works(*command):
    """1 if a compiler takes this, else 0."""
    done = subprocess.run(
        command, cwd=folder, env=unwatched(), capture_output=True, timeout=120
    )
    made = folder / str(command[-1])  # g++ ignores names that it does not know
    return int(done.returncode == 0 and made.is_file())


# %% triple-claim
ct.claim(
    id="triple-chevrons",
    source="CUDA slides",
    place={"en": "2.2, below the message of g++", "zh": "2.2，g++ 报错的下方"},
    form="said",
    statement={
        "en": "Only nvcc, the compiler of CUDA, reads <<<>>>; g++ does not. Of "
        "one .cpp file with it, g++ compiles:",
        "zh": "<<<>>> 是 nvcc（CUDA 编译器）才能识别的语法，g++ 不能识别。一个用到它的 "
        ".cpp 文件，g++ 能编译几个：",
    },
    expected=0,
    measured=works("g++", include, "-c", "main.cpp", "-o", "a.o"),
    rule="equal",
    found="counted",
    control=(
        {
            "en": "nvcc, of the same as .cu",
            "zh": "同样内容的 .cu 文件，用 nvcc",
        },
        works(nvcc, "-c", "main.cu", "-o", "b.o"),
        1,
    ),
)

# %% swapped
ask = ct.Kernel(
    """
__global__ void ask(int *blocks) {
  if (threadIdx.x + threadIdx.y == 0) atomicAdd(blocks, 1);
}
""",
    "ask",
)


def launched(grid, block):
    """Blocks that begin: the function's parameters, in its order."""
    blocks = ct.to_device(np.zeros(1, "int32"))
    ask(blocks, grid=(*grid, 1), block=(*block, 1))
    return int(blocks.get()[0])


size, wide = 8, 2
grid, block = (size // wide, size // wide), (wide, wide)
as_printed, in_order = launched(block, grid), launched(grid, block)

# %% swapped-claim
ct.claim(
    id="grid-and-block-swapped",
    source="CUDA slides",
    place={
        "en": "2.2, main.cpp and print_index.cu",
        "zh": "2.2，main.cpp 与 print_index.cu",
    },
    form="code",
    statement={
        "en": "The grid has inputSize / blockSize blocks in each of two "
        "directions, and the call gives (block, grid) to a function of (grid, "
        "block). With 8 and 2, the blocks that run, instead of the grid's:",
        "zh": "网格在两个方向上各有 inputSize / blockSize 个线程块；调用时传的是 (block, "
        "grid)，函数的参数却是 (grid, block)。取 8 和 2，网格应有的线程块数与实际运行的：",
    },
    expected=grid[0] * grid[1],
    measured=as_printed,
    rule="equal",
    found="counted",
    control=(
        {"en": "given as (grid, block)", "zh": "按 (grid, block) 传"},
        in_order,
        16,
    ),
)


# %% debug
def machine_code(*flags):
    """What nvcc makes of the kernel, with what is there for a debugger."""
    out = folder / "code.cubin"
    command = [nvcc, *flags, "-arch=sm_75", "-cubin", "main.cu", "-o", out]
    subprocess.run(
        command,
        cwd=folder,
        env=unwatched(),
        capture_output=True,
        timeout=120,
        check=True,
    )
    return out.read_bytes()


usual = machine_code("-O3")

# %% debug-claim
ct.claim(
    id="debug-flags",
    source="CUDA slides",
    place={"en": "2.1, the Makefile, DEBUG=1", "zh": "2.1，Makefile，DEBUG=1"},
    form="code",
    statement={
        "en": "DEBUG=1 adds -g -O0 to the flags of nvcc, which have -O3. Of "
        "one kernel, those compiled otherwise than without it (the host's code "
        "does change):",
        "zh": "DEBUG=1 在 nvcc 的参数（其中有 -O3）后面加上 -g -O0。一个 kernel，编译结果与不加时"
        "不同的有几个（主机代码确实会变）：",
    },
    expected=1,
    measured=int(machine_code("-O3", "-g", "-O0") != usual),
    rule="equal",
    found="counted",
    control=(
        {"en": "with -g -G", "zh": "用 -g -G"},
        int(machine_code("-g", "-G") != usual),
        1,
    ),
)

# %% warnings-claim
ct.claim(
    id="warnings-of-nvcc",
    source="CUDA slides",
    place={
        "en": "2.1, the Makefile, SHOW_WARNING=1",
        "zh": "2.1，Makefile，SHOW_WARNING=1",
    },
    form="code",
    statement={
        "en": "SHOW_WARNING=1 adds -Wall and others to the flags of nvcc. Of "
        "one file, nvcc compiles with -Wall:",
        "zh": "SHOW_WARNING=1 在 nvcc 的参数里加上 -Wall 等。一个文件，加上 -Wall 后 nvcc "
        "能编译几个：",
    },
    expected=1,
    measured=works(nvcc, "-Wall", "-c", "main.cu", "-o", "c.o"),
    rule="equal",
    found="counted",
    control=(
        {"en": "with -Xcompiler -Wall", "zh": "用 -Xcompiler -Wall"},
        works(nvcc, "-Xcompiler", "-Wall", "-c", "main.cu", "-o", "d.o"),
        1,
    ),
)


# %% openmp
def threads_of(*flags):
    """Threads of a program that asks for three."""
    works(nvcc, *ct.nvcc_flags(nvcc), *flags, "omp.cu", "-o", "omp")
    own = {**unwatched(), "OMP_NUM_THREADS": "3"}
    done = subprocess.run(
        [folder / "omp"], env=own, capture_output=True, timeout=60
    )
    return int(done.stdout)


# %% openmp-claim
ct.claim(
    id="openmp-through-nvcc",
    source="Learn CUDA Programming, notes",
    place={"en": "the box on compiler settings", "zh": "编译器设置的方框"},
    form="said",
    statement={
        "en": "-Xcompiler -fopenmp compiles host code with OpenMP. Threads of "
        "a parallel region, of three asked for:",
        "zh": "-Xcompiler -fopenmp 让主机代码用 OpenMP 编译。要求三个线程，并行区域里实际有几个：",
    },
    expected=3,
    measured=threads_of("-Xcompiler", "-fopenmp"),
    rule="equal",
    found="counted",
    control=(
        {"en": "without the flag", "zh": "不加这个参数"},
        threads_of(),
        1,
    ),
)

# %% global-id
ids = ct.Kernel("memory/bindings/indices.cu", "told_by")
threads, per_block = 96, 32
told = ct.empty((6, 3, threads), "uint32")
ids(told, grid=threads // per_block, block=per_block)
by_thread = np.arange(threads)
got = told.get()
right = int((got[4, 0] == by_thread).sum())
other = int((got[0, 0] * got[3, 0] + got[1, 0] == by_thread).sum())

# %% global-id-claim
ct.claim(
    id="global-id-of-opencl",
    source="Learn CUDA Programming, notes",
    place={"en": "the table of indices", "zh": "索引对照表"},
    form="said",
    statement={
        "en": "OpenCL's get_global_id is blockIdx * blockDim + threadIdx. (It also "
        "adds the offset of a launch, if there is one; CUDA has none.) Of 96 "
        "threads in blocks of 32, those that get their own number:",
        "zh": "OpenCL 的 get_global_id 就是 blockIdx * blockDim + threadIdx。（OpenCL 启动时若给了偏移量，"
        "还会加上；CUDA 没有偏移量。）96 个线程，每个"
        "线程块 32 个，得到自己编号的有多少个：",
    },
    expected=threads,
    measured=right,
    rule="equal",
    found="counted",
    control=(
        {
            "en": "with gridDim in the place of blockDim",
            "zh": "把 blockDim 换成 gridDim",
        },
        other,
        32,
    ),
)
