"""Tuning on a real GPU, in small."""

from dataclasses import replace

import pytest

import cudatut as ct
from cudatut.book.gemm import tuner
from cudatut.book.gemm.ladder import autotuning_space as module


@pytest.mark.parametrize("size", ["300x260x128", "1024"])
def test_tuning_finds_a_choice_that_is_right(size):
    space, size = module.SPACE, tuner.parse_size(size, "mnk")
    found = tuner.tune(space, size, most=6)
    left = [count for _, count in found.search]
    assert left[0] > 1000 and left[-1] >= 1 and found.verdict().startswith("best: ")
    numbers = dict(found.choice.numbers)
    splits = numbers.pop("splits")
    space.check(space.problem(size), module.Candidate(module.config_of(**numbers), splits))


def test_a_register_budget_is_kept():
    gpu = ct.device()
    for blocks in (1, 2, 4):
        config = module.config_of(bm=64, bn=128, bk=16, tm=8, tn=8, stages=4, blocks=blocks)
        kernel = module.SGEMM.kernel(config.name(4, False, False))
        needs = kernel.resources(config.threads, config.shared(False, False))
        assert 64 < needs.registers <= module.register_budget(config, module.Limits.of(gpu))


def test_instances_of_equal_code_are_one_candidate():
    problem = module.SPACE.problem({"m": 256, "n": 256, "k": 64})
    config = module.config_of(bm=64, bn=64, bk=16, tm=8, tn=8, stages=2, blocks=1)
    candidates = [module.Candidate(replace(config, rate=rate)) for rate in (0.5, 0.6)]
    candidates.append(module.Candidate(replace(config, stages=3)))
    runs = [(one, module.SPACE.launcher(problem, one)) for one in candidates]
    assert len(tuner._different(runs, candidates[-1])) == 2


def test_compile_ahead_reports_what_does_not_compile():
    good = "gemm/ladder/final.cu", "sgemm<64, 64, 16, 8, 8, 3, 6, 4, false, false>"
    bad = "gemm/ladder/final.cu", "sgemm<64, 64, 7, 8, 8, 3, 6, 4, false, false>"
    errors = ct.compile_ahead([good, bad, good])
    assert list(errors) == [bad]
    assert ct.Kernel(*good).resources(64, 0).registers > 64
