"""examples/primitives/random without a GPU: Philox on the host, its numbers, fill.cu on a CPU, and what is refused."""

import math
import re
import subprocess
from pathlib import Path

import gpp
import numpy as np
import pytest

from cudatut.book.primitives.random import launch, philox
from cudatut.paths import examples_dir

HERE = Path(__file__).resolve().parent


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


@pytest.mark.parametrize("first", [0, 4 * 0x89ABCDEF, 4 * 0x123456789, (1 << 65) + 4])
def test_a_counter_is_the_index_then_the_stream_and_the_key_is_the_seed(first):
    seed, stream, index = 0x0123456789ABCDEF, 0xFEDCBA9876543210, first // 4
    counter = index & 0xFFFFFFFF, index >> 32, 0x76543210, 0xFEDCBA98
    wanted = philox.philox(counter, (0x89ABCDEF, 0x01234567))
    assert np.array_equal(philox.words(4, seed, stream, first), wanted)


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
    text = (examples_dir() / launch.MEAN).read_text()
    block, each = (
        int(re.search(rf"constexpr int {name} = (\d+);", text)[1]) for name in ("BLOCK", "EACH")
    )
    assert (block, 4 * block * each) == (launch.BLOCK, launch.PIECE)


# --- fill.cu on a CPU ------------------------------------------------------------------------------

MARKS = np.full(8, 0xABCDEF01, "uint32")
SEED, STREAM = (1 << 40) + 5, 3 << 32 | 7


def fills(folder, change=lambda text: text):
    """The program of random_on_cpu.cpp. change: of the text of the kernels."""
    home = examples_dir() / "primitives/random"
    text = (home / "fill.cu").read_text()
    text = change(text.replace('#include "philox.cuh"', (home / "philox.cuh").read_text()))
    for name, function in (("lg2", "log2f"), ("sqrt", "sqrtf")):
        asm = rf'asm\("{name}\.approx\.ftz\.f32 %0, %1;" : "=f"\(y\) : "f"\(x\)\);'
        text, found = re.subn(asm, f"y = {function}(x);", text)
        assert found == 1
    header = folder / "kernels.h"
    header.write_text(text.replace("#pragma once", ""))
    flags = "-O1", "-std=c++20", "-fno-strict-aliasing", "-ffp-contract=off"
    return gpp.compiled(
        HERE / "random_on_cpu.cpp", *flags, places=(f'-DKERNELS="{header}"', f"-I{folder}")
    )


def wrong(made, kind, each, n, seed=SEED, stream=STREAM):
    """What is wrong with n numbers, or None. each: counters of a thread; 0 for fill_one."""
    numbers = map(str, (launch.KINDS[kind], each, n, seed, stream))
    done = subprocess.run([made, *numbers], capture_output=True, check=True, timeout=60)
    out = np.frombuffer(done.stdout, "uint32")
    if not np.array_equal(out[n:], MARKS):
        return "writes beyond the end"
    got, w = out[:n], philox.words(n + n % 2, seed, stream)
    if kind == "words":
        return None if np.array_equal(got, w[:n]) else "other words"
    got = got.view("float32")
    if kind == "uniform":
        return None if np.array_equal(got, philox.uniform(w)[:n]) else "other numbers"
    wanted = philox.normal(w)[:n]
    exact = philox.ERROR * np.abs(wanted) + 1e-30
    allowed = exact if kind == "normal" else philox.bound(w)[:n]
    return None if (np.abs(got - wanted) <= allowed).all() else "off by more than the bound"


@pytest.mark.parametrize("kind", launch.KINDS)
def test_the_kernels_fill_every_length_with_the_numbers_of_the_host(kind, tmp_path):
    made = fills(tmp_path)
    for each in (0, 1, 4):
        for n in (1, 2, 3, 5, 255, 256, 257, 1023, 1024, 1025, 5000):
            assert wrong(made, kind, each, n) is None, (each, n)


@pytest.mark.sweep(3)
@pytest.mark.parametrize(
    "was, instead, kind, each, says",
    [
        ("round < 10", "round < 9", "words", 4, "other words"),
        ("^ counter.w ^ key.y", "^ counter.y ^ key.y", "words", 4, "other words"),
        ("(unsigned)stream, (unsigned)(stream >> 32)", "(unsigned)stream, 0", "words", 4, "other words"),
        ("(unsigned)(seed >> 32)}", "0}", "words", 4, "other words"),
        ("__uint2float_rz(word)", "(float)word", "uniform", 4, "other numbers"),
        ("radius * sine}", "radius * cosine}", "normal", 4, "off by more"),
        ("0x1p-33f)", "0.0f)", "normal", 4, "off by more"),
        ("EACH * BLOCK) <= n)", "EACH * BLOCK) <= n + 4)", "words", 1, "beyond the end"),
        ("at + k < n", "at + k <= n", "words", 4, "beyond the end"),
        ("if (i >= n) return;", "if (i > n) return;", "words", 0, "beyond the end"),
        ("const int k = i % 4;", "const int k = (i + 1) % 4;", "words", 0, "other words"),
    ],
)  # fmt: skip
def test_a_fault_in_the_kernels_is_noticed(was, instead, kind, each, says, tmp_path):
    def change(text):
        assert was in text
        return text.replace(was, instead, 1)

    made = fills(tmp_path, change)
    found = [wrong(made, kind, each, n) for n in (253, 1023, 200_000)]
    assert any(says in (one or "") for one in found), found
