"""The part `llm` without a GPU."""

import importlib.util
from types import SimpleNamespace

import numpy as np
import pytest

CHARACTERS = "abcdefghijklmnopqrstuvwxyz .,春眠不觉晓处闻啼鸟"


@pytest.fixture(scope="session", autouse=True)
def libraries(missing):
    """What the part imports besides NumPy."""
    for name in ("gguf", "tokenizers"):
        if importlib.util.find_spec(name) is None:
            missing(f"{name} is not installed (pip install {name})")


@pytest.fixture(scope="session")
def config():
    from cudatut.book.llm.model.checkpoint import Config
    from cudatut.book.llm.model.tiny import SPECIAL

    return Config(
        layers=2,
        dim=64,
        heads=4,
        kv_heads=2,
        head_dim=16,
        ffn=96,
        vocab=len(SPECIAL) + len(CHARACTERS),
        context=256,
        tied=False,
        rms_eps=float(np.float32(1e-5)),  # as the file keeps it
    )


@pytest.fixture(scope="session")
def tiny_path(config, tmp_path_factory):
    """A model of random numbers, as a file. Its answers do not repeat at once: the last matrix is one of its own."""
    from cudatut.book.llm.model.tiny import random_weights, save

    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    save(path, config, random_weights(config, seed=5), CHARACTERS)
    return path


@pytest.fixture(scope="session")
def checkpoint(tiny_path):
    from cudatut.book.llm.model.checkpoint import Checkpoint

    return Checkpoint.open(tiny_path)


@pytest.fixture(scope="session")
def answers(checkpoint):
    """Prompts, and what the reference says to each alone: 24 tokens, greedily."""
    from cudatut.book.llm.model.reference import Reference, greedy

    rng = np.random.default_rng(1)
    lengths = rng.integers(1, 60, 12)
    prompts = [rng.integers(3, checkpoint.config.vocab, n).tolist() for n in lengths]
    model = Reference(checkpoint)
    return SimpleNamespace(
        prompts=prompts, greedy=[greedy(model, prompt, 24) for prompt in prompts]
    )
