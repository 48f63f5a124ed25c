# ---
# jupyter:
#   cudatut:
#     title: {en: "The engine: logits beside the reference", zh: "推理引擎：logits 与参考实现"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 180
#     sizes:
#       lengths: [[1, 31, 33, 70, 129, 300], [1, 17]]
#       say: [24, 1]
#       ways_n: [8, 3]
# ---

# %% [markdown]
# The logits after prompts of ragged lengths, beside the reference in NumPy and
# fp32. Then the fast mode, in which other ways may give other bits.

# %% setup
import numpy as np

import cudatut as ct
from cudatut.book.llm.backends.gpu_backend import GpuBackend
from cudatut.book.llm.model.checkpoint import Checkpoint
from cudatut.book.llm.model.fetch import fetch
from cudatut.book.llm.engine.request import Request
from cudatut.book.llm.model.reference import Reference
from cudatut.book.llm.serving.ways import (
    BLOCK,
    COUNT,
    ROOM,
    compared,
    prompts_of,
    served,
    watched,
)

model = served(Checkpoint.open(fetch()))
fast = GpuBackend(model, COUNT, BLOCK, **ROOM)
invariant = GpuBackend(model, COUNT, BLOCK, **ROOM, batch_invariant=True)

# %% check
lengths = (1, 31, 33, 70, 129, 300)
prompts = prompts_of(lengths, model.config.vocab)
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

# %% same-fast
say = 24  # tokens of an answer
ways_n = 8  # ways to compute it
ct.table("fast mode", compared(fast, prompts, say, ways_n), corner="way")
