"""tools/environment.py and uv.lock: what `make` installs, and what it refuses."""

import ast
import hashlib
import http.server
import io
import os
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import threading
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "tools" / "environment.py"
TOML = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCK = (ROOT / "uv.lock").read_text(encoding="utf-8")
PACKAGES = {package["name"]: package for package in tomllib.loads(LOCK)["package"]}


# --- the lock ----------------------------------------------------------------------------------------------------------


def faults(lock: str) -> list[str]:
    """What in a lock does not come from PyPI, or has no hash."""
    found = []
    for package in tomllib.loads(lock)["package"]:
        files = [*package.get("wheels", ()), *filter(None, [package.get("sdist")])]
        if package["source"] == {"editable": "."} and not files:
            continue
        if package["source"] != {"registry": "https://pypi.org/simple"} or not files:
            found.append(f"{package['name']}: {package['source']}, {len(files)} files")
        for file in files:
            whole = re.fullmatch(r"sha256:[0-9a-f]{64}", file.get("hash", ""))
            if not whole or not file["url"].startswith("https://files.pythonhosted.org/packages/"):
                found.append(f"{package['name']}: {file}")
    return found


def test_the_lock_names_pypi_alone_and_has_a_hash_for_every_file() -> None:
    assert not faults(LOCK), "make lock"


@pytest.mark.parametrize(
    ("there", "planted"),
    [
        ('registry = "https://pypi.org/simple"', 'registry = "https://mirror.example/simple"'),
        ("https://files.pythonhosted.org/packages/", "https://mirror.example/packages/"),
        ('hash = "sha256:', 'hash = "md5:'),
        ('source = { editable = "." }', 'source = { editable = "../other" }'),
    ],
)
def test_a_lock_from_elsewhere_is_noticed(there: str, planted: str) -> None:
    assert there in LOCK
    assert len(faults(LOCK.replace(there, planted, 1))) == 1


def test_the_lock_belongs_to_pyproject(uv: Path, tmp_path: Path) -> None:
    """As `make` asks, without a network: a dependency that was added and not locked is refused."""
    for name in ("pyproject.toml", "uv.lock"):
        shutil.copy(ROOT / name, tmp_path)
    check = [uv, "lock", "--check", "--offline", "--default-index", "https://pypi.org/simple"]
    env = {**os.environ, "UV_CACHE_DIR": str(tmp_path / "cache")}
    options = {"cwd": tmp_path, "env": env, "capture_output": True, "text": True, "timeout": 60}
    done = subprocess.run(check, **options)
    assert done.returncode == 0, f"make lock: {done.stderr}"
    other = (tmp_path / "pyproject.toml").read_text().replace('"ruff>=0.9"', '"ruff>=0.9,<99"')
    (tmp_path / "pyproject.toml").write_text(other)
    assert subprocess.run(check, **options).returncode != 0


def closure(group: str) -> set[str]:
    """The names of all packages that a group brings, on any platform."""

    def of_group(name: str) -> Iterator[str]:
        for entry in TOML["dependency-groups"][name]:
            yield from of_group(entry["include-group"]) if isinstance(entry, dict) else [entry]

    found, todo = set(), [re.match(r"[\w.-]+", entry)[0] for entry in of_group(group)]
    while todo:
        if (name := todo.pop().lower().replace("_", "-")) not in found:
            found.add(name)
            todo += [needed["name"] for needed in PACKAGES[name].get("dependencies", ())]
    return found


