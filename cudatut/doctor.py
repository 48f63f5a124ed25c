"""What does this machine have, what does it lack to run the examples, and how does one get it?"""

import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from dataclasses import dataclass
from importlib import metadata as packages
from pathlib import Path

from cudatut import paths
from cudatut.errors import CudatutError
from cudatut.gpu import nvcc
from cudatut.gpu.device import (
    DRIVER_LIBRARY,
    cupy_package,
    driver_cuda,
    gpu_count,
    name_and_capability,
    trace_extra,
    why_no_gpu,
)


@dataclass(frozen=True)
class Check:
    """One line of the report. status: "ok", "warn" (something does without it) or "fail" (no example runs without it)."""

    status: str
    found: str
    fix: str = ""


def main() -> int:
    """Print every check; returns 0 if an example can run on a GPU here, else 1."""
    found = checks()
    width = max(map(len, found))
    for name, check in found.items():
        print(f"{check.status:4}  {name:{width}}  {check.found}")
        for line in check.fix.splitlines():
            print(f"{'':{width + 8}}{line}")
    missing = [name for name, check in found.items() if check.status == "fail"]
    print()
    if missing:
        print(f"Examples cannot run on a GPU here yet; missing: {', '.join(missing)}.")
        print("The book, its tests and `python -m cudatut run NAME` (replaying) work without.")
        return 1
    print("Examples can run here: `python -m cudatut run start/hello`.")
    return 0


def checks() -> dict[str, Check]:
    """All checks by name, in the order in which one would install what they look for."""
    found = {}
    for name, check in _CHECKS.items():
        try:
            found[name] = check()
        except CudatutError as error:
            found[name] = Check("fail", str(error))
        except Exception as error:  # a broken driver or tool must not hide the other lines
            found[name] = Check("warn", f"could not be checked: {error!r}")
    return found


# --- driver and GPU -------------------------------------------------------------------------------------------------


def _python() -> Check:
    found = f"{platform.python_version()} at {sys.executable}"
    # PEP 668: pip refuses with 'externally-managed-environment'.
    marker = Path(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED")
    if sys.prefix == sys.base_prefix and marker.is_file():
        return Check(
            "warn",
            f"{found}, which belongs to the operating system: pip refuses to install into it",
            "Make an environment of your own first:\npython3 -m venv .venv && . .venv/bin/activate",
        )
    return Check("ok", found)


def _nvidia_driver() -> Check:
    if (version := driver_cuda()) is None:
        where = "Install it from https://www.nvidia.com/drivers (Ubuntu: `sudo ubuntu-drivers install`) and restart."
        if "microsoft" in platform.release().lower():
            where = "In WSL the driver belongs on Windows, never inside Linux; then `wsl --update` and `wsl --shutdown`."
        elif sys.platform == "darwin":
            where = "macOS has no CUDA. Use Colab: every example page has an 'Open in Colab' link."
        return Check("fail", f"none that answers ({DRIVER_LIBRARY})", where)
    return Check(
        "ok",
        "runs programs built for CUDA {}.{} and older. That is what nvidia-smi shows as 'CUDA Version': "
        "a limit of the driver, not an installed toolkit".format(*version),
    )


def _gpu() -> Check:
    if missing := why_no_gpu():
        hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
        hint = f"CUDA_VISIBLE_DEVICES is {hidden!r} and may hide it. " if hidden is not None else ""
        return Check("fail", f"none: {missing}", f"{hint}See whether `nvidia-smi` lists it.")
    gpus = (name_and_capability(number) for number in range(gpu_count()))
    names = (f"{name} (compute capability {major}.{minor})" for name, (major, minor) in gpus)
    return Check("ok", ", ".join(names))


# --- compilers ------------------------------------------------------------------------------------------------------


def _nvcc() -> Check:
    path = nvcc.find_nvcc()
    version, limit = nvcc.nvcc_version(path), driver_cuda()
    if limit and int(version.partition(".")[0]) > limit[0]:
        return Check(
            "warn",
            f"{version} at {path}: newer than the driver, which runs CUDA {limit[0]}.{limit[1]}",
            "Code for this GPU's own architecture may still load, but PTX will not.\n"
            f"Update the driver, or use a toolkit {limit[0]}.x (https://developer.nvidia.com/cuda-toolkit-archive).",
        )
    return Check("ok", f"{version} at {path}")


# --- PyCUDA ---------------------------------------------------------------------------------------------------------


def _toolkit() -> Path | None:
    """The folder that PyCUDA's build takes for the CUDA toolkit's: that of the first nvcc on PATH."""
    found = shutil.which("nvcc")
    return Path(os.path.abspath(found)).parent.parent if found else None


def _builds(header: str, *libraries: str) -> bool:
    """Whether the C++ compiler finds a header and libraries, looking where PyCUDA's build looks.

    True on Windows, where there is nothing to ask. Raises ToolMissing without a compiler.
    """
    if os.name == "nt":
        return True
    root = _toolkit() or Path("nowhere")
    with tempfile.TemporaryDirectory() as folder:
        command = [str(nvcc.find_host_compiler()), "-shared", "-fPIC", "-o", f"{folder}/x.so"]
        command += [f"-I{sysconfig.get_path('include')}", f"-I{root / 'include'}"]
        command += ["-x", "c++", "-", "-x", "none"]
        command += [f"-L{root / part}" for part in ("lib", "lib64", "lib/stubs", "lib64/stubs")]
        command += [f"-l{name}" for name in libraries]
        text = f"#include <{header}>\n"
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60)
    return done.returncode == 0


