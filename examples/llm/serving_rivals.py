# ---
# jupyter:
#   cudatut:
#     title: {en: "The engine beside PyTorch and transformers", zh: "引擎与 PyTorch、transformers"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 400
# ---

# %% [markdown]
# The same model file, the same prompts, greedy, in one process. PyTorch has a
# cache of fixed size, and its step is a CUDA graph, too.

# %% setup
import statistics
from time import perf_counter

import numpy as np

import cudatut as ct
import tokens
from arrivals import uniform, workload
from blocks import NaiveBlocks
from checkpoint import Checkpoint
from engine import Engine
from fetch import fetch
from gpu_backend import GpuBackend
from request import Request
from scheduler import Scheduler
from torch_llama import Steps, TorchLlama, pytorch

torch = pytorch()  # None under a sanitizer: then nothing below runs
path = fetch()
checkpoint = Checkpoint.open(path)
tokenizer = tokens.load(checkpoint)
prompt = tokenizer.chat([("user", "Explain why the sky is blue.")])
SAY, ROUNDS = 256, 5
BUDGET = 8192  # tokens of a step


def ours(backend, requests):
    """Seconds from the first token of the first to the last of all; from the
    beginning for many.
    """
    machine = Scheduler(
        NaiveBlocks(8192, 16), BUDGET, 256, context=checkpoint.config.context
    )
    engine = Engine(backend, machine, ahead=True)
    for request in requests:
        engine.add(request)
    begin = perf_counter()
    while engine.busy:
        engine.step()
    if len(requests) > 1:
        return perf_counter() - begin
    return requests[0].times[-1] - requests[0].times[0]


def of_transformers():
    """The model as `transformers` reads it, or the reason why not."""
    try:
        from transformers import AutoModelForCausalLM

        model = AutoModelForCausalLM.from_pretrained(
            path.parent, gguf_file=path.name, dtype=torch.bfloat16
        )
        return model.to("cuda"), ""
    except Exception as error:
        return None, f"{type(error).__name__}: {str(error).splitlines()[0]}"


def generate(model, prompts, count):
    """Seconds for `count` tokens of each, without the first one's."""
    longest = max(map(len, prompts))
    ids = np.zeros((len(prompts), longest), "int64")
    for row, prompt in zip(ids, prompts):  # padded in front
        row[longest - len(prompt) :] = prompt
    mask = torch.tensor(
        [[0] * (longest - len(p)) + [1] * len(p) for p in prompts],
        device="cuda",
    )
    ids = torch.tensor(ids, device="cuda")

    def seconds(n):
        torch.cuda.synchronize()
        begin = perf_counter()
        model.generate(
            ids,
            attention_mask=mask,
            max_new_tokens=n,
            min_new_tokens=n,
            do_sample=False,
            pad_token_id=0,
        )
        torch.cuda.synchronize()
        return perf_counter() - begin

    seconds(2)
    return seconds(count) - seconds(1)


# %% alone
if torch:
    backend = GpuBackend(checkpoint, 8192, 16, max_tokens=BUDGET)
    with torch.inference_mode():
        static = TorchLlama(torch, checkpoint, torch.bfloat16, 1, 512)
        graph, eager = Steps(static, True), Steps(static, False)
        runs = {
            "this book": lambda: ours(backend, [Request(0, prompt, SAY)]),
            "PyTorch, static cache and graph": lambda: graph.run([prompt], SAY)[
                1
            ],
            "PyTorch, static cache": lambda: eager.run([prompt], SAY)[1],
        }
        times = {name: [] for name in runs}
        for turn in range(ROUNDS + 1):
            for name, run in runs.items():
                seconds = run()
                if turn:
                    times[name].append(seconds)
        rates = {
            name: (SAY - 1) / statistics.median(found)
            for name, found in times.items()
        }
        other, why = of_transformers()
        few = 48  # tokens: it takes its time
        if other is not None:
            rates["transformers"] = (few - 1) / generate(other, [prompt], few)
        else:
            print(f"transformers: {why}")
    ct.table(
        "one request alone, beside rivals",
        {
            name: {
                "tokens": rate,
                "this book is faster by": rates["this book"] / rate,
            }
            for name, rate in rates.items()
        },
        corner="engine",
        units={"tokens": "tokens/s", "this book is faster by": "×"},
    )

# %% [markdown]
# 256 requests, prompts of 32 to 512 and answers of 32 to 256 tokens. PyTorch
# pads them to one batch that runs until the longest answer ends; only tokens
# that were asked for count.

# %% together
if torch:
    lengths = {"prompt": uniform(32, 512), "output": uniform(32, 256)}

    def crowd():
        return workload(256, float("inf"), seed=0, **lengths)

    wanted = sum(request.max_tokens for request in crowd())
    longest = max(request.max_tokens for request in crowd())
    prompts = [request.prompt for request in crowd()]
    rates = {}
    with torch.inference_mode():
        del static, graph, eager
        static = TorchLlama(torch, checkpoint, torch.bfloat16, 256, 768)
        graph = Steps(static, True)

        def padded():
            torch.cuda.synchronize()
            begin = perf_counter()
            graph.run(prompts, longest)
            return perf_counter() - begin

        runs = {
            "this book": lambda: ours(backend, crowd()),
            "PyTorch, static cache and graph": padded,
        }
        times = {name: [] for name in runs}
        for turn in range(4):
            for name, run in runs.items():
                seconds = run()
                if turn:
                    times[name].append(seconds)
        rates = {
            name: wanted / statistics.median(found)
            for name, found in times.items()
        }
        if other is not None:
            few = 16  # tokens of each
            took = generate(other, prompts, few)
            rates["transformers, without the prompts"] = 256 * (few - 1) / took
    ct.table(
        "256 requests, beside rivals",
        {
            name: {
                "generated": rate,
                "this book is faster by": rates["this book"] / rate,
            }
            for name, rate in rates.items()
        },
        corner="engine",
        units={"generated": "tokens/s", "this book is faster by": "×"},
    )
