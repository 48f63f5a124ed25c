# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "Two buffers, two events", zh: "两个缓冲区，两个事件"}
#         level: easy
#         minutes: 20
#         task:
#           en: >-
#             `put(i, buffer)` fills a buffer in stream `a`, and `use(i, buffer)`
#             copies what it holds, in stream `b`. Item i goes through buffer
#             i % 2. Write `pipeline(count, put, use, a, b)` so that every item
#             arrives, and so that the two streams still work at the same time.
#             The host may not wait. Which two orders are needed for each item?
#           zh: >-
#             `put(i, buffer)` 在流 `a` 里填写一个缓冲区，`use(i, buffer)` 在流 `b`
#             里把其中的内容复制出来。第 i 项使用缓冲区 i % 2。写
#             `pipeline(count, put, use, a, b)`：每一项都要正确，两个流还要能同时工作，
#             主机不得等待。每一项需要哪两个先后关系？
#         fails: "are wrong"
#       2:
#         title: {en: "The time of a plan", zh: "计划的用时"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             A plan is a list of kernels in the order of their launches, each
#             `(name, stream, ms, waits)`: it begins when the one before it in its
#             stream is done and all that it waits for, by their names, are done.
#             The GPU has room for all. Write `finished(plan)`: after how many
#             milliseconds is the whole plan done? The check launches plans.
#           zh: >-
#             计划是一个列表，按启动次序列出各个 kernel，每个写成
#             `(name, stream, ms, waits)`：同一个流里的前一个 kernel 已经完成，`waits`
#             里列出的各个 kernel 也都完成之后，它才开始。GPU 放得下所有 kernel。写
#             `finished(plan)`：整个计划多少毫秒之后完成？检查程序会把计划真正启动一遍。
#         fails: "are wrong"
# ---


# %% stub-1
def pipeline(count, put, use, a, b):
    for i in range(count):
        put(i, i % 2)  # in stream a
        use(i, i % 2)  # in stream b; yours: who waits for whom?


# %% stub-2
def finished(plan):
    """Milliseconds until all kernels of the plan are done."""
    return float(sum(ms for _, _, ms, _ in plan))  # yours