def test_to_lint_takes_little() -> None:
    """`make lint` of a clean clone downloads two formatters and uv: neither the project nor a compiler."""
    wheels = [PACKAGES[name]["wheels"] for name in {"uv", *closure("lint")}]
    assert sum(max(wheel["size"] for wheel in some) for some in wheels) < 80e6
    assert "cudatut" not in closure("lint") and "cudatut" in closure("site")
    for target in ("lint", "format"):
        recipe = re.search(rf"^{target}:\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.M)
        assert "$(call with,lint)" in recipe[1]


def test_what_has_no_wheel_can_be_locked_without_building_it() -> None:
    bare = {name for name, p in PACKAGES.items() if not p.get("wheels") and "sdist" in p}
    assert bare == {"jieba", "pycuda"}
    known = {entry["name"] for entry in TOML["tool"]["uv"]["dependency-metadata"]}
    assert "jieba" in known  # pycuda's source says it itself


# --- the environment ---------------------------------------------------------------------------------------------------

# Builds every package of the book below, in place too; as hatchling and setuptools do.
BUILDER = """
import pathlib, tomllib, zipfile

def build_wheel(folder, *_):
    project = tomllib.loads(pathlib.Path("pyproject.toml").read_text())["project"]
    name = f"{project['name']}-{project['version']}"
    with zipfile.ZipFile(f"{folder}/{name}-py3-none-any.whl", "w") as wheel:
        info = f"{name}.dist-info"
        wheel.writestr(f"{project['name']}.py", "")
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\\nName: {project['name']}\\nVersion: {project['version']}\\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{info}/RECORD", "")
    return f"{name}-py3-none-any.whl"

build_editable = build_wheel
"""
BUILT = '[build-system]\nrequires = ["builder"]\nbuild-backend = "builder"\n'
PYPROJECT = f"""{BUILT}
[project]
name = "book"
version = "1"
requires-python = ">=3.11"

[dependency-groups]
uv = ["uv"]
lint = ["tool"]
build = ["builder"]
site = ["book", "bare"]

[tool.uv]
no-build-isolation = {str(TOML["tool"]["uv"]["no-build-isolation"]).lower()}
"""


@pytest.fixture(scope="module")
def uv(missing) -> Path:
    path = shutil.which("uv", path=sysconfig.get_path("scripts"))
    if path is None:
        missing("no uv in this environment; make test brings the one of uv.lock")
    return Path(path)


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


class Book:
    """A small project with this script, an environment with uv, and a package index of its own."""

    def __init__(self, folder: Path, uv: Path) -> None:
        self.root, self.files, self.uv = folder / "book", folder / "index", uv
        self.asked: list[str] = []
        (self.root / "tools").mkdir(parents=True)
        shutil.copy(SCRIPT, self.root / "tools")
        (self.root / "pyproject.toml").write_text(PYPROJECT)
        subprocess.run(
            [sys.executable, "-m", "venv", "--without-pip", self.root / "env"], check=True
        )
        (self.root / "env" / "bin" / "uv").symlink_to(uv)
        version = subprocess.check_output([uv, "--version"], text=True).split()[1]
        self.wheel("uv", version)
        self.wheel("tool", "1")
        self.wheel("builder", "1", BUILDER)
        self.source("bare", "1")

        book = self

        class Handler(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *arguments) -> None:
                super().__init__(*arguments, directory=str(book.files))

            def do_GET(self) -> None:
                book.asked.append(self.path)
                if not self.path.endswith("/"):
                    return super().do_GET()
                files = sorted((book.files / self.path.strip("/")).glob("*"))
                links = [f'<a href="{f.name}#sha256={digest(f)}">{f.name}</a>' for f in files]
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write("<br>".join(links).encode())

            def log_message(self, *_) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.index = f"http://127.0.0.1:{self.server.server_address[1]}/"
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("UV_")}
        self.env |= {"UV_CACHE_DIR": str(folder / "cache"), "PIP_INDEX_URL": self.index}
        self.env["NO_PROXY"] = "127.0.0.1"

    def wheel(self, name: str, version: str, code: str = "") -> Path:
        (self.files / name).mkdir(parents=True, exist_ok=True)
        path = self.files / name / f"{name}-{version}-py3-none-any.whl"
        info = f"{name}-{version}.dist-info"
        with zipfile.ZipFile(path, "w") as file:
            file.writestr(f"{name}.py", code)
            file.writestr(
                f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
            )
            file.writestr(
                f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            )
            file.writestr(f"{info}/RECORD", "")
        return path

    def source(self, name: str, version: str, code: str = "") -> Path:
        (self.files / name).mkdir(parents=True, exist_ok=True)
        path = self.files / name / f"{name}-{version}.tar.gz"
        own = f'{BUILT}[project]\nname = "{name}"\nversion = "{version}"\n'
        texts = {f"{name}.py": code, "pyproject.toml": own, "PKG-INFO": f"Metadata-Version: 2.2\nName: {name}\nVersion: {version}\n"}  # fmt: skip
        with tarfile.open(path, "w:gz") as file:
            for inside, text in texts.items():
                entry = tarfile.TarInfo(f"{name}-{version}/{inside}")
                entry.size = len(text)
                file.addfile(entry, io.BytesIO(text.encode()))
        return path

    def lock(self) -> None:
        """As `make lock` does with PyPI, of which the index is a mirror."""
        command = [self.uv, "lock", "-q", "--default-index", self.index, "--python", sys.executable]
        subprocess.run(command, cwd=self.root, env=self.env, check=True)
        lock = self.root / "uv.lock"
        text = lock.read_text().replace(f'registry = "{self.index}"', 'registry = "https://pypi.org/simple"')  # fmt: skip
        lock.write_text(text.replace(self.index, "https://files.pythonhosted.org/packages/"))
        shutil.rmtree(self.env["UV_CACHE_DIR"])
        self.asked.clear()

    def edit(self, there: str, other: str) -> None:
        file = self.root / "pyproject.toml"
        assert there in file.read_text()
        file.write_text(file.read_text().replace(there, other))

    def provide(self, group: str) -> subprocess.CompletedProcess:
        command = [sys.executable, self.root / "tools" / "environment.py", "env", group]
        return subprocess.run(command, capture_output=True, text=True, env=self.env, timeout=60)

    def installed(self) -> set[str]:
        (packages,) = self.root.glob("env/lib/python3*/site-packages")
        return {path.name.split("-")[0] for path in packages.glob("*.dist-info")}


@pytest.fixture
def book(tmp_path: Path, uv: Path) -> Iterator[Book]:
    book = Book(tmp_path, uv)
    book.lock()
    yield book
    book.server.shutdown()


