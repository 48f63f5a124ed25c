"""The kernels of probes.cu: what reads, writes or computes as fast as this GPU can."""

from functools import cache
from pathlib import Path

from cudatut.gpu.device import device
from cudatut.gpu.kernel import Kernel, cdiv
from cudatut.gpu.memory import empty

_SOURCE = str(Path(__file__).with_name("probes.cu"))


@cache
def probe(name: str) -> Kernel:
    """A kernel of probes.cu."""
    return Kernel(_SOURCE, name)


def read_once(words, sink) -> None:
    """Read an array of uint32 words (a multiple of 4 of them) once, at the best rate there is. Enqueued, not waited for."""
    vectors = words.size // 4
    probe("read_probe")(words, vectors, sink, grid=cdiv(vectors, 2048), block=512)


def random_words(count: int):
    """A uint32 array of `count` pseudo-random words, made on the GPU."""
    words = empty(count, "uint32")
    probe("fill_probe")(words, count, grid=device().sm_count * 8, block=256)
    return words
