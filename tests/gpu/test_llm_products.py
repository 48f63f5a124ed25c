"""The backend whose products linear_hopper.cu computes: logits as the NumPy backend has them, and the same answers from
graphs, on a Hopper GPU."""

import numpy as np
import pytest
from test_llm_backend import SIZE, answers, checkpoint, gpu, prompts  # noqa: F401

pytest.importorskip("gguf")


@pytest.fixture(autouse=True)
def needs_hopper():
    from cudatut.book.llm.kernels import linear_hopper

    if not linear_hopper.available():
        pytest.skip("linear_hopper.cu needs sm_90a")


@pytest.fixture(params=["few", "many"])
def new(request, checkpoint, monkeypatch):  # noqa: F811
    """few: tiles for some hundred rows; many: those for thousands."""
    from cudatut.book.llm.kernels import linear_hopper

    if request.param == "many":
        tiles = {
            product: {linear_hopper.FEW: tiles[linear_hopper.MANY]}
            for product, tiles in linear_hopper.FASTER.items()
            if linear_hopper.MANY in tiles
        }
        nothing = {product: {} for product in linear_hopper.FASTER}
        monkeypatch.setattr(linear_hopper, "FASTER", nothing | tiles)
    return gpu(checkpoint, 256, products="wgmma")


def test_logits_are_those_of_the_reference(checkpoint, prompts, new):  # noqa: F811
    from cudatut.book.llm.backends.numpy_backend import NumpyBackend

    _, _, watched = answers(NumpyBackend(checkpoint, 256, SIZE), prompts, 4, token_budget=200)
    worst = largest = 0.0
    for _ in range(2):  # the second time from the graphs
        for batch, expected in watched.seen:
            got = new.run(batch)
            if len(batch.wanted):
                worst = max(worst, float(np.abs(got.get() - expected).max()))
                largest = max(largest, float(np.abs(expected).max()))
    assert worst < 0.03 * largest


def test_steps_of_many_requests_beside_the_other_products(checkpoint):  # noqa: F811
    """110 requests: decoding takes other products, too."""
    ways = {
        by: gpu(checkpoint, 1024, max_requests=128, products=by) for by in ("mma.sync", "wgmma")
    }
    ways["again"] = new = ways["wgmma"]
    assert gpu(checkpoint, 16).products.by == "wgmma"
    vocab = checkpoint.config.vocab
    many = [np.random.default_rng(i).integers(3, vocab, 5 + i % 24).tolist() for i in range(110)]
    said = {name: answers(backend, many, 12, max_running=128)[:2] for name, backend in ways.items()}
    assert said["wgmma"][0] == said["again"][0]
    prompt_ends = [(i, len(prompt) - 1) for i, prompt in enumerate(many)]
    for key in prompt_ends:  # before answers may go apart
        a, b = (said[name][1][key] for name in ("mma.sync", "wgmma"))
        assert np.abs(a - b).max() < 0.03 * np.abs(a).max()
    assert any(shape.decode > 100 for shape in new._graphs if hasattr(shape, "decode"))
