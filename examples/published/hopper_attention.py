"""What the part tensor publishes: attention by wgmma and the TMA."""

from cudatut.book.tensor.attention import flash_hopper

__all__ = ["flash_hopper"]
