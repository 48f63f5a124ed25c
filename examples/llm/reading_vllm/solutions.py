# ---
# jupyter:
#   cudatut:
#     title: {en: "Reading vLLM today: solutions", zh: "读今天的 vLLM：参考答案"}
#     requires: sm_80
#     extra: llm
#     alone: false
# ---

# %% [markdown]
# Two answers that stand in vLLM's source: how many blocks it takes, and which
# request gives way.

# %% given-1
import numpy as np


# %% solution-1
def gpu_blocks(total, share, peak, model, block_size):
    layers, kv_heads, head_dim = model
    # Keys and values, two bytes each.
    block = block_size * layers * kv_heads * head_dim * 2 * 2
    return max(int((total * share - peak) // block), 0)


# %% check-1
import cudatut as ct
import numpy as np

GIB, SMOL, LLAMA = 1 << 30, (30, 3, 64), (32, 8, 128)
cases = {
    (80 * GIB, 0.9, 2 * GIB, SMOL, 16): 203_889,
    (80 * GIB, 0.9, 20 * GIB, LLAMA, 16): 26_624,
    (80 * GIB, 0.5, 20 * GIB, LLAMA, 16): 10_240,
    (16 * GIB, 0.9, 15 * GIB, LLAMA, 16): 0,
    (24 * GIB, 0.9, 17 * GIB, LLAMA, 32): 1_177,
}
found = np.array([gpu_blocks(*case) for case in cases])
ct.check(found, np.array(list(cases.values())), name="blocks of the KV cache")

# %% given-2
import numpy as np
from cudatut.book.llm.engine.request import Request


# %% solution-2
def victim(running, policy):
    if policy == "priority":
        return max(running, key=lambda r: (r.priority, r.arrival))
    return running[-1]


# %% check-2
import cudatut as ct

chosen = {"fcfs": [], "priority": []}
right = {"fcfs": [], "priority": []}
for trial in range(20):
    rng = ct.rng(trial)
    running = [
        Request(i, [1], 1, float(rng.random()), int(rng.integers(0, 4)))
        for i in range(int(rng.integers(2, 12)))
    ]
    right["fcfs"].append(running[-1].id)
    last = max((r.priority, r.arrival, r.id) for r in running)
    right["priority"].append(last[2])
    for policy, numbers in chosen.items():
        numbers.append(victim(list(running), policy).id)
for policy, numbers in chosen.items():
    ct.check(
        np.array(numbers),
        np.array(right[policy]),
        name=f"who gives way, {policy}",
    )
