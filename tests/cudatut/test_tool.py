"""`ct.size`: full size for readers, small under a tool, and what counters need under a profiler."""

import os
from pathlib import Path

import pytest

from cudatut import tool


@pytest.mark.parametrize(
    ("running", "small_only", "with_profiled"),
    [("", 1000, 1000), ("memcheck", 10, 10), ("racecheck", 10, 10), ("ncu", 10, 500)],
)
def test_size_follows_the_tool(monkeypatch, running, small_only, with_profiled):
    monkeypatch.setenv("CUDATUT_TOOL", running)
    assert tool.size(1000, 10) == small_only
    assert tool.size(1000, 10, profiled=500) == with_profiled


def test_a_child_finds_this_very_package_first(monkeypatch):
    here = str(Path(tool.__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["/other", here, "", "/more"]))
    wanted = os.pathsep.join([here, "/other", "/more"])
    assert tool.environment()["PYTHONPATH"] == wanted
    monkeypatch.delenv("PYTHONPATH")
    assert tool.environment()["PYTHONPATH"] == here


def test_what_a_tool_put_into_the_environment_is_taken_out_again(monkeypatch):
    monkeypatch.setenv("MINE", "1")
    for name in ("CUDATUT_TOOL", "CUDATUT_BEFORE"):
        monkeypatch.delenv(name, raising=False)
    assert tool.environment_before()["MINE"] == "1"
    under = tool.environment_for("ncu")
    assert under["CUDATUT_TOOL"] == "ncu" and under["MINE"] == "1"
    monkeypatch.setattr(os, "environ", under | {"INJECTED": "x"})
    before = tool.environment_before()
    assert before["MINE"] == "1" and not {"INJECTED", "CUDATUT_TOOL"} & set(before)
    # What the tool's process started in its turn, without the tool, has an environment of its own.
    monkeypatch.setattr(os, "environ", {"CUDATUT_BEFORE": '{"OLD": "1"}', "NEW": "2"})
    assert tool.environment_before() == {"CUDATUT_BEFORE": '{"OLD": "1"}', "NEW": "2"}
    monkeypatch.setattr(os, "environ", {"CUDATUT_TOOL": "ncu", "NEW": "2"})
    assert tool.environment_before() == {"CUDATUT_TOOL": "ncu", "NEW": "2"}


@pytest.mark.parametrize(("value", "says"), [("1", True), ("0", False), ("", False), (None, False)])
def test_whether_it_is_being_recorded(monkeypatch, value, says):
    monkeypatch.delenv("CUDATUT_RECORDING", raising=False)
    if value is not None:
        monkeypatch.setenv("CUDATUT_RECORDING", value)
    assert tool.recording() is says
