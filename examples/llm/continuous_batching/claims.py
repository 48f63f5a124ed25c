# ---
# jupyter:
#   cudatut:
#     title: {en: "Continuous batching: claims", zh: "连续批处理：有关说法"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 300
#     sizes:
#       layers: [12, 1]
#       count: [64, 8]
#       SLOTS: [16, 4]
#       PROMPT: [[32, 512], [4, 16]]
#       OUTPUT: [[8, 128], [2, 6]]
#       LONG: [6000, 90]
#       rounds: [7, 1]
#       decoding: [31, 2]
#       chunk: [225, 70]
#       before: [1000, 40]
#       passes: [50, 1]
# ---

# %% [markdown]
# What CUDATutorial says about static and continuous batching, tried by the engine
# of this book on the GPU: the widths of SmolLM2, random weights.

# %% setup
from random import Random

import numpy as np
import pycuda.driver as cuda

import cudatut as ct
from cudatut.book.llm.backends.gpu_backend import GpuBackend
from cudatut.book.llm.engine.arrivals import (
    Clock,
    ModelBackend,
    uniform,
    workload,
)
from cudatut.book.llm.engine.blocks import NaiveBlocks
from cudatut.book.llm.engine.engine import Engine
from cudatut.book.llm.engine.prefill_first import PrefillFirst
from cudatut.book.llm.engine.request import Request
from cudatut.book.llm.engine.scheduler import Scheduler
from cudatut.book.llm.engine.static_batches import StaticBatches
from cudatut.book.llm.engine.watch import Rehearsed, Watch
from cudatut.book.llm.kernels.attention import flash
from cudatut.book.llm.model.random_model import RandomModel
from cudatut.book.measure.graphs import Graph, elapsed
from cudatut.book.numbers.bf16 import to_bf16

layers = 12
count = 64  # requests
SLOTS = 16
PROMPT = 32, 512  # tokens, from and to
OUTPUT = 8, 128
BUDGET, POOL, BLOCK = 8192, 4000, 16
seeds = range(1 if ct.tool.running() else 20)
small = {"dim": 128, "heads": 2, "kv_heads": 1, "ffn": 256, "vocab": 512}
model = RandomModel(layers=layers, **(small if ct.tool.running() else {}))
backend = Rehearsed(
    GpuBackend(model, POOL, BLOCK, max_tokens=BUDGET, max_requests=64)
)


def engine_of(kind, slots=SLOTS, budget=BUDGET, backend=backend, clock=None):
    backend.watch = clock = clock or Watch()
    blocks = NaiveBlocks(POOL, BLOCK)
    return Engine(backend, kind(blocks, budget, slots), clock=clock)


def requests_of(seed, prompt=PROMPT, output=OUTPUT):
    """`count` of them, all there from the beginning."""
    vocab = model.config.vocab
    lengths = uniform(*prompt), uniform(*output)
    return workload(count, np.inf, *lengths, seed, vocab)


def serve(kind, requests):
    """Seconds, and the share of the places that the steps use."""
    engine, steps, used = engine_of(kind), 0, 0
    for request in requests:
        engine.add(request)
    while engine.busy:
        engine.step()
        steps += 1
        used += len(engine.last.work)
    return engine.clock(), used / (steps * SLOTS)


# %% claim-equal
ONE, FULL = (1, 1), (PROMPT[1], PROMPT[1])
used = {
    "one token each": serve(StaticBatches, requests_of(0, FULL, ONE))[1],
    "unequal answers": serve(StaticBatches, requests_of(0, FULL))[1],
}
ct.facts("share of the places that static batches use", used)
ct.claim(
    id="static-batches-equal-lengths",
    source="CUDATutorial 13",
    place={
        "en": "the tip on how low the use of the GPU is",
        "zh": "讲 GPU 利用率有多低的提示框",
    },
    form="said",
    statement={
        "en": "If all prompts are equally long and every answer is a single "
        "token, static batching gets the best use of the GPU. Share of the "
        "places of the batches that are used in a step.",
        "zh": "如果输入长度都一样，每个输出又只有一个词元，静态批处理就能达到最佳的 GPU 利用率。这里是各步里批次的位置用上了多少。",
    },
    expected=1.0,
    measured=used["one token each"],
    found="counted",
    rule="equal",
    control=(
        {
            "en": "the same prompts, answers of unequal lengths, which leave "
            "places empty",
            "zh": "同样的提示，回答长短不一，有的位置会空着",
        },
        used["unequal answers"],
        (0.2, 0.9),
    ),
)


