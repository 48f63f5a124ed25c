"""The examples of the part `tensor` as modules, as they find each other, and the emulator of their kernels."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "hopper_on_cpu"))  # emulator.py
