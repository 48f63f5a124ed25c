# ---
# jupyter:
#   cudatut:
#     title: {en: "Sharing one GPU: solutions", zh: "共享一块 GPU：参考答案"}
#     requires: sm_75
#     timeout_s: 180
#     sizes:
#       within: [0.25, 1000.0]
#       ms: [40, 1]
# ---

# %% [markdown]
# By turns, times add up. Side by side, the longest job and the work of all are
# two limits, and the later one counts. Then groups of SMs.

# %% given-1
import numpy as np

import cudatut as ct
from cudatut.book.memory.sharing.clients import Job, calibrated, took_ms


# %% solution-1
def finished_ms(jobs, way):
    """Milliseconds until the last job is done."""
    if way == "turns":
        return float(sum(ms for _, ms in jobs))
    work = sum(share * ms for share, ms in jobs)
    return float(max([work, *(ms for _, ms in jobs)]))


# %% check-1
cases = {
    "two quarters": ([(0.25, 10), (0.25, 30)], 40, 30),
    "three halves": ([(0.5, 10)] * 3, 30, 15),
    "a long one beside full ones": ([(0.1, 90), (1, 20), (1, 30)], 140, 90),
    "two that fill the GPU": ([(1, 20), (1, 20)], 40, 40),
}
for name, (jobs, turns, side) in cases.items():
    told = [finished_ms(jobs, way) for way in ("turns", "side by side")]
    ct.check(np.array(told), np.array([turns, side], float), name=name)
ms = 40
within = 0.25
steps, sms = calibrated(ms)
short, long = Job("count", sms // 4, steps), Job("count", sms // 4, 2 * steps)
plans = {
    "by turns": [short, long],
    "by side": [Job("count", sms // 2, steps, streams=4)],
}
expected = {
    "by turns": finished_ms([(0.25, ms), (0.25, 2 * ms)], "turns"),
    "by side": finished_ms([(0.5, ms)] * 4, "side by side"),
}
for name, times in took_ms(plans, rounds=3).items():
    told, found = np.array([expected[name]]), np.array([np.median(times)])
    ct.check(told, found, name=name, rtol=within, atol=0)

# %% given-2
import ctypes

import numpy as np

import cudatut as ct
from cudatut.book.memory.sharing.green_calls import (
    FLAGS, NON_BLOCKING, SM, address, call, launch, loaded,
)  # fmt: skip

ct.synchronize()  # the primary context is there, and current


# %% solution-2
def groups(count, wanted):
    """Streams whose kernels run on SMs of their own."""
    device = call("cuCtxGetDevice")
    whole = call("cuDeviceGetDevResource", device, SM)
    parts, _, _ = call("cuDevSmResourceSplitByCount", count, whole, 0, wanted)
    streams = []
    for part in parts:
        described = call("cuDevResourceGenerateDesc", [part], 1)
        context = call("cuGreenCtxCreate", described, device, FLAGS)
        streams.append(call("cuGreenCtxStreamCreate", context, NON_BLOCKING, 0))
    return streams


# %% check-2
kernel = loaded(ct.Kernel("memory/sharing/sharing.cu", "where"))
count, wanted, blocks = 3, 8, 16 * ct.device().sm_count
types = ctypes.c_void_p, ctypes.c_longlong
ran = []
for stream in groups(count, wanted):
    out = ct.to_device(np.full(blocks, -1, "int32"))
    ct.synchronize()
    launch(kernel, blocks, 32, stream, (address(out), 50_000), types)
    call("cuStreamSynchronize", stream)
    ran.append(set(out.get().tolist()))
ct.check(np.array([len(ran)]), np.array([count]), name="groups")
few = sum(len(one) < wanted for one in ran)
ct.check(np.array([few]), np.array([0]), name="groups with too few SMs")
twice = sum(len(one) for one in ran) - len(set().union(*ran))
ct.check(np.array([twice]), np.array([0]), name="SMs in two groups")
