# ---
# jupyter:
#   cudatut:
#     title: {en: "The engine beside PyTorch and transformers", zh: "引擎与 PyTorch、transformers"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 300
# ---

# %% [markdown]
# The same weights in bf16, the same prompts, greedy, in one process. PyTorch
# has a cache of fixed size, and its step is a CUDA graph, too.

# %% setup
import statistics
from itertools import takewhile
from time import perf_counter

import cudatut as ct
from cudatut.book.llm.backends.gpu_backend import GpuBackend
from cudatut.book.llm.backends.torch_llama import Steps, TorchLlama, pytorch
from cudatut.book.llm.backends.torch_transformers import (
    generate,
    llama,
    together,
)
from cudatut.book.llm.engine.request import Request
from cudatut.book.llm.model import tokens
from cudatut.book.llm.model.checkpoint import Checkpoint
from cudatut.book.llm.model.fetch import fetch
from cudatut.book.llm.serving.ways import BLOCK, BUDGET, COUNT, crowd, play

torch = pytorch()  # None under a sanitizer: then nothing below runs
checkpoint = Checkpoint.open(fetch())
tokenizer = tokens.load(checkpoint)
prompt = tokenizer.chat([("user", "Explain why the sky is blue.")])
SAY, FEW = 256, 48  # tokens of an answer; of one that takes its time
ROUNDS = 5


def serve(backend, requests):
    """Seconds for all requests."""
    return play(backend, requests, ahead=True, token_budget=BUDGET).seconds


def attempt(name, run):
    """What `run` gives; None, and a note, where this library fails."""
    try:
        return run()
    except Exception as error:
        print(f"{name} does not run here: {type(error).__name__}")
        return None


def beside(title, rates, what, **columns):
    """A table of tokens per second; columns: by the name of the row."""
    ct.table(
        title,
        {
            name: {
                what: rate,
                "this book is faster by": rates["this book"] / rate,
            }
            | {column: of.get(name) for column, of in columns.items()}
            for name, rate in rates.items()
        },
        corner="engine",
        units={what: "tokens/s", "this book is faster by": "×"},
    )


# %% alone
if torch:
    backend = GpuBackend(checkpoint, COUNT, BLOCK, max_tokens=BUDGET)
    with torch.inference_mode():
        static = Steps(
            TorchLlama(torch, checkpoint, torch.bfloat16, 1, 512), True
        )

    def ours():
        request = Request(0, prompt, SAY)
        serve(backend, [request])
        return request.output, request.times[-1] - request.times[0]

    def of_pytorch():
        with torch.inference_mode():
            found, seconds = static.run([prompt], SAY)
        return found[0].tolist(), seconds

    runs = {"this book": ours, "PyTorch, static cache and graph": of_pytorch}
    times, answers = {name: [] for name in runs}, {}
    for turn in range(1 + ROUNDS):  # the first is a warm-up run
        for name, run in runs.items():
            answers[name], seconds = run()
            times[name] += [seconds] if turn else []
    rates = {
        name: (SAY - 1) / statistics.median(found)
        for name, found in times.items()
    }
    name = "transformers, generate"
    other = attempt("transformers", lambda: llama(torch, checkpoint))
    found = other and attempt(name, lambda: generate(torch, other, prompt, FEW))
    if found:
        answers[name], seconds = found
        rates[name] = (FEW - 1) / seconds

    def alike(answer):
        """First tokens that are ours, too."""
        pairs = zip(answer, answers["this book"])
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))

    beside(
        "one request alone, beside rivals",
        rates,
        "tokens",
        **{
            "tokens of the answer": {n: len(a) for n, a in answers.items()},
            "first tokens that are the same": {
                n: alike(a) for n, a in answers.items()
            },
        },
    )

# %% [markdown]
# 256 requests, prompts of 32 to 512 and answers of 32 to 256 tokens. PyTorch
# pads them to one batch that runs until the longest answer ends; only tokens
# that were asked for count. `transformers` batches continuously, as we do.

# %% together
if torch:
    vocab = checkpoint.config.vocab

    def everybody():
        return crowd(256, (32, 512), (32, 256), vocab)

    asked = [request.max_tokens for request in everybody()]
    prompts = [request.prompt for request in everybody()]
    del static
    with torch.inference_mode():
        static = Steps(
            TorchLlama(torch, checkpoint, torch.bfloat16, 256, 768), True
        )

    def padded():
        torch.cuda.synchronize()
        begin = perf_counter()
        with torch.inference_mode():
            static.run(prompts, max(asked))
        return perf_counter() - begin

    runs = {
        "this book": lambda: serve(backend, everybody()),
        "PyTorch, static cache and graph": padded,
    }
    times = {name: [] for name in runs}
    for turn in range(1 + ROUNDS):  # the first is a warm-up run
        for name, run in runs.items():
            seconds = run()
            times[name] += [seconds] if turn else []
    rates = {
        name: sum(asked) / statistics.median(found)
        for name, found in times.items()
    }
    del static
    torch.cuda.empty_cache()
    name = "transformers, continuous batching"
    seconds = other and attempt(name, lambda: together(other, everybody()))
    if seconds:
        rates[name] = sum(asked) / seconds
    beside("256 requests, beside rivals", rates, "generated")
