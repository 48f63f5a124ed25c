"""A language model from a GGUF file: its sizes, its tensors under our own
names, and where to get one.

    model = Checkpoint.open(fetch())     # fetch.py downloads SmolLM2 once
    model.config.layers                  # 30
    model.array("layers.0.q")            # float32, [576, 576]
    model.blocks("layers.0.q")           # the Q4_1 bytes, [576, 360]

A matrix is kept as [outputs, inputs], row-major: y = x @ W.T. In files made for
llama.cpp the rows of Q and K are permuted, so that RoPE rotates adjacent pairs
(x0, x1), (x2, x3), ... instead of the two halves of a head.
"""

import hashlib
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import cudatut as ct
from cudatut.paths import pip_install

# --8<-- [start:names]
# Our name of each tensor, and its name in the file. {i}: the layer.
NAMES = {
    "embedding": "token_embd.weight",
    "norm": "output_norm.weight",
    "head": "output.weight",  # absent where it is the embedding again
}
LAYER_NAMES = {
    "attention_norm": "blk.{i}.attn_norm.weight",
    "q": "blk.{i}.attn_q.weight",
    "k": "blk.{i}.attn_k.weight",
    "v": "blk.{i}.attn_v.weight",
    "o": "blk.{i}.attn_output.weight",
    "ffn_norm": "blk.{i}.ffn_norm.weight",
    "gate": "blk.{i}.ffn_gate.weight",
    "up": "blk.{i}.ffn_up.weight",
    "down": "blk.{i}.ffn_down.weight",
}
# --8<-- [end:names]
TYPES = ("F32", "F16", "BF16", "Q8_0", "Q4_1")  # that we can read


class CheckpointError(ct.CudatutError):
    """A model file that is missing, damaged, or of a kind that this part cannot
    run; the message says which.
    """


