# ---
# jupyter:
#   cudatut:
#     title: {en: "Caches: solutions", zh: "缓存：参考答案"}
#     requires: sm_75
#     timeout_s: 60
#     sizes:
#       lines: [9, 1]
#       fast: [200, 0]
#       within: [32, 0]
# ---

# %% [markdown]
# A cache that is simulated, and a load that shows what the one before it has
# brought along.

# %% given-1
import numpy as np


# %% solution-1
def hit_share(n, capacity, oldest, rounds):
    """Hits of a ring of n lines in a cache, in the last half of the rounds."""
    rng = np.random.default_rng(0)
    cache, hits = {}, 0  # a dict keeps the order in which keys came
    places = []  # the same lines, to draw one of them
    for turn in range(rounds):
        for line in range(n):
            if line in cache:
                hits += turn >= rounds // 2
                del cache[line]  # to put it behind the others
            elif len(places) < capacity:
                places.append(line)
            else:
                drawn = int(rng.integers(capacity))
                out = next(iter(cache)) if oldest else places[drawn]
                del cache[out]
                places[places.index(out)] = line
            cache[line] = True
    return hits / (n * (rounds - rounds // 2))


# %% check-1
import cudatut as ct

# Hits of a cache that drops random lines: h = exp(-r (1 - h)).
predicted = {1.5: 0.417, 2: 0.203, 3: 0.060}
for r, share in predicted.items():
    got = hit_share(int(200 * r), 200, False, 40)
    ct.check(
        np.array([got]),
        np.array([share]),
        name=f"random, {r} x the cache",
        rtol=0,
        atol=0.03,
    )
got = [hit_share(n, 200, True, 10) for n in (150, 200, 201, 400)]
ct.check(
    np.array(got), np.array([1.0, 1.0, 0.0, 0.0]), name="oldest, four rings"
)
got = [hit_share(n, 200, False, 10) for n in (1, 150, 200)]
ct.check(np.array(got), np.ones(3), name="random, rings that fit")

# %% given-2
import numpy as np

import cudatut as ct

# %% solution-2
kernel = """
__device__ long long load(const long long *at) {
  long long value;  // volatile: where it stands
  asm volatile("ld.global.b64 %0, [%1];" : "=l"(value) : "l"(at));
  return value;
}

__global__ void second_load(const long long *line, int words,
                            long long *cycles) {
  if (load(line) == -1) return;  // never: but it has to wait for the value
  const long long start = clock64();
  if (load(line + words) == -1) return;
  cycles[0] = clock64() - start;
}
"""

# %% check-2
second_load = ct.Kernel(kernel, "second_load")
lines = 9  # for each distance
distances = (8, 16, 24, 32, 40, 64, 96, 120)  # bytes
host = ct.rng(0).integers(0, 1 << 40, 32 * lines * len(distances))
data, cycles = ct.to_device(host), ct.empty(1, "int64")
ct.flush_l2()
took = []
for k, distance in enumerate(distances):
    some = []
    for one in range(lines):
        line = data[32 * (k * lines + one) :]
        ct.poison(cycles)
        second_load(line, distance // 8, cycles, grid=1, block=1)
        some.append(int(cycles.get()[0]))
    took.append(float(np.median(some)))
stored = np.array([min(took) > 0])
ct.check(stored, np.array([True]), name="cycles are stored")
ct.table(
    "the second load",
    {str(x): {"latency": y} for x, y in zip(distances, took)},
    corner="bytes further",
    units={"latency": "cycles"},
)
fast = 200  # cycles: a load that L1 does not have takes longer
within = 32
found = np.array([y < fast for y in took])
ct.check(
    found,
    np.array([x < within for x in distances]),
    name="found in L1",
)
