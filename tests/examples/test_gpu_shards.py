"""tests/gpu/shards.py and dealt.py, without a GPU: every test runs once, whatever ends the processes, and is told."""

import itertools
import json
import os
import random
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path
from types import SimpleNamespace

import beside_load
import dealt
import pytest
import shards
from pairwise import pairs, pairwise

ROOT = Path(__file__).resolve().parents[2]
GPU = ROOT / "tests" / "gpu"
TESTS = """
import os, time
import pytest

@pytest.fixture(scope="module")
def made():
    return []

@pytest.mark.parametrize("n", range(30))
def test_many(n, made):
    made.append(n)
    assert n != 7, "seven is wrong"

@pytest.mark.alone
def test_times():
    pass

@pytest.mark.parametrize("chapter", ["a/b", "c/d"])
@pytest.mark.parametrize("n", range(4))
def test_of_a_chapter(chapter, n):
    pass

def test_ends_its_process():
    if {ends}:
        os._exit(3)

def test_is_skipped():
    pytest.skip("no reason")
"""


@pytest.fixture
def tree(tmp_path):
    """A checkout with tests of its own in tests/gpu."""
    folder = tmp_path / "tree" / "tests" / "gpu"
    folder.mkdir(parents=True)
    (tmp_path / "tree" / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    (folder / "test_one.py").write_text(TESTS.format(ends=True))
    (folder / "test_two.py").write_text(TESTS.format(ends=False))
    return tmp_path / "tree"


def run(tree, folder, jobs=3, limit=60, **plan):
    plan = {"files": ["test_*.py"], "seed": 3, "batch": 4} | plan
    processes = shards.Processes(plan, folder, "x", tree)
    whole = shards.run(processes, jobs, limit, tick=0.05)
    return whole, shards.read(processes.report), processes.log.read_text()


def test_each_test_runs_once_and_failures_are_told(tree, tmp_path, capsys):
    whole, found, log = run(tree, tmp_path)
    assert whole and found.collected == 2 * (30 + 8 + 2), log
    times = Counter(line["test"].replace("tests/gpu/", "") for line in found.runs)
    assert len(times) == found.collected and set(times.values()) == {1}
    failed = {line["test"].rpartition("::")[2]: line["text"] for line in found.failed}
    assert set(failed) == {"test_many[7]", "test_ends_its_process"}
    assert "seven is wrong" in failed["test_many[7]"]
    assert "ended with status 3" in failed["test_ends_its_process"]
    assert not shards.told("x", found, 1.0, 0)
    said = capsys.readouterr().out
    assert "75 passed, 2 skipped, 3 failed, 0 did not run" in said and "seven is wrong" in said


def test_what_compares_times_is_left_to_one_process(tree, tmp_path):
    _, found, log = run(tree, tmp_path, jobs=1, alone=True)
    assert {line["test"].rpartition("::")[2] for line in found.runs} == {"test_times"}, log


def test_a_test_runs_again_right_after_itself(tree, tmp_path):
    """It is set up each time, also where no other ran in between."""
    test = "tests/gpu/test_two.py::test_many[3]"
    _, found, log = run(tree, tmp_path, jobs=1, names=[test], repeat=5)
    assert [(line["test"], line["outcome"]) for line in found.runs] == [(test, "passed")] * 5, log


def test_what_did_not_run_in_time_is_a_failure(tree, tmp_path, capsys):
    slow = (
        (tree / "tests/gpu/test_two.py").read_text().replace("assert n != 7", "time.sleep(900)  #")
    )
    (tree / "tests/gpu/test_two.py").write_text(slow)
    begun = time.monotonic()
    for limit in (4, 20, 100):  # a busy machine needs longer until it has found the tests
        whole, found, _ = run(tree, tmp_path, limit=limit)
        if found.collected:
            break
    assert not whole and time.monotonic() - begun < 900 and len(found.tests) < found.collected
    assert not shards.told("x", found, 1.0, 0) and " did not run" in capsys.readouterr().out


def test_one_case_of_each_function(tree, tmp_path):
    plan = {"cases": 1, "whole": ["test_two.py"], "half": [0, 1]}
    _, found, log = run(tree, tmp_path, jobs=1, **plan)
    names = [name.removeprefix("tests/gpu/") for name in found.tests]
    assert sum(name.startswith("test_two") for name in names) == 40, log
    of_one = {dealt.function_of(n).partition("::")[2] for n in names if n.startswith("test_one")}
    assert len([n for n in names if n.startswith("test_one")]) == len(of_one) == 4


def test_batches_are_the_same_everywhere_and_others_with_another_seed():
    tests = [(f"a.py::test[{i}]", "") for i in range(20)] + [
        (f"b.py::t[{i}]", "g") for i in range(7)
    ]
    mixed = random.Random(1).sample(tests, len(tests))
    cut = dealt.batches(tests, 5, 4)
    assert cut == dealt.batches(mixed, 5, 4) != dealt.batches(tests, 6, 4)
    assert sorted(name for batch in cut for name in batch) == sorted(name for name, _ in tests)
    assert sorted(map(len, cut)) == [4, 4, 4, 4, 4, 7]


def test_halves_have_all_functions():
    names = [f"a.py::f{i}[{n}]" for i in range(40) for n in range(5)]
    drawn = dealt.some_of_each(names, 3)
    assert {dealt.function_of(name) for name in drawn} == {f"a.py::f{i}" for i in range(40)}
    assert len(drawn) == 40 and drawn != dealt.some_of_each(names, 4)
    more = dealt.some_of_each(names, 3, most=3)
    assert len(more) == 120 and drawn < more and len(dealt.some_of_each(names, 3, most=9)) == 200


def test_each_name_among_parameters_has_a_case():
    """Of a rung, say; numbers need none."""
    rungs = "naive", "tiles", "wgmma", "tma", "final"
    words = {f"a.py::f[{r}-{n}]": {("rung", r)} for r in rungs for n in range(4)}
    words |= {f"a.py::g[{n}]": set() for n in range(9)}
    drawn = dealt.some_of_each(list(words), 3, most=2, words=words)
    assert set().union(*(words[name] for name in drawn)) == {("rung", r) for r in rungs}
    assert sum(name.startswith("a.py::g") for name in drawn) == 2
    assert 5 <= sum(name.startswith("a.py::f") for name in drawn) <= 6
    item = SimpleNamespace(callspec=SimpleNamespace(params={"rung": "tma", "n": 3}))
    assert dealt.words_of(item) == {("rung", "tma")} and not dealt.words_of(SimpleNamespace())


def test_every_file_of_tests_gpu_is_in_one_shard():
    for path in GPU.glob("test_*.py"):
        of = [
            n for n, some in shards.SHARDS.items() if any(fnmatch(path.name, one) for one in some)
        ]
        assert len(of) == 1, f"{path.name} is in {of}: every file belongs to one shard"


def test_what_passed_is_not_run_again(tree, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(shards, "SHARDS", {"few": ("test_two.py",)})
    monkeypatch.setattr(shards, "NAMES", ("few",))
    arguments = ["few", "--jobs", "2", "--out", str(tmp_path), "--limit", "60"]
    assert shards.main(arguments, tree) == 1
    assert "38 passed, 1 skipped, 1 failed, 0 did not run, 0 had" in capsys.readouterr().out
    file = tree / "tests/gpu/test_two.py"
    file.write_text(file.read_text().replace("n != 7", "True"))
    assert shards.main([*arguments, "--resume"], tree) == 0
    assert "1 passed, 0 skipped, 0 failed, 0 did not run, 39 had" in capsys.readouterr().out
    assert len(json.loads((tmp_path / "report-few.json").read_text())["tests"]) == 1
    shards.main([*arguments, "--resume"], tree)
    assert "40 had passed before" in capsys.readouterr().out


def test_kernels_of_what_passed_before_stay_in_the_report(tree, tmp_path, monkeypatch):
    """A survey that goes on knows all kernels, of each what was found last."""
    monkeypatch.setattr(shards, "SHARDS", {"few": ("test_two.py",)})
    monkeypatch.setattr(shards, "NAMES", ("few",))
    passed = {
        "test": "tests/gpu/test_two.py::test_gone",
        "outcome": "passed",
        "seconds": 1.0,
        "pid": 1,
    }
    kernel = {"kernel": "k", "files": ["x.cu"], "code": "1", "compiled": 2.0, "pid": 1}
    report = tmp_path / "report-few.jsonl"
    report.write_text("".join(json.dumps(line) + "\n" for line in (kernel, passed)))
    shards.main(["few", "--out", str(tmp_path), "--limit", "60", "--resume"], tree)
    assert shards.read(report).kernels == {"k": kernel}


def test_what_a_process_of_a_test_compiles_is_that_tests(tmp_path, monkeypatch):
    from cudatut.gpu import kernel

    for name in ("__init__", "__call__"):
        monkeypatch.setattr(kernel.Kernel, name, getattr(kernel.Kernel, name))
    monkeypatch.setenv(dealt.NOTE_IN, "")
    said = []
    kernels = dealt.Kernels(lambda **facts: said.append(facts))
    noted = Path(os.environ[dealt.NOTE_IN])
    assert kernels.taken() == {"kernels": [], "compiling": 0.0}
    noted.write_text(json.dumps({"kernel": "k", "files": ["x.cu"], "code": "1"}) + "\n")
    assert kernels.taken()["kernels"] == ["k"] and said == [
        {"kernel": "k", "files": ["x.cu"], "code": "1"}
    ]
    noted.write_text(json.dumps({"kernel": "k", "files": ["x.cu"], "code": "1"}) + "\n")
    assert kernels.taken()["kernels"] == ["k"] and len(said) == 1, "told once"
    assert kernels.taken()["kernels"] == []


def test_uneven_shards_are_woven_cases_of_others():
    for name, files in shards.UNEVEN.items():
        plan = shards.plan_of(name, 1)
        assert plan["uneven"] and plan["cases"] and plan["words"] and plan["files"] == files
        assert set(files) <= {one for some in shards.SHARDS.values() for one in some}


def test_what_runs_many_times_is_there_and_its_failures_are_told(capsys):
    for names in beside_load.CANDIDATES.values():
        for name in names:
            file, _, function = name.partition("::")
            assert f"def {function}(" in (GPU / file).read_text(encoding="utf-8"), name
    runs = [{"test": "t.py::a", "outcome": "passed"}] * 5
    assert beside_load.told("good", shards.Found(runs=runs), 5)
    assert not beside_load.told("few", shards.Found(runs=runs), 6)
    failed = [*runs, {"test": "t.py::a", "outcome": "failed", "text": "one is wrong"}]
    assert not beside_load.told("bad", shards.Found(runs=failed), 5)
    said = capsys.readouterr().out
    assert "each run 6 to 6 times" in said and "one is wrong" in said


def test_pairs_leave_out_no_pair():
    axes = [list(range(15)), "abc", [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], [False, True]]
    found = pairs(*axes)
    assert found == pairs(*axes) and 15 * 7 <= len(found) < 130 < 15 * 3 * 7 * 2
    for i, j in itertools.combinations(range(4), 2):
        assert {(one[i], one[j]) for one in found} == set(itertools.product(axes[i], axes[j]))
    assert pairs("ab", "cd") == list(itertools.product("ab", "cd"))
    few = pairs(*axes, fits=lambda number, letter, *_: letter != "b" or number < 3)
    assert {(n, letter) for n, letter, *_ in few if letter == "b"} == {(n, "b") for n in range(3)}
    mark = pairwise(lambda value: None, m__n=[(1, 2), (3, 4)], k=[5]).mark
    assert mark.args == (["m", "n", "k"], [(1, 2, 5), (3, 4, 5)])


@pytest.fixture
def as_on_a_gpu(monkeypatch, compiler, tmp_path):
    """`ct.Kernel` compiles by the real nvcc, called as PyCUDA calls it, and launches nothing."""
    from cudatut.errors import KernelCompileError
    from cudatut.gpu import kernel

    class CompileError(Exception):
        stderr = "kernel.cu(1): error: no"

    def compile(source, nvcc, options, no_extern_c, arch, include_dirs, cache_dir):
        whole = source if no_extern_c else f'extern "C" {{\n{source}\n}}\n'
        flags = ["--cubin", *options, "-arch", arch, *(f"-I{folder}" for folder in include_dirs)]
        done = compiler(whole, flags, tmp_path, output=True)
        if done.status:
            raise CompileError
        return done.output

    pycuda = SimpleNamespace(compiler=SimpleNamespace(compile=compile))
    monkeypatch.setitem(sys.modules, "pycuda", pycuda)
    monkeypatch.setitem(sys.modules, "pycuda.compiler", pycuda.compiler)
    monkeypatch.setenv("PYCUDA_CACHE_DIR", str(tmp_path / "cubins"))
    monkeypatch.setattr(kernel, "pycuda_driver", lambda: SimpleNamespace(CompileError=CompileError))
    monkeypatch.setattr(kernel.Kernel, "__init__", kernel.Kernel.__init__)  # undone afterwards
    monkeypatch.setattr(kernel.Kernel, "__call__", lambda self, *args, **how: None)
    monkeypatch.setattr(kernel, "compile_ahead", kernel.compile_ahead)
    return kernel, KernelCompileError


def test_kernels_that_a_test_compiles_or_launches_are_noted(as_on_a_gpu, monkeypatch):
    import cudatut as ct

    kernel, error = as_on_a_gpu
    before = kernel.Kernel(
        "llm/kernels/attention/merge.cu", "merge", arch="sm_90", load=False
    )  # at an import
    monkeypatch.setitem(vars(ct), "compile_ahead", None)
    said = []

    def say(**facts):
        said.append(facts)

    notes = dealt.Kernels(say, at_once=True)
    before()
    assert notes.taken()["kernels"] == [] and not said
    first = kernel.Kernel("llm/kernels/attention/merge.cu", "merge", arch="sm_90", load=False)
    taken = notes.taken()
    (key,) = taken["kernels"]
    assert (
        json.loads(key) == ["llm/kernels/attention/merge.cu", "merge", {}, [], "sm_90"]
        and taken["compiling"] >= 0
    )
    (fact,) = said
    assert (
        fact["kernel"] == key
        and "llm/kernels/attention/merge.cu" in fact["files"]
        and len(fact["code"]) == 64
    )
    with pytest.raises(error):
        kernel.Kernel("__global__ void k() { x; }", "k", arch="sm_90", load=False)
    first()
    taken = notes.taken()
    assert key in taken["kernels"] and len(taken["kernels"]) == 2, (
        "launched, and not compiled again"
    )
    assert len(said) == 2 and "error" in said[1] and said[1]["kernel"] in taken["kernels"]
    assert kernel.compile_ahead([("a.cu", "k")]) == ct.compile_ahead([("a.cu", "k")]) == {}


def test_a_kernel_is_compiled_by_one_process_at_a_time(monkeypatch, tmp_path):
    from cudatut.gpu import cubins

    running, most = [], []

    def compiled(source, nvcc, **how):
        running.append(source)
        most.append(running.count(source))
        time.sleep(0.05)
        running.remove(source)
        return source.encode()

    monkeypatch.setattr(cubins, "compiled", compiled)
    dealt.share_compiling(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        found = list(
            pool.map(lambda i: cubins.compiled(f"k{i % 2}", "nvcc", arch="sm_90"), range(8))
        )
    assert found == [b"k0", b"k1"] * 4 and max(most) == 1
