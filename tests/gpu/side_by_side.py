"""Run what the tests of one module ask for in processes side by side: opening the GPU takes about a second each time."""

import os
from concurrent.futures import Future, ThreadPoolExecutor, wait

# pytest-xdist and shards.py have processes of their own, each with some of the tests.
SHARED = ("PYTEST_XDIST_WORKER", "CUDATUT_SHARED_GPU")
JOBS = 1 if any(map(os.environ.get, SHARED)) else min(6, os.cpu_count() or 1)


class Runs:
    """Calls `run(key)` for each key once, `JOBS` of them at a time; `keys` are begun with at once.

    Those of `alone` begin when they are asked for, and when nothing else of these runs.
    """

    def __init__(self, run, keys=(), alone=()):
        self.run, self.pool, self.begun, self.alone = run, ThreadPoolExecutor(JOBS), {}, set(alone)
        if JOBS > 1:
            for key in keys:
                if key not in self.alone:
                    self.begin(key)

    def begin(self, key) -> Future:
        if key not in self.begun:
            self.begun[key] = self.pool.submit(self.run, key)
        return self.begun[key]

    def __getitem__(self, key):
        """What `run(key)` returned or raised."""
        if key in self.alone:
            wait(self.begun.values())
        return self.begin(key).result()

    def close(self) -> None:
        self.pool.shutdown(cancel_futures=True)


def asked_for(request, *names) -> list:
    """Values of these parameters for the tests of this module that were selected, in order."""
    path = request.path  # the module's, also for a fixture of its scope
    return [
        tuple(item.callspec.params[name] for name in names)
        for item in request.session.items
        if item.path == path
        and hasattr(item, "callspec")
        and set(names) <= set(item.callspec.params)
    ]
