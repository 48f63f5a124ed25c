# ---
# jupyter:
#   cudatut:
#     title: {en: "Coalesced access: claims of other sources", zh: "合并访问：其他资料的说法"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       n: [16777216, 65536]
#       large: [4092, 96]
# ---

# %% [markdown] about
# A rule of the first CUDA devices, tried on this GPU, and one gain that the
# SGEMM worklog reports.

# %% order
# One warp's lanes in their order, shuffled, and eight words apart: then each
# lane has a sector of its own.
import numpy as np

import cudatut as ct

read_pattern = ct.Kernel("basics/coalescing/coalescing.cu", "read_pattern")
lane, threads = np.arange(32), 64 * 256
host = ct.rng(0).random(8 * threads, dtype="float32")
source = ct.to_device(host)
PATTERNS = {  # name: stride, turn, flip
    "aligned": (1, 1, 0),
    "shuffled": (1, 13, 6),
    "stride 8": (8, 1, 0),
}
for name, (stride, turn, flip) in PATTERNS.items():
    out = ct.empty(threads, "float32")
    read_pattern(source, out, stride, 0, turn, flip, grid=64, block=256)
    place = np.arange(threads).reshape(-1, 32)[:, lane * turn % 32 ^ flip]
    ct.check(out, host[stride * place.reshape(-1)], name=name)
REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
counted = ct.profile_launches(
    "basics/coalescing_claims",
    kernel="read_pattern",
    metrics=[REQUESTS, SECTORS],
    launches=len(PATTERNS),
)

# %% claim-order
if counted:
    per_request = [c[SECTORS] / c[REQUESTS] for c in counted]
    aligned, shuffled, apart = per_request
    ct.claim(
        id="coalescing-in-order",
        source="CUDA C Programming Guide",
        place={
            "en": "version 4.2, appendix F (compute capabilities), global memory "
            "of devices of compute capability 1.0 and 1.1",
            "zh": "4.2 版附录 F（计算能力），计算能力 1.0 和 1.1 的设备的全局内存",
        },
        form="said",
        statement={
            "en": "On a device of compute capability 1.0, lane k of a half-warp "
            "has to access word k of an aligned segment. In any other order "
            "each lane gets a transaction of 32 bytes of its own: 32 for a "
            "warp. Here, with the lanes shuffled, in sectors of 32 bytes:",
            "zh": "计算能力 1.0 的设备上，半个线程束里的第 k 个 lane 必须访问"
            "对齐段中的第 k 个字；换成别的次序，每个 lane 单独占一次 32 字节的"
            "传输，一个线程束就是 32 次。这里把 lane 打乱，数 32 字节的扇区：",
        },
        expected=32.0,
        measured=shuffled,
        unit="sectors/request",
        rule="equal",
        found="counted",
        control=(
            {
                "en": "lanes eight words apart, where each has a sector of "
                "its own",
                "zh": "各 lane 相隔八个字，每个 lane 单独占一个扇区",
            },
            apart,
            32.0,
        ),
        elsewhere=True,
    )

# %% misaligned
# A copy whose reads begin at an aligned address, and one word further on.
offset_copy = ct.Kernel("basics/coalescing/coalescing.cu", "offset_copy")
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

# %% misaligned-facts
shifted = copies["one word on"].median_us / copies["aligned"].median_us
ct.facts("copy, one word on", {"time, one word on / aligned": shifted})

# %% matmul
# Of the worklog's size. The faster kernel runs twice, as a control.
from cudatut.book.basics.ladder.ladder import LADDER, Matmul

large = 4092
for name in ("naive_rows", "naive_columns"):
    LADDER.check(name, [{"m": 100, "n": 70, "k": 50}])
product = Matmul(large, large, large)
runs = {
    name: product.launcher(LADDER[name])
    for name in ("naive_rows", "naive_columns")
}
matmul_times = ct.bench(
    runs | {"naive_columns again": runs["naive_columns"]},
    flops=product.flops,
    rounds=5,
    name="4092 x 4092 x 4092",
)

# %% claim-matmul
slow, fast, again = (
    matmul_times[name].median_us
    for name in ("naive_rows", "naive_columns", "naive_columns again")
)
faster = slow / fast
worklog = 1986.5 / 309  # GFLOP/s of its kernels 2 and 1
ct.claim(
    id="matmul-coalesced",
    source="SGEMM worklog, kernels 1 and 2",
    place={
        "en": "the table of all kernels at the beginning; size and GPU (RTX "
        "A6000) in the section on kernel 1",
        "zh": "开头列出全部 kernel 的表；大小和 GPU（RTX A6000）见 kernel 1 "
        "一节",
    },
    form="printed",
    statement={
        "en": "The product of 4092 x 4092 matrices makes 309 GFLOP/s, and "
        "1986.5 GFLOP/s once neighboring lanes of a warp take "
        "neighboring elements of a row. Times as fast:",
        "zh": "4092 × 4092 的矩阵乘法，原来是 309 GFLOP/s；改为线程束里相邻"
        "的 lane 负责同一行中相邻的元素之后，是 1986.5 GFLOP/s。速度是"
        "原来的：",
    },
    expected=worklog,
    measured=faster,
    unit="×",
    rule="gain",
    control=(
        {
            "en": "the second kernel against itself",
            "zh": "第二个 kernel 与自己比",
        },
        fast / again,
        (0.97, 1.03),
    ),
)
