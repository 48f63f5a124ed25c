# ---
# jupyter:
#   cudatut:
#     title: {en: "PagedAttention: solutions", zh: "PagedAttention：参考答案"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 60
#     alone: false
# ---

# %% [markdown]
# From tokens to slots, and the block size that loses least.

# %% given-1
import numpy as np


# %% solution-1
def slots(table, block_size, start, stop):
    """The slots of tokens start to stop - 1."""
    tokens = np.arange(start, stop)
    return np.asarray(table)[tokens // block_size] * block_size + (
        tokens % block_size
    )


# %% check-1
import cudatut as ct

found = slots([6, 1, 4], 4, 0, 11)
ct.check(found, [24, 25, 26, 27, 4, 5, 6, 7, 16, 17, 18], name="slots of A")
rng = ct.rng(0)
for block_size in (1, 7, 16):
    table = rng.permutation(20)
    pool = np.full((20 * block_size,), -1)
    for token in range(5, 12 * block_size):
        block = table[token // block_size]
        pool[block * block_size + token % block_size] = token
    found = pool[slots(table, block_size, 5, 12 * block_size)]
    wanted = np.arange(5, 12 * block_size)
    ct.check(found, wanted, name=f"slots in blocks of {block_size}")

# %% given-2
import numpy as np


# %% solution-2
def best(lengths, token_bytes, per_block, sizes):
    """The block size with which these sequences take the fewest bytes."""

    def cost(size):
        blocks = sum(-(-length // size) for length in lengths)
        return blocks * (size * token_bytes + per_block)

    return min(sorted(sizes), key=cost)


# %% check-2
import cudatut as ct

sizes = (256, 1, 2, 4, 8, 16, 32, 64, 128)
rng = ct.rng(0)
lengths = rng.integers(1, 2000, 500)
# Keys and values of SmolLM2 have 23,040 bytes per token; and 16, as a test.
asked = [(23040, 0), (23040, 100), (23040, 200_000), (16, 4), (16, 100_000)]
found = [best(lengths, *costs, sizes) for costs in asked]
ct.check(np.array(found), [1, 4, 128, 32, 256], name="best size")
ct.check(np.array([best([64], 1, 0, (64, 32))]), [32], name="best size, a tie")
