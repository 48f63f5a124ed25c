"""cuDNN's convolution through PyTorch, as contestants of `ct.bench`.

    runs = cudnn_conv.contestants(images, weights, results, pad=(1, 1))

cuDNN is asked for its fastest algorithm (`benchmark=True`), without TF32, and
reads and writes the memory of our arrays.
"""

from typing import Any

from cudatut.book.rivals import torch_rival

Pair = tuple[int, int]  # down, right


def contestants(
    images: Any,
    weights: Any,
    results: Any,
    stride: Pair = (1, 1),
    pad: Pair = (0, 0),
    dilation: Pair = (1, 1),
    groups: int = 1,
    tries: int = 10,
) -> dict[str, Any]:
    """ "cuDNN", called directly, and "PyTorch", whose conv2d may choose a kernel
    of its own (for one channel a group) and returns new memory.

    Arrays on the GPU: fp32 as [image][channel][row][column] and
    [filter][channel][row][column], or bf16 (as uint16) with the channel last.
    tries: how many algorithms cuDNN's benchmark may time, 0 for all. What
    stands for a rival that cannot run is as in `torch_rival`.
    """
    given = {"stride": stride, "padding": pad, "dilation": dilation}

    def cudnn(torch: Any, *tensors: Any) -> Any:
        x, w, y = prepared(torch, tries, *tensors)
        call = torch.ops.aten.cudnn_convolution.out
        rest = given | {
            "groups": groups,
            "benchmark": True,
            "deterministic": False,
            "allow_tf32": False,
        }
        return lambda: call(x, w, **rest, out=y)

    def pytorch(torch: Any, *tensors: Any) -> Any:
        x, w, _ = prepared(torch, tries, *tensors)
        conv2d = torch.nn.functional.conv2d
        return lambda: conv2d(x, w, **given, groups=groups)

    arrays = images, weights, results
    return {
        "cuDNN": torch_rival.rival(cudnn, *arrays, vendor=True),
        "PyTorch": torch_rival.rival(pytorch, *arrays),
    }


def prepared(torch: Any, tries: int, *tensors: Any) -> list[Any]:
    """The tensors as PyTorch counts their axes, and its settings for cuDNN,
    which are the whole process's."""
    cudnn = torch.backends.cudnn
    cudnn.benchmark, cudnn.benchmark_limit = True, tries
    cudnn.allow_tf32 = False
    # The same memory, in PyTorch's words channels_last.
    last = tensors[0].dtype == torch.bfloat16
    return [x.permute(0, 3, 1, 2) if last else x for x in tensors]


def version() -> int | None:
    """cuDNN's, such as 91900; None where PyTorch has none."""
    try:
        import torch

        return torch.backends.cudnn.version()
    except (ImportError, OSError):
        return None
