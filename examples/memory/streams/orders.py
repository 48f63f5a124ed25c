# ---
# jupyter:
#   cudatut:
#     title: {en: "Streams and events: orders of launch", zh: "流与事件：启动的次序"}
#     requires: sm_75
#     timeout_s: 120
# ---

# %% [markdown]
# Three orders of four kernels, A1 before B1 in one stream, A2 before B2 in
# another: with the driver's own number of queues, and with a single one.

# %% orders
import json

import cudatut as ct

lengths = (3, 1, 1, 3)  # ms of A1, B1, A2, B2
ORDERS = ("A1 B1 A2 B2", "A1 A2 B1 B2", "A1 A2 B2 B1")
PROGRAM = """
import json, time
import numpy as np
import pycuda.driver as cuda
import cudatut as ct

spin = ct.Kernel("memory/streams/streams.cu", "spin")
streams = cuda.Stream(), cuda.Stream()

def run(order):
    begin = time.perf_counter()
    for name in order.split():
        stream = streams[int(name[1]) - 1]
        spin(int(1e6 * ms[name]), grid=1, block=1, stream=stream)
    while not all(stream.is_done() for stream in streams):
        if time.perf_counter() > begin + 10:
            raise TimeoutError("the GPU has not finished")
    return 1e3 * (time.perf_counter() - begin)

found = {order: [run(order) for _ in range(8)][1:] for order in orders}
print(json.dumps({order: float(np.median(t)) for order, t in found.items()}))
"""


# --8<-- [start:queues]
def finished(order, ms, one_queue):
    """Milliseconds until all are done: a kernel waits for the one before it in
    its stream, and in a single queue for all before it to have begun.
    """
    ends, begun = {"1": 0, "2": 0}, 0
    for name in order.split():
        begin = ends[name[1]]
        if one_queue:
            begin = begun = max(begin, begun)
        ends[name[1]] = begin + ms[name]
    return max(ends.values())


# --8<-- [end:queues]
ms = dict(zip(("A1", "B1", "A2", "B2"), lengths))


def measured(env):
    """What the program finds in a process of its own, with these variables."""
    if ct.tool.running():  # which would not follow into that process
        return dict.fromkeys(ORDERS, 0.0)
    done = ct.isolated(f"orders, ms = {ORDERS}, {ms}\n{PROGRAM}", env=env)
    if done.returncode:
        raise ct.CudatutError(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


many = measured({})
single = measured({"CUDA_DEVICE_MAX_CONNECTIONS": "1"})
rows = {
    order: {
        "predicted": finished(order, ms, False),
        "measured": many[order],
        "1 queue, predicted": finished(order, ms, True),
        "1 queue": single[order],
    }
    for order in ORDERS
}

# %% orders-table
ct.table(
    "three orders of the same four kernels",
    rows,
    corner="order",
    units=dict.fromkeys(rows[ORDERS[0]], "ms"),
)
