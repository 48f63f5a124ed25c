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
#       rows_n: [256, 4]
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
import copy
import statistics
from time import perf_counter

import numpy as np

import cudatut as ct
from cudatut.book.llm.engine import sampler
from cudatut.book.llm.kernels import sampling
from cudatut.book.llm.engine.arrivals import uniform, workload
from cudatut.book.llm.engine.blocks import NaiveBlocks
from cudatut.book.llm.backends.step_shape import Shape
from cudatut.book.llm.model.random_model import RandomModel
from cudatut.book.llm.model.reference import Reference
from cudatut.book.llm.engine.sampler import Sampling
from cudatut.book.rivals.torch_rival import rival

# What a sanitizer can watch is a small model of random numbers.
small = {"layers": 1, "dim": 128, "heads": 2, "kv_heads": 1, "ffn": 256}
model = RandomModel(**small, vocab=512) if ct.tool.running() else checkpoint
config = model.config
COUNT, BLOCK = 8192, 16  # blocks, tokens of a block
BUDGET = 8192  # tokens of a step, where many requests are to be fast
room = {"max_tokens": BUDGET, "max_requests": 256, "max_logits": 2048}
fast = GpuBackend(model, COUNT, BLOCK, **room)
invariant = GpuBackend(model, COUNT, BLOCK, **room, batch_invariant=True)
eager = copy.copy(fast)  # the same weights and cache, without graphs
eager.graphs, eager._graphs = False, type(fast._graphs)()


def play(
    backend, requests, manager=NaiveBlocks, speculate=0, ahead=False, **options
):
    """Run requests to their ends; the engine, and the steps that it took."""
    if isinstance(manager, type):
        manager = manager(backend.block_count, BLOCK)
    options = {"token_budget": 2048, "max_running": 256, **options}
    machine = Scheduler(manager, context=config.context, **options)
    engine, steps = Engine(backend, machine, speculate, ahead), 0
    for request in requests:
        engine.add(request)
    while engine.busy:
        engine.step()
        steps += 1
    return engine, steps


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
# Right before fast. First beside the reference, in NumPy and fp32: the logits
# after prompts of ragged lengths.


# %% check
class Watched:
    """A backend that keeps the logits of each request and position."""

    def __init__(self, backend):
        self.backend, self.config = backend, backend.config
        self.block_count, self.block_size = backend.block_count, BLOCK
        self.room = backend.room
        self.kept, self.step = {}, None

    def run(self, batch):
        logits = self.backend.run(batch)
        work = self.engine.last.work
        if len(batch.wanted):
            host = logits.get()
            for row, token in enumerate(batch.wanted.tolist()):
                i = int(np.searchsorted(batch.starts, token, "right")) - 1
                key = work[i].request.id, int(batch.positions[token])
                self.kept[key] = host[row].copy()
        return logits

    def sample(self, logits, draws):
        return self.backend.sample(logits, draws)

    def fetch(self, drawn):
        return self.backend.fetch(drawn)


def watched(backend, requests, manager=NaiveBlocks, **options):
    """As `play`; the logits by request and position."""
    seen = Watched(backend)
    if isinstance(manager, type):
        manager = manager(backend.block_count, BLOCK)
    speculate = options.pop("speculate", 0)
    ahead = options.pop("ahead", False)
    options = {"token_budget": 2048, "max_running": 8, **options}
    machine = Scheduler(manager, context=config.context, **options)
    seen.engine = Engine(seen, machine, speculate, ahead)
    for request in requests:
        seen.engine.add(request)
    while seen.engine.busy:
        seen.engine.step()
    return seen.kept


