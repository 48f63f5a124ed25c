"""Notebooks outside the checkout: with the installed package alone, in an empty folder, on drivers of CUDA 12 and 13."""

import json
import os
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import kept
import pytest
from IPython.core.inputtransformer2 import TransformerManager

import cudatut.notebook
from cudatut import catalog, exercises, overlays, paths, to_notebook

STAND_INS = Path(__file__).parent / "stand_ins"
plain = TransformerManager().transform_cell


def cells_of(example):
    """Code of the notebook that a recording would be, magics in plain Python."""
    read = to_notebook.notebook_of(example)
    sources = [cell.source for cell in read.cells if cell.cell_type == "code"]
    return [plain(source) for source in [to_notebook.install_cell(example).source, *sources]]


def code_of(raw):
    cells = [cell for cell in json.loads(raw)["cells"] if cell["cell_type"] == "code"]
    return [plain("".join(cell["source"])) for cell in cells]


def environment(**more):
    """Without what could show the checkout, or a GPU."""
    hidden = ("PYTHONPATH", "VIRTUAL_ENV", "CUDATUT_EXAMPLES", "CUDATUT_RECORDINGS", "CUDATUT_TOOL")
    hidden += ("CUDATUT_MODEL", "LD_LIBRARY_PATH")
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    return kept | {"CUDA_VISIBLE_DEVICES": ""} | more


# What the extras `bindings` and `llm` consist of, which the notebooks that need them install in their first cell.
BINDINGS = ("nanobind",)
LLM = ("gguf", "tokenizers", "requests", "certifi", "charset_normalizer", "idna", "urllib3", "tqdm")
# The extra `images`: what scikit-image's photographs are read with.
IMAGES = (
    *("PIL", "pillow.libs", "skimage", "scipy", "scipy.libs"),
    *("imageio", "lazy_loader", "networkx", "packaging", "tifffile"),
)


