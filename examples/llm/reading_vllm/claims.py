# ---
# jupyter:
#   cudatut:
#     title: {en: "Reading vLLM today: claims", zh: "读今天的 vLLM：有关说法"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 300
#     sizes:
#       layers: [12, 1]
#       count: [48, 3]
#       PROMPT: [[64, 4096], [8, 64]]
#       OUTPUT: [[16, 96], [2, 4]]
# ---

# %% [markdown]
# What vLLM's own documentation says of its two sets of rules, tried by the engine
# of this book on the GPU: the widths of SmolLM2, random weights, and 20 seeds for
# who comes when.

# %% setup
import numpy as np

import cudatut as ct
from cudatut.book.llm.backends.gpu_backend import GpuBackend
from cudatut.book.llm.engine.arrivals import replay, uniform, workload
from cudatut.book.llm.engine.blocks import NaiveBlocks
from cudatut.book.llm.engine.engine import Engine
from cudatut.book.llm.engine.prefill_first import PrefillFirst
from cudatut.book.llm.engine.request import Request
from cudatut.book.llm.engine.scheduler import Refused, Scheduler
from cudatut.book.llm.engine.watch import Rehearsed, Watch
from cudatut.book.llm.model.random_model import SMOLLM2, RandomModel

layers = 12
count = 48  # requests
PROMPT = 64, 4096  # tokens, from and to
OUTPUT = 16, 96
POOL, BLOCK, SLOTS = 9000, 16, 32
SEEDS = range(1 if ct.tool.running() else 20)
small = {"dim": 128, "heads": 2, "kv_heads": 1, "ffn": 256, "vocab": 512}
model = RandomModel(layers=layers, **(small if ct.tool.running() else {}))
backend = Rehearsed(
    GpuBackend(
        model, POOL, BLOCK, max_tokens=16_384, max_requests=SLOTS, max_logits=64
    )
)
# Budgets: V0's defaults for a model with 8,192 tokens of context, whole prompts
# or chunks; the small one of V1's text, and the one of its listing.
RULES = {
    "prompts first": (PrefillFirst, 8192),
    "chunks, 512": (Scheduler, 512),
    "chunks, 2,048": (Scheduler, 2048),
    "chunks, 16,384": (Scheduler, 16_384),
}


def serve(rules, rate, seed, prompt=PROMPT):
    """What `count` requests saw, in ms, and the seconds for all of them."""
    kind, budget = RULES[rules]
    machine = kind(NaiveBlocks(POOL, BLOCK), budget, SLOTS)
    requests = workload(
        count,
        rate,
        prompt=uniform(*prompt),
        output=uniform(*OUTPUT),
        seed=seed,
        vocab=model.config.vocab,
    )
    backend.watch = watch = Watch()
    engine = Engine(backend, machine, clock=watch)
    end = replay(engine, requests, watch.wait)
    gaps = 1e3 * np.concatenate([np.diff(r.times) for r in requests])
    first = [1e3 * (r.times[0] - r.arrival) for r in requests]
    return {
        "first token, median": float(np.median(first)),
        "gap, mean": float(np.mean(gaps)),
        "gap, p99": float(np.percentile(gaps, 99)),
    }, end


# %% [markdown]
# The load is six tenths of what the engine can do with chunks of 2,048 when all
# requests are there at once. For the control each request comes alone, with a
# prompt that all budgets hold: then all rules do the same.

# %% load
serve("chunks, 2,048", np.inf, 0)
capacity = count / serve("chunks, 2,048", np.inf, 0)[1]
rate = 0.6 * capacity
short = PROMPT[0], min(480, PROMPT[1])
seen = {name: [] for name in RULES}
for seed in SEEDS:
    # Each of the rules is first, second, third and last in as many seeds.
    turn = seed % len(RULES)
    for name in (*RULES, *RULES)[turn : turn + len(RULES)]:
        seen[name].append(serve(name, rate, seed)[0])
