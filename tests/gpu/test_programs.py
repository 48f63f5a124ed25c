"""Every program that a page shows, as its reader has it: pasted into a file in an empty folder, and run.

The programs of `start` see PyCUDA and NumPy alone, those of the other parts cudatut too. What they print is compared with
the recording; numbers with a decimal point, which are times and rates, by their shape only.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import page_programs
import pytest
from side_by_side import Runs, asked_for

import cudatut as ct
from cudatut import beside, catalog, recording, results
from cudatut.results import MIME, read
from cudatut.site import directives

ROOT = Path(__file__).resolve().parents[2]
# What a reader of `start` has not installed.
REFUSED = ("cudatut", "cupy", "torch", "scipy", "pandas", "matplotlib", "numba", "cuda", "cupti")
SITECUSTOMIZE = f"""
import sys


class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {REFUSED!r}:
            raise ModuleNotFoundError(f"this program may import PyCUDA and NumPy, not {{name}}", name=name)


sys.meta_path.insert(0, Refuse())
"""
_MEASURED = re.compile(r"0x[0-9a-f]+|-?\d[\d,]*(?:\.\d+)+(?:e[+-]?\d+)?")
_INTEGER = re.compile(r"\d[\d,]*")
_SOME_RUNS = re.compile(r"\s(Mcycles|host us)\b")


def on_pages() -> list[tuple[str, str, str, str]]:
    """(page, example, cell, file name) of each program that the English pages show."""
    docs = ROOT / "docs" / "en"
    return [
        (path.relative_to(docs).with_suffix("").as_posix(), *program)
        for path in sorted(docs.rglob("*.md"))
        for program in page_programs.of_page(path.read_text(encoding="utf-8"))
    ]


def without_some_columns(text: str) -> str:
    """Without the last columns of a benchmark that not every run has: what launches cost the host, where that is much, and
    cycles beside the clock, where the GPU ran at less than its highest."""
    lines, at = [], None
    for line in text.splitlines():
        if line.split()[:2] == ["median", "us"]:
            found = _SOME_RUNS.search(line)
            at = found and found.start()
        elif not line.strip():
            at = None
        lines.append(line[:at])
    return "\n".join(lines)


def lines_of(text: str, loose: bool, *gpus: str) -> list[str]:
    """Printed lines as they are compared: sorted, since blocks print in the order in which the GPU runs them."""
    text = without_some_columns(text)
    for gpu in gpus:
        text = text.replace(gpu, "GPU")
    text = _MEASURED.sub("#", text)
    if loose:  # counts of another GPU's multiprocessors, bytes, rates that were measured ...
        text = _INTEGER.sub("#", text)
    return sorted(" ".join(line.split()) for line in text.splitlines() if line.strip())


def recorded(example: str, cell: str) -> tuple[str, str, bool]:
    """What the cell printed when it was recorded, on which GPU, and whether it measured: then no number is like another run's."""
    found = recording.require_good(example)
    gpu, printed, measured = found.gpu, "", False
    for output in found.cell(cell).outputs:
        result = output.get("data", {}).get(MIME, {})
        measured |= result.get("kind") == "benchmark" or result.get("title") == beside.TITLE
        if output["output_type"] == "stream" and output.get("name") == "stdout":
            printed += output["text"]
        elif result.get("title") == beside.TITLE:  # a reader sees them beside his own
            printed += "".join(
                f"{line}\n" for line in beside.lines(gpu, read(result), read(result))
            )
        elif output["output_type"] == "display_data":  # as text where there is no notebook
            printed += output["data"].get("text/plain", "") + "\n"
    return printed, gpu, measured


@pytest.fixture(scope="module")
def runs(request, tmp_path_factory):
    base, refusing = tmp_path_factory.mktemp("programs"), tmp_path_factory.mktemp("path")
    (refusing / "sitecustomize.py").write_text(SITECUSTOMIZE, encoding="utf-8")

    def run(key):
        page, example, cell, file = key
        folder = base / f"{page}_{file}".replace("/", "_")
        folder.mkdir()
        code = directives.program(catalog.cells(catalog.get(example).path)[cell])
        (folder / file).write_text(code + "\n", encoding="utf-8")
        env = {name: value for name, value in os.environ.items() if not name.startswith("CUDATUT")}
        first = str(refusing if page.startswith("start/") else ROOT)
        env["PYTHONPATH"] = os.pathsep.join(filter(None, [first, os.environ.get("PYTHONPATH")]))
        return subprocess.run(
            [sys.executable, file], cwd=folder, env=env, capture_output=True, text=True, timeout=300
        )

    found = Runs(run, asked_for(request, "page", "example", "cell", "file"))
    yield found
    found.close()


PROGRAMS = on_pages()


@pytest.mark.parametrize(
    ("page", "example", "cell", "file"),
    PROGRAMS,
    ids=[f"{page}-{file}" for page, *_, file in PROGRAMS],
)
def test_a_program_prints_what_its_page_shows(page, example, cell, file, runs):
    done = runs[page, example, cell, file]
    where = f"{file} of docs/en/{page}.md ({example}#{cell})"
    said = done.stderr.strip().splitlines()
    if done.returncode and catalog.get(example).extra and "ToolMissing" in said[-1]:
        pytest.skip(f"{where}: {said[-1]}")
    # A program that ruins its own process is run by another cell, and may end with any exit status.
    run_by = page_programs.run_by(catalog.cells(catalog.get(example).path)[cell])
    if run_by is None:
        assert done.returncode == 0, f"{where} failed:\n{done.stdout[-2000:]}{done.stderr[-4000:]}"
    wanted, gpu, measured = recorded(example, run_by or cell)
    here = ct.device().name
    names, loose = (gpu, here), measured or here != gpu
    printed = lines_of(done.stdout, loose, *names)
    assert printed == lines_of(wanted, loose, *names), f"{where} prints something else"


def test_chapters_of_the_first_parts_have_programs():
    pages = {page for page, *_ in PROGRAMS}
    for part in ("start", "basics"):
        for path in sorted((ROOT / "docs" / "en" / part).glob("*.md")):
            assert f"{part}/{path.stem}" in pages, f"docs/en/{part}/{path.name} shows no program"


def test_what_start_may_not_import_is_refused(tmp_path):
    """The refusal that the tests above rely on works."""
    (tmp_path / "sitecustomize.py").write_text(SITECUSTOMIZE, encoding="utf-8")
    code = "import numpy, pycuda\ntry:\n    import cudatut\nexcept ImportError as e:\n    print(e)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "this program may import PyCUDA and NumPy, not cudatut\n", done.stderr


def test_columns_that_not_every_run_has_are_not_compared():
    def printed(mhz, host):
        row = results.Row(
            "strided",
            250.0,
            249.0,
            251.0,
            12.0,
            None,
            False,
            None,
            mhz=mhz,
            cycles=4e5,
            host_us=host,
        )
        return results.Benchmark("b", "GB/s", None, [row], rounds=9, most_mhz=1980.0).text()

    steady = printed(1980.0, 1.0)
    for other in (printed(1500.0, 1.0), printed(1980.0, 99.0), printed(1500.0, 99.0)):
        assert other != steady
        assert lines_of(other, False) == lines_of(steady, False)
