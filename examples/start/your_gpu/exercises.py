# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "Peaks from a data sheet", zh: "由数据手册算出峰值"}
#         level: easy
#         minutes: 10
#         task:
#           en: >-
#             Complete `peaks`: it returns the peak bandwidth in GB/s and the peak arithmetic in TFLOP/s of a GPU. Both
#             clocks are in kHz and the bus is in bits, as the driver gives them. The check compares with the data
#             sheets of the GPUs in `CARDS`, and with what your own GPU reaches.
#           zh: >-
#             补全 `peaks`：返回一块 GPU 的峰值带宽（GB/s）和峰值运算速率（TFLOP/s）。与驱动一样，
#             两个时钟频率的单位是 kHz，总线宽度的单位是位。检查程序会与 `CARDS` 中各块 GPU 的数据手册比较，
#             也会与你自己的 GPU 实测能达到的速率比较。
#         fails: "check T4"
#       2:
#         title: {en: "Does this code run here?", zh: "这份代码能在这里运行吗"}
#         level: medium
#         minutes: 15
#         task:
#           en: >-
#             `nvcc` compiles for a target. Code for `sm_86` is machine code: it runs on GPUs with major version 8 and
#             minor version 6 or more. Code for `compute_86` is translated by the driver when the program starts: it
#             runs on every GPU with compute capability 8.6 or later. The last digit is the minor version: `sm_120` is
#             for 12.0. A letter `a` at the end (`sm_90a`, `compute_90a`) means: this compute capability and no other.
#             Complete `runs`, which says whether code for a target runs on a GPU. The check asks for each of `TARGETS`
#             on each of `GPUS`; it needs no GPU.
#           zh: >-
#             `nvcc` 要为某个目标编译。为 `sm_86` 编译的是机器码，能在主版本为 8、次版本不低于 6 的 GPU 上运行。
#             为 `compute_86` 编译的代码由驱动在程序启动时翻译，能在计算能力 8.6 及以后的所有 GPU 上运行。
#             最后一位数字是次版本：`sm_120` 对应 12.0。末尾的字母 `a`（`sm_90a`、`compute_90a`）
#             表示只能用于这一种计算能力。补全 `runs`，判断为某个目标编译的代码能否在某块 GPU 上运行。
#             检查程序会拿 `TARGETS` 里的每个目标与 `GPUS` 里的每块 GPU 逐一试验，不需要 GPU。
#         fails: "check sm_80"
# ---
# %% stub-1
def peaks(memory_clock, bus, clock, sms, units):
    """Peak bandwidth in GB/s and peak arithmetic in TFLOP/s."""
    return memory_clock * bus, clock * sms * units  # yours


# %% stub-2
def runs(target, capability):
    """Does code for this target run on a GPU of this capability?"""
    major, minor = capability
    return target == f"sm_{major}{minor}"  # yours: it runs on more
