"""The GPU's backend: logits as the NumPy backend has them, and the same bits however a request is batched where the
batch-invariant mode promises them."""

from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]

pytest.importorskip("gguf")

CHARACTERS = "abcdefghijklmnopqrstuvwxyz .,春眠不觉晓处闻啼鸟"
SIZE = 16


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    from cudatut.book.llm.model.checkpoint import Checkpoint, Config
    from cudatut.book.llm.model.tiny import SPECIAL, random_weights, save

    config = Config(
        layers=3, dim=192, heads=6, kv_heads=2, head_dim=64, ffn=320, context=2048, tied=False,
        vocab=len(SPECIAL) + len(CHARACTERS),
    )  # fmt: skip
    path = tmp_path_factory.mktemp("model") / "random.gguf"
    save(path, config, random_weights(config, seed=5), CHARACTERS)
    return Checkpoint.open(path)


@pytest.fixture(scope="module")
def prompts(checkpoint):
    rng = np.random.default_rng(1)
    return [
        rng.integers(3, checkpoint.config.vocab, n).tolist()
        for n in (1, 5, 16, 33, 70, 129, 300, 17)
    ]


class Watched:
    """A backend that keeps what it is given and the logits that it gives."""

    def __init__(self, backend):
        self.backend, self.seen = backend, []
        self.config, self.block_count, self.block_size = (
            backend.config,
            backend.block_count,
            backend.block_size,
        )
        self.room = backend.room

    def run(self, batch):
        logits = self.backend.run(batch)
        host = (
            logits
            if isinstance(logits, np.ndarray)
            else logits.get()
            if len(batch.wanted)
            else None
        )
        self.seen.append((batch, host))
        return logits

    def sample(self, logits, draws):
        return self.backend.sample(logits, draws)

    def fetch(self, drawn):
        return self.backend.fetch(drawn)


def answers(backend, prompts, count, ahead=False, **options):
    """Outputs of all requests, and the bits of the logits of each by (request, position)."""
    from cudatut.book.llm.engine.blocks import NaiveBlocks
    from cudatut.book.llm.engine.engine import Engine
    from cudatut.book.llm.engine.request import Request
    from cudatut.book.llm.engine.scheduler import Scheduler

    options = {"token_budget": 512, "max_running": 8, "context": 2048, **options}
    watched = Watched(backend)
    scheduler = Scheduler(NaiveBlocks(backend.block_count, SIZE), **options)
    engine = Engine(watched, scheduler, ahead=ahead)
    requests = [Request(i, prompt, count) for i, prompt in enumerate(prompts)]
    for request in requests:
        engine.add(request)
    found = {}
    while engine.busy:
        before = len(watched.seen)
        engine.step()
        if len(watched.seen) == before:
            continue
        batch, logits = watched.seen[-1]
        work = [work.request.id for work in engine.last.work]
        for row, token in enumerate(batch.wanted.tolist()):
            i = int(np.searchsorted(batch.starts, token, side="right")) - 1
            found[work[i], int(batch.positions[token])] = logits[row].copy()
    return [request.output for request in requests], found, watched


def gpu(checkpoint, count=256, **options):
    from cudatut.book.llm.backends.gpu_backend import GpuBackend

    return GpuBackend(checkpoint, count, SIZE, **{"max_tokens": 512, "max_requests": 8, **options})


@pytest.mark.parametrize("graphs", [False, True])
@pytest.mark.parametrize("invariant", [False, True])
def test_logits_are_those_of_the_reference(checkpoint, prompts, graphs, invariant):
    from cudatut.book.llm.backends.numpy_backend import NumpyBackend

    _, _, watched = answers(NumpyBackend(checkpoint, 256, SIZE), prompts, 12, token_budget=200)
    backend = gpu(checkpoint, graphs=graphs, batch_invariant=invariant)
    worst = largest = 0.0
    for _ in range(2 if graphs else 1):  # the second time from the graphs
        for batch, expected in watched.seen:
            got = backend.run(batch)
            if len(batch.wanted):
                worst = max(worst, float(np.abs(got.get() - expected).max()))
                largest = max(largest, float(np.abs(expected).max()))
    print(f"largest error {worst:.3g} of logits up to {largest:.3g}")
    # bf16 has 8 bits: three layers of a few rounded numbers each.
    assert worst < 0.03 * largest


