# ---
# jupyter:
#   cudatut:
#     title: {en: "A barrier left out", zh: "少了一个屏障"}
#     requires: sm_75
#     timeout_s: 120
#     alone: false
# ---

# %% [markdown] about
# The tiled product without its first barrier, and without its second: what comes
# out, and what racecheck says. The wrong kernels run in a process of their own,
# so that the sanitizers of this book do not stumble over them.

# %% setup
import json
import re

import cudatut as ct

# %% wrong-results
count = """
import json
import numpy as np
import cudatut as ct

n, runs = 1024, 20
rng = ct.rng(0)
a, b = (rng.integers(-8, 9, (n, n)).astype("float32") for _ in range(2))
# Whole numbers: every sum is exact in fp32.
exact = (a.astype("float64") @ b.astype("float64")).astype("float32")
a, b = ct.to_device(a), ct.to_device(b)
found = {}
for name in ("both", "no_first", "no_second"):
    kernel = ct.Kernel("basics/shared_memory/shared_memory_races.cu", name)
    wrong = []
    for _ in range(runs):
        c = ct.empty((n, n), "float32")
        kernel(a, b, c, n, grid=(n // 32, n // 32), block=(32, 32))
        wrong.append(int((c.get() != exact).sum()))
    found[name] = wrong
print(json.dumps(found))
"""
child = ct.isolated(count)
assert child.returncode == 0, child.stderr
wrong = json.loads(child.stdout.splitlines()[-1])
assert not any(wrong["both"]), wrong
CALLED = {
    "both": "both barriers",
    "no_first": "no first barrier",
    "no_second": "no second barrier",
}
ct.table(
    "Wrong results of 20 runs",
    {
        CALLED[name]: {
            "wrong runs": sum(1 for elements in of_run if elements),
            "fewest wrong elements": min(of_run),
            "most wrong elements": max(of_run),
            "different counts": len(set(of_run)),
        }
        for name, of_run in wrong.items()
    },
    corner="kernel",
)

# %% [markdown] about-both
# The kernel with both barriers runs here, under the eyes of the sanitizers.

# %% both-barriers
n = 96
a, b = (ct.rng(i).integers(-8, 9, (n, n)).astype("float32") for i in range(2))
c = ct.empty((n, n), "float32")
both = ct.Kernel("basics/shared_memory/shared_memory_races.cu", "both")
on_gpu = ct.to_device(a), ct.to_device(b)
both(*on_gpu, c, n, grid=(n // 32, n // 32), block=(32, 32))
ct.check(c, a.astype("float64") @ b.astype("float64"), name="both barriers")

# %% racecheck
launch = """
import numpy as np
import cudatut as ct

n = 64
a, b, c = (ct.to_device(np.ones((n, n), "float32")) for _ in range(3))
kernel = ct.Kernel("basics/shared_memory/shared_memory_races.cu", "no_second")
kernel(a, b, c, n, grid=(n // 32, n // 32), block=(32, 32))
ct.synchronize()
"""
report = ct.sanitize(launch, tool="racecheck")
found = [line for line in report.log.splitlines() if " access at " in line]
for line in found[:6]:  # without the kernel and its types
    line = line.removeprefix("=========").strip()
    print(re.sub(r" at .*\+0x[0-9a-f]+ in ", " in ", line))

# %% [markdown] about-first
# And without the first barrier.

# %% racecheck-first
without_first = launch.replace("no_second", "no_first")
first = ct.sanitize(without_first, tool="racecheck")
# A tool that runs this file already watches no second process.
assert ct.tool.running() or (report.errors and first.errors)
