# ---
# jupyter:
#   cudatut:
#     title: {en: "Pinned memory: claims", zh: "锁页内存：说法的检验"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       n: [67_108_864, 65_536]
#       most_ms: [100, 1]
#       repeats: [5, 1]
# ---

# %% [markdown]
# When does an asynchronous copy read the host's memory? The GPU waits in a kernel
# of one thread until the host writes a word, but 100 ms at most. Behind it a copy
# is enqueued. Then the host changes the source, and only then opens.

# %% setup
import time

import numpy as np
import pycuda.driver as cuda

import cudatut as ct

n = 67_108_864  # floats: 268 MB
most_ms = 100
wait_for = ct.Kernel("memory/pinned/pinned.cu", "wait_for")
word = cuda.pagelocked_zeros(
    1, "uint32", mem_flags=cuda.host_alloc_flags.DEVICEMAP
)
at = np.uint64(word.base.get_device_pointer())


# %% late
def changed_late(make, count):
    """How many ms the call takes, and how many elements arrive as they were
    changed after it had returned.
    """
    source, target = make(count, "float32"), ct.empty(count, "float32")
    source[:] = 1
    cuda.Context.synchronize()
    word[0] = 0
    wait_for(at, 1, most_ms * 1_000_000, grid=1, block=1)
    try:
        begin = time.perf_counter()
        cuda.memcpy_htod_async(target.gpudata, source)
        took = 1e3 * (time.perf_counter() - begin)
        source[:] = 2
    finally:
        word[0] = 1  # the GPU goes on
        cuda.Context.synchronize()
    arrived = target.get()
    assert np.isin(arrived, (1, 2)).all()
    return took, int((arrived == 2).sum())


kinds = {"pageable": np.empty, "pinned": cuda.pagelocked_empty}
counts = {"16 KiB": 4096, "200 kB": 50_000, "64 MiB": 1 << 24}
late = {
    (name, size): changed_late(make, count)
    for name, make in kinds.items()
    for size, count in counts.items()
}

# %% returns
ct.table(
    "an asynchronous copy behind a kernel that waits 100 ms at most",
    {
        f"{name}, {size}": {
            "the call takes": took,
            "changed elements that arrive": changed,
            "elements": counts[size],
        }
        for (name, size), (took, changed) in late.items()
    },
    corner="host memory",
    units={"the call takes": "ms"},
)

# %% staging
ct.claim(
    id="notes-pageable-staged",
    source="Learn CUDA Programming, notes",
    place={"en": "Pinned Memory", "zh": "Pinned Memory 一节"},
    form="said",
    statement={
        "en": "The driver copies pageable memory into pinned memory of its own, "
        "and the GPU reads that. (So what the program writes to its array after "
        "the call must not arrive.) Changed elements that arrive, of 16,777,216:",
        "zh": "驱动先把可分页内存里的数据复制到自己的锁页内存，GPU 再从那里读取。"
        "（因此，调用返回之后程序再改写数组，改动不应到达 GPU。）"
        "16,777,216 个元素里，到达的改动有几个：",
    },
    expected=0,
    measured=late["pageable", "64 MiB"][1],
    rule="equal",
    found="counted",
    control=(
        {"en": "the same from pinned memory", "zh": "换成锁页内存"},
        late["pinned", "64 MiB"][1],
        counts["64 MiB"],
    ),
)

# %% [markdown]
# May a kernel read an array of NumPy as it is? In a process of its own, because
# an illegal address would end the context of this one.

# %% pageable-access
READING = """
import numpy as np
import pycuda.driver as cuda
import cudatut as ct

n = 100_000
copy = ct.Kernel("memory/pinned/pinned.cu", "copy")
pinned = cuda.pagelocked_empty(n, "float32")
pageable = cuda.aligned_empty(n, "float32", alignment=4096)
for name, host in {"pinned": pinned, "pageable": pageable}.items():
    host[:] = np.arange(n)
    out, right = ct.empty(n, "float32"), 0
    try:
        copy(np.uint64(host.ctypes.data), out, n, grid=25, block=256)
        right = int((out.get() == host).sum())
    except cuda.Error:
        pass
    print(name, right, flush=True)
"""
right = {"pinned": 0, "pageable": 0}
if not ct.tool.running():
    child = ct.isolated(READING)
    lines = (line.split() for line in child.stdout.splitlines())
    right |= {name: int(count) for name, count in lines}