lengths = (1, 31, 33, 70, 129, 300)
rng = ct.rng(0)
prompts = [rng.integers(5, config.vocab, n).tolist() for n in lengths]
reference = Reference(model)
rows = {}
for n, prompt in zip(lengths, prompts):
    reference.reset()
    exact = reference.forward(prompt)[-1]
    rows[f"{n} tokens"] = {"largest logit": float(np.abs(exact).max())}
    for name, backend in (("fast", fast), ("invariant", invariant)):
        got = watched(backend, [Request(0, prompt, 1)])[0, n - 1]
        error = float(np.abs(got - exact).max())
        rows[f"{n} tokens"][f"{name}: error"] = error
        rows[f"{n} tokens"][f"{name}: first choice"] = bool(
            got.argmax() == exact.argmax()
        )
ct.table("logits beside the reference", rows, corner="prompt")

# %% [markdown]
# Then every way to compute the same request: alone, in a batch, in chunks,
# preempted, with a prefix that was found, with guessed tokens, a step ahead,
# and without CUDA graphs.

# %% same
say = 24  # tokens of an answer
ways_n = 8  # ways to compute it


def asked_for():
    return [Request(i, prompt, say) for i, prompt in enumerate(prompts)]


def compared(backend):
    """Each way beside 'alone': answers, and logits while the tokens agree."""
    few = copy.copy(backend)  # the same memory, but fewer blocks are used
    few.block_count = ct.cdiv(max(lengths) + say, BLOCK) + 1
    plain = copy.copy(backend)
    plain.graphs = False
    found = PrefixBlocks(backend.block_count, BLOCK)
    ways = {
        "by itself": {"max_running": 1},
        "in a batch": {},
        "in chunks of 16": {"token_budget": 16},
        "preempted": {"backend": few, "watermark": 0},
        "prefix found": {"manager": found},
        "guessed tokens": {"speculate": 4},
        "a step ahead": {"ahead": True},
        "without graphs": {"backend": plain},
    }
    rows, alone = {}, None
    for name, how in list(ways.items())[:ways_n]:
        if "manager" in how:  # so that the second time it is found
            play(backend, asked_for(), found)
        requests = asked_for()
        kept = watched(how.pop("backend", backend), requests, **how)
        said = [request.output for request in requests]
        alone = alone or (said, kept)
        largest, count, equal = 0.0, 0, 0
        for i, (one, other) in enumerate(zip(alone[0], said)):
            start = len(prompts[i]) - 1
            for n in range(say):
                if one[:n] != other[:n]:
                    break
                a, b = (of[i, start + n] for of in (alone[1], kept))
                count, equal = count + 1, equal + np.array_equal(a, b)
                largest = max(largest, float(np.abs(a - b).max()))
        rows[name] = {
            "answers as alone": sum(a == b for a, b in zip(alone[0], said)),
            "rows of logits": count,
            "equal in every bit": int(equal),
            "largest difference": largest,
            "preemptions": sum(request.preemptions for request in requests),
            "tokens found": sum(request.cached for request in requests),
        }
    return rows


found = compared(invariant)
ct.table("batch-invariant mode", found, corner="way")
ct.check(
    np.array([row["equal in every bit"] for row in found.values()]),
    np.array([row["rows of logits"] for row in found.values()]),
    name="batch-invariant: bits of the logits",
)

# %% same-fast
ct.table("fast mode", compared(fast), corner="way")

# %% [markdown]
# The sampling kernel beside its reference: rows of logits with parameters of
# their own.

# %% sampling
KINDS = {
    "argmax": Sampling(),
    "temperature": Sampling(0.8),
    "top-k": Sampling(0.8, top_k=50),
    "top-p": Sampling(0.8, top_p=0.9),
    "top-k and top-p": Sampling(0.8, top_k=50, top_p=0.9),
}
rows_n = 256
VOCAB = 49152
logits_host = (4 * ct.rng(1).standard_normal((rows_n, VOCAB))).astype("float32")
logits = ct.to_device(logits_host)
best = ct.to_device(np.zeros(rows_n, "uint64"))
tickets = ct.to_device(np.zeros(rows_n, "uint32"))


