"""Finding nvcc: the order of places, what a missing one says, and PyPI's nvcc compiling and linking."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from cudatut.errors import ToolMissing
from cudatut.gpu import nvcc


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch):
    """A machine on which no place has nvcc; the places can be given one."""
    for name in ("CUDATUT_NVCC", "CUDA_HOME", "CUDA_PATH", "NVCC_CCBIN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "")
    candidates = nvcc._candidates

    def without_default():
        return (item for item in candidates() if item[0] != "/usr/local/cuda")

    monkeypatch.setattr(nvcc, "_candidates", without_default)
    monkeypatch.setattr(nvcc, "_wheel_nvcc", lambda: None)
    return monkeypatch


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\necho 'Cuda compilation tools, release 13.0, V13.0.88'\n")
    path.chmod(0o755)
    return path


def test_order_of_places(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(ToolMissing) as error:
        nvcc.find_nvcc()
    assert "PATH, $CUDA_HOME, $CUDA_PATH, PyPI's nvidia-cuda-nvcc" in str(error.value)
    assert "[nvcc]'` (Linux" in str(error.value)
    wheel = program(tmp_path / "cu13" / "bin" / "nvcc")
    bare.setattr(nvcc, "_wheel_nvcc", lambda: wheel)
    assert nvcc.find_nvcc() == wheel
    home = program(tmp_path / "home" / "bin" / "nvcc")
    bare.setenv("CUDA_HOME", str(tmp_path / "home"))
    assert nvcc.find_nvcc() == home
    on_path = program(tmp_path / "path" / "nvcc")
    bare.setenv("PATH", str(tmp_path / "path"))
    assert nvcc.find_nvcc() == on_path
    chosen = program(tmp_path / "chosen")
    bare.setenv("CUDATUT_NVCC", str(chosen))
    assert nvcc.find_nvcc() == chosen


def test_wrong_choice(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bare.setenv("CUDATUT_NVCC", str(tmp_path / "none"))
    with pytest.raises(ToolMissing, match="CUDATUT_NVCC is '.*none'"):
        nvcc.find_nvcc()


def test_version(tmp_path: Path) -> None:
    assert nvcc.nvcc_version(program(tmp_path / "nvcc")) == "13.0.88"
    other = program(tmp_path / "other")
    other.write_text("#!/bin/sh\necho hello\n")
    with pytest.raises(ToolMissing, match="does not answer like nvcc"):
        nvcc.nvcc_version(other)
    with pytest.raises(ToolMissing, match="does not run"):
        nvcc.nvcc_version(tmp_path / "none")


def test_environment_and_host_compiler(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = program(tmp_path / "bin" / "nvcc")
    assert nvcc.nvcc_env(found)["PATH"].split(os.pathsep)[0] == str(tmp_path / "bin")
    with pytest.raises(ToolMissing, match="no host compiler"):
        nvcc.find_host_compiler()


def test_nvcc_from_pypi_compiles_and_links(missing, compiler, monkeypatch, tmp_path: Path) -> None:
    """With the headers that kernels use: cooperative groups, Thrust, CUB, libcu++, half, WMMA."""
    found = nvcc._wheel_nvcc()
    if found is None:
        missing("nvcc from PyPI is not installed (the extra nvcc)")
    assert nvcc.is_from_pypi(found) and nvcc.nvcc_version(found).startswith("13.0.")
    for variable in ("CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH"):
        monkeypatch.delenv(variable, raising=False)
    headers = (
        "cooperative_groups.h cooperative_groups/reduce.h cub/block/block_reduce.cuh cuda/barrier "
        "cuda_bf16.h cuda_fp16.h mma.h thrust/functional.h cstdio"
    )
    source = "".join(f"#include <{header}>\n" for header in headers.split()) + (
        'extern "C" __global__ void k() { cooperative_groups::this_thread_block().sync(); }\n'
        "int main() { k<<<1, 1>>>(); return cudaDeviceSynchronize(); }\n"
    )
    places = nvcc.nvcc_flags(found)
    compile_with = type(compiler)(found, compiler.folder)
    done = compile_with(source, ["-arch=sm_90"], tmp_path, places=places, output=True)
    assert done.status == 0, done.log
    assert done.output.startswith(b"\x7fELF")


@pytest.mark.skipif(os.name == "nt", reason="made of shell scripts")
def test_an_nvcc_of_wheels_needs_its_compiler_beside_it(tmp_path, monkeypatch):
    """The wheel nvidia-nvvm brings cicc: without it the nvcc of nvidia-cuda-nvcc compiles nothing."""
    found = program(tmp_path / "nvidia/cu13/bin/nvcc")
    places = SimpleNamespace(submodule_search_locations=[str(tmp_path / "nvidia")])
    monkeypatch.setattr(nvcc.importlib.util, "find_spec", lambda name: places)
    assert nvcc._wheel_nvcc() is None
    program(tmp_path / "nvidia/cu13/nvvm/bin/cicc")
    assert nvcc._wheel_nvcc() == found and nvcc.is_from_pypi(found)
    assert nvcc.nvcc_flags(found) == [f"-L{tmp_path / 'nvidia/cu13/lib'}"]
    older = program(tmp_path / "nvidia/cu12/bin/nvcc")
    program(tmp_path / "nvidia/cu12/nvvm/bin/cicc")
    assert nvcc._wheel_nvcc() == found and not nvcc.is_from_pypi(older), "the newest"
    monkeypatch.setattr(nvcc.importlib.util, "find_spec", lambda name: None)
    assert nvcc._wheel_nvcc() is None