# %% access
allowed = ct.attributes().get("PAGEABLE_MEMORY_ACCESS", 0)
ct.claim(
    id="notes-pageable-not-read",
    source="Learn CUDA Programming, notes",
    place={"en": "Pinned Memory", "zh": "Pinned Memory 一节"},
    form="said",
    statement={
        "en": "The GPU does not access pageable memory, because it can be "
        "swapped out. (Systems with the attribute PAGEABLE_MEMORY_ACCESS do; "
        f"here it is {allowed}.) Elements that a kernel reads right from such an array, "
        "of 100,000:",
        "zh": "可分页内存可能被换出，所以 GPU 不访问这种内存。（设备属性 "
        f"PAGEABLE_MEMORY_ACCESS 为 1 的系统可以；这里是 {allowed}。）kernel 直接读"
        "这样的数组，100,000 个元素里读对的有几个：",
    },
    expected=0,
    measured=right["pageable"],
    rule="equal",
    found="counted",
    control=(
        {"en": "the same from pinned memory", "zh": "换成锁页内存"},
        right["pinned"],
        100_000,
    ),
)

# %% [markdown]
# Which part of a copy's time does the call itself take? A call that returns at
# once leaves the host free, one that takes all of it does not.

# %% calls
repeats = 5
pageable = np.ones(n, "float32")
pinned = cuda.pagelocked_empty(n, "float32")
pinned[:] = 1
target = ct.empty(n, "float32")


def share_of_call(call):
    """Time until the call returns / time until the copy is done, a median."""
    shares = []
    for _ in range(repeats):
        cuda.Context.synchronize()
        begin = time.perf_counter()
        call()
        returned = time.perf_counter()
        cuda.Context.synchronize()
        shares.append((returned - begin) / (time.perf_counter() - begin))
    return float(np.median(shares))


def asynchronous(host):
    return lambda: cuda.memcpy_htod_async(target.gpudata, host)


share = {
    "async, pinned": share_of_call(asynchronous(pinned)),
    "sync, pinned": share_of_call(
        lambda: cuda.memcpy_htod(target.gpudata, pinned)
    ),
}

# %% slides-async
ct.claim(
    id="slides-async-copy",
    source="CUDA slides 2.3",
    place={
        "en": "the list of APIs before the matrix product",
        "zh": "矩阵乘法之前的 API 列表",
    },
    form="said",
    statement={
        "en": "cudaMemcpyAsync copies asynchronously. (Part of the copy's time "
        "that the call takes, from pinned memory; half would be undecided.)",
        "zh": "cudaMemcpyAsync 以异步的方式传输数据。（从锁页内存复制时，调用"
        "占复制时间的几分之几；以二分之一为界。）",
    },
    expected=0.5,
    measured=share["async, pinned"],
    rule="below",
    control=(
        {"en": "cudaMemcpy from pinned memory", "zh": "cudaMemcpy，锁页内存"},
        share["sync, pinned"],
        (0.9, 1.1),
    ),
)

# %% [markdown]
# The notes on CS179 copy 200,000 bytes from malloc. Does that call wait until the
# GPU has come so far? From the experiment above: its time / the 100 ms.

