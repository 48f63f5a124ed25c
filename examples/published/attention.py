"""What the part llm publishes: attention by mma.sync, and what its launchers ask of rows."""

from cudatut.book.llm.kernels import rows
from cudatut.book.llm.kernels.attention import flash

__all__ = ["flash", "rows"]
