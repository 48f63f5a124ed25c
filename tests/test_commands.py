"""Every command that the book prints works: README, CONTRIBUTING, the chapters, and what the package's messages advise.

They are collected here, and each must be known to a rule, which says how it is run:

- `Here`: as printed, in an empty folder with only the installed package, or in the checkout;
- `Gpu`: needs a GPU: by the named test of tests/gpu; and here, where there is none, it must say so in one line;
- `Elsewhere`: by another test without a GPU, which is named;
- NOT_RUN: no further than that it is listed, with the reason. At most five.

The repository's address is replaced by this checkout, or by a wheel made of it. A new command without a rule is an error.
"""

import ast
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from cudatut import catalog, doctor, paths, words
from cudatut.site import publishing

ROOT = Path(__file__).resolve().parent.parent
DOCS = [ROOT / name for name in ("README.md", "README.zh.md", "CONTRIBUTING.md")]
NO_GPU = doctor.why_no_gpu() is not None

# What a line or a word in backticks begins with when it is a command.
PROGRAMS = (
    "python", "python3", "pip", "make", "git", "nvcc", "ncu", "nsys", "compute-sanitizer", "nvidia-smi", "apt-get", "sudo",
    "cuobjdump", "nvdisasm", "export", "playwright", "wsl", "mkdocs", "echo", "jupyter", "cudatut", "npm", "conda", "uv",
    "gh",
)  # fmt: skip
_FENCE = re.compile(r"^\s*(`{3,}|~{3,})\s*(\S*)")
_ASSIGNMENTS = re.compile(r"^(?:[A-Z_]+=\S* )+")
# How a command in backticks begins, in a module's text, also where the string ends behind the backtick and goes on in another;
# a module without one has none, and need not be parsed.
_BEGUN = re.compile(rf"""`(?:["']\s*\w*["'])?(?:[A-Z_]+=\S* )*(?:{"|".join(PROGRAMS)})\b""")


# --- what is printed ---------------------------------------------------------------------------------------------------


def is_command(text: str) -> bool:
    words = _ASSIGNMENTS.sub("", text).split()
    # A program's bare name is no command, and `python exec="on"` is a directive.
    return len(words) > 1 and words[0] in PROGRAMS and not words[1].startswith('exec="')


def plain(text: str) -> str:
    """Without prompt and comment."""
    return re.sub(r"\s+#\s.*$", "", text.strip().removeprefix("$ ")).strip()


def in_markdown(text: str, in_repository: bool) -> list[str]:
    """Commands in fences and in backticks; of a file of the repository also in indented blocks."""
    found, fence, mark = [], None, ""
    lines = iter(re.sub(r"\\\n\s*", "", text).splitlines())  # a line that goes on in the next
    for line in lines:
        begin = _FENCE.match(line)
        if begin and fence is None:
            fence, mark = begin[2], begin[1]
        elif begin and begin[1].startswith(mark) and not begin[2]:
            fence = None
        elif fence in ("bash", "sh", "console", "shell"):
            typed = line.strip()
            if fence != "console" or typed.startswith("$ "):
                found += [plain(typed)] if plain(typed) and not typed.startswith("#") else []
        elif fence is not None:
            comment = re.match(r"^\s*(?:#|//)\s+(.*)$", line)
            if comment and is_command(plain(comment[1])) and " -m " in comment[1]:
                found.append(plain(comment[1]))
        else:
            if in_repository and line.startswith("    ") and is_command(plain(line)):
                found.append(plain(line))
            found += [code for code in re.findall(r"`([^`]+)`", line) if is_command(code)]
    return found


