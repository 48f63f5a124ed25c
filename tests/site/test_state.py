"""What the build of one language knows: which results of a cell there are, by GPU."""

from cudatut.site.state import State


def test_a_cell_has_the_results_of_each_gpu_that_ran_it(project):
    project.book.slim("start/add")
    found = State().gpus("start/add", "bench")
    assert [gpu for gpu, _ in found] == ["NVIDIA Test", "NVIDIA Other"]
    assert all(any(one["kind"] == "benchmark" for one in results) for _, results in found)
    assert State().gpus("start/add", "other") == []
