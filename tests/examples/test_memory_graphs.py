"""What needs no GPU of the chapter on CUDA graphs: its advice, and its prediction of how often the loop goes round."""

import sys

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.memory.graphs import calls

FAR = 1 << 29


def test_without_cuda_bindings_the_command_that_brings_them_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    with pytest.raises(ct.ToolMissing, match="pip install 'cuda-bindings"):
        calls.call("cuGraphCreate", 0)


def step(steps: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """As the kernel `spread`."""
    around = np.pad(steps, 1, constant_values=FAR)
    sides = (around[:-2, 1:-1], around[2:, 1:-1], around[1:-1, :-2], around[1:-1, 2:])
    nearer = np.minimum(steps, np.minimum.reduce(sides) + 1)
    return np.where(cells, np.minimum(nearer, FAR), steps)


@pytest.mark.parametrize("seed", range(8))
def test_the_number_of_rounds_is_predicted(seed):
    cells = ct.rng(seed).random((13, 13)) > 0.3
    cells[0, 0] = True
    steps = np.full((13, 13), FAR)
    steps[0, 0], rounds, changed = 0, 0, True
    while changed:
        after = step(step(steps, cells), cells)
        steps, changed, rounds = after, (after != steps).any(), rounds + 1
    farthest = int(steps[steps < FAR].max())
    assert rounds == ct.cdiv(farthest, 2) + 1
