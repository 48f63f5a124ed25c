"""The library `transformers` with our weights in bf16: greedy, one prompt after
the other, or with its own continuous batching.

    model = llama(torch, checkpoint)
    tokens, seconds = generate(torch, model, prompt, 48)
    seconds = together(model, requests)
"""

import contextlib
import io
import os
from collections.abc import Iterator
from time import perf_counter
from typing import Any

from cudatut.book.llm.model.checkpoint import Checkpoint
from cudatut.book.llm.engine.request import Request

OURS = {
    "attention_norm": "input_layernorm",
    "q": "self_attn.q_proj",
    "k": "self_attn.k_proj",
    "v": "self_attn.v_proj",
    "o": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "gate": "mlp.gate_proj",
    "up": "mlp.up_proj",
    "down": "mlp.down_proj",
}
LIMIT_S = 60  # for all requests together


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """No progress bars and warnings, and nothing from the network."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    with contextlib.redirect_stderr(io.StringIO()):
        import transformers

        transformers.logging.set_verbosity_error()
        yield


def theirs(name: str) -> str:
    """Their name of one of our tensors."""
    whole = {"embedding": "model.embed_tokens", "head": "lm_head"}
    layer, dot, part = name.rpartition(".")
    if dot:
        return f"model.{layer}.{OURS[part]}.weight"
    return f"{whole.get(name, f'model.{name}')}.weight"


def halves(weight: Any, head_dim: int) -> Any:
    """Rows of W_q or W_k in their order: RoPE turns element i of a head with
    element i + head_dim / 2, where ours turns neighbors.
    """
    pairs = weight.reshape(-1, head_dim // 2, 2, weight.shape[1])
    return pairs.swapaxes(1, 2).reshape(weight.shape)


def llama(torch: Any, checkpoint: Checkpoint) -> Any:
    """LlamaForCausalLM on the GPU. Needs transformers 5."""
    with quiet():
        from transformers import AutoModelForCausalLM, LlamaConfig

        c = checkpoint.config
        config = LlamaConfig(
            vocab_size=c.vocab,
            hidden_size=c.dim,
            intermediate_size=c.ffn,
            num_hidden_layers=c.layers,
            num_attention_heads=c.heads,
            num_key_value_heads=c.kv_heads,
            head_dim=c.head_dim,
            max_position_embeddings=c.context,
            rms_norm_eps=c.rms_eps,
            tie_word_embeddings=c.tied,
            rope_parameters={
                "rope_type": "default",
                "rope_theta": c.rope_theta,
            },
            bos_token_id=None,
            eos_token_id=None,
            pad_token_id=0,
        )
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
        given = model.state_dict()
        with torch.no_grad():
            for name, array in checkpoint.arrays().items():
                if name == "head" and c.tied:
                    continue
                if name.rpartition(".")[2] in ("q", "k"):
                    array = halves(array, c.head_dim)
                given[theirs(name)].copy_(torch.tensor(array))
        return model.to("cuda").eval()


def generate(
    torch: Any, model: Any, prompt: list[int], count: int
) -> tuple[list[int], float]:
    """`count` tokens, and the seconds without those of the first."""
    ids = torch.tensor([prompt], device="cuda")

    def run(n: int) -> tuple[list[int], float]:
        torch.cuda.synchronize()
        begin = perf_counter()
        found = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=n,
            do_sample=False,
            pad_token_id=0,
        )
        torch.cuda.synchronize()
        return found[0, len(prompt) :].tolist(), perf_counter() - begin

    with quiet():
        run(2)
        _, first = run(1)
        tokens, seconds = run(count)
    return tokens, seconds - first


def together(model: Any, requests: list[Request]) -> float:
    """Seconds until all requests have their tokens, by continuous batching.
    Raises RuntimeError if one of them fails, or after a minute.
    """
    with quiet():
        from transformers import ContinuousBatchingConfig, GenerationConfig

        manager = model.continuous_batching_context_manager(
            generation_config=GenerationConfig(
                do_sample=False, eos_token_id=-1, pad_token_id=0
            ),
            continuous_batching_config=ContinuousBatchingConfig(
                max_memory_percent=0.5
            ),
            timeout=10,
        )
        with manager as running:
            begin = perf_counter()
            for one in requests:
                running.add_request(one.prompt, max_new_tokens=one.max_tokens)
            left = len(requests)
            while left:
                found = running.get_result(timeout=1)
                took = perf_counter() - begin
                if found is not None and found.error is not None:
                    raise RuntimeError(found.error)
                if found is not None and found.is_finished():
                    left -= 1
                elif not running.is_running() or took > LIMIT_S:
                    raise RuntimeError(f"{left} requests have not ended")
            return took
