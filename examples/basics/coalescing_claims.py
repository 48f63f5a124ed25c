# ---
# jupyter:
#   cudatut:
#     title: {en: "Coalesced access: claims of other sources", zh: "合并访问：其他资料的说法"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       n: [16777216, 65536]
#       large: [2048, 96]
# ---

# %% [markdown] about
# Two rules of the first CUDA devices, tried on this GPU, and one gain that the
# SGEMM worklog reports.

# %% order
# One warp's order of lanes: as it is, and shuffled.
import numpy as np

import cudatut as ct

read_pattern = ct.Kernel("basics/coalescing.cu", "read_pattern")
lane, threads = np.arange(32), 64 * 256
host = ct.rng(0).random(threads, dtype="float32")
source = ct.to_device(host)
ORDERS = {"aligned": (1, 0), "shuffled": (13, 6)}  # turn, flip
for name, (turn, flip) in ORDERS.items():
    out = ct.empty(threads, "float32")
    read_pattern(source, out, 1, 0, turn, flip, grid=64, block=256)
    place = np.arange(threads).reshape(-1, 32)[:, lane * turn % 32 ^ flip]
    ct.check(out, host[place.reshape(-1)], name=name)
REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
counted = ct.profile_launches(
    "basics/coalescing_claims",
    kernel="read_pattern",
    metrics=[REQUESTS, SECTORS],
    launches=len(ORDERS),
)

# %% claim-order
if counted:
    aligned, shuffled = (c[SECTORS] / c[REQUESTS] for c in counted)
    ct.claim(
        id="coalescing-in-order",
        source="CUDA C Programming Guide, compute capability 1.0",
        statement={
            "en": "On a device of compute capability 1.0 an access is coalesced only if lane k wants word k "
            "of an aligned segment; in another order each lane is served alone",
            "zh": "计算能力 1.0 的设备上，只有第 k 个 lane 访问对齐段中的第 k 个字才算合并访问；换成别的顺序，就逐个 lane 处理",
        },
        predicted=32,
        measured=shuffled,
        unit="sectors per request, shuffled",
        # The rule is about its own devices; here it does not hold.
        verdict="depends" if shuffled == aligned else "confirmed",
    )

# %% misaligned
# A copy whose reads begin at an aligned address, and one word further on.
offset_copy = ct.Kernel("basics/coalescing.cu", "offset_copy")
n = 16_777_216
numbers_host = ct.rng(1).random(n + 1, dtype="float32")
numbers, copied = ct.to_device(numbers_host), ct.empty(n, "float32")


def copy(offset):
    offset_copy(numbers, copied, n, offset, grid=ct.cdiv(n, 256), block=256)


for offset in (0, 1):
    ct.poison(copied)
    copy(offset)
    ct.check(copied, numbers_host[offset : offset + n], name=f"offset {offset}")
copies = ct.bench(
    {"aligned": lambda: copy(0), "one word on": lambda: copy(1)},
    bytes=2 * 4 * n,
    name="copy of 64 MiB",
)

# %% claim-misaligned
shifted = copies["one word on"].median_us / copies["aligned"].median_us
ct.claim(
    id="misaligned-half-speed",
    source="CUDA C Programming Guide, compute capability 1.2",
    statement={
        "en": "On a device of compute capability 1.2 a half-warp whose 16 words lie in two segments needs two "
        "transactions instead of one; if the time follows them, it doubles",
        "zh": "计算能力 1.2 的设备上，半个线程束的 16 个字若落在两个段里，一次传输就变成两次；时间若由传输次数决定，就要加倍",
    },
    predicted=2.0,
    measured=shifted,
    unit="time, one word on / aligned",
    # Its own devices are not at hand; on this GPU the time decides.
    verdict="confirmed" if shifted > 1.75 else "depends",
)

# %% matmul
from ladder import LADDER

large = 2048
for name in ("naive_rows", "naive_columns"):
    LADDER.check(name, [{"m": 100, "n": 70, "k": 50}])
matmul_times = LADDER.bench(
    ["naive_rows", "naive_columns"],
    m=large,
    n=large,
    k=large,
    rounds=5,
    name="2048 x 2048 x 2048",
)

# %% claim-matmul
slow, fast = matmul_times["naive_rows"], matmul_times["naive_columns"]
faster = slow.median_us / fast.median_us
worklog = (
    1986.5 / 309
)  # GFLOP/s of its kernels 2 and 1 at 4092, on an RTX A6000
ct.claim(
    id="matmul-coalesced",
    source="SGEMM worklog, kernels 1 and 2 (RTX A6000)",
    statement={
        "en": "The same matrix product runs six times as fast once the lanes of a warp walk along a row",
        "zh": "同一个矩阵乘法，只要让线程束里的线程沿着行走，速度就变成六倍",
    },
    predicted=worklog,
    measured=faster,
    unit="time, naive_rows / naive_columns",
    verdict="refuted"
    if faster < 1.5
    else "confirmed"
    if 0.75 < faster / worklog < 1.33
    else "depends",
)