def draws(how, rows):
    """Parameters of each row, on the GPU, and where its token goes."""
    values = (
        np.full(rows, how.temperature, "float32"),
        np.full(rows, how.top_k, "int32"),
        np.full(rows, how.top_p, "float32"),
        np.full(rows, how.seed, "uint64"),
        np.arange(rows, dtype="int32"),
        np.full(rows, 7, "int32"),
    )
    return [ct.to_device(value) for value in values], ct.empty(rows, "int32")


def drawing(how):
    parameters, out = draws(how, rows_n)

    def run():
        sampling.sample(logits, *parameters, out, best, tickets)

    run.out = out
    return run


for name, how in KINDS.items():
    run = drawing(how)
    run()
    few = min(rows_n, 32)  # the reference takes its time
    expected = [
        sampler.sample(row, how, i, 7)
        for i, row in enumerate(logits_host[:few])
    ]
    ct.check(run.out.get()[:few], np.array(expected, "int32"), name=name)

# %% bench-sampling
contestants = {name: drawing(how) for name, how in KINDS.items()}
contestants["PyTorch argmax"] = rival(
    lambda torch, x: lambda: torch.argmax(x, -1), logits
)
contestants["PyTorch multinomial"] = rival(
    lambda torch, x: lambda: torch.multinomial(torch.softmax(x / 0.8, -1), 1),
    logits,
)
sampled = ct.bench(
    contestants,
    bytes=4 * rows_n * VOCAB,
    name=f"a token of each of {rows_n} rows",
)

# %% [markdown]
# Speed. One request alone, with and without graphs, and with tokens guessed.


# %% bench-alone
def single_run(backend, prompt, speculate=0, ahead=False, count=None):
    """Tokens per second after the first one; the request, the steps. count:
    tokens of the answer, `single` if not said.
    """
    request = Request(0, prompt, count or single)
    _, steps = play(backend, [request], speculate=speculate, ahead=ahead)
    times = request.times
    rate = (len(times) - 1) / (times[-1] - times[0] or float("nan"))
    return rate, request, steps


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
        SLOW: lambda: single_run(eager, prompt, count=brief)[0],
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


def crowd():
    return workload(
        many,
        float("inf"),
        prompt=uniform(*PROMPT),
        output=uniform(*OUTPUT),
        seed=0,
        vocab=config.vocab,
    )


def many_run(backend, ahead=False):
    requests = crowd()
    begin = perf_counter()
    _, steps = play(backend, requests, ahead=ahead, token_budget=BUDGET)
    seconds = perf_counter() - begin
    generated = sum(len(request.output) for request in requests)
    return generated / seconds, steps


found = repeated(
    {
        "fast, a step ahead": lambda: many_run(fast, True)[0],
        "fast, with graphs": lambda: many_run(fast)[0],
        SLOW: lambda: many_run(eager)[0],
        "batch-invariant": lambda: many_run(invariant)[0],
    }
)
together = medians(found)
requests, steps = crowd(), many_run(fast)[1]
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
# A step on the clock: how much of it the host takes.

# %% host
spent = {"scheduler and arrays": [], "backend": []}


class Timed(Engine):
    """An engine that watches its own clock."""

    def assemble(self, step):
        found = super().assemble(step)
        self.between = perf_counter()
        return found

    def step(self):
        begin = perf_counter()
        outputs = super().step()
        end = perf_counter()
        if self.last.work:
            spent["scheduler and arrays"].append(self.between - begin)
            spent["backend"].append(end - self.between)
        return outputs


machine = Scheduler(
    NaiveBlocks(COUNT, BLOCK), BUDGET, 256, context=config.context
)
timed = Timed(fast, machine)
for request in crowd():
    timed.add(request)
while timed.busy:
    timed.step()
ct.facts(
    f"a step of {many} requests, median",
    {name: (1e6 * statistics.median(t), "us") for name, t in spent.items()},
)

# %% [markdown]
# Temperature 0 is not enough for the same answer each time.

# %% temperature
asked = 32
told = 64  # tokens of an answer
prompts_many = [request.prompt for request in crowd()[:asked]]
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
