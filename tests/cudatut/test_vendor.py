"""The vendor's rivals, as far as they go without a GPU: CUB's wrapper compiles with the nvcc that is here."""

import os
import subprocess
from pathlib import Path

import pytest

import cudatut
from cudatut import ToolMissing
from cudatut.nvcc import find_nvcc


def test_the_wrapper_of_cub_compiles(tmp_path):
    try:
        nvcc = find_nvcc()
    except ToolMissing as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    source = Path(cudatut.__file__).with_name("vendor_cub.cu")
    command = [nvcc, "-std=c++17", "-arch=sm_90", "-c", "-o", tmp_path / "cub.o", source]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