def chinese():
    """Ten notebooks of examples and ten of exercises as Chinese readers have them, spread over the book."""
    every, found = catalog.examples(), []
    for example in every[:: len(every) // 10 + 1]:
        cells = [overlays.code(cell, example.file) for cell in cells_of(example)]
        found.append({"name": f"{example.name} in Chinese", "cells": cells})
    chapters = exercises.chapters()
    for chapter in chapters[:: len(chapters) // 10 + 1]:
        _, raw = exercises.committed_notebook(chapter, "zh")
        found.append({"name": f"{chapter}{catalog.EXERCISES} in Chinese", "cells": code_of(raw)})
    return found


@pytest.fixture(scope="module")
def ran(request, sources_of_the_site):
    """What became of every notebook: of the examples, and of the chapters' exercises, where the stubs stand.

    Where none failed it is kept (tests/support/kept.py) for all that it follows from: the package, the examples, what stands
    in for the rest, and what is installed.
    """
    todo = [{"name": e.name, "cells": cells_of(e)} for e in catalog.examples(drafts=True)]
    for chapter in exercises.chapters():
        _, raw = exercises.committed_notebook(chapter)
        todo.append({"name": f"{chapter}{catalog.EXERCISES}", "cells": code_of(raw)})
    todo += chinese()
    before = kept.Kept(kept.cache_folder() / "notebooks", most=8)
    key = None
    if made_from := sources_of_the_site(paths.examples_dir().parent):
        files, *around = made_from
        ours = {name: files[name] for name in files if name.startswith(("cudatut/", "examples/"))}
        texts = sorted(STAND_INS.rglob("*.py"))
        stand_ins = [(path.name, path.read_text(encoding="utf-8")) for path in texts]
        key = before.key(ours, around, stand_ins, [*BINDINGS, *LLM, *IMAGES], todo)
        if found := before.read(key):
            return json.loads(found)
    result = _run(todo, *map(request.getfixturevalue, ("installed", "tmp_path_factory")))
    if key and not any(report["failed"] for report in result.values()):
        before.write(key, json.dumps(result).encode())
    return result


def _run(todo, python, folders):
    extra = folders.mktemp("extra")
    for name in (*BINDINGS, *LLM, *IMAGES):
        (extra / name).symlink_to(Path(sysconfig.get_path("platlib")) / name)
    (extra / "cutlass.py").touch()  # the extra `cutlass`, as far as the first cell looks
    # Without pip, and with an empty cache, no notebook can fetch the model: it stops there.
    env = environment(PYTHONPATH=str(extra), XDG_CACHE_HOME=str(folders.mktemp("cache")))
    done = subprocess.run(
        [python, STAND_INS / "run_notebooks.py"], input=json.dumps(todo), capture_output=True,
        text=True, timeout=600, cwd=folders.mktemp("empty"), env=env,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


def test_every_notebook_runs_up_to_the_first_cell_that_needs_the_gpu(ran):
    failed = [f"{name}\n{report['failed']}" for name, report in ran.items() if report["failed"]]
    assert not failed, "\n".join(failed)
    # The first cell always runs: it is the one that prepares the others.
    none = {name: report["stopped"] for name, report in ran.items() if not report["ran"]}
    assert not none
    assert all("needs a GPU, and there is none here" in r["printed"] for r in ran.values())


def test_modules_of_the_book_are_found(ran):
    """Beside the example, and by their places. The check above would be worth nothing if no notebook asked for such a module."""
    asks = re.compile(r"^from (?:ladder|cudatut\.book\.[\w.]+) import", re.MULTILINE)
    asking = [e for e in catalog.examples() if asks.search(e.path.read_text("utf-8"))]
    assert len(asking) > 20 and all(e.name in ran for e in asking)


def test_chinese_notebooks_are_chinese_and_run(ran):
    todo = chinese()
    assert len(todo) >= 18 and all(not ran[one["name"]]["failed"] for one in todo)
    said = "".join(cell for one in todo for cell in one["cells"])
    assert len(re.findall(r"# .*[\u4e00-\u9fff]", said)) > 30


def test_the_check_finds_what_is_missing(installed, tmp_path):
    todo = [
        {"name": "x", "cells": ["import pycuda.driver as d\nd.init()", "import nowhere_beside"]}
    ]
    done = subprocess.run(
        [installed, STAND_INS / "run_notebooks.py"], input=json.dumps(todo), capture_output=True,
        text=True, cwd=tmp_path, env=environment(),
    )  # fmt: skip
    report = json.loads(done.stdout)["x"]
    assert "No module named 'nowhere_beside'" in report["failed"]


# --- the first cell, as in Colab ------------------------------------------------------------------


@pytest.fixture(scope="module")
def drivers(missing, tmp_path_factory):
    """Folder of a libcuda.so.1 that shows what the environment says."""
    if shutil.which("gcc") is None:
        missing("a driver cannot be simulated without gcc")
    folder = tmp_path_factory.mktemp("driver")
    command = ["gcc", "-shared", "-fPIC", "-o", folder / "libcuda.so.1", STAND_INS / "libcuda.c"]
    subprocess.run(command, check=True)
    return folder


FIRST_CELL = """
import importlib, json, sys
cells = json.loads(sys.stdin.read())
log = []
class Shell:
    def run_line_magic(self, name, line):
        log.append(f"%{name} {line}")
        sys.meta_path.remove(hidden)  # pip has installed it
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "cudatut":
            raise ImportError(f"No module named {name!r}")
hidden = Hidden()
sys.meta_path.insert(0, hidden)
get_ipython = lambda: Shell()
failed = ""
try:
    exec(cells[0], globals())
except Exception as error:
    shown = getattr(error, "_render_traceback_", lambda: [repr(error)])()
    failed = "\\n".join(shown)
print("RESULT", json.dumps({"log": log, "failed": failed}))
"""


def first_cell(installed, drivers, tmp_path, name="reduction/naive", have=(), **driver):
    """Run the first cell of an example's notebook where cudatut is not installed yet; pip is one that only takes notes.

    have: modules that are installed besides.
    """
    pip = tmp_path / "path" / "pip"
    pip.mkdir(parents=True)
    # It takes notes, and brings the CuPy that it is asked for.
    (pip / "__main__.py").write_text(
        f"import sys; open({str(tmp_path / 'pip')!r}, 'a').write(' '.join(sys.argv[1:]) + '\\n')\n"
        f"if 'cupy' in sys.argv[-1]: open({str(tmp_path / 'path' / 'cupy.py')!r}, 'w')"
    )
    for module in have:
        (tmp_path / "path" / f"{module}.py").touch()
    fake = {f"FAKE_{key.upper()}": str(value) for key, value in driver.items()}
    environ = environment(LD_LIBRARY_PATH=str(drivers), PYTHONPATH=str(tmp_path / "path"), **fake)
    done = subprocess.run(
        [installed, "-c", FIRST_CELL], input=json.dumps(cells_of(catalog.get(name))),
        capture_output=True, text=True, cwd=tmp_path, env=environ,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said, _, result = done.stdout.rpartition("RESULT ")
    notes = tmp_path / "pip"
    return json.loads(result) | {
        "said": said,
        "pip": notes.read_text().splitlines() if notes.exists() else [],
    }


@pytest.mark.parametrize(
    ("cuda", "cupy"),
    [(12040, ["install -q cupy-cuda12x"]), (12080, ["install -q cupy-cuda12x"]),
     (13000, ["install -q cupy-cuda13x"]), (13020, ["install -q cupy-cuda13x"]), (11080, [])],
)  # fmt: skip
def test_the_first_cell_installs_cudatut_and_the_cupy_of_the_driver(
    installed, drivers, tmp_path, cuda, cupy
):
    found = first_cell(installed, drivers, tmp_path, cuda=cuda)
    address = paths.repository()
    assert found["log"] == [f'%pip install -q "cudatut[gpu] @ git+{address}"']
    assert found["pip"] == cupy
    assert found["failed"] == "" and found["said"] == ""


def test_an_example_that_needs_more_says_so_in_the_first_cell(installed, drivers, tmp_path):
    found = first_cell(installed, drivers, tmp_path, "gemm/tma", cuda=12040, capability=75)
    needs = (
        "it needs a GPU of compute capability 9.0 or newer (sm_90), and this one, Fake T4, has 7.5"
    )
    assert found["failed"].startswith(f"gemm/tma cannot run here: {needs}")
    assert "\n" not in found["failed"]


def test_without_a_gpu_the_first_cell_says_where_to_choose_one(installed, drivers, tmp_path):
    found = first_cell(installed, drivers, tmp_path, gpus=0)
    assert (
        "the NVIDIA driver shows no GPU" in found["said"] and "Change runtime type" in found["said"]
    )
    assert found["failed"] == ""


@pytest.mark.parametrize(
    ("name", "gpu"),
    [("reduction/naive", "T4 GPU (free)"), ("llm/softmax", "L4 GPU (paid)"),
     ("tensor/wgmma", "H100 GPU (paid)")],
)  # fmt: skip
def test_the_first_cell_names_the_gpu_to_choose(installed, drivers, tmp_path, name, gpu):
    have = ("gguf", "tokenizers")
    found = first_cell(installed, drivers, tmp_path, name, have, gpus=0)
    assert f"Change runtime type > {gpu}, then run this cell again" in found["said"]
    assert found["failed"] == ""


def test_an_older_gpu_is_told_which_one_to_choose(installed, drivers, tmp_path):
    found = first_cell(installed, drivers, tmp_path, "llm/softmax", capability=75)
    assert found["failed"].endswith("In Colab: Runtime > Change runtime type > L4 GPU (paid).")


# --- libraries that are missing where cudatut is installed -----------------------------------------------


@pytest.mark.parametrize("gpus", [0, 1])
def test_without_its_extra_a_notebook_stops_in_the_first_cell(installed, drivers, tmp_path, gpus):
    """It used to fetch a model of 98 MB, and then to find that gguf is missing."""
    found = first_cell(installed, drivers, tmp_path, "llm/serving", gpus=gpus, capability=89)
    command = f"%pip install 'cudatut[llm] @ git+{paths.repository()}'"
    said = "llm/serving cannot run here: gguf, tokenizers not installed."
    assert found["failed"].startswith(said) and found["failed"].endswith(command)
    assert "\n" not in found["failed"]


def test_with_its_extra_it_goes_on_and_names_what_it_compares_with(installed, drivers, tmp_path):
    have = ("gguf", "tokenizers")
    found = first_cell(installed, drivers, tmp_path, "llm/serving_rivals", have, capability=89)
    assert found["failed"] == ""
    assert "PyTorch is not installed" in found["said"] and "%pip install torch" in found["said"]
    assert "cutlass" not in found["said"] and "CuPy is not" not in found["said"]


def test_why_cupy_could_not_be_installed(monkeypatch, capsys):
    """pip's last line says it; those before are warnings."""
    said = "WARNING: a newer pip is there\nERROR: No space left on device\n"
    done = subprocess.CompletedProcess([], 1, "", said)
    monkeypatch.setattr(cudatut.notebook.device, "cupy_package", lambda: "cupy-cuda13x")
    monkeypatch.setattr(cudatut.notebook.libraries, "installed", lambda name: False)
    monkeypatch.setattr(cudatut.notebook.subprocess, "run", lambda *given, **how: done)
    cudatut.notebook.install_cupy()
    why = "cupy-cuda13x could not be installed (ERROR: No space left on device)"
    assert capsys.readouterr().out.startswith(why)


HIDDEN = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.argv[2:]:
            raise ModuleNotFoundError(f"No module named {name!r}")
sys.meta_path.insert(0, Hidden())
from cudatut import errors, notebook
try:
    notebook.prepare(sys.argv[1])
except errors.CudatutError as error:
    print(type(error).__mro__[2].__name__, *error._render_traceback_())
"""


def prepared(installed, drivers, tmp_path, name, *hidden, **driver):
    """What `prepare` says of an example in the installed package, where modules are missing."""
    fake = {f"FAKE_{key.upper()}": str(value) for key, value in driver.items()}
    environ = environment(LD_LIBRARY_PATH=str(drivers), **fake)
    done = subprocess.run(
        [installed, "-c", HIDDEN, name, *hidden], capture_output=True, text=True, cwd=tmp_path, env=environ
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_without_pycuda(installed, drivers, tmp_path):
    """It used to die of a bare "No module named 'pycuda'" in the second cell."""
    said = prepared(installed, drivers, tmp_path, "start/first_kernel", "pycuda", capability=75)
    command = f"%pip install 'cudatut[gpu] @ git+{paths.repository()}'"
    assert said.startswith("ToolMissing start/first_kernel cannot run here: pycuda not installed.")
    assert said.strip().endswith(command)
    said = prepared(installed, drivers, tmp_path, "start/first_kernel", "pycuda", gpus=0)
    assert "needs a GPU, and there is none here" in said
    assert "PyCUDA is not installed either" in said and "ToolMissing" not in said


def test_libraries_to_compare_with_fit_the_driver(installed, drivers, tmp_path):
    hidden = ("cupy", "cuda")
    said = [
        prepared(installed, drivers, tmp_path, "reduction/naive", *hidden, cuda=cuda, capability=75)
        for cuda in (12040, 13000, 11080)
    ]
    assert "%pip install cupy-cuda12x" in said[0] and "%pip install cupy-cuda13x" in said[1]
    assert said[2] == ""
