"""The part `llm` without a GPU: its modules lie beside each other and import each other by name, as its examples do."""

import sys

from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples" / "llm"))
# For these tests only: whoever runs them has installed the extra `test`.
pytest.importorskip("gguf", reason="pip install gguf")

CHARACTERS = "abcdefghijklmnopqrstuvwxyz .,春眠不觉晓处闻啼鸟"


@pytest.fixture(scope="session")
def config():
    from checkpoint import Config
    from tiny import SPECIAL

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
    """A model of random numbers, as a file."""
    from tiny import random_weights, save

    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    save(path, config, random_weights(config, seed=5), CHARACTERS)
    return path


@pytest.fixture(scope="session")
def checkpoint(tiny_path):
    from checkpoint import Checkpoint

    return Checkpoint.open(tiny_path)