alone = {name: serve(name, 1.0, 0, short)[0] for name in RULES}
ct.facts(
    "the load",
    {
        "requests": count,
        "what the engine can do": (capacity, "requests/s"),
        "requests that come": (rate, "requests/s"),
        "seeds": len(SEEDS),
    },
)
ct.table(
    "medians over the seeds",
    {
        name: {
            what: float(np.median([one[what] for one in all_]))
            for what in all_[0]
        }
        for name, all_ in seen.items()
    },
    corner="rules",
    units=dict.fromkeys(seen["prompts first"][0], "ms"),
)


# %% gaps
def ratios(above, below, what):
    """Of each seed."""
    return [a[what] / b[what] for a, b in zip(seen[above], seen[below])]


def one_alone(above, below, what):
    """The same where each request comes alone."""
    return alone[above][what] / alone[below][what]


# Two ways to count gaps, and of each the ratio of two rules in all seeds.
COUNTED = {
    "gap, p99": {
        "en": "99th percentile of the gaps",
        "zh": "间隔的 99 百分位数",
    },
    "gap, mean": {"en": "mean of all gaps", "zh": "所有间隔的平均值"},
}
PAIRS = ("prompts first", "chunks, 512"), ("chunks, 16,384", "chunks, 2,048")


def spread(some):
    median = float(np.median(some))
    return {
        "least": min(some),
        "median": median,
        "largest": max(some),
        "seeds on this side of 1": sum(
            (one > 1) == (median > 1) for one in some
        ),
    }


ct.table(
    "ratios of the gaps over the seeds",
    {
        f"{what}: {above} / {below}": spread(ratios(above, below, what))
        for above, below in PAIRS
        for what in COUNTED
    },
    corner="which gaps",
    units=dict.fromkeys(("least", "median", "largest"), "×"),
)


def gaps(above, below):
    """The two sides of a claim on gaps: medians over the seeds."""
    return tuple(
        (words, float(np.median(ratios(above, below, what))))
        for what, words in COUNTED.items()
    )


WHICH_GAPS = {
    "en": "on which gaps count: the longest of a hundred, or all",
    "zh": "看哪些间隔：每百个里最长的，还是全部",
}
ALONE = {
    "en": "each request alone with a short prompt, where all rules do the "
    "same; counted pauses or graphs would show",
    "zh": "每个请求单独到来、提示很短，这时各种规则做的都一样；要是误计了停顿或 graph 的录制，这里会看出来",
}
MEAN_ALONE = {
    "en": "mean gap of requests that come alone with a short prompt, where all "
    "rules do the same; counted pauses or graphs would show",
    "zh": "请求单独到来、提示很短时的平均间隔，这时各种规则做的都一样；要是误计了停顿或 graph 的录制，这里会看出来",
}

# %% claim-gap
if not ct.tool.running():
    ct.claim(
        id="vllm-prefill-first-gaps",
        source="vLLM, Performance and Tuning (V0)",
        place={
            "en": "v0.6.3, docs/source/models/performance.rst, section on "
            "chunked prefill",
            "zh": "v0.6.3，docs/source/models/performance.rst，分块预填充一节",
        },
        form="said",
        statement={
            "en": "Whole prompts first, without decoding beside them, make the "
            "time between tokens longer than chunked prefill does, whose "
            "default is 512 tokens a step. Here: gaps in the engine of this "
            "book, prompts first over chunks of 512, medians over 20 seeds.",
            "zh": "整条提示优先、解码不与之同批，词元间隔比分块预填充（默认每步 512 个词元）长。"
            "这里是在本书的引擎里，提示优先与 512 的分块的间隔之比，取 20 个种子的中位数。",
        },
        expected=1.0,
        sides=gaps("prompts first", "chunks, 512"),
        depends=WHICH_GAPS,
        unit="×",
        rule="above",
        control=(
            MEAN_ALONE,
            one_alone("prompts first", "chunks, 512", "gap, mean"),
            (0.8, 1.25),
        ),
    )

