# ---
# jupyter:
#   cudatut:
#     title: {en: "From a request to a batch: checks", zh: "从请求到批次：检查"}
#     requires: sm_80
#     extra: llm
#     alone: false
# ---

# %% [markdown]
# Right before fast: text that is shown as it comes, a request that is cancelled,
# and answers in a pool so small that requests are preempted.

# %% setup
import numpy as np

import cudatut as ct
from cudatut.book.llm.backends.numpy_backend import NumpyBackend
from cudatut.book.llm.engine.blocks import NaiveBlocks
from cudatut.book.llm.engine.engine import Engine
from cudatut.book.llm.engine.request import Request
from cudatut.book.llm.engine.scheduler import Scheduler
from cudatut.book.llm.model import tokens
from cudatut.book.llm.model.checkpoint import Checkpoint
from cudatut.book.llm.model.fetch import fetch
from cudatut.book.llm.model.reference import Reference, greedy

# %% stream
tokenizer = tokens.load(Checkpoint.open(fetch()))
text = "GPU 很快 🚀!"
stream = tokenizer.stream()
pieces = [stream.push(token) for token in tokenizer.encode(text)]
print(pieces)
rng = ct.rng(0)
for n in ct.RAGGED[:3]:
    numbers = rng.integers(0x20, 0x3000, n)
    sample = "".join(map(chr, numbers))
    assert tokenizer.decode(tokenizer.encode(sample)) == sample
ct.facts(
    "a text as a stream",
    {
        "characters": len(text),
        "bytes": len(text.encode()),
        "tokens": len(pieces),
        "tokens after which nothing is shown": pieces.count(""),
    },
)

# %% cancel
POOL, BLOCK = 64, 16  # blocks, tokens of a block
machine = Scheduler(NaiveBlocks(POOL, BLOCK))
for number in range(3):
    machine.add(Request(number, [1] * 200, 100))
machine.finish(machine.schedule(), [[1]] * 3)
before = machine.blocks.free
machine.cancel(1)
machine.blocks.check()
ct.facts(
    "a request is cancelled",
    {
        "free blocks before": before,
        "free blocks after": machine.blocks.free,
        "blocks of 200 tokens": ct.cdiv(200, BLOCK),
    },
)

# %% [markdown]
# Right before fast. Our own small model continues poems, in a pool so small
# that requests are preempted, and says what it says alone.

# %% check
tang = Checkpoint.open(ct.paths.examples_dir() / "llm/model/tang.gguf")
characters = tokens.load(tang)
beginnings = (
    "春眠不觉晓，",
    "白日依山尽，",
    "床前明月光，",
    "红豆生南国，",
)
prompts = [[characters.bos, *characters.encode(line)] for line in beginnings]
alone = [greedy(Reference(tang), prompt, 30) for prompt in prompts]
rows = {}
for count in (40, 12):
    backend = NumpyBackend(tang, count, 4, one_by_one=True)
    machine = Scheduler(
        NaiveBlocks(count, 4), token_budget=8, max_running=4, watermark=0
    )
    engine = Engine(backend, machine)
    requests = [Request(i, prompt, 30) for i, prompt in enumerate(prompts)]
    for request in requests:
        engine.add(request)
    while engine.busy:
        engine.step()
        machine.blocks.check()
    said = np.array([request.output for request in requests])
    ct.check(
        said, np.array(alone), name=f"pool of {count} blocks, beside alone"
    )
    rows[f"pool of {count} blocks"] = {
        "preemptions": sum(r.preemptions for r in requests),
        "answers as alone": sum(
            r.output == expected for r, expected in zip(requests, alone)
        ),
    }
print(beginnings[0] + characters.decode(alone[0]))
ct.table("four poems", rows, corner="pool")
