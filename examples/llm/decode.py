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
from rows import address, cache_of

SOURCE = "llm/decode.cu"
HEAD_DIMS = 64, 80, 96, 112, 128, 256
HEADS = 8  # query heads of a block
WARPS, TILE = 4, 16
# Keys of a part, for all batches alike: a sequence's results then do not depend
# on the others. Short enough for one sequence to keep many SMs busy.
SPLIT = 512
SHORTEST = 256  # parts that `choose` takes


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
    those of a fused projection do. keys, values: bf16, [slots, kv_heads,
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

    Raises ValueError for shapes and numbers that do not fit, TypeError for
    elements of another type.
    """
    if len(keys.shape) != 3 or len(tables.shape) != 2:
        raise ValueError(
            f"keys of shape {keys.shape} and tables of {tables.shape}: they must be [slots, kv_heads, head_dim] and [s, width]"
        )
    if tables.shape[0] != out.shape[0] or block_size < 1:
        raise ValueError(
            f"tables of {tables.shape[0]} sequences and blocks of {block_size} tokens do not fit {out.shape[0]} sequences"
        )
    _launch(
        True, q, keys, values, tables, tables.shape[1], block_size, lengths, out,
        lse, partials, tickets, longest, split, window, scale, softcap, stream,
        scales, warps,
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
    if len(keys.shape) != 4 or keys.shape[0] != out.shape[0]:
        raise ValueError(
            f"keys of shape {keys.shape} must be [{out.shape[0]}, capacity, kv_heads, head_dim]"
        )
    if longest > keys.shape[1]:
        raise ValueError(f"{longest} keys do not fit in {keys.shape[1]}")
    _launch(
        False, q, keys, values, lengths, 0, keys.shape[1], lengths, out, lse,
        partials, tickets, longest, split, window, scale, softcap, stream,
        scales, warps,
    )  # fmt: skip


def _launch(
    is_paged, q, keys, values, tables, table_width, block_size, lengths, out,
    lse, partials, tickets, longest, split, window, scale, softcap, stream, scales,
    warps,
) -> None:  # fmt: skip
    if len(out.shape) != 3:
        raise ValueError(f"out of shape {out.shape}: [s, heads, head_dim]")
    sequences, heads, head_dim = out.shape
    *front, kv_heads, key_dim = keys.shape
    if head_dim not in HEAD_DIMS or key_dim != head_dim:
        raise ValueError(
            f"queries of {head_dim} and keys of {key_dim}: both must be one of {HEAD_DIMS}"
        )
    if kv_heads < 1 or heads % kv_heads or values.shape != keys.shape:
        raise ValueError(
            f"{heads} query heads cannot share keys of shape {keys.shape} and values of {values.shape}"
        )
    q_stride = math.prod(q.shape[1:])
    if q.shape[0] != sequences or q_stride < heads * head_dim or q_stride % 2:
        raise ValueError(
            f"q of shape {q.shape}: {sequences} rows that begin with {heads} x {head_dim}, an even number of elements each"
        )
    if lengths.shape != (sequences,) or lse.shape != (sequences, heads):
        raise ValueError(
            f"lengths of shape {lengths.shape} and lse of {lse.shape}: [{sequences}] and [{sequences}, {heads}]"
        )
    if math.prod(front) >= 1 << 31:
        raise ValueError(f"{math.prod(front)} slots: below 2^31")
    if address(q) % 4 or any(
        address(a) % 16 for a in (keys, values, partials, out)
    ):
        raise ValueError(
            "keys, values, partials and out must begin at multiples of 16 bytes, q of 4"
        )
    if split < 1 or longest < 0 or window < 0 or softcap < 0:
        raise ValueError(
            f"{split=}, {longest=}, {window=}, {softcap=}: at least 1, and 0"
        )
    if warps not in (4, 8, 16):
        raise ValueError(f"{warps} warps: 4, 8 or 16")
    need = sizes(sequences, heads, kv_heads, head_dim, longest, split, window)
    if (
        math.prod(partials.shape) < need.partials
        or math.prod(tickets.shape) < need.tickets
    ):
        raise ValueError(
            f"the workspace is too small: {need.partials} words of partials and {need.tickets} tickets"
        )
    if sequences == 0:
        return
    group = heads // kv_heads
    cache = cache_of(keys, scales)
    kernel, shared = instance(head_dim, is_paged, cache.arguments, warps)
    kernel(
        q, q_stride, keys, values, tables, table_width, block_size, lengths,
        kv_heads, group, split, window,
        1 / math.sqrt(head_dim) if scale is None else scale, softcap, out, lse,
        partials, tickets, cache.scales,
        grid=(kv_heads * ct.cdiv(group, HEADS), parts(longest, split, window), sequences),
        block=32 * warps, shared=shared, stream=stream,
    )  # fmt: skip
