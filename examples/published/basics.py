"""What the part basics publishes: its ladder of products, with the problem that later parts solve, too."""

from cudatut.book.basics.ladder import ladder

__all__ = ["ladder"]
