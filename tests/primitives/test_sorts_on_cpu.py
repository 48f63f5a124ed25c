"""The sorts and top-k of examples/primitives on a CPU: their own text in random interleavings, with stand-ins for what CUDA does
(tests/tensor/hopper_on_cpu/), against NumPy's stable sort. Faults that are planted must show."""

import re
from pathlib import Path

import emulator
import numpy as np
import pytest

HERE = Path(__file__).parent / "on_cpu"
SMALL = {"THREADS": 256, "ITEMS": 4, "COUNT_THREADS": 256, "PAIRS": 1}
KINDS = {"u": 0, "i": 1, "f": 2}


def in_cpp(text):
    """The ballots in PTX as C++, and a yield where a look-back asks again."""
    ballot = "{ const bool one = digit >> bit & 1; const unsigned ones = __ballot_sync(ALL, one); like_me[bit] = one ? ones : ~ones; }"
    text = re.sub(r'asm volatile\(\s*"\{ \.reg \.pred one;.*?\);', ballot, text, flags=re.S)
    text = re.sub(r'asm\("lop3.*?\);', "same &= like_me[bit] & like_me[bit + 1];", text, flags=re.S)
    return text.replace(
        "return *(const volatile Count*)state;",
        'machine::yield("a state"); return *(const volatile Count*)state;',
    )


def program(tmp_path, kernel, source, change=lambda text: text, **defines):
    macros = "".join(f"#define {name} {value}\n" for name, value in defines.items())
    return emulator.built(
        tmp_path, HERE / source, kernel, lambda text: macros + in_cpp(change(text)), **defines
    )


def keys(dtype, n, few, seed):
    kind, chance = np.dtype(dtype), np.random.default_rng(seed)
    if few:
        whole = np.round(chance.standard_normal(n))  # -0.0, too
        if kind.kind == "f":
            whole[::7] = np.nan
        return (whole if kind.kind == "f" else whole.astype("i8")).astype(kind)
    return chance.integers(0, 256, n * kind.itemsize, dtype="uint8").view(kind)


def sorted_wrongly(made, x, seed=1):
    """What is wrong with a sort, or None."""
    found, end = emulator.ended(made, (x.size, seed), x.tobytes(), timeout=120)
    if end:
        return end
    word, order = f"u{x.itemsize}", np.argsort(x, kind="stable")
    out = np.frombuffer(found[: x.nbytes], word)
    if (out != x[order].view(word)).any():
        return "the keys are wrong"
    return "not stable" if (np.frombuffer(found[x.nbytes :], "u4") != order).any() else None


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    "dtype, plan",
    [
        ("u4", {}),
        ("f4", {}),
        ("i4", {"MATCH": 1, "BUMP": 0}),
        ("u8", {"WINDOW": 1, "COLUMNS": 0}),
        ("f8", {"WINDOW": 2}),
        ("i8", {"WIDE": 1}),
        ("u4", {"MATCH": 2, "SHIFTED": 1, "COLUMNS": 2}),
        ("u4", {"TOGETHER": 1}),
        ("f4", {"ITEMS": 5}),  # ranks and digits fill no word
    ],
)
def test_sweeps(tmp_path, dtype, plan):
    own = {"KEY_BITS": 8 * int(dtype[1]), "KIND": KINDS[dtype[0]], **SMALL, **plan}
    made = program(tmp_path, "primitives/sort/onesweep.cu", "sweeps.cpp", **own)
    for n, few in ((1, False), (3011, False), (2048, True)):
        assert sorted_wrongly(made, keys(dtype, n, few, seed=n)) is None


@pytest.mark.parametrize("staged", [0, 1])
def test_three_launches(tmp_path, staged):
    own = {**SMALL, "STAGED": staged}
    made = program(tmp_path, "primitives/sort/counting.cu", "three_launches.cpp", **own)
    for n in (1, 3011):
        assert sorted_wrongly(made, keys("u4", n, few=n > 1, seed=n)) is None


@pytest.mark.parametrize("dtype", ["u4", "f8"])
def test_one_block(tmp_path, dtype):
    own = {"KEY_BITS": 8 * int(dtype[1]), "KIND": KINDS[dtype[0]], **SMALL}
    made = program(tmp_path, "primitives/sort/one_tile.cu", "one_tile.cpp", **own)
    for n, few in ((1, False), (999, True), (1024, False)):
        assert sorted_wrongly(made, keys(dtype, n, few, seed=n)) is None


