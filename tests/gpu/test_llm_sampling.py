"""sampling.py against `sampler.sample`, on a GPU; batches and vocabularies are those of FlashInfer's tests."""

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.llm.engine import sampler
from cudatut.book.llm.kernels import sampling
from cudatut.gpu.device import supports


@pytest.fixture(autouse=True)
def needs_sm_80():
    if not supports(ct.device().compute_capability, "sm_80"):
        pytest.skip("sampling.cu needs sm_80")


TEMPERATURES = 0, 0.01, 0.3, 0.7, 1, 1.7, 50
TOP_PS = 1, 1, 0.001, 0.3, 0.9, 0.95, 0.999


def normal(rng, vocab):
    return rng.normal(0, 3, vocab)


def flat(rng, vocab):
    return rng.normal(0, 0.1, vocab)


def ties(rng, vocab):
    return np.round(rng.normal(0, 2, vocab))


def half_forbidden(rng, vocab):
    return np.where(rng.random(vocab) < 0.5, -np.inf, rng.normal(0, 3, vocab))


def masked(rng, vocab):
    return np.where(rng.random(vocab) < 0.9, -1e9, rng.normal(0, 3, vocab))


def far_below(rng, vocab):
    return rng.standard_t(2, vocab) * 5 - 100


def one_peak(rng, vocab):
    logits = rng.normal(-5, 1, vocab)
    logits[rng.integers(vocab)] = 30
    return logits


def zeros_of_both_signs(rng, vocab):
    return np.zeros(vocab) * rng.choice([-1, 1], vocab)


KINDS = normal, flat, ties, half_forbidden, masked, far_below, one_peak, zeros_of_both_signs


def rows_of(kind, m, vocab, columns, rng):
    """Logits with NaN behind the vocabulary."""
    logits = np.full((m, columns), np.nan, "float32")
    for row in logits:
        row[:vocab] = kind(rng, vocab)
    return logits


def parameters(m, vocab, rng):
    """A `sampler.Sampling` per row, as float32 has it; requests and positions."""
    ks = 0, 0, 1, 2, 5, 50, vocab // 2, vocab - 1, vocab, vocab + 5
    hows = [
        sampler.Sampling(
            float(np.float32(rng.choice(TEMPERATURES))),
            int(rng.choice(ks)),
            float(np.float32(rng.choice(TOP_PS))),
            int(rng.integers(1 << 63)) * 2 + 1,
        )
        for _ in range(m)
    ]
    requests = rng.integers(-(1 << 31), 1 << 31, m).astype("int32")
    return hows, requests, rng.integers(0, 1 << 20, m).astype("int32")


def draw(logits, vocab, hows, requests, positions, **how):
    m = len(hows)
    types = "float32", "int32", "float32", "uint64"
    each = zip(*((*h[:3], h.seed or 0) for h in hows), strict=True)
    on_gpu = [ct.to_device(np.array(one, t)) for one, t in zip(each, types, strict=True)]
    tokens = ct.to_device(np.full(m, -7, "int32"))
    best = ct.to_device(np.zeros(m, "uint64"))
    tickets = ct.to_device(np.zeros(m, "uint32"))
    sampling.sample(
        ct.to_device(logits), *on_gpu, ct.to_device(requests), ct.to_device(positions), tokens,
        best, tickets, vocab, **how,
    )  # fmt: skip
    assert not best.get().any() and not tickets.get().any()
    return tokens.get()


def acceptable(got, logits, how, request, position):
    """Whether the reference draws this token, or would if sums and logarithms had other last bits."""
    token = sampler.sample(logits, how, request, position)
    if got == token:
        return True
    for factor in (1 - 1e-6, 1 + 1e-6):
        p = min(how.top_p * factor, 1 - 1e-9) if how.top_p < 1 else 1.0
        if got == sampler.sample(logits, how._replace(top_p=p), request, position):
            return True
    if how.temperature == 0:
        return False
    x = sampler.keep_top_k(logits / np.float32(how.temperature), how.top_k)
    score = sampler.keep_top_p(x, how.top_p) + sampler.gumbel(len(x), how.seed, request, position)
    return abs(score[token] - score[got]) <= 4e-6 * max(1, abs(score[token]))


def check(got, logits, vocab, hows, requests, positions, only=None):
    """The tokens that are not the reference's are few, and near misses."""
    wrong = 0
    for i in range(len(hows)) if only is None else only:
        row, how = np.ascontiguousarray(logits[i, :vocab]), hows[i]
        with np.errstate(all="ignore"):
            drawn = int(requests[i]), int(positions[i])
            assert acceptable(got[i], row, how, *drawn), (i, how)
            wrong += got[i] != sampler.sample(row, how, *drawn)
    assert wrong <= 1 + len(hows) // 100


