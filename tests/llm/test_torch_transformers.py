"""The weights as the library `transformers` wants them: names, and the order of rows. Needs neither it nor PyTorch."""

import numpy as np

from cudatut.book.llm.backends.torch_transformers import halves, theirs


def turned(x, angles, neighbors):
    """RoPE of one head, x: [head_dim, ...]; pairs are neighbors, or half a head apart."""
    half = len(x) // 2
    first = np.arange(0, len(x), 2) if neighbors else np.arange(half)
    second = first + (1 if neighbors else half)
    found, cos, sin = np.empty_like(x), np.cos(angles), np.sin(angles)
    found[first] = x[first] * cos - x[second] * sin
    found[second] = x[first] * sin + x[second] * cos
    return found


def test_scores_stay_the_same_when_halves_are_turned():
    rng, head_dim, inputs = np.random.default_rng(0), 8, 5
    angles = rng.random(head_dim // 2)
    q, k = (rng.standard_normal((3 * head_dim, inputs)) for _ in "qk")
    x, y = rng.standard_normal((2, inputs))
    for head in range(3):
        own = slice(head * head_dim, (head + 1) * head_dim)
        ours = [turned((w @ v)[own], a * angles, True) for w, v, a in ((q, x, 7), (k, y, 3))]
        their = [
            turned((halves(w, head_dim) @ v)[own], a * angles, False)
            for w, v, a in ((q, x, 7), (k, y, 3))
        ]
        np.testing.assert_allclose(np.dot(*their), np.dot(*ours))
        assert not np.allclose(their[0], ours[0]), "only the order differs, but it does"


def test_names(config):
    names = {name: theirs(name) for name in config.shapes()}
    assert len(set(names.values())) == len(names)
    assert names["embedding"] == "model.embed_tokens.weight"
    assert names["head"] == "lm_head.weight"
    assert names["norm"] == "model.norm.weight"
    assert names["layers.1.q"] == "model.layers.1.self_attn.q_proj.weight"
    assert names["layers.0.ffn_norm"] == "model.layers.0.post_attention_layernorm.weight"
