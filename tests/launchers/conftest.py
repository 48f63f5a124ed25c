"""The launchers of the examples as modules, as they find each other."""

import sys

from cudatut.paths import examples_dir

for part in ("tensor", "gemm", "llm"):
    sys.path.insert(0, str(examples_dir() / part))
