"""Commands that the book prints and that need a GPU, typed in an empty folder. tests/test_commands.py says which are which."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from test_reduction import MINE

import cudatut as ct
from cudatut import catalog, paths, recording
from cudatut.gpu import nvcc
from cudatut.tool import environment

ROOT = Path(__file__).resolve().parents[2]


def type_in(folder, *command, **env):
    """Run `python ...` or another program in this folder; what this process is told by CUDATUT_* is not handed on."""
    command = [sys.executable if word == "python" else str(word) for word in command]
    kept = {key: value for key, value in environment().items() if not key.startswith("CUDATUT_")}
    return subprocess.run(
        command, cwd=folder, env=kept | env, capture_output=True, text=True, timeout=600
    )


def works(done):
    assert done.returncode == 0, f"{done.args}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    assert "Traceback" not in done.stderr
    return done.stdout


@pytest.fixture
def small_book(tmp_path):
    """A folder of examples that holds one, so that recording takes seconds and touches no recording of the book."""
    source = paths.examples_dir()
    for name in catalog.get("start/hello").sources():
        target = tmp_path / "examples" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / name, target)
    (tmp_path / "empty").mkdir()
    return tmp_path / "empty", {"CUDATUT_EXAMPLES": str(tmp_path / "examples")}


def test_doctor(tmp_path):
    assert "Examples can run here" in works(type_in(tmp_path, "python", "-m", "cudatut", "doctor"))


@pytest.mark.parametrize("name", ["start/hello", "start/first_kernel"])
def test_run(tmp_path, name):
    out = works(type_in(tmp_path, "python", "-m", "cudatut", "run", name))
    assert out and "replays" not in out


def test_an_example_is_a_script(tmp_path):
    works(type_in(ROOT, "python", "examples/start/first_kernel/chapter.py"))


@pytest.mark.skipif(shutil.which("compute-sanitizer") is None, reason="needs compute-sanitizer")
@pytest.mark.parametrize("words", [["start/hello"], ["start"], ["--stale"], ["--shard", "1/1"], []])
def test_record(small_book, words):
    folder, env = small_book
    out = works(type_in(folder, "python", "-m", "cudatut", "record", *words, **env))
    assert "1 recorded" in out
    out = works(type_in(folder, "python", "-m", "cudatut", "record", "--stale", **env))
    assert "nothing to record" in out
    assert "all 1 recordings" in works(type_in(folder, "python", "-m", "cudatut", "status", **env))


def test_record_slim(small_book):
    """Needs no sanitizer, and leaves the book's own recording, which there is none of here."""
    folder, env = small_book
    command = ["python", "-m", "cudatut", "record", "start/hello", "--slim"]
    assert "1 recorded" in works(type_in(folder, *command, **env))
    (slim,) = (folder.parent / "recordings").rglob("*.json")
    assert slim.parts[-2:] == ("start", "hello.json")
    found = recording.parse("start/hello", slim, slim.read_bytes())
    assert found.slim and not found.edited() and found.problems() == []
    assert found.metadata["gpu"]["name"] == ct.device().name
    assert not list(folder.parent.rglob("*.ipynb"))


@pytest.mark.skipif(shutil.which("compute-sanitizer") is None, reason="needs compute-sanitizer")
def test_sanitize(small_book):
    folder, env = small_book
    out = works(type_in(folder, "python", "-m", "cudatut", "sanitize", **env))
    assert out.split()[-5:] == ["start/hello", "0", "0", "0", "0"]


@pytest.mark.skipif(shutil.which("compute-sanitizer") is None, reason="needs compute-sanitizer")
@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
@pytest.mark.parametrize("target", [["record", "NAME=start/hello"], ["record"], ["sanitize"]])
def test_make(small_book, target):
    """With this interpreter as it is: to install the lock file's packages needs a network."""
    _, env = small_book
    make = ["make", "VENV=", f"PYTHON={sys.executable}"]
    out = works(type_in(ROOT, *make, *target, **env))
    assert "1 recorded" in out or "start/hello" in out


