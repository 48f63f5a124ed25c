"""Where nvcc is: the CUDA toolkit's, or the one in PyPI's wheels (the extra `nvcc` of the project).

Compiling needs no GPU. It needs a host compiler (g++ on Linux, cl.exe on Windows), which no wheel
carries.
"""

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from cudatut import paths, words
from cudatut.errors import ToolMissing

_EXE = ".exe" if os.name == "nt" else ""
_say = words.section("nvcc")


def how_to_get_nvcc() -> str:
    """What to do where no nvcc works."""
    return _say("get nvcc", command=paths.pip_install("nvcc"))


def find_nvcc() -> Path:
    """Path of nvcc: $CUDATUT_NVCC, PATH, $CUDA_HOME, $CUDA_PATH, /usr/local/cuda, PyPI's wheels.

    Raises ToolMissing, listing what was looked at and how to get nvcc.
    """
    chosen = os.environ.get("CUDATUT_NVCC")
    if chosen:
        program = shutil.which(chosen)
        if program is None:
            raise ToolMissing(_say("no program", chosen=chosen))
        return Path(program).absolute()
    looked = []
    for place, path in _candidates():
        if path is not None and os.access(path, os.X_OK):
            return Path(path).absolute()
        looked.append(place)
    raise ToolMissing(_say("not found", places=", ".join(looked), how=how_to_get_nvcc()))


def _candidates() -> Iterator[tuple[str, str | Path | None]]:
    """(name of the place, nvcc there or None), in the order in which they are tried."""
    yield "PATH", shutil.which("nvcc")
    homes = {f"${variable}": os.environ.get(variable) for variable in ("CUDA_HOME", "CUDA_PATH")}
    if os.name != "nt":
        homes["/usr/local/cuda"] = "/usr/local/cuda"
    for place, home in homes.items():
        yield place, shutil.which("nvcc", path=os.path.join(home, "bin")) if home else None
    yield "PyPI's nvidia-cuda-nvcc", _wheel_nvcc()


def _wheel_nvcc() -> Path | None:
    """nvcc of the wheels nvidia-cuda-nvcc and nvidia-nvvm (13 and later), or None."""
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec and spec.submodule_search_locations) or ():
        for nvcc in sorted(Path(folder).glob(f"cu*/bin/**/nvcc{_EXE}"), reverse=True):
            # Without cicc (the wheel nvidia-nvvm) this nvcc cannot compile a kernel.
            if any(_wheel_root(nvcc).glob(f"nvvm/bin/**/cicc{_EXE}")):
                return nvcc
    return None


def _wheel_root(nvcc: Path) -> Path:
    """The folder cu13 (bin, include, lib, nvvm) that an nvcc from PyPI lies in."""
    return next(parent for parent in nvcc.parents if re.fullmatch(r"cu\d+", parent.name))


def is_from_pypi(nvcc: Path) -> bool:
    """Whether this nvcc is the one from PyPI's wheels rather than a CUDA toolkit's."""
    return _wheel_nvcc() == Path(nvcc)


def nvcc_flags(nvcc: Path) -> list[str]:
    """Flags that this nvcc needs: none for a toolkit's; to link, PyPI's needs its libraries' folder.

    The wheels keep them in lib/, while nvcc looks in lib64/. Compiling to a cubin needs no flag.
    """
    return [f"-L{_wheel_root(nvcc) / 'lib'}"] if is_from_pypi(nvcc) else []


def nvcc_env(nvcc: Path) -> dict[str, str]:
    """This process's environment with nvcc's folder first on PATH (PyCUDA calls `nvcc` by name)."""
    return {**os.environ, "PATH": f"{Path(nvcc).parent}{os.pathsep}{os.environ.get('PATH', '')}"}


@cache
def nvcc_version(nvcc: Path) -> str:
    """Full version, such as "13.0.88". Raises ToolMissing when nvcc does not run."""
    try:
        done = subprocess.run(
            [nvcc, "--version"], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        how = how_to_get_nvcc()
        raise ToolMissing(_say("does not run", nvcc=nvcc, error=error, how=how)) from error
    if found := re.search(r"\bV(\d+(?:\.\d+)+)", done.stdout):
        return found[1]
    said = repr(done.stdout[:200])
    raise ToolMissing(_say("no answer", nvcc=nvcc, said=said, how=how_to_get_nvcc()))


def find_host_compiler() -> Path:
    """Path of the C++ compiler that nvcc will call. Raises ToolMissing saying how to get one."""
    name = os.environ.get("NVCC_CCBIN") or ("cl" if os.name == "nt" else "g++")
    path = shutil.which(name) or (shutil.which("g++", path=name) if os.path.isdir(name) else None)
    if path is None:
        how = _say("get compiler on windows" if os.name == "nt" else "get compiler")
        raise ToolMissing(_say("no compiler", name=name, how=how))
    return Path(path)