@pytest.mark.parametrize("vocab", [1, 2, 5, 111, 4099, 32_000, 49_152])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_distribution(kind, vocab):
    rng = ct.rng(vocab)
    for columns in (vocab, vocab + 1, ct.cdiv(vocab, 4) * 4 + 4):
        logits = rows_of(kind, 8, vocab, columns, rng)
        drawn = parameters(8, vocab, rng)
        got = draw(logits, vocab, *drawn)
        check(got, logits, vocab, *drawn)
        for parts in (1, 3):
            np.testing.assert_array_equal(draw(logits, vocab, *drawn, parts=parts), got)


@pytest.mark.parametrize("vocab", [111, 32_000, 128_256])
@pytest.mark.parametrize("m", [1, 99, 989])
def test_batches(m, vocab):
    rng = ct.rng(m)
    logits = rng.standard_normal((m, vocab), "float32") * np.float32(3)
    drawn = parameters(m, vocab, rng)
    got = draw(logits, vocab, *drawn)
    some = rng.permutation(m)[:24]
    check(got, logits, vocab, *drawn, only=some)
    hows, requests, positions = drawn
    for _ in range(2):
        np.testing.assert_array_equal(draw(logits, vocab, *drawn), got)
    for i in some[:5]:  # alone
        alone = draw(logits[i : i + 1], vocab, [hows[i]], requests[i : i + 1], positions[i : i + 1])
        assert alone[0] == got[i]


def test_the_most_probable_token_is_exact():
    rng = ct.rng(3)
    logits = np.round(rng.normal(0, 2, (64, 49_152))).astype("float32")  # of many equals the first
    zeros = np.zeros(64, "int32")
    got = draw(logits, 49_152, [sampler.GREEDY] * 64, zeros, zeros)
    np.testing.assert_array_equal(got, logits.argmax(axis=1))


def test_frequencies_are_the_probabilities():
    probabilities = np.array([0.5, 0.25, 0.125, 0.0625, 0.0625])
    count = 20_000
    logits = np.broadcast_to(np.log(probabilities).astype("float32"), (count, 5)).copy()
    zeros, positions = np.zeros(count, "int32"), np.arange(count, dtype="int32")
    for top_k, top_p, kept in ((0, 1.0, 5), (3, 1.0, 3), (0, 0.7, 2), (2, 0.9, 2)):
        how = sampler.Sampling(1.0, top_k, top_p, 11)
        got = draw(logits, 5, [how] * count, zeros, positions)
        share = np.bincount(got, minlength=5) / count
        expected = np.where(np.arange(5) < kept, probabilities, 0)
        np.testing.assert_allclose(share, expected / expected.sum(), atol=0.015)


def test_nothing_breaks_on_nan():
    logits = np.full((4, 300), np.nan, "float32")
    logits[2:] *= -1
    logits[1::2, 100] = 1
    hows = [sampler.Sampling(1.0, 5, 0.9, 1), sampler.Sampling(1.0, 0, 1.0, 1)] * 2
    zeros = np.zeros(4, "int32")
    got = draw(logits, 300, hows, zeros, zeros)
    assert ((got >= 0) & (got < 300)).all()


def test_vocabularies_that_are_refused():
    rng = ct.rng(0)
    logits, drawn = rng.standard_normal((2, 8), "float32"), parameters(2, 8, rng)
    for vocab in (0, 9):
        with pytest.raises(ValueError, match="vocabulary"):
            draw(logits, vocab, *drawn)


UNIFORM = """
#include "llm/kernels/sampling.cuh"
extern "C" __global__ void numbers(const unsigned* words, float* out, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) out[i] = uniform(words[i]);
}
"""


def test_random_words_as_numbers_below_1():
    """Of the last words, too, which would be rounded to 1: the largest number is that below it."""
    last = np.arange(2**32 - 600, 2**32, dtype="uint64")
    drawn = ct.rng(1).integers(0, 2**32, 3000)
    words = np.concatenate([np.arange(600), drawn, last]).astype("uint32")
    out = ct.empty(len(words), "float32")
    ct.Kernel(UNIFORM, "numbers")(
        ct.to_device(words), out, len(words), grid=ct.cdiv(len(words), 256), block=256
    )
    rounded = words.astype("float32").astype("float64") * 2.0**-32 + 2.0**-33
    want = np.minimum(rounded.astype("float32"), np.float32(1 - 2.0**-24))
    np.testing.assert_array_equal(out.get(), want)
    assert out.get().min() > 0 and out.get().max() == np.float32(1 - 2.0**-24)
