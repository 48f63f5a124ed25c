"""The doctor: what is missing is named with what to do about it."""

import subprocess

import pytest

from cudatut import doctor, nvcc
from cudatut.errors import ToolMissing


class Driver:
    """libcuda with `count` GPUs, running CUDA 13.0."""

    def __init__(self, count=1, status=0):
        self.count, self.status = count, status

    def cuInit(self, flags):
        return self.status

    def cuDeviceGetCount(self, count):
        count._obj.value = self.count
        return 0

    def cuDriverGetVersion(self, version):
        version._obj.value = 13000
        return 0

    def cuDeviceGet(self, device, number):
        device._obj.value = number

    def cuDeviceGetName(self, name, size, device):
        name.value = b"NVIDIA Test"

    def cuDeviceGetAttribute(self, value, attribute, device):
        value._obj.value = {75: 9, 76: 0}[attribute]


@pytest.fixture
def driver(monkeypatch):
    def install(found):
        monkeypatch.setattr(doctor, "_driver", lambda: found)
        doctor._device_count.cache_clear()

    yield install
    doctor._device_count.cache_clear()


def test_no_driver(driver, capsys):
    driver(None)
    assert doctor.main() == 1
    out = capsys.readouterr().out
    assert "fail  NVIDIA driver" in out
    assert "nvidia.com/drivers" in out or "Colab" in out or "wsl --update" in out
    assert "missing: NVIDIA driver, GPU" in out
    assert "no NVIDIA driver" in doctor.why_no_gpu()


def test_driver_without_gpu(driver, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    driver(Driver(count=0))
    assert doctor.why_no_gpu() == "the NVIDIA driver shows no GPU"
    check = doctor._gpu()
    assert check.status == "fail" and "CUDA_VISIBLE_DEVICES is '7'" in check.fix


def test_driver_that_does_not_start(driver):
    driver(Driver(status=999))
    assert doctor.why_no_gpu() == "the NVIDIA driver does not start (cuInit returned 999)"
    assert doctor._gpu().status == "fail"


def test_gpu(driver):
    driver(Driver())
    assert doctor.why_no_gpu() is None
    assert doctor._gpu().found == "NVIDIA Test (compute capability 9.0)"
    found = doctor._nvidia_driver()
    assert (
        found.status == "ok"
        and "CUDA 13.0 and older" in found.found
        and "not an installed toolkit" in found.found
    )


@pytest.mark.parametrize(
    ("version", "status"), [("12.9.1", "ok"), ("13.2.0", "ok"), ("14.0.1", "warn")]
)
def test_nvcc_against_the_driver(driver, monkeypatch, version, status):
    driver(Driver())
    monkeypatch.setattr(nvcc, "find_nvcc", lambda: "/somewhere/nvcc")
    monkeypatch.setattr(nvcc, "nvcc_version", lambda path: version)
    check = doctor._nvcc()
    assert check.status == status
    assert version in check.found


def test_no_compilers(monkeypatch):
    def missing():
        raise ToolMissing("not found; install it so")

    monkeypatch.setattr(nvcc, "find_nvcc", missing)
    monkeypatch.setattr(nvcc, "find_host_compiler", missing)
    for check in (doctor._nvcc(), doctor._host_compiler()):
        assert check.status == "fail" and "install it so" in check.fix


def test_pycuda_not_installed(monkeypatch):
    error = subprocess.CompletedProcess(
        [], 1, "", "Traceback\nModuleNotFoundError: No module named 'pycuda'\n"
    )
    monkeypatch.setattr(doctor.subprocess, "run", lambda *a, **k: error)
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: None)
    check = doctor._pycuda()
    assert check.status == "fail" and check.found == "ModuleNotFoundError: No module named 'pycuda'"
    assert "pip install" in check.fix and "nvcc on PATH, cuda.h" in check.fix


def test_pycuda_that_does_not_load(tmp_path, monkeypatch):
    (tmp_path / "pycuda").mkdir()
    (tmp_path / "pycuda/__init__.py").write_text("raise ImportError('libcurand.so.9: cannot open')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: object())
    check = doctor._pycuda()
    assert check.status == "fail" and "libcurand.so.9" in check.found
    assert "--force-reinstall" in check.fix


def test_a_check_that_breaks_hides_no_other(monkeypatch, capsys):
    def _broken():
        raise OSError("boom")

    monkeypatch.setattr(doctor, "_CHECKS", [_broken, doctor._python])
    assert [check.status for check in doctor.checks()] == ["warn", "ok"]
    assert doctor.main() == 0
    assert "could not be checked: OSError('boom')" in capsys.readouterr().out


def test_tools(tmp_path, monkeypatch):
    check = doctor._tool("ncu", "Nsight Compute", "no counters")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert check().status == "warn" and "no counters" in check().found
    program = tmp_path / "ncu"
    program.write_text("#!/bin/sh\necho NVIDIA\necho Version 2025.3.1.0\n")
    program.chmod(0o755)
    assert check().status == "ok" and check().found.startswith("2025.3.1.0 at ")


def test_cache_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PYCUDA_CACHE_DIR", str(tmp_path / "file" / "cache"))
    check = doctor._pycuda_cache()
    assert check.status == "warn" and "PYCUDA_CACHE_DIR" in check.fix
    monkeypatch.setenv("PYCUDA_CACHE_DIR", str(tmp_path / "new" / "cache"))
    assert doctor._pycuda_cache().status == "ok"
    assert not (tmp_path / "new").exists()
