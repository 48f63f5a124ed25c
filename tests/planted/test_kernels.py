"""The faults that are planted in kernels, and what is said of them, without a GPU: tests that read the kernels' text judge."""

import argparse
import json
import shutil
import tempfile
from itertools import islice
from pathlib import Path
from typing import Any

import cuda_mutants as mutants
import kernels
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


def test_each_family_finds_its_places():
    found = mutants.possible("x.cu", KERNEL)
    said = {(one.family, one.old, one.new) for one in found}
    for wanted in (
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
        assert wanted in said, wanted
    assert ("statement", "j += 1) sum += a[j];", ";") not in said, "half of a loop's head"
    assert {one.family for one in found} == set(mutants.FAMILIES)
    for one in found:
        assert one.applied(KERNEL) != KERNEL
        assert one.line not in (1, 2), "a comment or a macro"
        assert "launch_bounds" not in one.applied(KERNEL)[one.at - 20 : one.at]
    with pytest.raises(ValueError, match="draw again"):
        found[0].applied(KERNEL.replace(" ", "  "))


def test_the_end_of_a_choice_is_no_statement():
    text = "void f() {\n  C > 1 ? meet() : __syncthreads();\n  switch (C) {\n    case 1: __syncwarp();\n  }\n}\n"
    gone = [one.old for one in mutants.possible("x.cu", text) if one.new == ";"]
    assert "__syncthreads();" not in gone and "__syncwarp();" in gone


def test_drawing_is_the_same_for_a_seed_and_takes_every_family():
    texts = mutants.kernel_files(ROOT / "examples")
    assert {"llm/kernels/gemv.cuh", "tensor/ladder/final.cu", "ptx/tma.cuh"} <= set(texts)
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


def test_chosen_tests_run_each_function_and_each_kernel_of_a_file():
    found = some_survey(kernels)
    assert found.files() == {"llm/x.cu", "llm/x.cuh", "o.cu"} and found.of("llm/x.cuh") == {"a"}
    chosen = kernels.choose(found, "llm/x.cu", 15)
    assert kernels.function_of(chosen.tests[0]) == "t.py::quick" and chosen.tests[0] not in (
        "t.py::quick[1]",
        "t.py::quick[2]",
    )
    assert chosen.tests[1:3] == ["t.py::slow[2]", "t.py::quick[2]"]
    assert (chosen.kernels, chosen.of_kernels, chosen.functions, chosen.of_functions) == (
        2,
        2,
        2,
        2,
    )
    assert 9 < chosen.seconds <= 15 and len(chosen.tests) > 15 and "t.py::other" not in chosen.tests
    assert "t.py::slow[1]" not in chosen.tests and chosen == kernels.choose(found, "llm/x.cu", 15)
    header = kernels.choose(found, "llm/x.cuh", 0.5)  # too little: one test all the same
    assert len(header.tests) == 1 and header.functions < header.of_functions


def test_a_survey_leaves_out_what_is_no_test_any_more(book, tmp_path):
    assert len(kernels.survey(tmp_path / "survey", book).tests) == 6
    file = book / "tests/gpu/test_x.py"
    file.write_text(file.read_text().replace("def test_slow(", "def test_slower("))
    left = kernels.survey(tmp_path / "survey", book).tests
    assert {kernels.function_of(name).rpartition("_")[2] for name in left} == {
        "quick",
        "hangs",
        "ends",
    }
    assert len(kernels.survey(tmp_path / "survey").tests) == 6


TESTS = """
import os
import time
from pathlib import Path
from typing import Any

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
    (tmp_path / "survey").mkdir()
    for name in names:
        test = {"test": f"tests/gpu/test_x.py::test_{name}", "outcome": "passed", "seconds": 0.1}
        lines.append({**test, "compiling": 0, "kernels": ["k"], "pid": 1})
    (tmp_path / "survey/report-llm.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return root


def asked(tmp_path, **more):
    return argparse.Namespace(**{
        "survey": tmp_path / "survey", "out": tmp_path / "out", "seed": 1, "count": 4, "jobs": 2, "budget": 25.0,
        "hang": 30.0, "limit": 600.0, "controls": 1, "again": "", "leave": 0.0, "more": 60.0, **more,
    })  # fmt: skip


def judged(book, tmp_path, old, new):
    """What is said of one fault."""
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
def test_a_fault_is_noticed_or_not(book, tmp_path, old, new, outcome, by):
    result = judged(book, tmp_path, old, new)
    assert result["outcome"] == outcome and by in result.get("by", ""), result
    if by == "test_hangs":
        assert "nothing went on" in result["how"] and result["seconds"] < 120


def test_what_other_code_no_test_notices_survives(book, tmp_path, monkeypatch):
    """The code that a test has met is compared with the survey's."""
    read = kernels.shards.read

    def with_kernel(code, **more):
        def reads(path):
            found = read(path)
            if "run" in str(path):
                found.kernels["k"] = {"code": code, **more}
            return found

        monkeypatch.setattr(kernels.shards, "read", reads)
        return judged(book, tmp_path, "0.5f", "1.0f")["outcome"]

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


def test_a_draw_is_judged_to_its_end_and_goes_on_where_it_was(book, tmp_path, monkeypatch, capsys):  # fmt: skip
    monkeypatch.setattr(kernels, "same_everywhere", lambda *_: (None, "no nvcc"))
    short = asked(tmp_path, limit=6.0, count=3)
    kernels.judge_all(short, book)
    controls = told_without_a_fault(capsys)
    before = kernels.Results(tmp_path / "out/kernels-1.jsonl").by_name
    results = kernels.judge_all(asked(tmp_path, count=3), book)
    controls += told_without_a_fault(capsys)
    judged = [one for one in controls if not one.startswith("cut")]
    assert len(judged) == 1 and "llm/x.cu" in judged[0], "once, whichever limit was enough for it"
    assert len(results.by_name) == 3
    assert all(results.by_name[name] == one for name, one in before.items())
    rows = (tmp_path / "out/kernels-1.jsonl").read_text().splitlines()
    assert len(rows) == 3, "what was judged is not judged again"
    kernels.report(asked(tmp_path, out=tmp_path / "out", count=3), book)
    said = capsys.readouterr().out
    assert "seed 1: " in said and "without a fault: 1 of 1 passed" in said


def test_the_figure_leaves_out_what_is_not_counted(tmp_path, capsys):
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


# --- what a hang is ----------------------------------------------------------------------------------


def test_patience_is_several_times_what_a_test_takes():
    found, none = some_survey(kernels), kernels.shards.Found()
    assert kernels.patience(found, none, 10) == kernels.STARTING + 10, "nothing has begun"
    begun = kernels.shards.Found(running={1: "t.py::slow[2]"})
    waited = kernels.patience(found, begun, 10)
    assert waited == 10 + kernels.SLOWER * (4.0 + 2), "its run, and the kernel that is not compiled"
    begun.kernels["a"] = {}
    assert kernels.patience(found, begun, 10) == waited - kernels.SLOWER * 2


def test_what_goes_on_too_long_is_undecided(book, tmp_path, monkeypatch):
    """However patient one is with a single test."""
    monkeypatch.setattr(kernels, "STARTING", 0)
    monkeypatch.setattr(kernels, "SLOWER", 0)
    monkeypatch.setattr(kernels, "patience", lambda *_: 30)
    tests = (
        (book / "tests/gpu/test_x.py")
        .read_text()
        .replace("_slow(n):", "_slow(n):\n    time.sleep(0.4)")
    )
    (book / "tests/gpu/test_x.py").write_text(tests)
    result = judged(book, tmp_path, "0.5f", "1.0f")
    assert result["outcome"] == "undecided" and result["how"] == "slow", result


# --- uneven warps ------------------------------------------------------------------------------------


def test_warps_wait_around_what_synchronizes_and_lines_stay():
    import uneven

    text = (
        KERNEL
        + """
__device__ void more(unsigned at) {
  if (at) asm volatile("bar.sync 1, 128;" ::: "memory");
  for (int i = 0; i < 2; ++i) asm volatile("" : "+r"(at)::"memory");
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile("st.shared.u32 [%0], 1;" ::"r"(at));
}
"""
    )
    found = uneven.woven(text)
    assert found.count("\n") == text.count("\n") and found.count("uneven();") == 6
    assert 'if (at) { uneven(); asm volatile("bar.sync 1, 128;" ::: "memory"); uneven(); }' in found
    assert "{ uneven(); __syncthreads(); uneven(); }" in found
    assert '{ uneven(); asm volatile("fence.proxy.async;" ::: "memory"); }' in found
    assert '{ uneven(); asm volatile("st.shared.u32 [%0], 1;"' in found
    assert found.replace("{ uneven(); ", "").replace(" uneven(); }", "").count("asm") == 5


def test_all_kernels_are_woven_into_one_folder_of_their_texts(tmp_path):
    import uneven

    examples = ROOT / "examples"
    folder = uneven.weave_all(examples, tmp_path)
    assert folder == uneven.weave_all(examples, tmp_path) and len(list(tmp_path.iterdir())) == 1
    assert "uneven();" in (folder / "ptx/mbarrier.cuh").read_text(encoding="utf-8")
    mutated = tmp_path / "book"
    (mutated / "llm").mkdir(parents=True)
    (mutated / "llm/x.cu").write_text(KERNEL)
    assert uneven.weave_all(mutated, tmp_path) != folder


def test_a_fault_of_barriers_meets_uneven_warps_first(book, tmp_path, monkeypatch):
    """And another one last; what only they notice is noticed."""
    report = tmp_path / "survey/report-llm.jsonl"
    (tmp_path / "survey/report-uneven-llm.jsonl").write_text(
        report.read_text().replace('"code": "1"', '"code": "2"')
    )
    found = kernels.survey(tmp_path / "survey")
    assert found.uneven == found.tests and found.kernels["k"]["code"] == "1"
    met = []

    def judge(tree, by, file, choice, folder, limits, uneven=False):
        met.append(uneven)
        outcome = "noticed" if uneven and notices else "survived"
        return {"outcome": outcome, "tests": 1, "seconds": 1.0}

    monkeypatch.setattr(kernels, "judge", judge)
    for family, notices, orders in (
        ("barrier", True, [True]),
        ("barrier", False, [True, False]),
        ("constant", True, [False, True]),
    ):  # fmt: skip  (of further tests there are none)
        one = mutants.Mutant("llm/x.cu", KERNEL.index("+ b"), "+", "-", family, 1)
        monkeypatch.setattr(kernels.cuda_mutants, "drawn", lambda *_, one=one: iter([one]))
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        met.clear()
        results = kernels.judge_all(asked(tmp_path, count=1, controls=0), book)
        assert met == orders
        assert results.outcome(one.name) == ("noticed" if notices else "survived")
    met.clear()
    kernels.judge_all(asked(tmp_path, count=1, controls=1), book)
    assert met == [False, True], "files without a fault meet both, too"
    names = kernels.Results(tmp_path / "out/clean.jsonl").by_name
    assert set(names) == {"llm/x.cu 25", "llm/x.cu 25 uneven"}


def test_what_survives_meets_further_tests(book, tmp_path, monkeypatch):
    """First those of the kernel whose code is another; none that has run; nothing more where settled.yml says why."""
    report = tmp_path / "survey/report-llm.jsonl"
    lines = [json.loads(line) for line in report.read_text().splitlines()]
    kernel = {"kernel": "k2", "files": ["llm/x.cu"], "code": "9", "compiled": 30.0}
    name = "tests/gpu/test_x.py::test_slow[3]"
    test = {"test": name, "outcome": "passed", "seconds": 40.0, "kernels": ["k2"], "pid": 1}
    report.write_text("".join(json.dumps(one) + "\n" for one in [*lines, kernel, test]))
    met = []

    def judge(tree, by, file, choice, folder, limits, uneven=False):
        met.append(choice.tests)
        noticed = finds and name in choice.tests
        return {"outcome": "noticed" if noticed else "same code", "tests": 1, "seconds": 2.0}

    monkeypatch.setattr(kernels, "judge", judge)
    monkeypatch.setattr(kernels, "same_everywhere", lambda *_: (False, "k2"))
    one = mutants.Mutant("llm/x.cu", KERNEL.index("+ b"), "+", "-", "constant", 1)
    monkeypatch.setattr(kernels.cuda_mutants, "drawn", lambda *_: iter([one]))
    rule = kernels.Rule("equivalent", "it is", "constant", ".*", ".*")
    for finds, rules, outcome, rounds in (  # noqa: B007, what `judge` reads
        (True, [], "noticed", 2), (False, [], "survived", 2), (True, [rule], "survived", 1),
    ):  # fmt: skip
        monkeypatch.setattr(kernels, "rules", lambda path=None, rules=rules: rules)
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        met.clear()
        results = kernels.judge_all(asked(tmp_path, count=1, controls=0, more=25.0), book)
        assert results.outcome(one.name) == outcome and len(met) == rounds
        assert name not in met[0] and (rounds == 1 or met[1] == [name])
        assert results.by_name[one.name]["seconds"] == 2.0 * rounds


# --- code --------------------------------------------------------------------------------------------

PLAIN = """__global__ void twice(const float *x, float *out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = BY * x[i];
}"""


def test_code_is_compared_without_a_gpu(tmp_path):
    import machine_code

    from cudatut.errors import ToolMissing
    from cudatut.gpu.nvcc import find_nvcc

    try:
        find_nvcc()
    except ToolMissing as error:
        pytest.skip(str(error))

    def key(text, by=2):
        return json.dumps([text, "twice", {"BY": by}, [], None])

    codes = {key(PLAIN): machine_code.digest(key(PLAIN), "sm_80")}
    assert machine_code.first_other(codes, "sm_80") is None
    same, other = PLAIN.replace("BY * x[i]", "x[i] * BY"), key(PLAIN, 3)
    code = codes[key(PLAIN)]
    assert machine_code.first_other({key(same): code}, "sm_80") is None
    assert machine_code.first_other({**codes, other: code}, "sm_80") == other
    with pytest.raises(machine_code.NotCompiled, match="twice"):
        machine_code.digest(key(PLAIN.replace("if", "fi")), "sm_80")


def test_what_was_undecided_is_settled_by_code(book, tmp_path, monkeypatch):
    results = kernels.Results(tmp_path / "kernels-1.jsonl")
    one, two, three = mutants.possible("llm/x.cu", KERNEL)[:3]
    for some, met in ((one, 0), (two, 3), (three, 0)):
        results.add(
            some.name, {"outcome": "undecided", "kernels": met, "seconds": 1.0, **some.facts()}
        )
    given = asked(tmp_path, out=tmp_path, jobs=1)

    def same(tree, found, file, limit):
        assert (tree.place / "examples" / file).read_text() != KERNEL, "the fault is planted"
        return next(said)

    monkeypatch.setattr(kernels, "same_everywhere", same)
    said = iter([(True, "same"), (None, "no time")])
    kernels.settle_all(given, book)
    outcomes = [kernels.Results(results.path).outcome(some.name) for some in (one, two, three)]
    assert outcomes == ["equivalent", "undecided", "undecided"]
    said = iter([(False, "k")])
    kernels.settle_all(given, book)
    assert kernels.Results(results.path).outcome(three.name) == "survived"


# --- what is known of faults -------------------------------------------------------------------------


def test_a_rule_covers_what_it_says_and_no_other(tmp_path):
    (tmp_path / "examples/llm").mkdir(parents=True)
    (tmp_path / "examples/llm/x.cu").write_text("first\n  if (C > 1)\n    meet();\nlast\n")
    (tmp_path / "rules.yml").write_text(
        "- {outcome: equivalent, why: it is one, family: guard, old: 'C > 1', new: 'true', files: [llm/*],"
        " line: 'if .C > 1. meet'}\n"
    )
    known = kernels.Known(tmp_path, tmp_path / "rules.yml")
    row = {
        "outcome": "survived",
        "family": "guard",
        "file": "llm/x.cu",
        "old": "C  > 1",
        "new": "true",
        "line": 2,
        "at": 12,
    }
    assert known.outcome(row) == "equivalent" == known.outcome(row | {"outcome": "undecided"})
    assert known.outcome(row | {"outcome": "noticed"}) == "noticed"
    for other in ({"family": "phase"}, {"old": "C > 11"}, {"new": "false"}, {"line": 1}):
        assert known.outcome(row | other) == "survived", other
    rule = (
        "- {outcome: equivalent, why: it is one, family: guard, old: .*, new: .*, before: 'if .'}\n"
    )
    (tmp_path / "rules.yml").write_text(rule)
    known = kernels.Known(tmp_path, tmp_path / "rules.yml")
    assert known.outcome(row) == "equivalent" and known.outcome(row | {"at": 16}) == "survived"
    (tmp_path / "rules.yml").write_text(
        "- {outcome: equivalent, why: none, family: guard, odl: x}\n"
    )
    with pytest.raises(TypeError, match="odl"):
        kernels.rules(tmp_path / "rules.yml")


def test_each_rule_covers_a_fault_that_could_be_drawn():
    """A rule for a text that is gone would lie in wait for another."""
    known, covered = kernels.Known(ROOT), set()
    for file, text in mutants.kernel_files(ROOT / "examples").items():
        for one in mutants.possible(file, text):
            covered.add(known.of({"outcome": "survived", **one.facts()}))
    assert covered - {None} == set(known.rules)
    for rule in known.rules:
        assert rule.outcome in ("equivalent", "not to be shown") and len(rule.why) > 30


def test_the_report_tells_of_rules(tmp_path, capsys):
    texts = mutants.kernel_files(ROOT / "examples")
    one = next(
        m
        for m in mutants.possible(
            "llm/kernels/attention/merge.cu", texts["llm/kernels/attention/merge.cu"]
        )
        if m.new == "true" and m.old.startswith("i %")
    )
    results = kernels.Results(tmp_path / "kernels-1.jsonl")
    results.add(one.name, {"outcome": "survived", "seconds": 1.0, **one.facts()})
    assert not kernels.report(asked(tmp_path, out=tmp_path, count=1))
    said = capsys.readouterr().out
    assert "0 of 0 noticed" in said and "1 equivalent" in said and "All threads of a row" in said
    results.add(one.name, {"outcome": "noticed", "seconds": 1.0, **one.facts()})
    kernels.report(asked(tmp_path, out=tmp_path, count=1))
    said = capsys.readouterr().out
    assert "1 of 1 noticed" in said and "noticed, though settled.yml says 'equivalent'" in said


def test_a_process_with_uneven_warps_compiles_woven_texts(tmp_path, monkeypatch):
    import tempfile

    import uneven

    from cudatut.gpu import cubins
    from cudatut.paths import examples_dir

    met: dict[str, Any] = {}

    def compiled(source, nvcc, **how):
        met.update(how, source=source)
        return b""

    monkeypatch.setattr(cubins, "compiled", compiled)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    uneven.begin()
    folders = [str(examples_dir() / "tensor"), str(examples_dir()), "/elsewhere"]
    cubins.compiled(f"// headers 1\n{KERNEL}", Path("nvcc"), include_dirs=folders, arch="sm_90a")
    woven = next(tmp_path.iterdir())
    assert met["include_dirs"] == [str(woven / "tensor"), str(woven), "/elsewhere"]
    assert met["source"].startswith(uneven.SLEEP) and met["arch"] == "sm_90a"
    assert "{ uneven(); __syncthreads(); uneven(); }" in met["source"]
