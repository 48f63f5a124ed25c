"""The doctor: what is missing is named with what to do about it."""

import os
import re
import shutil
import subprocess

import pytest

from cudatut import doctor
from cudatut.errors import ToolMissing
from cudatut.gpu import device, nvcc


class Driver:
    """libcuda with `count` GPUs of compute capability `capability`, running CUDA `cuda`."""

    def __init__(self, count=1, status=0, cuda=13000, capability=(9, 0)):
        self.count, self.status, self.cuda, self.capability = count, status, cuda, capability

    def cuInit(self, flags):
        return self.status

    def cuDeviceGetCount(self, count):
        count._obj.value = self.count
        return 0

    def cuDriverGetVersion(self, version):
        version._obj.value = self.cuda
        return 0

    def cuDeviceGet(self, device, number):
        device._obj.value = number

    def cuDeviceGetName(self, name, size, device):
        name.value = b"NVIDIA Test"

    def cuDeviceGetAttribute(self, value, attribute, device):
        value._obj.value = self.capability[{75: 0, 76: 1}[attribute]]


@pytest.fixture
def driver(monkeypatch):
    def install(found):
        monkeypatch.setattr(device, "installed_driver", lambda: found)

    return install


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
    found = doctor.checks()
    for check in (found["nvcc"], found["C++ compiler"]):
        assert check.status == "fail" and "install it so" in check.found


@pytest.mark.parametrize(
    ("capability", "requires", "words"),
    [
        ((7, 5), "sm_75", None),
        ((9, 0), "sm_80", None),
        (
            (7, 5),
            "sm_80",
            "compute capability 8.0 or newer (sm_80), and this one, NVIDIA Test, has 7.5",
        ),
        ((10, 0), "sm_90a", "compute capability exactly 9.0 (sm_90a)"),
        ((9, 0), "sm_100", "compute capability 10.0 or newer"),
    ],
)
def test_what_the_gpu_lacks(driver, capability, requires, words):
    driver(Driver(capability=capability))
    lacks = device.gpu_lacks(requires)
    assert lacks is None if words is None else words in lacks


def test_without_a_gpu_it_lacks_nothing_in_particular(driver):
    driver(None)
    assert device.gpu_lacks("sm_90") is None


@pytest.mark.parametrize(
    ("cuda", "package"),
    [(12040, "cupy-cuda12x"), (12090, "cupy-cuda12x"), (13000, "cupy-cuda13x"), (13020, "cupy-cuda13x"),
     (11080, None), (14000, None)],
)  # fmt: skip
def test_the_cupy_that_fits_the_driver(driver, cuda, package):
    driver(Driver(cuda=cuda))
    assert doctor.cupy_package() == package
    driver(None)
    assert doctor.cupy_package() is None


def test_advice_works_from_where_it_is_asked(tmp_path, monkeypatch):
    root = doctor.paths.repo_root()
    monkeypatch.chdir(root)
    assert doctor.paths.pip_install("gpu") == "pip install -e '.[gpu]'"
    monkeypatch.chdir(tmp_path)
    assert doctor.paths.pip_install("gpu") == f"pip install -e '{root}[gpu]'"
    # Installed: the project is not on PyPI, so it is its repository that pip is given.
    monkeypatch.setattr(doctor.paths, "repo_root", lambda: None)
    monkeypatch.setattr(doctor.paths, "repository", lambda: "https://example.org/x")
    assert (
        doctor.paths.pip_install("gpu") == "pip install 'cudatut[gpu] @ git+https://example.org/x'"
    )