def in_python(text: str) -> list[str]:
    """Commands in backticks in the messages of a module; docstrings speak to who reads the source."""
    if not _BEGUN.search(text):
        return []
    tree = ast.parse(text)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    inside = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in node.values
    }
    found = []
    for node in ast.walk(tree):
        text = ""
        if isinstance(node, ast.JoinedStr):  # what a value makes of it is not known here
            text = "".join(p.value if isinstance(p, ast.Constant) else "{}" for p in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = "" if id(node) in docstrings | inside else node.value
        found += [command for command in re.findall(r"`([^`\n]+)`", text) if is_command(command)]
    return found


def help_texts() -> str:
    from cudatut import cli

    parser = cli._parser()
    texts = [parser.format_help()]
    for action in parser._actions:
        texts += [
            sub.format_help()
            for sub in getattr(action, "choices", None) or []
            if not isinstance(sub, str)
        ]
        if isinstance(getattr(action, "choices", None), dict):
            texts += [sub.format_help() for sub in action.choices.values()]
    return "\n".join(texts)


def commands() -> dict[str, list[str]]:
    """Each command once, with the files that print it."""
    found: dict[str, list[str]] = {}

    def add(where: str, texts: list[str]) -> None:
        for text in texts:
            found.setdefault(text, []).append(where)

    drafts = catalog.draft_patterns()
    for path in [*DOCS, *sorted((ROOT / "docs").rglob("*.md"))]:
        name = path.relative_to(ROOT).as_posix()
        # A chapter in progress is not on the site, and what it replays may not be recorded.
        if catalog.matches("/".join(path.with_suffix(".py").parts[-2:]), drafts):
            continue
        add(name, in_markdown(path.read_text(encoding="utf-8"), "docs/" not in name))
    for path in sorted((ROOT / "cudatut").rglob("*.py")):
        add(path.relative_to(ROOT).as_posix(), in_python(path.read_text(encoding="utf-8")))
    for texts in (text for section in words.table().values() for text in section.values()):
        said = "\n".join(re.sub(r"\{[^}]*\}", "{}", text) for text in texts)
        add("cudatut/words.yml", [c for c in re.findall(r"`([^`\n]+)`", said) if is_command(c)])
    add("--help", [c for c in re.findall(r"`([^`\n]+)`", help_texts()) if is_command(c)])
    add("Makefile", re.findall(r"^#   (make \w[\w-]*)", (ROOT / "Makefile").read_text(), re.M))
    return found


# --- how each is run ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """Where a command is typed: an empty folder, and the Python of an environment with the installed package alone."""

    folder: Path
    installed: Path

    def run(
        self, command: str, folder: Path | None = None, **env: str
    ) -> subprocess.CompletedProcess:
        """Run it in a shell in which `python` is the environment's."""
        hidden = (
            "PYTHONPATH",
            "VIRTUAL_ENV",
            "CUDATUT_EXAMPLES",
            "CUDATUT_RECORDINGS",
            "CUDATUT_TOOL",
            "MAKEFLAGS",
            "MAKELEVEL",
        )
        kept = {key: value for key, value in os.environ.items() if key not in hidden}
        data = {
            "PATH": f"{self.installed.parent}{os.pathsep}{os.environ['PATH']}",
            "CUDATUT_PROGRESS": str(self.folder / "progress"),
        }
        return subprocess.run(
            ["bash", "-c", command], cwd=folder or self.folder, env=kept | data | env, capture_output=True,
            text=True, timeout=300,
        )  # fmt: skip

    def in_checkout(self, command: str, **env: str) -> subprocess.CompletedProcess:
        """The same with the checkout's own environment; `make` uses it as it is."""
        command = re.sub(r"^make\b(?! VENV=)", f"make VENV= PYTHON={sys.executable}", command)
        command = command.replace("PYTHON=python3", f"PYTHON={sys.executable}")
        here = str(Path(sys.executable).parent)
        path = f"{here}{os.pathsep}{os.environ['PATH']}"
        return self.run(command, ROOT, **{"PATH": path, "PYTHONPATH": str(ROOT)} | env)


def succeeds(done: subprocess.CompletedProcess, *statuses: int) -> str:
    assert done.returncode in (statuses or (0,)), (
        f"{done.args[-1]}\n{done.stdout[-2000:]}{done.stderr[-3000:]}"
    )
    assert "Traceback" not in done.stderr + done.stdout, done.stderr[-3000:]
    return done.stdout + done.stderr


Run = Callable[[str, Place], object]


@dataclass(frozen=True)
class Here:
    """run(command, place) types it, and raises AssertionError where it does not do what it says."""

    run: Run


@dataclass(frozen=True)
class Gpu:
    """test: "file::function" below tests/gpu. Here `run` types it where it is refused for want of a GPU, if it is."""

    test: str
    run: Run | None = None


@dataclass(frozen=True)
class Elsewhere:
    test: str


def typed(command: str, place: Place) -> str:
    return succeeds(place.run(command))


def says_something(command: str, place: Place) -> str:
    said = typed(command, place)
    assert said.strip(), f"{command} printed nothing"
    return said


def in_the_checkout(command: str, place: Place) -> str:
    said = succeeds(place.in_checkout(command))
    assert said.strip(), f"{command} printed nothing"
    return said


def may_find_faults(command: str, place: Place) -> str:
    """Status 1 says that something is not well, as `doctor` does without a GPU."""
    return succeeds(place.run(command), 0, 1)


def refused(command: str, place: Place) -> None:
    """Without a GPU: one line that says so, and status 2."""
    if "try " in command:
        (place.folder / command.split()[-1]).write_text("// @rung kernel=k block=256\n")
    if "trace" in command:
        (place.folder / command.split()[-1]).write_text("print(1)\n")
    done = place.run(command)
    if "--stale" in command and done.returncode == 0:  # a fresh checkout has nothing to do
        assert done.stdout.startswith("nothing to record")
        return
    assert done.returncode == 2, done.stdout + done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("cudatut: "), done.stderr
    # Recording looks for Jupyter first, which the environment lacks, and says what brings it.
    lacks_a_gpu = "GPU" in lines[0] or "no NVIDIA driver" in lines[0]
    assert lacks_a_gpu or ("record" in command and "cudatut[record]" in lines[0])


def make_refused(command: str, place: Place) -> None:
    """`make` notices a missing GPU before it sets up anything."""
    done = place.in_checkout(command)
    assert done.returncode != 0 and "needs an NVIDIA GPU" in done.stderr
    assert "installing" not in done.stderr and "Traceback" not in done.stderr


def recipe(expected: str) -> Run:
    def run(command: str, place: Place) -> None:
        assert expected in succeeds(place.in_checkout(command.replace("make", "make -n", 1)))

    return run


def from_a_wheel(command: str, place: Place) -> None:
    """pip takes the extras from the project's own metadata, and installs the wheel in the place of the repository."""
    wanted = re.search(r"'cudatut(?:\[(.*?)\])? @ git\+(.*?)'", command)
    assert wanted and wanted[2] == paths.repository(), command
    (wheel,) = place.installed.parent.parent.glob("wheel/*.whl")
    pip = command.replace("pip", f"{sys.executable} -m pip --disable-pip-version-check", 1)
    pip = pip.replace(f"git+{wanted[2]}", wheel.as_uri())
    target = shlex.quote(str(place.folder / "target"))
    said = succeeds(place.run(f"{pip} --quiet --no-deps --no-index --target {target}"))
    for name in ("examples/start", "recordings"):
        assert (place.folder / "target" / "cudatut" / name).is_dir(), said
    (metadata,) = (place.folder / "target").glob("cudatut-*.dist-info/METADATA")
    extras = re.findall(r"^Provides-Extra: (\S+)", metadata.read_text(encoding="utf-8"), re.M)
    assert set(filter(None, (wanted[1] or "").split(","))) <= set(extras)


def needs_git() -> None:
    if not shutil.which("git"):
        pytest.skip("git is not installed")


def clone(command: str, place: Place) -> None:
    needs_git()
    if subprocess.run(["git", "-C", ROOT, "rev-parse"], capture_output=True).returncode:
        pytest.skip("not a git checkout")
    address = paths.repository()
    assert address in command
    here = f"{ROOT.as_uri()} {address.rpartition('/')[2]}"
    local = command.replace(address, here).replace("clone", "clone --quiet --depth 1")
    succeeds(place.run(f"{local} && test -f Makefile && make -n VENV= site"))


def gets_the_history(command: str, place: Place) -> None:
    """In a shallow clone of a repository of two commits."""
    needs_git()
    author = "-c user.name=a -c user.email=a@b"
    commit = f"git {author} commit -q --allow-empty -m x"
    succeeds(place.run(f"git init -q origin && cd origin && {commit} && {commit}"))
    origin = shlex.quote((place.folder / "origin").as_uri())
    asked = "git rev-parse --is-shallow-repository"
    said = succeeds(
        place.run(
            f"git clone -q --depth 1 {origin} here && cd here && {asked} && {command} -q && {asked}"
        )
    )
    assert said.split() == ["true", "false"]


def needs_history() -> None:
    needs_git()
    git = ["git", "-C", str(ROOT)]
    if subprocess.run([*git, "rev-parse"], capture_output=True).returncode:
        pytest.skip("not a git checkout")
    shallow = [*git, "rev-parse", "--is-shallow-repository"]
    if subprocess.run(shallow, capture_output=True, text=True).stdout.strip() != "false":
        pytest.skip("a shallow clone has no history to compare with")


def says_what_moved(command: str, place: Place) -> None:
    needs_history()
    assert succeeds(place.in_checkout(command)).startswith("# What moved\n\nRecordings: ")


def restamps(command: str, place: Place) -> None:
    """In a clone where a comment of an example has changed: its recording shows the new text, and nothing needs a GPU."""
    needs_history()
    clone = place.folder / "cudatut"
    subprocess.run(["git", "clone", "--quiet", "--shared", str(ROOT), str(clone)], check=True)
    example = clone / "examples" / "basics" / "coalescing" / "chapter.py"
    example.write_text(example.read_text(encoding="utf-8") + "# a comment\n", encoding="utf-8")
    author = "-c user.name=a -c user.email=a@b"
    succeeds(place.run(f"git {author} commit --quiet --all --message x", clone))
    here = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    command = f"{command} basics/coalescing" if command.endswith("restamp") else command
    said = succeeds(place.run(command, clone, PYTHONPATH=str(clone), **here))
    assert "basics/coalescing: meaning" in said and "0 need a GPU" in said, said
    (recorded,) = clone.glob("recordings/*/basics/coalescing.ipynb")
    assert "# a comment" in recorded.read_text(encoding="utf-8")


def verifies(command: str, place: Place) -> None:
    """Nothing is attested yet, and `gh` asks GitHub: what the command names is there, and the program knows its flags."""
    words = shlex.split(command)
    assert words[:3] == ["gh", "attestation", "verify"]
    flags = dict(zip(words[4::2], words[5::2], strict=True))
    repository = paths.repository().removeprefix("https://github.com/")
    assert flags["--repo"] == repository
    workflow = ROOT / flags["--signer-workflow"].removeprefix(f"{repository}/")
    assert "actions/attest@" in workflow.read_text(encoding="utf-8")
    # A recording as it lies there, or what the command beside this one writes.
    file = words[3]
    assert (ROOT / file).is_file() or any(f"--measured {file}" in other for other in PRINTED)
    if shutil.which("gh"):
        known = succeeds(place.run("gh attestation verify --help"))
        assert all(flag in known for flag in flags)


def writes_what_was_measured(command: str, place: Place) -> None:
    import hashlib

    digest, name = typed(command, place).splitlines()[0].split("  ")
    words = shlex.split(command)
    if "--measured" not in words:
        return
    assert name == words[4]
    raw = (place.folder / words[-1]).read_bytes()
    assert hashlib.sha256(raw).hexdigest() == digest


def removes_a_file(command: str, place: Place) -> None:
    """In a repository of its own that holds the file."""
    needs_git()
    file = place.folder / command.split()[-1]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()
    author = "-c user.name=a -c user.email=a@b"
    succeeds(place.run(f"git init -q && git add . && git {author} commit -q -m x && {command}"))
    assert not file.exists()


def copies(command: str, place: Place) -> None:
    """A file of the reader's into a folder of the book, here another one."""
    source, target = (place.folder / word for word in command.split()[1:])
    assert (ROOT / command.split()[2]).parent.is_dir()
    target.parent.mkdir(parents=True)
    source.write_text("mine")
    succeeds(place.run(command))
    assert target.read_text() == "mine"


def shows_help(command: str, place: Place) -> None:
    assert "usage: python -m cudatut" in succeeds(place.run(f"{command} --help"))


def configuration(command: str, place: Place) -> None:
    """`mkdocs serve` builds all pages first, as the tests of the site do; here the file that it reads is read."""
    words = command.split()
    file = words[words.index("-f") + 1] if "-f" in words else "mkdocs.yml"
    code = f"from mkdocs.config import load_config; print(load_config({file!r}).site_name)"
    assert succeeds(place.in_checkout(f"python -c {shlex.quote(code)}")).strip()


def tells_a_version(command: str, place: Place) -> None:
    assert re.fullmatch(r"Python 3\.\d+\.\S+", succeeds(place.run(command)).strip())


def an_environment(command: str, place: Place) -> None:
    """The two lines that make an environment and enter it, one after the other; without pip, which takes a while."""
    lines = ["python3 -m venv cuda-env", ". cuda-env/bin/activate"]
    assert command in lines
    inside = "python -c 'import sys; assert sys.prefix != sys.base_prefix'"
    succeeds(place.run(" && ".join([f"{lines[0]} --without-pip", lines[1], inside])))


def a_flag_of_nvcc(command: str, place: Place) -> None:
    if shutil.which("nvcc") is None:
        pytest.skip("no nvcc on PATH")
    name, flag, *_ = command.split()
    text = succeeds(place.run(f"{name} --help" if flag != "--version" else command))
    assert flag.lstrip("-") in text or flag == "--version"


def links_for_the_gpu(command: str, place: Place) -> None:
    """Beside the files that the page offers."""
    if shutil.which("nvcc") is None:
        pytest.skip("no nvcc on PATH")
    (file,) = re.findall(r"\w+\.cu\b(?!bin)", command)
    folder = ROOT / "examples" / "memory" / file.removesuffix(".cu")
    for one in (folder / file, *folder.glob("*.cuh")):
        shutil.copy(one, place.folder)
    succeeds(place.run(command))
    assert (place.folder / command.split()[-1]).stat().st_size


def compiles_a_kernel(command: str, place: Place) -> None:
    """`ring.cu` is what the page says: the text between the triple quotes of its program. `mine.cu` is any kernel."""
    if shutil.which("nvcc") is None:
        pytest.skip("no nvcc on PATH")
    (file,) = re.findall(r"\w+\.cu\b(?!bin)", command)
    text = "__global__ void mine(int* x) { *x = 1; }"
    if file == "ring.cu":
        chapter = ROOT / "examples" / "basics" / "registers" / "chapter.py"
        _, text, *_ = chapter.read_text(encoding="utf-8").split('"""')
    (place.folder / file).write_text(text, encoding="utf-8")
    said = succeeds(place.run(command))
    assert "-v" not in command.split() or "bytes spill stores" in said
    assert (place.folder / file).with_suffix(".cubin").stat().st_size


def collected(command: str, place: Place) -> None:
    """`make test` runs this very file: the tests of another one are listed instead."""
    arguments = re.search(r'ARGS="(.*)"', command)
    more = f"{arguments[1]} " if arguments else ""
    word = re.search(r"-k (?:test_)?(\w+)", more)
    files = sorted((ROOT / "tests").rglob(f"test_*{word[1] if word else 'compiled_once'}*.py"))
    assert files, f"no file of tests is called what {command} asks for"
    file = files[-1].relative_to(ROOT)
    bare = re.sub(r' ARGS=".*"', "", command)
    said = succeeds(
        place.in_checkout(f'{bare} ARGS="{more}--collect-only -q -n 0 --dist no {file.as_posix()}"')
    )
    assert file.name in said


def a_program_of_a_page(command: str, place: Place) -> None:
    """`python x.py` stands beside a program of that name, which tests/gpu pastes and runs."""
    name = command.split()[-1]
    pages = [p.read_text(encoding="utf-8") for p in (ROOT / "docs").rglob("*.md")]
    assert any(f'program="{name}"' in page for page in pages), f"no page shows a program {name}"


def waits_for_an_exercise(command: str, place: Place) -> None:
    succeeds(place.run(command))
    if re.search(r" \d+$", command):
        (file,) = place.folder.glob("*.py")
        assert "check" in file.read_text(encoding="utf-8")


def notebooks_of_exercises(command: str, place: Place) -> None:
    examples = place.folder / "examples"
    shutil.copytree(ROOT / "examples", examples)
    succeeds(place.in_checkout(command, CUDATUT_EXAMPLES=str(examples)))


def serves_the_downloaded_site(command: str, place: Place) -> None:
    """The site's own archive, unpacked; at a port that is free."""
    site = place.folder / "site"
    for page in ("index.html", "zh/index.html"):
        (site / page).parent.mkdir(parents=True, exist_ok=True)
        (site / page).write_text(page)
    publishing.whole_site(site)
    with zipfile.ZipFile(site / publishing.SITE) as whole:
        whole.extractall(place.folder)
    (unpacked,) = (one for one in place.folder.iterdir() if one.is_dir() and one != site)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    line = [sys.executable, *shlex.split(command)[1:], str(port), "--bind", "127.0.0.1"]
    with subprocess.Popen(
        line, cwd=unpacked, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        try:
            assert fetched(f"http://127.0.0.1:{port}/zh/") == b"zh/index.html"
        finally:
            server.terminate()


def fetched(address: str) -> bytes:
    """What a server that is just starting answers."""
    for _ in range(100):
        try:
            with urllib.request.urlopen(address, timeout=10) as answer:
                return answer.read()
        except urllib.error.URLError:
            time.sleep(0.1)
    raise AssertionError(f"nothing answers at {address}")


def may_find_faults_in_checkout(command: str, place: Place) -> str:
    return succeeds(place.in_checkout(command), 0, 1)


COMMANDS = "tests/gpu/test_commands.py"
PROGRAM = Gpu(
    "tests/gpu/test_programs.py::test_a_program_prints_what_its_page_shows", a_program_of_a_page
)
TRY = Gpu(f"{COMMANDS}::test_try_ranks_a_right_kernel", refused)
MAKE = Gpu(f"{COMMANDS}::test_make", make_refused)

# The first pattern that matches the whole command decides.
RULES: list[tuple[str, Here | Gpu | Elsewhere]] = [
    # the package
    (r"python -m cudatut( (try|tune|trace|record|exercise|run))?", Here(shows_help)),
    (r"python -m cudatut doctor", Here(may_find_faults)),
    (r"python -m cudatut list( --json)?", Here(says_something)),
    (r"python -m cudatut status", Here(may_find_faults)),
    (
        r"python -m cudatut status --compile",
        Elsewhere("tests/examples/test_restamps.py::test_by_machine_code"),
    ),
    (r"python -m cudatut run [\w/]+", Here(says_something)),
    (r"python -m cudatut trace \S+\.py", Gpu("tests/gpu/test_tracing.py::test_the_command", refused)),
    (
        r"python -m cudatut trace --perfetto \S+\.json \S+\.py",
        Gpu("tests/gpu/test_tracing.py::test_a_timeline_of_two_streams_and_an_event", refused),
    ),
    (r"python -m cudatut record .*", Gpu(f"{COMMANDS}::test_record", refused)),
    (r"python -m cudatut restamp", Here(restamps)),
    (r"python -m cudatut digests( [\w/]+ --measured \w+\.json)?", Here(writes_what_was_measured)),
    (r"gh attestation verify .*", Here(verifies)),
    (r"python -m cudatut moved", Here(says_what_moved)),
    (r"python -m cudatut try \w+ \w+\.cu", TRY),
    (r"python -m cudatut (run gemm/tuner\.py|tune \w+).*", Gpu(f"{COMMANDS}::test_tune", refused)),
    (
        r"python -m cudatut new [\w/]+( --en \S+ --zh \S+)?",
        Elsewhere("tests/authoring/test_new.py::test_only_what_the_author_has_to_say_is_left"),
    ),
    (
        r"python -m cudatut check [\w/]+",
        Elsewhere("tests/authoring/test_check.py::test_a_newcomers_chapter_from_new_to_nothing_to_mend"),
    ),
    (r"python -m cudatut exercise --write-notebooks", Here(notebooks_of_exercises)),
    (r"python -m cudatut exercise .*", Here(waits_for_an_exercise)),
    (r"python examples/start/first_kernel/chapter\.py", Gpu(f"{COMMANDS}::test_an_example_is_a_script")),
    # getting it
    (r"git clone \S+ && cd cudatut", Here(clone)),
    (r"git fetch --unshallow", Here(gets_the_history)),
    (r"git rm \S+", Here(removes_a_file)),
    (r"cp \w+\.cu examples/\S+", Here(copies)),
    (r"python3 --version", Here(tells_a_version)),
    (r"python3 -m venv cuda-env", Here(an_environment)),
    (r"\. cuda-env/bin/activate", Here(an_environment)),
    (r"pip install 'cudatut[\[ ].*", Here(from_a_wheel)),
    (
        r"pip install cupy-cuda12x",
        Elsewhere("tests/test_notebooks.py::test_the_first_cell_installs_cudatut_and_the_cupy"),
    ),
    (r"pip install -i \S+ \./cudatut\.zip", Elsewhere("tests/conftest.py::installed")),
    (r"python -m http\.server", Here(serves_the_downloaded_site)),
    # the site
    (r"make (build|site)", Here(recipe("-m cudatut.site build"))),
    (r"python -m cudatut\.site build( --serve| --live)?", Elsewhere("tests/conftest.py::built_site")),
    (r"python -m cudatut\.site lint", Here(may_find_faults_in_checkout)),
    (
        r"python -m cudatut\.site preview \S+",
        Elsewhere("tests/site/test_live.py::test_a_preview_shows_what_is_not_recorded"),
    ),
    (
        r"python -m cudatut\.site preview \S+ --serve",
        Elsewhere("tests/site/test_server.py::test_a_preview_is_built_again_when_a_file_changes"),
    ),
    (r"python -m cudatut\.site\.overlaid [\w/]+", Here(may_find_faults_in_checkout)),
    (r"python -m cudatut\.site\.labels.*", Here(may_find_faults_in_checkout)),
    (r"mkdocs serve.*", Here(configuration)),
    # make
    (r"make( VENV= PYTHON=python3)? (live|record|sanitize)( NAME=start/hello)?", MAKE),
    (r"make test-gpu(-shards)?( ARGS=\".*\")?", Gpu("tests/gpu/conftest.py::pytest_collection_modifyitems", make_refused)),
    (r"make (pdf|epub)( PART=start)?", Here(recipe("tools/print_part.py"))),
    (r"make doctor", Here(lambda command, place: succeeds(place.in_checkout(command), 0, 2))),
    (r"make lint", Elsewhere("tests/examples/test_sources.py::ruff")),
    (r"make format", Here(recipe("ruff format"))),
    (r"make moved", Here(recipe("-m cudatut moved"))),
    (r"make links", Elsewhere("tests/test_project.py::test_links_of_the_site")),
    (r"make test( ARGS=\".*\")?", Here(collected)),
    (r"make test-full", Here(recipe("--full"))),
    # what the tests notice
    (r"python tests/gpu/shards\.py --list", Here(in_the_checkout)),
    (
        r"python tests/gpu/shards\.py [\w -]+",
        Elsewhere("tests/examples/test_gpu_shards.py::test_what_passed_is_not_run_again"),
    ),
    (r"PYTHONPATH=\S+ python tests/planted/kernels\.py draw --seed \d+", Here(in_the_checkout)),
    (
        r"PYTHONPATH=\S+ python tests/planted/package\.py (survey|judge) .*",
        Elsewhere("tests/planted/test_package.py::test_what_tests_call_and_what_they_notice"),
    ),
    # the toolkit
    (r"nvcc -arch=native hello\.cu -o hello && \./hello", Gpu(f"{COMMANDS}::test_nvcc_makes_a_program_of_its_own")),
    (r"nvcc -\S+( per-thread)?", Here(a_flag_of_nvcc)),
    (r"nvcc .* -dlink .*", Here(links_for_the_gpu)),
    (r"nvcc -arch=sm_90 .*-cubin \w+\.cu", Here(compiles_a_kernel)),
    (r"compute-sanitizer .*", Gpu(f"{COMMANDS}::test_compute_sanitizer")),
    (r"ncu .*", Gpu(f"{COMMANDS}::test_ncu")),
    (r"cuobjdump -sass( \w+\.cubin)?", Gpu(f"{COMMANDS}::test_cuobjdump")),
    (r"CUDA_LAUNCH_BLOCKING=1 python \w+\.py", Gpu(f"{COMMANDS}::test_blocking_launches")),
    (r"export PATH=\S+", Here(typed)),
    (r"echo '.*' >> ~/\.aksetup-defaults\.py", Elsewhere("tests/cudatut/test_doctor.py::test_a_build_without_curand_needs_none")),
    (r"python my_program\.py", Gpu(f"{COMMANDS}::test_blocking_launches")),
    # several processes on one GPU
    (
        r"export CUDA_MPS_\w+=.*|nvidia-cuda-mps-control -d|python one\.py & .*|echo quit \| nvidia-cuda-mps-control",
        Gpu("tests/gpu/test_sharing.py::test_no_daemon_is_left_after_a_failure"),
    ),
    # what `memory/bindings` builds
    (r"make lib", Elsewhere("tests/examples/test_memory_bindings.py::test_the_library_takes_what_is_declared")),
    (r"make module", Elsewhere("tests/examples/test_memory_bindings.py::test_the_module_refuses_what_is_not_on_the_gpu")),
    # programs of the pages
    (r"python \w+\.py", PROGRAM),
]  # fmt: skip

# Run no further, and why. At most five.
NOT_RUN = {
    r"make (measure|clean)": "builds the site at three sizes, five times each, for minutes; or deletes what others use",
    r"make lock": "asks a package index for every dependency",
    r"(sudo|apt-get|wsl) .*": "changes the operating system",
    r"nsys .*": "neither this machine nor the GPU machine has Nsight Systems",
    r"pip install (-i \S+ )?(pycuda|pycuda numpy|platformdirs|pillow|--no-deps nvidia-cutlass==\S+|nvidia-cutlass-dsl==\S+|'cuda-cccl\[cu13\]'|nanobind 'cuda-core\[cu13\]'|'cuda-bindings==13\.\*')": "compiles PyCUDA, or asks a package index",
}

# What stands for something: what it is here.
PLACEHOLDERS = {
    "python {}": "python my_program.py",
    "LADDER {}": "matmul my_matmul.cu",
    "pip install {}": "pip install cupy-cuda12x",
    "{}": "start/hello",
    "<part>/<name>": "start/hello",
    "basics/warps": "start/hello",
    "NAME": "start/hello",
    "示例名": "start/hello",
    "SCRIPT": "my_program.py",
    "my_program.py": "my_program.py",
}


def instance(command: str) -> str:
    for placeholder, value in PLACEHOLDERS.items():
        command = re.sub(rf"(?<![\w=<]){re.escape(placeholder)}(?![\w=])", value, command)
    return command


def rule_of(command: str) -> Here | Gpu | Elsewhere | str | None:
    command = instance(command)
    for pattern, reason in NOT_RUN.items():
        if re.fullmatch(pattern, command):
            return reason
    return next((rule for pattern, rule in RULES if re.fullmatch(pattern, command)), None)


def pattern_of(command: str) -> str:
    """That of its rule: several may be run in the same way."""
    return next(pattern for pattern, _ in RULES if re.fullmatch(pattern, instance(command)))


PRINTED = commands()


def test_every_command_is_known_to_a_rule():
    unknown = {command: where for command, where in PRINTED.items() if rule_of(command) is None}
    lines = [f"`{command}` ({', '.join(sorted(set(where)))})" for command, where in unknown.items()]
    assert not unknown, "no rule of tests/test_commands.py runs:\n" + "\n".join(lines)


def test_no_rule_and_no_exception_is_left_over():
    """A pattern that nothing matches any more is a command that the book no longer prints."""
    assert len(NOT_RUN) <= 5
    printed = [instance(command) for command in PRINTED]
    spare = [
        pattern
        for pattern in [*(pattern for pattern, _ in RULES), *NOT_RUN]
        if not any(re.fullmatch(pattern, command) for command in printed)
    ]
    assert not spare, f"nothing that the book prints matches {spare}"


def test_the_tests_that_rules_name_are_there():
    for rule in [rule for _, rule in RULES]:
        if isinstance(rule, Here):
            continue
        file, _, name = rule.test.partition("::")
        assert name in (ROOT / file).read_text(encoding="utf-8"), rule.test


def run_once_each() -> list:
    """Each command as it is typed here, in the shortest of its spellings: of each rule one, with --full all."""
    found, patterns = {}, set()
    for command in sorted(PRINTED):
        rule = rule_of(command)
        if (
            isinstance(rule, (Here, Gpu))
            and rule.run
            and not (isinstance(rule, Gpu) and not NO_GPU)
        ):
            if instance(command) in found:
                continue
            marks = [pytest.mark.full] if pattern_of(command) in patterns else []
            patterns.add(pattern_of(command))
            found[instance(command)] = pytest.param(instance(command), rule.run, marks=marks)  # fmt: skip
    return list(found.values())


def test_make_test_types_a_command_of_each_rule():
    typed = [one.values[0] for one in run_once_each() if not one.marks]
    patterns = [pattern_of(command) for command in typed]
    everywhere = {pattern_of(one.values[0]) for one in run_once_each()}
    assert set(patterns) == everywhere and len(set(patterns)) == len(patterns)
    print(f"{len(typed)} of {len(run_once_each())} commands are typed")


@pytest.mark.parametrize(
    ("command", "run"), run_once_each(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_command_does_what_it_says(command, run, installed, tmp_path):
    folder = tmp_path / "empty"
    folder.mkdir()
    run(command, Place(folder, installed))


# --- the collection itself ---------------------------------------------------------------------------------------------

PAGE = """
Type `python -m cudatut list` or `make`, or `nvcc`.

```console
$ python -m cudatut frobnicate  # new
an answer
```

```bash
ncu --metrics a \\
    python x.py
```

```python
#   python -m cudatut try reduction mine.cu
x = 1  # python is a language
```

    make live
"""


def test_commands_are_found():
    assert in_markdown(PAGE, in_repository=True) == [
        "python -m cudatut list", "python -m cudatut frobnicate", "ncu --metrics a python x.py",
        "python -m cudatut try reduction mine.cu", "make live",
    ]  # fmt: skip
    assert in_markdown(PAGE, in_repository=False)[-1] != "make live"
    code = 'def f():\n    """`python -m cudatut doc`"""\n    raise E(f"{x}: `python -m cudatut said {x}`")\n'
    assert in_python(code) == ["python -m cudatut said {}"]
    code = 'raise E("do `"\n        f"make {x}` again")\n'  # in two strings that Python joins
    assert in_python(code) == ["make {}"]
    assert "python -m cudatut" in help_texts() and len(PRINTED) > 60


def test_a_new_command_is_noticed():
    assert rule_of("python -m cudatut frobnicate") is None
    assert rule_of("make frobnicate") is None
    assert rule_of("python -m cudatut record <part>/<name>") is not None
    assert isinstance(rule_of("make lock"), str)


# --- what is not printed, but typed ------------------------------------------------------------------------------------


def test_version(installed, tmp_path):
    from cudatut import __version__

    said = succeeds(Place(tmp_path, installed).run("python -m cudatut --version"))
    assert said == f"cudatut {__version__}\n"


def test_a_console_that_knows_no_chinese(installed, tmp_path):
    place = Place(tmp_path, installed)
    for command in ("list", "list --json", "exercise"):
        done = place.run(f"python -m cudatut {command}", PYTHONIOENCODING="cp1252", PYTHONUTF8="0")
        succeeds(done)
    import json

    done = place.run("python -m cudatut list --json", PYTHONIOENCODING="cp1252")
    assert all(entry["title"]["zh"] for entry in json.loads(done.stdout))


@pytest.mark.skipif(not NO_GPU, reason="it would run")
@pytest.mark.parametrize(
    "typed",
    [
        *("start/hello", "examples/start/hello/chapter.py", "start/hello/hello.cu"),
        # As it lay before, and as older pages and links have it.
        *("start/hello.py", "examples/start/hello.py", "start/hello.ipynb"),
    ],
)
def test_an_example_is_found_by_its_name_and_by_each_place_that_it_has_had(
    typed, installed, tmp_path
):
    said = succeeds(Place(tmp_path, installed).run(f"python -m cudatut run {typed}"))
    assert "this replays the recording" in said and "Hello from the GPU" in said, said


def test_the_examples_are_a_package_where_it_is_installed(installed, tmp_path):
    """Without PyCUDA and NumPy's arrays on a GPU: a module of the book is imported by its place."""
    code = "from cudatut.book.reduction.ladder import ladder; print(ladder.__file__, ladder.LADDER.names[0])"
    said = succeeds(Place(tmp_path, installed).run(f'python -c "{code}"'))
    packages = installed.parent.parent / "lib"
    file, first = said.split()
    assert Path(file).is_relative_to(packages) and first == "naive"


def test_a_readers_file_is_refused_with_advice(installed, tmp_path):
    (tmp_path / "my.py").write_text("print(1)")
    (tmp_path / "my.cu").write_text("")
    place = Place(tmp_path, installed)
    for file, advice in (("my.py", "`python my.py`"), ("my.cu", "try LADDER my.cu")):
        done = place.run(f"python -m cudatut run {file}")
        assert done.returncode == 2 and advice in done.stderr and done.stderr.count("\n") == 1


def test_try_says_which_ladders_there_are(installed, tmp_path):
    (tmp_path / "my.cu").write_text("")
    place = Place(tmp_path, installed)
    done = place.run("python -m cudatut try frobnicate my.cu")
    assert (
        done.returncode == 2
        and "there are: gemm, matmul, reduction, scan, sort, tensor, transpose" in done.stderr
    )
    done = place.run("python -m cudatut try matmul my.cu")
    assert done.returncode == 2 and "no line `// @rung" in done.stderr
    done = place.run("python -m cudatut try matmul nothing.cu")
    assert done.returncode == 2 and "not found" in done.stderr
