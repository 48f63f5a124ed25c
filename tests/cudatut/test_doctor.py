"""The doctor: what is missing is named with what to do about it."""

import os
import re
import shutil
import subprocess
from pathlib import Path

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
    assert "PyCUDA's build" in check.fix and "pip install pycuda" in check.fix


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


def test_the_report_is_a_table_with_the_cures_below_their_lines(monkeypatch, capsys):
    found = {
        "GPU": lambda: doctor.Check("ok", "a T4"),
        "Python": lambda: doctor.Check("warn", "old", "first\nsecond"),
    }
    monkeypatch.setattr(doctor, "_CHECKS", found)
    assert doctor.main() == 0
    assert capsys.readouterr().out == (
        "ok    GPU     a T4\n"
        "warn  Python  old\n"
        "              first\n"
        "              second\n"
        "\n"
        "Examples can run here: `python -m cudatut run start/hello`.\n"
    )


def test_what_examples_cannot_do_without_is_named_at_the_end(monkeypatch, capsys):
    found = {
        "GPU": lambda: doctor.Check("fail", "none"),
        "CuPy": lambda: doctor.Check("warn", "none"),
        "nvcc": lambda: doctor.Check("fail", "none"),
    }
    monkeypatch.setattr(doctor, "_CHECKS", found)
    assert doctor.main() == 1
    assert capsys.readouterr().out.splitlines()[3:] == [
        "",
        "Examples cannot run on a GPU here yet; missing: GPU, nvcc.",
        "The book, its tests and `python -m cudatut run NAME` (replaying) work without.",
    ]


def test_checks_stand_in_the_order_in_which_one_installs():
    assert list(doctor._CHECKS) == [
        "Python", "NVIDIA driver", "GPU", "nvcc", "C++ compiler", "PyCUDA's build", "PyCUDA", "PyCUDA cache",
        "CuPy", "cupti-python", "Nsight Compute", "Nsight Systems", "compute-sanitizer", "recording",
    ]  # fmt: skip
    named = {name: check for name, check in doctor._CHECKS.items() if check.__name__ != "<lambda>"}
    assert named == {
        "Python": doctor._python, "NVIDIA driver": doctor._nvidia_driver, "GPU": doctor._gpu, "nvcc": doctor._nvcc,
        "PyCUDA's build": doctor._pycuda_build, "PyCUDA": doctor._pycuda, "PyCUDA cache": doctor._pycuda_cache,
        "CuPy": doctor._cupy,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("marked", "own", "status"),
    [(True, False, "warn"), (True, True, "ok"), (False, False, "ok"), (False, True, "ok")],
)
def test_a_python_of_the_system_refuses_packages(tmp_path, monkeypatch, marked, own, status):
    """PEP 668: the system's Python is marked, and an environment made of it has a prefix of its own."""
    if marked:
        (tmp_path / "EXTERNALLY-MANAGED").write_text("")
    monkeypatch.setattr(doctor.sysconfig, "get_path", lambda name: {"stdlib": tmp_path}[name])
    monkeypatch.setattr(doctor.sys, "prefix", "/own" if own else "/usr")
    monkeypatch.setattr(doctor.sys, "base_prefix", "/usr")
    check = doctor._python()
    assert check.status == status and check.found.startswith(doctor.platform.python_version())
    assert ("belongs to the operating system" in check.found) == (status == "warn")
    assert ("python3 -m venv" in check.fix) == (status == "warn")


@pytest.mark.parametrize(
    ("system", "release", "cure"),
    [
        ("linux", "6.8.0-generic", "nvidia.com/drivers"),
        ("linux", "5.15.153.1-Microsoft-standard-WSL2", "wsl --update"),
        ("darwin", "24.1.0", "Colab"),
    ],
)
def test_where_a_driver_comes_from(driver, monkeypatch, system, release, cure):
    driver(None)
    monkeypatch.setattr(doctor.sys, "platform", system)
    monkeypatch.setattr(doctor.platform, "release", lambda: release)
    check = doctor._nvidia_driver()
    assert check.status == "fail" and check.found == f"none that answers ({device.DRIVER_LIBRARY})"
    assert cure in check.fix


