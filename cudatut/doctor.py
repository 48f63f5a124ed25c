"""What does this machine have, what does it lack to run the examples, and how does one get it?"""

import contextlib
import ctypes
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cudatut import nvcc
from cudatut.errors import CudatutError

OLDEST_PYTHON = (3, 11)
_BUILD_NEEDS = "PyPI has no PyCUDA wheels, so pip compiles it: that needs nvcc on PATH, cuda.h (both in the CUDA toolkit) and "


@dataclass(frozen=True)
class Check:
    """One line of the report. status: "ok", "warn" (something does without it) or "fail" (no example runs without it)."""

    name: str
    status: str
    found: str
    fix: str = ""


def main() -> int:
    """Print every check; returns 0 if an example can run on a GPU here, else 1."""
    found = checks()
    width = max(len(check.name) for check in found)
    for check in found:
        print(f"{check.status:4}  {check.name:{width}}  {check.found}")
        for line in check.fix.splitlines() if check.status != "ok" else ():
            print(f"{'':{width + 8}}{line}")
    missing = [check.name for check in found if check.status == "fail"]
    print()
    if missing:
        print(f"Examples cannot run on a GPU here yet; missing: {', '.join(missing)}.")
        print(
            "The book, the tests and `python -m cudatut run NAME` (replaying recordings) work without."
        )
        return 1
    print("Examples can run here: `python -m cudatut run start/hello`.")
    return 0


def checks() -> list[Check]:
    """All checks, in the order in which one would install what they look for."""
    found = []
    for check in _CHECKS:
        try:
            found.append(check())
        except Exception as error:  # a broken driver or tool must not hide the other lines
            found.append(
                Check(
                    check.__name__.strip("_").replace("_", " "),
                    "warn",
                    f"could not be checked: {error!r}",
                )
            )
    return found


def why_no_gpu() -> str | None:
    """None if the driver shows a GPU, else what is missing; asks the driver alone, so it is quick and holds no context."""
    driver = _driver()
    if driver is None:
        return f"no NVIDIA driver ({_DRIVER_LIBRARY} not found)"
    status, count = _device_count()
    if status:
        return f"the NVIDIA driver does not start (cuInit returned {status})"
    return None if count else "the NVIDIA driver shows no GPU"


# --- driver and GPU -------------------------------------------------------------------------------------------------

_DRIVER_LIBRARY = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"


def _is_wsl() -> bool:
    return "microsoft" in platform.release().lower()


@cache
def _driver() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(_DRIVER_LIBRARY)
    except OSError:
        return None


@cache
def _device_count() -> tuple[int, int]:
    """(status of cuInit or cuDeviceGetCount, number of GPUs)"""
    driver, count = _driver(), ctypes.c_int(0)
    status = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    return status, count.value


def _driver_cuda() -> tuple[int, int] | None:
    """Newest CUDA version that the driver runs, such as (13, 0)."""
    driver, version = _driver(), ctypes.c_int(0)
    if driver is None or driver.cuDriverGetVersion(ctypes.byref(version)) != 0:
        return None
    return version.value // 1000, version.value % 1000 // 10


def _python() -> Check:
    found = f"{platform.python_version()} at {sys.executable}"
    if sys.version_info < OLDEST_PYTHON:
        return Check(
            "Python", "fail", found, "Install Python {}.{} or newer.".format(*OLDEST_PYTHON)
        )
    return Check("Python", "ok", found)


def _nvidia_driver() -> Check:
    if _driver() is None:
        where = (
            "In WSL the driver belongs on Windows, never inside Linux; then `wsl --update` and `wsl --shutdown`."
            if _is_wsl()
            else "Install it from https://www.nvidia.com/drivers (Ubuntu: `sudo ubuntu-drivers install`) and restart."
        )
        if sys.platform == "darwin":
            where = "macOS has no CUDA. Use Colab: every example page has an 'Open in Colab' link."
        return Check("NVIDIA driver", "fail", f"none ({_DRIVER_LIBRARY} not found)", where)
    version = _driver_cuda()
    if version is None:
        return Check(
            "NVIDIA driver",
            "fail",
            f"{_DRIVER_LIBRARY} is there but does not answer",
            "Reinstall the driver.",
        )
    return Check(
        "NVIDIA driver",
        "ok",
        "runs programs built for CUDA {}.{} and older. That is what nvidia-smi shows as 'CUDA Version': "
        "a limit of the driver, not an installed toolkit".format(*version),
    )


