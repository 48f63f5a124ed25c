"""All layers by one cluster: the residual stream and the cache as the launches of gpu_backend.py leave them."""

import dataclasses
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import cudatut as ct

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples" / "llm"))

pytest.importorskip("gguf")

NAN = np.uint16(0x7FC0)
# 38 and 40 strips of 16 outputs for 8 blocks, rows of 19, 12 and 10 blocks of 32.
SMALL = {
    "layers": 3, "dim": 608, "heads": 6, "kv_heads": 2, "ffn": 320, "vocab": 64, "context": 2048,
}  # fmt: skip
ONE_HEAD = SMALL | {"dim": 256, "heads": 4, "kv_heads": 1, "head_dim": 128}
LIKE_SMOLLM2 = {"layers": 4, "vocab": 64, "context": 2048}


@pytest.fixture(scope="module", autouse=True)
def clusters():
    if ct.device().compute_capability < (9, 0):
        pytest.skip("clusters of blocks need sm_90")
    if ct.device().shared_per_block_optin < 200 << 10:
        pytest.skip("the ring of weights needs more shared memory than a block has here")


class Stored:
    """What a backend asks of a Checkpoint: random numbers, stored in blocks."""

    def __init__(self, kind, sizes):
        import gguf
        from random_model import SMOLLM2
        from tiny import random_weights

        self.config = dataclasses.replace(SMOLLM2, **sizes)
        self.kind = kind
        quants, type_ = gguf.quants, gguf.GGMLQuantizationType[kind]
        self._arrays, self._blocks = random_weights(self.config, seed=5), {}
        for name, array in self._arrays.items():
            if array.ndim == 2:
                self._blocks[name] = quants.quantize(array, type_)
                self._arrays[name] = quants.dequantize(self._blocks[name], type_)

    def type(self, name):
        return self.kind

    def array(self, name):
        return self._arrays[name]

    def blocks(self, name):
        return self._blocks[name]


_models = {}


def made(kind, sizes, block_size):
    """A backend, the random cache of 1,040 tokens, and a table of its blocks; made once."""
    from gpu_backend import GpuBackend

    key = kind, tuple(sizes.items()), block_size
    if key not in _models:
        checkpoint = Stored(kind, sizes)
        if checkpoint.kind == "Q4_1":  # embed takes rows of Q8_0 or bf16
            checkpoint.type = lambda name: "BF16" if name in ("embedding", "head") else "Q4_1"
        count = ct.cdiv(1040, block_size)
        backend = GpuBackend(
            checkpoint, count + 3, block_size, max_tokens=16, max_requests=1, graphs=False
        )
        rng = np.random.default_rng(3)
        table = rng.permutation(count + 3)[:count].astype("int32")
        cache = rng.standard_normal((2, *backend.keys.shape), "float32").view("uint32") >> 16
        _models.clear()  # one of them at a time in the GPU's memory
        _models[key] = backend, cache.astype("uint16"), table
    return _models[key]


