"""Make or mend the virtual environment that `make` uses, and print the Python to run.

    python3 tools/environment.py FOLDER uv|lint|site|print|test|gpu|doctor

FOLDER gets an environment with uv in it, and then a group of pyproject.toml beside what is there. Versions
and hashes come from uv.lock: those of uv itself, of the group, and of what builds the packages that have no
wheels, since a build finds what the group `build` has brought and fetches nothing (`no-build-isolation`).
Nothing is done when uv.lock, pyproject.toml and the checkout's place are those of the last successful run.
Progress goes to stderr.

An empty FOLDER means: use this interpreter as it is and install nothing. For `gpu` the same holds when
this interpreter already has everything that recording and building need; and where there is no GPU it
says so at once, rather than after it has compiled PyCUDA. `doctor` installs nothing at all.

Only the standard library, and syntax that Python 3.6 can read: an old Python must get the message
below rather than a SyntaxError.
"""

import ctypes
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

MINIMUM = (3, 11)
ROOT = Path(__file__).resolve().parent.parent
KINDS = ("uv", "lint", "site", "print", "test", "gpu", "doctor")
# The lock names PyPI, whatever index this machine takes its packages from.
PYPI = "https://pypi.org/simple"
PIP = ("python", "-m", "pip", "--disable-pip-version-check")

PYCUDA_HINT = """
PyCUDA is compiled here, which needs the CUDA toolkit with nvcc, cuda.h and curand.h, and g++:
make doctor says which is missing. With an
interpreter that has PyCUDA already, make VENV= PYTHON=... installs nothing.
"""


def fail(message):
    sys.exit("\nmake: " + message + "\n")


def say(message):
    print("--- " + message, file=sys.stderr, flush=True)


def check_this_python(*modules):
    if sys.version_info < MINIMUM:
        fail(
            f"Python {MINIMUM[0]}.{MINIMUM[1]} or newer is needed, and {sys.executable} is {sys.version.split()[0]}.\n"
            "Install a newer one and name it:  make PYTHON=python3.12 ..."
        )
    for module in modules:
        if importlib.util.find_spec(module) is None:
            fail(
                f"{sys.executable} has no module '{module}', so it cannot make a virtual environment.\n"
                "Debian and Ubuntu:  apt-get install python3-venv\n"
                "Or use this Python as it is, with what is installed in it:  make VENV= ..."
            )


def require_gpu():
    """PyCUDA takes minutes to compile, and without a GPU there is no use for it."""
    try:
        driver = ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
    except OSError:
        fail("this needs an NVIDIA GPU, and there is no driver here. make doctor says more.")
    count = ctypes.c_int(0)
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)) or not count.value:
        fail("this needs an NVIDIA GPU, and the driver shows none. make doctor says more.")


def read_toml(name):
    import tomllib  # not in the Pythons that are too old

    return tomllib.loads((ROOT / name).read_text(encoding="utf-8"))


def has_all_for_gpu():
    """Whether this interpreter has what recording and building need, beside what these bring along."""
    from importlib import metadata

    file = read_toml("pyproject.toml")
    project, extras = file["project"], file["project"]["optional-dependencies"]
    site = [entry for entry in file["dependency-groups"]["site"] if isinstance(entry, str)]
    wanted = project["dependencies"] + extras["gpu"] + extras["record"] + site
    names = {re.match(r"[\w.-]+", entry).group() for entry in wanted} - {project["name"]}
    try:
        return all(metadata.distribution(name) for name in names)
    except metadata.PackageNotFoundError:
        return False


def describe_in_place():
    """Let an interpreter in which the project is not installed find MkDocs' plugin `cudatut`.

    MkDocs finds plugins by the metadata of installed projects. The metadata is written to a folder
    that the Makefile has on PYTHONPATH, so that nothing is installed.
    """
    from importlib import metadata

    shutil.rmtree(ROOT / ".cache/in-place", ignore_errors=True)
    try:
        metadata.distribution("cudatut")
    except metadata.PackageNotFoundError:
        project = read_toml("pyproject.toml")["project"]
        info = ROOT / f".cache/in-place/cudatut-{project['version']}.dist-info"
        info.mkdir(parents=True)
        head = f"Metadata-Version: 2.1\nName: cudatut\nVersion: {project['version']}\n"
        (info / "METADATA").write_text(head)
        lines = []
        for group, entries in project["entry-points"].items():
            lines += [f"[{group}]", *(f"{name} = {place}" for name, place in entries.items()), ""]
        (info / "entry_points.txt").write_text("\n".join(lines))


