"""Make or mend the virtual environment that `make` uses, and print the Python to run.

    python3 requirements/venv.py FOLDER site|test|gpu|doctor

An empty FOLDER means: use this interpreter as it is and install nothing. For `gpu` the same holds
when this interpreter already has everything that recording and building need; and where there is no
GPU it says so at once, rather than after it has compiled PyCUDA. `doctor` installs nothing at all.

Everything comes from a lock file, each download checked against the hashes in it. build.lock comes
first: with what it holds pip builds packages that have no wheels (jieba, PyCUDA), for which it would
else fetch the newest setuptools, unchecked. The project is then installed in place (editable, without
dependencies). Nothing is done when the locks, the project file and the checkout's place are those of
the last successful run. Progress goes to stderr.

Only the standard library, and syntax that Python 3.6 can read: an old Python must get the message
below rather than a SyntaxError.
"""

import ctypes
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys

MINIMUM = (3, 11)
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
# test.lock holds everything in site.lock at the same versions (tests/test_project.py checks it).
CONTAINS = {"site": ["site"], "test": ["site", "test"], "gpu": ["site", "gpu"]}
# What recording and building import, beside what these bring along.
GPU_NEEDS = [
    "pycuda",
    "numpy",
    "yaml",
    "rich",
    "nbclient",
    "nbformat",
    "jupytext",
    "ipykernel",
    "mkdocs",
    "material",
    "markdown_exec",
    "mkdocs_jupyter",
    "mkdocstrings",
    "jieba",
    "latex2mathml",
]

PYCUDA_HINT = """
PyCUDA is compiled here, which needs the CUDA toolkit with nvcc, cuda.h and curand.h, and g++:
make doctor says which is missing. With an
interpreter that has PyCUDA already, make VENV= PYTHON=... installs nothing.
"""


def fail(message):
    sys.exit("\nmake: " + message + "\n")


def say(message):
    print("--- " + message, file=sys.stderr, flush=True)


def check_this_python():
    if sys.version_info < MINIMUM:
        fail(
            "Python %d.%d or newer is needed, and %s is %s.\n"
            "Install a newer one and name it:  make PYTHON=python3.12 ..."
            % (MINIMUM[0], MINIMUM[1], sys.executable, sys.version.split()[0])
        )
    for module in ("venv", "ensurepip"):
        if importlib.util.find_spec(module) is None:
            fail(
                "%s has no module '%s', so it cannot make a virtual environment.\n"
                "Debian and Ubuntu:  apt-get install python3-venv\n"
                "Or use this Python as it is, with what is installed in it:  make VENV= ..."
                % (sys.executable, module)
            )


def sha256(*paths):
    digest = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()


def lock_paths(kind):
    """The locks that make an environment of this kind, in the order in which they are installed."""
    return [os.path.join(HERE, name + ".lock") for name in ("build", kind)]


def works(python):
    """Whether the environment's Python starts and has pip (it has not after an interrupted start)."""
    if not os.path.exists(python):
        return False
    command = [python, "-m", "pip", "--version"]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return done.returncode == 0


def run(command, what, env=None, hint=""):
    done = subprocess.run(command, stdout=sys.stderr, env=env)
    if done.returncode != 0:
        fail("%s failed (above).%s Mend the cause and run the same command again." % (what, hint))


def build_env():
    """PyCUDA's build takes the toolkit's place from the first nvcc on PATH, which may be a wrapper."""
    on_path = shutil.which("nvcc")
    roots = [os.path.dirname(os.path.dirname(on_path))] if on_path else []
    roots += [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    for root in [*roots, "/usr/local/cuda"]:
        if os.path.exists(os.path.join(root, "include", "cuda.h")):
            path = os.path.join(root, "bin") + os.pathsep + os.environ["PATH"]
            return dict(os.environ, PATH=path, CUDA_ROOT=root)
    return None  # pip says what is missing, and `python -m cudatut doctor` how to get it


def require_gpu():
    """PyCUDA takes minutes to compile, and without a GPU there is no use for it."""
    try:
        driver = ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
    except OSError:
        fail("this needs an NVIDIA GPU, and there is no driver here. make doctor says more.")
    count = ctypes.c_int(0)
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)) or not count.value:
        fail("this needs an NVIDIA GPU, and the driver shows none. make doctor says more.")