# %% claim-first
if not ct.tool.running():
    ct.claim(
        id="vllm-prefill-first-ttft",
        source="vLLM, Performance and Tuning (V0)",
        place={
            "en": "v0.6.3, docs/source/models/performance.rst, section on "
            "chunked prefill",
            "zh": "v0.6.3，docs/source/models/performance.rst，分块预填充一节",
        },
        form="said",
        statement={
            "en": "Whole prompts first optimize the time to first token. Here: "
            "its median in the engine of this book, chunks of 512 over prompts "
            "first, at six tenths of the load that it can bear with chunks of "
            "2,048.",
            "zh": "整条提示优先，首词元时间最优。这里是本书的引擎里首词元时间中位数之比：512 的分块除以提示优先；负载是分块为 2,048 时"
            "可承受负载的六成。",
        },
        expected=1.0,
        seeds=ratios("chunks, 512", "prompts first", "first token, median"),
        unit="×",
        rule="above",
        control=(
            ALONE,
            one_alone("chunks, 512", "prompts first", "first token, median"),
            (0.8, 1.25),
        ),
    )

# %% claim-budget
if not ct.tool.running():
    ct.claim(
        id="vllm-token-budget",
        source="vLLM, Optimization and Tuning (V1)",
        place={
            "en": "v0.11.0, docs/configuration/optimization.md, performance "
            "tuning with chunked prefill, the first point",
            "zh": "v0.11.0，docs/configuration/optimization.md，分块预填充的性能调优，第 1 条",
        },
        form="said",
        statement={
            "en": "A smaller budget of tokens per step, such as 2,048, gives "
            "shorter times between tokens. Here: gaps in the engine of this "
            "book, 16,384 tokens over 2,048, medians over 20 seeds.",
            "zh": "每步的词元预算较小（例如 2,048），词元间隔就较短。这里是本书的引擎里，预算 16,384 与 2,048 的间隔之比，取 20 个种子的中位数。",
        },
        expected=1.0,
        sides=gaps("chunks, 16,384", "chunks, 2,048"),
        depends=WHICH_GAPS,
        unit="×",
        rule="above",
        control=(
            MEAN_ALONE,
            one_alone("chunks, 16,384", "chunks, 2,048", "gap, mean"),
            (0.8, 1.25),
        ),
    )

# %% claim-budget-first
if not ct.tool.running():
    ct.claim(
        id="vllm-token-budget-ttft",
        source="vLLM, Optimization and Tuning (V1)",
        place={
            "en": "v0.11.0, docs/configuration/optimization.md, performance "
            "tuning with chunked prefill, the second point",
            "zh": "v0.11.0，docs/configuration/optimization.md，分块预填充的性能调优，第 2 条",
        },
        form="said",
        statement={
            "en": "A larger budget of tokens per step gives shorter times to "
            "first token, because a step takes more of the prompts. Here: "
            "its median in the engine of this book, 2,048 tokens over 16,384.",
            "zh": "每步的词元预算较大，一步能处理更多提示的词元，首词元时间就较短。这里是本书的引擎里，首词元时间中位数之比：预算 2,048 除以 16,384。",
        },
        expected=1.0,
        seeds=ratios("chunks, 2,048", "chunks, 16,384", "first token, median"),
        unit="×",
        rule="above",
        control=(
            ALONE,
            one_alone("chunks, 2,048", "chunks, 16,384", "first token, median"),
            (0.8, 1.25),
        ),
    )

# %% [markdown]
# What CUDATutorial says of swapping, by the rules of vLLM 0.6.3 as
# prefill_first.py has them: counted steps, and no GPU.


