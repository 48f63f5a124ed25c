"""Run the code cells of notebooks up to the first that needs a GPU or the model: notebooks as JSON on stdin, a report on stdout.

In: [{"name", "cells": [source, ...]}]. Out: {name: {"ran": number of cells that ran, "stopped": why or null, "failed": text or
null, "printed": text}}. Each notebook runs in a process and an empty folder of its own. Of the cells after that
the imports are run, for a module that is missing must not hide behind it.
"""

import ast
import contextlib
import hashlib  # noqa: F401  this and others before the processes part: nearly all notebooks need them
import html.entities  # noqa: F401
import io
import json
import os
import statistics  # noqa: F401
import sys
import tempfile
import traceback

import numpy.random  # noqa: F401
import pycuda
import yaml  # noqa: F401

import cudatut
import cudatut.notebook
from cudatut.errors import NoGpuError, ToolMissing

# Where the reader has not installed them, the examples do without, or say so.
OPTIONAL = ("cupy", "torch", "cupti", "cuda", "matplotlib", "IPython")
NEEDS_A_GPU = (NoGpuError, ToolMissing, pycuda.NeedsGpu)


def run(cells):
    report = {"ran": 0, "stopped": None, "failed": None, "printed": ""}
    space = {"__name__": "__main__", "get_ipython": lambda: Shell()}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for source in cells:
            tree = ast.parse(source)
            if report["stopped"]:
                tree.body = [
                    part for part in tree.body if isinstance(part, (ast.Import, ast.ImportFrom))
                ]
            for part in tree.body if report["stopped"] else [tree]:
                code = part if isinstance(part, ast.Module) else ast.Module([part], [])
                try:
                    exec(compile(code, "<cell>", "exec"), space)
                except NEEDS_A_GPU as error:
                    report["stopped"] = report["stopped"] or f"{type(error).__name__}: {error}"
                except ImportError as error:
                    if (error.name or "").partition(".")[0] not in OPTIONAL:
                        report["failed"] = traceback.format_exc()
                        return report
                    report["stopped"] = report["stopped"] or str(error)
                except SystemExit:  # an exercise's check of the untouched stub
                    pass
                except Exception as error:
                    if not (caused_by_the_missing_gpu(error) or has_no_model(error)):
                        report["failed"] = traceback.format_exc()
                        return report
                    report["stopped"] = report["stopped"] or f"{type(error).__name__}: {error}"
            report["ran"] += not report["stopped"]
    report["printed"] = printed.getvalue()
    return report


def caused_by_the_missing_gpu(error):
    """An exception made of one that says so, or that quotes the output of a child process that died of it."""
    while error is not None:
        if isinstance(error, NEEDS_A_GPU) or any(
            kind.__name__ in str(error) for kind in NEEDS_A_GPU
        ):
            return True
        error = error.__cause__ or error.__context__
    return False


def has_no_model(error):
    """The language model is not there, and without pip cannot be fetched."""
    return type(error).__name__ == "CheckpointError" and "needs pip" in str(error)


class Shell:
    kernel = None

    def run_line_magic(self, name, line):
        raise AssertionError(
            f"%{name} {line}: cudatut is installed here, so nothing is to be installed"
        )


def main():
    result = {}
    for notebook in json.load(sys.stdin):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            with tempfile.TemporaryDirectory() as folder:
                os.chdir(folder)
                report = run(notebook["cells"])
                os.chdir("/")
            with os.fdopen(writing, "w") as pipe:
                json.dump(report, pipe)
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            text = pipe.read()
        os.waitpid(child, 0)
        result[notebook["name"]] = json.loads(text) if text else {"failed": "its process died"}
    json.dump(result, sys.stdout)


assert "site-packages" in cudatut.__file__, cudatut.__file__
main()
