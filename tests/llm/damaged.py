"""Model files with one damage each, drawn by a seed, and what has to come of them: an error of one line, or a model that
differs where the damage is and nowhere else. Within two seconds, and twice the file's size of memory.

    python tests/llm/damaged.py 400        # that many files; make test has fewer
"""

import random
import struct
import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np

from cudatut.paths import examples_dir

SECONDS, SIZES = 2.0, 2.0
EXTREME = [0, 1, 2, 3, 0x7F, 0x80, 0xFF, 0xFFFF, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 32) - 1]
EXTREME += [1 << 32, 1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 32, (1 << 64) - 1]
FLOATS = [0.0, -0.0, -1.0, 1e-45, 1e38, float("inf"), float("-inf"), float("nan")]
FIELDS = {
    "layers": "llama.block_count",
    "dim": "llama.embedding_length",
    "heads": "llama.attention.head_count",
    "kv_heads": "llama.attention.head_count_kv",
    "head_dim": "llama.attention.key_length",
    "ffn": "llama.feed_forward_length",
    "vocab": "tokenizer.ggml.tokens",
    "context": "llama.context_length",
    "rope_theta": "llama.rope.freq_base",
    "rms_eps": "llama.attention.layer_norm_rms_epsilon",
    "tied": "",
}


class Original:
    """A whole file, and where its fields are, as the library sees them."""

    def __init__(self, path):
        import gguf

        self.data, reader = Path(path).read_bytes(), gguf.GGUFReader(path)
        self.begin = min(tensor.data_offset for tensor in reader.tensors)
        self.values, self.counts = {}, []  # of each key: first byte of its value, and behind it
        for name, field in reader.fields.items():
            if name.startswith("GGUF."):
                continue
            length = len(name.encode())
            first, size = field.offset + 8 + length + 4, sum(p.nbytes for p in field.parts)
            self.values[name] = first, field.offset + size
            if field.types[0] == gguf.GGUFValueType.ARRAY:
                self.counts += [first, first + 4]  # type of the elements, and how many
        # Of each tensor: its line, and in it the shape, the type and the place.
        self.lines = []
        for tensor in reader.tensors:
            shape = tensor.field.offset + 8 + len(tensor.name.encode()) + 4
            self.lines.append((tensor.field.offset, shape, shape + 8 * len(tensor.shape)))
        self.tensors = {
            t.name: (t.data_offset, t.n_bytes, tuple(t.shape[::-1])) for t in reader.tensors
        }


