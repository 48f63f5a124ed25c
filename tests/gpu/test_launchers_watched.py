"""Every launcher under the sanitizers: what a guard lets through by one element, memcheck sees, and what a barrier does not
order, racecheck.

One process for the launchers of a module, or a rung, and a tool, since to open the GPU under a tool takes longer than most launches.
"""

from collections import defaultdict

import launcher_tables
import pytest
from launcher_contents import ROWS
from launchers_watched import RUNG

import cudatut as ct
from cudatut.gpu import ladder, sanitizer
from cudatut.gpu.device import supports

LADDER = ladder.load_ladder("tensor")
CASES: dict[str, list[str]] = defaultdict(list)
for _name, _case in launcher_tables.cases(ROWS).items():
    CASES[_case.module].append(_name)
for _name in LADDER.names:
    CASES[RUNG + _name].append(RUNG + _name)


def runs_here(name: str) -> bool:
    if name.startswith(RUNG):
        requires = LADDER[name.removeprefix(RUNG)].options.get("requires", "sm_80")
        return supports(ct.device().compute_capability, requires)
    return ct.device().compute_capability[0] == 9 or not name.startswith(
        launcher_tables.NEEDS_HOPPER
    )


@pytest.fixture
def assert_clean(tmp_path, path_of_tests):
    def run(tool: str, module: str) -> None:
        names = [name for name in CASES[module] if runs_here(name)]
        if not names:
            pytest.skip("its kernels are those of another GPU")
        script = tmp_path / "launch.py"
        script.write_text(f"import launchers_watched\nlaunchers_watched.launch({names!r})\n")
        found = sanitizer.run(script, tool, timeout_s=300, workers=2)
        assert found.errors == 0, found.log[:3000]

    return run


@pytest.mark.parametrize("module", list(CASES))
def test_nothing_beside_the_arrays_is_touched(module, assert_clean):
    assert_clean("memcheck", module)


@pytest.mark.parametrize("module", list(CASES))
def test_shared_memory_is_in_order(module, assert_clean):
    assert_clean("racecheck", module)
