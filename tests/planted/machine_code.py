"""Whether kernels have the code that a survey found: `python machine_code.py ARCH < KEYS`, in a tree, without a GPU.

KEYS: as JSON, of each kernel the digest of its code, by what `ct.Kernel` was asked for (dealt.py). ARCH: what 'this GPU's own'
was. Prints "same", or the first kernel that is another. Ends with 2 and nvcc's words where one does not compile.
"""

import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cudatut import paths
from cudatut.fingerprint import code
from cudatut.gpu import instances
from cudatut.gpu.nvcc import find_nvcc


class NotCompiled(Exception):
    """What nvcc said."""


def digest(key: str, arch: str) -> str:
    """The digest of a kernel's code, compiled as `ct.Kernel` does. Raises NotCompiled."""
    source, name, defines, options, own_arch = json.loads(key)
    name, folders = instances.normal(name), [paths.examples_dir()]
    if source.endswith(".cu"):
        path = paths.resolve_source(source)
        folders.insert(0, path.parent)
        source = path.read_text(encoding="utf-8")
    whole = instances.assemble(source, name)
    if instances.wrapped(source, name):
        whole = f'extern "C" {{\n{whole}\n}}\n'
    with tempfile.TemporaryDirectory() as folder:
        file, made = Path(folder, "kernel.cu"), Path(folder, "kernel.cubin")
        file.write_text(whole, encoding="utf-8")
        flags = ["-cubin", "-arch", own_arch or arch, "-lineinfo", *map(str, options)]
        flags += [f"-D{macro}={value}" for macro, value in (defines or {}).items()]
        flags += [f"-I{one}" for one in folders]
        command = [str(find_nvcc()), *flags, "-o", str(made), str(file)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise NotCompiled(f"{name}: {done.stderr[-800:]}")
        cubin = made.read_bytes()
    return code.digest(cubin, instances.find_symbol(cubin, source, name, name))


def first_other(codes: dict[str, str], arch: str, jobs: int = 4) -> str | None:
    """A kernel whose code is another one than in `codes`; None where all are the same. Raises NotCompiled."""
    keys = sorted(codes)
    with ThreadPoolExecutor(jobs) as pool:
        for at in range(0, len(keys), 2 * jobs):
            some = keys[at : at + 2 * jobs]
            for key, found in zip(some, pool.map(lambda key: digest(key, arch), some)):
                if found != codes[key]:
                    return key
    return None


def main() -> int:
    try:
        other = first_other(json.load(sys.stdin), sys.argv[1])
    except NotCompiled as error:
        print(error, file=sys.stderr)
        return 2
    print("same" if other is None else other)
    return 0


if __name__ == "__main__":
    sys.exit(main())
