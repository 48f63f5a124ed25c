"""Attention of a step of decoding, by decode.cu: one query per sequence, over
keys and values in blocks or side by side.

    need = decode.sizes(len(lengths), heads, kv_heads, head_dim, longest)
    partials = ct.empty(need.partials, "float32")
    tickets = ct.to_device(np.zeros(need.tickets, "uint32"))  # stays 0
    decode.paged(q, keys, values, tables, lengths, block_size, out, lse,
                 partials, tickets, longest)

All arrays are on the GPU, those of bf16 as uint16, of FP8 as uint8. Nothing is
allocated, and what is launched depends on shapes, `longest`, `split` and
`window` alone: a CUDA graph may hold it.
"""

import functools
import math
from typing import Any, NamedTuple

import cudatut as ct
from cudatut.gpu.operands import Operand, Operands

from cudatut.book.llm.kernels.rows import (
    BLOCKS,
    NULL,
    Cache,
    begin_at,
    cache_of,
    grid,
    queries_of,
    workspace,
)

SOURCE = "llm/kernels/attention/decode.cu"
HEAD_DIMS = 64, 80, 96, 112, 128, 256
HEADS = 8  # query heads of a block
WARPS, TILE = 4, 16
# Keys of a part, for all batches alike: a sequence's results then do not depend
# on the others. Short enough for one sequence to keep many SMs busy.
SPLIT = 512
SHORTEST = 256  # parts that `choose` takes
MARGIN = 4096  # keys: how far a warp counts beyond the last one, and more


class Sizes(NamedTuple):
    """Elements of the workspace: partials, float32; tickets, uint32, zeros at
    first and after each launch."""

    partials: int
    tickets: int


