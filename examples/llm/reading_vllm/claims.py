# ---
# jupyter:
#   cudatut:
#     title: {en: "Reading vLLM today: claims", zh: "读今天的 vLLM：有关说法"}
#     requires: sm_80
#     extra: llm
#     alone: false
#     timeout_s: 120
# ---

# %% [markdown]
# What vLLM's own documentation and the tutorial say of its schedulers, tried
# with both sets of rules on the modelled machine.

# %% setup
import numpy as np

import cudatut as ct
from cudatut.book.llm.engine.arrivals import (
    Clock,
    ModelBackend,
    metrics,
    replay,
    uniform,
    workload,
)
from cudatut.book.llm.engine.blocks import NaiveBlocks
from cudatut.book.llm.engine.engine import Engine
from cudatut.book.llm.engine.prefill_first import PrefillFirst
from cudatut.book.llm.engine.request import Request
from cudatut.book.llm.engine.scheduler import Refused, Scheduler


def serve(kind, budget, rate):
    """Median time to first token and 99th percentile of gaps, in ms."""
    clock = Clock()
    model = ModelBackend(clock, 4096, 16)
    machine = kind(NaiveBlocks(4096, 16), budget, max_running=32)
    engine = Engine(model, machine, clock=clock)
    lengths = {"prompt": uniform(32, 1024), "output": uniform(32, 256)}
    requests = workload(400, rate, seed=0, **lengths)
    replay(engine, requests, clock.wait)
    gaps = np.concatenate([np.diff(r.times) for r in requests])
    first = 1e3 * metrics(requests).ttft_p50
    return first, 1e3 * float(np.percentile(gaps, 99))


RATES = 100, 150, 200
whole = [serve(PrefillFirst, 2048, rate) for rate in RATES]
mixed = {
    budget: [serve(Scheduler, budget, rate) for rate in RATES]
    for budget in (512, 2048)
}


def least(above, below, which):
    """The smallest ratio over the rates; which: 0 first token, 1 gap."""
    return min(a[which] / b[which] for a, b in zip(above, below))


# %% claim-gap
ct.claim(
    id="vllm-prefill-first-gaps",
    source="vLLM, Performance and Tuning (V0)",
    place={
        "en": "docs/source/models/performance.rst, section on chunked prefill",
        "zh": "docs/source/models/performance.rst，分块预填充一节",
    },
    form="said",
    statement={
        "en": "Scheduling prompts first, without decoding beside them, makes "
        "the time between tokens longer than chunked prefill does. Here: 99th "
        "percentile of the gaps, prompts first over mixed, both with 2,048 "
        "tokens a step, the smallest of three loads.",
        "zh": "优先安排提示、不让解码与之同步进行，词元之间的间隔比分块预填充更长。这里是间隔的 99 百分位数之比：提示优先除以"
        "混合，两者每步都至多 2,048 个词元，取三种负载中最小的。",
    },
    expected=1.0,
    measured=least(whole, mixed[2048], 1),
    unit="×",
    rule="above",
    control=(
        {"en": "mixed, beside itself", "zh": "混合，与自己相比"},
        least(mixed[2048], mixed[2048], 1),
        (0.97, 1.03),
    ),
)

# %% claim-first
ct.claim(
    id="vllm-prefill-first-ttft",
    source="vLLM, Performance and Tuning (V0)",
    place={
        "en": "docs/source/models/performance.rst, section on chunked prefill",
        "zh": "docs/source/models/performance.rst，分块预填充一节",
    },
    form="said",
    statement={
        "en": "Scheduling prompts first optimizes the time to first token. "
        "Here: its median at 100, 150 and 200 requests per second, mixed over "
        "prompts first, both with 2,048 tokens a step, the smallest.",
        "zh": "优先安排提示能让首词元时间最优。这里是每秒 100、150、200 个请求时首词元时间的中位数之比：混合除以提示优先，"
        "两者每步都至多 2,048 个词元，取最小的。",
    },
    expected=1.0,
    measured=least(mixed[2048], whole, 0),
    unit="×",
    rule="above",
    control=(
        {"en": "mixed, beside itself", "zh": "混合，与自己相比"},
        least(mixed[2048], mixed[2048], 0),
        (0.97, 1.03),
    ),
)

# %% claim-budget
ct.claim(
    id="vllm-token-budget",
    source="vLLM, Optimization and Tuning (V1)",
    place={
        "en": "docs/configuration/optimization.md, performance tuning with "
        "chunked prefill",
        "zh": "docs/configuration/optimization.md，分块预填充的性能调优",
    },
    form="said",
    statement={
        "en": "A smaller budget of tokens per step gives shorter times between "
        "tokens, a larger one shorter times to first token. Here: the smaller "
        "of both ratios between 512 and 2,048 tokens, at three loads.",
        "zh": "每步的词元预算较小，词元间隔就较短；预算较大，首词元时间就较短。这里是预算 512 与 2,048 之间这两个比值中较小的，"
        "取自三种负载。",
    },
    expected=1.0,
    measured=min(
        least(mixed[2048], mixed[512], 1), least(mixed[512], mixed[2048], 0)
    ),
    unit="×",
    rule="above",
    control=(
        {"en": "equal budgets", "zh": "预算相同"},
        least(mixed[512], mixed[512], 0),
        1.0,
    ),
)


# %% claim-swap
def smallest_pool(swap, most):
    """Blocks with which 40 requests of up to `most` tokens are all answered."""
    for count in range(1, 400):
        machine = PrefillFirst(
            NaiveBlocks(count, 16), 4096, max_running=8, swap=swap
        )
        rng = ct.rng(0)
        try:
            for i in range(40):
                prompt = int(rng.integers(1, most // 2 + 1))
                machine.add(Request(i, [1] * prompt, most // 2))
        except Refused:
            continue
        while machine.requests:
            step = machine.schedule()
            machine.finish(step, [[1]] * len(step.work))
        return count
    raise ct.CheckError("no pool is large enough")


def compared(blocks, other):
    return "fewer KV blocks" if blocks < other else "as many KV blocks"


ct.claim(
    id="vllm-swap-larger",
    source="CUDATutorial 16/01",
    place={
        "en": "section 1.1, second paragraph, last two sentences",
        "zh": "1.1 节第二段的最后两句",
    },
    form="said",
    statement={
        "en": "Because blocks of the KV cache move to the host when the GPU's "
        "memory runs short, larger models can be handled without being limited "
        "by it. Here: the blocks on the GPU that a trace needs at least to be "
        "answered in full, with swapping beside without.",
        "zh": "显存不足时 KV 缓存的块会移到主机，因此能处理更大的模型而不受显存限制。这里比较：要把一批请求全部答完，GPU 上"
        "至少需要多少块，有换出与没有换出相比。",
    },
    expected="fewer KV blocks",
    measured=compared(smallest_pool(True, 512), smallest_pool(False, 512)),
    rule="equal",
    found="counted",
    control=(
        {"en": "requests of half the length", "zh": "长度减半的请求"},
        compared(smallest_pool(True, 256), smallest_pool(True, 512)),
        "fewer KV blocks",
    ),
)