def _gpu() -> Check:
    if _driver() is None:
        return Check("GPU", "fail", "not looked for: no driver", "Install the driver first.")
    status, count = _device_count()
    if status or not count:
        hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
        hint = f"CUDA_VISIBLE_DEVICES is {hidden!r} and may hide it; " if hidden is not None else ""
        return Check(
            "GPU",
            "fail",
            f"none (the driver returned {status})",
            f"{hint}see whether `nvidia-smi` lists it.",
        )
    return Check("GPU", "ok", ", ".join(_describe(number) for number in range(count)))


def _describe(number: int) -> str:
    driver, device, name = _driver(), ctypes.c_int(0), ctypes.create_string_buffer(100)
    major, minor = ctypes.c_int(0), ctypes.c_int(0)
    driver.cuDeviceGet(ctypes.byref(device), number)
    driver.cuDeviceGetName(name, 100, device)
    driver.cuDeviceGetAttribute(
        ctypes.byref(major), 75, device
    )  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
    driver.cuDeviceGetAttribute(ctypes.byref(minor), 76, device)  # ..._MINOR
    return f"{name.value.decode()} (compute capability {major.value}.{minor.value})"


# --- compilers ------------------------------------------------------------------------------------------------------


def _nvcc() -> Check:
    try:
        path = nvcc.find_nvcc()
        version = nvcc.nvcc_version(path)
    except CudatutError as error:
        return Check("nvcc", "fail", "none that works", str(error))
    found = f"{version} at {path}"
    limit = _driver_cuda()
    toolkit = tuple(int(part) for part in version.split(".")[:2])
    if limit and toolkit[0] > limit[0]:
        return Check(
            "nvcc",
            "warn",
            f"{found}: newer than the driver, which runs CUDA {limit[0]}.{limit[1]}",
            "Code for this GPU's own architecture may still load, but PTX will not.\n"
            f"Update the driver, or use a toolkit {limit[0]}.x (`pip install 'nvidia-cuda-nvcc=={limit[0]}.*'`).",
        )
    return Check("nvcc", "ok", found)


def _host_compiler() -> Check:
    try:
        return Check("C++ compiler", "ok", str(nvcc.find_host_compiler()))
    except CudatutError as error:
        return Check("C++ compiler", "fail", "none", str(error))


def _cuda_h() -> Check:
    places = [
        Path(os.environ[variable], "include")
        for variable in ("CUDA_HOME", "CUDA_PATH")
        if variable in os.environ
    ]
    with contextlib.suppress(CudatutError):
        # .../bin/nvcc, or a wheel's .../cu13/bin/nvcc
        places += [parent / "include" for parent in nvcc.find_nvcc().resolve().parents[1:3]]
    places += [Path("/usr/local/cuda/include"), Path("/usr/include")] if os.name != "nt" else []
    for place in places:
        if (place / "cuda.h").is_file():
            return Check("cuda.h", "ok", str(place / "cuda.h"))
    built = importlib.util.find_spec("pycuda") is not None
    return Check(
        "cuda.h",
        "ok" if built else "warn",
        "none" + (" (needed to build PyCUDA only, which is installed)" if built else ""),
        "Only building PyCUDA needs it: install the CUDA toolkit (Debian, Ubuntu: `apt install nvidia-cuda-toolkit`,\n"
        "or NVIDIA's package cuda-toolkit), or `pip install nvidia-cuda-runtime`.",
    )


# --- Python packages ------------------------------------------------------------------------------------------------


def _pycuda() -> Check:
    # In a child: a driver that does not fit may end the process that imports it.
    code = "import pycuda, pycuda.driver as d; print(pycuda.VERSION_TEXT, 'built for CUDA %d.%d' % d.get_version()[:2])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    if done.returncode == 0:
        return Check("PyCUDA", "ok", done.stdout.strip())
    lines = done.stderr.strip().splitlines()
    reason = lines[-1] if lines else f"its import ended with status {done.returncode}"
    if importlib.util.find_spec("pycuda") is not None:
        fix = (
            "It is installed but does not load, most likely built for another Python, CUDA or driver. Build it again:\n"
            "pip install --force-reinstall --no-cache-dir --no-binary pycuda pycuda"
        )
        return Check("PyCUDA", "fail", reason, fix)
    return Check("PyCUDA", "fail", reason, _how_to_build_pycuda())


