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

from rich.cells import cell_len

from cudatut import paths, words
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
from cudatut.wrapping import padded

_say = words.section("doctor")


@dataclass(frozen=True)
class Check:
    """One line of the report. status: "ok", "warn" (something does without it) or "fail" (no example runs without it)."""

    status: str
    found: str
    fix: str = ""


def main() -> int:
    """Print every check; returns 0 if an example can run on a GPU here, else 1."""
    found = {_say(name): check for name, check in checks().items()}
    width = max(map(cell_len, found))
    for name, check in found.items():
        print(f"{padded(_say(check.status), 4)}  {padded(name, width)}  {check.found}")
        for line in check.fix.splitlines():
            print(f"{'':{width + 8}}{line}")
    missing = [name for name, check in found.items() if check.status == "fail"]
    print()
    if missing:
        print(_say("missing", names=_say("joint").join(missing)))
        print(_say("without"))
        return 1
    print(_say("ready"))
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
            found[name] = Check("warn", _say("broken", error=error))
    return found


# --- driver and GPU -------------------------------------------------------------------------------------------------


def _python() -> Check:
    found = _say("at", what=platform.python_version(), path=sys.executable)
    # PEP 668: pip refuses with 'externally-managed-environment'.
    marker = Path(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED")
    if sys.prefix == sys.base_prefix and marker.is_file():
        return Check("warn", _say("system python", found=found), _say("own environment"))
    return Check("ok", found)


def _nvidia_driver() -> Check:
    if (version := driver_cuda()) is None:
        where = "get driver"
        if "microsoft" in platform.release().lower():
            where = "driver in wsl"
        elif sys.platform == "darwin":
            where = "driver on macos"
        return Check("fail", _say("no driver", library=DRIVER_LIBRARY), _say(where))
    major, minor = version
    return Check("ok", _say("driver", major=major, minor=minor))


def _gpu() -> Check:
    if missing := why_no_gpu():
        hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
        see = _say("see nvidia-smi") if hidden is None else _say("hidden", value=hidden)
        return Check("fail", _say("no gpu", missing=missing), see)
    gpus = (name_and_capability(number) for number in range(gpu_count()))
    names = (_say("gpu", name=name, major=major, minor=minor) for name, (major, minor) in gpus)
    return Check("ok", ", ".join(names))


# --- compilers ------------------------------------------------------------------------------------------------------


def _nvcc() -> Check:
    path = nvcc.find_nvcc()
    version, limit = nvcc.nvcc_version(path), driver_cuda()
    if limit and int(version.partition(".")[0]) > limit[0]:
        major, minor = limit
        too_new = _say("nvcc too new", version=version, path=path, major=major, minor=minor)
        return Check("warn", too_new, _say("update driver", major=major))
    return Check("ok", _say("at", what=version, path=path))


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
            return _say("other toolkit", place=place, bin=place / "bin")
    return _say("get toolkit")


def _pycuda_build() -> Check:
    """What compiling PyCUDA needs, in one line; where PyCUDA is installed it is not looked for."""
    if _installed("pycuda"):
        return Check("ok", _say("build not needed"))
    major, minor, *_ = sys.version_info
    needs = {
        "the CUDA toolkit": (_toolkit() and _builds("cuda.h"), _how_to_get_the_toolkit()),
        "Python.h": (_builds("Python.h"), _say("get Python.h", major=major, minor=minor)),
        "cuRAND": (
            _builds_without_curand() or _builds("curand.h", "curand"),
            _say("get cuRAND"),
        ),
        "libcuda": (_builds("stddef.h", "cuda"), _say("get libcuda")),
    }
    if lacks := {_say(what): how for what, (there, how) in needs.items() if not there}:
        fix = "\n".join(_say("for what", what=what, how=how) for what, how in lacks.items())
        return Check("warn", _say("build lacks", names=_say("joint").join(lacks)), fix)
    return Check("ok", _say("build whole", path=_toolkit()))


def _installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _packages(extra: str, lacking: str, *modules: str) -> Check:
    """Whether modules are there that an extra of pyproject.toml brings; else what is `lacking`, by its key."""
    if missing := ", ".join(module for module in modules if not _installed(module)):
        lacks = _say("no module", names=missing, lacking=_say(lacking))
        return Check("warn", lacks, paths.pip_install(extra))
    return Check("ok", ", ".join(modules))


def _pycuda() -> Check:
    # In a child: a driver that does not fit may end the process that imports it.
    code = "import pycuda, pycuda.driver as d; print(pycuda.VERSION_TEXT, 'built for CUDA %d.%d' % d.get_version()[:2])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    if done.returncode == 0:
        return Check("ok", done.stdout.strip())
    said = done.stderr.strip() or _say("import ended", status=done.returncode)
    if _installed("pycuda"):
        fix = _say("pycuda broken")
    else:
        first, command = _say("once whole"), "pip install pycuda"
        if sys.platform == "win32":
            first = _say("on windows")
            command = "\n".join([command, _say("less work")])
        fix = _say("pycuda from source", first=first, command=command)
    return Check("fail", said.splitlines()[-1], fix)


def _cupy() -> Check:
    package, cuda = cupy_package(), driver_cuda()
    if not _installed("cupy"):
        fix = f"pip install {package}" if package else _say("cupy for which")
        return Check("warn", _say("no cupy"), fix)
    names = packages.packages_distributions().get("cupy", [])
    installed = sorted(name for name in names if name.startswith("cupy-cuda"))
    if cuda and package and installed and package not in installed:
        version = "{}.{}".format(*cuda)
        return Check(
            "warn",
            _say("other cupy", package=installed[0], version=version),
            f"pip uninstall -y {installed[0]} && pip install {package}",
        )
    return Check("ok", ", ".join(installed) or _say("installed"))


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
        unkept = _say("cache", place=place, reason=error.strerror)
        return Check("warn", unkept, _say("set cache"))


# --- tools ----------------------------------------------------------------------------------------------------------


def _tool(program: str, lacking: str) -> Check:
    path = shutil.which(program)
    if path is None:
        how = _say("get tool", program=program)
        return Check("warn", _say("no tool", lacking=_say(lacking)), how)
    done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60)
    version = re.search(r"(?:[Vv]ersion|Verifier)\D{0,3}([\d.]+)", done.stdout)
    what = version[1] if version else _say("unknown version")
    return Check("ok", _say("at", what=what, path=path))


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
    "cupti-python": lambda: _packages(trace_extra(), "no trace", "cupti"),
    "Nsight Compute": lambda: _tool("ncu", "no counters"),
    "Nsight Systems": lambda: _tool("nsys", "no timeline"),
    "compute-sanitizer": lambda: _tool("compute-sanitizer", "no sanitizer"),
    "recording": lambda: _packages(
        "record", "no recording", "nbclient", "jupytext", "ipykernel", "nbformat"
    ),
}
