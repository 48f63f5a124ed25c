# ---
# jupyter:
#   cudatut:
#     title: {en: "Block managers: sizes, and the time of the host", zh: "块管理器：大小与主机的时间"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 120
# ---

# %% [markdown]
# How large should a block be, and how large the pool? And how long does the
# host take to find a known beginning?

# %% setup
from time import perf_counter

import cudatut as ct
from cudatut.book.llm.block_managers.traffic import (
    MANAGERS,
    kinds,
    serve,
    some,
)
from cudatut.book.llm.engine.prefix import PrefixBlocks

BLOCK = 16  # tokens

# %% block-size
# A larger block means fewer table entries and fewer hashes, and fewer hits.
traffic, by_size = kinds(), {}
for size in (1, 4, 16, 64, 256):
    by_size[size] = {
        name: sum(serve(PrefixBlocks(80_000 // size, size), requests))
        for name, requests in traffic.items()
    }
ct.table(
    "tokens computed by the size of a block", by_size, corner="tokens per block"
)

# %% evict
# 600 questions about 40 documents, some asked about far more often than others.
rng = ct.rng(2)
documents = [some(160) for _ in range(40)]
weights = 1 / (1 + rng.permutation(40))
asked = rng.choice(40, 600, p=weights / weights.sum())
stream = [(documents[d] + some(20), some(10)) for d in asked]
sizes = (40, 80, 120, 160, 240, 320, 400, 480)
found, evictions = {kind: [] for kind in ("hashes", "radix tree")}, {}
every = sum(len(prompt) for prompt, _ in stream)
for kind in found:
    for count in sizes:
        manager = MANAGERS[kind](count, BLOCK)
        computed = sum(serve(manager, stream))
        found[kind].append((count, 100 * (1 - computed / every)))
        evictions[kind, count] = manager.evictions
ct.series(
    "prompt tokens found",
    ("blocks in the pool", ""),
    ("share found", "%"),
    found,
)
ct.check(
    [share for _, share in found["radix tree"]],
    [share for _, share in found["hashes"]],
    name="the tree finds as much",
)
ct.facts(
    "hashes: hits and evictions",
    {
        f"pool of {n} blocks": f"{share:.1f} %, {evictions['hashes', n]}"
        for n, share in found["hashes"]
    },
)

# %% host
# Time of the host for one request of 8,000 tokens that are all known already
# but the last block, in a manager that knows 50 such texts.
texts = [(some(8000), some(2)) for _ in range(50)]
spent = {}
for kind, manager in MANAGERS.items():
    blocks = manager(30_000, BLOCK)
    serve(blocks, texts)
    best = []
    for prompt, _ in texts[:20]:
        start = perf_counter()
        cached = blocks.begin("again", prompt)
        blocks.reserve("again", cached, len(prompt))
        blocks.commit("again", prompt, len(prompt))
        best.append(1e6 * (perf_counter() - start))
        blocks.release("again")
    spent[kind] = (sorted(best)[len(best) // 2], "us")
ct.facts("time of the host for a prompt of 8,000 tokens", spent)