def interpreter_of(folder):
    scripts = ("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")
    return os.path.join(ROOT, folder, *scripts)


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
        import tomllib

        with open(os.path.join(ROOT, "pyproject.toml"), "rb") as file:
            project = tomllib.load(file)["project"]
        info = os.path.join(folder, "cudatut-%s.dist-info" % project["version"])
        os.makedirs(info)
        with open(os.path.join(info, "METADATA"), "w") as file:
            file.write("Metadata-Version: 2.1\nName: cudatut\nVersion: %s\n" % project["version"])
        with open(os.path.join(info, "entry_points.txt"), "w") as file:
            for group, entries in project["entry-points"].items():
                file.write("[%s]\n" % group)
                file.writelines("%s = %s\n" % entry for entry in entries.items())


def set_up(folder, kind):
    """The path of the environment's Python, after making `folder` hold what `kind` needs."""
    check_this_python()
    folder = os.path.join(ROOT, folder)
    python = interpreter_of(folder)
    stamp_path = os.path.join(folder, "cudatut-stamp.json")
    try:
        with open(stamp_path) as file:
            stamp = json.load(file)
    except (OSError, ValueError):
        stamp = {}
    project = {"root": ROOT, "pyproject": sha256(os.path.join(ROOT, "pyproject.toml"))}
    lock = {kind: sha256(*lock_paths(kind))}
    wanted = dict(project, **lock)
    if os.path.exists(python) and all(stamp.get(key) == value for key, value in wanted.items()):
        return python

    if not works(python):
        say("making " + os.path.relpath(folder, ROOT))
        run([sys.executable, "-m", "venv", "--clear", folder], "making the virtual environment")
        stamp = {}
    pip = [python, "-m", "pip", "--disable-pip-version-check"]
    if stamp.get(kind) != lock[kind]:
        for path in lock_paths(kind):
            builds = kind == "gpu" and path == lock_paths(kind)[-1]  # after its tools: PyCUDA
            env, hint = (build_env(), PYCUDA_HINT) if builds else (None, "")
            what = "installing requirements/" + os.path.basename(path)
            say(what)
            # Without isolation a build finds here what build.lock brought, and nothing is fetched for it.
            flags = ["install", "--quiet", "--require-hashes", "--no-build-isolation", "-r", path]
            run(pip + flags, what, env, hint)
    say("installing the project in place")
    flags = ["install", "--quiet", "--no-deps", "--no-build-isolation", "--editable", ROOT]
    run(pip + flags, "installing the project")

    kept = {key: stamp[key] for key in CONTAINS if stamp.get(key) == sha256(*lock_paths(key))}
    done = {key: sha256(*lock_paths(key)) for key in CONTAINS[kind]}
    with open(stamp_path, "w") as file:
        json.dump(dict(kept, **project, **done), file, indent=1)
    return python


def main():
    if len(sys.argv) != 3 or sys.argv[2] not in [*CONTAINS, "doctor"]:
        fail("usage: venv.py FOLDER %s|doctor" % "|".join(CONTAINS))
    folder, kind = sys.argv[1:]
    if kind == "gpu":
        require_gpu()
    if kind == "doctor":  # needs no package, and must speak where nothing can be installed
        there = folder and works(interpreter_of(folder))
        if not there or all(map(importlib.util.find_spec, GPU_NEEDS)):
            folder = ""
        else:
            print(interpreter_of(folder))
            return
    if kind == "gpu" and folder and all(map(importlib.util.find_spec, GPU_NEEDS)):
        say("using %s, which has everything that is needed" % sys.executable)
        folder = ""
    if folder:
        print(set_up(folder, kind))
    else:
        if sys.version_info < MINIMUM:
            check_this_python()
        describe_in_place()
        print(sys.executable)


if __name__ == "__main__":
    main()
