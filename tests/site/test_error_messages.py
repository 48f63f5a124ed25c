"""The table of CUDA's messages on the page about errors is what the runtime itself says."""

import ctypes
import re
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\s*\| `([^`]+)` \| (.*?) \|")


@pytest.fixture(scope="module")
def texts(missing) -> dict[str, str]:
    """Text by the runtime's name of an error; asking needs no GPU."""
    places = Path(sysconfig.get_path("purelib"), "nvidia").glob("cu*/lib/libcudart.so.*")
    library = next(iter(sorted(places)), None)
    if library is None:
        missing("the CUDA runtime is not installed")
    runtime = ctypes.CDLL(str(library))
    runtime.cudaGetErrorString.restype = runtime.cudaGetErrorName.restype = ctypes.c_char_p
    codes = range(1000)
    return {
        runtime.cudaGetErrorName(code).decode(): runtime.cudaGetErrorString(code).decode()
        for code in codes
    }


@pytest.mark.parametrize("language", ["en", "zh"])
def test_each_text_is_that_of_its_name(texts, language):
    page = (ROOT / "docs" / language / "start" / "errors.md").read_text(encoding="utf-8")
    rows = [row.groups() for row in map(ROW.match, page.splitlines()) if row]
    told = {name: text for text, names in rows for name in re.findall(r"`(cudaError\w+)`", names)}
    assert len(told) >= 15
    assert told == {name: texts.get(name) for name in told}
