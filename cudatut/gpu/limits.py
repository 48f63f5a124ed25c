"""What this GPU can do at most, measured here and now by the kernels of probes.cu.

While a sanitizer or profiler runs the process, each probe runs once and on little: an instrumented one takes many times
as long, on a gigabyte it would keep the GPU from the other examples that run side by side, and nobody sees the value.
"""

import statistics
from functools import cache

from cudatut import tool
from cudatut.gpu.device import device
from cudatut.gpu.memory import empty
from cudatut.gpu.probes import probe, random_words, read_once
from cudatut.gpu.timing import time_once, time_once_bare

_FMA_STEPS, _FMA_CHAINS = 4096, 32


def _median_us(launch) -> float:
    if tool.running():
        return time_once_bare(launch)
    launch()
    return statistics.median(time_once(launch) for _ in range(15))


@cache
def bandwidth() -> float:
    """Memory bandwidth in GB/s (bytes read plus bytes written): the better of a read and a copy that do nothing else.

    Works on 1 GiB, or an eighth of the memory if that is less: far more than the L2 cache. Median of 15 runs.
    """
    nbytes = min(tool.size(1 << 30, 1 << 20), device().memory_bytes // 8) // 32 * 32
    words = random_words(nbytes // 4)
    sink = empty(1, "uint32")
    grid = device().sm_count * 4
    vectors = nbytes // 16
    read = _median_us(lambda: read_once(words, sink))
    half, source, target = vectors // 2, words[: nbytes // 8], words[nbytes // 8 :]
    copy = _median_us(lambda: probe("copy_probe")(source, target, half, grid=grid, block=512))
    return nbytes / min(read, copy) / 1e3


@cache
def fma() -> float:
    """Rate of fp32 fused multiply-adds in TFLOP/s (2 operations each), all SMs busy. Median of 15 runs."""
    blocks, steps = device().sm_count * 8, tool.size(_FMA_STEPS, 16)
    out = empty(blocks * 256, "float32")
    kernel = probe("fma_probe")
    time = _median_us(lambda: kernel(out, 0.9999, 0.0001, steps, grid=blocks, block=256))
    return 2 * steps * _FMA_CHAINS * blocks * 256 / time / 1e6
