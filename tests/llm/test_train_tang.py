"""The trainer's model is the reference's; only where PyTorch is installed, which nothing else needs."""

import argparse

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: it is needed to train only")


def test_what_is_trained_is_what_is_run(tmp_path):
    from cudatut.book.llm.model import train_tang
    from cudatut.book.llm.model.checkpoint import Checkpoint, Config
    from cudatut.book.llm.model.reference import Reference
    from cudatut.book.llm.model.tiny import SPECIAL, save

    config = Config(2, 64, 2, 1, 32, 96, 30, 64, rms_eps=train_tang.RMS_EPS)
    characters = [chr(0x4E00 + i) for i in range(30 - len(SPECIAL))]
    rng = np.random.default_rng(0)
    poems = ["".join(rng.choice(characters, 24)) for _ in range(20)]
    assert train_tang.vocabulary(poems, 30) == characters
    text = train_tang.encode([*poems, "unknown"], characters)
    assert (text == train_tang.BEGIN).sum() == (text == train_tang.END).sum() == 20
    options = argparse.Namespace(steps=3, batch=4, length=16, rate=1e-2)
    weights = train_tang.train(config, text, options)
    save(tmp_path / "x.gguf", config, weights, characters)
    model = Reference(Checkpoint.open(tmp_path / "x.gguf"))
    # In the rounded weights, both.
    w = {n: torch.from_numpy(model.weights[n]) for n in config.shapes()}
    tokens = torch.from_numpy(text[:40].astype("int64"))[None]
    with torch.no_grad():
        expected = train_tang.logits(w, config, tokens, torch)[0].numpy()
    assert np.abs(model.forward(text[:40]) - expected).max() < 1e-5
    assert isinstance(train_tang.sample_poem(tmp_path / "x.gguf", characters[3]), str)
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        rough = train_tang.logits(w, config, tokens, torch)[0].float().numpy()
    assert 0 < np.abs(rough - expected).max() < 0.1
