"""When the copies and kernels of a launch began and ended, as CUPTI saw it.

for chunk, row in enumerate(spans(launch)): print(row["kernel"])
"""

import cudatut as ct
from cudatut.gpu import cupti

_MEMCPY = 1  # CUPTI_ACTIVITY_KIND_MEMCPY
SLACK_MS = 0.002  # of the notes of copies beside those of kernels
_COPIES = {1: "in", 2: "out"}  # CUPTI_ACTIVITY_MEMCPY_KIND_HTOD and _DTOH


def spans(launch):
    """For each chunk, stage -> (begin, end) in ms after the first begin.

    The launch runs twice, and the second time is told. Stages are told apart by
    what they are; chunks by the order in which they were enqueued, since every
    chunk has the same stages. None under a tool, and without cupti-python.
    Raises ToolMissing where that is missing while an example is recorded.
    """
    if ct.tool.running() or cupti.listening():
        return None
    found = []

    def hear(records):
        for one in records:
            kernel = one.kind == cupti.KERNEL
            stage = "kernel" if kernel else _COPIES.get(one.copy_kind)
            found.append((one.correlation_id, stage, one.start, one.end))

    try:
        with cupti.listen([cupti.KERNEL, _MEMCPY], hear):
            launch()
            ct.synchronize()
            launch()
    except ct.ToolMissing as error:
        if ct.tool.recording():
            raise
        print(error)
        return None
    return in_chunks(found)


def in_chunks(notes):
    """The second half of the calls by chunk; notes: (number of the call, stage,
    start, end), times in ns.
    """
    calls = {}  # a call may have several notes
    for number, stage, start, end in sorted(notes):
        _, first, last = calls.get(number, (stage, start, end))
        calls[number] = stage, min(first, start), max(last, end)
    second = list(calls.values())[len(calls) // 2 :]
    begin = min(start for _, start, _ in second)
    rows = {}
    for stage, start, end in second:
        rows.setdefault(stage, []).append(
            ((start - begin) / 1e6, (end - begin) / 1e6)
        )
    counts = {stage: len(found) for stage, found in rows.items()}
    if len(set(counts.values())) > 1 or None in counts:
        raise ct.CudatutError(f"not the same stages for each chunk: {counts}")
    return [dict(zip(rows, row)) for row in zip(*rows.values())]


def broken(rows):
    """Chunks of which a stage began before the one before it had ended."""
    return sum(
        row["kernel"][0] < row["in"][1] - SLACK_MS
        or row["out"][0] < row["kernel"][1] - SLACK_MS
        for row in rows
    )


def busy(rows):
    """ms during which none, one, two or three kinds of work went on."""
    marks = sorted(
        (at, step, stage)
        for row in rows
        for stage, (begin, end) in row.items()
        for at, step in ((begin, 1), (end, -1))
    )
    running = dict.fromkeys(rows[0], 0)
    spent, last = [0.0] * (len(running) + 1), marks[0][0]
    for at, step, stage in marks:
        spent[sum(count > 0 for count in running.values())] += at - last
        running[stage] += step
        last = at
    return spent