# --8<-- [start:parts]
def parts(longest: int, split: int = SPLIT, window: int = 0) -> int:
    """Parts of `split` keys that a sequence of at most `longest` keys has, or
    the last `window` of them.
    """
    most = ct.cdiv(longest, split)
    # A window that begins in the middle of a part reaches into one more.
    return max(1, min(most, (window - 2) // split + 2 if window else most))


def fast_split(sequences: int, blocks: int, longest: int, sms: int) -> int:
    """Keys of a part with which this batch is fast; its results then depend on
    it. blocks: kv_heads, times groups of 8 query heads that share one.

    Long parts begin and end less often; but there should be some for each SM.
    """
    split = 4096
    while split > 128 and sequences * blocks * (longest / split) < 8 * sms:
        split //= 2
    return split


# --8<-- [end:parts]


def sizes(
    sequences: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    longest: int,
    split: int = SPLIT,
    window: int = 0,
) -> Sizes:
    """Of the workspace of a launch with these sizes, or smaller ones."""
    rows = sequences * heads * parts(longest, split, window)
    blocks = kv_heads * ct.cdiv(heads // kv_heads, HEADS)
    return Sizes(rows * (head_dim + 2), sequences * blocks)


def shared_bytes(
    head_dim: int, stages: int, element: int = 2, warps: int = WARPS
) -> int:
    """Shared memory of a block: keys and values of each stage of each warp, in
    rows padded to an odd number of 16 bytes. element: bytes of one.
    """
    row = ((head_dim * element // 16 + 1) | 1) * 16
    return warps * stages * 2 * TILE * row


def stages_for(
    head_dim: int,
    per_block: int,
    per_sm: int,
    element: int = 2,
    warps: int = WARPS,
) -> int:
    """Tiles of a warp that are on their way or in use. Up to 4, as long as two
    blocks have room on an SM; of large heads as many as one block can have.

    Raises ValueError where not even two have room.
    """
    for stages, room in (
        (4, per_sm // 2 - 2048), (3, per_sm // 2 - 2048), (3, per_block - 1024),
        (2, per_block - 1024),
    ):  # fmt: skip
        need = shared_bytes(head_dim, stages, element, warps)
        if need <= min(room, per_block - 1024):
            return stages
    raise ValueError(
        f"heads of {head_dim} need {need + 1024} bytes of shared memory per block; this GPU has {per_block}"
    )


# --8<-- [start:choose]
def choose(sequences: int, longest: int, head_dim: int) -> tuple[int, int]:
    """Warps of a block, and keys of a part, with which so many sequences were
    fast: 8 warps where blocks are few, if shared memory has room, and short
    parts too, unless all keys are one part. Where blocks are many, long parts:
    each begins and ends once. Results depend on both.
    """
    if sequences > 64:
        return WARPS, 2 * SPLIT
    need = shared_bytes(head_dim, 2, warps=2 * WARPS)
    room = need <= ct.device().shared_per_block_optin - 1024
    short = sequences <= 16 and longest > SPLIT
    return 2 * WARPS if room else WARPS, SHORTEST if short else SPLIT


# --8<-- [end:choose]


@functools.cache
def instance(
    head_dim: int,
    paged: bool,
    cache: tuple[str, ...] = (),
    warps: int = WARPS,
) -> tuple[ct.Kernel, int]:
    """The kernel and its dynamic shared memory, on this GPU. cache: as
    `rows.Cache.arguments`.
    """
    gpu, element = ct.device(), 1 if cache else 2
    stages = stages_for(
        head_dim, gpu.shared_per_block_optin, gpu.shared_per_sm, element, warps
    )
    arguments = head_dim, warps, stages, str(paged).lower(), *cache
    kernel = ct.Kernel(SOURCE, f"decode<{','.join(map(str, arguments))}>")
    return kernel, shared_bytes(head_dim, stages, element, warps)


def paged(
    q: Any,
    keys: Any,
    values: Any,
    tables: Any,
    lengths: Any,
    block_size: int,
    out: Any,
    lse: Any,
    partials: Any,
    tickets: Any,
    longest: int,
    split: int = SPLIT,
    window: int = 0,
    scale: float | None = None,
    softcap: float = 0.0,
    stream: Any = None,
    scales: Any = None,
    warps: int = WARPS,
) -> None:
    """out[i, h] = softmax(scale * q[i, h] K^T) V over the keys of sequence i.

    q: bf16, [s, heads, head_dim], or [s, width], whose rows begin with that, as
    those of a fused projection do; rows may lie apart, evenly, by an even
    number of elements. All else is contiguous. keys, values: bf16, [slots, kv_heads,
    head_dim]. tables: int32, [s, width]; lengths: int32, [s]; as in
    `batch.Batch`. out: bf16, [s, heads, head_dim]. lse: float32, [s, heads]:
    the natural logarithm of the sum of exponentials.

    partials, tickets: as `sizes` says; launches that may overlap need their
    own. longest: at least the largest of `lengths`; a longer sequence gets NaN.
    split: keys of a part. warps: of a block, 4, 8 or 16; more end sooner where
    blocks are few. The bits depend on both. window: attend to the last `window`
    keys only; 0: to all. scale: by default 1 / sqrt(head_dim). softcap: scores
    s become softcap * tanh(s / softcap); 0: they stay.

    keys and values may also be FP8, uint8. scales: float32, [2, kv_heads], what
    keys and what values of each KV head are multiplied by then.

    Up to 65535 sequences, parts and `split` alike. Raises TypeError, ValueError.
    """
    take = ct.operands("decode.paged")
    cache = cache_of(take, keys, values, scales, 3)
    to = take.write("out", out, "uint16", (None, None, None))
    shape = to.shape[0], None
    of_tables = take.read("tables", tables, "int32", shape)
    if block_size < 1:
        raise ValueError(f"decode.paged: {block_size=}: 1 at least")
    _launch(
        take, of_tables, q, cache, block_size, lengths, to, lse, partials,
        tickets, longest, split, window, scale, softcap, stream, warps,
    )  # fmt: skip


def contiguous(
    q: Any,
    keys: Any,
    values: Any,
    lengths: Any,
    out: Any,
    lse: Any,
    partials: Any,
    tickets: Any,
    longest: int,
    split: int = SPLIT,
    window: int = 0,
    scale: float | None = None,
    softcap: float = 0.0,
    stream: Any = None,
    scales: Any = None,
    warps: int = WARPS,
) -> None:
    """As `paged`, without tables: keys, values are [s, capacity, kv_heads,
    head_dim], and key j of sequence i is keys[i, j].
    """
    take = ct.operands("decode.contiguous")
    cache = cache_of(take, keys, values, scales, 4)
    sequences, capacity, *_ = cache.keys.shape
    shape = sequences, None, None
    to = take.write("out", out, "uint16", shape)
    if longest > capacity:
        raise ValueError(
            f"decode.contiguous: {longest} keys do not fit in {capacity}"
        )
    _launch(
        take, None, q, cache, capacity, lengths, to, lse, partials, tickets,
        longest, split, window, scale, softcap, stream, warps,
    )  # fmt: skip


def _launch(
    take: Operands, tables: Operand | None, q: Any, cache: Cache,
    block_size: int, lengths: Any, out: Operand, lse: Any, partials: Any,
    tickets: Any, longest: int, split: int, window: int, scale: float | None,
    softcap: float, stream: Any, warps: int,
) -> None:  # fmt: skip
    sequences, heads, head_dim = out.shape
    *front, kv_heads, key_dim = cache.keys.shape
    if head_dim not in HEAD_DIMS or key_dim != head_dim:
        raise ValueError(
            f"{take.launcher}: queries of {head_dim} and keys of {key_dim}: both must be one of {HEAD_DIMS}"
        )
    if kv_heads < 1 or heads % kv_heads:
        raise ValueError(
            f"{take.launcher}: {heads} query heads cannot share keys of shape {list(cache.keys.shape)}"
        )
    # A slot is an int, and so is the key behind the last one.
    if math.prod(front) > BLOCKS or longest + split > BLOCKS - MARGIN:
        raise ValueError(
            f"{take.launcher}: {math.prod(front)} slots, {longest=}, {split=}: keys are counted in an int"
        )
    if split < 1 or longest < 0 or window < 0 or not softcap >= 0:
        raise ValueError(
            f"{take.launcher}: {split=}, {longest=}, {window=}, {softcap=}: at least 1, and 0"
        )
    if warps not in (4, 8, 16):
        raise ValueError(f"{take.launcher}: {warps} warps: 4, 8 or 16")
    of_q = queries_of(take, q, out.shape)
    of_lengths = take.read("lengths", lengths, "int32", (sequences,))
    of_lse = take.write("lse", lse, "float32", (sequences, heads))
    need = sizes(sequences, heads, kv_heads, head_dim, longest, split, window)
    sums = workspace(take, "partials", partials, "float32", need.partials)
    arrived = workspace(take, "tickets", tickets, "uint32", need.tickets)
    begin_at(take, 16, cache.keys, cache.values, out, sums)
    begin_at(take, 4, of_q)
    group = heads // kv_heads
    octets = kv_heads * ct.cdiv(group, HEADS)
    most = parts(longest, split, window)
    blocks = grid(take, octets, most, sequences)
    if not sequences or not heads:
        return
    in_blocks = tables is not None
    where = (tables.address, tables.width) if in_blocks else (NULL, 0)
    kernel, shared = instance(head_dim, in_blocks, cache.arguments, warps)
    kernel(
        of_q.address, of_q.stride, cache.keys.address, cache.values.address,
        *where, block_size, of_lengths.address, kv_heads, group, split, window,
        1 / math.sqrt(head_dim) if scale is None else scale, softcap,
        out.address, of_lse.address, sums.address, arrived.address,
        cache.scales, grid=blocks, block=32 * warps, shared=shared,
        stream=stream,
    )  # fmt: skip
