"""What a step of the model costs: FLOPs and bytes of each operation, from the
sizes in its header.

    for operation in operations(config, new=1, seen=1024):
        print(operation.name, operation.flops, operation.moved)
"""

import math
from typing import NamedTuple

from cudatut.book.llm.model.checkpoint import Checkpoint, Config

KV = 2  # bytes of a number in the KV cache, and of one between operations


# --8<-- [start:operation]
class Operation(NamedTuple):
    """Of all layers together. weights: numbers that it multiplies by. stored:
    their bytes. moved: bytes of all else that it reads and writes.
    """

    name: str
    flops: int
    weights: int
    stored: int
    moved: int

    @property
    def bytes(self) -> int:
        return self.stored + self.moved


# --8<-- [end:operation]


# --8<-- [start:operations]
def operations(
    config: Config,
    new: int,
    seen: int,
    sequences: int = 1,
    stored: dict[str, int] | None = None,
) -> list[Operation]:
    """The operations of a step in which each of `sequences` gets `new` tokens
    and has `seen` with them; logits of the last token of each.

    stored: bytes of each weight tensor by name; default: 2 per number. Counted
    is what has to be done: each weight and each key is read once, and a token
    is multiplied with the keys that it sees, its own among them.
    """
    c, n = config, new * sequences
    q, kv = c.heads * c.head_dim, c.kv_heads * c.head_dim
    pairs = sequences * sum(range(seen - new + 1, seen + 1))
    shapes = c.shapes()
    found = []

    def add(name, flops, reads, writes, *tensors):
        """Numbers read and written besides the weights in these tensors."""
        names = [k for k in shapes if k.split(".")[-1] in tensors]
        weights = sum(math.prod(shapes[k]) for k in names)
        nbytes = sum(stored[k] for k in names) if stored else 2 * weights
        row = name, flops, weights, nbytes, KV * (reads + writes)
        found.append(Operation(*row))

    def product(name, inputs, outputs, *tensors, added=0):
        of_one = 2 * inputs * outputs + added
        moved = n * (inputs + added), n * outputs
        each = (flops * c.layers for flops in (n * of_one, *moved))
        add(name, *each, *tensors)

    norms = (2 * c.layers + 1) * n * c.dim
    add("embedding", 0, n * c.dim, n * c.dim)
    add("norms", 4 * norms, norms, norms, "attention_norm", "ffn_norm", "norm")
    product("q, k, v", c.dim, q + 2 * kv, "q", "k", "v")
    turned = c.layers * n * (q + kv)
    add("rotation", 3 * turned, turned, turned)
    cached = c.layers * sequences * seen * 2 * kv
    mixed = c.layers * n * q
    scores = c.layers * c.heads * pairs
    add("attention", (4 * c.head_dim + 4) * scores, mixed + cached, mixed)
    product("attention output", q, c.dim, "o", added=c.dim)
    product("gate, up", c.dim, 2 * c.ffn, "gate", "up")
    wide = c.layers * n * c.ffn
    add("gate x up", 5 * wide, 2 * wide, wide)
    product("down", c.ffn, c.dim, "down", added=c.dim)
    head = "embedding" if c.tied else "head"
    flops = 2 * sequences * c.dim * c.vocab
    add("logits", flops, sequences * c.dim, sequences * c.vocab, head)
    return found


# --8<-- [end:operations]


def stored(checkpoint: Checkpoint) -> dict[str, int]:
    """Bytes of each tensor in the file, by our name."""
    names = checkpoint.config.shapes()
    return {name: checkpoint.blocks(name).nbytes for name in names}


def total(steps: list[Operation]) -> Operation:
    """All of them as one."""
    _, *columns = zip(*steps)
    return Operation("all", *map(sum, columns))
