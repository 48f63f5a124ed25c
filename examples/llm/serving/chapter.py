# ---
# jupyter:
#   cudatut:
#     title: {en: "The engine", zh: "推理引擎"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 240
#     sizes:
#       most: [32, 1]
#       lengths: [[1, 31, 33, 70, 129, 300], [1, 17]]
#       say: [24, 1]
#       ways_n: [8, 3]
#       single: [256, 2]
#       brief: [64, 2]
#       rounds: [5, 0]
#       texts_n: [2, 1]
#       many: [256, 2]
#       OUTPUT: [[32, 256], [1, 2]]
#       asked: [32, 2]
#       told: [64, 1]
# ---

# %% [markdown]
# Everything together. First the whole of it in one program: a question, and
# the answer as it is generated.

# %% program
from cudatut.book.llm.model import tokens
from cudatut.book.llm.model.checkpoint import Checkpoint
from cudatut.book.llm.engine.engine import Engine
from cudatut.book.llm.model.fetch import fetch
from cudatut.book.llm.backends.gpu_backend import GpuBackend
from cudatut.book.llm.engine.prefix import PrefixBlocks
from cudatut.book.llm.engine.request import Request
from cudatut.book.llm.engine.scheduler import Scheduler

checkpoint = Checkpoint.open(fetch())
tokenizer = tokens.load(checkpoint)
backend = GpuBackend(checkpoint, block_count=1024, block_size=16)
blocks = PrefixBlocks(1024, 16)
scheduler = Scheduler(blocks, context=checkpoint.config.context)
engine = Engine(backend, scheduler)

prompt = tokenizer.chat([("user", "What is the capital of France?")])
most = 32
engine.add(Request(0, prompt, most, stop=tokenizer.stop))
stream = tokenizer.stream()
while engine.busy:
    for output in engine.step():
        for token in output.tokens:
            print(stream.push(token), end="", flush=True)
print(stream.end())

# %% setup
import statistics

import numpy as np

import cudatut as ct
from cudatut.book.llm.backends.step_shape import Shape
from cudatut.book.llm.serving.ways import (
    BLOCK,
    BUDGET,
    COUNT,
    ROOM,
    compared,
    crowd,
    eager,
    play,
    prompts_of,
    served,
)

model = served(checkpoint)
config = model.config
fast = GpuBackend(model, COUNT, BLOCK, **ROOM)
invariant = GpuBackend(model, COUNT, BLOCK, **ROOM, batch_invariant=True)
slow = eager(fast)  # without graphs

# %% [markdown]
# What the bytes allow: one request alone reads all weights for each token, 256
# of them share that and read their own keys and values.

# %% predict
parameters = sum(int(np.prod(shape)) for shape in config.shapes().values())
stored = checkpoint.bytes
bandwidth = ct.limits.bandwidth()  # GB/s
prompt_mean, output_mean = (32 + 512) / 2, (32 + 256) / 2
held = 256 * (prompt_mean + output_mean / 2)  # tokens in the cache
kv = held * config.kv_bytes
ct.table(
    "prediction: what the bytes allow",
    {
        "one request, bf16": {
            "bytes of a step": 2 * parameters / 1e6,
            "tokens": bandwidth * 1e9 / (2 * parameters),
        },
        "one request, as stored": {
            "bytes of a step": stored / 1e6,
            "tokens": bandwidth * 1e9 / stored,
        },
        "256 requests, bf16": {
            "bytes of a step": (2 * parameters + kv) / 1e6,
            "tokens": 256 * bandwidth * 1e9 / (2 * parameters + kv),
        },
    },
    corner="requests, weights",
    units={"bytes of a step": "MB", "tokens": "tokens/s"},
)
ct.facts(
    "the cache",
    {
        "keys and values of a token": (config.kv_bytes, "bytes"),
        "tokens of 256 requests, on average": held,
    },
)

# %% [markdown]
# Right before fast: every way to compute the same requests: alone, in a batch,
# in chunks, preempted, with a prefix that was found, with guessed tokens, a step
# ahead, and without CUDA graphs.

# %% same
lengths = (1, 31, 33, 70, 129, 300)
say = 24  # tokens of an answer
ways_n = 8  # ways to compute it
prompts = prompts_of(lengths, config.vocab)
found = compared(invariant, prompts, say, ways_n)
ct.table("batch-invariant mode", found, corner="way")
ct.check(
    np.array([row["equal in every bit"] for row in found.values()]),
    np.array([row["rows of logits"] for row in found.values()]),
    name="batch-invariant: bits of the logits",
)

# %% [markdown]
# Speed. One request alone, with and without graphs, and with tokens guessed.


# %% bench-alone
def single_run(backend, prompt, speculate=0, ahead=False, count=None):
    """Tokens per second after the first one; the request, the steps. count:
    tokens of the answer, `single` if not said.
    """
    request = Request(0, prompt, count or single)
    played = play(backend, [request], speculate=speculate, ahead=ahead)
    times = request.times
    rate = (len(times) - 1) / (times[-1] - times[0] or float("nan"))
    return rate, request, played.steps


# Python launches every kernel of its steps: a round of it takes seconds, and it
# is so much slower than all others that one is enough, and a shorter answer.
SLOW = "fast, without graphs"


def repeated(contestants):
    """What interleaved rounds give, by name, without the first round; of SLOW
    the second round alone.
    """
    found = {name: [] for name in contestants}
    for turn in range(1 + rounds):
        for name, run in contestants.items():
            if name != SLOW or turn == min(1, rounds):
                found[name].append(run())
    return {name: values[1:] or values for name, values in found.items()}


def medians(found):
    return {name: statistics.median(values) for name, values in found.items()}