def test_a_group_comes_from_the_lock_by_way_of_pips_mirror(book: Book) -> None:
    done = book.provide("lint")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(book.root / "env" / "bin" / "python")
    assert book.installed() == {"tool"}

    assert book.provide("site").returncode == 0
    assert book.installed() == {"tool", "builder", "bare", "book"}
    assert "/builder/" in book.asked  # once, to be installed; nothing comes from anywhere else

    book.server.shutdown()  # what is there is not asked for again
    done = book.provide("site")
    assert done.returncode == 0 and done.stderr == ""


def test_what_is_installed_is_compiled_where_python_writes_no_bytecode(book: Book) -> None:
    book.env["PYTHONDONTWRITEBYTECODE"] = "1"
    assert book.provide("lint").returncode == 0
    assert list(book.root.glob("env/lib/python3*/site-packages/__pycache__/tool.*.pyc"))


@pytest.mark.parametrize("name", ["tool", "builder", "bare"])
def test_what_has_changed_since_it_was_locked_is_refused(book: Book, name: str) -> None:
    """A package, what builds others, and the source of one without a wheel."""
    if name == "bare":
        book.source(name, "1", "something else")
    else:
        book.wheel(name, "1", "something else")
    done = book.provide("lint" if name == "tool" else "site")
    assert done.returncode == 1 and "Hash mismatch" in done.stderr
    assert "of uv.lock failed (above)" in done.stderr and name not in book.installed()


@pytest.mark.parametrize("isolated", [False, True])
def test_what_builds_and_is_not_locked_is_not_fetched(book: Book, isolated: bool) -> None:
    """With isolation, which pyproject.toml turns off, it would be."""
    book.edit('site = ["book", "bare"]', 'site = ["bare"]')
    if isolated:
        book.edit("no-build-isolation = true", "no-build-isolation = false")
    book.lock()
    done = book.provide("site")
    assert ("/builder/" in book.asked) is isolated
    assert (done.returncode == 0) is isolated
    if not isolated:
        assert "No module named 'builder'" in done.stderr
        assert "make: installing the group site of uv.lock failed (above)." in done.stderr


def test_a_lock_that_is_behind_is_refused_with_advice(book: Book) -> None:
    book.edit('lint = ["tool"]', 'lint = ["tool", "builder"]')
    done = book.provide("lint")
    assert done.returncode == 1 and "make lock renews" in done.stderr
    assert book.installed() == set()
    book.lock()
    assert book.provide("lint").returncode == 0 and book.installed() == {"tool", "builder"}


def test_an_index_that_is_set_for_uv_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = runpy.run_path(str(SCRIPT))["Environment"]("none")
    for name in ("UV_INDEX_URL", "UV_DEFAULT_INDEX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_INDEX_URL", "https://mirror.example/simple")
    assert environment.index() == {"UV_DEFAULT_INDEX": "https://mirror.example/simple"}
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://other.example/simple")
    assert environment.index() == {}


def set_up(*arguments: str, before: str = "") -> subprocess.CompletedProcess:
    """Run the script in a process of its own, after some code that makes this machine another one."""
    code = (
        f"import importlib.util, runpy, sys\n{before}\nsys.argv = ['environment.py', *{arguments!r}]\n"
        f"runpy.run_path({str(SCRIPT)!r}, run_name='__main__')"
    )
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_environment_as_it_is() -> None:
    """`make VENV=` uses the interpreter it is given."""
    done = set_up("", "site")
    assert done.returncode == 0 and done.stdout.strip() == sys.executable


def test_doctor_installs_nothing(tmp_path: Path) -> None:
    done = set_up(str(tmp_path / "x"), "doctor")
    assert done.returncode == 0 and done.stdout.strip() == sys.executable
    assert not (tmp_path / "x").exists()


def test_environment_without_venv_module(tmp_path: Path) -> None:
    """Debian's python3 without python3-venv: the message says what to install."""
    before = (
        "real = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *a: None if name == 'ensurepip' else real(name, *a)"
    )
    done = set_up(str(tmp_path / "x"), "site", before=before)
    assert done.returncode == 1
    assert "apt-get install python3-venv" in done.stderr and "VENV=" in done.stderr
    assert not (tmp_path / "x").exists()


def test_environment_of_an_old_python(tmp_path: Path) -> None:
    done = set_up(str(tmp_path / "x"), "site", before="sys.version_info = (3, 9, 2)")
    assert done.returncode == 1 and "Python 3.11 or newer" in done.stderr
    ast.parse(SCRIPT.read_text(encoding="utf-8"), feature_version=(3, 6))  # so that it can say so


@pytest.mark.parametrize("lacking", ["", "mkdocs"])
def test_an_interpreter_that_has_everything_is_used_as_it_is(tmp_path: Path, lacking: str) -> None:
    """For `make live`; where one package is missing, it is not."""
    before = (
        "from importlib import metadata\n"
        "def distribution(name):\n"
        f"    if name == {lacking!r}: raise metadata.PackageNotFoundError(name)\n"
        "    return object()\n"
        "metadata.distribution = distribution"
    )
    done = set_up(str(tmp_path / "x"), "doctor", before=before)
    assert done.returncode == 0 and ("has everything" in done.stderr) is (not lacking)
