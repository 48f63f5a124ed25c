"""Make or mend the virtual environment that `make` uses, and print the Python to run.

    python3 tools/environment.py FOLDER uv|lint|site|test|gpu|doctor

FOLDER holds an environment with uv in it; uv installs the group of pyproject.toml, in addition to what
is there. All versions and hashes come from uv.lock: those of uv itself, of the group, and of what builds
the packages that have no wheels, since a build finds what the group `build` has brought and fetches
nothing (`no-build-isolation`). Nothing is done when uv.lock, pyproject.toml and the checkout's place are
those of the last successful run. Progress goes to stderr.

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

MINIMUM = (3, 11)
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KINDS = ("uv", "lint", "site", "test", "gpu", "doctor")
# The lock names PyPI whatever index this machine takes its packages from.
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

    with open(os.path.join(ROOT, name), "rb") as file:
        return tomllib.load(file)


def has_all_for_gpu():
    """Whether this interpreter has what recording and building need, beside what these bring along."""
    from importlib import metadata

    file = read_toml("pyproject.toml")
    project, groups = file["project"], file["dependency-groups"]
    extras = project["optional-dependencies"]
    wanted = project["dependencies"] + extras["gpu"] + extras["record"] + groups["site"]
    names = {re.match(r"[\w.-]+", entry).group() for entry in wanted if isinstance(entry, str)}
    try:
        return bool([metadata.distribution(name) for name in names - {project["name"]}])
    except metadata.PackageNotFoundError:
        return False


def describe_in_place():
    """Let an interpreter in which the project is not installed find MkDocs' plugin `cudatut`.

    MkDocs finds plugins by the metadata of installed projects. The metadata is written to a folder
    that the Makefile has on PYTHONPATH, so that nothing is installed.
    """
    from importlib import metadata

    folder = os.path.join(ROOT, ".cache", "in-place")
    shutil.rmtree(folder, ignore_errors=True)
    try:
        metadata.distribution("cudatut")
    except metadata.PackageNotFoundError:
        project = read_toml("pyproject.toml")["project"]
        info = os.path.join(folder, f"cudatut-{project['version']}.dist-info")
        os.makedirs(info)
        with open(os.path.join(info, "METADATA"), "w") as file:
            file.write(f"Metadata-Version: 2.1\nName: cudatut\nVersion: {project['version']}\n")
        with open(os.path.join(info, "entry_points.txt"), "w") as file:
            for group, entries in project["entry-points"].items():
                file.write(f"[{group}]\n")
                file.writelines(f"{name} = {place}\n" for name, place in entries.items())


def build_env():
    """PyCUDA's build takes the toolkit's place from the first nvcc on PATH, which may be a wrapper."""
    on_path = shutil.which("nvcc")
    roots = [os.path.dirname(os.path.dirname(on_path))] if on_path else []
    roots += [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    for root in [*roots, "/usr/local/cuda"]:
        if os.path.exists(os.path.join(root, "include", "cuda.h")):
            path = os.path.join(root, "bin") + os.pathsep + os.environ["PATH"]
            return {"PATH": path, "CUDA_ROOT": root}
    return {}  # the build says what is missing, and `python -m cudatut doctor` how to get it


class Environment:
    """A virtual environment with pip and uv. pip brings uv, and serves whoever uses the environment."""

    def __init__(self, folder):
        self.folder = os.path.join(ROOT, folder)
        self.bin = os.path.join(self.folder, "Scripts" if os.name == "nt" else "bin")
        self.python = os.path.join(self.bin, "python")

    def answer(self, *command):
        """What a program of the environment prints; empty where it does not start or fails."""
        command = [os.path.join(self.bin, command[0]), *command[1:]]
        try:
            return subprocess.check_output(command, stderr=subprocess.DEVNULL).decode().strip()
        except (OSError, subprocess.CalledProcessError):
            return ""

    def run(self, what, *command, env=(), hint="", **options):
        """What a program of the environment prints, run in the checkout. Where it fails, say what failed and end."""
        # uv trusts whom this machine trusts, as pip does: some networks have certificates of their own.
        env = dict({"UV_SYSTEM_CERTS": "1"}, **dict(os.environ, **dict(env)))
        env.update(UV_PROJECT_ENVIRONMENT=self.folder, UV_PYTHON_DOWNLOADS="never")
        env.pop("VIRTUAL_ENV", None)  # another one's
        command = [os.path.join(self.bin, command[0]), *command[1:]]
        done = subprocess.run(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, **options)
        if done.returncode != 0:
            fail(f"{what} failed (above).{hint} Mend the cause and run the same command again.")
        return done.stdout

    def write(self, name, *words):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(" ".join(words))
        return path

    def bring_uv(self):
        """Make the environment itself, and bring the uv of uv.lock into it."""
        (uv,) = [package for package in read_toml("uv.lock")["package"] if package["name"] == "uv"]
        if self.answer("uv", "--version").split()[:2] == ["uv", uv["version"]]:
            return
        check_this_python("venv", "ensurepip")
        if not self.answer("python", "-m", "pip", "--version"):  # nor after an interrupted start
            say("making " + os.path.relpath(self.folder, ROOT))
            if subprocess.call([sys.executable, "-m", "venv", "--clear", self.folder]):
                fail("making the virtual environment failed (above).")
        what = f"installing uv {uv['version']}"
        say(what)
        hashes = ["--hash=" + wheel["hash"] for wheel in uv["wheels"]]
        listed = self.write("uv.txt", f"uv=={uv['version']}", *hashes)
        self.run(what, *PIP, "install", "-q", "--require-hashes", "-r", listed)

    def index(self):
        """The package index that pip has been told to use, for uv, which does not read pip's settings."""
        if os.environ.get("UV_DEFAULT_INDEX") or os.environ.get("UV_INDEX_URL"):
            return {}
        get = (*PIP, "config", "get", "global.index-url")
        url = os.environ.get("PIP_INDEX_URL") or self.answer(*get)
        return {"UV_DEFAULT_INDEX": url} if url else {}

    def install(self, group, env=(), hint=""):
        """Install what uv.lock has for a group, and the project in place where the group holds it.

        By way of a list with the lock's hashes: `uv sync` takes everything from the addresses in the lock, and many
        readers take their packages from a mirror.
        """
        what = f"installing the group {group} of uv.lock"
        export = ("uv", "export", "-q", "--locked", "--default-index", PYPI, "--only-group", group)
        renew = " After a change in pyproject.toml, make lock renews the file."
        lines = self.run(what, *export, hint=renew).splitlines(True)
        listed = [line for line in lines if not line.startswith(b"-e ")]
        if listed != lines:
            self.install("build")
        say(what)
        pip = ("uv", "pip", "install", "-q", "--python", self.python, "--require-hashes", "-r", "-")
        env = dict(env, **self.index())
        self.run(what, *pip, env=env, hint=hint, input=b"".join(listed))
        if listed != lines:
            sync = ("uv", "sync", "-q", "--frozen", "--inexact", "--only-install-project")
            self.run("installing the project in place", *sync, "--python", self.python)

    def provide(self, group):
        """Install a group, unless that was done for this checkout and this lock."""
        digest = hashlib.sha256(ROOT.encode())
        for name in ("pyproject.toml", "uv.lock"):
            with open(os.path.join(ROOT, name), "rb") as file:
                digest.update(file.read())
        try:
            with open(os.path.join(self.folder, "cudatut.done")) as file:
                done = file.read().split()
        except OSError:
            done = []
        if done[:1] != [digest.hexdigest()]:
            done = [digest.hexdigest()]
        if group not in done or not os.path.exists(self.python):
            self.bring_uv()
            self.write("cudatut.done", *done)
            self.install(group, *((build_env(), PYCUDA_HINT) if group == "gpu" else ()))
            self.write("cudatut.done", *done, group)


def main():
    if len(sys.argv) != 3 or sys.argv[2] not in KINDS:
        fail(f"usage: environment.py FOLDER {'|'.join(KINDS)}")
    folder, group = sys.argv[1:]
    check_this_python()
    if group == "gpu":
        require_gpu()
    if folder and group in ("gpu", "doctor") and has_all_for_gpu():
        say(f"using {sys.executable}, which has everything that is needed")
        folder = ""
    if folder and group == "doctor" and not Environment(folder).answer("python", "--version"):
        folder = ""
    if folder and group == "uv":
        Environment(folder).bring_uv()
    elif folder and group != "doctor":  # which must speak where nothing can be installed
        Environment(folder).provide(group)
    if not folder:
        describe_in_place()
    print(Environment(folder).python if folder else sys.executable)


if __name__ == "__main__":
    main()
