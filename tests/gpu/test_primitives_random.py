"""Random numbers on the GPU: the host's to the last bit or within bounds, whatever the grid; means with their errors."""

import math

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.primitives.random import launch, philox

LENGTHS = (0, 2, 3, 4, 5, 4095, 4096, 4097, 8191, 8192, 8193, *ct.RAGGED)
SEEDS = (0, 0), (1 << 40 | 5, 3), ((1 << 64) - 1, 1 << 63 | 7)


def filled(n, kind, *numbers, begin=0, **how):
    out = ct.empty(n + begin, "uint32" if kind == "words" else "float32")[begin:]
    launch.fill(out, kind, *numbers, **how)()
    return out.get()


def test_the_published_answers():
    counters, keys, words = (np.array([row[i] for row in philox.KNOWN], "uint32") for i in range(3))
    out = ct.empty(words.shape, "uint32")
    kernel = ct.Kernel(launch.FILL, "known")
    kernel(ct.to_device(counters), ct.to_device(keys), out, len(words), grid=1, block=32)
    ct.check(out, words)


def test_any_counter_and_key_as_on_the_host():
    rng = ct.rng(0)
    counters = rng.integers(0, 1 << 32, (1000, 4), dtype="uint32")
    keys = rng.integers(0, 1 << 32, (1000, 2), dtype="uint32")
    out = ct.empty(counters.shape, "uint32")
    kernel = ct.Kernel(launch.FILL, "known")
    kernel(ct.to_device(counters), ct.to_device(keys), out, 1000, grid=4, block=256)
    ct.check(out, philox.philox(counters, keys))


@pytest.mark.parametrize("seed, stream", SEEDS)
@pytest.mark.parametrize("kind", launch.KINDS)
def test_every_length_and_address(kind, seed, stream):
    for n in LENGTHS:
        w = philox.words(n + n % 2, seed, stream)
        for begin in (0, 1):
            got = filled(n, kind, seed, stream, begin=begin)
            if kind in ("words", "uniform"):
                wanted = w if kind == "words" else philox.uniform(w)
                assert np.array_equal(got, wanted[:n])
                continue
            wanted = philox.normal(w)[:n]
            off = np.abs(got - wanted)
            assert np.isfinite(got).all()
            limit = (
                philox.ERROR * np.abs(wanted) + 1e-30 if kind == "normal" else philox.bound(w)[:n]
            )
            assert (off <= limit).all(), (off / limit).max()


@pytest.mark.parametrize("kind", launch.KINDS)
def test_no_launch_and_no_length_changes_an_element(kind):
    whole = filled(100_003, kind, 7, 1)
    for each, block in ((1, 32), (1, 1024), (2, 64), (8, 256), (16, 128)):
        assert np.array_equal(filled(100_003, kind, 7, 1, each=each, block=block), whole)
    for n in (1, 1000, 99_999):
        assert np.array_equal(filled(n, kind, 7, 1), whole[:n])


def test_more_than_two_to_the_31():
    n = (1 << 31) + 7
    try:
        out = ct.empty(n, "uint32")
    except ct.OutOfDeviceMemory as error:
        pytest.skip(str(error))
    launch.fill(out, "words", 3, 4)()
    for first in (0, 1 << 30, n - 1001):
        assert np.array_equal(out[first : first + 1001].get(), philox.words(1001, 3, 4, first))


def test_cuda_s_own_philox_gives_the_same_words():
    text = """#include <curand_kernel.h>
extern "C" __LAUNCHED__ void theirs(uint4* out, int n, unsigned long long seed, unsigned long long sub) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  curandStatePhilox4_32_10_t state;
  curand_init(seed, sub, 4ull * i, &state);
  if (i < n) out[i] = curand4(&state);
}""".replace("__LAUNCHED__", "__global__")
    try:
        kernel = ct.Kernel(text, "theirs")
    except ct.KernelCompileError as error:
        if "curand_kernel.h" in str(error):
            pytest.skip("cuRAND's headers are not installed")
        raise
    out = ct.empty((1000, 4), "uint32")
    kernel(out, 1000, 12345678901, 77, grid=4, block=256)
    assert np.array_equal(out.get().reshape(-1), philox.words(4000, 12345678901, 77))


