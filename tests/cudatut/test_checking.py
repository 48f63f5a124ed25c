"""What ct.check says does not depend on the pieces in which it compares."""

import numpy as np
import pytest

import cudatut as ct
from cudatut import checking
from cudatut.errors import CheckError


@pytest.fixture
def shown(monkeypatch):
    results = []
    monkeypatch.setattr(checking, "show", results.append)
    return results


def arrays(seed: int):
    """Random outputs and references, some of them equal, some close, with NaN and infinities at the same places."""
    rng = np.random.default_rng(seed)
    want = rng.standard_normal((5, 9)) * 10
    want.flat[rng.integers(0, want.size, 3)] = [np.nan, np.inf, -np.inf]
    return (want * (1 + rng.choice([0, 1e-7, 1e-3]) * rng.random(want.shape))).astype(
        "float32"
    ), want


@pytest.mark.parametrize("seed", range(12))
def test_pieces_make_no_difference(monkeypatch, shown, seed):
    got, want = arrays(seed)
    said = []
    for piece in (1 << 16, 7):
        monkeypatch.setattr(checking, "_PIECE", piece)
        try:
            ct.check(got, want)
            said.append(shown[-1])
        except CheckError as error:
            said.append(str(error))
    assert said[0] == said[1]


def test_one_wrong_element_far_behind_is_found(shown):
    want = np.arange(1 << 18, dtype="float32")
    got = want.copy()
    got[200_001] = 0
    with pytest.raises(CheckError, match="1 of 262144 elements are wrong") as error:
        ct.check(got, want)
    assert "index 200001: got np.float32(0.0), expected np.float32(200001.0)" in str(error.value)
    got[200_001] = np.nan
    with pytest.raises(CheckError, match="1 of them are NaN"):
        ct.check(got, want)
    assert not shown
