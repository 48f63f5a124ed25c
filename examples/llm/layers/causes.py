# ---
# jupyter:
#   cudatut:
#     title: {en: "RMSNorm, LayerNorm, RoPE, SwiGLU: what PyTorch's SwiGLU and our RoPE wait for", zh: "RMSNorm、LayerNorm、RoPE 与 SwiGLU：PyTorch 的 SwiGLU 与我们的 RoPE 慢在哪里"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 180
#     sizes:
#       FFN: [[8192, 11008], [8, 1024]]
#       LONG: [16384, 33]
# ---

# %% [markdown]
# PyTorch's SwiGLU gets both factors as the two halves of each row, so its
# arrays have gaps. Do the gaps cost the time? The same numbers in two arrays of
# their own tell.

# %% setup
import numpy as np

import cudatut as ct
from cudatut.book.llm.kernels.activation import swiglu
from cudatut.book.llm.kernels.rope import rope_and_store, rope_table
from cudatut.book.llm.layers.arrays import ROUNDED, copy_of, random
from cudatut.book.numbers.bf16 import to_float
from cudatut.book.rivals.torch_rival import rival

# %% predict
FFN = 8192, 11008
# silu reads the gate and writes; the product reads two and writes: ten bytes
# for each result, and the fused kernel moves six. Without gaps both operations
# should copy at full speed.
ct.facts(
    "predicted: time beside the fused kernel, by the bytes",
    {"PyTorch, two arrays": (10 / 6, "×"), "PyTorch, compiled": (6 / 6, "×")},
)


# %% ways
def in_halves(torch, gate_up):
    gate, up = gate_up[:, : FFN[1]], gate_up[:, FFN[1] :]
    return lambda: torch.nn.functional.silu(gate) * up


def in_two_arrays(torch, gate_up):
    gate, up = (half.contiguous() for half in gate_up.chunk(2, dim=1))
    return lambda: torch.nn.functional.silu(gate) * up


def compiled(torch, gate_up):
    """The same by torch.compile, which fuses both operations."""
    import torch._inductor.config as how

    how.compile_threads = 1  # in this process

    @torch.compile
    def call(x):
        return torch.nn.functional.silu(x[:, : FFN[1]]) * x[:, FFN[1] :]

    return lambda: call(gate_up)


def at_hand(way, array):
    """The contestant, or None with a note where this machine cannot compile."""
    try:
        return rival(way, array)
    except ct.ToolMissing as error:
        print(f"torch.compile: {error}")
        return None


gate_up = random((FFN[0], 2 * FFN[1]), 15)
act = ct.empty(FFN, "uint16")
swiglu(gate_up, act)
RIVALS = {
    "PyTorch, halves of rows": rival(in_halves, gate_up),
    "PyTorch, two arrays": rival(in_two_arrays, gate_up),
    "PyTorch, compiled": at_hand(compiled, gate_up),
}

# %% check
# A row of each way beside float64: two roundings to bf16 at most.
gate, up = np.split(to_float(gate_up.get()[0]).astype("float64"), 2)
want = gate / (1 + np.exp(-gate)) * up
ct.check(to_float(act.get()[0]), want, name="swiglu", rtol=ROUNDED, atol=1e-6)
for name, run in RIVALS.items():
    if run:
        got = run()[0].float().cpu().numpy()
        ct.check(got, want, name=name, rtol=2 * ROUNDED, atol=1e-6)

# %% swiglu
times = ct.bench(
    {
        "copy": copy_of(6 * act.size),
        "swiglu": lambda: swiglu(gate_up, act),
        **RIVALS,
    },
    bytes=6 * act.size,
    name="SwiGLU, {} x {}".format(*FFN),
)

# %% kernels
# PyTorch names the kernels that move several elements at once 'vectorized'.
seen = {}
for row in times.rows if not ct.tool.running() else ():
    if row.name in RIVALS:
        names = row.kernels or []
        seen[row.name] = {
            "kernels": len(names),
            "of them vectorized": sum("vectorized" in name for name in names),
            "beside swiglu": row.median_us / times["swiglu"].median_us,
        }
if seen:
    ct.table("what PyTorch launches", seen, corner="way")

# %% [markdown]
# Our RoPE has a block for each token, and a thread has 16 bytes of it: it loads
# the token's position, then the angles. It is slower than a copy. Four changes,
# one at a time: blocks of fewer threads, two tokens for each thread, which asks
# for both before it waits, the same position for all tokens, and slots in the
# order of the tokens.

