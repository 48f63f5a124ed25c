"""examples/primitives/random without a GPU: Philox on the host, its numbers, and what is refused."""

import math

import numpy as np
import pytest

from cudatut.book.primitives.random import launch, philox


def test_the_published_answers():
    for counter, key, words in philox.KNOWN:
        assert tuple(philox.philox(np.array(counter), np.array(key))) == words


def test_a_round_loses_nothing():
    """From the words after ten rounds the counter comes back."""
    counters = np.random.default_rng(0).integers(0, 1 << 32, (100, 4), dtype="uint64")
    key = (0x12345678, 0x9ABCDEF0)
    after = philox.philox(counters, key).astype("object")
    a, b = (pow(m, -1, 1 << 32) for m in philox.MULTIPLIERS)
    for words, counter in zip(after, counters.tolist(), strict=True):
        w = [int(one) for one in words]
        for r in reversed(range(10)):
            k0, k1 = ((k + r * step) % (1 << 32) for k, step in zip(key, philox.STEPS, strict=True))
            x, z = w[3] * a % (1 << 32), w[1] * b % (1 << 32)
            y = w[0] ^ (z * philox.MULTIPLIERS[1] >> 32) ^ k0
            last = w[2] ^ (x * philox.MULTIPLIERS[0] >> 32) ^ k1
            w = [x, y, z, last]
        assert w == counter


@pytest.mark.parametrize("first, n", [(0, 1), (1, 5), (3, 4), (4, 8), (17, 1), (1 << 33, 7)])
def test_words_begin_anywhere(first, n):
    found = philox.words(n, 5, 6, first)
    assert len(found) == n
    begin = first // 4 * 4
    assert np.array_equal(found, philox.words(n + first - begin, 5, 6, begin)[first - begin :])


def test_seeds_and_streams_are_different():
    sets = [philox.words(100, seed, stream).tobytes() for seed, stream in
            ((0, 0), (1, 0), (1 << 32, 0), (0, 1), (0, 1 << 32), ((1 << 64) - 1, 0))]  # fmt: skip
    assert len(set(sets)) == len(sets)


def test_uniform_numbers_are_cut_and_never_one():
    rng = np.random.default_rng(1)
    edges = [
        0,
        1,
        (1 << 24) - 1,
        1 << 24,
        (1 << 24) + 1,
        (1 << 25) + 3,
        (1 << 32) - 1,
        (1 << 31) - 1,
    ]
    w = np.concatenate([np.array(edges, "uint32"), rng.integers(0, 1 << 32, 100_000, dtype="uint32"),
                        rng.integers(0, 1 << 32, 100_000, dtype="uint32") >> rng.integers(0, 32, 100_000, dtype="uint32")])  # fmt: skip
    u = philox.uniform(w)
    exact = w.astype("float64") * 2.0**-32
    assert u.dtype == np.float32 and (u < 1).all() and (u <= exact).all()
    above = np.nextafter(u, np.float32(2)).astype("float64")
    assert (exact < above).all(), "the largest float that is not above it"


def single(w):
    """The kernel's formulas with NumPy's fp32 functions; the sine by fp64, rounded."""
    f = np.float32
    u = (w[0::2].astype("float32").astype("float64") * 2.0**-32 + 2.0**-33).astype("float32")
    radius = np.sqrt(f(-2) * np.log(u))
    _, angle = philox.radius_and_angle(w)
    cosine = np.sin(np.pi * (0.5 - np.abs(angle))).astype("float32")
    sine = np.copysign(np.sin(np.pi * np.minimum(np.abs(angle), 1 - np.abs(angle))), angle).astype(
        "float32"
    )
    return np.stack([radius * cosine, radius * sine], axis=-1).reshape(-1)


def test_fp32_stays_within_the_derived_bounds():
    w = philox.words(2_000_000, 3)
    w[0:16:2] = [0, 1, 127, 128, (1 << 32) - 1, (1 << 32) - 129, (1 << 32) - 200, 1 << 31]
    w[1:16:2] = [0, 1 << 30, 1 << 31, (1 << 31) - 1, (1 << 30) + 1, 3 << 30, (1 << 32) - 1, 64]
    wanted, got = philox.normal(w), single(w)
    assert np.isfinite(wanted).all()
    off = np.abs(got - wanted)
    assert (off <= philox.ERROR * np.abs(wanted) + 1e-30).all()
    assert (off <= philox.bound(w)).all()
    assert np.abs(wanted).max() < 1.000001 * math.sqrt(2 * 33 * math.log(2))


def test_a_bound_that_is_no_bound_is_noticed():
    """Without the rounding of u in the reference, numbers near 0 are off by more."""
    w = philox.words(2_000_000, 3)
    u = w[0::2].astype("float64") * 2.0**-32 + 2.0**-33
    _, angle = philox.radius_and_angle(w)
    other = np.sqrt(-2 * np.log(u)) * np.sin(np.pi * (0.5 - np.abs(angle)))
    off = np.abs(single(w)[0::2] - other)
    assert (off > philox.ERROR * np.abs(other)).any()


def test_words_come_in_pairs():
    with pytest.raises(ValueError, match="pairs"):
        philox.normal(np.zeros(3, "uint32"))


def test_the_price_by_the_formula_is_that_by_summing_up():
    for option in (launch.Option(), launch.Option(50, 40, 0.0, 0.5, 2.0)):
        z = np.linspace(-12, 12, 400_001)
        spread = option.volatility * math.sqrt(option.years)
        drift = (option.rate - option.volatility**2 / 2) * option.years
        payoff = np.maximum(option.price * np.exp(drift + spread * z) - option.strike, 0)
        density = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
        today = math.exp(-option.rate * option.years)
        assert option.exact() == pytest.approx(
            today * (payoff * density).sum() * (z[1] - z[0]), rel=1e-6
        )


def test_numbers_that_do_not_fit_are_refused_before_anything_is_launched():
    option = launch.Option()
    for call in (
        lambda: launch.pi(0, 1), lambda: launch.pi(1 << 63, 1), lambda: launch.pi(5, -1), lambda: launch.pi(5, 1, 1 << 64),
        lambda: launch.price(option, 1, 1), lambda: launch.price(option, 100, 1 << 64),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="random: "):
            call()


def test_a_piece_is_as_long_as_in_the_kernel():
    import re

    from cudatut.paths import examples_dir

    text = (examples_dir() / launch.MEAN).read_text()
    block, each = (
        int(re.search(rf"constexpr int {name} = (\d+);", text)[1]) for name in ("BLOCK", "EACH")
    )
    assert (block, 4 * block * each) == (launch.BLOCK, launch.PIECE)