MATMUL = """// @rung kernel=mine block=16x16 tile=16x16
__global__ void mine(const float *A, const float *B, float *C, int m, int n, int k) {
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  if (x >= n || y >= m) return;
  float sum = 0.0f;
  for (int i = 0; i < k; ++i) sum += A[(size_t)y * k + i] * B[(size_t)i * n + x];
  C[(size_t)y * n + x] = sum;
}
"""
GEMM = """// @rung kernel=mine block=256 tile=16x16
#include "edges.cuh"
extern "C" __global__ void mine(const float *A, const float *B, float *C, int m, int n, int k,
                                float alpha, float beta) {
  int x = blockIdx.x * 16 + threadIdx.x % 16, y = blockIdx.y * 16 + threadIdx.x / 16;
  if (x >= n || y >= m) return;
  float sum = 0.0f;
  for (int i = 0; i < k; ++i) sum += A[(size_t)y * k + i] * B[(size_t)i * n + x];
  size_t at = (size_t)y * n + x;
  C[at] = alpha * sum + (beta == 0.0f ? 0.0f : beta * C[at]);
}
"""
TENSOR = """// @rung kernel=mine block=256 tile=16x16 multiples=1x1x1
#include <cuda_bf16.h>
extern "C" __global__ void mine(const __nv_bfloat16 *A, const __nv_bfloat16 *B, __nv_bfloat16 *C,
                                int m, int n, int k) {
  int x = blockIdx.x * 16 + threadIdx.x % 16, y = blockIdx.y * 16 + threadIdx.x / 16;
  if (x >= n || y >= m) return;
  float sum = 0.0f;
  for (int i = 0; i < k; ++i)
    sum += __bfloat162float(A[(size_t)y * k + i]) * __bfloat162float(B[(size_t)i * n + x]);
  C[(size_t)y * n + x] = __float2bfloat16_rn(sum);
}
"""


def on_the_page(name):
    """The kernel that a chapter shows to try."""
    page = (ROOT / f"docs/en/primitives/{name}.md").read_text(encoding="utf-8")
    text = re.search(r"^ {4}```cuda\n( {4}// @rung .*?)^ {4}```$", page, re.MULTILINE | re.DOTALL)[
        1
    ]
    return (
        re.sub(r"^ {4}", "", text, flags=re.MULTILINE)
        .replace("my_scatter", "mine")
        .replace(f"my_{name}", "mine")
    )


# The same kernel with one fault: a bound that is missing or off, where only ragged sizes show it.
FILES = {
    "matmul": (MATMUL, ("if (x >= n || y >= m) return;", "if (x > n || y > m) return;")),
    "gemm": (GEMM, ("beta == 0.0f ? 0.0f : beta * C[at]", "0.0f")),
    "tensor": (TENSOR, ("float sum = 0.0f;", "float sum = k ? 0.0f : 1.0f;")),
    "transpose": (on_the_page("transpose"), ("row < rows && column", "row < rows - 1 && column")),
    "scan": (on_the_page("scan"), ("t == BLOCK - 1", "t == BLOCK - 2")),
    "sort": (on_the_page("sort"), ("i < t; ++i", "i < t; i += 2")),
    "reduction": (MINE, ("i < n ? in[i] : ELEMENT(0)", "i + 1 < n ? in[i] : ELEMENT(0)")),
}


@pytest.mark.parametrize("ladder", FILES)
def test_try_ranks_a_right_kernel(tmp_path, ladder):
    (tmp_path / "mine.cu").write_text(FILES[ladder][0])
    out = works(type_in(tmp_path, "python", "-m", "cudatut", "try", ladder, "mine.cu"))
    rank, rows = map(int, re.search(r"^mine: rank (\d+) of (\d+)", out, re.MULTILINE).groups())
    assert 1 < rank <= rows and f"benchmark {ladder}: mine" in out


@pytest.mark.parametrize("ladder", FILES)
def test_try_refuses_a_wrong_kernel(tmp_path, ladder):
    text, (right, wrong) = FILES[ladder]
    assert right in text
    (tmp_path / "mine.cu").write_text(text.replace(right, wrong))
    done = type_in(tmp_path, "python", "-m", "cudatut", "try", ladder, "mine.cu")
    assert done.returncode == 1 and "benchmark" not in done.stdout
    assert done.stderr.startswith("not correct yet, so not timed: ") and "mine, " in done.stderr
    assert "Traceback" not in done.stderr


def test_try_by_the_name_of_the_part(tmp_path):
    (tmp_path / "mine.cu").write_text(MATMUL)
    assert "rank" in works(type_in(tmp_path, "python", "-m", "cudatut", "try", "basics", "mine.cu"))


