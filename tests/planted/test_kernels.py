"""The faults that are planted in kernels, and what is said of them, without a GPU: tests that read the kernels' text judge."""

import argparse
import json
import tempfile
from itertools import islice
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
KERNEL = """// a + b: a comment stays
#define N 3  // so does a macro
__global__ void __launch_bounds__(256) add(const float* a, int n, Slot& slot) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= n) return;
  asm volatile("fence.proxy.async;" ::: "memory");
  wait(&slot.empty, parity ^ 1);
  __syncthreads();
  float sum = 0.5f;
  for (int j = 0; j < N; j += 1) sum += a[j];
  __threadfence();
  phase ^= 1;
  out[i] = sum;
}
"""


@pytest.fixture
def planted(monkeypatch):
    """The modules cuda_mutants and kernels."""
    for folder in ("tests/gpu", "tests/planted"):
        monkeypatch.syspath_prepend(str(ROOT / folder))
    import cuda_mutants
    import kernels

    return cuda_mutants, kernels


def test_each_family_finds_its_places(planted):
    found = planted[0].possible("x.cu", KERNEL)
    said = {(one.family, one.old, one.new) for one in found}
    for one in (
        ("guard", ">=", ">"),
        ("guard", "<", "<="),
        ("guard", "if (i >= n) return;", ";"),
        ("guard", "i >= n", "true"),
        ("guard", "i >= n", "false"),
        ("constant", "256", "255"),
        ("constant", "0.5f", "1.0f"),
        ("operator", "+", "-"),
        ("operator", "+=", "-="),
        ("barrier", "__syncthreads();", ";"),
        ("barrier", "wait(&slot.empty, parity ^ 1);", ";"),
        ("fence", "__threadfence();", ";"),
        ("fence", 'asm volatile("fence.proxy.async;" ::: "memory");', ";"),
        ("phase", " ^ 1", ""),
        ("phase", "phase ^= 1;", ";"),
        ("statement", "out[i] = sum;", ";"),
    ):
        assert one in said, one
    assert ("statement", "j += 1) sum += a[j];", ";") not in said, "half of a loop's head"
    assert {one.family for one in found} == set(planted[0].FAMILIES)
    for one in found:
        assert one.applied(KERNEL) != KERNEL
        assert one.line not in (1, 2), "a comment or a macro"
        assert "launch_bounds" not in one.applied(KERNEL)[one.at - 20 : one.at]
    with pytest.raises(ValueError, match="draw again"):
        found[0].applied(KERNEL.replace(" ", "  "))


def test_drawing_is_the_same_for_a_seed_and_takes_every_family(planted):
    mutants = planted[0]
    texts = mutants.kernel_files(ROOT / "examples")
    assert "llm/gemv.cuh" in texts and "tensor/final.cu" in texts
    first, again, other = (list(islice(mutants.drawn(texts, n), 150)) for n in (1, 1, 2))
    assert first == again != other and len({one.name for one in first}) == 150
    assert all(count >= 15 for count in mutants.counted(first).values())
    assert len({one.file for one in first}) > 45


def some_survey(kernels):
    def kernel(seconds, *files):
        return {"files": list(files), "code": "1", "compiled": seconds}

    def test(seconds, *used):
        return {"seconds": seconds, "compiling": 0.0, "kernels": list(used), "outcome": "passed"}

    return kernels.Survey(
        {
            "a": kernel(2, "llm/x.cu", "llm/x.cuh"),
            "b": kernel(3, "llm/x.cu"),
            "c": kernel(1, "o.cu"),
        },
        {
            "t.py::slow[1]": test(5.0, "a"),
            "t.py::slow[2]": test(4.0, "a"),
            "t.py::quick[1]": test(0.1, "a"),
            "t.py::quick[2]": test(0.1, "b", "c"),
            **{f"t.py::quick[{i}]": test(0.2, "a") for i in range(3, 60)},
            "t.py::other": test(0.1, "c"),
        },
    )