# %% claim-refill
def gain(output, seed):
    """Seconds of static batches over those of continuous batching."""
    static, continuous = (
        serve(kind, requests_of(seed, PROMPT, output))[0]
        for kind in (StaticBatches, Scheduler)
    )
    return static / continuous


gain(OUTPUT, 0)
gains = [gain(OUTPUT, seed) for seed in seeds]
if not ct.tool.running():
    middle = OUTPUT[1] // 2, OUTPUT[1] // 2
    ct.claim(
        id="iteration-level-refill",
        source="CUDATutorial 13",
        place={"en": "section 3.1, on Orca", "zh": "3.1 节，讲 Orca"},
        form="said",
        statement={
            "en": "A new request can take the place of one that has ended "
            "after any iteration; so the use of the GPU is higher than with "
            "static batches. Time for 64 requests with answers of 8 to 128 "
            "tokens in static batches of 16, over that with continuous "
            "batching and 16 places.",
            "zh": "批次中的序列一结束，就可以在它的位置插入新的序列，因此 GPU 利用率比静态批处理高。"
            "这里是 64 个请求（回答 8 到 128 个词元）的用时之比：每批 16 个的静态批处理，除以 16 个位置的连续批处理。",
        },
        expected=1.0,
        seeds=gains,
        rule="above",
        control=(
            {
                "en": "answers of equal length, where all of a batch end "
                "together and nothing can be won",
                "zh": "回答一样长，一批同时结束，没有可节省的时间",
            },
            float(np.median([gain(middle, seed) for seed in range(5)])),
            (0.85, 1.15),
        ),
        unit="×",
    )

# %% [markdown]
# Memory: how many blocks are held, summed over the steps. Both reserve a whole
# answer when they admit a request.


# %% claim-memory
class Reserving(Scheduler):
    """Continuous batching that reserves a whole answer, as static batches do."""

    def _start(self, step, request, found=None):
        super()._start(step, request, found)
        most = len(request.prompt) + request.max_tokens - 1
        self.blocks.reserve(request.id, request.computed, most)


def held(kind, output, seed):
    """Blocks held, summed over all steps, for the same requests."""
    engine = engine_of(kind, backend=ModelBackend(Clock(), POOL, BLOCK))
    for request in requests_of(seed, PROMPT, output):
        engine.add(request)
    blocks = 0
    while engine.busy:
        engine.step()
        blocks += POOL - engine.scheduler.blocks.free
    return blocks


def more(output, seed):
    return held(StaticBatches, output, seed) / held(Reserving, output, seed)


if not ct.tool.running():
    ct.claim(
        id="continuous-batching-memory",
        source="CUDATutorial 13",
        place={
            "en": "section 1, below the figure; section 4, second sentence",
            "zh": "第 1 节，图之后的一段；第 4 节第二句",
        },
        form="said",
        statement={
            "en": "Continuous batching is an optimization of memory: it wastes "
            "less of it. Blocks of the KV cache that 64 requests hold, summed "
            "over the steps, in static batches over continuous batching.",
            "zh": "连续批处理是一种内存优化技术，能减少内存浪费。这里是 64 个请求占用的 KV 块（逐步累加）之比：静态批处理除以连续批处理。",
        },
        expected=1.0,
        seeds=[more(OUTPUT, seed) for seed in range(20)],
        found="simulated",
        rule="above",
        control=(
            {
                "en": "answers of equal length, where nobody holds blocks "
                "after its end",
                "zh": "回答一样长，没有请求在结束之后还占着块",
            },
            more(middle, 0),
            (0.97, 1.03),
        ),
        unit="×",
    )