@pytest.mark.parametrize(
    ("ladder", "name"), [("matmul", "basics/thread_tile/two_columns"), ("gemm", "gemm/block_tiles/block_tiles_strided"),
                         ("gemm", "gemm/vectorized/vectorized_unturned"), ("tensor", "tensor/ladder/mma_sync"),
                         ("tensor", "tensor/ladder/two_consumers")],
)  # fmt: skip
def test_try_takes_a_file_of_the_book_from_any_folder(tmp_path, ladder, name):
    shutil.copy(paths.examples_dir() / f"{name}.cu", tmp_path / "mine.cu")
    assert "rank" in works(type_in(tmp_path, "python", "-m", "cudatut", "try", ladder, "mine.cu"))


def test_try_says_what_a_kernel_does_not_claim(tmp_path):
    text = (paths.examples_dir() / "tensor/ladder/wmma.cu").read_text()
    (tmp_path / "mine.cu").write_text(text.replace("tile=", "multiples=1x8x64 tile="))
    out = works(type_in(tmp_path, "python", "-m", "cudatut", "try", "tensor", "mine.cu"))
    assert "not checked: mine takes only multiples of 64 for k, not 1 x 8 x 8" in out


@pytest.mark.parametrize(
    ("ladder", "name", "line"),
    [
        ("transpose", "transpose/tiled", "kernel=transpose_swizzled<float> block=32x32 tile=32x32"),
        ("transpose", "transpose/several", "kernel=transpose_several<float,32,32,256> block=256 tile=32x32 group=1"),
        ("scan", "scan/tree", "kernel=scan_tree block=256 per_thread=2"),
        ("scan", "scan/one_pass", "kernel=scan_look_back block=256 vectors=8 launches=one"),
    ],
)  # fmt: skip
def test_try_takes_a_kernel_of_a_chapter_with_a_line(tmp_path, ladder, name, line):
    text = (paths.examples_dir() / f"primitives/{name}.cu").read_text()
    (tmp_path / "mine.cu").write_text(f"// @rung {line}\n{text}")
    out = works(type_in(tmp_path, "python", "-m", "cudatut", "try", ladder, "mine.cu"))
    assert re.search(r"^mine: rank", out, re.MULTILINE) and "not checked" not in out


def test_try_says_which_rows_a_kernel_does_not_claim(tmp_path):
    text = (paths.examples_dir() / "primitives/transpose/vectors.cu").read_text()
    line = "kernel=transpose_vectors<float,64,64,256,0> block=256 tile=64x64 shared=16384 align=16 group=all"
    (tmp_path / "mine.cu").write_text(f"// @rung {line}\n{text}")
    out = works(type_in(tmp_path, "python", "-m", "cudatut", "try", "transpose", "mine.cu"))
    assert (
        "not checked: mine takes only rows that begin at multiples of 16 bytes, not 24 bytes apart"
        in out
    )
    # Where this is not said, such rows are checked.
    (tmp_path / "mine.cu").write_text(f"// @rung {line.replace('align=16 ', '')}\n{text}")
    done = type_in(tmp_path, "python", "-m", "cudatut", "try", "transpose", "mine.cu")
    assert done.returncode and "benchmark" not in done.stdout


@pytest.mark.parametrize("name", ["transpose", "scan", "sort"])
def test_every_rung_of_a_chapter_solves_what_a_reader_has_to(name):
    found = ct.load_ladder(name)
    for rung in found.names:
        for instance in [*found.trials, *found.more_trials]:
            if not found.refuses(found[rung], **instance):
                found.check(rung, [instance])


def test_a_compile_error_is_told_without_a_traceback(tmp_path):
    (tmp_path / "mine.cu").write_text(MATMUL.replace("float sum = 0.0f;", ""))
    done = type_in(tmp_path, "python", "-m", "cudatut", "try", "matmul", "mine.cu")
    assert done.returncode == 2 and 'identifier "sum" is undefined' in done.stderr
    assert "Traceback" not in done.stderr


def test_tuner(tmp_path):
    few = ["run", "gemm/tuner.py", "512x512x512", "--most", "3"]
    assert "best: " in works(type_in(tmp_path, "python", "-m", "cudatut", *few))


