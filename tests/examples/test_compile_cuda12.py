"""The kernels that claim compute capability 7.5, compiled by the compiler of CUDA 12, which Colab may have.

No nvcc of CUDA 12 is to be had from PyPI; NVRTC is, the same compiler as a library, for what runs on the GPU:

    pip install 'nvidia-cuda-nvrtc-cu12==12.*' 'nvidia-cuda-runtime-cu12==12.*' 'nvidia-cuda-cccl-cu12==12.*'

Skipped where it is not installed; whole programs with host code are left out.
"""

import ctypes
import importlib.util
import re
import sys
from pathlib import Path

import pytest

from cudatut.gpu import instances

HERE = Path(__file__).parent


def _collector():
    spec = importlib.util.spec_from_file_location("test_compile_13", HERE / "test_compile.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look themselves up
    spec.loader.exec_module(module)
    return module


def _nvidia(package: str, folder: str) -> Path | None:
    spec = importlib.util.find_spec("nvidia")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        if (Path(place) / package / folder).is_dir():
            return Path(place) / package / folder
    return None


LIBRARY = next(iter((_nvidia("cuda_nvrtc", "lib") or Path("none")).glob("libnvrtc.so.12")), None)
INCLUDES = [f for f in (_nvidia("cuda_runtime", "include"), _nvidia("cuda_cccl", "include")) if f]

if LIBRARY is None or len(INCLUDES) < 2:
    pytest.skip("NVRTC of CUDA 12 is not installed (see this file)", allow_module_level=True)

SOURCES = [
    source
    for source in _collector().sources()
    if source.architectures()[0] == "75" and not re.search(r"^int main\(", source.code, re.M)
]


# Of the host's headers, which NVRTC has none of, as much as the kernels use.
STDINT = """#pragma once
typedef signed char int8_t; typedef unsigned char uint8_t;
typedef short int16_t; typedef unsigned short uint16_t;
typedef int int32_t; typedef unsigned int uint32_t;
typedef long long int64_t; typedef unsigned long long uint64_t;
typedef unsigned long long uintptr_t;
"""
HEADERS = {
    "stdint.h": STDINT,
    "cstdint": STDINT,
    "stdio.h": "",  # printf is built in
    "cstdio": "",
    # Of math.h, which nvcc includes by itself.
    "before.h": "#define INFINITY __int_as_float(0x7f800000)\n#define NAN __int_as_float(0x7fffffff)\n",
}


@pytest.fixture(scope="module")
def headers(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("headers")
    for name, text in HEADERS.items():
        (folder / name).write_text(text)
    return folder


def compile_12(source, headers: Path) -> str:
    """NVRTC's log, which begins with `error` unless the source compiles for sm_75."""
    nvrtc = ctypes.CDLL(str(LIBRARY))
    lines = [source.code.rstrip("\n"), *map(instances.instantiation, source.instances)]
    text = "\n".join([f'#line 1 "{source.where}"', *lines, ""])
    if source.wrap:
        text = f'extern "C" {{\n{text}\n}}\n'
    options = ["--gpu-architecture=sm_75", "-std=c++17", "-lineinfo", "-default-device"]
    options += ["--pre-include=before.h"]
    options += [f"-I{folder}" for folder in (headers, *source.folders, *INCLUDES)]
    options += [option for option in (*source.defines, *source.options) if "Xptxas" not in option]
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    assert (
        nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"source.cu", 0, None, None)
        == 0
    )
    try:
        flags = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        status = nvrtc.nvrtcCompileProgram(program, len(options), flags)
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        if status == 0:
            assert nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)) == 0 and size.value
        said = log.value.decode().strip()
        return said if status == 0 else f"error {status}: {said}"
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.where)
def test_compiles_with_cuda_12(source, headers: Path) -> None:
    log = compile_12(source, headers)
    if re.search(r"//\s*expect:\s*compile error", source.code):
        assert log.startswith("error")
        return
    assert not log.startswith("error"), f"{source.where}:\n{log}"


def test_the_library_is_of_cuda_12() -> None:
    major, minor = ctypes.c_int(), ctypes.c_int()
    assert ctypes.CDLL(str(LIBRARY)).nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)) == 0
    assert major.value == 12