# %% [markdown]
# The attention of one mixed step: requests that decode, each with other keys, and
# a chunk of a prompt. Unused slots hold NaN.

# %% mixed
HEADS, KV_HEADS, DIM = 9, 3, 64
decoding = 31
chunk = 225
before = 1000  # tokens of that prompt that are computed already
rng = ct.rng(3)
lengths = rng.choice(np.arange(32, 769), decoding, replace=False)
lengths = np.append(lengths, before + chunk)  # no two are equal
lengths = lengths.astype("int32")
queries = np.append(np.ones(decoding, int), chunk)
starts = np.append(0, np.cumsum(queries)).astype("int32")
owned = -(-lengths // BLOCK)
free = iter(rng.permutation(owned.sum()).tolist())
tables = np.full((len(lengths), owned.max()), -1, "int32")
for i, n in enumerate(owned):
    tables[i, :n] = [next(free) for _ in range(n)]
shape = int(owned.sum()) * BLOCK, KV_HEADS, DIM
keys, values = (np.full(shape, 0x7FC0, "uint16") for _ in range(2))  # NaN
for i, length in enumerate(lengths):
    t = np.arange(length)
    where = tables[i, t // BLOCK] * BLOCK + t % BLOCK
    for cache in (keys, values):
        cache[where] = to_bf16(
            rng.standard_normal((length, *shape[1:]), dtype="float32")
        )
q = to_bf16(rng.standard_normal((starts[-1], HEADS, DIM), dtype="float32"))
d_q, d_keys, d_values = map(ct.to_device, (q, keys, values))
tile, requests, stream = flash.tile_for(DIM), len(lengths), cuda.Stream()


def lists(first, last, lengths=lengths):
    """What flash.paged wants to know of requests first to last - 1."""
    own = starts[first : last + 1], lengths[first:last]
    on_gpu = [ct.to_device(np.ascontiguousarray(a)) for a in own]
    of_tables = ct.to_device(np.ascontiguousarray(tables[first:last]))
    work = ct.to_device(flash.order(*own, tile))
    return *on_gpu, of_tables, BLOCK, work


def attend(out, launches):
    """out: of all queries; launches: `lists` of each."""
    for one in launches:
        flash.paged(d_q, d_keys, d_values, out, *one, stream=stream)


together, alone = ct.empty(q.shape, "uint16"), ct.empty(q.shape, "uint16")
in_one = [lists(0, requests)]
one_by_one = [lists(i, i + 1) for i in range(requests)]
ct.synchronize()
attend(together, in_one)
attend(alone, one_by_one)
ct.synchronize()
expected = alone.get()


# %% claim-shapes
ONE_LAUNCH, ONE_EACH = "one launch", "a launch for each request"


def launches_for(found):
    """Of one launch for all: did it give what each request gets alone?"""
    return ONE_LAUNCH if np.array_equal(found, expected) else ONE_EACH


# A rectangle, [requests, queries, keys], takes those of one shape.
shapes = set(zip(queries.tolist(), lengths.tolist()))
of_shapes = ONE_EACH if len(shapes) == requests else ONE_LAUNCH
wrong = np.where(np.arange(requests) < decoding, lengths - 1, lengths)
ct.poison(together)
attend(together, [lists(0, requests, wrong.astype("int32"))])
ct.synchronize()
confused = launches_for(together.get())
attend(together, in_one)
ct.synchronize()
ct.claim(
    id="batching-equal-shapes",
    source="CUDATutorial 13",
    place={
        "en": "section 3.1, difficulty 2, the three cases and the paragraph on "
        "selective batching",
        "zh": "3.1 节，难点 2，三种情况与讲选择性批处理的一段",
    },
    form="said",
    statement={
        "en": "Requests with other numbers of tokens, other keys or of another "
        "phase cannot be batched, so attention is split and run for each "
        "request alone, as Orca did. What attention takes in a step with all "
        "three cases, so that each request gets the same bits as alone.",
        "zh": "词元数不同、键的长度不同或阶段不同的请求无法批处理，所以要像 Orca 那样拆分注意力，对每个请求单独运行。"
        "这里看三种情况都有的一步里，注意力要启动几次，才能让每个请求的结果与单独计算逐位相同。",
    },
    expected=ONE_EACH,
    sides=(
        (
            {
                "en": "a kernel over a rectangle, [requests, queries, keys], "
                "without padding: a launch for each shape, and the step has as "
                "many shapes as requests",
                "zh": "在 [请求, 查询, 键] 这个矩形上计算、不填充的 kernel：每种形状启动一次，而这一步有多少个请求就有多少种形状",
            },
            of_shapes,
        ),
        (
            {
                "en": "a kernel over a list of tiles, flash.cu",
                "zh": "按分块列表计算的 kernel（flash.cu）",
            },
            launches_for(together.get()),
        ),
    ),
    depends={
        "en": "on whether the kernel wants all requests in one shape",
        "zh": "kernel 是否要求所有请求形状相同",
    },
    found="counted",
    rule="equal",
    control=(
        {
            "en": "one launch that is told wrong lengths, which must not pass",
            "zh": "同样一次启动，但给的长度是错的，不应通过",
        },
        confused,
        ONE_EACH,
    ),
)

# %% claim-one-by-one
# Each way is a graph, so that no host starts its launches one by one.
passes = 50
ways = {"one launch": in_one, "a launch for each request": one_by_one}
ways["again"] = in_one
graphs = {
    way: Graph(lambda some=some: attend(together, some), stream)
    for way, some in ways.items()
}


def graph_us(run):
    ct.flush_l2()
    return elapsed(stream, run().launch)


taken = ct.take_turns(
    {way: lambda graph=graph: graph for way, graph in graphs.items()},
    passes,
    Random(0),
    time=graph_us,
)
us = {way: float(np.median(some)) for way, some in taken.items()}
ct.facts(
    "attention of one mixed step, each way a CUDA graph",
    {way: (some, "us") for way, some in us.items()},
)
if not ct.tool.running():
    ct.claim(
        id="batching-one-by-one",
        source="CUDATutorial 13",
        place={
            "en": "section 3.1, difficulty 2, first paragraph",
            "zh": "3.1 节，难点 2，第一段",
        },
        form="said",
        statement={
            "en": "Without batching, requests are computed one by one, and the "
            "GPU's power to work in parallel stays unused. Attention of a step "
            "with 32 requests, a launch for each over one launch for all.",
            "zh": "没有批处理就得逐个处理请求，无法充分利用 GPU 的并行能力。这里是 32 个请求的一步里注意力的用时之比：每个请求"
            "启动一次，除以全部一起启动一次。",
        },
        expected=1.0,
        measured=us["a launch for each request"] / us["one launch"],
        rule="above",
        control=(
            {
                "en": "one launch beside itself; other work on the GPU or a "
                "clock that changes would show",
                "zh": "一次启动与自己相比；GPU 上有别的工作或频率变化时会看出来",
            },
            us["again"] / us["one launch"],
            (0.8, 1.25),
        ),
        unit="×",
    )

# %% [markdown]
# A long prompt comes while 15 requests decode: in one step, as vLLM's first
# engine had it, or in chunks, as LightLLM and then others do.

# %% long-prompt
LONG = 6000  # tokens
rounds = 7


def late(kind, budget, prompt):
    """Longest gap of who waits least of those who decode and the longest step,
    in ms, from the moment when the prompt comes to its first token; and the
    usual gap.
    """
    found = []
    for _ in range(1 + rounds):
        engine = engine_of(kind, budget=budget)
        ask = [1] * min(64, PROMPT[1])
        others = [Request(i, ask, 80) for i in range(SLOTS - 1)]
        for request in others:
            engine.add(request)
        while min(len(request.output) for request in others) < 20:
            engine.step()
        came = engine.clock()
        engine.add(new := Request(SLOTS, [1] * prompt, 2, came))
        ends = [came]
        while not new.output:
            engine.step()
            ends.append(engine.clock())
        engine.step()
        gaps, usual = [], []
        for request in others:
            times = np.array(request.times)
            since = np.searchsorted(times, came) - 1
            gaps.append(np.diff(times[since:]).max())
            usual.append(np.median(np.diff(times[times <= came])))
        found.append((min(gaps), np.diff(ends).max(), np.median(usual)))
    return 1e3 * np.median(found[1:], axis=0)


WAYS = {
    "whole prompts": (PrefillFirst, BUDGET),
    "chunks of 512": (Scheduler, 512),
}
long, little = (
    {way: late(*how, tokens) for way, how in WAYS.items()}
    for tokens in (LONG, 8)
)
sixteen = late(*WAYS["whole prompts"], 16)
ct.table(
    "while a prompt of 6,000 tokens is computed",
    {
        way: dict(zip(("longest gap", "longest step", "usual gap"), ms))
        for way, ms in long.items()
    },
    corner="how",
    units=dict.fromkeys(("longest gap", "longest step", "usual gap"), "ms"),
)

# %% claim-long-prompt
if not ct.tool.running():
    gap_of_little = little["whole prompts"][0]
    ct.claim(
        id="long-prompt-all-wait",
        source="CUDATutorial 13",
        place={
            "en": "section 3.2, last paragraph",
            "zh": "3.2 节最后一段",
        },
        form="said",
        statement={
            "en": "Where prefill and decoding take turns, a long prompt makes "
            "all that decode wait. Longest gap between two tokens of a request "
            "that decodes (of 15, the one that waits least) while a prompt of "
            "6,000 tokens is computed, over that with a prompt of 8 tokens.",
            "zh": "预填充与解码分开进行时，遇到很长的提示，所有正在解码的请求都得等。这里看 15 个解码请求里等得最少的那个，最长的词元间隔之比："
            "计算一条 6,000 个词元的提示期间，除以 8 个词元的提示期间。",
        },
        expected=1.0,
        measured=float(long["whole prompts"][0] / gap_of_little),
        rule="above",
        control=(
            {
                "en": "a prompt of 16 tokens beside one of 8, both of which "
                "are short",
                "zh": "16 个词元的提示与 8 个词元的相比，两条都很短",
            },
            float(sixteen[0] / gap_of_little),
            (0.7, 1.4),
        ),
        unit="×",
    )

# %% claim-chunks
if not ct.tool.running():
    ct.claim(
        id="chunks-balance-steps",
        source="CUDATutorial 13",
        place={
            "en": "section 3.3, on LightLLM",
            "zh": "3.3 节，讲 LightLLM",
        },
        form="said",
        statement={
            "en": "A long prompt that is cut into pieces and spread over "
            "several steps keeps the work of each step balanced. Longest step "
            "while a prompt of 6,000 tokens is computed, whole over in chunks "
            "of 512, in the engine of this book.",
            "zh": "把长提示拆成小块、分到多步里调度，能让每一步的计算量保持均衡。这里是本书的引擎计算一条 6,000 个词元的提示期间，最长一步的"
            "用时之比：整条计算除以按 512 分块。",
        },
        expected=1.0,
        measured=float(long["whole prompts"][1] / long["chunks of 512"][1]),
        rule="above",
        control=(
            {
                "en": "a prompt of 8 tokens, which nobody cuts",
                "zh": "8 个词元的提示，谁也不拆",
            },
            float(little["whole prompts"][1] / little["chunks of 512"][1]),
            (0.5, 2.0),
        ),
        unit="×",
    )
