# ---
# jupyter:
#   cudatut:
#     title: {en: "Unified memory: claims", zh: "统一内存：说法的检验"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       blocks: [4, 1]
#       tries: [3, 1]
# ---

# %% [markdown] about
# What the notes on *Learn CUDA Programming*, the CS179 notes and PyCUDA's own
# documentation say of managed memory, each with a control. A touch is slow if its
# page lies on the other side.

# %% setup
import subprocess
import tempfile
from pathlib import Path

from cudatut.book.memory.unified import touches
from cudatut.book.memory.unified.managed import (
    GPU,
    HOST,
    advise,
    managed_empty,
)
from cudatut.book.memory.unified.prefetcher import BLOCK, PAGE

import cudatut as ct

NOTES = "Learn CUDA Programming, notes"
UNIFIED = {
    "en": "section Unified Memory",
    "zh": "“Unified Memory”一节",
}
ADVICE = {
    "en": "section Unified Memory, the list on cudaMemAdvise",
    "zh": "“Unified Memory”一节，cudaMemAdvise 的列表",
}
blocks = 4
tries = 3
pages = list(range(blocks * BLOCK))


def slow_touches(walk, *how, **more):
    """How many touches are slow in each of several tries, with arrays of their own."""
    return touches.slow_each_time([walk(*how, **more) for _ in range(tries)])


# %% [markdown] about-first
# Memory that nobody has touched: the GPU, or the host, fills it. Where does it lie?

# %% claim-first-touch
fill = ct.Kernel(
    """
__global__ void fill(int *x, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = i / 1024;
}
""",
    "fill",
)


def lies_with(first):
    """Who finds the pages at once, after `first` has filled them?"""
    x = managed_empty(blocks * BLOCK * PAGE // 4, "int32")
    if first == GPU:
        fill(x.base, x.size, grid=1, block=1024)
        ct.synchronize()
    else:
        touches.fill(x)
    slow = touches.slow(touches.by_host(x, pages))
    return GPU if slow >= blocks else HOST


ct.claim(
    id="managed-first-touch",
    source=NOTES,
    place=UNIFIED,
    form="said",
    statement={
        "en": "Memory is allocated by first touch: a page that the GPU touches "
        "first is allocated and mapped there. Where it lies then:",
        "zh": "内存按首次访问分配：GPU 先访问的页，就在 GPU 上分配并映射。这时页在：",
    },
    expected=GPU,
    measured=lies_with(GPU),
    rule="equal",
    found="counted",
    control=(
        {"en": "touched first by the host", "zh": "主机先访问"},
        lies_with(HOST),
        "host",
    ),
)


# %% [markdown] about-advice
# The three kinds of advice, each beside the same walks without it.


# %% claim-accessed-by
def read_by_gpu(advised):
    """Times of the GPU's touches on pages that the host has written."""
    x = touches.blocks_of_2mb(blocks)
    if advised:
        advise(x, "ACCESSED_BY", GPU)
    return touches.by_gpu(x, pages)


ct.claim(
    id="accessed-by-no-faults",
    source=NOTES,
    place=ADVICE,
    form="said",
    statement={
        "en": "With SetAccessedBy the device gets a direct mapping of the "
        "input in the CPU's memory, and no page faults are generated. Slow "
        "touches of the GPU on pages of the host:",
        "zh": "SetAccessedBy 让设备直接映射 CPU 内存里的输入，不会产生缺页。"
        "GPU 访问主机上的页，慢的次数：",
    },
    expected=0,
    measured=slow_touches(read_by_gpu, True),
    rule="equal",
    found="counted",
    control=(
        {"en": "without the advice", "zh": "不给建议"},
        slow_touches(read_by_gpu, False),
        24,
    ),
)


# %% claim-preferred
def host_after_gpu(advised):
    """Times of the host's touches after the GPU has read all pages."""
    x = touches.blocks_of_2mb(blocks)
    if advised:
        advise(x, "PREFERRED_LOCATION", HOST)
    touches.by_gpu(x, pages)
    return touches.by_host(x, pages)


ct.claim(
    id="preferred-location-resists",
    source=NOTES,
    place=ADVICE,
    form="said",
    statement={
        "en": "With SetPreferredLocation the driver tries not to migrate data "
        "away from there. Preferred is the host, and the GPU has read all: "
        "slow touches of the host:",
        "zh": "设了 SetPreferredLocation，驱动会尽量不把数据迁走。首选位置是主机，"
        "GPU 全部读过之后，主机慢的访问次数：",
    },
    expected=0,
    measured=slow_touches(host_after_gpu, True),
    rule="equal",
    found="counted",
    control=(
        {"en": "without the advice", "zh": "不给建议"},
        slow_touches(host_after_gpu, False),
        24,
    ),
)


# %% claim-read-mostly
def both_read(advised, write=None):
    """Times of a second round, in which both read all pages again.

    write: a page that the host writes before that round.
    """
    x = touches.blocks_of_2mb(blocks)
    if advised:
        advise(x, "READ_MOSTLY")
    touches.by_gpu(x, pages), touches.by_host(x, pages)
    if write is not None:
        x[write * touches.WORDS] = write
    return touches.by_gpu(x, pages) + touches.by_host(x, pages)


ct.claim(
    id="read-mostly-copies",
    source=NOTES,
    place=ADVICE,
    form="said",
    statement={
        "en": "With SetReadMostly the driver makes a read-only copy. Both "
        "sides have read all pages; slow touches when both read again:",
        "zh": "设了 SetReadMostly，驱动会建立只读副本。两边都读过全部的页，"
        "再各读一遍时慢的次数：",
    },
    expected=0,
    measured=slow_touches(both_read, True),
    rule="equal",
    found="counted",
    control=(
        {"en": "without the advice", "zh": "不给建议"},
        slow_touches(both_read, False),
        48,
    ),
)
ct.claim(
    id="read-mostly-write",
    source=NOTES,
    place=ADVICE,
    form="said",
    statement={
        "en": "When the data are written to, the copies of the page become "
        "invalid, but for that of the device that wrote. The host writes one "
        "page; slow touches when both read again:",
        "zh": "写入之后，该页的副本失效，只有写入的设备上那份仍然有效。主机写一页，"
        "两边再各读一遍时慢的次数：",
    },
    expected=1,
    measured=slow_touches(both_read, True, write=7),
    rule="equal",
    found="counted",
    control=(
        {"en": "nothing written", "zh": "什么也不写"},
        slow_touches(both_read, True),
        0,
    ),
)

# %% [markdown] about-cuda-13
# A line of the CS179 notes, compiled by the nvcc of this CUDA.

# %% claim-cuda-13
PROGRAM = """
#include <cuda_runtime.h>
int main() {
  float *h_A;
  cudaMallocManaged(&h_A, 4096);
  cudaMemLocation gpu = {cudaMemLocationTypeDevice, 0};
  cudaMemPrefetchAsync(h_A, 4096, WHERE);
  return sizeof(gpu) == 0;
}
"""


def compiles(where):
    if ct.tool.running():
        return "no"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "program.cu")
        file.write_text(PROGRAM.replace("WHERE", where))
        out = file.with_suffix(".cubin")
        done = subprocess.run(
            [ct.find_nvcc(), "-cubin", "-arch=sm_75", "-o", out, file],
            capture_output=True,
        )
    return "yes" if done.returncode == 0 else "no"