def test_chosen_tests_run_each_function_and_each_kernel_of_a_file(planted):
    kernels = planted[1]
    found = some_survey(kernels)
    assert found.files() == {"llm/x.cu", "llm/x.cuh", "o.cu"} and found.of("llm/x.cuh") == {"a"}
    chosen = kernels.choose(found, "llm/x.cu", 15)
    assert chosen.tests[:3] == ["t.py::quick[1]", "t.py::slow[2]", "t.py::quick[2]"]
    assert (chosen.kernels, chosen.of_kernels, chosen.functions, chosen.of_functions) == (
        2,
        2,
        2,
        2,
    )
    assert 9 < chosen.seconds <= 15 and len(chosen.tests) > 15 and "t.py::other" not in chosen.tests
    assert "t.py::slow[1]" not in chosen.tests and chosen == kernels.choose(found, "llm/x.cu", 15)
    header = kernels.choose(found, "llm/x.cuh", 0.5)  # too little: one test all the same
    assert header.tests == ["t.py::quick[1]"] and header.functions < header.of_functions


TESTS = """
import os
import time
from pathlib import Path

import pytest

TEXT = (Path(__file__).parents[2] / "examples/llm/x.cu").read_text()


def has(words):
    return words in TEXT


def test_quick():
    assert has("i >= n"), "the guard is another"


def test_hangs():
    while not has("__syncthreads();"):
        time.sleep(0.1)


def test_ends():
    if not has("phase ^= 1;"):
        os._exit(9)


@pytest.mark.parametrize("n", range(3))
def test_slow(n):
    assert has("256 + threadIdx") and has("out[i] = sum;")
"""