# %% notes-async
waits = {
    size: late["pageable", size][0] / most_ms for size in ("200 kB", "64 MiB")
}
ct.claim(
    id="cs179-async-from-malloc",
    source="CS179 notes",
    place={
        "en": "the example vectorAdd, 'asynchronous data copy'",
        "zh": "vectorAdd 示例，“异步数据复制”",
    },
    form="code",
    statement={
        "en": "For an asynchronous copy of 200,000 bytes, cudaMemcpyAsync is "
        "given memory from malloc. (How long the call waits for a busy GPU, as "
        "a part of the time that it is busy; half would be undecided.)",
        "zh": "为了异步复制 200,000 字节，把 malloc 得到的内存交给 cudaMemcpyAsync。"
        "（GPU 正忙时，调用等待的时间占 GPU 忙碌时间的几分之几；以二分之一为界。）",
    },
    expected=0.5,
    depends={"en": "how large the array is", "zh": "数组有多大"},
    sides=(
        (
            {"en": "200 kB, as there", "zh": "200 kB，与原文相同"},
            waits["200 kB"],
        ),
        ({"en": "64 MiB", "zh": "64 MiB"}, waits["64 MiB"]),
    ),
    rule="below",
    control=(
        {
            "en": "64 MiB from pinned memory: the call itself is short",
            "zh": "64 MiB，换成锁页内存：调用本身很短",
        },
        late["pinned", "64 MiB"][0] / most_ms,
        (0.0, 0.3),
    ),
)

# %% [markdown]
# Must memory be pinned, for a copy to overlap with a kernel? The kernel runs for
# 40 ms in one stream, the copy in another; the kernel is launched first.

# %% overlap
first, second = cuda.Stream(1), cuda.Stream(1)  # 1: CU_STREAM_NON_BLOCKING


def seconds(*steps):
    cuda.Context.synchronize()
    begin = time.perf_counter()
    for step in steps:
        step()
    cuda.Context.synchronize()
    return time.perf_counter() - begin


def kernel():
    wait_for(at, 1, 40_000_000, grid=1, block=1, stream=first)


def overlapped(host, kernel_first=True):
    """Which part of the shorter of the two went on beside the longer one."""

    def copy():
        cuda.memcpy_htod_async(target.gpudata, host, second)

    steps = (kernel, copy) if kernel_first else (copy, kernel)
    parts = []
    for _ in range(repeats):
        alone = seconds(kernel), seconds(copy)
        both = seconds(*steps)
        parts.append((sum(alone) - both) / min(alone))
    return float(np.median(parts))


word[0] = 0  # nobody opens: each kernel takes its 40 ms
beside = {
    "pageable, kernel first": overlapped(pageable),
    "pageable, copy first": overlapped(pageable, kernel_first=False),
    "pinned, kernel first": overlapped(pinned),
    "pinned, copy first": overlapped(pinned, kernel_first=False),
}

# %% overlapped
ct.facts("part of the shorter one that is overlapped", beside)

# %% overlap-needs-pinned
ct.claim(
    id="notes-overlap-needs-pinned",
    source="Learn CUDA Programming, notes",
    place={"en": "CUDA Streams", "zh": "CUDA Streams 一节"},
    form="said",
    statement={
        "en": "For a transfer to overlap with a kernel, its host memory must be "
        "pinned. (Overlapped part of a copy from pageable memory; half would "
        "be undecided.)",
        "zh": "传输要与 kernel 重叠，用到的主机内存必须是锁页内存。（从可分页内存复制，"
        "重叠的部分占几分之几；以二分之一为界。）",
    },
    expected=0.5,
    depends={
        "en": "which of the two calls comes first: the copy from pageable "
        "memory holds the host until it is nearly done",
        "zh": "两个调用谁在前：从可分页内存复制时，主机要等到复制快完成才能继续",
    },
    sides=(
        (
            {
                "en": "the copy first, then the kernel",
                "zh": "先复制，再启动 kernel",
            },
            beside["pageable, copy first"],
        ),
        (
            {
                "en": "the kernel first, then the copy",
                "zh": "先启动 kernel，再复制",
            },
            beside["pageable, kernel first"],
        ),
    ),
    rule="below",
    control=(
        {
            "en": "pinned memory, the copy first: were the clock blind to "
            "overlap, it would miss this",
            "zh": "锁页内存，先复制；若是计时看不出重叠，这里也看不出来",
        },
        beside["pinned, copy first"],
        (0.7, 1.2),
    ),
)
