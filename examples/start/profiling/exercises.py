# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "A clock, and a test of it", zh: "写一个计时函数，并检验它"}
#         level: easy
#         minutes: 10
#         given: ["twice as long", "时间也加倍"]
#         task:
#           en: >-
#             Complete `event_us`: it returns the time of `call()` on the GPU in microseconds, measured with CUDA
#             events: the median of `rounds` calls, after one warm-up call that does not count. The kernel `spin` takes
#             twice as long for twice as many steps, and the check tests your clock with it.
#           zh: >-
#             补全 `event_us`：用 CUDA 事件测量 `call()` 在 GPU 上的时间，先预热一次（不计入），
#             再返回 `rounds` 次调用的中位数，单位微秒。`spin` 这个 kernel 的步数加倍，时间也加倍；
#             检查程序就用它来检验你的计时。
#         fails: "twice and four times the work"
#       2:
#         title: {en: "The kernel's time and the copy's time", zh: "kernel 的时间与复制的时间"}
#         level: medium
#         minutes: 10
#         given: ["30 %", "30%"]
#         task:
#           en: >-
#             `split_ms` makes a launch and a copy that needs its result, and returns two times in milliseconds: that
#             of the kernel and that of the copy. As it stands the copy is charged with the kernel's time. Correct it.
#             The check measures both by themselves, and your times must agree with that to 30 %.
#           zh: >-
#             `split_ms` 先启动 kernel，再复制它的结果，返回两个时间（毫秒）：kernel 的和复制的。
#             现在 kernel 的时间算到了复制上，请改正。检查程序会分别单独测量两者，你的结果与之相差不能超过 30%。
#         fails: "kernel and copy"
# ---
# %% stub-1
def event_us(call, rounds=11):
    """Median time of call() on the GPU, in microseconds."""
    start = time.perf_counter()
    call()
    return 1e6 * (time.perf_counter() - start)  # yours: use events


# %% stub-2
def split_ms(launch, copy):
    """Milliseconds of the kernel, and of the copy by itself."""
    start = time.perf_counter()
    launch()
    launched = time.perf_counter()
    copy()
    copied = time.perf_counter()
    return 1e3 * (launched - start), 1e3 * (copied - launched)
