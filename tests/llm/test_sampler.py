"""Sampling: known answers of the generator, frequencies, what top-k and top-p keep; guesses by n-grams."""

import numpy as np
import pytest


def test_philox_gives_the_published_words():
    """Known answers of Random123, the authors' own implementation (file kat_vectors)."""
    from cudatut.book.llm.engine.sampler import philox

    answers = [
        ([0, 0, 0, 0], [0, 0], "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            [0xA4093822, 0x299F31D0],
            "d16cfe09 94fdcceb 5001e420 24126ea1",
        ),
    ]
    for counter, (k0, k1), words in answers:
        (found,) = philox(np.array([counter], "uint32"), k0 | k1 << 32)
        assert " ".join(f"{word:08x}" for word in found) == words


def test_gumbel_noise():
    from cudatut.book.llm.engine.sampler import gumbel

    noise = gumbel(100_001, seed=3, request=5, position=7)
    assert noise.dtype == np.float32 and noise.shape == (100_001,) and np.isfinite(noise).all()
    assert abs(noise.mean() - 0.5772) < 0.02 and abs(noise.std() - np.pi / 6**0.5) < 0.02
    # A shorter vocabulary has the same numbers: each token has its own.
    assert (gumbel(10, 3, 5, 7) == noise[:10]).all()
    for other in ((4, 5, 7), (3, 6, 7), (3, 5, 8), (3 + (1 << 40), 5, 7)):
        assert (gumbel(100, *other) != noise[:100]).all()


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_frequencies(temperature):
    """Chi-squared over 4,000 positions."""
    from cudatut.book.llm.engine.sampler import Sampling, sample

    logits = np.array([2.0, 1.0, 0.5, 0.0, -1.0, 1.5], "float32")
    how = Sampling(temperature, seed=11)
    draws = [sample(logits, how, 0, position) for position in range(4000)]
    powers = np.exp(logits / temperature)
    expected = 4000 * powers / powers.sum()
    found = np.bincount(draws, minlength=6)
    assert ((found - expected) ** 2 / expected).sum() < 20.5  # 5 degrees of freedom: p = 0.001


def test_what_is_kept():
    from cudatut.book.llm.engine.sampler import keep_top_k, keep_top_p

    logits = np.log(np.array([0.1, 0.4, 0.2, 0.2, 0.1], "float32"))

    def kept(x):
        return np.flatnonzero(np.isfinite(x)).tolist()

    assert kept(keep_top_k(logits, 1)) == [1]
    assert kept(keep_top_k(logits, 2)) == [1, 2, 3], "equals stay"
    assert kept(keep_top_k(logits, 0)) == kept(keep_top_k(logits, 9)) == [0, 1, 2, 3, 4]
    assert kept(keep_top_p(logits, 0.3)) == [1]
    assert kept(keep_top_p(logits, 0.5)) == kept(keep_top_p(logits, 0.79)) == [1, 2, 3]
    assert kept(keep_top_p(logits, 0.95)) == kept(keep_top_p(logits, 1.0)) == [0, 1, 2, 3, 4]
    assert kept(keep_top_p(np.array([-np.inf, 0, -np.inf], "float32"), 0.9)) == [1]


def test_greedy_and_extremes():
    from cudatut.book.llm.engine.sampler import GREEDY, Sampling, sample

    logits = np.array([1.0, 3.0, 3.0, 2.0], "float32")
    assert sample(logits, GREEDY, 0, 0) == 1, "of equals the first"
    for how in (Sampling(1.0, top_k=1), Sampling(1.0, top_p=1e-6), Sampling(1e-3)):
        assert {sample(logits, how, 0, p) for p in range(50)} == {1, 2}
    for bad in (Sampling(-1.0), Sampling(top_p=0.0), Sampling(top_k=-1), Sampling(seed=-1)):
        with pytest.raises(ValueError, match="must be"):
            bad.check()


def test_ngrams():
    from cudatut.book.llm.engine.sampler import Ngrams

    guess = Ngrams(longest=3, shortest=1)
    assert guess.propose([1], 4) == []
    assert guess.propose([1, 2, 3, 4, 1, 2], 3) == [3, 4, 1]
    # The longest match counts, and of equals the last.
    assert guess.propose([1, 2, 3, 4, 1, 2, 3, 9, 1, 2, 3], 2) == [9, 1]
    assert guess.propose([1, 2, 3, 4, 1, 2, 3, 9, 1, 2, 3, 7], 2) == []
    assert Ngrams(3, 2).propose([5, 1, 6, 1], 2) == []
    assert Ngrams().propose([5, 5], 3) == [5]


def test_ngrams_by_brute_force():
    from cudatut.book.llm.engine.sampler import Ngrams

    rng = np.random.default_rng(0)
    for _ in range(50):
        tokens = rng.integers(0, 3, 40).tolist()
        guess = Ngrams(3, 1)
        for n in range(1, 41):
            known, expected = tokens[:n], []
            for size in (3, 2, 1):
                ends = [e for e in range(size, n) if known[e - size : e] == known[n - size :]]
                if size <= n and ends:
                    expected = known[ends[-1] : ends[-1] + 4]
                    break
            assert guess.propose(known, 4) == expected


def test_accept():
    from cudatut.book.llm.engine.sampler import accept

    assert accept([], [7]) == [7]
    assert accept([1, 2, 3], [1, 2, 3, 4]) == [1, 2, 3, 4]
    assert accept([1, 2, 3], [1, 9, 3, 4]) == [1, 9]
    assert accept([1], [2, 3]) == [2]