def _builds_without_curand() -> bool:
    """Whether the user or the administrator has set that for PyCUDA's build."""
    files = (Path.home() / ".aksetup-defaults.py", Path("/etc/aksetup-defaults.py"))
    texts = (file.read_text("utf-8", errors="replace") for file in files if file.is_file())
    return any(re.search(r"^CUDA_ENABLE_CURAND *= *False", text, re.M) for text in texts)


def _how_to_get_the_toolkit() -> str:
    """One that is whole may be here, but not the first on PATH."""
    named = (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda")
    for place in (Path(place) for place in named if place):
        whole = (place / "include/cuda.h").is_file() and (place / "bin/nvcc").is_file()
        if whole and place != _toolkit():
            return (
                f"There is one in {place}, but the first nvcc on PATH is not its own:\n"
                f"`export PATH={place / 'bin'}:$PATH`"
            )
    return (
        "Install it (NVIDIA's package cuda-toolkit; Debian, Ubuntu: `apt-get install nvidia-cuda-toolkit`; in WSL the\n"
        "package for 'WSL-Ubuntu', which brings no driver), and let its nvcc be the first on PATH, as with\n"
        "`export PATH=/usr/local/cuda/bin:$PATH`."
    )


def _pycuda_build() -> Check:
    """What compiling PyCUDA needs, in one line; where PyCUDA is installed it is not looked for."""
    if _installed("pycuda"):
        return Check("ok", "not needed: PyCUDA is installed")
    needs = {
        "the CUDA toolkit": (_toolkit() and _builds("cuda.h"), _how_to_get_the_toolkit()),
        "Python.h": (
            _builds("Python.h"),
            "Debian, Ubuntu: `apt-get install python3-dev` (python{}.{}-dev for this Python); Fedora: "
            "`dnf install python3-devel`.".format(*sys.version_info),
        ),
        "cuRAND": (
            _builds_without_curand() or _builds("curand.h", "curand"),
            "It comes with the whole toolkit (NVIDIA's package libcurand-dev-13-0, or -12-9 ...). The book does without\n"
            "it: `echo 'CUDA_ENABLE_CURAND = False' >> ~/.aksetup-defaults.py` builds PyCUDA without.",
        ),
        "libcuda": (
            _builds("stddef.h", "cuda"),
            "The driver brings libcuda.so; where there is none (in a container), the toolkit's lib64/stubs does, if its own\n"
            "nvcc is the first on PATH.",
        ),
    }
    if lacks := {what: how for what, (there, how) in needs.items() if not there}:
        fix = "\n".join(f"For {what}: {how}" for what, how in lacks.items())
        return Check("warn", f"lacks {', '.join(lacks)}", fix)
    return Check("ok", f"nothing is missing; the toolkit is {_toolkit()}")


def _installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _packages(extra: str, lacking: str, *modules: str) -> Check:
    """Whether modules are there that an extra of pyproject.toml brings."""
    if missing := ", ".join(module for module in modules if not _installed(module)):
        return Check("warn", f"no {missing}: {lacking}", paths.pip_install(extra))
    return Check("ok", ", ".join(modules))


def _pycuda() -> Check:
    # In a child: a driver that does not fit may end the process that imports it.
    code = "import pycuda, pycuda.driver as d; print(pycuda.VERSION_TEXT, 'built for CUDA %d.%d' % d.get_version()[:2])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    if done.returncode == 0:
        return Check("ok", done.stdout.strip())
    said = done.stderr.strip() or f"its import ended with status {done.returncode}"
    if _installed("pycuda"):
        fix = (
            "It is installed but does not load, most likely built for another Python, CUDA or driver. Build it again:\n"
            "pip install --force-reinstall --no-cache-dir --no-binary pycuda pycuda"
        )
    else:
        first, command = "Once the line 'PyCUDA's build' lacks nothing:", paths.pip_install("gpu")
        if sys.platform == "win32":
            first = "Open 'x64 Native Tools Command Prompt for VS', see that `nvcc --version` answers there, then:"
            command = command.replace("'", '"')
            command += "\nLess work: WSL (`wsl --install`), where it is as on Linux."
        fix = f"PyPI has no wheels of PyCUDA: pip compiles it, which takes two minutes or more.\n{first}\n{command}"
    return Check("fail", said.splitlines()[-1], fix)


def _cupy() -> Check:
    package, cuda = cupy_package(), driver_cuda()
    if not _installed("cupy"):
        how = f"pip install {package}"
        fix = how if package else "There is a CuPy for drivers of CUDA 12 and of CUDA 13."
        return Check("warn", "none: benchmarks lack the vendor's rows", fix)
    names = packages.packages_distributions().get("cupy", [])
    installed = sorted(name for name in names if name.startswith("cupy-cuda"))
    if cuda and package and installed and package not in installed:
        version = "{}.{}".format(*cuda)
        return Check(
            "warn",
            f"{installed[0]}, but the driver runs CUDA {version}: its calls may fail",
            f"pip uninstall -y {installed[0]} && pip install {package}",
        )
    return Check("ok", ", ".join(installed) or "installed")


def _pycuda_cache() -> Check:
    """Folder where PyCUDA keeps compiled kernels; as pycuda.compiler finds it."""
    import platformdirs

    default = platformdirs.user_cache_dir("pycuda", "pycuda")
    place = Path(os.environ.get("PYCUDA_CACHE_DIR") or default)
    existing = next(parent for parent in (place, *place.parents) if parent.exists())
    try:
        with tempfile.NamedTemporaryFile(dir=existing):
            return Check("ok", str(place))
    except OSError as error:
        return Check(
            "warn",
            f"{place} cannot be written ({error.strerror}): every run compiles its kernels again",
            "Set PYCUDA_CACHE_DIR to a folder that can be written.",
        )


# --- tools ----------------------------------------------------------------------------------------------------------


def _tool(program: str, lacking: str) -> Check:
    path = shutil.which(program)
    if path is None:
        how = f"{program} comes with the CUDA toolkit; put its bin/ on PATH."
        return Check("warn", f"none: {lacking}", how)
    done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60)
    version = re.search(r"(?:[Vv]ersion|Verifier)\D{0,3}([\d.]+)", done.stdout)
    return Check("ok", f"{version[1] if version else 'unknown version'} at {path}")


_CHECKS = {
    "Python": _python,
    "NVIDIA driver": _nvidia_driver,
    "GPU": _gpu,
    "nvcc": _nvcc,
    "C++ compiler": lambda: Check("ok", str(nvcc.find_host_compiler())),
    "PyCUDA's build": _pycuda_build,
    "PyCUDA": _pycuda,
    "PyCUDA cache": _pycuda_cache,
    "CuPy": _cupy,
    "cupti-python": lambda: _packages(
        trace_extra(), "`python -m cudatut trace` cannot run", "cupti"
    ),
    "Nsight Compute": lambda: _tool("ncu", "examples show no hardware counters"),
    "Nsight Systems": lambda: _tool("nsys", "the timeline of the profiling chapter cannot be made"),
    "compute-sanitizer": lambda: _tool("compute-sanitizer", "nothing can be recorded or sanitized"),
    "recording": lambda: _packages(
        "record", "nothing can be recorded", "nbclient", "jupytext", "ipykernel", "nbformat"
    ),
}