@pytest.mark.parametrize("ladder", ["gemm", "tensor"])
def test_tune(tmp_path, ladder):
    few = ["tune", ladder, "512x520x512", "--most", "3"]
    done = type_in(tmp_path, "python", "-m", "cudatut", *few)
    if done.returncode == 2 and "this needs sm_90a" in done.stderr:
        pytest.skip("this GPU is no Hopper")
    out = works(done)
    assert "best: " in out and re.search(r"^  1 +\d+\.\d\d us   1\.000  ", out, re.MULTILINE)


# --- tools of the toolkit ---------------------------------------------------------------------------

PROGRAM = """
import numpy as np
import pycuda.autoprimaryctx
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

add = SourceModule("__global__ void add(float *x) { x[threadIdx.x] += 1; }").get_function("add")
x = np.zeros(32, np.float32)
add(cuda.InOut(x), grid=(1, 1), block=(32, 1, 1))
assert (x == 1).all()
print("correct")
"""


@pytest.fixture
def program(tmp_path):
    (tmp_path / "my_program.py").write_text(PROGRAM)
    return tmp_path


@pytest.mark.skipif(shutil.which("compute-sanitizer") is None, reason="needs compute-sanitizer")
@pytest.mark.parametrize("options", [[], ["--tool", "racecheck"]])
def test_compute_sanitizer(program, options):
    out = works(type_in(program, "compute-sanitizer", *options, "python", "my_program.py"))
    assert "correct" in out and re.search(r"ERROR SUMMARY: 0 errors|0 hazards displayed", out)


def test_blocking_launches(program):
    assert (
        works(type_in(program, "python", "my_program.py", CUDA_LAUNCH_BLOCKING="1")) == "correct\n"
    )


@pytest.mark.alone  # beside kernels of other processes ncu now and then counts nothing
@pytest.mark.xdist_group("profilers")
@pytest.mark.skipif(shutil.which("ncu") is None, reason="needs ncu")
def test_ncu(program):
    metrics = "gpu__time_duration.sum,dram__bytes_read.sum,dram__bytes_write.sum"
    options = ["--kernel-name", "add", "--launch-count", "1", "--metrics", metrics]
    out = works(type_in(program, "ncu", *options, "python", "my_program.py"))
    assert "gpu__time_duration.sum" in out
    assert "dram__bytes_read" in works(type_in(program, "ncu", "--query-metrics"))


def test_nvcc_makes_a_program_of_its_own(tmp_path):
    """hello.cu, as the page has it: its own main, compiled for the GPU that is there."""
    shutil.copy(paths.examples_dir() / "start" / "hello" / "hello.cu", tmp_path)
    program = nvcc.find_nvcc()
    flags = nvcc.nvcc_flags(program)
    works(type_in(tmp_path, program, "-arch=native", *flags, "hello.cu", "-o", "hello"))
    assert works(type_in(tmp_path, tmp_path / "hello"))


@pytest.mark.skipif(shutil.which("cuobjdump") is None, reason="needs cuobjdump")
def test_cuobjdump(tmp_path):
    (tmp_path / "k.cu").write_text('extern "C" __global__ void k(int* x) { *x = 1; }')
    arch = f"-arch={ct.device().arch}"
    works(type_in(tmp_path, nvcc.find_nvcc(), "--cubin", arch, "k.cu", "-o", "k.cubin"))
    assert "Function : k" in works(type_in(tmp_path, "cuobjdump", "-sass", "k.cubin"))


def test_an_example_for_a_newer_gpu_says_so(tmp_path):
    """As on a T4: `run` replays, and the message comes first."""
    example = tmp_path / "examples" / "a" / "new.py"
    example.parent.mkdir(parents=True)
    example.write_text(
        '# ---\n# jupyter:\n#   cudatut:\n#     title: {en: "New", zh: "新"}\n'
        "#     requires: sm_990\n# ---\n# %% a\nprint('ran')\n"
    )
    env = {"CUDATUT_EXAMPLES": str(tmp_path / "examples")}
    done = type_in(tmp_path, "python", "-m", "cudatut", "run", "a/new", **env)
    assert done.returncode == 2 and "ran" not in done.stdout
    assert (
        "it needs a GPU of compute capability 99.0 or newer (sm_990), and this one" in done.stderr
    )


def test_environment_is_that_of_a_reader():
    assert not [key for key in os.environ if key in ("CUDATUT_TOOL", "CUDATUT_RECORDING")]