# %% claim-swap
def least(swap, most):
    """Bytes on the GPU, weights included, with which 40 requests of up to
    `most` tokens are all answered.
    """
    c = SMOLLM2
    weights = 2 * sum(int(np.prod(shape)) for shape in c.shapes().values())
    block = BLOCK * c.layers * 2 * c.kv_heads * c.head_dim * 2
    for blocks in range(1, 400):
        machine = PrefillFirst(
            NaiveBlocks(blocks, BLOCK), 4096, max_running=8, swap=swap
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
        return weights + blocks * block
    raise ct.CheckError("no pool is large enough")


def compared(one, other):
    return "less memory" if one < other else "as much memory"


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
        "by it. Here: what has to be on the GPU at least, weights included, so "
        "that a set of requests is answered in full, with swapping beside "
        "without.",
        "zh": "显存不足时 KV 缓存的块会移到主机，因此能处理更大的模型而不受显存限制。这里比较：要把一批请求全部答完，GPU 上"
        "至少要放多少数据（含权重），有换出与没有换出相比。",
    },
    expected="less memory",
    measured=compared(least(True, 512), least(False, 512)),
    found="simulated",
    rule="equal",
    control=(
        {
            "en": "requests of half the length, which do need less",
            "zh": "长度减半的请求，确实需要得少",
        },
        compared(least(True, 256), least(True, 512)),
        "less memory",
    ),
)


# %% claim-swap-for-whom
def swapped_for(blocks):
    """For whom a request that runs is swapped out, in 20 sets of requests."""
    for_new, for_running = 0, 0
    for seed in range(20):
        rng = ct.rng(seed)
        machine = PrefillFirst(
            NaiveBlocks(blocks, 4), 256, max_running=8, swap=True
        )
        for i in range(30):
            prompt, most = (int(n) for n in rng.integers(1, 33, 2))
            machine.add(Request(i, [1] * prompt, most))
        while machine.requests:
            step = machine.schedule()
            new = any(w.start == 0 and not w.request.output for w in step.work)
            for_new += len(step.preempted) * new
            for_running += len(step.preempted) * (not new)
            machine.finish(step, [[1]] * len(step.work))
    if for_new:
        return "for a new request"
    return "for a running request" if for_running else "for nobody"


ct.claim(
    id="vllm-swap-for-new",
    source="CUDATutorial 16/01",
    place={
        "en": "section 2.2, the paragraph below the three queues",
        "zh": "2.2 节，三个队列之后的一段",
    },
    form="said",
    statement={
        "en": "If memory runs short, running requests are swapped out to make "
        "room for new ones. By the default rules of vLLM 0.6.3, as we wrote "
        "them down, a running request gives way:",
        "zh": "内存不足时，正在运行的请求会换出到 CPU，为新请求腾出空间。按我们写下的 vLLM 0.6.3 的默认规则，运行中的请求让位：",
    },
    expected="for a new request",
    measured=swapped_for(20),
    found="simulated",
    rule="equal",
    control=(
        {
            "en": "a pool with room for all, where nobody gives way",
            "zh": "池子放得下所有请求，这时谁也不让位",
        },
        swapped_for(200),
        "for nobody",
    ),
)


# %% claim-preempted-by-size
def one_sequence(sequences, tokens):
    """What the listing of that section asks."""
    return sequences == 1


def few_tokens(sequences, tokens):
    """Another rule, by tokens: what the listing does not ask."""
    return sequences * tokens <= 1000


def mode(sequences, tokens, small=one_sequence):
    """How a request gives way, by what counts as small."""
    return "computed again" if small(sequences, tokens) else "swapped out"