def _how_to_build_pycuda() -> str:
    if sys.platform == "win32":
        return (
            f"{_BUILD_NEEDS}cl.exe.\n"
            "Open 'x64 Native Tools Command Prompt for VS', see that `nvcc --version` answers there, then:\n"
            "pip install cudatut[gpu]\n"
            "Less work: WSL (`wsl --install`), where it is as on Linux."
        )
    compiler = "sudo apt-get install g++ python3-dev"
    driver = (
        "\nIn WSL install the toolkit package for 'WSL-Ubuntu', which brings no driver."
        if _is_wsl()
        else ""
    )
    return (
        f"{_BUILD_NEEDS}g++:\n"
        f"{compiler}\n"
        "export PATH=/usr/local/cuda/bin:$PATH\n"
        f"pip install 'cudatut[gpu]'{driver}"
    )


def _cupy() -> Check:
    if importlib.util.find_spec("cupy") is None:
        return Check(
            "CuPy",
            "warn",
            "none: benchmarks lack the vendor's rows",
            "pip install 'cudatut[vendor]'",
        )
    return Check("CuPy", "ok", "installed")


def _recording() -> Check:
    wanted = ("nbclient", "jupytext", "ipykernel", "nbformat")
    missing = [name for name in wanted if importlib.util.find_spec(name) is None]
    if missing:
        return Check(
            "recording",
            "warn",
            f"lacks {', '.join(missing)}",
            "To record: pip install 'cudatut[record]'",
        )
    return Check("recording", "ok", ", ".join(wanted))


def _pycuda_cache() -> Check:
    """Folder where PyCUDA keeps compiled kernels; as pycuda.compiler finds it."""
    folder = os.environ.get("PYCUDA_CACHE_DIR")
    if folder is None and importlib.util.find_spec("platformdirs") is not None:
        import platformdirs

        folder = platformdirs.user_cache_dir("pycuda", "pycuda")
    place = Path(folder) if folder else Path.home() / ".cache" / "pycuda"
    existing = next(parent for parent in (place, *place.parents) if parent.exists())
    try:
        with tempfile.NamedTemporaryFile(dir=existing):
            pass
    except OSError as error:
        return Check(
            "PyCUDA cache",
            "warn",
            f"{place} cannot be written ({error.strerror}): every run compiles its kernels again",
            "Set PYCUDA_CACHE_DIR to a folder that can be written.",
        )
    return Check("PyCUDA cache", "ok", str(place))


# --- tools ----------------------------------------------------------------------------------------------------------


def _tool(program: str, name: str, lacking: str) -> Callable[[], Check]:
    def check() -> Check:
        path = shutil.which(program)
        if path is None:
            return Check(
                name,
                "warn",
                f"none: {lacking}",
                f"{program} comes with the CUDA toolkit; put its bin/ on PATH.",
            )
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60)
        version = re.search(r"(?:[Vv]ersion|Verifier)\D{0,3}([\d.]+)", done.stdout)
        return Check(name, "ok", f"{version[1] if version else 'unknown version'} at {path}")

    check.__name__ = name
    return check


def _chromium() -> Check:
    for program in ("chromium", "chromium-browser", "google-chrome", "chrome"):
        path = shutil.which(program)
        if path:
            return Check("Chromium", "ok", path)
    cache_dir = os.environ.get("PLAYWRIGHT_BROWSERS_PATH")
    for folder in (
        Path(cache_dir) if cache_dir else None,
        Path.home() / ".cache" / "ms-playwright",
    ):
        if folder and any(folder.glob("chromium*")):
            return Check("Chromium", "ok", str(folder))
    return Check(
        "Chromium",
        "warn",
        "none: the tests that open the site in a browser cannot run",
        "playwright install chromium",
    )


_CHECKS = [
    _python,
    _nvidia_driver,
    _gpu,
    _nvcc,
    _host_compiler,
    _cuda_h,
    _pycuda,
    _pycuda_cache,
    _cupy,
    _tool("ncu", "Nsight Compute", "examples show no hardware counters"),
    _tool("nsys", "Nsight Systems", "the timeline of the profiling chapter cannot be made"),
    _tool("compute-sanitizer", "compute-sanitizer", "nothing can be recorded or sanitized"),
    _recording,
    _chromium,
]
