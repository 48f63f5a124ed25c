"""No rung does its work twice: a result that is right does not tell, but the hardware's counters do.

Work that is repeated with the same result (a stride of half the length, a tile computed by two blocks) passes every
comparison of values. So the first launch of each rung is counted and compared with what the problem needs.
"""

import pytest

import cudatut as ct

# Beside kernels of other processes ncu now and then counts nothing.
pytestmark = [pytest.mark.alone, pytest.mark.xdist_group("profilers")]

SCRIPT = """
import cudatut as ct

board = ct.load_ladder({ladder!r})
problem = board.problem(**{size})
for name in board.names:
    rung = board[name]
    if ct.supports(ct.device().compute_capability, rung.options.get("requires", "sm_75")):
        problem.launcher(rung)()
"""
FMAS = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"


def counted(tmp_path, ladder: str, size: dict[str, int], metric: str) -> dict[str, float]:
    """The metric of each rung's first launch, by rung."""
    script = tmp_path / "once.py"
    script.write_text(SCRIPT.format(ladder=ladder, size=size))
    board, here = ct.load_ladder(ladder), ct.device().compute_capability
    rungs = [board[name] for name in board.names]
    able = [rung for rung in rungs if ct.supports(here, rung.options.get("requires", "sm_75"))]
    found = ct.profile_kernels(str(script), [rung.kernel for rung in able], [metric])
    assert found, "ncu counted nothing: see what is printed"
    return {rung.name: found[rung.kernel][metric] for rung in able}


@pytest.mark.parametrize("ladder", ["matmul", "gemm"])
def test_a_product_has_each_fma_once(tmp_path, ladder):
    n = 512
    for name, fmas in counted(tmp_path, ladder, {"m": n, "n": n, "k": n}, FMAS).items():
        # At most two more for each element of C, where alpha and beta come in.
        assert n**3 <= fmas <= n**3 + 2 * n**2, name


def test_a_sum_reads_each_sector_once(tmp_path):
    n = 1 << 20
    for name, sectors in counted(tmp_path, "reduction", {"n": n}, SECTORS).items():
        if name != "bulk":  # there a copy engine brings the data, and these units see none of it
            assert n / 8 <= sectors <= 1.02 * n / 8, name
