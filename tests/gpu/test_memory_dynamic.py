"""Dynamic parallelism: launches that are refused leave no hole, a reader that comes too early is noticed, faults come out."""

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.memory.dynamic.limited import in_a_process
from cudatut.book.memory.dynamic.linked import linked
from cudatut.book.memory.dynamic.plan import by_numpy, drawn, plan
from cudatut.book.memory.dynamic.ways import LEFT, TOP, WIDTH, Scene

OPTIONS = ("-rdc=true",)
SCENE = """
import numpy as np
import cudatut as ct
from cudatut.book.memory.dynamic import ways

drawn = ways.subdivider(pending=4)
ways.subdivider = lambda: drawn
scene = ways.Scene(512, 100, least=8)
scene.by_gpu()()
tiles = scene.out.get()
scene.flat()()
print(int((scene.out.get() != tiles).sum()), int(scene.failed.get()[0]))
"""


def test_parts_that_do_not_come_out_are_refused():
    with pytest.raises(ValueError, match="128 by 4 to 16"):
        Scene(512, 10, 128, 4, 16)


def test_where_launches_are_refused_the_block_computes_its_tile():
    """With room for four pending launches, hundreds of them, at any moment."""
    child = ct.isolated(SCENE)
    assert child.returncode == 0, child.stderr
    differ, failed = map(int, child.stdout.split())
    assert differ == 0  # the picture of 512 pixels has none, see the CPU tests
    assert failed > 0


def test_what_does_not_compile_says_why():
    with pytest.raises(ct.CudatutError, match="cudaDeviceSynchronize"):
        linked("__global__ void k() { cudaDeviceSynchronize(); }", options=OPTIONS)


def test_a_fault_in_a_child_comes_out_on_the_host():
    child = ct.isolated(
        """
import cudatut as ct
from cudatut.book.memory.dynamic.linked import linked
source = '''
__global__ void bad(int *x) { *x = 1; }
extern "C" __global__ void parent() {
  bad<<<1, 1, 0, cudaStreamFireAndForget>>>((int *)16);
}
'''
parent = linked(source, options=("-rdc=true",)).get_function("parent")
parent(grid=(1, 1), block=(1, 1, 1))
ct.synchronize()
"""
    )
    assert child.returncode != 0
    assert "pycuda" in child.stderr  # its error, whatever the driver calls it


def test_who_launches_sees_nothing_yet_and_a_tail_launch_sees_it():
    for _ in range(3):
        assert in_a_process("early") == {"launcher": 0, "tail": 7}


@pytest.mark.parametrize("seed", range(20))
def test_every_way_draws_any_part_of_the_set(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.uniform((-2, -1.2), (0.4, 1.2))
    corner = float(np.float32(x)), float(np.float32(y)), 2.0 ** -int(rng.integers(1, 8))
    n, most = 256, int(rng.integers(10, 300))
    first, split = int(rng.choice([64, 128])), int(rng.choice([2, 4]))
    least = first // split ** int(rng.integers(1, 3))
    scene = Scene(n, most, first, split, least, corner)
    dwells = by_numpy(corner[0], corner[1], corner[2] / n, n, most)
    filled = drawn(dwells, plan(dwells, first, split, least))
    for name, draw in scene.ways().items():
        draw()
        right = dwells if name == "every pixel" else filled
        ct.check(scene.out, right.ravel(), name=name)
    assert not scene.state.get()[3]


def test_the_queue_is_right_a_thousand_times():
    n, most = 256, 40
    scene = Scene(n, most, least=8)
    dwells = by_numpy(LEFT, TOP, WIDTH / n, n, most)
    filled = drawn(dwells, plan(dwells, 128, 2, 8)).ravel()
    draw = scene.by_queue()
    for _ in range(1000):
        scene.out.fill(0)
        draw()
        assert np.array_equal(scene.out.get(), filled)
        assert not scene.state.get()[3]
