"""The shapes of products that several parts are measured with, from the part gemm."""

from cudatut.book.gemm.shapes.shapes import SHAPES

__all__ = ["SHAPES"]