# %% two-tokens
SOURCE = """
#include "llm/kernels/rope.cu"

// rope_and_store for a cache in bf16 and neighboring pairs; a block has TOKENS
// tokens, a thread the same piece of each. All loads of a kind are asked for
// before the first is used. Block: a thread for each piece of a row.
template <int HEAD_DIM, int TOKENS>
__global__ void __launch_bounds__(1024)
    rope_tokens(const __nv_bfloat16* __restrict__ qkv, int width,
                __nv_bfloat16* __restrict__ q, __nv_bfloat16* __restrict__ keys,
                __nv_bfloat16* __restrict__ values,
                const int* __restrict__ positions,
                const int* __restrict__ slots,
                const float2* __restrict__ table, int heads, int kv_heads,
                int n) {
  const int head = threadIdx.x / (HEAD_DIM / PIECE);
  const int piece = threadIdx.x % (HEAD_DIM / PIECE);
  const int first_token = blockIdx.x * TOKENS;
  float a[TOKENS][4], b[TOKENS][4];
  int slot[TOKENS], position[TOKENS];
#pragma unroll
  for (int t = 0; t < TOKENS; ++t) {
    const int token = min(first_token + t, n - 1);
    slot[t] = slots[token], position[t] = positions[token];
    load_pairs<HEAD_DIM, false>(
        a[t], b[t], qkv + (size_t)token * width + head * HEAD_DIM, piece);
  }
  if (head < heads + kv_heads) {
#pragma unroll
    for (int t = 0; t < TOKENS; ++t)
      turn(a[t], b[t],
           table + (size_t)position[t] * (HEAD_DIM / 2) + piece * 4);
  }
#pragma unroll
  for (int t = 0; t < TOKENS; ++t) {
    const int token = first_token + t, kv = head - heads;
    if (token >= n) continue;
    __nv_bfloat16* to = q + ((size_t)token * heads + head) * HEAD_DIM;
    if (kv >= 0)
      to = (kv < kv_heads ? keys : values) +
           ((size_t)slot[t] * kv_heads + kv % kv_heads) * HEAD_DIM;
    store_pairs<HEAD_DIM, false>(a[t], b[t], to, piece);
  }
}
"""
LONG = 16384  # tokens
n, heads, kv_heads, d = LONG, 32, 8, 128
width = (heads + 2 * kv_heads) * d
threads = width // 8  # one for each piece of 16 bytes
qkv = random((n, width), 20)
q = ct.empty((n, heads * d), "uint16")
keys, values = (ct.empty((n, kv_heads, d), "uint16") for _ in range(2))
positions = (np.arange(n) % 8192).astype("int32")
slots = ct.rng(21).permutation(n).astype("int32")
at, to, in_order = map(ct.to_device, (positions, slots, np.sort(slots)))
same = ct.to_device(np.full(n, 77, "int32"))
table = ct.to_device(rope_table(8192, d, 1e5))
tokens_of = {
    1: ct.Kernel(SOURCE, "rope_tokens<128, 1>"),
    2: ct.Kernel(SOURCE, "rope_tokens<128, 2>"),
}
as_engine = ct.Kernel("llm/kernels/rope.cu", "rope_and_store<128, false>")


def by_tokens(count):
    return lambda: tokens_of[count](
        qkv, width, q, keys, values, at, to, table, heads, kv_heads, n,
        grid=ct.cdiv(n, count), block=threads,
    )  # fmt: skip


def with_threads(count):
    """The engine's kernel; a block of fewer threads walks over the row."""
    none = np.uint64(0)
    return lambda: as_engine(
        qkv, width, q, heads * d, keys, values, n, at, to, table, heads,
        kv_heads, none, grid=n, block=count,
    )  # fmt: skip


def by_engine(where=at, into=to):
    return lambda: rope_and_store(qkv, where, into, table, keys, values, q)


WAYS = {
    "as it is": by_engine(),
    "256 threads": with_threads(256),
    "a kernel for one token": by_tokens(1),
    "two tokens a thread": by_tokens(2),
    "one position for all": by_engine(where=same),
    "slots in order": by_engine(into=in_order),
}

# %% check-rope
# The same bits as the engine's launch, whose results another example checks.
# Where positions or slots differ, so does what is computed.
WAYS["as it is"]()
wanted = [array.get() for array in (q, keys, values)]
for name in ("256 threads", "a kernel for one token", "two tokens a thread"):
    for array in (q, keys, values):
        ct.poison(array)
    WAYS[name]()
    for array, want, label in zip(
        (q, keys, values), wanted, ("queries", "keys", "values")
    ):
        some = array.get()[::15], want[::15]  # odd and even tokens
        ct.check(*some, name=f"{name}: {label}", rtol=0, atol=0)
del wanted

# %% rope-predict
# Bytes of qkv that the blocks of an SM have asked for. A block waits for its
# position, then for its angles, so its bytes are under way for two latencies.
# By Little's law, so many are needed at the bandwidth.
LATENCY_US = 0.7
if not ct.tool.running():
    ours = as_engine.resources(threads).blocks_per_sm
    two = tokens_of[2].resources(threads).blocks_per_sm
    small = as_engine.resources(256).blocks_per_sm
    half = ct.limits.bandwidth() / 2  # GB/s, of which half is read
    need = half * 1e3 * 2 * LATENCY_US / ct.device().sm_count
    ct.facts(
        "bytes under way for an SM",
        {
            "needed, for two latencies": (need / 1e3, "KB"),
            "as it is": (ours * threads * 16 / 1e3, "KB"),
            "256 threads": (small * 256 * 16 / 1e3, "KB"),
            "two tokens a thread": (2 * two * threads * 16 / 1e3, "KB"),
        },
    )

# %% rope
nbytes = 2 * qkv.nbytes + min(n, 8192) * d * 4
ct.bench(
    {"copy": copy_of(nbytes), **WAYS},
    bytes=nbytes,
    name=f"RoPE and store, {n} tokens",
)
