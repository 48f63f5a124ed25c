"""Builds what lies in mixed/, as its reader does: copied into an empty folder,
and there by its Makefile.

    build("program")   # the path of what `make program` has made
    build("lib")       # the library for ctypes
    build("module")    # the module of Python, by nanobind
"""

import ctypes
import functools
import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import cudatut as ct

FILES = (
    "Makefile",
    "main.cpp",
    "module.cpp",
    "saxpy.cu",
    "saxpy.cuh",
    "saxpy.hpp",
)
MADE = {"program": "program", "lib": "libsaxpy.so", "module": "saxpy_nb.so"}
LIMIT_S = 300


def text(file: str) -> str:
    """What a file of mixed/ says."""
    folder = ct.paths.examples_dir() / "memory/bindings/mixed"
    return (folder / file).read_text(encoding="utf-8")


@functools.cache
def _new_folder() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory(prefix="cudatut-mixed-")


def here(name: str = "") -> Path:
    """A folder of this process, which is gone when it ends."""
    folder = Path(_new_folder().name) / name
    folder.mkdir(exist_ok=True)
    return folder


def unwatched() -> dict[str, str]:
    """The environment without what a sanitizer put there for this process: it
    would wait for every compiler. The folder of nvcc comes first on the path.
    """
    path = ct.nvcc_env(ct.find_nvcc())["PATH"]
    return {**ct.tool.environment_before(), "PATH": path}


def build(goal: str, folder: Path | None = None, **variables: str) -> Path:
    """The path of what `make goal` has made; variables: such as ARCHS="75 90",
    by default this GPU. folder: one of its own. Raises ToolMissing.
    """
    if shutil.which("make") is None:
        raise ct.ToolMissing("there is no `make` here: apt install make")
    if goal == "module" and importlib.util.find_spec("nanobind") is None:
        raise ct.ToolMissing("nanobind is missing: pip install nanobind")
    nvcc, folder = ct.find_nvcc(), folder or here()
    for file in FILES:
        if not (folder / file).is_file():
            (folder / file).write_text(text(file), encoding="utf-8")
    if "ARCHS" not in variables:
        variables["ARCHS"] = own_arch()
    variables |= {"NVCC": str(nvcc), "PYTHON": sys.executable}
    variables["LDFLAGS"] = " ".join(ct.nvcc_flags(nvcc))
    done = subprocess.run(
        [
            "make",
            "-j4",
            goal,
            *(f"{name}={value}" for name, value in variables.items()),
        ],
        cwd=folder,
        env=unwatched(),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    if done.returncode:
        said = (done.stdout + done.stderr).strip()[-1500:]
        raise ct.CudatutError(f"make {goal} failed:\n{said}")
    where = "debug" if variables.get("DEBUG") == "1" else "build"
    return folder / where / MADE[goal]


def cuda_include() -> str:
    """-I and the folder of CUDA's headers, which nvcc knows by itself."""
    (here() / "empty.cu").write_text("")
    command = [ct.find_nvcc(), "-M", "empty.cu"]
    done = subprocess.run(
        command,
        cwd=here(),
        env=unwatched(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    found = re.search(r"(\S+)/cuda_runtime\.h", done.stdout)
    if found is None:
        raise ct.ToolMissing(f"nvcc names no cuda_runtime.h: {done.stderr}")
    return f"-I{found[1]}"


def own_arch() -> str:
    """This GPU as the Makefile names it: "90"."""
    return ct.device().arch.removeprefix("sm_").rstrip("af")


# --8<-- [start:declared]
def declared(path: Path) -> ctypes.CDLL:
    """The library, whose functions know the types of their arguments."""
    library = ctypes.CDLL(str(path))
    address = ctypes.c_void_p  # 8 bytes
    types = [ctypes.c_float, address, address, ctypes.c_int, address]
    library.saxpy_launch.argtypes = types
    library.saxpy_nothing.argtypes = types
    library.saxpy_launches.argtypes = [*types, ctypes.c_int]
    return library  # restype is int, unless one says otherwise


# --8<-- [end:declared]


def imported(path: Path) -> Any:
    """The module of Python that lies there."""
    spec = importlib.util.spec_from_file_location("saxpy_nb", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def by_nvrtc(source: str, name: str) -> Any:
    """A kernel, compiled by NVRTC in this process. Raises ToolMissing."""
    try:
        from cuda.core import Device, Program, ProgramOptions
    except ImportError as error:
        raise ct.ToolMissing(
            "cuda.core is missing, of the version of your CUDA: "
            "pip install 'cuda-core[cu13]', or [cu12]"
        ) from error
    # --8<-- [start:core]
    Device().set_current()  # its primary context, which PyCUDA uses too
    options = ProgramOptions(arch=ct.device().arch, std="c++17")
    return Program(source, "c++", options).compile("cubin").get_kernel(name)
    # --8<-- [end:core]


def address(array: Any) -> int:
    """Where an array lies on the GPU."""
    return int(array.__cuda_array_interface__["data"][0])
