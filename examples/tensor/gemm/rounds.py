"""How many workers, blocks or clusters, compute tiles in turn."""

import cudatut as ct


def workers(tiles: int, most: int) -> int:
    """As few as need no more rounds than the `most` workers that fit would.

    1024 tiles take 16 rounds with 66 workers, and with 64, of which none waits
    in the last round. Nobody waits longer for it: the number of tiles one after
    the other is the same. And with full rounds, the tiles of a round keep to
    the same rows and columns to its end.
    """
    return ct.cdiv(tiles, ct.cdiv(tiles, most))
