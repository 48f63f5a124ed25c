"""Tuning and scoreboards on a real GPU, in small."""

from dataclasses import replace

import pytest

import cudatut as ct
from cudatut import gpu_results, gpu_scoreboard, ladder, tuning


@pytest.fixture
def kept(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDATUT_RESULTS", str(tmp_path))
    return tmp_path


def test_tuning_finds_a_choice_that_is_right_and_keeps_it(kept, capsys):
    tuning.main("gemm", ["300x260x128", "1024"], most=6, jobs=None)
    (found,) = gpu_results.load_all()
    assert found["gpu"]["name"] == ct.device().name
    entries = found["tuned"]["gemm"]
    assert list(entries) == ["m=300 n=260 k=128", "m=1024 n=1024 k=1024"]
    space = tuning.load_space("gemm")
    module = ladder.shared("gemm/autotuning_space")
    for entry in entries.values():
        left = [step["left"] for step in entry["search"]]
        assert left[0] > 1000 and left[-1] >= 1
        numbers = dict(entry["choice"])
        splits = numbers.pop("splits")
        choice = module.Candidate(module.config_of(**numbers), splits)
        space.check(space.problem(entry["size"]), choice)
    assert "kept in" in capsys.readouterr().out


def test_a_register_budget_is_kept():
    module = ladder.shared("gemm/autotuning_space")
    gpu = ct.device()
    for blocks in (1, 2, 4):
        config = module.config_of(bm=64, bn=128, bk=16, tm=8, tn=8, stages=4, blocks=blocks)
        kernel = module.SGEMM.kernel(config.name(4, False, False))
        needs = kernel.resources(config.threads, config.shared(False, False))
        assert 64 < needs.registers <= module.register_budget(config, module.Limits.of(gpu))


def test_instances_of_equal_code_are_one_candidate():
    module = ladder.shared("gemm/autotuning_space")
    problem = module.SPACE.problem({"m": 256, "n": 256, "k": 64})
    config = module.config_of(bm=64, bn=64, bk=16, tm=8, tn=8, stages=2, blocks=1)
    candidates = [module.Candidate(replace(config, rate=rate)) for rate in (0.5, 0.6)]
    candidates.append(module.Candidate(replace(config, stages=3)))
    runs = [(one, module.SPACE.launcher(problem, one)) for one in candidates]
    assert len(tuning._different(runs, candidates[-1])) == 2


def test_compile_ahead_reports_what_does_not_compile():
    good = "gemm/final.cu", "sgemm<64, 64, 16, 8, 8, 3, 6, 4, false, false>"
    bad = "gemm/final.cu", "sgemm<64, 64, 7, 8, 8, 3, 6, 4, false, false>"
    errors = tuning.compile_ahead([good, bad, good])
    assert list(errors) == [bad]
    assert ct.Kernel(*good).resources(64, 0).registers > 64


@pytest.mark.parametrize("name", ["gemm", "reduction"])
def test_a_scoreboard(name, kept):
    board = ladder.load(name)
    sizes = [{"m": 256, "n": 260, "k": 128}] if name == "gemm" else [{"n": 1 << 16}]
    entry = gpu_scoreboard.measure(board, sizes)
    certificate = gpu_results.certificate(f"python -m cudatut results {name}", entry["sources"])
    entry = {"certificate": certificate, **entry}
    gpu_results.save(gpu_results.gpu_here(), "scoreboards", name, entry)
    (found,) = gpu_results.load_all()
    rows = found["scoreboards"][name]["contests"][0]["benchmark"]["rows"]
    assert {row["name"] for row in rows} >= set(board.names) - set(entry["left_out"])
    assert gpu_results.changed(found["scoreboards"][name]) == []