def build_env():
    """PyCUDA's build takes the toolkit's place from the first nvcc on PATH, which may be a wrapper."""
    on_path = shutil.which("nvcc")
    roots = [Path(on_path).parent.parent] if on_path else []
    roots += [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    for root in map(Path, [*roots, "/usr/local/cuda"]):
        if (root / "include" / "cuda.h").exists():
            path = f"{root / 'bin'}{os.pathsep}{os.environ['PATH']}"
            return {"PATH": path, "CUDA_ROOT": str(root)}
    return {}  # the build says what is missing, and `python -m cudatut doctor` how to get it


class Environment:
    """A virtual environment with pip and uv. pip brings uv, and serves whoever uses the environment."""

    def __init__(self, folder):
        self.folder = ROOT / folder
        self.bin = self.folder / ("Scripts" if os.name == "nt" else "bin")
        self.python = str(self.bin / "python")

    def answer(self, program, *arguments):
        """What a program of the environment prints; empty where it does not start or fails."""
        command = [str(self.bin / program), *arguments]
        try:
            return subprocess.check_output(command, stderr=subprocess.DEVNULL).decode().strip()
        except (OSError, subprocess.CalledProcessError):
            return ""

    def run(self, what, program, *arguments, env=(), hint="", **options):
        """What a program of the environment prints, run in the checkout. Where it fails, say what failed and end."""
        # uv trusts whom this machine trusts, as pip does: some networks have certificates of their own.
        env = dict({"UV_SYSTEM_CERTS": "1"}, **dict(os.environ, **dict(env)))
        env.update(UV_PROJECT_ENVIRONMENT=str(self.folder), UV_PYTHON_DOWNLOADS="never")
        env.pop("VIRTUAL_ENV", None)  # another one's
        command = [str(self.bin / program), *arguments]
        done = subprocess.run(command, cwd=str(ROOT), env=env, stdout=subprocess.PIPE, **options)
        if done.returncode != 0:
            fail(f"{what} failed (above).{hint} Mend the cause and run the same command again.")
        return done.stdout

    def bring_uv(self):
        """Make the environment itself, and bring the uv of uv.lock into it."""
        (uv,) = [package for package in read_toml("uv.lock")["package"] if package["name"] == "uv"]
        if self.answer("uv", "--version").split()[:2] == ["uv", uv["version"]]:
            return
        check_this_python("venv", "ensurepip")
        if not self.answer("python", "-m", "pip", "--version"):  # nor after an interrupted start
            say(f"making {os.path.relpath(str(self.folder), str(ROOT))}")
            if subprocess.call([sys.executable, "-m", "venv", "--clear", str(self.folder)]):
                fail("making the virtual environment failed (above).")
        what, listed = f"installing uv {uv['version']}", self.folder / "uv.txt"
        say(what)
        hashes = " ".join(f"--hash={wheel['hash']}" for wheel in uv["wheels"])
        listed.write_text(f"uv=={uv['version']} {hashes}")
        self.run(what, *PIP, "install", "-q", "--require-hashes", "-r", str(listed))

    def index(self):
        """The package index that pip has been told to use, for uv, which does not read pip's settings."""
        if os.environ.get("UV_DEFAULT_INDEX") or os.environ.get("UV_INDEX_URL"):
            return {}
        url = os.environ.get("PIP_INDEX_URL") or self.answer(
            *PIP, "config", "get", "global.index-url"
        )
        return {"UV_DEFAULT_INDEX": url} if url else {}

    def install(self, group, env=(), hint=""):
        """Install what uv.lock has for a group, and the project in place where the group holds it.

        By way of a list with the lock's hashes: `uv sync` takes everything from the addresses in the lock,
        and many readers take their packages from a mirror.
        """
        what = f"installing the group {group} of uv.lock"
        export = ("uv", "export", "-q", "--locked", "--default-index", PYPI, "--only-group", group)
        renew = " After a change in pyproject.toml, make lock renews the file."
        lines = self.run(what, *export, hint=renew).splitlines(True)
        listed = [line for line in lines if not line.startswith(b"-e ")]
        if listed != lines:
            self.install("build")
        say(what)
        # To bytecode, as pip does: else each start compiles what it imports, for ever where Python may write none.
        pip = ("uv", "pip", "install", "-q", "--compile-bytecode", "--python", self.python)
        pip += ("--require-hashes", "-r", "-")
        self.run(what, *pip, env=dict(env, **self.index()), hint=hint, input=b"".join(listed))
        if listed != lines:
            sync = ("uv", "sync", "-q", "--frozen", "--inexact", "--only-install-project")
            self.run("installing the project in place", *sync, "--python", self.python)

    def provide(self, group):
        """Install a group, unless that was done for this checkout and this lock."""
        texts = [(ROOT / name).read_bytes() for name in ("pyproject.toml", "uv.lock")]
        digest = hashlib.sha256(b"".join([str(ROOT).encode(), *texts])).hexdigest()
        stamp = self.folder / "cudatut.done"
        done = stamp.read_text().split() if stamp.exists() else []
        if done[:1] != [digest]:
            done = [digest]
        if group not in done or not Path(self.python).exists():
            self.bring_uv()
            stamp.write_text(" ".join(done))
            self.install(group, *((build_env(), PYCUDA_HINT) if group == "gpu" else ()))
            stamp.write_text(" ".join([*done, group]))


def main():
    if len(sys.argv) != 3 or sys.argv[2] not in KINDS:
        fail(f"usage: environment.py FOLDER {'|'.join(KINDS)}")
    folder, kind = sys.argv[1:]
    check_this_python()
    if kind == "gpu":
        require_gpu()
    if folder and kind in ("gpu", "doctor") and has_all_for_gpu():
        say(f"using {sys.executable}, which has everything that is needed")
        folder = ""
    if folder and kind == "doctor" and not Environment(folder).answer("python", "--version"):
        folder = ""
    if not folder:
        describe_in_place()
    elif kind == "uv":
        Environment(folder).bring_uv()
    elif kind != "doctor":  # which must speak where nothing can be installed
        Environment(folder).provide(kind)
    print(Environment(folder).python if folder else sys.executable)


if __name__ == "__main__":
    main()
