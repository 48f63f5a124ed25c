"""What does this machine have, what does it lack to run the examples, and how does one get it?"""

import ctypes
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import metadata as packages
from pathlib import Path

from cudatut import paths
from cudatut.errors import CudatutError, NoGpuError
from cudatut.gpu import nvcc

OLDEST_PYTHON = (3, 11)


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


def has_driver() -> bool:
    """Whether NVIDIA's driver is installed; unlike `why_no_gpu` this does not start it."""
    return _driver() is not None


def require_gpu() -> None:
    """Raises NoGpuError unless the driver shows a GPU: what `make live` asks before it compiles PyCUDA for minutes."""
    if missing := why_no_gpu():
        raise NoGpuError(f"this needs a GPU, and there is none here: {missing}")


def gpu_lacks(requires: str) -> str | None:
    """Why the first GPU cannot run an example with this header (`sm_80`, `sm_90a`), or None; also where there is no GPU.

    Asks the driver alone: no context, no PyCUDA.
    """
    from cudatut.gpu.device import supports

    if _driver() is None or why_no_gpu():
        return None
    name, capability = _name_and_capability(0)
    if supports(capability, requires):
        return None
    wanted = f"{requires[3:].rstrip('af')[:-1]}.{requires.rstrip('af')[-1]}"
    least = f"exactly {wanted}" if requires[-1] in "af" else f"{wanted} or newer"
    return (
        f"it needs a GPU of compute capability {least} ({requires}), and this one, {name}, "
        "has {}.{}".format(*capability)
    )


def driver_cuda() -> tuple[int, int] | None:
    """Newest CUDA version that the driver runs, such as (13, 0); None without a driver."""
    driver, version = _driver(), ctypes.c_int(0)
    if driver is None or driver.cuDriverGetVersion(ctypes.byref(version)) != 0:
        return None
    return version.value // 1000, version.value % 1000 // 10


def cupy_package() -> str | None:
    """The package with the CuPy that this driver can run, or None where none fits."""
    version = driver_cuda()
    return {12: "cupy-cuda12x", 13: "cupy-cuda13x"}.get(version[0]) if version else None


def pip_install(extra: str) -> str:
    """The command that installs what this extra of pyproject.toml holds, from where this cudatut runs.

    The project is not on PyPI: in a checkout it is the checkout that pip is given, elsewhere the repository.
    """
    root = paths.repo_root()
    if root is not None:
        here = "." if root == Path.cwd().resolve() else str(root)
        return f"pip install -e '{here}[{extra}]'"
    from cudatut.record.notebook import repository

    return f"pip install 'cudatut[{extra}] @ git+{repository()}'"


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


def _python() -> Check:
    found = f"{platform.python_version()} at {sys.executable}"
    if sys.version_info >= OLDEST_PYTHON and _belongs_to_the_system():
        return Check(
            "Python",
            "warn",
            f"{found}, which belongs to the operating system: pip refuses to install into it",
            "Make an environment of your own first:\npython3 -m venv .venv && . .venv/bin/activate",
        )
    if sys.version_info < OLDEST_PYTHON:
        return Check(
            "Python", "fail", found, "Install Python {}.{} or newer.".format(*OLDEST_PYTHON)
        )
    return Check("Python", "ok", found)


