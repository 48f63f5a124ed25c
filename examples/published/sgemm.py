"""What the part gemm publishes: its product in fp32, C = alpha op(A) op(B) + beta C."""

from cudatut.book.gemm.kernels import sgemm

__all__ = ["sgemm"]
