"""What annotations say is true: mypy finds nothing in what pyproject.toml lists, and each exception says why it is one."""

import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CONFIG = ROOT / "pyproject.toml"
SETTINGS = tomllib.loads(CONFIG.read_text(encoding="utf-8"))["tool"]["mypy"]
_IGNORED = re.compile(r"#\s*type:\s*ignore(?P<code>\[[\w, -]+\])?(?P<reason>.*)")

# Each line with a fault says what mypy has to call it; the others are well.
PLANTED = """
import os as _os
from typing import cast as _cast


def _none(text: str | None) -> str:
    return text.strip()  # expect: union-attr


def _implicit(text: str = None) -> None:  # expect: assignment
    _none(text)
    _none(3)  # expect: arg-type


def _untyped(text):  # expect: no-untyped-def
    _none(text)


def _sometimes(well: bool) -> int:
    if well:
        count = 1
    return count  # expect: possibly-undefined


def _said_before(text: str) -> str:
    _os.fspath(str(text == 3))  # expect: comparison-overlap
    return _cast(str, text)  # expect: redundant-cast


def _never(text: str) -> str:
    if isinstance(text, str):
        return text
    return ""  # expect: unreachable


_os.getcwd()  # type: ignore[attr-defined] # expect: unused-ignore
_os.nothing()  # type: ignore # expect: ignore-without-code
"""


@pytest.fixture(scope="module")
def mypy(missing):
    """Call it with arguments: exit status, and what mypy says. What it found of each file is kept between runs."""
    if importlib.util.find_spec("mypy") is None:
        missing("mypy is not installed (it is among the requirements of the tests)")
    kept = Path(os.environ.get("CUDATUT_TEST_CACHE") or ROOT / ".cache" / "tests")

    def run(cache: str, *arguments: object) -> tuple[int, str]:
        command = [sys.executable, "-m", "mypy", "--config-file", CONFIG]
        command += ["--cache-dir", kept / cache, "--no-error-summary", "--no-pretty", *arguments]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    return run


def test_annotations_are_true(mypy) -> None:
    status, said = mypy("mypy")
    assert status == 0, f"mypy objects:\n{said}"


def test_all_of_the_package_is_looked_at() -> None:
    assert {"cudatut", "docs/figures", "tests/planted", "tests/support"} <= set(SETTINGS["files"])
    assert "exclude" not in SETTINGS
    for part in SETTINGS["overrides"]:
        assert not {"ignore_errors", "follow_imports"} & set(part), part


def test_planted_faults_are_found(mypy, tmp_path) -> None:
    """In a module of the package, by the settings that hold there."""
    module = ROOT / "cudatut" / "errors.py"  # which imports nothing, so this is quick
    shadow = tmp_path / "errors.py"
    shadow.write_text(module.read_text(encoding="utf-8") + PLANTED, encoding="utf-8")
    wanted = {
        (number, found[1])
        for number, line in enumerate(shadow.read_text(encoding="utf-8").splitlines(), 1)
        if (found := re.search(r"# expect: (\S+)$", line))
    }
    status, said = mypy("mypy-planted", "--shadow-file", module, shadow, module)
    found = {
        (int(line), code)
        for line, code in re.findall(r"^[^:\n]+:(\d+): error: .*\[([\w-]+)\]$", said, re.M)
    }
    assert status == 1 and found == wanted, said


def unexplained(line: str) -> bool:
    """Whether a line silences mypy without saying of which error, or why."""
    found = _IGNORED.search(line)
    return bool(found) and not (found["code"] and len(found["reason"].split()) > 2)


def test_each_exception_says_why() -> None:
    for path in sorted(
        path for place in SETTINGS["files"] for path in (ROOT / place).rglob("*.py")
    ):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            assert not unexplained(line), (
                f"{path.relative_to(ROOT)}:{number}: write '# type: ignore[CODE] # REASON'"
            )


@pytest.mark.parametrize(
    "line",
    [
        "x = f()  # type: ignore",
        "x = f()  # type: ignore # since f returns no such thing",
        "x = f()  # type: ignore[misc]",
        "x = f()  # type: ignore[misc] # well",
    ],
)
def test_unexplained_exceptions_are_seen(line: str) -> None:
    assert unexplained(line)


def test_explained_ones_are_not() -> None:
    assert not unexplained("x = f()  # type: ignore[misc] # a decorator hides its type")
    assert not unexplained("x = f()  # whose type it ignores")