@pytest.mark.parametrize("graphs", [False, True])
def test_few_tokens_behind_many(checkpoint, graphs, monkeypatch):
    """Chunks of 64 tokens of long prompts: their keys are dealt out to several blocks."""
    from cudatut.book.llm.backends.numpy_backend import NumpyBackend
    from cudatut.book.llm.kernels.attention import flash_parts

    rng, dealt, paged = np.random.default_rng(2), [], flash_parts.paged
    long = [rng.integers(3, checkpoint.config.vocab, n).tolist() for n in (1500, 700)]
    monkeypatch.setattr(
        flash_parts, "paged", lambda *a, **more: dealt.append(a[9]) or paged(*a, **more)
    )
    _, _, watched = answers(NumpyBackend(checkpoint, 256, SIZE), long, 3, token_budget=64)
    backend = gpu(checkpoint, graphs=graphs)
    worst = largest = 0.0
    for _ in range(2 if graphs else 1):
        for batch, expected in watched.seen:
            got = backend.run(batch)
            if len(batch.wanted):
                worst = max(worst, float(np.abs(got.get() - expected).max()))
                largest = max(largest, float(np.abs(expected).max()))
    assert dealt and max(dealt) > 1
    assert worst < 0.03 * largest


class Rounded:
    """The cache of a NumPy backend, that keeps what FP8 keeps."""

    def __init__(self, array, scales):
        self.array, self.scales = array, scales

    def __setitem__(self, at, x):
        from llm_fp8 import from_fp8, store

        if isinstance(at[0], int):  # a layer; otherwise blocks are copied
            by = self.scales[at[0]]
            x = from_fp8(store(x, by)) * by[:, None]
        self.array[at] = x

    def __getitem__(self, at):
        return self.array[at]


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("graphs", [False, True])
@pytest.mark.parametrize("invariant", [False, True])
def test_fp8_logits_are_those_of_the_reference(checkpoint, prompts, graphs, invariant, scaled):
    from cudatut.book.llm.backends.numpy_backend import NumpyBackend
    from cudatut.book.llm.serving.kv_scales import fp8_scales

    c = checkpoint.config
    exact = NumpyBackend(checkpoint, 256, SIZE)
    _, _, watched = answers(exact, prompts, 12, token_budget=200)
    scales = np.ones((c.layers, 2, c.kv_heads), "float32")
    if scaled:
        seen = [np.nanmax(np.abs(x), axis=(1, 3)) for x in (exact.keys, exact.values)]
        scales = fp8_scales(np.stack(seen, axis=1))
    rounded = NumpyBackend(checkpoint, 256, SIZE)
    rounded.keys = Rounded(rounded.keys, scales[:, 0])
    rounded.values = Rounded(rounded.values, scales[:, 1])
    backend = gpu(checkpoint, graphs=graphs, batch_invariant=invariant, kv="fp8")
    backend.scales.set(scales)
    off, step, largest = [], [], 0.0
    for batch, logits in watched.seen:
        expected, got = rounded.run(batch), backend.run(batch)
        if len(batch.wanted):
            off.append(np.abs(got.get() - expected).ravel())
            step.append(np.abs(logits - expected).ravel())
            largest = max(largest, float(np.abs(expected).max()))
    off, step = np.concatenate(off), np.concatenate(step)
    print(f"off {off.mean():.3g} {off.max():.3g}, FP8 itself {step.mean():.3g} {step.max():.3g}")
    # The error of bf16 decides some roundings to FP8, of which a step is 16 times as large: so the backend is nearer
    # to the rounded reference than that is to the exact one, but not much.
    assert off.max() < 0.1 * largest and off.mean() < 0.8 * step.mean()


def test_fp8_has_the_same_bits_however_it_is_batched(checkpoint, prompts):
    outputs, bits, _ = answers(gpu(checkpoint, batch_invariant=True, kv="fp8"), prompts[:6], 12)
    for how in ({"max_running": 1}, {"token_budget": 17}):
        backend = gpu(checkpoint, batch_invariant=True, kv="fp8")
        again, other, _ = answers(backend, prompts[:6], 12, **how)
        assert again == outputs
        for key in bits.keys() & other.keys():
            np.testing.assert_array_equal(bits[key], other[key], err_msg=str(key))


def test_a_cache_that_there_is_not(checkpoint):
    with pytest.raises(ValueError, match="a cache in 'int8'"):
        gpu(checkpoint, kv="int8")


