"""From logits to tokens on the GPU, by the kernel of sampling.cu: what
`sampler.sample` defines, for many rows at once, each with parameters of its own.

The random words are the same bit for bit. What may differ from the reference
are last bits of logarithms and exponentials: two scores (logit over temperature
+ Gumbel noise) that differ by less than about 1e-6 of their size may change
places, and top-p may keep a token more or less where a sum of probabilities is
within 5e-7 of p. The same arguments always give the same tokens, whatever else
is in the batch.
"""

import functools
import math
from typing import Any

import cudatut as ct

SOURCE = "llm/sampling.cu"
BINS, CAPACITY = 2048, 8192  # as in sampling.cu
SHARED = 8 * BINS + 8 * CAPACITY  # bytes of a block
MOST_TOKENS = (1 << 24) - 1  # sums of exponentials, 2^40 each, fit in 64 bits


@functools.cache
def instance(threads: int, vector: int) -> ct.Kernel:
    return ct.Kernel(SOURCE, f"sample<{threads},{vector}>")


def blocks_of_row(rows: int, vocab: int, sms: int) -> int:
    """Blocks that share a row: more than one where rows are few. The result is
    the same.
    """
    return max(1, min(2 * sms // max(1, rows), ct.cdiv(vocab, 4096)))


def sample(
    logits: Any,
    temperature: Any,
    top_k: Any,
    top_p: Any,
    seed: Any,
    request: Any,
    position: Any,
    tokens: Any,
    best: Any,
    tickets: Any,
    vocab: int | None = None,
    parts: int | None = None,
    stream: Any = None,
) -> None:
    """tokens[i] = the token drawn from logits[i, :vocab].

    logits: float32, [m, columns], of which `vocab` count; by default all.
    temperature, top_p: float32; top_k, request, position: int32; seed: uint64;
    all [m], as in `batch.Draws`. tokens: int32, [m].

    best: uint64, tickets: uint32, at least [m], zeros before the first launch
    and after each; launches that may overlap need their own. parts: blocks of a
    row, by default `blocks_of_row`.

    Nothing is allocated, and the parameters stay on the GPU: a CUDA graph may
    hold it. Rows with top_k or top_p take longer: three times as many passes
    over the row, by one block.

    Raises ValueError for shapes that do not fit, TypeError for elements of
    another type.
    """
    if len(logits.shape) != 2:
        raise ValueError(f"logits of shape {logits.shape}: [m, columns]")
    rows, columns = logits.shape
    vocab = columns if vocab is None else vocab
    if not 1 <= vocab <= min(columns, MOST_TOKENS):
        raise ValueError(
            f"a vocabulary of {vocab} in rows of {columns}: 1 to {min(columns, MOST_TOKENS)}"
        )
    each = temperature, top_k, top_p, seed, request, position, tokens
    if any(tuple(array.shape) != (rows,) for array in each):
        raise ValueError(
            f"parameters and tokens of shapes {[array.shape for array in each]}: each must be [{rows}]"
        )
    if min(math.prod(best.shape), math.prod(tickets.shape)) < rows:
        raise ValueError(f"best and tickets need {rows} elements each")
    if rows == 0:
        return
    sms = ct.device().sm_count
    parts = parts or blocks_of_row(rows, vocab, sms)
    start = logits.__cuda_array_interface__["data"][0] or 0
    vector = 4 if columns % 4 == 0 and start % 16 == 0 else 1
    # Of many rows, two smaller blocks per SM: one computes while the other
    # waits.
    threads = 1024 if rows * parts <= 2 * sms else 512
    instance(threads, vector)(
        logits, columns, vocab, temperature, top_k, top_p, seed, request,
        position, tokens, parts, best, tickets,
        grid=rows * parts, block=threads, shared=SHARED, stream=stream,
    )  # fmt: skip
