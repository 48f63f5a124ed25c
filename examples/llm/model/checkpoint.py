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
from cudatut.book.llm.model.gguf_file import BLOCKS, Damaged, Header, Tensor

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
# Each size of a model, its key in the file, the least and the most that we take:
# more than any Llama has, and little enough for tables of that length.
SIZES = {
    "layers": ("llama.block_count", 1, 1 << 12),
    "dim": ("llama.embedding_length", 1, 1 << 17),
    "heads": ("llama.attention.head_count", 1, 1 << 12),
    "kv_heads": ("llama.attention.head_count_kv", 1, 1 << 12),
    "head_dim": ("llama.attention.key_length", 2, 1 << 12),
    "ffn": ("llama.feed_forward_length", 1, 1 << 20),
    "vocab": ("tokenizer.ggml.tokens", 1, 1 << 20),
    "context": ("llama.context_length", 1, 1 << 20),
    "rope_theta": ("llama.rope.freq_base", 1.0, 1e12),
    "rms_eps": ("llama.attention.layer_norm_rms_epsilon", 1e-12, 0.1),
}


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
        for name in SIZES:
            within(name, name, getattr(self, name))
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


def within(size: str, label: str, value: Any) -> None:
    """Raises ValueError if a size, called `label`, is not as SIZES has it."""
    _, least, most = SIZES[size]
    whole = isinstance(least, int)
    kind = (int, np.integer) if whole else (int, float, np.number)
    # NaN is in no range.
    if isinstance(value, bool) or not (
        isinstance(value, kind) and least <= value <= most
    ):
        what = "a whole number" if whole else "a number"
        shown = (
            value if isinstance(value, (int, float)) else type(value).__name__
        )
        raise ValueError(
            f"{label} is {shown}; {what} from {least} to {most} is allowed"
        )


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
        self,
        path: Path,
        config: Config,
        header: Header,
        tensors: dict[str, Tensor],
    ):
        self.path, self.config = path, config
        self._header, self._tensors = header, tensors

    @classmethod
    def open(
        cls, path: str | os.PathLike, sha256: str | None = None
    ) -> "Checkpoint":
        """Read the header of a file, and verify its hash if one is given.
        Raises CheckpointError, which says in one line which field is wrong and
        what is allowed. Weights are verified when they are asked for.
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
            header = Header(path)
        except Damaged as error:
            raise CheckpointError(f"{path} is damaged: {error}") from error
        self = cls(path, _config(path, header), header, {})
        theirs = dict(header.tensors)
        for name, shape in self.config.shapes().items():
            tensor = theirs.pop(gguf_name(name), None)
            if tensor is None:
                raise CheckpointError(
                    f"{path} has no tensor {gguf_name(name)}, which a Llama of {self.config.layers} layers needs"
                )
            if tensor.shape != shape:
                raise CheckpointError(
                    f"{path}: {tensor.name} is {list(tensor.shape)}, but the header says {list(shape)}"
                )
            if tensor.type not in BLOCKS:
                kinds = {str(int(k)): k.name for k in gguf.GGMLQuantizationType}
                kind = kinds.get(tensor.type, f"of the type {tensor.type}")
                raise CheckpointError(
                    f"{path}: {tensor.name} is {kind}; this part reads {', '.join(BLOCKS)}"
                )
            self._tensors[name] = tensor
        if (
            theirs
        ):  # biases, RoPE factors: without them the model answers wrongly
            names = ", ".join(ascii(name)[1:-1] for name in sorted(theirs)[:3])
            raise CheckpointError(
                f"{path} has tensors that a plain Llama lacks: {names}"
            )
        return self

    def type(self, name: str) -> str:
        """How a tensor is stored: one of gguf_file.BLOCKS."""
        return self._tensors[name].type

    def blocks(self, name: str) -> np.ndarray:
        """A tensor as it is stored: uint8, [rows, bytes per row], for the GPU
        (fp32, fp16: numbers, [rows, columns]).

        A block holds 32 weights of a row. Q8_0, 34 bytes: scale d (fp16), 32
        int8; w = d q. Q4_1, 20 bytes: d and m (fp16), 16 bytes with weight j in
        the low half of byte j and weight j + 16 in its high half; w = d q + m.

        Raises CheckpointError for weights that are no finite numbers: of blocks,
        their scales tell.
        """
        tensor = self._tensors[name]
        stored = self._header.array(tensor.name)
        if tensor.type == "BF16":
            # All bits of the exponent set: seven in one byte, one in the other.
            high, low = stored[..., 1::2] & 0x7F, stored[..., ::2] & 0x80
            good = (high < 0x7F) | (low == 0)
        elif tensor.type in ("F32", "F16"):
            good = np.isfinite(stored)
        else:
            scales = 2 if tensor.type == "Q8_0" else 4  # bytes
            blocks = stored.reshape(-1, BLOCKS[tensor.type][1])[:, :scales]
            good = np.isfinite(np.ascontiguousarray(blocks).view("<f2"))
        if not good.all():
            raise CheckpointError(
                f"{self.path} is damaged: {tensor.name} holds weights that are "
                "infinite or no numbers"
            )
        return stored

    def array(self, name: str) -> np.ndarray:
        """A tensor dequantized to float32, in the shape of `Config.shapes`; a
        new array.
        """
        gguf, tensor = _library(), self._tensors[name]
        kind = gguf.GGMLQuantizationType[tensor.type]
        data = gguf.quants.dequantize(self.blocks(name), kind)
        return np.array(data, "float32").reshape(tensor.shape)

    def arrays(self) -> dict[str, np.ndarray]:
        """All tensors in float32, by name; of a tied model 'head' is the same
        array as 'embedding'.
        """
        found = {name: self.array(name) for name in self._tensors}
        return {"head": found["embedding"], **found}

    def metadata(self, key: str, default: Any = None) -> Any:
        """A value of the header, such as 'tokenizer.ggml.tokens', or the
        default. Raises CheckpointError for bytes that are no text.
        """
        try:
            return self._header.value(key, default)
        except Damaged as error:
            raise CheckpointError(f"{self.path} is damaged: {error}") from error

    @cached_property
    def bytes(self) -> int:
        """Bytes of all tensors as they are stored: what one decode step has to
        read at least.
        """
        return sum(tensor.nbytes for tensor in self._tensors.values())


def _config(path: Path, header: Header) -> Config:
    def get(key: str, default: Any = None) -> Any:
        value = header.value(key, default)
        if value is None:
            raise CheckpointError(f"{path} lacks the key {key}")
        return value

    def size(name: str, default: Any = None) -> Any:
        key = SIZES[name][0]
        value = get(key, default)
        within(name, key, value)
        return value

    try:
        architecture = get("general.architecture", "unknown")
        if architecture != "llama":
            raise ValueError(
                f"it holds a model of the architecture {architecture!a:.60}; this part runs 'llama'"
            )
        if get("llama.rope.scaling.type", "none") != "none":
            raise ValueError("it scales RoPE, which this part does not")
        dim, heads = size("dim"), size("heads")
        head_dim = size("head_dim", dim // heads)
        rotated = get("llama.rope.dimension_count", head_dim)
        values = get("llama.attention.value_length", head_dim)
        if rotated != head_dim or values != head_dim:
            raise ValueError(
                f"RoPE rotates {rotated!a:.60} of {head_dim} elements and a value has {values!a:.60}; here all are the same"
            )
        layers, there = size("layers"), len(header.tensors)
        if layers * len(LAYER_NAMES) > there:
            raise ValueError(
                f"llama.block_count is {layers}; the {there} tensors of the file are those of {there // len(LAYER_NAMES)} layers at most"
            )
        vocab = header.count("tokenizer.ggml.tokens")
        if vocab is None:
            raise ValueError("it lacks the list tokenizer.ggml.tokens")
        within("vocab", "the length of tokenizer.ggml.tokens", vocab)
        for mark in ("bos", "eos", "unknown", "padding"):
            key = f"tokenizer.ggml.{mark}_token_id"
            token = header.value(key, 0)
            if type(token) is not int or not 0 <= token < vocab:
                raise ValueError(
                    f"{key} is {token!a:.60}; a token of the vocabulary, 0 to {vocab - 1}, is allowed"
                )
        return Config(
            layers=layers,
            dim=dim,
            heads=heads,
            kv_heads=size("kv_heads", heads),
            head_dim=head_dim,
            ffn=size("ffn"),
            vocab=vocab,
            context=size("context"),
            rope_theta=size("rope_theta", 10000.0),
            rms_eps=size("rms_eps"),
            tied=NAMES["head"] not in header.tensors,
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
