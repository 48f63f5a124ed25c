"""Poison: what no kernel wrote is found."""

import numpy as np
import pytest

from cudatut.gpu import memory


@pytest.mark.parametrize("dtype", ["?", "u1", "f2", "i4", "f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 5)])
def test_poison_is_found_where_every_byte_of_an_element_is(dtype, shape):
    host = np.zeros(shape, dtype)
    written = np.random.default_rng(0).choice(
        [True, False], (host.size, host.itemsize), p=[0.2, 0.8]
    )
    if host.size:
        host.reshape(-1).view("u1")[:] = np.where(written, 1, memory.POISON_BYTE).reshape(-1)
    found = memory.poisoned(host)
    assert found.shape == host.shape and found.dtype == bool
    assert np.array_equal(found.reshape(-1), ~written.any(axis=1))
