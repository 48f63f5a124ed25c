"""The ladders of transposes and scans without a GPU: how a reader's kernel is launched, what is compared, and what is refused."""

import re

import numpy as np
import pytest

import cudatut as ct
from cudatut import paths
from cudatut.book.primitives.scan.ladder import LADDER as SCANS
from cudatut.book.primitives.sort.ladder import LADDER as SORTS
from cudatut.book.primitives.transpose.ladder import LADDER as TRANSPOSES
from cudatut.gpu import ladder, trial


class Array(np.ndarray):
    """An array on the host in the place of one on the GPU."""

    def set(self, values):
        self[...] = values

    def get(self):
        return np.array(self)


class Host:
    """Launches of Python functions in the place of kernels, by name: `does[name](grid, block, *arguments)`."""

    def __init__(self, monkeypatch):
        self.does, self.launched, self.compiled = {}, [], []
        monkeypatch.setattr(ct, "to_device", lambda values: np.array(values).view(Array))
        monkeypatch.setattr(ct, "empty", lambda shape, dtype: np.empty(shape, dtype).view(Array))
        monkeypatch.setattr(ct, "poison", lambda array: array.view("uint8").fill(255))
        monkeypatch.setattr(ct, "require", lambda needs: None)

        class Kernel:
            def __new__(cls, path, name, **how):
                return self.kernel(path, name, **how)

        for module in (ct, ladder):
            monkeypatch.setattr(module, "Kernel", Kernel)

    def kernel(self, path, name, defines=None, **_):
        self.compiled.append((name, defines))

        def launch(*arguments, grid, block, shared=0):
            self.launched.append((name, grid, block, shared))
            self.does[name](grid, block, *arguments)

        return launch


@pytest.fixture
def host(monkeypatch):
    return Host(monkeypatch)


def readers(tmp_path, name, line):
    (tmp_path / "mine.cu").write_text(f"// @rung kernel=k {line}\n")
    return trial._readers_rung(name, str(tmp_path / "mine.cu"))


def every(found):
    return [*found.trials, *found.more_trials]


def checked(found, rung):
    """How many instances the rung solves, of those that it claims."""
    done = 0
    for instance in every(found):
        if not found.refuses(rung, **instance):
            found.problem(**instance).check(rung)
            done += 1
    return done


# --- transposes ------------------------------------------------------------------------------------


