"""Every launcher under the sanitizers: what a guard lets through by one element, memcheck sees, and what a barrier does not
order, racecheck.

One process for the launchers of a module, or a rung, and a tool, since to open the GPU under a tool takes longer than most launches.
"""

from collections import defaultdict
from pathlib import Path

import launcher_tables
import pytest
from launcher_contents import ROWS

import cudatut as ct
from cudatut.gpu import ladder, sanitizer
from cudatut.gpu.device import supports

SCRIPT = Path(__file__).parent / "launchers_watched.py"
LADDER = ladder.load_ladder("tensor")
CASES: dict[str, list[str]] = defaultdict(list)
for _name, _case in launcher_tables.cases(ROWS).items():
    CASES[_case.launcher.partition(".")[0]].append(_name)


for _name in LADDER.names:
    CASES[f"rung {_name}"].append(f"rung {_name}")


def runs_here(name: str) -> bool:
    if name.startswith("rung "):
        requires = LADDER[name.removeprefix("rung ")].options.get("requires", "sm_80")
        return supports(ct.device().compute_capability, requires)
    return ct.device().compute_capability[0] == 9 or not name.startswith(
        launcher_tables.NEEDS_HOPPER
    )


def watch(tmp_path: Path, tool: str, names: list[str]):
    script = tmp_path / "launch.py"
    script.write_text(
        f"import runpy, sys\nsys.argv = [{str(SCRIPT)!r}, *{names!r}]\n"
        f"runpy.run_path({str(SCRIPT)!r}, run_name='__main__')\n"
    )
    return sanitizer.run(script, tool, timeout_s=300, workers=2)


def assert_clean(tmp_path: Path, tool: str, module: str) -> None:
    names = [name for name in CASES[module] if runs_here(name)]
    if not names:
        pytest.skip("its kernels are those of another GPU")
    found = watch(tmp_path, tool, names)
    assert found.errors == 0, found.log[:3000]


@pytest.mark.parametrize("module", list(CASES))
def test_nothing_beside_the_arrays_is_touched(module, tmp_path):
    assert_clean(tmp_path, "memcheck", module)


@pytest.mark.parametrize("module", list(CASES))
def test_shared_memory_is_in_order(module, tmp_path):
    assert_clean(tmp_path, "racecheck", module)
