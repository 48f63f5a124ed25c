"""How long a pipeline takes, by arithmetic alone.

    stages = {"in": (20.0, 0.002), "kernel": (25.0, 0.002), "out": (20.0, 0.002)}
    predict(64, stages), best_count(stages)
    finish(depth_first(64), {"in": 0.31, "kernel": 0.39, "out": 0.31}, streams=4)

Of each stage: the time of all bytes, and what each chunk costs besides, in ms.
"""

from math import sqrt

STAGES = "in", "kernel", "out"


# --8<-- [start:predict]
def predict(count, stages, streams=4):
    """ms of the pipeline with so many chunks."""
    chunk = {name: ms / count + cost for name, (ms, cost) in stages.items()}
    through = sum(chunk[name] for name in STAGES)  # one chunk, all its stages
    turn = max(*chunk.values(), through / streams)
    return through + (count - 1) * turn


# --8<-- [end:predict]


# --8<-- [start:best]
def best_count(stages):
    """The number of chunks with which `predict` is least."""
    slowest, cost = max(stages.values())
    together = sum(stages[name][0] for name in STAGES)
    return max(sqrt(max(together - slowest, 0) / cost), 1)


# --8<-- [end:best]


def depth_first(chunks):
    """All that becomes of a chunk, then the next one: (stage, chunk)."""
    return [(stage, c) for c in range(chunks) for stage in STAGES]


def breadth_first(chunks):
    """One stage of all chunks, then the next one: (stage, chunk)."""
    return [(stage, c) for stage in STAGES for c in range(chunks)]


# --8<-- [start:finish]
def finish(order, cost, streams):
    """When the last operation ends. cost: of one chunk, by stage. Chunk c is in
    stream c % streams; an engine does one thing at a time.
    """
    engine, stream = {}, {}
    for stage, c in order:
        start = max(engine.get(stage, 0), stream.get(c % streams, 0))
        engine[stage] = stream[c % streams] = start + cost[stage]
    return max(stream.values())


# --8<-- [end:finish]