def turns(wide, high, bound=0, lost=0):
    """A kernel by tiles of the input. bound, lost: faults, rows too many, and tiles that nobody takes."""

    def kernel(grid, block, x, out, rows, columns, pitch_in, pitch_out, *more):
        across = -(-columns // wide)
        assert x.shape == (rows, pitch_in) and out.shape == (columns, pitch_out)
        assert more in ((), (-(-rows // high),))
        for tile in range(grid - lost):
            row, column = tile // across * high, tile % across * wide
            last = min(row + high, rows)
            part = x[row:last, column : min(column + wide, columns)]
            out[column : column + part.shape[1], row:last] = part.T
            if bound and pitch_out >= last + bound:
                out[column, last : last + bound] = 0

    return kernel


@pytest.mark.parametrize(
    ("line", "wide", "high", "block"),
    [
        ("block=32x8 tile=32x8", 32, 8, (32, 8)),
        ("block=256 tile=8x32", 8, 32, 256),
        ("block=512 tile=64x128 shared=1024 group=all", 64, 128, 512),
    ],
)
def test_a_readers_transpose_has_a_block_for_each_tile(host, tmp_path, line, wide, high, block):
    host.does["k"] = turns(wide, high)
    rung = readers(tmp_path, "transpose", line)
    assert checked(TRANSPOSES, rung) == len(every(TRANSPOSES))
    assert {launch[2:] for launch in host.launched} == {(block, 1024 if "shared" in line else 0)}
    # Two of them have no elements.
    assert len(host.launched) == len(every(TRANSPOSES)) - 2


@pytest.mark.parametrize("fault", [{"bound": 1}, {"lost": 1}])
def test_a_transpose_that_is_wrong_at_an_edge_is_noticed(host, tmp_path, fault):
    host.does["k"] = turns(32, 32, **fault)
    with pytest.raises(ct.CheckError, match="mine, "):
        checked(TRANSPOSES, readers(tmp_path, "transpose", "block=32x32 tile=32x32"))


def test_rows_that_a_transpose_does_not_claim_are_said(host, tmp_path, monkeypatch):
    host.does["k"] = turns(64, 64)
    wide = readers(tmp_path, "transpose", "block=256 tile=64x64 align=16")
    assert all(TRANSPOSES.refuses(wide, **one) is None for one in TRANSPOSES.trials)
    assert TRANSPOSES.refuses(wide, **TRANSPOSES.contest) is None
    refused = [why for one in every(TRANSPOSES) if (why := TRANSPOSES.refuses(wide, **one))]
    assert checked(TRANSPOSES, wide) == len(every(TRANSPOSES)) - len(refused) and len(refused) > 8
    assert "mine takes only rows that begin at multiples of 16 bytes, not 24 bytes apart" in refused
    with pytest.raises(ladder.RungError, match="not 24 bytes apart"):
        TRANSPOSES.problem(rows=4, columns=6).launcher(wide)
    monkeypatch.setenv("CUDATUT_LANG", "zh")
    assert "mine 只接受" in TRANSPOSES.refuses(wide, 4, 6)


@pytest.mark.parametrize(
    ("name", "line", "says"),
    [
        ("transpose", "block=32x8", "needs tile=NUMBERxNUMBER, but says tile="),
        ("transpose", "block=32x8 tile=0x8", "but says tile=0x8"),
        ("transpose", "block=32x tile=8x8", "needs block=NUMBERxNUMBER"),
        ("transpose", "tile=32x8", "needs block=NUMBER"),
        ("transpose", "block=32x8 tile=32x8 align=0", "align=NUMBER, but says align=0"),
        ("transpose", "block=32x8 tile=32x8 group=some", "group=NUMBER, but says group=some"),
        ("scan", "per_thread=4", "needs block=NUMBER"),
        ("sort", "block=128", "has to be a multiple of 256, but is 128"),
        ("sort", "block=256 per_thread=0", "but is 0"),
        ("scan", "block=256 launches=two", "says launches=two, but launches can be: one"),
    ],
)
def test_a_line_that_cannot_be_launched_is_refused_in_one_sentence(
    host, tmp_path, name, line, says
):
    found = ladder.load_ladder(name)
    rung = readers(tmp_path, name, line)
    with pytest.raises(ladder.RungError, match=says) as error:
        checked(found, rung)
    assert "\n" not in str(error.value)


# --- scans -----------------------------------------------------------------------------------------


def scans_tiles(tile, short=0):
    """Each tile by itself, and its sum. short: a fault, elements at its end that nobody scans."""

    def kernel(grid, block, x, out, sums, n):
        assert grid == -(-n // tile)
        for t in range(grid):
            part = x[t * tile : min((t + 1) * tile, n)]
            own = np.cumsum(part, dtype="float64" if x.dtype.kind == "f" else "int64")
            whole = len(part) == tile
            end = t * tile + len(part) - (short if whole else 0)
            out[t * tile : end] = own[: end - t * tile].astype(x.dtype)
            sums[t] = own[-1].astype(x.dtype)

    return kernel


def before(grid, block, sums, count):
    kind = "float64" if sums.dtype.kind == "f" else "int64"
    whole = np.cumsum(sums[:count], dtype=kind)
    sums[:count] = np.concatenate([[0], whole[:-1]]).astype(sums.dtype)


def add(grid, block, out, sums, tile, n):
    for t in range(grid):
        with np.errstate(over="ignore"):
            out[t * tile : min((t + 1) * tile, n)] += sums[t]


@pytest.mark.parametrize(
    ("line", "tiles"),
    [
        ("block=128", (128, 128)),
        ("block=256 per_thread=2", (512, 512)),
        ("block=64 vectors=2", (512, 512)),
    ],
)
def test_a_readers_scan_of_tiles_is_completed(host, tmp_path, line, tiles):
    rung = readers(tmp_path, "scan", line)
    host.does |= {"k": scans_tiles(tiles[0]), "scan_sums": before, "add_sums": add}
    assert checked(SCANS, rung) == len(SCANS.trials)
    assert {launch[0] for launch in host.launched} == set(host.does)
    own = {(made["ELEMENT"], made["BLOCK"]) for name, made in host.compiled if name == "k"}
    assert own == {(element, rung.number("block")) for element in ("float", "int")}
    assert all(
        ("VECTORS" in made) == ("vectors" in line) for name, made in host.compiled if name == "k"
    )
    host.does["k"] = scans_tiles(tiles[0], short=1)
    with pytest.raises(ct.CheckError, match="mine, "):
        checked(SCANS, rung)


def test_a_readers_scan_in_one_launch_keeps_its_state(host, tmp_path):
    rung = readers(tmp_path, "scan", "block=256 vectors=4 launches=one")
    seen = []

    def kernel(grid, block, x, out, n, state):
        assert grid == -(-n // 4096) and state.size == 16 + 2 * grid and state.dtype == np.uint64
        seen.append(int(state[0]))
        state[0] += 1
        kind = "float64" if x.dtype.kind == "f" else "int64"
        out[...] = np.cumsum(x, dtype=kind).astype(x.dtype)

    host.does["k"] = kernel
    assert checked(SCANS, rung) == len(SCANS.trials)
    assert seen == [0, 1] * len(SCANS.trials)

    def once(grid, block, x, out, n, state):
        if not state[0]:
            kernel(grid, block, x, out, n, state)

    host.does["k"] = once
    with pytest.raises(ct.CheckError, match="second launch"):
        checked(SCANS, rung)


def test_no_elements_launch_nothing(host, tmp_path):
    SCANS.problem(n=0).launcher(readers(tmp_path, "scan", "block=256"))()
    assert host.launched == []


# --- sorts -----------------------------------------------------------------------------------------


def counts_tiles(tile):
    def kernel(grid, block, keys, n, shift, counts, totals):
        assert not totals.any() and len(counts) == 256 * grid
        of = counts.reshape(256, grid)
        for t in range(grid):
            digits = keys[t * tile : min((t + 1) * tile, int(n))] >> np.uint32(shift) & np.uint32(
                255
            )
            of[:, t] = np.bincount(digits, minlength=256)
        totals[...] = of.sum(axis=1)

    return kernel


def finds_places(grid, block, counts, totals, tiles):
    counts[...] = np.cumsum(counts) - counts


def moves(tile, kind="stable"):
    def kernel(grid, block, keys, out, n, shift, places):
        for t in range(grid):
            part = keys[t * tile : min((t + 1) * tile, int(n))]
            digits = part >> np.uint32(shift) & np.uint32(255)
            order = np.argsort(digits, kind="stable")
            if kind != "stable":
                order = np.lexsort((-np.arange(len(part)), digits))
            first = np.searchsorted(digits[order], digits[order])
            out[
                places[digits[order] * np.uint32(grid) + np.uint32(t)]
                + np.arange(len(part))
                - first
            ] = part[order]

    return kernel


@pytest.mark.parametrize(
    ("line", "tile"), [("block=256", 256), ("block=128 per_thread=8 shared=64", 1024)]
)
def test_a_readers_kernel_sorts_by_four_digits(host, tmp_path, line, tile):
    rung = readers(tmp_path, "sort", line)
    host.does |= {"k": moves(tile), "count_tiles": counts_tiles(tile), "scan_tiles": finds_places}
    assert checked(SORTS, rung) == len(SORTS.trials)
    own = [launch for launch in host.launched if launch[0] == "k"]
    assert len(own) == 4 * len(SORTS.trials)
    assert {launch[2:] for launch in own} == {(rung.number("block"), 64 if "shared" in line else 0)}
    host.does["k"] = moves(tile, "turned")
    with pytest.raises(ct.CheckError, match="mine, "):
        checked(SORTS, rung)


# --- the ladders and their pages -------------------------------------------------------------------


@pytest.mark.parametrize("found", [TRANSPOSES, SCANS, SORTS], ids=lambda found: found.name)
def test_every_rung_is_a_kernel_of_its_file(found):
    assert found.names == tuple(dict.fromkeys(found.names)) and found.part == "primitives"
    for name in found.names:
        rung = found[name]
        source = paths.resolve_source(rung.path).read_text(encoding="utf-8")
        assert re.search(rf"\b{rung.kernel.partition('<')[0]}\(", source)
        needs = re.search(r"^// requires: (\w+)$", source, re.MULTILINE)
        assert rung.options.get("requires") == (needs and needs[1])
    with pytest.raises(ladder.RungError, match=f"ladder '{found.name}' has no rung 'nothing'"):
        found["nothing"]
    with pytest.raises(ladder.RungError, match="no ladder 'primitives'"):
        ladder.load_ladder("primitives")


def page_kernel(name, lang="en"):
    """The kernel that a reader is shown to try."""
    page = (paths.repo_root() / f"docs/{lang}/primitives/{name}.md").read_text(encoding="utf-8")
    (found,) = re.findall(
        r"^ {4}```cuda\n( {4}// @rung .*?)^ {4}```$", page, re.MULTILINE | re.DOTALL
    )
    return re.sub(r"^ {4}", "", found, flags=re.MULTILINE)


@pytest.mark.parametrize("name", ["transpose", "scan", "sort"])
def test_the_kernel_on_the_page_is_one_that_try_takes(tmp_path, name):
    text = page_kernel(name)
    assert text == page_kernel(name, "zh")
    (tmp_path / "mine.cu").write_text(text)
    rung = trial._readers_rung(name, str(tmp_path / "mine.cu"))
    assert rung.kernel in text