def arrays(backend, table, length, block_size, slot=None):
    """The step's arrays, on the host; blocks behind the last are -1."""
    last = length - 1
    if slot is None:
        slot = int(table[last // block_size]) * block_size + last % block_size
    shown = np.where(np.arange(len(table)) <= last // block_size, table, -1)[None]
    found = [7], [last], [slot], [0, 1], [length], shown, [0], np.zeros((0, 2))
    return [np.ascontiguousarray(array, "int32") for array in found]


def fill(backend, cache, table, length, block_size):
    """Keys and values of all tokens but the last; NaN elsewhere. Returns what was written."""
    tokens = np.arange(length - 1)
    slots = table[tokens // block_size] * block_size + tokens % block_size
    hosts = []
    for array, random in zip((backend.keys, backend.values), cache):
        host = np.full(array.shape, NAN)
        host[:, slots] = random[:, slots]
        array.set(host)
        hosts.append(host)
    return hosts


def by_launches(backend, batch):
    from batch import Batch

    backend.run(Batch(*batch))
    ct.synchronize()
    return backend.x[:1].get(), backend.keys.get(), backend.values.get()


class Cluster:
    def __init__(self, backend, batch, block_size, cluster=8):
        import activation
        from cluster import Layers

        self.backend, b = backend, backend
        on_gpu = [ct.to_device(array) for array in batch[:6]]
        tokens, positions, slots, _, lengths, tables = on_gpu
        self.layers = Layers(b.weights.layers, b.caches, b.config, cluster)

        def work(stream=b.stream):
            activation.embed(tokens, b.weights.embedding, b.x[:1], stream, b.drawn)
            self.layers.step(
                b.x[:1], positions, slots, lengths, tables, block_size, b.turns, stream
            )

        self.work = work

    def result(self):
        ct.synchronize()
        b = self.backend
        return b.x[:1].get(), b.keys.get(), b.values.get()


def floats(bits):
    return (bits.astype("uint32") << 16).view("float32")


def near(got, want, slot, before):
    """x, keys and values; `slot` is the only one that was written."""
    x, expected = got[0], want[0]
    error, largest = np.abs(x - expected).max(), np.abs(expected).max()
    assert error < 0.03 * largest, (error, largest)  # as test_llm_backend.py has it
    for mine, theirs, host in zip(got[1:], want[1:], before):
        others = np.arange(host.shape[1]) != slot
        np.testing.assert_array_equal(mine[:, others], host[:, others])
        if slot >= 0:
            a, b = floats(mine[:, slot]), floats(theirs[:, slot])
            assert np.abs(a - b).max() < 0.03 * np.abs(b).max()


@pytest.mark.parametrize("kind", ["Q4_1", "Q8_0"])
@pytest.mark.parametrize("sizes", [SMALL, ONE_HEAD, LIKE_SMOLLM2], ids=["small", "one", "smollm2"])
@pytest.mark.parametrize("block_size", [1, 7, 16])
def test_as_the_launches(kind, sizes, block_size):
    backend, cache, table = made(kind, sizes, block_size)
    for length in (1, 2, 8, 9, 31, 32, 33, 65, 300, 999, 1000):
        batch = arrays(backend, table, length, block_size)
        before = fill(backend, cache, table, length, block_size)
        want = by_launches(backend, batch)
        fill(backend, cache, table, length, block_size)
        cluster = Cluster(backend, batch, block_size)
        cluster.work()
        near(cluster.result(), want, int(batch[2][0]), before)


@pytest.mark.parametrize("cluster", [2, 4, 8, 16])
def test_clusters_of_other_sizes(cluster):
    backend, cache, table = made("Q4_1", LIKE_SMOLLM2, 16)
    batch = arrays(backend, table, 100, 16)
    before = fill(backend, cache, table, 100, 16)
    want = by_launches(backend, batch)
    fill(backend, cache, table, 100, 16)
    run = Cluster(backend, batch, 16, cluster)
    run.work()
    near(run.result(), want, int(batch[2][0]), before)


def test_a_token_without_a_slot_stores_nothing():
    backend, cache, table = made("Q4_1", LIKE_SMOLLM2, 16)
    before = fill(backend, cache, table, 40, 16)
    stored = Cluster(backend, arrays(backend, table, 40, 16), 16)
    stored.work()
    want = stored.result()
    fill(backend, cache, table, 40, 16)
    run = Cluster(backend, arrays(backend, table, 40, 16, slot=-1), 16)
    run.work()
    got = run.result()
    np.testing.assert_array_equal(got[0], want[0])
    for mine, host in zip(got[1:], before):
        np.testing.assert_array_equal(mine, host)


def test_the_same_bits_again_and_in_a_graph():
    from graphs import Graph

    backend, cache, table = made("Q4_1", LIKE_SMOLLM2, 16)
    fill(backend, cache, table, 77, 16)
    run = Cluster(backend, arrays(backend, table, 77, 16), 16)
    run.work()
    want = run.result()
    for overlap in (False, True):
        graph = Graph(run.work, backend.stream, overlap)
        for _ in range(20):
            graph.launch()
            for got, expected in zip(run.result(), want):
                np.testing.assert_array_equal(got, expected)


def test_what_is_refused():
    from cluster import Layers, refusal, slot_bytes
    from gemv import Q4_1

    backend, _, table = made("Q4_1", LIKE_SMOLLM2, 16)
    layers, caches, config = backend.weights.layers, backend.caches, backend.config
    for change, message in (
        ({"cluster": 5}, "cluster of 5"),
        ({"layers": layers[:1]}, "1 layers and 4 caches"),
        ({"config": dataclasses.replace(config, head_dim=80)}, "heads of 80"),
        ({"config": dataclasses.replace(config, dim=96)}, "each of 8 blocks needs 16"),
        ({"layers": [layer._replace(o=SimpleNamespace(stored=layer.o.bf16)) for layer in layers]},
         "weights in BF16, Q4_1"),
        ({"caches": [(ct.empty((8, 3, 32), "uint16"),) * 2] * 4}, "keys is"),
    ):  # fmt: skip
        good = {"layers": layers, "caches": caches, "config": config, "cluster": 8}
        with pytest.raises(ValueError, match=message):
            Layers(**good | change)
    assert not refusal(config, 16)
    with pytest.raises(ValueError, match="do not fit into the 49152"):
        slot_bytes(config, Q4_1, 8, 49152)
    good = Layers(layers, caches, config)
    a = list(map(ct.to_device, arrays(backend, table, 9, 16)[:6]))
    step = {
        "x": backend.x[:1], "positions": a[1], "slots": a[2], "lengths": a[4], "tables": a[5],
        "block_size": 16, "turns": backend.turns,
    }  # fmt: skip
    for change, message in (
        ({"x": backend.x[:2]}, "x is"),
        ({"slots": a[3]}, "slots is"),
        ({"tables": a[4]}, "tables is"),
        ({"block_size": 0}, "blocks of 0"),
        ({"turns": backend.x}, "turns is"),
    ):
        with pytest.raises(ValueError, match=message):
            good.step(**step | change)
