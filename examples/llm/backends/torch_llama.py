"""The same Llama in PyTorch: a reference on the GPU in fp32, and in bf16 the
rival whose cache has a fixed size, so that a step can be a CUDA graph.

    torch = pytorch()                       # None under a tool
    model = TorchLlama(torch, checkpoint, torch.float32, sequences=8, length=512)
    logits = model.forward(tokens, positions)       # [8, n] twice: [8, n, vocab]
"""

from typing import Any

import numpy as np

import cudatut as ct
from cudatut.book.llm.model.checkpoint import Checkpoint


def pytorch() -> Any:
    """PyTorch with a GPU; None under a sanitizer or profiler, which would watch
    all of its kernels. Raises ct.ToolMissing.
    """
    if ct.tool.running():
        return None
    ct.activate()  # PyTorch then uses the same context
    try:
        import torch

        torch.zeros(1, device="cuda").sum().item()
    except Exception as error:
        raise ct.ToolMissing(f"PyTorch cannot run here ({error})") from error
    return torch


# --8<-- [start:model]
class TorchLlama:
    """A Llama with a cache of `length` tokens for each of `sequences`."""

    def __init__(
        self,
        torch: Any,
        checkpoint: Checkpoint,
        dtype: Any,
        sequences: int,
        length: int,
        device: str = "cuda",
    ):
        self.torch, self.config, self.dtype = torch, checkpoint.config, dtype
        c, self.device = self.config, device
        self.w = {
            name: torch.tensor(array, device=device).to(dtype)
            for name, array in checkpoint.arrays().items()
        }
        shape = c.layers, sequences, length, c.kv_heads, c.head_dim
        self.keys = torch.zeros(shape, dtype=dtype, device=device)
        self.values = torch.zeros(shape, dtype=dtype, device=device)
        pairs = np.arange(0, c.head_dim, 2) / c.head_dim
        angles = np.outer(np.arange(length), c.rope_theta**-pairs)
        self.cos, self.sin = (
            torch.tensor(f(angles), dtype=torch.float32, device=device)
            for f in (np.cos, np.sin)
        )
        self.rows = torch.arange(sequences, device=device)[:, None]
        self.slots = torch.arange(length, device=device)

    def forward(self, tokens: Any, positions: Any) -> Any:
        """Logits in fp32, [sequences, n, vocab], of tokens and positions,
        [sequences, n]: each sees the slots up to its own position.
        """
        return self.head(self.layers(tokens, positions))

    def layers(self, tokens: Any, positions: Any) -> Any:
        """What stands before the last norm: [sequences, n, dim]."""
        c, w = self.config, self.w
        attend = self.torch.nn.functional.scaled_dot_product_attention
        silu = self.torch.nn.functional.silu
        turns = self.cos[positions][:, :, None], self.sin[positions][:, :, None]
        seen = (self.slots <= positions[..., None])[:, None]
        x = w["embedding"][tokens]
        for i in range(c.layers):
            name = f"layers.{i}."
            h = self.norm(x, w[name + "attention_norm"])
            q, k, v = (
                (h @ w[name + which].T).unflatten(-1, (-1, c.head_dim))
                for which in "qkv"
            )
            q, k = self.rotate(q, *turns), self.rotate(k, *turns)
            self.keys[i][self.rows, positions] = k
            self.values[i][self.rows, positions] = v
            out = attend(
                q.transpose(1, 2),
                self.keys[i].transpose(1, 2),
                self.values[i].transpose(1, 2),
                attn_mask=seen,
                enable_gqa=True,
            )
            x = x + out.transpose(1, 2).flatten(2) @ w[name + "o"].T
            h = self.norm(x, w[name + "ffn_norm"])
            gate, up = h @ w[name + "gate"].T, h @ w[name + "up"].T
            x = x + (silu(gate) * up) @ w[name + "down"].T
        return x

    def head(self, x: Any) -> Any:
        """Logits in fp32."""
        return (self.norm(x, self.w["norm"]) @ self.w["head"].T).float()

    def norm(self, x: Any, weight: Any) -> Any:
        """RMSNorm, computed in fp32."""
        norm = self.torch.nn.functional.rms_norm
        found = norm(
            x.float(), weight.shape, weight.float(), self.config.rms_eps
        )
        return found.to(self.dtype)

    def rotate(self, x: Any, cos: Any, sin: Any) -> Any:
        """RoPE of adjacent pairs, computed in fp32."""
        even, odd = x[..., 0::2].float(), x[..., 1::2].float()
        both = even * cos - odd * sin, even * sin + odd * cos
        return self.torch.stack(both, -1).flatten(-2).to(self.dtype)


# --8<-- [end:model]


# --8<-- [start:steps]
class Steps:
    """Greedy decoding, a token of every sequence in each step; graph: recorded
    once and then started together.
    """

    def __init__(self, model: TorchLlama, graph: bool):
        torch, n = model.torch, len(model.rows)
        self.model, self.torch, self.graph = model, torch, None
        self.tokens = torch.zeros((n, 1), dtype=torch.long, device="cuda")
        self.positions = torch.zeros_like(self.tokens)
        if graph:
            # Three steps first, on a stream of their own, as PyTorch wants it.
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(3):
                    self._step()
            torch.cuda.current_stream().wait_stream(side)
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self._step()

    def _step(self) -> None:
        logits = self.model.forward(self.tokens, self.positions)
        self.tokens.copy_(logits.argmax(-1))
        self.positions.add_(1)

    def run(self, prompts: list[list[int]], steps: int) -> tuple[Any, float]:
        """Compute the prompts, then so many tokens of each; the tokens,
        [sequences, steps], and the seconds without the prompts.
        """
        from time import perf_counter

        torch, longest = self.torch, max(map(len, prompts))
        padded = np.zeros((len(prompts), longest), "int64")
        for row, prompt in zip(padded, prompts):
            row[: len(prompt)] = prompt
        ends = torch.tensor([len(p) - 1 for p in prompts], device="cuda")
        tokens = torch.tensor(padded, device="cuda")
        positions = torch.arange(longest, device="cuda").expand(tokens.shape)
        # Behind a prompt's end are zeros: their slots are written again before
        # anybody reads them.
        x = self.model.layers(tokens, positions)
        logits = self.model.head(x[self.model.rows[:, 0], ends][:, None])
        self.tokens.copy_(logits.argmax(-1))
        self.positions.copy_(ends[:, None] + 1)
        found = [self.tokens.clone()]
        torch.cuda.synchronize()
        begin = perf_counter()
        for _ in range(steps - 1):
            if self.graph:
                self.graph.replay()
            else:
                self._step()
            found.append(self.tokens.clone())
        torch.cuda.synchronize()
        return torch.cat(found, 1), perf_counter() - begin


# --8<-- [end:steps]
