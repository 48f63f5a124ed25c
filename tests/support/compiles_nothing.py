"""A GPU on which kernels are not compiled: what launchers ask for is looked at without one."""

from types import SimpleNamespace

import numpy as np

import cudatut as ct

SMS = 4


class Kernel:
    """As ct.Kernel, but compiles nothing; an SM holds `held` blocks of it."""

    held = 2

    def __init__(self, source, name, defines=None):
        self.source, self.name, self.defines = source, name, defines
        self.launches: list[tuple] = []

    def resources(self, block, shared=0):
        return SimpleNamespace(blocks_per_sm=self.held)

    def __call__(self, *arguments, **how):
        self.launches.append((arguments, how))


def stands_in(monkeypatch) -> SimpleNamespace:
    """Puts it in the place of the real one until the test ends. Returns what ct.device() returns."""
    gpu = SimpleNamespace(
        sm_count=SMS, compute_capability=(9, 0), shared_per_block_optin=227 * 1024
    )
    monkeypatch.setattr(ct, "Kernel", Kernel)
    monkeypatch.setattr(ct, "device", lambda: gpu)
    monkeypatch.setattr(ct, "to_device", np.asarray)
    monkeypatch.setattr(ct, "empty", np.empty)
    return gpu
