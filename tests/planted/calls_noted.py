"""A plugin of pytest: after each test, what it called of the package (`followed/sitecustomize.py`), and how long it took."""

import json
import os
import sys
import time

import pytest

# Fixtures of the session, and what making one takes, in seconds.
EXPENSIVE = {"built_site": 90, "installed": 20}


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item, nextitem):
    begun = time.monotonic()
    yield
    write, seconds = getattr(sys, "planted_write", None), round(time.monotonic() - begun, 3)
    if write:
        os.environ["PYTEST_CURRENT_TEST"] = f"{item.nodeid} (noted)"
        write()
        os.environ.pop("PYTEST_CURRENT_TEST", None)
    # The first test that uses it has paid for it; in a process of its own each would.
    seconds += sum(cost for name, cost in EXPENSIVE.items() if name in item.fixturenames)
    passed = getattr(item, "planted_outcome", "passed")
    line = json.dumps({"test": item.nodeid, "seconds": seconds, "outcome": passed})
    with open(os.path.join(os.environ["PLANTED_CALLS"], "tests.jsonl"), "a") as file:
        file.write(line + "\n")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if not report.passed:
        item.planted_outcome = report.outcome
