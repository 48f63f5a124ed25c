"""The examples of the part `tensor` as modules, as they find each other."""

import sys

from cudatut.paths import examples_dir

sys.path.insert(0, str(examples_dir() / "tensor"))
