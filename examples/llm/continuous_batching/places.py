# ---
# jupyter:
#   cudatut:
#     title: {en: "Continuous batching: fewer places, smaller budgets", zh: "连续批处理：更少的位置，更小的预算"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 240
#     sizes:
#       layers: [30, 1]
#       vocab: [49152, 512]
#       COUNT: [256, 3]
#       SLOTS: [64, 2]
#       long_prompts: [[32, 512, 32, 256], [8, 24, 2, 3]]
#       short_prompts: [[16, 64, 16, 256], [4, 16, 2, 3]]
#       repeats: [5, 1]
#       turns: [2, 1]
#       places: [[16, 32], [2]]
#       budgets: [[128, 512, 2048], [64]]
# ---

# %% [markdown]
# What changes with fewer places for requests, and with fewer tokens in a step?

# %% setup
import numpy as np

import cudatut as ct
from cudatut.book.llm.backends.gpu_backend import GpuBackend
from cudatut.book.llm.continuous_batching.runs import (
    BLOCK,
    BLOCKS,
    KINDS,
    bound_with_times,
    engine_of,
    requests_of,
    serve,
    step_us,
)
from cudatut.book.llm.engine.static_batches import bound
from cudatut.book.llm.model.random_model import RandomModel

COUNT = 256  # requests
SLOTS = 64  # at a time
BUDGET = 2048  # tokens of a step
long_prompts = (32, 512, 32, 256)
short_prompts = (16, 64, 16, 256)
vocab = 49152
layers = 30
backend = GpuBackend(
    RandomModel(layers=layers, vocab=vocab),
    block_count=BLOCKS,
    block_size=BLOCK,
    max_tokens=BUDGET,
    max_requests=SLOTS,
)


def times_of(label, ends, budget=BUDGET, slots=SLOTS, seen=None):
    """As `serve`, of the scheduler with this label."""
    engine = engine_of(backend, *KINDS[label], budget, slots, ahead=True)
    return serve(engine, requests_of(ends, COUNT, vocab), seen)


# %% places
# The fewer places, the less steps differ in length. Steps are measured anew.
places = (16, 32)
turns = 2
requests = requests_of(short_prompts, COUNT, vocab)
outputs = [request.max_tokens for request in requests]
table = {}
for slots in places:
    seconds, seen = {"static": [], "continuous, longest first": []}, {}
    for turn in range(1 + turns):  # the first compiles and captures
        for label, found in seconds.items():
            took, _ = times_of(
                label, short_prompts, slots=slots, seen=seen if turn else None
            )
            found += [took] if turn else []
    ratio = min(seconds["static"]) / min(seconds["continuous, longest first"])
    most = bound(outputs, slots)
    with_its_times = bound_with_times(seen, outputs, slots)
    table[slots] = {
        "bound": most,
        "times static": ratio,
        "of the bound": 100 * ratio / most,
        "step with one request": step_us(seen, 1),
        "step with all": step_us(seen, slots),
        "bound with these times": with_its_times,
        "of that bound": 100 * ratio / with_its_times,
    }
ct.table(
    "longest first, short prompts",
    table,
    corner="requests at a time",
    units={
        "bound": "×",
        "times static": "×",
        "of the bound": "%",
        "step with one request": "us",
        "step with all": "us",
        "bound with these times": "×",
        "of that bound": "%",
    },
)

# %% budget
# A smaller budget cuts prompts into more chunks.
budgets = (128, 512, 2048)
repeats = 5
requests = requests_of(long_prompts, COUNT, vocab)
answers = sum(request.max_tokens for request in requests)
served = {budget: [] for budget in budgets}
for turn in range(1 + repeats):  # the first compiles and captures
    for budget, found in served.items():
        one = times_of("continuous, first come", long_prompts, budget)
        found += [one] if turn else []
table = {}
for budget, found in served.items():
    table[budget] = {
        "longest step": 1000 * float(np.median([max(t) for _, t in found])),
        "p99 of the steps": 1000
        * float(np.median([np.percentile(t, 99) for _, t in found])),
        "tokens/s": answers / float(np.median([s for s, _ in found])),
    }
ct.table(
    "by the token budget",
    table,
    corner="most tokens of a step",
    units={"longest step": "ms", "p99 of the steps": "ms"},
)
