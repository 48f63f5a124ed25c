# ---
# jupyter:
#   cudatut:
#     title: {en: "Streams and events: claims", zh: "流与事件：说法的检验"}
#     requires: sm_75
#     timeout_s: 180
#     sizes:
#       cycles: [100_000, 100]
#       rounds: [30, 1]
#       megabytes: [64, 1]
# ---

# %% [markdown]
# The slides' experiment: five times copy in, wait, copy out, in one stream or
# in five, for four launch shapes. All streams use one buffer, as there.

# %% setup
import random
import time

import numpy as np
import pycuda.driver as cuda
from cudatut.book.measure import order

import cudatut as ct

spin_cycles = ct.Kernel("memory/streams/streams.cu", "spin_cycles")
spin = ct.Kernel("memory/streams/streams.cu", "spin")
streams = [cuda.Stream() for _ in range(5)]
cycles = 100_000
rounds = 30
# By the name of the slides: blocks and threads of each axis.
SHAPES = {
    "<<<(4, 4), (4, 4)>>>": (4, 4),
    "<<<(1, 1), (16, 16)>>>": (1, 16),
    "<<<(4, 4), (16, 16)>>>": (4, 16),
    "<<<(64, 64), (16, 16)>>>": (64, 16),
}
bare = ct.time_once_bare if ct.tool.running() else ct.time_hidden


class Experiment:
    """The slides' five steps for one shape, in so many streams."""

    def __init__(self, blocks, threads):
        self.shape = {"grid": (blocks, blocks), "block": (threads, threads)}
        count = (blocks * threads) ** 2
        self.pinned = cuda.pagelocked_zeros(count, np.float32)
        self.pageable = np.zeros(count, np.float32)
        self.array = ct.to_device(self.pinned)
        threads *= threads
        at_once = spin_cycles.resources(block=threads).blocks_per_sm
        waves = blocks * blocks / (at_once * ct.device().sm_count)
        # The part of the GPU's places that the kernel fills while it runs.
        self.filled = waves / np.ceil(waves)

    def copy_in(self, stream, host):
        cuda.memcpy_htod_async(self.array.gpudata, host, stream)

    def copy_out(self, stream, host):
        cuda.memcpy_dtoh_async(host, self.array.gpudata, stream)

    def kernel(self, stream, host=None):
        spin_cycles(cycles, **self.shape, stream=stream)

    def all_steps(self, count, host):
        for i in range(5):
            stream = streams[i % count]
            self.copy_in(stream, host)
            self.kernel(stream)
            self.copy_out(stream, host)

    def measure(self):
        """Medians in microseconds: each step, the mean of five in a row; and
        all of them in one stream and in five.
        """
        steps = (self.copy_in, self.kernel, self.copy_out)

        def repeated(step):
            return lambda: [step(streams[0], self.pinned) for _ in range(5)]

        runs = {step.__name__: repeated(step) for step in steps}
        for count in (1, 5):
            runs[count] = lambda count=count: self.all_steps(count, self.pinned)
        runs["again"] = lambda: self.all_steps(1, self.pinned)
        times = ct.take_turns(runs, rounds, random.Random(0), bare)
        return {name: float(np.median(one)) for name, one in times.items()}


def predicted(copy_in, kernel, copy_out, filled):
    """One stream adds up. With five, what all streams share is passed on: the
    link in each direction, and the kernel's part of the GPU.
    """
    once = copy_in + kernel + copy_out
    return 5 * once, once + 4 * max(copy_in, copy_out, filled * kernel)


# %% shapes
rows, gains, controls = {}, {}, {}
for name, shape in SHAPES.items():
    experiment = Experiment(*shape)
    found = experiment.measure()
    steps = [found[step] / 5 for step in ("copy_in", "kernel", "copy_out")]
    one, five = predicted(*steps, experiment.filled)
    gains[name] = found[1] / found[5]
    controls[name] = found[1] / found["again"]
    rows[name] = {
        "1 stream, predicted": one,
        "1 stream": found[1],
        "5 streams, predicted": five,
        "5 streams": found[5],
        "1 / 5 streams": gains[name],
    }

# %% shapes-table
ct.table(
    "four launch shapes, five steps each",
    rows,
    corner="launch shape",
    units=dict.fromkeys(list(rows[name])[:4], "us"),
)

