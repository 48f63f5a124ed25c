# ---
# jupyter:
#   cudatut:
#     requires: sm_80
#     exercises:
#       1:
#         title: {en: "Has the delay passed?", zh: "等够了吗？"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             Open `vllm/core/scheduler.py` of vLLM 0.6.3 and read `_passed_delay`. Write
#             `passed(now, arrivals, running, last, factor)`: whether prompts may be computed now. arrivals: when each
#             waiting request came, in any order. running: how many run. last: seconds from the start of the last step
#             with prompts to the step after it. factor: `delay_factor`. Where nobody waits the answer is yes.
#           zh: >-
#             打开 vLLM 0.6.3 的 `vllm/core/scheduler.py`，阅读 `_passed_delay`。写出
#             `passed(now, arrivals, running, last, factor)`，返回现在能不能计算提示。arrivals：各个等待中的请求何时到来，
#             不一定有序；running：有几个请求在运行；last：从上一个含提示的步开始，到下一步为止的秒数；factor：
#             `delay_factor`。没有请求等待时返回真。
#         fails: "may be computed"
#       2:
#         title: {en: "Does the prompt fit?", zh: "提示放得下吗？"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             Open `vllm/v1/core/kv_cache_manager.py` of vLLM 0.33.0 and read in `allocate_slots` what happens before
#             blocks are taken. Write `admits(tokens, budget, free, spare, running, whole, block_size)`: whether a
#             waiting request is admitted. tokens: those that it has, none of them in the prefix cache. budget: tokens
#             that the step has left. free: blocks. spare: blocks of the watermark. running: how many run. whole:
#             `full_sequence_must_fit`. There are no guesses, and no other limits.
#           zh: >-
#             打开 vLLM 0.33.0 的 `vllm/v1/core/kv_cache_manager.py`，在 `allocate_slots` 中阅读分配块之前做了什么。写出
#             `admits(tokens, budget, free, spare, running, whole, block_size)`，返回是否接纳一个等待中的请求。tokens：
#             请求已有的词元数，前缀缓存里一个也没有；budget：这一步还剩多少词元的预算；free：空闲块数；spare：水位线要留的
#             块数；running：有几个请求在运行；whole：`full_sequence_must_fit`。没有猜测词元，也没有其他限制。
#         fails: "is admitted"
# ---
# %% stub-1
def passed(now, arrivals, running, last, factor):
    return now - max(arrivals, default=now) >= factor * last  # yours


# %% stub-2
def admits(tokens, budget, free, spare, running, whole, block_size):
    return -(-min(tokens, budget) // block_size) <= free  # yours
