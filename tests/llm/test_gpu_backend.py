"""What the GPU's backend does on the host: how a step's arrays are arranged, and weights as bf16."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cudatut.book.llm.backends.step_shape import arrange, coarse, coarse_rows, power_of_two, rounded
from cudatut.book.llm.engine.arrivals import Clock, ModelBackend, replay, uniform, workload
from cudatut.book.llm.engine.batch import Batch
from cudatut.book.llm.engine.blocks import NaiveBlocks
from cudatut.book.llm.engine.engine import Engine
from cudatut.book.llm.engine.scheduler import Scheduler
from cudatut.book.llm.kernels.attention import flash
from cudatut.book.numbers.bf16 import to_bf16, to_float

TILE = flash.tile_for(64)


def make(sizes, pasts, wants, width):
    """A batch of requests with so many new tokens after so many old ones."""
    sizes, pasts = np.array(sizes), np.array(pasts)
    n, lengths = int(sizes.sum()), sizes + pasts
    starts = np.concatenate([[0], np.cumsum(sizes)])
    positions = np.concatenate([np.arange(p, p + k) for p, k in zip(pasts, sizes)])
    rng = np.random.default_rng(n)
    wanted = [starts[i + 1] - 1 - back for i, k in enumerate(wants) for back in reversed(range(k))]
    arrays = (
        rng.integers(0, 1000, n), positions, rng.permutation(100 * n)[:n], starts, lengths,
        rng.integers(0, 50, (len(sizes), width)), np.array(wanted), np.zeros((0, 2)),
    )  # fmt: skip
    return Batch(*(np.ascontiguousarray(array, "int32") for array in arrays))


requests = st.lists(
    st.tuples(st.sampled_from([1, 1, 1, 2, 5, 130, 300]), st.integers(0, 700), st.integers(0, 2)),
    min_size=1,
    max_size=12,
)


@settings(max_examples=200, deadline=None)
@given(requests, st.integers(1, 9), st.booleans(), st.booleans())
def test_every_token_has_its_row(found, width, by_flash, rounded):
    sizes, pasts, wants = zip(*found)
    wants = [min(want, size) for want, size in zip(wants, sizes)]
    batch = make(sizes, pasts, wants, width)
    shape, a = arrange(batch, TILE, by_flash, rounded)
    assert all(array.dtype == np.int32 and array.flags.c_contiguous for array in a.values())
    one = next((i for i, size in enumerate(sizes) if size != 1), len(sizes))
    one = 0 if by_flash else one
    n, s = len(batch.tokens), len(sizes)
    rows = np.concatenate([np.arange(one), shape.decode + np.arange(n - one)])
    for name in ("tokens", "positions", "slots"):
        np.testing.assert_array_equal(a[name][rows], getattr(batch, name))
    others = np.setdiff1d(np.arange(shape.decode + shape.tokens), rows)
    assert (a["slots"][others] == -1).all(), "rows that are added store nothing"
    np.testing.assert_array_equal(a["lengths"][:one], batch.lengths[:one])
    np.testing.assert_array_equal(a["tables"][:one, :width], batch.tables[:one])
    np.testing.assert_array_equal(a["flash tables"][: s - one, :width], batch.tables[one:])
    assert (a["lengths"][one:] == 0).all() and (a["tables"][one:] == -1).all()
    # Of each of the others, its rows; of those that are added, none.
    starts = a["flash starts"]
    expected = np.zeros(shape.requests, int)
    expected[: s - one] = np.diff(batch.starts)[one:]
    np.testing.assert_array_equal(np.diff(starts), expected)
    np.testing.assert_array_equal(rows[batch.wanted], a["wanted"][: len(batch.wanted)])
    if len(batch.tokens) > one:
        assert starts[0] == shape.decode
    queries = [(i, j) for i, j in a["work"].tolist() if i >= 0]
    assert len(set(queries)) == len(queries) <= shape.items
    covered = sum(
        min(batch.lengths[one + i], ((batch.lengths[one + i] - expected[i]) // TILE.bm + j + 1) * TILE.bm)
        - max(batch.lengths[one + i] - expected[i], ((batch.lengths[one + i] - expected[i]) // TILE.bm + j) * TILE.bm)
        for i, j in queries
    )  # fmt: skip
    assert covered == n - one, "every query is in one tile"
    if rounded:
        assert all(power_of_two(x) == x for x in shape)
        # What the backend has room for: see its arrays.
        assert shape.decode + shape.tokens <= 2 * coarse_rows(n)
        assert shape.decode <= coarse_rows(s) and shape.requests <= coarse(s, 16)
        assert shape.logits <= coarse_rows(len(batch.wanted)) and shape.width <= coarse(width, 64)
        assert shape.items <= coarse(flash.most_items(2 * coarse_rows(n), s, TILE), 2)


def test_rounded_sizes():
    assert [power_of_two(n) for n in (0, 1, 2, 3, 5, 8, 9)] == [0, 1, 2, 4, 8, 8, 16]
    assert [coarse(n, 16) for n in (0, 1, 16, 17, 64, 65)] == [0, 16, 16, 64, 64, 256]
    assert [coarse_rows(n) for n in (0, 1, 8, 9, 64, 65, 129)] == [0, 8, 8, 64, 64, 128, 256]
    assert rounded(129) == 192  # as the engine's page says


class Shapes(ModelBackend):
    """The modelled machine; the shape of each of its steps, and the rows before they are rounded."""

    def __init__(self):
        super().__init__(Clock(), block_count=8192, block_size=16)
        self.shapes, self.rows = [], []

    def run(self, batch):
        self.shapes.append(arrange(batch, TILE, False, True)[0])
        self.rows.append(len(batch.tokens))
        return super().run(batch)


@pytest.mark.parametrize(("rate", "most"), [(50, 50), (400, 45), (float("inf"), 20)])
def test_few_graphs_serve_a_load(rate, most):
    """Some 200 requests bring many different steps with prompts, but few shapes; what is added to them stays small."""
    backend = Shapes()
    machine = Scheduler(NaiveBlocks(8192, 16), token_budget=2048, max_running=256, context=8192)
    lengths = {"prompt": uniform(32, 512), "output": uniform(32, 256)}
    requests = workload(200, rate, seed=3, **lengths)
    replay(Engine(backend, machine, clock=backend.clock), requests, backend.clock.wait)
    assert len(set(backend.shapes)) <= most
    real, padded = np.array(
        [(n, s.decode + s.tokens) for n, s in zip(backend.rows, backend.shapes) if s.tokens]
    ).T
    assert len(real) >= 25 and (padded >= real).all()
    assert padded.sum() <= 1.5 * real.sum()


def test_bf16_is_rounded_to_the_nearest():
    values = np.array([1.0, -2.5, 0.0, np.inf, -np.inf, 3.3895314e38], "float32")
    np.testing.assert_array_equal(to_float(to_bf16(values)), values)
    x = np.random.default_rng(0).standard_normal(10_000).astype("float32")
    below = (x.view("uint32") & 0xFFFF0000).view("float32")
    above = ((x.view("uint32") & 0xFFFF0000) + 0x10000).view("float32")
    got = to_float(to_bf16(x))
    assert ((got == below) | (got == above)).all()
    assert (np.abs(got - x) <= np.minimum(np.abs(below - x), np.abs(above - x))).all()
    # Half way between two: the even one.
    np.testing.assert_array_equal(
        to_bf16(np.array([1 + 2**-8, 1 + 3 * 2**-8], "float32")), [0x3F80, 0x3F82]
    )
    assert np.isnan(to_float(to_bf16(np.array([np.nan, -np.nan], "float32")))).all()


@pytest.mark.parametrize("shape", [(3, 5), (0, 4)])
def test_shapes_stay(shape):
    assert to_bf16(np.zeros(shape, "float32")).shape == shape