# --8<-- [start:config]
@dataclass(frozen=True)
class Config:
    """Sizes of a Llama: `heads` query heads share `kv_heads` pairs of key and
    value heads of `head_dim` elements.

    context: the most tokens of a sequence. tied: the embedding is also the last
    matrix. Raises ValueError.
    """

    layers: int
    dim: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    context: int
    rope_theta: float = 10000.0
    rms_eps: float = 1e-5
    tied: bool = True

    def __post_init__(self):
        if self.heads % self.kv_heads:
            raise ValueError(
                f"{self.heads} query heads cannot share {self.kv_heads} KV heads evenly"
            )
        if self.head_dim % 2:
            raise ValueError(f"RoPE needs pairs: head_dim is {self.head_dim}")

    @property
    def kv_bytes(self) -> int:
        """Bytes of keys and values per token, in 16-bit numbers."""
        return 2 * self.layers * self.kv_heads * self.head_dim * 2

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of every tensor, by our name."""
        dim, q, kv = (
            self.dim,
            self.heads * self.head_dim,
            self.kv_heads * self.head_dim,
        )
        layer = {
            "attention_norm": (dim,),
            "q": (q, dim),
            "k": (kv, dim),
            "v": (kv, dim),
            "o": (dim, q),
            "ffn_norm": (dim,),
            "gate": (self.ffn, dim),
            "up": (self.ffn, dim),
            "down": (dim, self.ffn),
        }
        shapes = {"embedding": (self.vocab, dim), "norm": (dim,)}
        if not self.tied:
            shapes["head"] = (self.vocab, dim)
        for i in range(self.layers):
            shapes |= {f"layers.{i}.{name}": s for name, s in layer.items()}
        return shapes


# --8<-- [end:config]


def gguf_name(name: str) -> str:
    """The name in the file of one of our tensors: 'layers.3.q' is
    'blk.3.attn_q.weight'.
    """
    if name in NAMES:
        return NAMES[name]
    _, i, short = name.split(".")
    return LAYER_NAMES[short].format(i=i)


class Checkpoint:
    """A GGUF file, opened: nothing is read before it is asked for.

    config: Config. path: of the file. metadata: what the file says besides, by
    key; long lists are read on demand.
    """

    def __init__(
        self, path: Path, config: Config, reader: Any, tensors: dict[str, Any]
    ):
        self.path, self.config = path, config
        self._reader, self._tensors = reader, tensors

    @classmethod
    def open(
        cls, path: str | os.PathLike, sha256: str | None = None
    ) -> "Checkpoint":
        """Read the header of a file, and verify its hash if one is given.
        Raises CheckpointError.
        """
        gguf, path = _library(), Path(path)
        if not path.is_file():
            raise CheckpointError(f"there is no model file {path}")
        if sha256 and (found := file_hash(path)) != sha256:
            raise CheckpointError(
                f"{path} is not the file that was expected: its SHA-256 is {found}, not {sha256}. Remove it, and it is "
                "fetched again."
            )
        with open(path, "rb") as file:
            if file.read(4) != b"GGUF":
                raise CheckpointError(f"{path} is not a GGUF file")
        try:
            reader = gguf.GGUFReader(path)
        except (ValueError, IndexError, KeyError, OverflowError) as error:
            raise CheckpointError(f"{path} is damaged: {error}") from error
        self = cls(path, _config(path, reader), reader, {})
        theirs = {tensor.name: tensor for tensor in reader.tensors}
        for name, shape in self.config.shapes().items():
            tensor = theirs.pop(gguf_name(name), None)
            if tensor is None:
                raise CheckpointError(
                    f"{path} has no tensor {gguf_name(name)}, which a Llama of {self.config.layers} layers needs"
                )
            # GGUF counts axes from the innermost.
            found = tuple(int(n) for n in tensor.shape[::-1])
            if found != shape:
                raise CheckpointError(
                    f"{path}: {tensor.name} is {list(found)}, but the header says {list(shape)}"
                )
            if tensor.tensor_type.name not in TYPES:
                raise CheckpointError(
                    f"{path}: {tensor.name} is {tensor.tensor_type.name}; this part reads {', '.join(TYPES)}"
                )
            self._tensors[name] = tensor
        if (
            theirs
        ):  # biases, RoPE factors: without them the model answers wrongly
            raise CheckpointError(
                f"{path} has tensors that a plain Llama lacks: {', '.join(sorted(theirs)[:3])}"
            )
        return self

    def type(self, name: str) -> str:
        """How a tensor is stored: one of TYPES."""
        return self._tensors[name].tensor_type.name

    def blocks(self, name: str) -> np.ndarray:
        """A tensor as it is stored: uint8, [rows, bytes per row], for the GPU
        (fp32, fp16: numbers, [rows, columns]).

        A block holds 32 weights of a row. Q8_0, 34 bytes: scale d (fp16), 32
        int8; w = d q. Q4_1, 20 bytes: d and m (fp16), 16 bytes with weight j in
        the low half of byte j and weight j + 16 in its high half; w = d q + m.
        """
        return self._tensors[name].data

    def array(self, name: str) -> np.ndarray:
        """A tensor dequantized to float32, in the shape of `Config.shapes`; a
        new array.
        """
        tensor = self._tensors[name]
        data = _library().quants.dequantize(tensor.data, tensor.tensor_type)
        shape = self.config.shapes()[name]
        return np.array(data, "float32").reshape(shape)

    def arrays(self) -> dict[str, np.ndarray]:
        """All tensors in float32, by name; of a tied model 'head' is the same
        array as 'embedding'.
        """
        found = {name: self.array(name) for name in self._tensors}
        return {"head": found["embedding"], **found}

    def metadata(self, key: str, default: Any = None) -> Any:
        """A value of the header, such as 'tokenizer.ggml.tokens', or the
        default.
        """
        field = self._reader.get_field(key)
        return default if field is None else field.contents()

    @cached_property
    def bytes(self) -> int:
        """Bytes of all tensors as they are stored: what one decode step has to
        read at least.
        """
        return sum(int(tensor.n_bytes) for tensor in self._tensors.values())


def _config(path: Path, reader: Any) -> Config:
    def get(key: str, default: Any = None) -> Any:
        field = reader.get_field(key)
        value = default if field is None else field.contents()
        if value is None:
            raise CheckpointError(f"{path} lacks the key {key}")
        return value

    architecture = get("general.architecture", "unknown")
    if architecture != "llama":
        raise CheckpointError(
            f"{path} holds a model of the architecture '{architecture}'; this part runs 'llama'"
        )
    if get("llama.rope.scaling.type", "none") != "none":
        raise CheckpointError(f"{path} scales RoPE, which this part does not")
    dim, heads = (
        get("llama.embedding_length"),
        get("llama.attention.head_count"),
    )
    head_dim = get("llama.attention.key_length", dim // heads)
    rotated = get("llama.rope.dimension_count", head_dim)
    values = get("llama.attention.value_length", head_dim)
    if rotated != head_dim or values != head_dim:
        raise CheckpointError(
            f"{path}: RoPE rotates {rotated} of {head_dim} elements and a value has {values}; here all are the same"
        )
    names = {tensor.name for tensor in reader.tensors}
    try:
        return Config(
            layers=get("llama.block_count"),
            dim=dim,
            heads=heads,
            kv_heads=get("llama.attention.head_count_kv", heads),
            head_dim=head_dim,
            ffn=get("llama.feed_forward_length"),
            vocab=len(get("tokenizer.ggml.tokens")),
            context=get("llama.context_length"),
            rope_theta=get("llama.rope.freq_base", 10000.0),
            rms_eps=get("llama.attention.layer_norm_rms_epsilon"),
            tied=NAMES["head"] not in names,
        )
    except ValueError as error:
        raise CheckpointError(f"{path}: {error}") from error


def file_hash(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _library() -> Any:
    try:
        import gguf
        import gguf.quants
    except ImportError as error:
        raise ct.ToolMissing(
            f"gguf, which reads model files, is not installed: {pip_install('llm')}"
        ) from error
    return gguf
