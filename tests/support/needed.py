"""What to do where something that a test needs is not on this machine."""

import os

import pytest

IN_CI = os.environ.get("CI", "") not in ("", "0", "false")


def missing(reason: str) -> None:
    """Skips the test with this reason; in CI ($CI), where everything has to be there, it fails."""
    if IN_CI:
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)
