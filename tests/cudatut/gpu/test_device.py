"""What an example may require of a GPU, and what is said where there is none."""

import sys
from types import SimpleNamespace

import pytest

import cudatut as ct
from cudatut.gpu import device


def test_no_gpu_says_what_was_looked_for(monkeypatch):
    monkeypatch.setattr(device, "installed_driver", lambda: None)
    with pytest.raises(ct.NoGpuError, match=r"libcuda\.so\.1|nvcuda\.dll"):
        device.activate.__wrapped__()


@pytest.mark.parametrize(
    ("running", "waits_without_a_core"),
    [(None, False), ("ncu", False), ("memcheck", True), ("racecheck", True)],
)
def test_under_a_sanitizer_waiting_for_the_gpu_takes_no_core(
    monkeypatch, running, waits_without_a_core
):
    flags = []

    class Driver:
        def cuInit(self, flags):
            return 0

        def cuDeviceGetCount(self, count):
            count._obj.value = 1
            return 0

        def cuDevicePrimaryCtxSetFlags_v2(self, device, value):
            flags.append((device, value))

    monkeypatch.setattr(device, "installed_driver", Driver)
    monkeypatch.setattr(device.tool, "running", lambda: running)
    monkeypatch.setitem(sys.modules, "pycuda", SimpleNamespace(autoprimaryctx=None))
    monkeypatch.setitem(sys.modules, "pycuda.autoprimaryctx", SimpleNamespace())
    device.activate.__wrapped__()
    assert flags == ([(0, 4)] if waits_without_a_core else [])  # CU_CTX_SCHED_BLOCKING_SYNC


@pytest.mark.parametrize(
    ("capability", "requires", "answer"),
    [
        ((9, 0), "sm_80", True),
        ((9, 0), "sm_90a", True),
        ((10, 0), "sm_90a", False),
        ((7, 5), "sm_80", False),
        ((12, 0), "sm_100", True),
    ],
)
def test_supports(capability, requires, answer):
    assert device.supports(capability, requires) is answer


@pytest.mark.parametrize("requires", ["90", "sm_", "sm_x", "compute_90"])
def test_supports_refuses_what_is_no_architecture(requires):
    with pytest.raises(ValueError, match="no architecture"):
        device.supports((9, 0), requires)


def test_newer_is_enough_and_a_suffix_is_not_older_or_newer():
    for capability, requires, answer in (
        ((9, 0), "sm_90", True),
        ((8, 9), "sm_89", True),
        ((8, 9), "sm_90", False),
        ((10, 3), "sm_100a", False),
        ((10, 0), "sm_100f", True),
    ):
        assert device.supports(capability, requires) is answer


@pytest.mark.parametrize(
    ("said", "version"), [(13010, (13, 1)), (12040, (12, 4)), (11080, (11, 8)), (13090, (13, 9))]
)
def test_the_version_that_the_driver_runs(monkeypatch, said, version):
    class Driver:
        status = 0

        def cuDriverGetVersion(self, number):
            number._obj.value = said
            return self.status

    monkeypatch.setattr(device, "installed_driver", Driver)
    assert device.driver_cuda() == version
    monkeypatch.setattr(Driver, "status", 3)
    assert device.driver_cuda() is None
    monkeypatch.setattr(device, "installed_driver", lambda: None)
    assert device.driver_cuda() is None


@pytest.mark.skipif(sys.platform != "linux", reason="the name of Linux")
def test_the_library_of_the_driver_on_linux():
    assert device.DRIVER_LIBRARY == "libcuda.so.1"