def damage(original, rng):
    """What is done, the damaged bytes, and the places that differ (None: all behind the first)."""
    data = bytearray(original.data)
    begin, size = original.begin, len(data)
    how = rng.choice(
        ["bits", "bytes", "cut", "value", "value", "place", "shape", "type", "count", "shift",
         "weights", "scales", "name", "zeros"]
    )  # fmt: skip

    def put(at, form, value):
        struct.pack_into("<" + form, data, at, value)

    if how == "bits":
        for _ in range(rng.choice([1, 1, 2, 8])):
            data[rng.randrange(begin)] ^= 1 << rng.randrange(8)
    elif how == "bytes":
        at, form = rng.randrange(begin - 8), rng.choice("BHIQ")
        put(at, form, rng.choice(EXTREME) % (1 << 8 * struct.calcsize(form)))
    elif how == "cut":
        del data[rng.randrange(size - 1) :]
    elif how == "value":
        name = rng.choice(sorted(KEYS & original.values.keys()))
        at, end = original.values[name]
        if end - at == 4 and rng.random() < 0.5:
            put(at, "f", rng.choice(FLOATS))
        elif end - at == 4:
            put(at, "I", rng.choice(EXTREME) % (1 << 32))
        else:
            put(at, "Q", rng.choice(EXTREME))
    elif how == "place":
        put(
            rng.choice(original.lines)[2] + 4,
            "Q",
            rng.choice([*EXTREME, rng.randrange(size), 32 * rng.randrange(size // 32)]),
        )
    elif how == "shape":
        put(rng.choice(original.lines)[1], "Q", rng.choice(EXTREME))
    elif how == "type":
        put(rng.choice(original.lines)[2], "I", rng.choice([*range(40), 1 << 31]))
    elif how == "count":
        at = rng.choice([8, 16, *original.counts, *(n for n, _, _ in original.lines)])
        put(at, rng.choice("IQ"), rng.choice(EXTREME) % (1 << 32))
    elif how == "shift":
        at = rng.randrange(24, begin)
        if rng.random() < 0.5:
            data[at:at] = rng.randbytes(rng.randint(1, 64))
        else:
            del data[at : at + rng.randint(1, 64)]
    elif how == "weights":
        for _ in range(rng.choice([1, 8, 1000])):
            data[rng.randrange(begin, size)] ^= 1 << rng.randrange(8)
    elif how == "scales":
        at, *_ = original.tensors[rng.choice(sorted(original.tensors))]
        put(at, "H", rng.choice([0x7C00, 0xFC00, 0x7E00, 0x7BFF]))
    elif how == "name":
        at, end = original.values["general.name"]
        data[at + 8] = rng.randrange(256)
    elif how == "zeros":
        at, count = rng.randrange(begin), rng.randint(1, 4096)
        data[at : at + count] = bytes(count)
    if len(data) != size:
        return how, bytes(data), None
    old, new = (np.frombuffer(d, "u1") for d in (original.data, bytes(data)))
    return how, bytes(data), np.flatnonzero(old != new)


KEYS = {
    "llama.block_count", "llama.context_length", "llama.embedding_length", "llama.feed_forward_length",
    "llama.attention.head_count", "llama.attention.head_count_kv", "llama.attention.key_length",
    "llama.attention.value_length", "llama.rope.dimension_count", "llama.rope.freq_base",
    "llama.attention.layer_norm_rms_epsilon", "tokenizer.ggml.unknown_token_id",
    "tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id",
}  # fmt: skip


def opened(path):
    """What a program does with a model file, but for computing: the model, its tokenizer, its tensors."""
    from cudatut.book.llm.model import tokens
    from cudatut.book.llm.model.checkpoint import Checkpoint

    model = Checkpoint.open(path)
    tokenizer = tokens.load(model)
    stored = {name: model.blocks(name) for name in model.config.shapes()}
    return model, tokenizer, stored


def judge(original, whole, seed, folder):
    """One damaged file: what was done to it and what came of it. Raises AssertionError."""
    from cudatut.book.llm.model.checkpoint import CheckpointError, gguf_name
    from cudatut.book.llm.model.reference import Reference

    how, data, places = damage(original, random.Random(seed))
    path = folder / "damaged.gguf"
    path.write_bytes(data)
    tracemalloc.start()
    begin = time.perf_counter()
    try:
        found, error = opened(path), None
    except CheckpointError as refused:
        found, error = None, str(refused)
    seconds, peak = time.perf_counter() - begin, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert seconds < SECONDS, f"{how}: {seconds:.1f} s"
    # What every file takes: modules that are imported, and a reader's buffers.
    assert peak < SIZES * max(len(data), 1 << 17), f"{how}: {peak} bytes for a file of {len(data)}"
    if error:
        said = error.replace(str(path), "")
        assert str(path) in error and "\n" not in error and 10 < len(said) < 300, error
        return how, said
    model, tokenizer, stored = found

    def hit(key):
        """Whether the damage is in the value of this key."""
        if places is None or key not in original.values:
            return False
        first, end = original.values[key]
        return bool(((places >= first) & (places < end)).any())

    was, said = whole
    for field, key in FIELDS.items():
        if getattr(model.config, field) != getattr(was.config, field):
            assert hit(key), f"{how}: {field} became {getattr(model.config, field)}"
    for name, array in stored.items():
        at, nbytes, shape = original.tensors[gguf_name(name)]
        assert model.config.shapes()[name] == shape
        there = np.frombuffer(data, "u1")[at : at + nbytes]
        assert (array.reshape(-1).view("u1") == there).all(), f"{how}: {name} is elsewhere"
        assert np.isfinite(model.array(name)).all()
    assert tokenizer.names == said.names or hit("tokenizer.ggml.tokens"), how
    assert tokenizer.special == said.special or hit("tokenizer.ggml.token_type")
    assert tokenizer.stop == said.stop or hit("tokenizer.ggml.eos_token_id")
    with np.errstate(all="ignore"):  # a damaged weight may be large
        assert Reference(model).forward([1, 2]).shape == (2, model.config.vocab)
    return how, ""


def run(path, seeds, folder):
    """All of them; how many of each kind were refused, and loaded."""
    import gguf
    import gguf.quants  # noqa: F401

    original, (model, tokenizer, _) = Original(path), opened(path)
    kinds = {}
    for seed in seeds:
        try:
            how, said = judge(original, (model, tokenizer), seed, folder)
        except Exception as error:
            raise AssertionError(f"the file of seed {seed}: {error}") from error
        counts = kinds.setdefault(how, [0, 0, ""])
        counts[not said] += 1
        counts[2] = said or counts[2]
    return kinds


def main():
    import tempfile

    count = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    with tempfile.TemporaryDirectory() as folder:
        kinds = run(examples_dir() / "llm/model/tang.gguf", range(count), Path(folder))
    for how, (refused, loaded, said) in sorted(kinds.items()):
        print(f"{how:8} {refused:4} refused {loaded:4} loaded  {said[:150]}")
    print(
        sum(r for r, _, _ in kinds.values()),
        "refused",
        sum(n for _, n, _ in kinds.values()),
        "loaded",
    )


if __name__ == "__main__":
    main()
