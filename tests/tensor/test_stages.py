"""How many stages of a rung are launched on a GPU, by the shared memory that it has."""

from types import SimpleNamespace

import pytest

import cudatut as ct
from cudatut.book.tensor.ladder.ladder import LADDER
from cudatut.book.tensor.mma_sync import stages

# KiB of shared memory of an SM, from NVIDIA's table of compute capabilities; a block may have one less.
SHARED = {"8.0": 164, "8.6": 100, "8.9": 100, "9.0": 228, "10.0": 228, "12.0": 100}


@pytest.fixture
def gpu(monkeypatch):
    """Be a GPU of a compute capability."""

    def become(capability: str) -> None:
        sm = SHARED[capability] << 10
        device = SimpleNamespace(
            name=capability, shared_per_sm=sm, shared_per_block_optin=sm - 1024
        )
        monkeypatch.setattr(ct, "device", lambda: device)

    return become


def kernels(rungs):
    return [rung.kernel for rung in rungs.values()]


RUNGS = LADDER.upto("mma_spread")
FIRST = ["gemm_fma", "gemm_wmma", "gemm_mma_sync", "gemm_mma_stages<3>"]


@pytest.mark.parametrize("capability", ["9.0", "10.0"])
def test_where_there_is_room_the_rungs_are_as_their_files_say(gpu, capsys, capability):
    gpu(capability)
    assert list(stages.fitting(RUNGS).items()) == [(rung.name, rung) for rung in RUNGS]
    assert not capsys.readouterr().out


@pytest.mark.parametrize(
    ("capability", "count", "kib"),
    [("8.0", 3, 163), ("8.6", 2, 99), ("8.9", 2, 99), ("12.0", 2, 99)],
)
def test_elsewhere_the_large_ones_have_fewer_and_that_is_said(gpu, capsys, capability, count, kib):
    gpu(capability)
    large = [f"gemm_{name}<{count}>" for name in ("mma_large", "mma_spread")]
    assert kernels(stages.fitting(RUNGS)) == FIRST + large
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 2 and all(f"has {count} stages here" in line for line in said)
    assert all(f"4 do not fit in the {kib} KiB" in line for line in said)


def test_a_rung_of_which_not_two_stages_fit_is_left_out(gpu, capsys, monkeypatch):
    gpu("8.6")
    monkeypatch.setattr(stages, "room", lambda blocks=1: 2 * 49152 - 1)
    assert kernels(stages.fitting(RUNGS)) == [*FIRST[:3], "gemm_mma_stages<2>"]
    assert capsys.readouterr().out.count("no row for mma_") == 2


@pytest.mark.parametrize(
    ("capability", "small", "large"), [("9.0", 4, 4), ("8.0", 4, 3), ("8.9", 3, 2)]
)
def test_variants_are_those_that_fit(gpu, capsys, capability, small, large):
    gpu(capability)
    for name, most in (("mma_stages", small), ("mma_spread", large)):
        found = stages.variants(LADDER[name], (2, 3, 4))
        assert list(found) == [f"{name}, {count} stages" for count in range(2, most + 1)]
        assert kernels(found) == [f"gemm_{name}<{count}>" for count in range(2, most + 1)]
        assert capsys.readouterr().out.count("no row") == 4 - most


@pytest.mark.parametrize(("capability", "kib"), [("8.0", 81), ("8.6", 49), ("9.0", 113)])
def test_two_blocks_of_an_sm_share_its_memory(gpu, capability, kib):
    gpu(capability)
    assert stages.room(blocks=2) == kib << 10
