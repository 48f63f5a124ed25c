"""A kernel that runs without pauses, and a stand-in for nvidia-smi that is read meanwhile."""

import importlib
import os
import sys
import time
from types import ModuleType, SimpleNamespace

import pytest

import cudatut as ct

# It prints readings until it is ended; after the first it leaves its number and what it was asked.
SMI = f"""#!{sys.executable}
import os, sys, time
print("a message")
for i in range(1_000_000):
    print(f"{{1000 + min(i, 4)}}, 500.5, [N/A], 700.00", flush=True)
    if i == 20:
        with open(os.environ["SMI_LOG"] + ".new", "w") as log:
            print(os.getpid(), *sys.argv[1:], file=log)
        os.rename(os.environ["SMI_LOG"] + ".new", os.environ["SMI_LOG"])
    time.sleep(0.001)
"""


@pytest.fixture
def sustained(monkeypatch):
    """The module, with a GPU that needs no driver."""
    driver = ModuleType("pycuda.driver")
    driver.Device = lambda number: SimpleNamespace(pci_bus_id=lambda: f"0000:0{number}:00.0")
    pycuda = ModuleType("pycuda")
    pycuda.driver = driver
    monkeypatch.setitem(sys.modules, "pycuda", pycuda)
    monkeypatch.setitem(sys.modules, "pycuda.driver", driver)
    monkeypatch.setattr(ct, "synchronize", lambda: None)
    name = "cudatut.book.measure.sustained"
    monkeypatch.delitem(sys.modules, name, raising=False)
    yield importlib.import_module(name)
    sys.modules.pop(name)


@pytest.fixture
def smi(monkeypatch, tmp_path):
    """Put a stand-in for nvidia-smi on PATH, alone; returns where it will write its number and arguments."""

    def install(text: str = SMI):
        program = tmp_path / "nvidia-smi"
        program.write_text(text)
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setenv("SMI_LOG", str(tmp_path / "log"))
        return tmp_path / "log"

    return install


def has_ended(log) -> bool:
    try:
        os.kill(int(log.read_text().split()[0]), 0)
    except ProcessLookupError:
        return True
    return False


class Gpu:
    """Launches that take some time each by a clock of their own, and wait for nvidia-smi meanwhile."""

    def __init__(self, module, monkeypatch, log, seconds: float):
        self.now, self.launches, self.log, self.seconds = 100.0, 0, log, seconds
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.now))

    def launch(self):
        self.now += self.seconds
        self.launches += 1
        while self.launches > 1 and not self.log.exists():  # the first is not watched
            time.sleep(0.001)


def test_rate_and_readings(sustained, smi, monkeypatch):
    gpu = Gpu(sustained, monkeypatch, smi(), seconds=1e-3)
    run = sustained.sustained(gpu.launch, flops=2e9, seconds=0.6, every_ms=10)
    assert run.rate == pytest.approx(2)  # TFLOP/s: 2e9 FLOPs in a millisecond
    assert gpu.launches == 1 + 16 * 38  # until 0.6 seconds have passed
    assert run.readings[0] == (1000, 500.5, None, 700)
    assert run.late() == (1004, 500.5, None, 700)
    assert has_ended(gpu.log)
    assert gpu.log.read_text().split()[1:5] == ["-i", "0000:00:00.0", "-lms", "10"]


def test_only_the_second_half_counts(sustained, smi, monkeypatch):
    gpu = Gpu(sustained, monkeypatch, smi(), seconds=1e-3)

    def slower_at_first():
        gpu.launch()
        gpu.now += 1e-3 * (gpu.now < 100.3)

    run = sustained.sustained(slower_at_first, flops=2e9, seconds=0.6)
    assert run.rate == pytest.approx(2)


def test_launches_longer_than_the_time_are_measured_too(sustained, smi, monkeypatch):
    gpu = Gpu(sustained, monkeypatch, smi(), seconds=1.0)
    run = sustained.sustained(gpu.launch, flops=1e12, seconds=0.1)
    assert run.rate == pytest.approx(1) and gpu.launches == 1 + 2 * 16


def test_nvidia_smi_ends_when_a_launch_fails(sustained, smi, monkeypatch):
    gpu = Gpu(sustained, monkeypatch, smi(), seconds=1e-3)

    def fails():
        gpu.launch()
        if gpu.launches > 1:
            raise RuntimeError("launch failed")

    with pytest.raises(RuntimeError, match="launch failed"):
        sustained.sustained(fails, flops=1, seconds=60)
    assert has_ended(gpu.log)


def test_without_nvidia_smi(sustained, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ct.ToolMissing, match="not on PATH"):
        sustained.sustained(lambda: None, flops=1, seconds=0.01)


def test_an_nvidia_smi_that_reads_nothing(sustained, smi):
    smi("#!/bin/sh\necho No devices were found\n")
    with pytest.raises(ct.ToolMissing, match="read nothing"):
        sustained.sustained(lambda: time.sleep(0.001), flops=1, seconds=0.05)


def test_what_is_cut_off_is_no_reading(sustained):
    lines = ["1700, 650.25, 51, 700.00\n", "1710, [N/A], 52, 700.00\n", "1720, 66"]
    assert sustained.parse(lines) == [(1700, 650.25, 51, 700), (1710, None, 52, 700)]
    assert sustained.median(sustained.parse(lines)) == (1705, 650.25, 51.5, 700)


def test_a_value_that_is_never_read_has_no_median(sustained):
    assert sustained.median([sustained.Reading(1, None, None, 2)] * 2) == (1, None, None, 2)