# %% [markdown]
# The slides print two times for the same one-stream run of the largest shape,
# and almost the same time twice for five streams. What does the memory on the
# host, pinned or pageable, change?

# %% two-numbers
large = Experiment(64, 16)


def by_host(count, host):
    """Milliseconds by the host's clock, the median of the runs."""
    found = []
    for _ in range(1 + rounds):
        begin = time.perf_counter()
        large.all_steps(count, host)
        wait()
        found.append(1e3 * (time.perf_counter() - begin))
    return float(np.median(found[1:]))


def wait(limit_s=10):
    give_up = time.monotonic() + limit_s
    while not all(stream.is_done() for stream in streams):
        if time.monotonic() > give_up:
            raise TimeoutError("the GPU has not finished")


hosts = {"pinned": large.pinned, "pageable": large.pageable}
by_memory = {
    name: {f"{count} streams": by_host(count, host) for count in (1, 5)}
    for name, host in hosts.items()
}

# %% two-numbers-table
ct.table(
    "the largest shape, by the host's memory",
    by_memory,
    corner="host memory",
    units={"1 streams": "ms", "5 streams": "ms"},
)

# %% five-streams-small
PLACE = {"en": "2.9, streams and events", "zh": "2.9，流与事件"}
small, *_, full = SHAPES
ct.claim(
    id="five-streams-small",
    source="CUDA slides 2.9",
    place=PLACE,
    form="printed",
    statement={
        "en": "A launch of 4 x 4 blocks of 4 x 4 threads, five times with a "
        "copy in and a copy out: time in one stream over time in five.",
        "zh": "4 × 4 个线程块、每块 4 × 4 个线程，连同传入传出共五次："
        "单流用时除以五个流的用时。",
    },
    expected=2.32,
    measured=gains[small],
    unit="×",
    rule="gain",
    control=(
        {"en": "one stream beside itself", "zh": "单流与自己相比"},
        controls[small],
        (0.97, 1.03),
    ),
)

# %% five-streams-full
ct.claim(
    id="five-streams-full",
    source="CUDA slides 2.9",
    place=PLACE,
    form="printed",
    statement={
        "en": "The same for 64 x 64 blocks of 16 x 16 threads, which fill the "
        "GPU. Two pages print different times for one stream, 5.35 and 8.76 "
        "ms, and the same for five: gains of 1.33 and of 2.18.",
        "zh": "同样的实验，64 × 64 个线程块、每块 16 × 16 个线程，占满 GPU。"
        "单流的时间在两页上不同，分别为 5.35 ms 和 8.76 ms，五个流的时间相同："
        "加速 1.33 倍和 2.18 倍。",
    },
    expected=1.33,
    measured=gains[full],
    unit="×",
    rule="gain",
    control=(
        {"en": "one stream beside itself", "zh": "单流与自己相比"},
        controls[full],
        (0.97, 1.03),
    ),
)

# %% [markdown]
# Is only one copy under way at a time? Two copies in two streams, in opposite
# directions and in the same one; and, as the control, two in one stream. A kernel
# in front of them holds both until the host has handed them out.

# %% directions
megabytes = 64
count = megabytes * 250_000
hosts = [cuda.pagelocked_zeros(count, np.float32) for _ in range(2)]
arrays = [ct.to_device(np.zeros(count, "float32")) for _ in range(2)]
held_ms = 5  # far longer than two calls take the host


def copy_in(stream, pair=0):
    cuda.memcpy_htod_async(arrays[pair].gpudata, hosts[pair], streams[stream])


def copy_out(stream, pair=1):
    cuda.memcpy_dtoh_async(hosts[pair], arrays[pair].gpudata, streams[stream])


def copies_at_once(one, other, second):
    """How many of the two were under way at once: copy_in in stream `one`, and
    `second`, which is copy_in or copy_out, in stream `other`.
    """
    with order.watched() as log:
        log.does("held")  # in the default stream: the others wait for it
        spin(held_ms * 1_000_000, grid=1, block=1)
        log.does("first copy", f"stream {one}")
        copy_in(one)
        log.does("second copy", f"stream {other}")
        second(other, pair=1)
    wait()
    return order.at_once(log.commands, "copy")


opposite, same = (copies_at_once(0, 1, way) for way in (copy_out, copy_in))
one_stream = copies_at_once(0, 0, copy_out)

