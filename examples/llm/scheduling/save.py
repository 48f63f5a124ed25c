# ---
# jupyter:
#   cudatut:
#     title: {en: "From a request to a batch: saved, or computed again", zh: "从请求到批次：保存还是重新计算"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 120
#     sizes:
#       saved_tokens: [[128, 512, 2048], [64]]
#       repeats: [15, 1]
# ---

# %% [markdown]
# A preempted request computes its tokens again. The alternative is to save
# their keys and values in the host's memory, and to fetch them back.

# %% setup
from time import perf_counter

import numpy as np
import pycuda.driver as cuda

import cudatut as ct
from cudatut.book.llm.backends.gpu_backend import GpuBackend
from cudatut.book.llm.engine.blocks import NaiveBlocks
from cudatut.book.llm.engine.engine import Engine
from cudatut.book.llm.engine.request import Request
from cudatut.book.llm.engine.scheduler import Scheduler
from cudatut.book.llm.model.checkpoint import Checkpoint
from cudatut.book.llm.model.fetch import fetch
from cudatut.book.llm.model.random_model import RandomModel

BLOCK = 16  # tokens of a block
checkpoint = Checkpoint.open(fetch())

# %% predict-save
GUESS_GBPS = 50.0  # a PCIe 5 x16 link, one way, as data sheets promise it
config = checkpoint.config
matrices = sum(
    int(np.prod(shape))
    for name, shape in config.shapes().items()
    if len(shape) == 2 and name != "embedding"
)
ct.table(
    "prediction: saved or computed again",
    {
        f"{n} tokens": {
            "bytes both ways": 2 * n * config.kv_bytes / 1e6,
            "time to save and fetch": 2
            * n
            * config.kv_bytes
            / GUESS_GBPS
            / 1e6,
            "operations again": 2 * n * matrices / 1e9,
        }
        for n in (128, 512, 2048)
    },
    corner="tokens preempted",
    units={
        "bytes both ways": "MB",
        "time to save and fetch": "ms",
        "operations again": "GFLOP",
    },
)

# %% save
# What a sanitizer can watch is a small model of random numbers.
small = {"layers": 1, "dim": 128, "heads": 2, "kv_heads": 1, "ffn": 256}
served = RandomModel(**small, vocab=512) if ct.tool.running() else checkpoint
backend = GpuBackend(served, block_count=8192, block_size=BLOCK)


def prefill(n):
    """Compute n tokens of one request, without sampling."""
    machine = Scheduler(NaiveBlocks(8192, BLOCK), token_budget=2048)
    engine = Engine(backend, machine)
    engine.add(Request(0, [7] * n, 2))
    batch, _, _ = engine.assemble(machine.schedule())

    def run():
        backend.run(batch)
        backend.stream.synchronize()

    return run


def save_and_fetch(n):
    """Keys and values of n tokens to the host and back, in one piece each."""
    nbytes = n * served.config.kv_bytes
    kept = cuda.pagelocked_empty(nbytes, np.uint8)
    cache = ct.to_device(ct.rng(n).integers(0, 255, nbytes, dtype="uint8"))

    def run():
        cuda.memcpy_dtoh_async(kept, cache.gpudata, backend.stream)
        cuda.memcpy_htod_async(cache.gpudata, kept, backend.stream)
        backend.stream.synchronize()

    return run


saved_tokens = (128, 512, 2048)
repeats = 15
rows = {}
for n in saved_tokens:
    candidates = {
        "computed again": prefill(n),
        "saved and fetched": save_and_fetch(n),
    }
    times = {name: [] for name in candidates}
    for _ in range(repeats + 2):
        for name, run in candidates.items():
            begin = perf_counter()
            run()
            times[name].append(1e3 * (perf_counter() - begin))
    # The first two turns compile and record.
    rows[f"{n} tokens"] = {
        name: float(np.median(found[2:])) for name, found in times.items()
    }
ct.table(
    "saved or computed again",
    rows,
    corner="tokens preempted",
    units={"computed again": "ms", "saved and fetched": "ms"},
)
