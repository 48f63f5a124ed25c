# ---
# jupyter:
#   cudatut:
#     requires: sm_80
#     exercises:
#       1:
#         title: {en: "How many blocks does vLLM take?", zh: "vLLM 分多少块？"}
#         level: easy
#         minutes: 20
#         task:
#           en: >-
#             Open `vllm/worker/worker.py` of vLLM 0.6.3 and read `determine_num_available_blocks`. Write
#             `gpu_blocks(total, share, peak, model, block_size)`: the blocks that it gives the GPU. total: bytes of
#             GPU memory. share: `gpu_memory_utilization`. peak: bytes in use at the peak of the profiling run.
#             model: layers, KV heads and elements of a head. Keys and values are bf16. Too little memory gives 0.
#           zh: >-
#             打开 vLLM 0.6.3 的 `vllm/worker/worker.py`，阅读 `determine_num_available_blocks`。写出
#             `gpu_blocks(total, share, peak, model, block_size)`，返回这个函数给 GPU 分的块数。total：显存字节数；
#             share：`gpu_memory_utilization`；peak：试运行时占用显存的峰值，以字节计；model：层数、KV 头数和每个头的
#             元素数。键和值都是 bf16。显存不够时返回 0。
#         fails: "blocks"
#       2:
#         title: {en: "Who is preempted?", zh: "抢占谁？"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             Open `vllm/v1/core/sched/scheduler.py` of a version from 0.11 on, and find in `schedule` where a running
#             request is preempted because no block is free. Write `victim(running, policy)`: the request that gives
#             way. running: requests in the order in which they were admitted. policy: "fcfs" or "priority". Ours
#             keeps its list in the policy's order and takes the last; theirs does not.
#           zh: >-
#             打开 0.11 或更新版本的 `vllm/v1/core/sched/scheduler.py`，在 `schedule` 中找到没有空闲块时抢占运行中
#             请求的地方。写出 `victim(running, policy)`，返回要让出块的请求。running：运行中的请求，按接纳的先后排列；
#             policy："fcfs" 或 "priority"。本书的列表按策略排序，取最后一个；vLLM 的列表不是这样。
#         fails: "gives way"
# ---
# %% stub-1
def gpu_blocks(total, share, peak, model, block_size):
    layers, kv_heads, head_dim = model
    numbers = block_size * layers * kv_heads * head_dim
    return int(total * share) // numbers  # yours


# %% stub-2
def victim(running, policy):
    return running[0]  # yours
