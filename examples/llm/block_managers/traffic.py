"""Requests of random tokens, and what a block manager computes of them.

for name, requests in kinds().items():
    computed = serve(PrefixBlocks(4000, 16), requests)
"""

from itertools import count

import cudatut as ct
from cudatut.book.llm.engine.blocks import NaiveBlocks
from cudatut.book.llm.engine.prefix import PrefixBlocks
from cudatut.book.llm.engine.radix import RadixBlocks

MANAGERS = {
    "free list": NaiveBlocks,
    "hashes": PrefixBlocks,
    "radix tree": RadixBlocks,
}
VOCAB = 49152
INSTRUCTION = 200  # tokens that all requests of the first kind begin with

Requests = list[tuple[list[int], list[int]]]  # prompts and their answers

_seeds = count()


def some(tokens: int, vocab: int = VOCAB) -> list[int]:
    """So many random tokens, other ones each time."""
    return ct.rng(next(_seeds)).integers(0, vocab, tokens).tolist()


# --8<-- [start:kinds]
def kinds() -> dict[str, Requests]:
    """Three kinds of traffic: one instruction for all, conversations of five
    turns, and requests that share nothing.
    """
    instruction = some(INSTRUCTION)
    alike, talks, apart = [], [], []
    for i in range(40):
        own = 20 + 3 * i
        alike.append((instruction + some(own), some(30)))
        apart.append((some(INSTRUCTION + own), some(30)))
    for user in range(8):
        before = []
        for _ in range(5):
            prompt, answer = before + some(30 + 7 * user), some(50)
            talks.append((prompt, answer))
            before = prompt + answer
    return {
        "one instruction for all": alike,
        "conversations": talks,
        "nothing shared": apart,
    }


# --8<-- [end:kinds]


# --8<-- [start:serve]
def serve(blocks: NaiveBlocks, requests: Requests) -> list[int]:
    """One request after the other; tokens computed of each prompt."""
    computed = []
    for number, (prompt, answer) in enumerate(requests):
        cached = blocks.begin(number, prompt)
        computed.append(len(prompt) - cached)
        blocks.reserve(number, cached, len(prompt))
        blocks.commit(number, prompt, len(prompt))
        text = prompt + answer
        for stop in range(len(prompt) + 1, len(text)):  # decoding
            blocks.reserve(number, stop - 1, stop)
            blocks.commit(number, text, stop)
        blocks.release(number)
    blocks.check()
    return computed


# --8<-- [end:serve]
