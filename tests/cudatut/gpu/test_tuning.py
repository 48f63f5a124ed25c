"""`python -m cudatut tune`, as far as it goes without a GPU."""

from types import SimpleNamespace

import pytest

import cudatut.book
from cudatut import cli
from cudatut.book.gemm import tuner
from cudatut.errors import UnsupportedGpuError
from cudatut.gpu import tuning
from cudatut.gpu.ladder import RungError


def test_the_ranking_puts_those_first_that_came_furthest():
    first = tuner.Heat(1, {"a": [9.0], "b": [10.0], "c": [1.0], "d": [30.0]}, ["c", "a"])
    last = tuner.Heat(3, {"a": [8.0, 8.0, 9.0], "c": [9.0, 9.0, 12.0]}, ["a"])
    lines = [line.split() for line in tuning.ranking([first, last])]
    assert [(place, us, name) for place, us, _, _, name in lines] == [
        ("1", "8.00", "a"), ("2", "9.00", "c"), ("3", "10.00", "b"), ("4", "30.00", "d"),
    ]  # fmt: skip
    assert [float(ratio) for _, _, _, ratio, _ in lines] == [1.0, 1.125, 1.25, 3.75]
    assert len(tuning.ranking([first, last], most=2)) == 2


def test_the_ranking_shows_a_dozen():
    heat = tuner.Heat(1, {f"c{n}": [float(n)] for n in range(1, 20)}, [])
    assert [line.split()[-1] for line in tuning.ranking([heat])] == [f"c{n}" for n in range(1, 13)]


def test_what_there_is_to_tune(capsys):
    with pytest.raises(
        RungError, match="'reduction' has nothing to tune; these have: gemm, tensor"
    ):
        tuning.tune("reduction")
    assert cli.main(["tune", "frobnicate"]) == 2
    said = capsys.readouterr().err
    assert said == "cudatut: there is no ladder 'frobnicate'; these can be tuned: gemm, tensor\n"
    assert cli.main(["tune", "tensor", "12y"]) == 2
    assert "'12y' is no size" in capsys.readouterr().err


def test_what_is_searched_lies_beside_the_ladder(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDATUT_EXAMPLES", str(tmp_path))
    monkeypatch.setattr(cudatut.book, "__path__", [str(tmp_path)])
    (tmp_path / "drafts.txt").touch()
    folder = tmp_path / "searched" / "ladder"
    folder.mkdir(parents=True)
    ladder = "from cudatut.gpu.ladder import Ladder\n\nLADDER = Ladder('searched', problem=None)\n"
    (folder / "ladder.py").write_text(ladder)
    with pytest.raises(RungError, match="the ladder 'searched' has nothing to tune"):
        tuning._space("searched")
    (folder / "autotuning_space.py").write_text("SPACE = 7\n")
    assert tuning._space("searched") == 7


def test_what_it_needs_is_said_before_anything_is_compiled(monkeypatch):
    """On an Ampere: the error, which names what is needed, and no search."""

    def require(arch):
        raise UnsupportedGpuError(f"this needs {arch}")

    monkeypatch.setattr(tuning, "activate", lambda: None)
    monkeypatch.setattr(tuning, "require", require)
    said = []
    with pytest.raises(UnsupportedGpuError, match="this needs sm_90a"):
        tuning.tune("tensor", say=said.append)
    assert said == []


@pytest.mark.parametrize("ladder", ["gemm", "tensor"])
def test_every_space_goes_through_the_same_search(ladder, monkeypatch):
    """Steps, ranking, verdict, and what a space adds, from a search that is played."""
    gpu = SimpleNamespace(
        name="NVIDIA Test", sm_count=132, max_threads_per_block=1024, max_threads_per_sm=2048,
        registers_per_sm=65536, shared_per_block_optin=227 << 10, shared_per_sm=228 << 10,
    )  # fmt: skip
    for module in (tuning,):
        monkeypatch.setattr(module, "activate", lambda: None)
        monkeypatch.setattr(module, "require", lambda arch: None)
        monkeypatch.setattr(module, "device", lambda: gpu)

    def played(space, size, most, say):
        steps, found = space.prune(gpu, size)
        for step in steps:
            say(f"step {step[0]}")
        heat = tuner.Heat(1, {one.label: [float(i + 1)] for i, one in enumerate(found)}, [])
        contest = SimpleNamespace(rows=[])
        return tuner.Tuned(steps, {"x": "is wrong: y"}, [heat], found[0], found[0], contest)

    monkeypatch.setattr(tuner, "tune", played)
    said = []
    tuning.tune(ladder, ["512x300x64"], most=3, say=said.append)
    assert said[0] == f"{ladder}, 512 x 300 x 64, on NVIDIA Test"
    assert "x is wrong: y; please report this" in said
    assert any(line.startswith("best: ") for line in said)
    assert sum(line.startswith(f"{place:3}  ") for place in (1, 2) for line in said) == 2
    if ladder == "tensor":
        assert said[-2].startswith("TILES in examples/tensor/gemm/gemm.py: Tile(columns=")
        assert said[-1].startswith("COSTS say ")


def test_a_gpu_is_made_current_before_it_is_asked_for(monkeypatch):
    said = []
    monkeypatch.setattr(tuning, "activate", lambda: said.append("activate"))

    def require(arch):
        said.append(f"require {arch}")
        raise UnsupportedGpuError(arch)

    monkeypatch.setattr(tuning, "require", require)
    with pytest.raises(UnsupportedGpuError):
        tuning.tune("tensor", say=said.append)
    assert said == ["activate", "require sm_90a"]
