"""Writes down which functions of the package a process calls: for tests, and for the processes that they start.

$PLANTED_CALLS names the folder; each process appends to a file of its own. The test is the one that pytest says is running.
"""

import atexit
import json
import os
import sys
import threading
from types import CodeType

FOLDER, PACKAGE = os.environ.get("PLANTED_CALLS"), os.environ.get("PLANTED_PACKAGE", "")


def follow(folder: str) -> None:
    met: dict[CodeType, None] = {}

    def call(frame, event, _argument):
        if event == "call":
            code = frame.f_code
            if code not in met and code.co_filename.startswith(PACKAGE):
                met[code] = None

    def write() -> None:
        test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]
        called = sorted(
            {(c.co_filename[len(PACKAGE) :].lstrip("/"), c.co_firstlineno) for c in met}
        )
        if called:
            line = json.dumps({"test": test, "called": called}) + "\n"
            with open(os.path.join(folder, f"{os.getpid()}.jsonl"), "a", encoding="utf-8") as file:
                file.write(line)
        met.clear()

    sys.setprofile(call)
    threading.setprofile(call)
    atexit.register(write)
    # For the plugin of pytest: a process of tests runs many.
    sys.planted_write = write  # type: ignore[attr-defined] # where two files find it that import nothing of each other


if FOLDER:
    follow(FOLDER)