@pytest.fixture
def book(tmp_path):
    """A checkout with one kernel, the tests that judge it, and the survey of a GPU."""
    root = tmp_path / "book"
    for name in ("cudatut", "examples/llm", "examples/tensor", "tests/gpu"):
        (root / name).mkdir(parents=True)
    (root / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    (root / "examples/llm/x.cu").write_text(KERNEL)
    (root / "examples/llm/nobodys.cu").write_text(KERNEL)
    (root / "tests/gpu/test_x.py").write_text(TESTS)
    names = ["quick", "hangs", "ends", "slow[0]", "slow[1]", "slow[2]"]
    lines = [{"kernel": "k", "files": ["llm/x.cu"], "code": "1", "compiled": 0.5}]
    for name in names:
        test = {"test": f"tests/gpu/test_x.py::test_{name}", "outcome": "passed", "seconds": 0.1}
        lines.append({**test, "compiling": 0, "kernels": ["k"], "pid": 1})
    (tmp_path / "survey").mkdir()
    (tmp_path / "survey/report-llm.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return root


def asked(tmp_path, **more):
    return argparse.Namespace(**{
        "survey": tmp_path / "survey", "out": tmp_path / "out", "seed": 1, "count": 4, "jobs": 2, "budget": 25.0,
        "hang": 30.0, "limit": 600.0, "controls": 1, "again": "", "leave": 0.0, **more,
    })  # fmt: skip


def judged(planted, book, tmp_path, old, new):
    """What is said of one fault."""
    mutants, kernels = planted
    found, text = kernels.survey(tmp_path / "survey"), KERNEL
    mutant = mutants.Mutant("llm/x.cu", text.index(old), old, new, "guard", 1)
    tree = kernels.Tree(book, Path(tempfile.mkdtemp(dir=tmp_path), "tree"))
    (tmp_path / "run").mkdir(exist_ok=True)
    tree.plant(mutant)
    limits = kernels.Limits(8.0, kernels.time.monotonic() + 600)
    choice = kernels.choose(found, "llm/x.cu", 25)
    try:
        return kernels.judge(tree, found, "llm/x.cu", choice, tmp_path / "run", limits)
    finally:
        tree.mend()
        assert (tree.place / "examples/llm/x.cu").read_text() == KERNEL


@pytest.mark.parametrize(
    ("old", "new", "outcome", "by"),
    [
        ("i >= n", "i > n", "noticed", "test_quick"),
        ("__syncthreads();", ";", "noticed", "test_hangs"),
        ("phase ^= 1;", ";", "noticed", "test_ends"),
        ("out[i] = sum;", ";", "noticed", "test_slow"),
        ("0.5f", "1.0f", "same code", ""),
    ],
)
def test_a_fault_is_noticed_or_not(planted, book, tmp_path, old, new, outcome, by):
    result = judged(planted, book, tmp_path, old, new)
    assert result["outcome"] == outcome and by in result.get("by", ""), result
    if by == "test_hangs":
        assert "nothing went on" in result["how"] and result["seconds"] < 120


def test_what_other_code_no_test_notices_survives(planted, book, tmp_path, monkeypatch):
    """The code that a test has met is compared with the survey's."""
    kernels = planted[1]
    read = kernels.shards.read

    def with_kernel(code, **more):
        def reads(path):
            found = read(path)
            if "run" in str(path):
                found.kernels["k"] = {"code": code, **more}
            return found

        monkeypatch.setattr(kernels.shards, "read", reads)
        return judged(planted, book, tmp_path, "0.5f", "1.0f")["outcome"]

    assert with_kernel("1") == "same code"
    assert with_kernel("2") == "survived"
    monkeypatch.setattr(kernels.Survey, "of", lambda self, file: set())
    choice = kernels.Choice(["tests/gpu/test_x.py::test_quick"], 1, 1, 1, 1, 1)
    monkeypatch.setattr(kernels, "choose", lambda *_: choice)
    with pytest.raises(SystemExit, match="make the survey with this tree"):
        with_kernel("2")


def told_without_a_fault(capsys) -> list[str]:
    said = capsys.readouterr().out
    assert "nobodys" not in said
    return [line for line in said.splitlines() if "without a fault: " in line]


def test_a_draw_is_judged_to_its_end_and_goes_on_where_it_was(planted, book, tmp_path, monkeypatch, capsys):  # fmt: skip
    kernels = planted[1]
    monkeypatch.setattr(kernels, "same_everywhere", lambda *_: None)
    short = asked(tmp_path, limit=6.0, count=3)
    kernels.judge_all(short, book)
    controls = told_without_a_fault(capsys)
    before = kernels.Results(tmp_path / "out/kernels-1.jsonl").by_name
    results = kernels.judge_all(asked(tmp_path, count=3), book)
    controls += told_without_a_fault(capsys)
    assert [one for one in controls if not one.startswith("cut")] == [
        "same code        without a fault: llm/x.cu"
    ], "each file once, whether the first limit was enough for it or not"
    assert len(results.by_name) == 3
    assert all(results.by_name[name] == one for name, one in before.items())
    rows = (tmp_path / "out/kernels-1.jsonl").read_text().splitlines()
    assert len(rows) == 3, "what was judged is not judged again"
    kernels.report(asked(tmp_path, out=tmp_path / "out", count=3), book)
    said = capsys.readouterr().out
    assert "seed 1: " in said and "without a fault: 1 of 1 passed" in said


def test_the_figure_leaves_out_what_is_not_counted(planted, tmp_path, capsys):
    kernels = planted[1]
    results = kernels.Results(tmp_path / "kernels-1.jsonl")
    outcomes = ["noticed"] * 19 + ["survived", "does not compile", "equivalent"]
    for i, outcome in enumerate(outcomes):
        results.add(f"m{i}", {"outcome": outcome, "seconds": 1.0, "family": "guard"})
    kernels.Results(tmp_path / "clean.jsonl").add("x", {"outcome": "same code"})
    assert kernels.report(asked(tmp_path, out=tmp_path, count=20))
    said = capsys.readouterr().out
    assert "19 of 20 noticed (95.0%)" in said and "survived: m19" in said
    assert not kernels.report(asked(tmp_path, out=tmp_path, count=21)), "one is missing"
    results.add("m0", {"outcome": "survived", "seconds": 1.0, "family": "guard"})
    assert not kernels.report(asked(tmp_path, out=tmp_path, count=20))
    results.add("m0", {"outcome": "noticed", "seconds": 1.0, "family": "guard"})
    kernels.Results(tmp_path / "clean.jsonl").add("y", {"outcome": "noticed", "by": "t"})
    assert not kernels.report(asked(tmp_path, out=tmp_path, count=20)), (
        "a tree without a fault failed"
    )
