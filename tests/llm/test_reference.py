"""The reference beside implementations that share nothing with it, and on SmolLM2 itself."""

import numpy as np
import pytest


def slow_logits(config, w, tokens):
    """The same model in float64, one number after the other, with RoPE by complex numbers and heads one by one."""
    c = config
    w = {name: array.astype("float64") for name, array in w.items()}

    def norm(x, weight):
        return x * weight / np.sqrt(np.dot(x, x) / len(x) + c.rms_eps)

    def turn(x, position):
        i = np.arange(c.head_dim // 2)
        z = (x[0::2] + 1j * x[1::2]) * np.exp(1j * position * c.rope_theta ** (-2 * i / c.head_dim))
        return np.stack([z.real, z.imag], 1).ravel()

    states = [w["embedding"][token] for token in tokens]
    for layer in range(c.layers):
        m = {n.split(".")[-1]: a for n, a in w.items() if n.startswith(f"layers.{layer}.")}
        keys, values, after = [], [], []
        for position, x in enumerate(states):
            h = norm(x, m["attention_norm"])
            d = c.head_dim
            keys.append([turn(m["k"][j * d : j * d + d] @ h, position) for j in range(c.kv_heads)])
            values.append([m["v"][j * d : j * d + d] @ h for j in range(c.kv_heads)])
            heads = []
            for j in range(c.heads):
                shared = j * c.kv_heads // c.heads
                q = turn(m["q"][j * d : j * d + d] @ h, position)
                scores = np.array([np.dot(q, k[shared]) / d**0.5 for k in keys])
                powers = np.exp(scores - scores.max())
                heads.append(sum(p * v[shared] for p, v in zip(powers, values)) / powers.sum())
            x = x + m["o"] @ np.concatenate(heads)
            h = norm(x, m["ffn_norm"])
            gate = m["gate"] @ h
            after.append(x + m["down"] @ (gate / (1 + np.exp(-gate)) * (m["up"] @ h)))
        states = after
    return np.array([w["head"] @ norm(x, w["norm"]) for x in states])


def test_beside_a_slow_one(checkpoint, answers):
    from cudatut.book.llm.model.reference import Reference

    model, tokens = Reference(checkpoint), answers.prompts[0][:20]
    expected = slow_logits(checkpoint.config, checkpoint.arrays(), tokens)
    error = np.abs(model.forward(tokens) - expected).max()
    assert error < 1e-5 * np.abs(expected).max() + 1e-5
    # In pieces, from the cache.
    model.reset()
    pieces = [model.forward(tokens[a:b]) for a, b in ((0, 7), (7, 8), (8, 20))]
    assert np.abs(np.concatenate(pieces) - expected).max() < 1e-4


def test_adjacent_pairs_are_the_permuted_halves():
    """Files for llama.cpp have the rows of Q and K permuted; others rotate the two halves of a head: the same scores."""
    from cudatut.book.llm.model.reference import rotate

    rng, d = np.random.default_rng(0), 16
    q, k = rng.standard_normal((2, 5, 1, d)).astype("float32")
    t, theta = np.arange(5), 10000.0

    def halves(x):
        angles = np.multiply.outer(t, theta ** (-np.arange(0, d, 2) / d))[:, None, :]
        a, b = x[..., : d // 2], x[..., d // 2 :]
        cos, sin = np.cos(angles), np.sin(angles)
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    permuted = np.arange(d).reshape(2, d // 2).T.ravel()  # 0, d/2, 1, d/2 + 1, ...
    ours = [rotate(x[..., permuted], t, theta)[:, 0] for x in (q, k)]
    theirs = [halves(x)[:, 0] for x in (q, k)]
    assert np.abs(ours[0] @ ours[1].T - theirs[0] @ theirs[1].T).max() < 1e-5


def test_extremes():
    from cudatut.book.llm.model.reference import silu, softmax

    with np.errstate(all="raise", under="ignore"):
        assert softmax(np.array([[1e4, -1e4, -np.inf]], "float32")).tolist() == [[1, 0, 0]]
    assert silu(np.array([-1e4, 0, 1e4], "float32")).tolist() == [0, 0, 1e4]


def test_the_context_ends(checkpoint):
    from cudatut.book.llm.model.reference import Reference

    model = Reference(checkpoint)
    with pytest.raises(ValueError, match="knows 256 positions; 257 tokens"):
        model.forward([3] * 257)


# Some logits for "The capital of France is", by (position, token): transformers 5.23 with PyTorch 2.14, float32, on a
# CPU, from the same file.
TRANSFORMERS = {
    (0, 29): 27.3534,
    (0, 12345): 16.8325,
    (1, 282): 22.0560,
    (1, 0): 8.7507,
    (2, 260): 12.9426,
    (2, 12345): -0.1064,
    (3, 314): 23.7721,
    (3, 0): 11.4061,
    (4, 7042): 17.3713,
    (4, 0): 1.6136,
    (4, 12345): -1.5378,
}


def test_smollm2(request):
    """The real model answers, and its logits are those of transformers."""
    if not request.config.getoption("--smollm2"):
        pytest.skip("needs a download of 98 MB: --smollm2")
    from cudatut.book.llm.model.checkpoint import Checkpoint
    from cudatut.book.llm.model.fetch import SMOLLM2, fetch
    from cudatut.book.llm.model.reference import Reference, greedy
    from cudatut.book.llm.model.tokens import load

    checkpoint = Checkpoint.open(fetch(), SMOLLM2.sha256)
    tokenizer, model = load(checkpoint), Reference(checkpoint)
    config = checkpoint.config
    assert (config.layers, config.heads, config.kv_heads, config.head_dim) == (30, 9, 3, 64)
    assert sum(int(np.prod(s)) for s in config.shapes().values()) == 134_515_008
    assert {checkpoint.type(n) for n in config.shapes()} == {"F32", "Q4_1", "Q8_0"}
    assert config.kv_bytes == 23_040 and checkpoint.blocks("layers.0.q").shape == (576, 360)

    prompt = tokenizer.encode("The capital of France is")
    assert prompt == [504, 3575, 282, 4649, 314]
    logits = model.forward(prompt)
    for (position, token), expected in TRANSFORMERS.items():
        assert logits[position, token] == pytest.approx(expected, abs=5e-4)
    assert tokenizer.decode(greedy(model, prompt, 2)) == " Paris."
    chat = tokenizer.chat([("user", "What is the capital of France?")])
    answer = greedy(model, chat, 8)
    assert answer[-1] in tokenizer.stop
    assert tokenizer.decode(answer[:-1]) == "The capital of France is Paris."