def test_the_fast_logarithm_leaves_no_number_undefined():
    """Of every u near 1, where it could come out above 0: the words whose u differ are all tried."""
    text = """#include "primitives/random/philox.cuh"
extern "C" __LAUNCHED__ void undefined(unsigned* count) {
  const unsigned word = ~(blockIdx.x * blockDim.x + threadIdx.x) ;
  const float2 pair = normal_pair<true>(word, 0x10000000u);
  if (!(pair.x >= 0 && pair.x < 1) || !(pair.y >= 0 && pair.y < 1)) atomicAdd(count, 1);
}""".replace("__LAUNCHED__", "__global__")
    count = ct.to_device(np.zeros(1, "uint32"))
    ct.Kernel(text, "undefined")(count, grid=1 << 18, block=256)  # u from 0.984 to 1
    assert count.get()[0] == 0


@pytest.mark.parametrize("points", [1, 2, 3, 511, 1_111_111])
def test_pi_is_the_host_s_for_every_grid(points):
    u = philox.uniform(philox.words(2 * points + 2 * points % 4, 5, 6)).reshape(-1, 2)[:points]
    # As the kernel: the first product rounded, the second in a fused multiply-add.
    squares = (u[:, 0] * u[:, 0]).astype("float64") + u[:, 1].astype("float64") ** 2
    hits = int((squares.astype("float32") < 1).sum())
    found = {launch.pi(points, 5, 6, grid=grid).mean * points / 4 for grid in (1, 7, 1000)}
    assert len(found) == 1
    assert abs(found.pop() - hits) <= 1e-6 * points + 1e-6


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("samples", [2, 3, 4, 16_384, 16_385, 1_000_003])
def test_the_price_is_the_host_s_for_every_grid(samples, fast):
    option = launch.Option()
    found = {
        launch.price(option, samples, 9, stream=2, grid=grid, fast=fast) for grid in (1, 7, 500)
    }
    assert len(found) == 1
    z = philox.normal(philox.words(samples + samples % 2, 9, 2))[:samples]
    drift = option.rate - option.volatility**2 / 2
    payoff = np.maximum(option.price * np.exp(drift + option.volatility * z) - option.strike, 0)
    today = math.exp(-option.rate)
    mean, error = found.pop()
    assert mean == pytest.approx(today * payoff.mean(), rel=1e-4, abs=1e-4)
    assert error == pytest.approx(
        today * payoff.std(ddof=1) / math.sqrt(samples), rel=1e-4, abs=1e-4
    )


def test_a_fault_in_a_round_is_noticed():
    from cudatut.paths import examples_dir

    text = (examples_dir() / "primitives/random/philox.cuh").read_text().replace("#pragma once", "")
    fill = (examples_dir() / launch.FILL).read_text().replace('#include "philox.cuh"', "")
    for right, wrong in (
        ("", ""),
        ("round < 10", "round < 9"),
        ("0x9E3779B9", "0x9E3779B8"),
        ("^ counter.w", "^ counter.y"),
    ):
        assert right in text
        source = (text.replace(right, wrong) if right else text) + fill
        out = ct.empty(4096, "uint32")
        ct.Kernel(source, "fill<0,1,256>")(out, 4096, 5, 6, grid=4, block=256)
        assert np.array_equal(out.get(), philox.words(4096, 5, 6)) == (not right), right


def test_what_is_refused():
    out = ct.empty(8, "float32")
    for how in ({"seed": -1}, {"stream": 1 << 64}, {"each": 3}, {"block": 96}):
        with pytest.raises(ValueError):
            launch.fill(out, **how)
    with pytest.raises(TypeError):
        launch.fill(out, "words")
    with pytest.raises(ValueError):
        launch.fill(ct.empty(8, "float32")[::2])