@pytest.mark.parametrize(
    "old, new",
    [
        # A warp takes keys for the next pass before all have been put down.
        ("__syncthreads();\n    load_tile(staged", "load_tile(staged"),
        ("shift < KEY_BITS; shift += 8", "shift < KEY_BITS - 8; shift += 8"),
    ],
)
def test_faults_of_one_block_show(tmp_path, old, new):
    change = emulator.fault(old, new)
    made = program(tmp_path, "primitives/sort/one_tile.cu", "one_tile.cpp", change, **SMALL)
    x = keys("u4", 1000, few=False, seed=3)
    emulator.expect("wrong|stable|ended", (sorted_wrongly(made, x, s) for s in range(1, 6)))


FAULTS = {
    # The last of the peers may write before the others have read.
    "no barrier in a turn": (
        "const unsigned old = *counter;\n    __syncwarp();",
        "const unsigned old = *counter;",
        "wrong|stable|ended",
    ),
    "a tile does not wait": ("if (said[w] & UP_TO_HERE) return sum;", "return sum;", "wrong|stable|ended"),
    # The first values take the places of keys that nobody has read yet.
    "values do not wait": (
        "__syncthreads();  // all keys have been read",
        "",
        "wrong|stable|ended",
    ),
    "own counts announced as sums": ("(tile ? OWN : UP_TO_HERE) + count", "UP_TO_HERE + count", "."),
}  # fmt: skip


@pytest.mark.sweep(1)
@pytest.mark.parametrize("fault", FAULTS)
def test_faults_show(tmp_path, fault):
    old, new, shows = FAULTS[fault]
    change = emulator.fault(old, new)
    made = program(tmp_path, "primitives/sort/onesweep.cu", "sweeps.cpp", change, **SMALL)
    x = keys("u4", 3011, few=True, seed=3)
    emulator.expect(shows, (sorted_wrongly(made, x, seed) for seed in range(1, 6)))


def rows(kind, n, seed=1):
    chance = np.random.default_rng(seed)
    x = chance.standard_normal((2, n)).astype("f4")
    if kind == "rising":
        x.sort(axis=1)
    if kind == "few":
        x = np.round(x)
    if kind == "NaN":
        x[chance.random(x.shape) < 0.3] = np.nan
        x[chance.random(x.shape) < 0.3] = -np.inf
    return x


def best_wrongly(made, which, x, k, seed=1):
    n, size = x.shape[1], 1 << (k - 1).bit_length()
    found, end = emulator.ended(made, (which, 2, n, k, size, seed), x.tobytes(), timeout=120)
    if end:
        return end
    nan, at = np.isnan(x), np.arange(n)
    large = np.where(nan, np.inf, x)
    order = np.array([np.lexsort((at, -large[r], ~nan[r]))[:k] for r in (0, 1)])
    values, indices = np.frombuffer(found, "u4").reshape(2, 2, k)
    if (indices != order).any():
        return "the indices are wrong"
    expected = np.take_along_axis(x, order, axis=1).view("u4")
    return "the values are wrong" if (values != expected).any() else None


TOPK = {"THREADS": 64, "DIGIT_BITS": 6, "ROOM": 256, "SLACK": 32, "VEC": 1}


@pytest.mark.parametrize("blocks", [1, 2])
def test_best_of_rows(tmp_path, blocks):
    made = program(tmp_path, "primitives/topk/topk.cu", "best.cpp", BLOCKS=blocks, **TOPK)
    for kind in ("random", "rising", "few", "NaN"):
        assert best_wrongly(made, 2, rows(kind, 3011), 50) is None
    for which in (0, 1):
        assert best_wrongly(made, which, rows("few", 303), 20) is None
    assert best_wrongly(made, 2, rows("random", 33), 33) is None


def test_k_of_a_first_step_is_the_most(tmp_path):
    """-inf comes in with the first step alone, of 256 numbers here: TopK refuses a larger k."""
    plan = {**TOPK, "BLOCKS": 1, "ROOM": 512 + TOPK["SLACK"]}
    made = program(tmp_path, "primitives/topk/topk.cu", "best.cpp", **plan)
    nothing = np.full((2, 3011), -np.inf, "float32")
    assert best_wrongly(made, 2, nothing, 256) is None
    assert best_wrongly(made, 2, nothing, 257)


@pytest.mark.parametrize(
    "old, new",
    [
        ("if (x <= limit ||", "if (!(x > limit) ||"),  # NaN stays out
        ("(Word)order(x) << 32 | ~index", "(Word)order(x) << 32 | index"),  # ties to the larger
    ],
)
@pytest.mark.sweep(1)
def test_faults_of_top_k_show(tmp_path, old, new):
    change = emulator.fault(old, new)
    made = program(tmp_path, "primitives/topk/topk.cu", "best.cpp", change, BLOCKS=1, **TOPK)
    runs = (best_wrongly(made, 2, rows(kind, 3011), 50) for kind in ("NaN", "few"))
    emulator.expect("wrong|ended", runs)
