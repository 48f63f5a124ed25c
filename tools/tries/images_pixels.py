"""Try-out of images/pixels on the GPU: its examples as a reader runs them. Run from the root of a checkout.

The kernels ran on 2026-11-30, all right: at 4320 x 7680 four pixels took 49.5 us, to CHW 49.9, a copy 47.5, one pixel 119.6, the grid
turned 1562 (10.7 times the sectors were predicted to take 10.7 times as long: 13.1), 16 pixels 69.3 (predicted: as four). What the
counters of the contest say of the last is what is left: sectors written to L2 for 128 pixels, predicted 36 for four and 24 for 16, and
L1 busy with one pixel, memory with four.
"""

import subprocess
import sys
import time

for name in ("images/pixels", "images/pixels_contest", "images/pixels_solutions"):
    begin = time.time()
    command = [sys.executable, "-m", "cudatut", "run", name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    print(f"=== {name}: {done.returncode} after {time.time() - begin:.1f} s")
    print(done.stdout[-9000:], done.stderr[-3000:], flush=True)
