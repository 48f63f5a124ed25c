"""What the part llm publishes: attention by mma.sync, attention in float64 to compare with, what launchers ask of rows."""

from cudatut.book.llm.kernels import rows
from cudatut.book.llm.kernels.attention import exact, flash

__all__ = ["exact", "flash", "rows"]
