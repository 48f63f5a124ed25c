"""Counters: a program of its name stands for Nsight Compute; the example that it runs is real."""

import itertools
import json
import os
import sys

import pytest

import cudatut as ct
from cudatut.gpu import profile
from cudatut.gpu.profile import parse
from cudatut.results import Metric, Profile

# Keeps its arguments, runs the example, and reports one launch of each kernel that the example names.
FAKE = f"""#!{sys.executable}
import json, os, pathlib, subprocess, sys
beside, arguments = pathlib.Path(__file__).parent, sys.argv[1:]
at = arguments.index("--log-file")
with open(beside / "asked", "a") as file:
    print(json.dumps(arguments), file=file)
done = subprocess.run(arguments[at + 2 :], capture_output=True, text=True)
rows = [line.split() for line in done.stdout.splitlines() if line.startswith("launch ")]
table = ['"ID","Kernel Name","n"', '"","","byte"']
table += [f'"{{i}}","{{name}}","{{value}}"' for i, (_, name, value) in enumerate(rows)]
pathlib.Path(arguments[at + 1]).write_text("\\n".join(["==PROF== Connected", *table]))
print(done.stdout, done.stderr)
"""
EXAMPLE = """
import os
from cudatut import tool
print("launch add 1,234")
print("launch add 2")
print("launch gemm", len(tool.running() or ""))
"""


@pytest.fixture
def example(tmp_path, monkeypatch):
    """An example whose three launches a fake ncu reports."""
    fake = tmp_path / "ncu"
    fake.write_text(FAKE)
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.delenv("CUDATUT_TOOL", raising=False)
    monkeypatch.delenv("CUDATUT_RECORDING", raising=False)
    target = tmp_path / "add.py"
    target.write_text(EXAMPLE)
    return target


def asked(example):
    """Arguments of each call of ncu, as a dict of options."""
    lines = (example.parent / "asked").read_text().splitlines()
    calls = [json.loads(line) for line in lines]
    return [dict(itertools.pairwise(call)) for call in calls]


def test_counters_of_one_launch(example, capsys):
    found = ct.profile(str(example), "gemm<8>", ["n"], skip=3)
    assert found["n"] == 1234 and found.metrics["n"].unit == "byte"
    assert found.json()["metrics"] == {"n": {"value": 1234.0, "unit": "byte"}}
    assert "ncu: gemm<8>" in capsys.readouterr().out
    (options,) = asked(example)
    wanted = {"--kernel-name": "gemm", "--launch-skip": "3", "--launch-count": "1"}
    wanted |= {"--metrics": "n", "--clock-control": "none", "--kill": "yes"}
    assert {name: options[name] for name in wanted} == wanted


def test_each_profile_is_a_run_of_its_own(example):
    """Nothing was started before it was asked for, and nothing is left afterwards."""
    for _ in range(2):
        ct.profile(str(example), "add", ["n"])
    assert len(asked(example)) == 2


def test_the_example_knows_that_a_profiler_runs_it(example):
    (*_, last) = profile.profile_launches(str(example), "regex:.*", ["n"], launches=3)
    assert last == {"n": len("ncu")}


def test_counters_of_several_launches(example, capsys):
    found = profile.profile_launches(str(example), "add", ["n"], launches=2)
    assert found == [{"n": 1234.0}, {"n": 2.0}] and capsys.readouterr().out == ""
    assert profile.profile_launches(str(example), "add", ["n"], launches=4) == []
    assert "fewer than 4 launches of 'add'" in capsys.readouterr().out


def test_without_ncu_a_note_and_while_recording_an_error(example, monkeypatch, capsys):
    monkeypatch.setenv("PATH", "/nowhere")

    def calls():
        yield lambda: ct.profile(str(example), "add", ["n"]), None
        yield lambda: profile.profile_launches(str(example), "add", ["n"], launches=1), []
        yield lambda: profile.profile_kernels(str(example), ["add"], ["n"]), {}

    for call, nothing in calls():
        assert call() == nothing
        assert "no counters: ncu (Nsight Compute) is not on PATH" in capsys.readouterr().out
    monkeypatch.setenv("CUDATUT_RECORDING", "1")
    for call, _ in calls():
        with pytest.raises(ct.ToolMissing, match="not on PATH"):
            call()


