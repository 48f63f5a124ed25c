"""What the part gemm publishes: its ladder of products in fp32."""

from cudatut.book.gemm.ladder import ladder

__all__ = ["ladder"]