def test_a_gpu_that_nothing_hides_is_looked_for_with_nvidia_smi(driver, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    driver(Driver(count=0))
    check = doctor._gpu()
    assert check.found == "none: the NVIDIA driver shows no GPU"
    assert check.fix == "See whether `nvidia-smi` lists it."


def test_every_gpu_is_named(driver):
    driver(Driver(count=2, capability=(7, 5)))
    one = "NVIDIA Test (compute capability 7.5)"
    assert doctor._gpu() == doctor.Check("ok", f"{one}, {one}")


def test_an_nvcc_newer_than_the_driver_says_which_toolkit_fits(driver, monkeypatch):
    monkeypatch.setattr(nvcc, "find_nvcc", lambda: "/somewhere/nvcc")
    monkeypatch.setattr(nvcc, "nvcc_version", lambda path: "14.0.1")
    driver(Driver(cuda=13020))
    check = doctor._nvcc()
    assert (
        check.found == "14.0.1 at /somewhere/nvcc: newer than the driver, which runs CUDA 13.2"
        and "use a toolkit 13.x" in check.fix
    )
    driver(None)  # whose limit nobody knows
    assert doctor._nvcc() == doctor.Check("ok", "14.0.1 at /somewhere/nvcc")


@pytest.fixture
def asked(monkeypatch):
    """What the C++ compiler is asked, by a stand-in whose status is `asked.status`."""

    class Asked(list):
        status = 0

    asked = Asked()

    def run(command, **given):
        assert given["capture_output"]  # what it says is no part of the report
        asked.append((command, given["input"]))
        return subprocess.CompletedProcess(command, asked.status)

    monkeypatch.setattr(doctor.subprocess, "run", run)
    monkeypatch.setattr(nvcc, "find_host_compiler", lambda: "/bin/g++")
    return asked


def test_a_build_looks_where_the_build_of_pycuda_looks(asked, monkeypatch):
    monkeypatch.setattr(doctor, "_toolkit", lambda: Path("/cuda"))
    assert doctor._builds("curand.h", "curand", "cuda")
    ((command, text),) = asked
    assert text == "#include <curand.h>\n" and command[:3] == ["/bin/g++", "-shared", "-fPIC"]
    assert command[3] == "-o" and command[4].endswith("/x.so")
    assert command[5:7] == [f"-I{doctor.sysconfig.get_path('include')}", "-I/cuda/include"]
    assert command[7:12] == ["-x", "c++", "-", "-x", "none"]  # the libraries are no C++
    assert command[12:] == [
        *("-L/cuda/lib", "-L/cuda/lib64", "-L/cuda/lib/stubs", "-L/cuda/lib64/stubs"),
        *("-lcurand", "-lcuda"),
    ]
    asked.status = 1
    assert not doctor._builds("curand.h")


def test_on_windows_nothing_is_built_to_see(asked, monkeypatch):
    asked.status = 1
    monkeypatch.setattr(doctor.os, "name", "nt")
    assert doctor._builds("curand.h", "curand") and not asked


def test_a_build_takes_the_toolkit_of_the_first_nvcc(monkeypatch):
    monkeypatch.setattr(
        doctor.shutil, "which", lambda name: {"nvcc": "/a/b/../cuda/bin/nvcc"}[name]
    )
    assert doctor._toolkit() == Path("/a/cuda")
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    assert doctor._toolkit() is None


@pytest.mark.parametrize(
    ("text", "without"),
    [
        ("CUDA_ENABLE_CURAND = False\n", True),
        ("CUDA_TRACE = False\nCUDA_ENABLE_CURAND=False\n", True),
        ("CUDA_ENABLE_CURAND = True\n", False),
        ("# CUDA_ENABLE_CURAND = False\n", False),
    ],
)
def test_who_has_set_that_pycuda_is_built_without_curand(tmp_path, monkeypatch, text, without):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert not doctor._builds_without_curand()
    (tmp_path / ".aksetup-defaults.py").write_text(text)
    assert doctor._builds_without_curand() == without


def test_a_whole_toolkit_that_is_not_the_first_is_pointed_at(tmp_path, monkeypatch):
    for name in ("half/bin/nvcc", "whole/bin/nvcc", "whole/include/cuda.h"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    half, whole = tmp_path / "half", tmp_path / "whole"
    monkeypatch.setenv("CUDA_HOME", str(half))
    monkeypatch.setenv("CUDA_PATH", str(whole))
    monkeypatch.setattr(doctor, "_toolkit", lambda: half)
    said = doctor._how_to_get_the_toolkit()
    assert said.startswith(f"There is one in {whole},") and f"export PATH={whole}/bin:$PATH" in said
    monkeypatch.setattr(doctor, "_toolkit", lambda: whole)
    monkeypatch.delenv("CUDA_HOME")
    assert f"in {whole}" not in doctor._how_to_get_the_toolkit()


def test_what_a_build_lacks_is_told_by_its_cure(monkeypatch):
    monkeypatch.setattr(doctor, "_installed", lambda module: False)
    monkeypatch.setattr(doctor, "_toolkit", lambda: Path("/cuda"))
    monkeypatch.setattr(doctor, "_builds_without_curand", lambda: False)
    monkeypatch.setattr(doctor.sys, "version_info", (3, 12, 1, "final", 0))
    made = [("cuda.h",), ("stddef.h", "cuda")]
    monkeypatch.setattr(doctor, "_builds", lambda *asked: asked in made)
    check = doctor._pycuda_build()
    assert check.status == "warn" and check.found == "lacks Python.h, cuRAND"
    python, curand = check.fix.split("\nFor ")
    assert python.startswith("For Python.h: ") and "(python3.12-dev for this Python)" in python
    assert curand.startswith("cuRAND: It comes with the whole toolkit")
    made += [("Python.h",), ("curand.h", "curand")]
    assert doctor._pycuda_build() == doctor.Check("ok", "nothing is missing; the toolkit is /cuda")
    monkeypatch.setattr(doctor, "_toolkit", lambda: None)
    assert doctor._pycuda_build().found == "lacks the CUDA toolkit"


def test_what_pycuda_is_built_with_is_not_looked_for_once_it_is_there(monkeypatch):
    monkeypatch.setattr(doctor, "_installed", {"pycuda": True}.get)
    assert doctor._pycuda_build() == doctor.Check("ok", "not needed: PyCUDA is installed")


def test_a_module_is_installed_or_not():
    assert doctor._installed("pytest") and not doctor._installed("no_such_module")


@pytest.mark.parametrize(
    ("check", "extra", "modules", "lacking"),
    [
        ("recording", "record", ["nbclient", "jupytext", "ipykernel", "nbformat"], "nothing can be recorded"),
        ("cupti-python", "trace-13", ["cupti"], "`python -m cudatut trace` cannot run"),
    ],
)  # fmt: skip
def test_packages_that_are_there_and_that_are_not(monkeypatch, check, extra, modules, lacking):
    monkeypatch.setattr(doctor, "trace_extra", lambda: "trace-13")
    monkeypatch.setattr(doctor, "_installed", lambda module: True)
    assert doctor._CHECKS[check]() == doctor.Check("ok", ", ".join(modules))
    monkeypatch.setattr(doctor, "_installed", lambda module: module not in modules[-2:])
    found = f"no {', '.join(modules[-2:])}: {lacking}"
    fix = doctor.paths.pip_install(extra)
    assert doctor._CHECKS[check]() == doctor.Check("warn", found, fix)


def test_pycuda_that_loads_says_what_it_was_built_for(tmp_path, monkeypatch):
    (tmp_path / "pycuda").mkdir()
    (tmp_path / "pycuda/__init__.py").write_text("VERSION_TEXT = '2026.1'")
    (tmp_path / "pycuda/driver.py").write_text("get_version = lambda: (13, 2, 0)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert doctor._pycuda() == doctor.Check("ok", "2026.1 built for CUDA 13.2")


@pytest.mark.parametrize(
    ("system", "before", "after"),
    [
        ("linux", "Once the line 'PyCUDA's build' lacks nothing:", ""),
        ("win32", "Open 'x64 Native Tools", "Less work: WSL"),
    ],
)
def test_how_pycuda_is_installed(monkeypatch, system, before, after):
    """As `start/hello` says; whoever reads this has the package, from wherever it came."""
    done = subprocess.CompletedProcess([], 1, "", "No module named 'pycuda'")
    monkeypatch.setattr(doctor.subprocess, "run", lambda *a, **k: done)
    monkeypatch.setattr(doctor, "_installed", lambda module: False)
    monkeypatch.setattr(doctor.sys, "platform", system)
    _, first, command, *more = doctor._pycuda().fix.splitlines()
    assert first.startswith(before) and command == "pip install pycuda"
    assert [line.startswith(after) for line in more] == [True] * bool(after)


def test_an_import_of_pycuda_that_ends_its_process(monkeypatch):
    done = subprocess.CompletedProcess([], -11, "", " \n")
    monkeypatch.setattr(doctor.subprocess, "run", lambda *a, **k: done)
    assert doctor._pycuda().found == "its import ended with status -11"


@pytest.mark.parametrize(
    ("cuda", "fix"),
    [(13000, "pip install cupy-cuda13x"), (14000, "There is a CuPy for drivers of CUDA 12")],
)
def test_no_cupy(driver, monkeypatch, cuda, fix):
    driver(Driver(cuda=cuda))
    monkeypatch.setattr(doctor, "_installed", {"cupy": False}.get)
    check = doctor._cupy()
    assert check.status == "warn" and check.found == "none: benchmarks lack the vendor's rows"
    assert check.fix.startswith(fix)


@pytest.mark.parametrize(
    ("cuda", "packages", "status", "found"),
    [
        (13000, ["cupy-cuda13x"], "ok", "cupy-cuda13x"),
        (13000, ["other", "cupy-cuda13x", "cupy-cuda12x"], "ok", "cupy-cuda12x, cupy-cuda13x"),
        (13000, [], "ok", "installed"),  # from source
        (14000, ["cupy-cuda13x"], "ok", "cupy-cuda13x"),  # of which nothing is known
        (None, ["cupy-cuda13x"], "ok", "cupy-cuda13x"),
        (12080, ["cupy-cuda13x"], "warn", "cupy-cuda13x, but the driver runs CUDA 12.8: its calls may fail"),
    ],
)  # fmt: skip
def test_which_cupy_is_there(driver, monkeypatch, cuda, packages, status, found):
    driver(Driver(cuda=cuda) if cuda else None)
    monkeypatch.setattr(doctor, "_installed", {"cupy": True}.get)
    monkeypatch.setattr(doctor.packages, "packages_distributions", lambda: {"cupy": packages})
    check = doctor._cupy()
    assert (check.status, check.found) == (status, found)
    cure = "pip uninstall -y cupy-cuda13x && pip install cupy-cuda12x"
    assert check.fix == (cure if status == "warn" else "")


def test_the_cache_of_pycuda_is_where_pycuda_has_it(tmp_path, monkeypatch):
    import platformdirs

    own = tmp_path / "own"
    monkeypatch.setattr(
        platformdirs, "user_cache_dir", lambda app, author: f"{tmp_path}/{app}/{author}"
    )
    monkeypatch.delenv("PYCUDA_CACHE_DIR", raising=False)
    assert doctor._pycuda_cache() == doctor.Check("ok", f"{tmp_path}/pycuda/pycuda")
    monkeypatch.setenv("PYCUDA_CACHE_DIR", str(own))
    assert doctor._pycuda_cache() == doctor.Check("ok", str(own))
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PYCUDA_CACHE_DIR", str(tmp_path / "file"))
    check = doctor._pycuda_cache()
    assert check.found.startswith(f"{tmp_path / 'file'} cannot be written (") and check.fix


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("NVIDIA (R) Nsight Compute\nVersion 2025.3.1.0 (build 36398880)", "2025.3.1.0"),
        ("NVIDIA Nsight Systems version 2025.3.2.474", "2025.3.2.474"),
        ("NVIDIA (R) Compute Sanitizer\nVerifier: 2025.3", "2025.3"),
        ("nothing of the kind", "unknown version"),
    ],
)
def test_the_version_of_a_tool(monkeypatch, said, version):
    asked = []

    def run(command, **given):
        assert given["capture_output"] and given["text"]
        asked.append(command)
        return subprocess.CompletedProcess(command, 0, said)

    monkeypatch.setattr(doctor.shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(doctor.subprocess, "run", run)
    assert doctor._tool("nsys", "no timeline") == doctor.Check("ok", f"{version} at /bin/nsys")
    assert asked == [["/bin/nsys", "--version"]]


@pytest.mark.parametrize(
    ("check", "program", "lacking"),
    [
        ("Nsight Compute", "ncu", "examples show no hardware counters"),
        ("Nsight Systems", "nsys", "the timeline of the profiling chapter cannot be made"),
        ("compute-sanitizer", "compute-sanitizer", "nothing can be recorded or sanitized"),
    ],
)
def test_a_tool_that_is_not_there(monkeypatch, check, program, lacking):
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    cure = f"{program} comes with the CUDA toolkit; put its bin/ on PATH."
    assert doctor._CHECKS[check]() == doctor.Check("warn", f"none: {lacking}", cure)


def test_the_compiler_is_named_by_its_place(monkeypatch):
    monkeypatch.setattr(nvcc, "find_host_compiler", lambda: Path("/opt/bin/g++"))
    assert doctor._CHECKS["C++ compiler"]() == doctor.Check("ok", "/opt/bin/g++")


def test_a_check_that_cannot_tell_fails_and_says_why(monkeypatch):
    def missing():
        raise ToolMissing("not found; install it so")

    monkeypatch.setattr(doctor, "_CHECKS", {"nvcc": missing})
    assert doctor.checks() == {"nvcc": doctor.Check("fail", "not found; install it so")}
