"""How fast all SMs together read from the L2 cache.

read_rate()             # GB/s
"""

from statistics import median

import cudatut as ct

READ_AGAIN = """
extern "C" __global__ void read_again(const float4* data, float* sink,
                                      int count, int rounds) {
  float sum = 0.0f;
  const int first = blockIdx.x * blockDim.x + threadIdx.x;
  const int step = gridDim.x * blockDim.x;
  for (int round = 0; round < rounds; ++round) {
    // Another start in every round, so that the compiler cannot load once and
    // add often; __ldcg does not read from L1.
    for (int i = first; i < count; i += step) {
      const float4 four = __ldcg(data + ((i + round * 4096) & (count - 1)));
      sum += four.x + four.y + four.z + four.w;
    }
  }
  if (sum == 12345.678f) *sink = sum;
}
"""


def read_rate(size: int = 16 << 20, rounds: int = 64, runs: int = 11) -> float:
    """GB/s, the median of `runs` launches.

    Each reads `size` bytes `rounds` times.

    size: a power of two, from 16 on. It is halved until it is at most half of
    the cache.
    """
    gpu = ct.device()
    while size > gpu.l2_bytes // 2:
        size //= 2
    kernel = ct.Kernel(READ_AGAIN, "read_again")
    data = ct.to_device(ct.rng(0).random(size // 4, dtype="float32"))
    sink = ct.empty(1, "float32")
    grid = 8 * gpu.sm_count

    def launch() -> None:
        kernel(data, sink, size // 16, rounds, grid=grid, block=256)

    time = ct.time_once_bare if ct.tool.running() else ct.time_hidden
    return size * rounds / median(time(launch) for _ in range(runs)) / 1e3