@pytest.mark.parametrize(
    "how",
    [
        {"max_running": 1},
        {"token_budget": 40},
        {"token_budget": 17},
        {"count": 30},
        {"graphs": False},
        {"ahead": True},
    ],
)
def test_the_same_bits_however_it_is_batched(checkpoint, prompts, how):
    how = dict(how)
    count = how.pop("count", 256)  # with few blocks requests are preempted
    graphs = how.pop("graphs", True)
    prompts = prompts[:6] if count < 256 else prompts
    backend = gpu(checkpoint, batch_invariant=True)
    outputs, bits, _ = answers(backend, prompts, 20)
    other = gpu(checkpoint, count, batch_invariant=True, graphs=graphs)
    again, other, _ = answers(other, prompts, 20, **how)
    assert again == outputs
    for key in bits.keys() & other.keys():
        np.testing.assert_array_equal(bits[key], other[key], err_msg=str(key))
    assert len(bits.keys() & other.keys()) >= 20 * len(prompts) - len(prompts)


@pytest.mark.parametrize("graphs", [False, True])
def test_a_step_ahead_has_the_same_bits(checkpoint, prompts, graphs):
    """Its tokens never were on the host when they were read."""
    backend = gpu(checkpoint, graphs=graphs)
    outputs, bits, _ = answers(backend, prompts[:5], 20)
    again, other, watched = answers(backend, prompts[:5], 20, ahead=True)
    assert again == outputs
    assert any((batch.tokens < 0).any() for batch, _ in watched.seen)
    same = [np.array_equal(logits, other[key]) for key, logits in bits.items() if key in other]
    assert len(same) >= 95 and all(same)


def test_repeated_runs_have_the_same_bits(checkpoint, prompts):
    backend = gpu(checkpoint)
    first, second = (answers(backend, prompts, 20)[:2] for _ in range(2))
    assert first[0] == second[0]
    for key, logits in first[1].items():
        np.testing.assert_array_equal(logits, second[1][key])


def test_too_much_for_one_step_is_refused(checkpoint, prompts):
    backend = gpu(checkpoint, max_tokens=64)
    with pytest.raises(ValueError, match="room for 64"):
        answers(backend, prompts, 2, token_budget=512)


def test_a_request_beyond_the_context_is_refused(checkpoint):
    from cudatut.book.llm.engine.batch import Batch

    at = checkpoint.config.context  # the first position without a row in RoPE's table
    table = np.arange(at // SIZE + 1)[None]
    arrays = [3], [at], [at], [0, 1], [at + 1], table, [0], np.zeros((0, 2))
    batch = Batch(*(np.ascontiguousarray(array, "int32") for array in arrays))
    with pytest.raises(ValueError, match="the model knows 2048"):
        gpu(checkpoint).run(batch)


def test_a_model_that_no_kernel_takes(checkpoint, monkeypatch):
    import dataclasses

    monkeypatch.setattr(checkpoint, "config", dataclasses.replace(checkpoint.config, head_dim=48))
    with pytest.raises(ValueError, match="heads of 48"):
        gpu(checkpoint)


def test_attention_for_hopper_is_taken(checkpoint, prompts, monkeypatch):
    from cudatut.book.llm.backends.numpy_backend import NumpyBackend
    from cudatut.book.llm.kernels.attention import flash_hopper_paged, flash_parts

    if not flash_hopper_paged.available(64, 16):
        pytest.skip("flash_hopper_paged.cu needs sm_90a")
    used, paged = [], flash_hopper_paged.paged

    def noted(*arrays, **how):
        used.append(len(arrays))
        paged(*arrays, **how)

    monkeypatch.setattr(flash_hopper_paged, "paged", noted)
    monkeypatch.setattr(flash_hopper_paged, "LEAST", 0)
    monkeypatch.setattr(flash_parts, "parts", lambda *_: 1)
    new = gpu(checkpoint, 256)
    assert new.hopper and not gpu(checkpoint, 16, batch_invariant=True).hopper
    assert not gpu(checkpoint, 16, kv="fp8").hopper
    _, _, watched = answers(NumpyBackend(checkpoint, 256, SIZE), prompts, 4, token_budget=200)
    worst = largest = 0.0
    for _ in range(2):  # the second time from the graphs
        for batch, expected in watched.seen:
            got = new.run(batch)
            if len(batch.wanted):
                worst = max(worst, float(np.abs(got.get() - expected).max()))
                largest = max(largest, float(np.abs(expected).max()))
    assert used and worst < 0.03 * largest