def test_counters_that_one_may_not_read(example, capsys):
    fake = example.parent / "ncu"
    fake.write_text(f"#!{sys.executable}\nprint('==ERROR== ERR_NVGPUCTRPERM - no permission')\n")
    assert ct.profile(str(example), "add", ["n"]) is None
    assert "this user may not read GPU counters" in capsys.readouterr().out


def test_under_a_tool_there_are_no_counters(example, monkeypatch, capsys):
    monkeypatch.setenv("CUDATUT_TOOL", "memcheck")
    assert ct.profile(str(example), "add", ["n"])["n"] != 0  # NaN
    assert list(profile.profile_kernels(str(example), ["add", "gemm"], ["n"])) == ["add", "gemm"]
    assert profile.profile_launches(str(example), "add", ["n"], launches=1) == []
    assert not (example.parent / "asked").exists() and capsys.readouterr().out == ""


NCU = '==PROF== Connected to "python"\n"ID","Kernel Name","dram__bytes.sum"\n"","","byte"\n"0","k","1,234.5"\n'


def test_ncu_reports_are_read():
    found = parse(NCU, "", "k", ["dram__bytes.sum"], 1)
    assert found == [Profile("k", {"dram__bytes.sum": Metric(1234.5, "byte")})]
    with pytest.raises(ct.ToolMissing, match="no launch of 'k'"):
        parse("==WARNING== No kernels were profiled.", "", "k", ["dram__bytes.sum"], 1)
    with pytest.raises(ct.ToolMissing, match="no other__metric"):
        parse(NCU, "", "k", ["other__metric"], 1)


def test_without_a_launch_the_end_of_what_ncu_and_the_example_said_is_shown():
    report, output = ([f"{who} {n}" for n in range(20)] for who in ("ncu", "example"))
    with pytest.raises(ct.ToolMissing) as raised:
        parse("\n".join(report), "\n".join(output), "k", ["n"], 1)
    assert str(raised.value).splitlines()[1:] == report[-5:] + output[-10:]


def test_several_kernels_are_profiled_in_one_run(monkeypatch, tmp_path, capsys):
    """ncu reports launches as they come; each goes to its own kernel."""
    fake = tmp_path / "ncu"
    fake.write_text(
        f"#!{sys.executable}\n"
        "import pathlib, sys\n"
        "arguments = sys.argv\n"
        "assert arguments[arguments.index('--kernel-id') + 1] == '::regex:^(add|gemm)$:1'\n"
        "assert arguments[arguments.index('--launch-count') + 1] == '2'\n"
        "log = pathlib.Path(arguments[arguments.index('--log-file') + 1])\n"
        'log.write_text(\'"ID","Kernel Name","n"\\n"","","byte"\\n"0","void t::gemm<8>(int)","1"\\n"1","add","2"\\n\')\n'
    )
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    found = profile.profile_kernels("x.py", ["add", "gemm<8>"], ["n"])
    assert [(k, p["n"]) for k, p in found.items()] == [("add", 2), ("gemm<8>", 1)]
    fake.write_text(fake.read_text().replace('"add","2"', '"gemm","2"'))
    assert profile.profile_kernels("x.py", ["add", "gemm"], ["n"]) == {}
    assert "no launch of add" in capsys.readouterr().out
    monkeypatch.setenv("CUDATUT_TOOL", "memcheck")
    assert list(profile.profile_kernels("x.py", ["add", "gemm"], ["n"])) == ["add", "gemm"]


def test_what_was_not_measured_is_no_number_and_has_no_unit():
    from cudatut.gpu import profile

    (one,) = profile._unmeasured("k", ["a.sum"]).metrics.values()
    assert one.value != one.value and one.unit == ""
