# ---
# jupyter:
#   cudatut:
#     title: {en: "PagedAttention: a small pool over time", zh: "PagedAttention：小池随时间的变化"}
#     requires: sm_80
#     extra: llm
#     alone: false
# ---

# %% [markdown]
# A small pool, to be drawn: 1024 slots, and requests of 20 to 200 tokens.

# %% map
import cudatut as ct
from cudatut.book.llm.paged_attention.pools import (
    Ask,
    Contiguous,
    Map,
    Paged,
    power_of_two,
    run,
)

rng = ct.rng(2)
few = [
    Ask(int(p), int(p + o))
    for p, o in zip(rng.integers(10, 80, 200), rng.integers(10, 120, 200))
]
for name, pool in (
    ("the next power of two", Contiguous(1024, power_of_two)),
    ("blocks of 16", Paged(1024, 16)),
):
    pictures = Map(pool, cell=16, every=30, count=9)
    run(pool, few, pictures.watch)
    ct.table(
        f"a pool over time: {name}",
        {
            str(step): {"requests": owners, "tokens": tokens}
            for step, (owners, tokens) in pictures.taken.items()
        },
        corner="steps so far",
    )
