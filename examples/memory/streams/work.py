"""What the exercises on streams launch and wait for."""

import time

import numpy as np
import pycuda.driver as cuda

import cudatut as ct


def wait(ends, limit_s=10):
    """Until all events have happened; TimeoutError after so many seconds."""
    give_up = time.monotonic() + limit_s
    while not all(end.query() for end in ends):
        if time.monotonic() > give_up:
            raise TimeoutError("the GPU has not finished")


def took_ms(work, streams, runs=6):
    """Milliseconds from the first launch until all streams are done: the
    median of the runs after the first one.
    """
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        work()
        wait([cuda.Event().record(stream) for stream in streams])
        times.append(1e3 * (time.perf_counter() - begin))
    return float(np.median(times[1:]))


def plan_ms(plan):
    """Milliseconds that a plan of kernels takes on the GPU."""
    spin = ct.Kernel("memory/streams/streams.cu", "spin")
    streams = {stream: cuda.Stream() for _, stream, _, _ in plan}

    def launch():
        done = {}
        for name, stream, ms, waits in plan:
            for other in waits:
                streams[stream].wait_for_event(done[other])
            spin(int(1e6 * ms), grid=1, block=1, stream=streams[stream])
            done[name] = cuda.Event().record(streams[stream])

    return took_ms(launch, streams.values())
