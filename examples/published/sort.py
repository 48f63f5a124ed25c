"""What the part primitives publishes: its radix sort of keys, and of pairs."""

from cudatut.book.primitives.sort import sort

__all__ = ["sort"]
