"""Write a Llama as a GGUF file in Q8_0: how the book's own small model is made,
and models of random numbers for tests.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from cudatut.book.llm.model.checkpoint import Config, gguf_name

# <unk> would stand for a character that is not in the vocabulary; <s> begins a
# poem and </s> ends it.
SPECIAL = ("<unk>", "<s>", "</s>")
CONTROL, NORMAL = 3, 1  # types of tokens in a GGUF


def save(
    path: str | os.PathLike,
    config: Config,
    weights: dict[str, np.ndarray],
    characters: Sequence[str],
    name: str = "tiny",
    license: str = "",
) -> None:
    """Write a model whose tokens are SPECIAL and then these characters.

    weights: float32 in the shapes of `Config.shapes`; matrices are rounded to
    Q8_0: 8 bits a weight, and a scale of 16 bits for each 32 of a row. Q and K
    must already be made for adjacent pairs. Raises ValueError for wrong shapes,
    or for rows that are not whole blocks of 32.
    """
    import gguf

    shapes = config.shapes()
    found = {name: array.shape for name, array in weights.items()}
    if found != shapes:
        wrong = sorted(dict(found.items() ^ shapes.items()))
        raise ValueError(f"missing, unknown or misshapen: {wrong}")
    if (vocab := len(SPECIAL) + len(characters)) != config.vocab:
        raise ValueError(f"{vocab} tokens; the config says {config.vocab}")
    odd = [n for n, s in shapes.items() if len(s) == 2 and s[1] % 32]
    if odd:
        raise ValueError(f"rows of {', '.join(odd)} are not multiples of 32")
    path = Path(path)
    part = path.with_name(f"{path.name}.{os.getpid()}")
    writer = gguf.GGUFWriter(part, "llama")
    writer.add_name(name)
    if license:
        writer.add_license(license)
    writer.add_block_count(config.layers)
    writer.add_context_length(config.context)
    writer.add_embedding_length(config.dim)
    writer.add_feed_forward_length(config.ffn)
    writer.add_head_count(config.heads)
    writer.add_head_count_kv(config.kv_heads)
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_rope_freq_base(config.rope_theta)
    writer.add_layer_norm_rms_eps(config.rms_eps)
    writer.add_tokenizer_model("characters")
    writer.add_token_list([*SPECIAL, *characters])
    types = [CONTROL] * len(SPECIAL) + [NORMAL] * len(characters)
    writer.add_token_types(types)
    writer.add_unk_token_id(SPECIAL.index("<unk>"))
    writer.add_bos_token_id(SPECIAL.index("<s>"))
    writer.add_eos_token_id(SPECIAL.index("</s>"))
    q8 = gguf.GGMLQuantizationType.Q8_0
    for name, array in weights.items():
        array = np.ascontiguousarray(array, "float32")
        if array.ndim == 1:
            writer.add_tensor(gguf_name(name), array)
        else:
            blocks = gguf.quants.quantize(array, q8)
            writer.add_tensor(gguf_name(name), blocks, raw_dtype=q8)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    os.replace(part, path)


def random_weights(config: Config, seed: int = 0) -> dict[str, np.ndarray]:
    """Random numbers in the shapes of a model, of such sizes that its logits
    differ by a few units.
    """
    rng = np.random.default_rng(seed)
    weights = {}
    for name, shape in config.shapes().items():
        if len(shape) == 1:
            array = 1 + 0.1 * rng.standard_normal(shape)
        elif name in ("embedding", "head"):
            array = rng.standard_normal(shape) * 2 / np.sqrt(config.dim)
        else:
            array = rng.standard_normal(shape) / np.sqrt(shape[1])
        weights[name] = array.astype("float32")
    return weights
