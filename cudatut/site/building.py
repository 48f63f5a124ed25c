"""Build the site: MkDocs once for each language, side by side, into a folder that replaces the old one as a whole."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from cudatut.errors import CudatutError
from cudatut.site import publishing, shared, workplace

# Chinese last: it lies inside the English site.
CONFIGS = {"en": "mkdocs.yml", "zh": "mkdocs.zh.yml"}
# A build is over soon: what Python's collector would find in it is a tenth of its memory, and looking takes a second.
_MKDOCS = (
    "from cudatut.processes import end_with_parent; end_with_parent(); "
    "import gc; gc.disable(); from mkdocs.__main__ import cli; cli(prog_name='mkdocs')"
)


class BuildError(CudatutError):
    """The site could not be built; the message says in which language and why."""


def build(
    root: Path,
    out: Path,
    mode: str = "strict",
    only: Sequence[str] = (),
    say: Callable[[str], None] = print,
) -> list[str]:
    """Build both languages at the same time, and put them into `out`; returns the warnings, each once.

    mode: "strict"; "live", where an example that failed on this machine costs its own outputs; "preview", where every
    example that is not recorded does, and a warning ends nothing (see `cudatut.site.state`). only: chapters to preview.
    say: told how long it took. `out` is replaced only when both languages succeeded. Raises BuildError with MkDocs' messages.
    """
    begin = time.perf_counter()
    with ExitStack() as stack:
        try:
            work = stack.enter_context(workplace.folder(out))
        except OSError as error:
            raise BuildError(
                f"cannot write to {out.parent} ({error.strerror}); name a folder with --out DIR"
            ) from error
        own = {
            "PYTHONIOENCODING": "utf-8",
            "NO_MKDOCS_2_WARNING": "1",
            "CUDATUT_SITE_MODE": mode,
            "CUDATUT_SITE_ONLY": " ".join(only),
            shared.FOLDER: str(work / "shared"),
            **workplace.environment(work),
        }
        (work / "shared").mkdir()
        strict = [] if mode == "preview" else ["--strict"]
        said: list[str] = []
        failed: list[str] = []
        warned: dict[str, None] = {}
        for lang, (status, lines) in _mkdocs(root, work, strict, own).items():
            said += [f"[{lang}] {line}" for line in lines if not line.startswith("INFO")]
            failed += [lang] * bool(status)
            warned |= dict.fromkeys(_warnings(lines))
        if failed:
            kept = f"; {out} is as it was" if out.exists() else ""
            said.append(f"The site was not built ({', '.join(failed)}){kept}.")
            raise BuildError("\n".join(said))
        (work / "zh").rename(work / "en" / "zh")
        if mode == "strict":
            publishing.whole_site(work / "en")
        if out.exists():  # a server may be reading it
            out.rename(work / "old")
        (work / "en").rename(out)
    say(f"Built {out} in {time.perf_counter() - begin:.1f} s.")
    return list(warned)


def _warnings(lines: Sequence[str]) -> list[str]:
    """What MkDocs warned of, each with the lines that go on from it."""
    found: list[list[str]] = []
    for line in lines:
        begun = re.match(r"([A-Z]+) +-  (.*)", line)
        level, said = begun.groups() if begun else ("", line)
        if level or not found:
            found.append([level, said])
        else:
            found[-1].append(said)
    return ["\n".join(said) for level, *said in found if level in ("WARNING", "ERROR")]


def _mkdocs(
    root: Path, work: Path, options: Sequence[str], own: dict[str, str]
) -> dict[str, tuple[int, list[str]]]:
    """Run MkDocs for all languages side by side; exit status and lines by language. No child outlives this process."""
    command, done = [sys.executable, "-c", _MKDOCS, "build", *options], {}
    with ExitStack() as stack:
        processes: dict[str, Any] = {  # whose pipes are there, which their type does not say
            lang: stack.enter_context(
                subprocess.Popen(
                    [*command, "--config-file", config, "--site-dir", str(work / lang)],
                    cwd=root,
                    stdin=subprocess.PIPE,  # by which it notices that we are gone
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    encoding="utf-8",
                    errors="replace",
                    env=os.environ | own,
                )
            )
            for lang, config in CONFIGS.items()
        }
        try:
            for lang, process in processes.items():
                lines = process.stdout.read().splitlines()
                done[lang] = process.wait(), lines
        finally:
            for process in processes.values():
                process.kill()  # does nothing to one that has ended
    return done