@pytest.fixture
def toolkit(tmp_path, monkeypatch):
    """A toolkit with empty headers and libraries, whose nvcc is the first on PATH."""
    for name in ("bin/nvcc", "include/cuda.h", "include/curand.h"):
        path = tmp_path / "toolkit" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
        path.chmod(0o755)
    stubs = tmp_path / "toolkit" / "lib64" / "stubs"
    stubs.mkdir(parents=True)
    for library in ("cuda", "curand"):
        made = stubs / f"lib{library}.so"
        subprocess.run(
            ["g++", "-shared", "-o", made, "-x", "c++", "-"], input="", text=True, check=True
        )
    monkeypatch.setenv("PATH", f"{tmp_path / 'toolkit' / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: None)
    return tmp_path / "toolkit"


needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


@needs_compiler
def test_a_build_of_pycuda_that_lacks_nothing(toolkit):
    check = doctor._pycuda_build()
    assert check.status == "ok" and str(toolkit) in check.found


@needs_compiler
@pytest.mark.parametrize(
    ("gone", "words"),
    [
        ("include/cuda.h", "the CUDA toolkit"),
        ("include/curand.h", "cuRAND"),
        ("lib64/stubs/libcurand.so", "cuRAND"),
        ("lib64/stubs/libcuda.so", "libcuda"),
    ],
)
def test_a_build_of_pycuda_names_what_it_lacks(toolkit, gone, words):
    (toolkit / gone).unlink()
    check = doctor._pycuda_build()
    if check.status == "ok" and "libcuda" in gone:
        pytest.skip("this machine's own libcuda.so is found")
    assert check.status == "warn" and check.found == f"lacks {words}"
    assert f"{words}: " in check.fix


@needs_compiler
def test_a_build_without_curand_needs_none(toolkit, tmp_path):
    (toolkit / "include/curand.h").unlink()
    advice = doctor._pycuda_build().fix
    line = re.search(r"echo '(.*)' >> ~/.aksetup-defaults.py", advice)[1]
    (tmp_path / ".aksetup-defaults.py").write_text(f"{line}\n")
    assert doctor._pycuda_build().status == "ok"


def test_a_build_without_a_compiler(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("NVCC_CCBIN", raising=False)
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: None)
    check = doctor.checks()["PyCUDA's build"]
    assert check.status == "fail" and "no 'g++' on PATH" in check.found


def test_a_cupy_of_another_cuda(driver, monkeypatch):
    driver(Driver(cuda=12080))
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(
        doctor.packages, "packages_distributions", lambda: {"cupy": ["cupy-cuda13x"]}
    )
    check = doctor._cupy()
    assert check.status == "warn" and "the driver runs CUDA 12.8" in check.found
    assert "pip install cupy-cuda12x" in check.fix


def test_pycuda_not_installed(monkeypatch):
    error = subprocess.CompletedProcess(
        [], 1, "", "Traceback\nModuleNotFoundError: No module named 'pycuda'\n"
    )
    monkeypatch.setattr(doctor.subprocess, "run", lambda *a, **k: error)
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: None)
    check = doctor._pycuda()
    assert check.status == "fail" and check.found == "ModuleNotFoundError: No module named 'pycuda'"
    assert "PyCUDA's build" in check.fix and doctor.paths.pip_install("gpu") in check.fix


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

    monkeypatch.setattr(doctor, "_CHECKS", {"GPU": _broken, "Python": doctor._python})
    assert [check.status for check in doctor.checks().values()] == ["warn", "ok"]
    assert doctor.main() == 0
    assert "could not be checked: OSError('boom')" in capsys.readouterr().out


def test_tools(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    check = doctor._tool("ncu", "no counters")
    assert check.status == "warn" and "no hardware counters" in check.found
    program = tmp_path / "ncu"
    program.write_text("#!/bin/sh\necho NVIDIA\necho Version 2025.3.1.0\n")
    program.chmod(0o755)
    check = doctor._tool("ncu", "no counters")
    assert check.status == "ok" and check.found.startswith("2025.3.1.0 at ")


def test_cache_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PYCUDA_CACHE_DIR", str(tmp_path / "file" / "cache"))
    check = doctor._pycuda_cache()
    assert check.status == "warn" and "PYCUDA_CACHE_DIR" in check.fix
    monkeypatch.setenv("PYCUDA_CACHE_DIR", str(tmp_path / "new" / "cache"))
    assert doctor._pycuda_cache().status == "ok"
    assert not (tmp_path / "new").exists()