def spread(values):
    """The 20th and 80th percentile; None of one value."""
    if len(values) < 2:
        return {"p20": None, "p80": None}
    low, *_, high = statistics.quantiles(values, n=5)
    return {"p20": low, "p80": high}


single = 256  # tokens of the answer
brief = 64  # of one that takes its time
rounds = 5
question = "Explain in a few sentences why the sky is blue."
if model is checkpoint:
    prompt = tokenizer.chat([("user", question)])
else:
    prompt = prompts[0]
found = repeated(
    {
        "fast, a step ahead": lambda: single_run(fast, prompt, 0, True)[0],
        "fast, with graphs": lambda: single_run(fast, prompt)[0],
        SLOW: lambda: single_run(slow, prompt, count=brief)[0],
        "batch-invariant": lambda: single_run(invariant, prompt)[0],
    }
)
alone = medians(found)
limit = bandwidth * 1e9 / stored
ct.table(
    "one request alone",
    {
        name: {
            "tokens": rate,
            **spread(found[name]),
            "a step": 1e6 / rate,
            "of what the bytes allow": 100 * rate / limit,
        }
        for name, rate in alone.items()
    },
    corner="engine",
    units={
        **dict.fromkeys(("tokens", "p20", "p80"), "tokens/s"),
        "a step": "us",
        "of what the bytes allow": "%",
    },
)

# %% graph
launches = [
    graph.nodes
    for shape, graph in fast._graphs.items()
    if isinstance(shape, Shape) and (shape.decode, shape.tokens) == (1, 0)
]
ct.facts(
    "graphs",
    {
        "launches of a step": max(launches, default=0),
        "graphs that were recorded": fast.recorded,
        "step without graphs / with": (
            alone["fast, with graphs"] / alone[SLOW],
            "×",
        ),
    },
)

# %% guess
TEXT = (
    "Repeat this text word for word, twice: The quick brown fox jumps over "
    "the lazy dog near the quiet river bank, and the dog does not care."
)


def guessing(prompt):
    """With and without guesses: tokens per second, outputs, steps."""
    found = medians(
        repeated(
            {n: lambda n=n: single_run(fast, prompt, n)[0] for n in (0, 7)}
        )
    )
    steps = single_run(fast, prompt, 7)[2]
    said = [single_run(invariant, prompt, n)[1].output for n in (0, 7)]
    return {
        "without guesses": found[0],
        "guessing 7": found[7],
        "steps": steps,
        "tokens of a step": single / steps,
    }, said


texts_n = 2
texts = {"a text to repeat": TEXT, "a question": question}
rows = {}
for name, text in list(texts.items())[:texts_n]:
    if model is checkpoint:
        prompt = tokenizer.chat([("user", text)])
    rows[name], said = guessing(prompt)
    ct.check(np.array(said[1]), np.array(said[0]), name=f"{name}: same output")
ct.table(
    "speculation by n-grams",
    rows,
    corner="prompt",
    units={"without guesses": "tokens/s", "guessing 7": "tokens/s"},
)

# %% [markdown]
# 256 requests at once: prompts of 32 to 512 tokens, answers of 32 to 256, all
# lengths equally often, seed 0.

# %% bench-many
PROMPT = (32, 512)
OUTPUT = (32, 256)
many = 256


def everybody():
    return crowd(many, PROMPT, OUTPUT, config.vocab)


def many_run(backend, ahead=False):
    return play(backend, everybody(), ahead=ahead, token_budget=BUDGET)


found = repeated(
    {
        "fast, a step ahead": lambda: many_run(fast, True).rate,
        "fast, with graphs": lambda: many_run(fast).rate,
        SLOW: lambda: many_run(slow).rate,
        "batch-invariant": lambda: many_run(invariant).rate,
    }
)
together = medians(found)
requests, steps, _ = many_run(fast)
ct.table(
    f"{many} requests",
    {
        name: {
            "generated": rate,
            **spread(found[name]),
            "of what the bytes allow": 100
            * rate
            * (2 * parameters + kv)
            / (256 * bandwidth * 1e9),
        }
        for name, rate in together.items()
    },
    corner="engine",
    units={
        **dict.fromkeys(("generated", "p20", "p80"), "tokens/s"),
        "of what the bytes allow": "%",
    },
)

# %% workload
ct.facts(
    "the workload",
    {
        "tokens of prompts": sum(len(request.prompt) for request in requests),
        "tokens generated": sum(request.max_tokens for request in requests),
        "steps": steps,
        "fast / batch-invariant": (
            together["fast, with graphs"] / together["batch-invariant"],
            "×",
        ),
    },
)

# %% [markdown]
# Temperature 0 is not enough for the same answer each time.

# %% temperature
asked = 32
told = 64  # tokens of an answer
prompts_many = [request.prompt for request in everybody()[:asked]]
rows = {}
for name, backend in (("fast", fast), ("batch-invariant", invariant)):
    said = {}
    for most in (1, asked):
        requests = [Request(i, p, told) for i, p in enumerate(prompts_many)]
        play(backend, requests, max_running=most)
        said[most] = [request.output for request in requests]
    pairs = list(zip(said[1], said[asked]))
    first = [
        next((n for n in range(told) if a[n] != b[n]), told) for a, b in pairs
    ]
    rows[name] = {
        "answers": asked,
        "other than by itself": sum(a != b for a, b in pairs),
        "first difference, earliest": min(first) if min(first) < told else None,
    }
ct.table("temperature 0, by itself and in a batch", rows, corner="mode")

# %% temperature-check
ct.check(
    np.array(rows["batch-invariant"]["other than by itself"]),
    0,
    name="batch-invariant: other answers",
)
