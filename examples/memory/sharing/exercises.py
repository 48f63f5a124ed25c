# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "When are they done?", zh: "何时全部完成"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             `jobs` is a list of `(share, ms)`: a process with one kernel that
#             fills this share of the SMs and takes so many milliseconds alone.
#             All begin together. Write `finished_ms(jobs, way)`: after how many
#             milliseconds is the last one done, by `"turns"`, and
#             `"side by side"` if the SMs are used as well as they can be? The
#             check compares with arithmetic, and with processes and streams on
#             the GPU.
#           zh: >-
#             `jobs` 是由 `(share, ms)` 组成的列表：一个进程里的一个 kernel，占满这个比例的
#             SM，单独运行要这么多毫秒。所有进程同时开始。写 `finished_ms(jobs, way)`：
#             按 `"turns"`（轮流），最后一个在多少毫秒后完成？按 `"side by side"`（并排），
#             如果 SM 得到最充分的利用，又是多少？检查程序既与算出的数比较，也与 GPU 上的
#             进程和流比较。
#         fails: "are wrong"
#       2:
#         title: {en: "Three groups of SMs", zh: "三组 SM"}
#         level: medium
#         minutes: 25
#         task:
#           en: >-
#             Write `groups(count, wanted)`: a list of `count` streams, each in a
#             green context of its own with at least `wanted` SMs. No SM may
#             belong to two of them. `call`, `SM`, `FLAGS` and `NON_BLOCKING` are
#             those of this chapter. The check asks the blocks of a kernel on
#             which SMs they ran.
#           zh: >-
#             写 `groups(count, wanted)`：返回 `count` 个流，每个流在自己的绿色上下文里，
#             至少有 `wanted` 个 SM，任何一个 SM 都不能属于两个绿色上下文。`call`、`SM`、
#             `FLAGS` 和 `NON_BLOCKING` 与本章的相同。检查程序让 kernel 的线程块报告自己在
#             哪个 SM 上执行。
#         fails: "are wrong"
# ---


# %% stub-1
def finished_ms(jobs, way):
    """Milliseconds until the last job is done."""
    return float(max(ms for _, ms in jobs))  # yours: for both ways


# %% stub-2
def groups(count, wanted):
    """Streams whose kernels run on SMs of their own."""
    return [call("cuStreamCreate", NON_BLOCKING) for _ in range(count)]  # yours
