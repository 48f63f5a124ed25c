"""What stands in the place of a rival that cannot run here.

except ImportError as error:
    return absent("the package fa3-fwd is not installed", error)
"""

import cudatut as ct


def absent(reason: str, error: Exception | None = None) -> ct.vendor.Missing:
    """The reason, which `ct.bench` prints. Raises ct.ToolMissing while an
    example is recorded: a page must not lose its rival.
    """
    if ct.tool.recording():
        raise ct.ToolMissing(reason) from error
    return ct.vendor.Missing(reason)