def _belongs_to_the_system() -> bool:
    """Whether pip would refuse with 'externally-managed-environment' (PEP 668)."""
    marker = Path(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED")
    return sys.prefix == sys.base_prefix and marker.is_file()


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
    version = driver_cuda()
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
    name, capability = _name_and_capability(number)
    return "{} (compute capability {}.{})".format(name, *capability)


def _name_and_capability(number: int) -> tuple[str, tuple[int, int]]:
    driver, device, name = _driver(), ctypes.c_int(0), ctypes.create_string_buffer(100)
    major, minor = ctypes.c_int(0), ctypes.c_int(0)
    driver.cuDeviceGet(ctypes.byref(device), number)
    driver.cuDeviceGetName(name, 100, device)
    driver.cuDeviceGetAttribute(
        ctypes.byref(major), 75, device
    )  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
    driver.cuDeviceGetAttribute(ctypes.byref(minor), 76, device)  # ..._MINOR
    return name.value.decode(), (major.value, minor.value)


# --- compilers ------------------------------------------------------------------------------------------------------


def _nvcc() -> Check:
    try:
        path = nvcc.find_nvcc()
        version = nvcc.nvcc_version(path)
    except CudatutError as error:
        return Check("nvcc", "fail", "none that works", str(error))
    found = f"{version} at {path}"
    limit = driver_cuda()
    toolkit = tuple(int(part) for part in version.split(".")[:2])
    if limit and toolkit[0] > limit[0]:
        return Check(
            "nvcc",
            "warn",
            f"{found}: newer than the driver, which runs CUDA {limit[0]}.{limit[1]}",
            "Code for this GPU's own architecture may still load, but PTX will not.\n"
            f"Update the driver, or use a toolkit {limit[0]}.x (https://developer.nvidia.com/cuda-toolkit-archive).",
        )
    return Check("nvcc", "ok", found)


def _host_compiler() -> Check:
    try:
        return Check("C++ compiler", "ok", str(nvcc.find_host_compiler()))
    except CudatutError as error:
        return Check("C++ compiler", "fail", "none", str(error))


# --- what compiles PyCUDA -------------------------------------------------------------------------------------------

# PyPI has no wheels of PyCUDA: pip compiles it. Its setup.py takes the toolkit's place from the first nvcc on PATH.
_WITHOUT_CURAND = "CUDA_ENABLE_CURAND = False"


def _toolkit() -> Path | None:
    """The folder that PyCUDA's build takes for the CUDA toolkit's, or None without nvcc on PATH."""
    found = shutil.which("nvcc")
    return Path(os.path.abspath(found)).parent.parent if found else None


def _settings_of_the_build() -> str:
    """What the user or the administrator has set for PyCUDA's build, as text."""
    files = (Path.home() / ".aksetup-defaults.py", Path("/etc/aksetup-defaults.py"))
    return "\n".join(
        file.read_text(encoding="utf-8", errors="replace") for file in files if file.is_file()
    )


def _without_curand() -> bool:
    return re.search(r"^CUDA_ENABLE_CURAND *= *False", _settings_of_the_build(), re.M) is not None


def _header(name: str) -> Path | None:
    """Where the compiler finds this header when it builds PyCUDA, or None."""
    include = _toolkit() / "include" if _toolkit() else None
    if os.name == "nt":
        return include / name if include and (include / name).is_file() else None
    try:
        command = [str(nvcc.find_host_compiler()), "-E", "-x", "c++", "-"]
    except CudatutError:
        return include / name if include and (include / name).is_file() else None
    folders = [include, Path(sysconfig.get_path("include"))]
    command += [f"-I{folder}" for folder in folders if folder]
    done = subprocess.run(
        command, input=f"#include <{name}>\n", capture_output=True, text=True, timeout=60
    )
    found = re.search(rf'^# \d+ "(.*/{re.escape(name)})"', done.stdout, re.MULTILINE)
    return Path(found[1]) if found and done.returncode == 0 else None


def _links(library: str) -> bool:
    """Whether the linker finds lib<library>.so where PyCUDA's build looks for it. On Windows it is not tried."""
    if os.name == "nt":
        return True
    root = _toolkit()
    places = [root / part for part in ("lib", "lib64", "lib/stubs", "lib64/stubs")] if root else []
    try:
        compiler = str(nvcc.find_host_compiler())
    except CudatutError:
        return any((place / f"lib{library}.so").is_file() for place in places)
    with tempfile.TemporaryDirectory() as folder:
        command = [compiler, "-shared", "-o", f"{folder}/x.so", "-x", "c++", "-", "-x", "none"]
        command += [*(f"-L{place}" for place in places), f"-l{library}"]
        done = subprocess.run(command, input="", capture_output=True, text=True, timeout=60)
    return done.returncode == 0


def _how_to_get_the_toolkit() -> str:
    """A toolkit that is whole may be here, but not the first on PATH."""
    named = (os.environ.get(variable) for variable in ("CUDA_HOME", "CUDA_PATH"))
    places = [Path(place) for place in named if place]
    places += [Path("/usr/local/cuda"), *sorted(Path("/usr/local").glob("cuda-*"), reverse=True)]
    for place in places:
        if place != _toolkit() and all(
            (place / x).is_file() for x in ("include/cuda.h", "bin/nvcc")
        ):
            return (
                f"There is a toolkit in {place}, but the first nvcc on PATH is not its own:\n"
                f"`export PATH={place / 'bin'}:$PATH`"
            )
    return (
        "Install the CUDA toolkit (NVIDIA's package cuda-toolkit; Debian, Ubuntu: `apt-get install nvidia-cuda-toolkit`),\n"
        "and let its nvcc be the first on PATH, as with `export PATH=/usr/local/cuda/bin:$PATH`."
    )


def _build_needs() -> list[tuple[str, str | None, str]]:
    """(what PyCUDA's build needs, where it is or None, how to get it), in the order in which the build would miss it."""
    advice = _how_to_get_the_toolkit()
    if _is_wsl():
        advice += "\nIn WSL take the package for 'WSL-Ubuntu', which brings no driver."
    needs = [("nvcc on PATH", shutil.which("nvcc"), advice)]
    try:
        needs.append(("C++ compiler", str(nvcc.find_host_compiler()), ""))
    except CudatutError as error:
        needs.append(("C++ compiler", None, str(error)))
    version = "{}.{}".format(*sys.version_info[:2])
    for header, how in (
        ("Python.h", f"Debian, Ubuntu: `apt-get install python3-dev` (python{version}-dev for this Python); "
                     "Fedora: `dnf install python3-devel`."),
        ("cuda.h", advice),
    ):  # fmt: skip
        place = _header(header)
        needs.append((header, str(place) if place else None, how))
    if not _without_curand():
        place = _header("curand.h")
        curand = str(place) if place and _links("curand") else None
        needs.append(
            (
                "curand.h" if place is None else "libcurand",
                curand,
                "It comes with the whole toolkit (NVIDIA's package libcurand-dev-13-0, or -12-9 ...). The book does without\n"
                f"it: `echo '{_WITHOUT_CURAND}' >> ~/.aksetup-defaults.py` builds PyCUDA without.",
            )
        )
    needs.append(
        (
            "libcuda to link with",
            "found" if _links("cuda") else None,
            "The driver brings libcuda.so; where there is none (in a container), the toolkit's lib64/stubs does, if its own\n"
            "nvcc is the first on PATH.",
        )
    )
    return needs


def _pycuda_build() -> Check:
    """Everything that compiling PyCUDA needs, in one line; where PyCUDA is installed it is not looked for."""
    if importlib.util.find_spec("pycuda") is not None:
        return Check("PyCUDA's build", "ok", "not needed: PyCUDA is installed")
    needs = _build_needs()
    missing = [(what, advice) for what, place, advice in needs if place is None]
    if missing:
        fix = "\n".join(f"{what}: {advice}" for what, advice in missing)
        return Check(
            "PyCUDA's build", "warn", f"lacks {', '.join(what for what, _ in missing)}", fix
        )
    return Check("PyCUDA's build", "ok", ", ".join(f"{what}: {place}" for what, place, _ in needs))


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
    lines = ["PyPI has no wheels of PyCUDA: pip compiles it, which takes two minutes or more."]
    if sys.platform == "win32":
        lines += [
            "Open 'x64 Native Tools Command Prompt for VS', see that `nvcc --version` answers there, then:",
            pip_install("gpu").replace("'", '"'),
            "Less work: WSL (`wsl --install`), where it is as on Linux.",
        ]
        return "\n".join(lines)
    if any(place is None for _, place, _ in _build_needs()):
        lines.append("First mend what the line 'PyCUDA's build' lacks. Then:")
    return "\n".join([*lines, pip_install("gpu")])


def _cupy() -> Check:
    package = cupy_package()
    if importlib.util.find_spec("cupy") is None:
        fix = (
            f"pip install {package}"
            if package
            else "There is a CuPy for drivers of CUDA 12 and of CUDA 13."
        )
        return Check("CuPy", "warn", "none: benchmarks lack the vendor's rows", fix)
    installed = sorted(
        name
        for name in packages.packages_distributions().get("cupy", [])
        if name.startswith("cupy-cuda")
    )
    if package and installed and package not in installed:
        version = "{}.{}".format(*driver_cuda())
        return Check(
            "CuPy",
            "warn",
            f"{installed[0]}, but the driver runs CUDA {version}: its calls may fail",
            f"pip uninstall -y {installed[0]} && pip install {package}",
        )
    return Check("CuPy", "ok", "installed" + (f": {installed[0]}" if installed else ""))


def _tracing() -> Check:
    if importlib.util.find_spec("cupti") is None:
        version = driver_cuda()
        extra = "trace12" if version and version[0] < 13 else "trace13"
        return Check(
            "cupti-python", "warn", "none: `python -m cudatut trace` cannot run", pip_install(extra)
        )
    return Check("cupti-python", "ok", "installed")


def _recording() -> Check:
    wanted = ("nbclient", "jupytext", "ipykernel", "nbformat")
    missing = [name for name in wanted if importlib.util.find_spec(name) is None]
    if missing:
        return Check(
            "recording",
            "warn",
            f"lacks {', '.join(missing)}",
            f"To record: {pip_install('record')}",
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
    _pycuda_build,
    _pycuda,
    _pycuda_cache,
    _cupy,
    _tracing,
    _tool("ncu", "Nsight Compute", "examples show no hardware counters"),
    _tool("nsys", "Nsight Systems", "the timeline of the profiling chapter cannot be made"),
    _tool("compute-sanitizer", "compute-sanitizer", "nothing can be recorded or sanitized"),
    _recording,
    _chromium,
]
