# ---
# jupyter:
#   cudatut:
#     title: {en: "Block managers: the time to the first token", zh: "块管理器：首个词元的时间"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 180
#     sizes:
#       layers: [30, 1]
#       vocab: [49152, 512]
#       LENGTHS: [[1000, 8000], [100, 200]]
#       times: [7, 1]
#       series: [5, 1]
# ---

# %% [markdown]
# Where does the time to the first token go, if the beginning of a prompt is
# known? With a watch on every part of the host: how long it is in the block
# manager, in the scheduler, and how long it waits for the GPU.

# %% setup
import copy
from functools import partial
from time import perf_counter

import cudatut as ct
from cudatut.book.llm.block_managers.prompts import (
    BLOCK,
    OWN,
    backend_for,
    first_token,
)
from cudatut.book.llm.engine.blocks import NaiveBlocks
from cudatut.book.llm.engine.prefix import PrefixBlocks

layers = 30
vocab = 49152
LENGTHS = (1000, 8000)  # tokens of a prompt; all but the last 64 are shared
times = 7
backend = backend_for(layers, vocab)


# %% first-token-parts
class Watch:
    """Seconds that the host spends in each part, without those in a part that
    this one calls; of each prompt.
    """

    def __init__(self):
        self.prompts, self.inside = [], None

    def __call__(self, engine):
        scheduler, engine.backend = engine.scheduler, copy.copy(engine.backend)
        for part, owner, names in (
            ("block manager", scheduler.blocks, "lookup fits begin reserve"),
            ("block manager", scheduler.blocks, "commit release"),
            ("scheduler and arrays", scheduler, "add schedule finish"),
            ("scheduler and arrays", engine, "assemble"),
            ("start of the step", engine.backend, "run sample"),
            ("wait for the GPU", engine.backend, "fetch"),
        ):
            for name in names.split():
                setattr(owner, name, self.timed(part, getattr(owner, name)))

    def next_prompt(self):
        self.prompts.append({})

    def timed(self, part, call):
        def found(*arguments, **named):
            spent, outer = self.prompts[-1], self.inside
            self.inside, begin = part, perf_counter()
            result = call(*arguments, **named)
            took, self.inside = perf_counter() - begin, outer
            spent[part] = spent.get(part, 0) + took
            if outer:
                spent[outer] = spent.get(outer, 0) - took
            return result

        return found


series = 5
KINDS = {"without hits": NaiveBlocks, "with hits": PrefixBlocks}
ways = [(length, name) for length in LENGTHS for name in KINDS]
noted = {way: [] for way in ways}  # of each prompt its time and the parts
for _ in range(series):
    for length, name in ways:
        watch = Watch()
        us, _ = first_token(
            backend, KINDS[name], length, 2 + times, watch, watch.next_prompt
        )
        # The first two of each series do not count.
        noted[length, name] += [*zip(us, watch.prompts)][2:]
table = {}
for (length, name), prompts in noted.items():
    prompts.sort(key=lambda one: one[0])
    us, parts = prompts[len(prompts) // 2]  # the prompt of the median
    spent = {part: 1000 * s for part, s in parts.items()}
    spent |= {"all else": us / 1000 - sum(spent.values()), "in all": us / 1000}
    for percent in (20, 80):
        at = prompts[len(prompts) * percent // 100][0]
        spent[f"in all, p{percent}"] = at / 1000
    table[f"{length} tokens, {name}"] = spent
ct.table(
    "time to the first token, by what the host does",
    table,
    corner="prompt",
    units=dict.fromkeys(spent, "ms"),
)

# %% [markdown]
# Where few tokens are left, attention has few tiles of queries. One layer's, by
# flash.cu and with the keys of a tile dealt out to several thread blocks.

# %% dealt
import numpy as np

from cudatut.book.llm.kernels.attention import flash, flash_parts
from cudatut.book.llm.decoding.steps import random_bits
from cudatut.book.numbers.bf16 import to_float

heads, kv_heads, dim = 9, 3, 64
launches = {}
for length in LENGTHS:
    table = ct.rng(3).permutation(ct.cdiv(length, BLOCK))[None].astype("int32")
    starts, lengths = np.int32([0, OWN]), np.int32([length])
    tile = flash.tile_for(dim)
    order = flash.order(starts, lengths, tile)
    q = random_bits(OWN, heads, dim)
    cache = [random_bits(table.size * BLOCK, kv_heads, dim) for _ in "kv"]
    lists = [ct.to_device(x) for x in (starts, lengths, table)]
    out = [ct.empty((OWN, heads, dim), "uint16") for _ in range(2)]
    work = ct.to_device(order)
    partials = ct.empty(flash_parts.room(tile), "float32")
    one = partial(flash.paged, q, *cache, out[0], *lists, BLOCK, work)
    dealt = partial(
        flash_parts.few_or_many, q, *cache, out[1], *lists, BLOCK, work,
        partials,
    )  # fmt: skip
    launches[f"{length} keys, flash.cu"] = one
    launches[f"{length} keys, dealt out"] = dealt
    one(), dealt()
    ct.check(
        to_float(out[1].get()),
        to_float(out[0].get()),
        atol=0.015,
        name=f"{length} keys dealt out: the same as by flash.cu",
    )
by_kernel = ct.bench(launches, name="attention of 64 tokens in one layer")

# %% dealt-facts
if not ct.tool.running():
    facts = {}
    for length in LENGTHS:
        one = by_kernel[f"{length} keys, flash.cu"].median_us
        many = by_kernel[f"{length} keys, dealt out"].median_us
        facts[f"{length} keys"] = (one / many, "times")
    ct.facts("attention of 64 tokens, dealt out: times as fast", facts)