with_number = compiles("0")
ct.claim(
    id="prefetch-takes-a-number",
    source="CS179 notes",
    place={
        "en": "section with the simple example, the program that prefetches",
        "zh": "“简单的例子”一节，手动预取的程序",
    },
    form="code",
    statement={
        "en": "A prefetch is written cudaMemPrefetchAsync(h_A, size, 0), where "
        "0 is the number of the GPU. Does it compile?",
        "zh": "预取写成 cudaMemPrefetchAsync(h_A, size, 0)，0 是 GPU 的编号。"
        "能编译吗？",
    },
    expected="yes",
    measured=with_number,
    rule="equal",
    found="counted",
    elsewhere=True,  # up to CUDA 12 the function takes a number
    control=(
        {
            "en": "with a cudaMemLocation and flags",
            "zh": "用 cudaMemLocation 和 flags",
        },
        compiles("gpu, 0"),
        "yes",
    ),
)

# %% [markdown] about-segfault
# PyCUDA's documentation warns of a segmentation fault. A process of its own tries:
# the host reads managed memory while a kernel runs that does not use it.

# %% claim-segfault
TRY = '''
import ctypes
import resource
import numpy as np
import pycuda.autoprimaryctx
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
spin = SourceModule("""
__global__ void spin(long long cycles) {
  long long begin = clock64();
  while (clock64() - begin < cycles) {}
}
""").get_function("spin")
x = cuda.managed_empty(1024, "int32", mem_flags=1)
x[:] = 5
spin(np.int64(400_000_000), grid=(1, 1), block=(1, 1, 1))
done = cuda.Event().record()
print(ctypes.string_at(ADDRESS, 4)[0], done.query())
cuda.Context.synchronize()
'''


def ended(address):
    if ct.tool.running():  # which does not follow another process
        return "something else"
    child = ct.isolated(TRY.replace("ADDRESS", address))
    if child.returncode == -11:
        return "segmentation fault"
    # The right value, and the kernel was still running.
    return (
        "read" if child.stdout.split() == ["5", "False"] else "something else"
    )


while_it_runs = ended("x.ctypes.data")
ct.claim(
    id="host-access-faults",
    source="PyCUDA documentation",
    place={
        "en": "Managed Memory Usage, the warning",
        "zh": "Managed Memory Usage 一节的警告",
    },
    form="said",
    statement={
        "en": "The host must not access managed memory while the GPU runs a "
        "kernel, used there or not; it would end in a segmentation fault. What "
        "a read then ends in:",
        "zh": "GPU 执行 kernel 时，不论 kernel 用没用到，主机都不能访问托管内存，"
        "否则会出现段错误。这时读一次，结果是：",
    },
    expected="segmentation fault",
    measured=while_it_runs,
    rule="equal",
    found="counted",
    elsewhere=True,  # systems without concurrent managed access
    control=(
        {"en": "a read at address 16", "zh": "读地址 16"},
        ended("16"),
        "segmentation fault",  # of address 0, string_at reads nothing
    ),
)
