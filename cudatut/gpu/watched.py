"""`python -m cudatut.gpu.watched FILE ...`: run Python files for a tool that watches this process.

The GPU is opened before the first file begins. A tool waits only some seconds for the first CUDA call of the process it
has started; a file that begins with other work, such as children of its own, would come too late, and then wait for ever.

Several files share the process, since to open the GPU under a tool takes about as long as many an example does. A file's
header may give smaller `sizes` for the tool: they replace those that its code states.
"""

import ast
import gc
import sys
from pathlib import Path
from types import ModuleType

from cudatut import catalog, paths, sizes, tool
from cudatut.fingerprint import ran
from cudatut.gpu.device import activate


def main(files: list[str]) -> None:
    """Run each file as `python FILE` would, in a process that already has its GPU. The first that fails ends it.

    A profiler can wait: under it the file itself opens the GPU.
    """
    if tool.running() in tool.SANITIZERS:
        activate()
    for file in files:
        _run(Path(file).resolve())


def _run(path: Path) -> None:
    loaded = set(sys.modules)
    ran.file(path)
    sys.argv, sys.path[0] = [str(path)], str(path.parent)
    tree = ast.parse(path.read_bytes(), str(path))
    code = compile(sizes.applied(tree, catalog.sizes(path)), str(path), "exec")
    module, before = ModuleType("__main__"), sys.modules["__main__"]
    module.__file__ = str(path)
    sys.modules["__main__"] = module
    try:
        exec(code, module.__dict__)
    except SystemExit as end:
        if end.code:
            raise
    finally:
        sys.modules["__main__"] = before
    del module
    # What lies beside one file may be another module beside the next; and its arrays must not outlive it.
    examples = paths.examples_dir().resolve()
    for name in set(sys.modules) - loaded:
        file = getattr(sys.modules[name], "__file__", None)
        if file and Path(file).resolve().is_relative_to(examples):
            del sys.modules[name]
    gc.collect()


if __name__ == "__main__":
    main(sys.argv[1:])