# %% directions-times
runs = {
    "to the GPU": lambda: copy_in(0),
    "to the host": lambda: copy_out(1),
    "opposite directions": lambda: (copy_in(0), copy_out(1)),
    "same direction": lambda: (copy_in(0), copy_in(1, pair=1)),
}
times = ct.take_turns(runs, rounds, random.Random(0), bare)
us = {name: float(np.median(some)) for name, some in times.items()}
longer = max(us["to the GPU"], us["to the host"])
ct.facts(
    "two copies, time / the longer one alone",
    {
        name: us[name] / longer
        for name in ("opposite directions", "same direction")
    },
)

# %% one-copy-at-a-time
ct.claim(
    id="one-copy-at-a-time",
    source="CUDA slides 2.9",
    place=PLACE,
    form="said",
    statement={
        "en": "PCIe is shared, so only one copy runs at a time. Copies under "
        "way at once, two in two streams:",
        "zh": "PCIe 是共享的，所以同一时间只能执行一个 memcpy。两个流里各有一个"
        "复制，同时进行的有几个：",
    },
    expected=1,
    depends={
        "en": "whether both go in the same direction",
        "zh": "两个复制的方向是否相同",
    },
    sides=(
        ({"en": "the same direction", "zh": "方向相同"}, same),
        ({"en": "opposite directions", "zh": "方向相反"}, opposite),
    ),
    rule="equal",
    found="counted",
    control=(
        {
            "en": "two in opposite directions, in one stream",
            "zh": "方向相反的两个放在一个流里",
        },
        one_stream,
        1,
    ),
)

# %% [markdown]
# The slides' program uses one buffer in all streams. Which pairs touch it
# without an order?

# %% one-buffer
with order.watched() as log:
    for i in range(5):
        name = f"stream {i}"
        log.does(f"copy in {i}", name, reads="host", writes="array")
        large.copy_in(streams[i], large.pinned)
        log.does(f"kernel {i}", name)
        large.kernel(streams[i])
        log.does(f"copy out {i}", name, reads="array", writes="host")
        large.copy_out(streams[i], large.pinned)
wait()
found = {pair[:2] for pair in order.races(log.commands)}
ct.facts(
    "one buffer in five streams",
    {
        "kernels and copies": len(log.works()),
        "pairs without an order": len(found),
        "copies under way at once": order.at_once(log.commands, "copy"),
        "kernels under way at once": order.at_once(log.commands, "kernel"),
    },
)

# %% [markdown]
# Does the default stream wait for all streams? Two kernels of one length: the
# first in a stream, the second in the default stream.


# %% default-stream
def runs_at_once(flags):
    stream = cuda.Stream(flags)
    with order.watched() as log:
        log.does("kernel 1", "stream")
        spin(1_000_000, grid=1, block=1, stream=stream)
        log.does("kernel 2")
        spin(1_000_000, grid=1, block=1)
    return order.at_once(log.commands)


blocking, non_blocking = runs_at_once(0), runs_at_once(1)
with order.watched() as log:
    for i in range(2):
        log.does(f"kernel {i}", f"stream {i}")
        spin(1_000_000, grid=1, block=1, stream=streams[i])
in_two_streams = order.at_once(log.commands)
wait()

# %% default-stream-waits-for-any
ct.claim(
    id="default-stream-waits-for-any",
    source="Learn CUDA Programming, notes",
    place={"en": "CUDA Streams", "zh": "CUDA Streams 一节"},
    form="said",
    statement={
        "en": "The default stream does not run anything while earlier work in "
        "any stream of the GPU goes on. Kernels under way at once, one in a "
        "stream, and behind it one in the default stream:",
        "zh": "只要 GPU 上任何一个流里还有先前的工作，默认流就不会执行。一个流里有"
        "一个 kernel，后面跟一个默认流里的 kernel，同时运行的有几个：",
    },
    expected=1,
    depends={
        "en": "whether the stream was made as a non-blocking one",
        "zh": "那个流是不是以非阻塞方式创建的",
    },
    sides=(
        ({"en": "a blocking stream", "zh": "阻塞流"}, blocking),
        ({"en": "a non-blocking stream", "zh": "非阻塞流"}, non_blocking),
    ),
    rule="equal",
    found="counted",
    control=(
        {
            "en": "both in streams of their own: were the kernels too short to "
            "meet, it would show",
            "zh": "两个 kernel 各在一个流里；若是 kernel 太短碰不到一起，这里看得出来",
        },
        in_two_streams,
        2,
    ),
)
