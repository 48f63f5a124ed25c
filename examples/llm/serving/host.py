# ---
# jupyter:
#   cudatut:
#     title: {en: "The engine: the time of the host", zh: "推理引擎：主机的时间"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 120
#     sizes:
#       many: [256, 2]
#       OUTPUT: [[32, 256], [1, 2]]
# ---

# %% [markdown]
# A step on the clock: how much of it the host takes.

# %% setup
import statistics
from time import perf_counter

import cudatut as ct
from cudatut.book.llm.backends.gpu_backend import GpuBackend
from cudatut.book.llm.model.checkpoint import Checkpoint
from cudatut.book.llm.model.fetch import fetch
from cudatut.book.llm.engine.blocks import NaiveBlocks
from cudatut.book.llm.engine.engine import Engine
from cudatut.book.llm.engine.scheduler import Scheduler
from cudatut.book.llm.serving.ways import (
    BLOCK,
    BUDGET,
    COUNT,
    ROOM,
    crowd,
    play,
    run,
    served,
)

model = served(Checkpoint.open(fetch()))
config = model.config
fast = GpuBackend(model, COUNT, BLOCK, **ROOM)

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


PROMPT = (32, 512)
OUTPUT = (32, 256)
many = 256
lengths = many, PROMPT, OUTPUT, config.vocab
play(fast, crowd(*lengths), token_budget=BUDGET)  # compiles, records graphs
machine = Scheduler(
    NaiveBlocks(COUNT, BLOCK), BUDGET, 256, context=config.context
)
timed = Timed(fast, machine)
run(timed, crowd(*lengths))
ct.facts(
    f"a step of {many} requests, median",
    {name: (1e6 * statistics.median(t), "us") for name, t in spent.items()},
)