ct.claim(
    id="vllm-preempted-by-size",
    source="CUDATutorial 16/03",
    place={
        "en": "section 5.2.2, the paragraph above the first listing; those "
        "on `_preempt_by_recompute` and `_preempt_by_swap`",
        "zh": "5.2.2 节，第一段代码之前的一段；讲 `_preempt_by_recompute` 与 `_preempt_by_swap` 的两段",
    },
    form="said",
    statement={
        "en": "A request that takes few resources is rather computed again, "
        "one that takes many rather swapped out. By the code below that "
        "sentence (vLLM 0.6.3), which asks for the number of sequences: what "
        "happens to a small and to a large request.",
        "zh": "占用资源少的请求倾向于重新计算，占用多的优先换出。这里按该句之后的代码（vLLM 0.6.3，判断的是序列数）："
        "小请求和大请求各自怎样处理。",
    },
    expected=["computed again", "swapped out"],
    sides=(
        (
            {
                "en": "by sequences: one and two, 100 tokens each",
                "zh": "按序列数分：一个与两个，各 100 个词元",
            },
            [mode(1, 100), mode(2, 100)],
        ),
        (
            {
                "en": "by tokens: one sequence of 100 and of 8,000",
                "zh": "按词元数分：一个序列，100 个与 8,000 个词元",
            },
            [mode(1, 100), mode(1, 8000)],
        ),
    ),
    depends={
        "en": "on what is counted: the sequences of the request, as the "
        "section says further down, or its tokens",
        "zh": "怎样算大小：看请求有几个序列（该节后文这样写），还是看词元数",
    },
    found="computed",
    rule="equal",
    control=(
        {
            "en": "another rule, at most 1,000 tokens, which tells 100 from "
            "8,000",
            "zh": "换一条规则，以 1,000 个词元为限，应能区分 100 与 8,000",
        },
        [mode(1, 100, few_tokens), mode(1, 8000, few_tokens)],
        ["computed again", "swapped out"],
    ),
)

# %% claim-queues
ct.claim(
    id="vllm-preempted-to-swapped",
    source="CUDATutorial 16/03",
    place={
        "en": "section 2.1, second point",
        "zh": "2.1 节，第 2 条",
    },
    form="said",
    statement={
        "en": "A request that is preempted goes to the swapped queue. By the "
        "listings of sections 4.1 and 5.2.2 (vLLM 0.6.3) it goes:",
        "zh": "抢占的请求会转移到 swapped 队列。按 4.1 节与 5.2.2 节的代码（vLLM 0.6.3），它会转移到：",
    },
    expected="to the swapped queue",
    sides=tuple(
        (
            {"en": en, "zh": zh},
            "to the swapped queue"
            if mode(sequences, 100) == "swapped out"
            else "to the waiting queue",
        )
        for en, zh, sequences in (
            ("with one answer", "只有一个回答", 1),
            ("with several answers at once", "同时生成多个回答", 2),
        )
    ),
    depends={
        "en": "on the number of answers that it generates at once",
        "zh": "同时生成几个回答",
    },
    found="computed",
    rule="equal",
    control=(
        {
            "en": "two answers of 8,000 tokens: the number of tokens has to make "
            "no difference",
            "zh": "两个回答，8,000 个词元：词元数不应有影响",
        },
        mode(2, 8000),
        "swapped out",
    ),
)


# %% claim-after-prefill
def queue_of(steps):
    """Where a request of 20 tokens is after so many steps."""
    machine = PrefillFirst(NaiveBlocks(20, 4), 256, max_running=8)
    machine.add(request := Request(0, [1] * 20, 5))
    for _ in range(steps):
        step = machine.schedule()
        machine.finish(step, [[1]] * len(step.work))
    return "waiting" if request in machine.waiting else "running"


ct.claim(
    id="vllm-waits-after-prefill",
    source="CUDATutorial 16/03",
    place={
        "en": "section 2.1, first point",
        "zh": "2.1 节，第 1 条",
    },
    form="said",
    statement={
        "en": "The waiting queue also holds requests whose prompt is computed "
        "and that wait to decode. By the default rules of vLLM 0.6.3, as we "
        "wrote them down (and the listing of section 4.1), the queue of a "
        "request after its prompt. (Who has given way waits there, too, but "
        "to be computed again.)",
        "zh": "waiting 队列还存放提示已经算完、等待解码的请求。这里按我们写下的 vLLM 0.6.3 的默认规则（4.1 节的代码也一样），看提示算完之后请求在哪个队列。（被抢占的请求也在那里等，但要重新计算。）",
    },
    expected="waiting",
    measured=queue_of(1),
    found="simulated",
    rule="equal",
    control=(
        {
            "en": "before its prompt, where it does wait",
            "zh": "提示还没算时，它确实在等",
        },
        queue_of(0),
        "waiting",
    ),
)
