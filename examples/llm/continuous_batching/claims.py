# ---
# jupyter:
#   cudatut:
#     title: {en: "Continuous batching: claims", zh: "连续批处理：有关说法"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 60
# ---

# %% [markdown]
# What CUDATutorial says about static and continuous batching, counted in steps
# of this book's schedulers.

# %% setup
import cudatut as ct
from cudatut.book.llm.engine.blocks import NaiveBlocks
from cudatut.book.llm.engine.request import Request
from cudatut.book.llm.engine.scheduler import Scheduler
from cudatut.book.llm.engine.static_batches import StaticBatches

SLOTS = 16


def steps(kind, prompts, outputs, slots=SLOTS):
    """Steps for these requests, by a model that computes nothing."""
    blocks = NaiveBlocks(20_000, 16)
    scheduler = kind(blocks, token_budget=16_384, max_running=slots)
    for i, (prompt, output) in enumerate(zip(prompts, outputs)):
        scheduler.add(Request(i, [1] * int(prompt), int(output)))
    count = 0
    while scheduler.requests:
        step = scheduler.schedule()
        scheduler.finish(step, [[1] * work.last for work in step.work])
        count += 1
    return count


def ratio(prompts, outputs):
    """Steps of static batches over those of continuous batching."""
    static = steps(StaticBatches, prompts, outputs)
    return static / steps(Scheduler, prompts, outputs)


rng = ct.rng(0)
equal, unequal = [512] * 256, rng.integers(32, 257, 256)
both = ct.facts(
    "steps, static / continuous",
    {
        "prompts of 512, one token each": ratio(equal, [1] * 256),
        "prompts of 512, 32 to 256 tokens": ratio(equal, unequal),
    },
)

# %% claim-equal
ct.claim(
    id="static-batches-equal-lengths",
    source="CUDATutorial 13",
    place={
        "en": "the tip on how low the use of the GPU is",
        "zh": "讲 GPU 利用率有多低的提示框",
    },
    form="said",
    statement={
        "en": "If all prompts are equally long and every answer is a single token, static batching gets the best use of the GPU. "
        "Steps of static batches for one step of continuous batching.",
        "zh": "如果输入长度都一样，每个输出又只有一个词元，静态批处理就能达到最佳的 GPU 利用率。这里是静态批处理与连续批处理的步数之比。",
    },
    expected=1.0,
    measured=ratio(equal, [1] * 256),
    rule="equal",
    found="counted",
    control=(
        {
            "en": "the same prompts, answers of 32 to 256 tokens",
            "zh": "同样的提示，回答 32 到 256 个词元",
        },
        ratio(equal, unequal),
        ("TODO", "what it has to be"),
    ),
    unit="×",
)

# %% claim-refill
ct.claim(
    id="iteration-level-refill",
    source="CUDATutorial 13",
    place={"en": "section 3.1, on Orca", "zh": "3.1 节，讲 Orca"},
    form="said",
    statement={
        "en": "A new request can take the place of one that has ended after any iteration; so the use of the GPU is higher than with "
        "static batches. Steps of static batches for one step of continuous batching.",
        "zh": "批次中的序列一结束，就可以在它的位置插入新的序列，因此 GPU 利用率比静态批处理高。这里是静态批处理与连续批处理的步数之比。",
    },
    expected=1.0,
    measured=ratio(equal, unequal),
    rule="above",
    control=(
        {
            "en": "answers that are equally long",
            "zh": "回答一样长",
        },
        ratio(equal, [100] * 256),
        1.0,
    ),
    unit="×",
)
