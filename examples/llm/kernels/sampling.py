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
from typing import Any

import cudatut as ct

from cudatut.book.llm.kernels.rows import grid, workspace

SOURCE = "llm/kernels/sampling.cu"
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

    logits: float32, [m, columns], of which `vocab` count; by default all. Rows
    may be strided; four numbers are read at a time where rows begin at
    multiples of 16 bytes and the last four are columns, too.
    temperature, top_p: float32; top_k, request, position: int32; seed: uint64;
    all [m], as in `batch.Draws`. tokens: int32, [m].

    best: uint64, tickets: uint32, at least [m], zeros before the first launch
    and after each; launches that may overlap need their own. parts: blocks of a
    row, by default `blocks_of_row`.

    Nothing is allocated, and the parameters stay on the GPU: a CUDA graph may
    hold it. Rows with top_k or top_p take longer: three times as many passes
    over the row, by one block.

    Raises TypeError, ValueError.
    """
    take = ct.operands("sample")
    row = take.read("logits", logits, "float32", (None, None), rows=1)
    rows, columns = row.shape
    vocab = columns if vocab is None else vocab
    if not 1 <= vocab <= min(columns, MOST_TOKENS):
        raise ValueError(
            f"sample: a vocabulary of {vocab} in rows of {columns}: 1 to {min(columns, MOST_TOKENS)}"
        )
    each = [
        take.read(name, array, kind, (rows,)).address
        for name, array, kind in (
            ("temperature", temperature, "float32"), ("top_k", top_k, "int32"),
            ("top_p", top_p, "float32"), ("seed", seed, "uint64"),
            ("request", request, "int32"), ("position", position, "int32"),
        )
    ]  # fmt: skip
    to = take.write("tokens", tokens, "int32", (rows,))
    of_best = workspace(take, "best", best, "uint64", rows)
    of_tickets = workspace(take, "tickets", tickets, "uint32", rows)
    if parts is not None and parts < 1:
        raise ValueError(f"sample: {parts=}: 1 at least")
    if rows == 0:
        return
    sms = ct.device().sm_count
    parts = parts or blocks_of_row(rows, vocab, sms)
    blocks = grid(take, rows * parts)
    fours = row.aligned(16) and 4 * ct.cdiv(vocab, 4) <= columns
    # Of many rows, two smaller blocks per SM: one computes while the other
    # waits.
    threads = 1024 if rows * parts <= 2 * sms else 512
    instance(threads, 4 if fours else 1)(
        row.address, row.stride, vocab, *each, to.address, parts,
        of_best.address, of_tickets.address,
        grid=blocks, block=threads, shared=SHARED, stream=stream,
    )  # fmt: skip
