# ---
# jupyter:
#   cudatut:
#     title: {en: "Sharing one GPU: MPS", zh: "共享一块 GPU：MPS"}
#     requires: sm_75
#     timeout_s: 420
#     sizes:
#       ms: [50, 1]
#       rounds: [5, 1]
#       launches: [3, 1]
#       counts: [[2, 4], [2]]
#       portions: [[25, 50, 100], [100]]
# ---

# %% [markdown]
# Two and four processes with counted work, that fills a quarter, a half and all
# of the GPU: by turns, and as clients of an MPS daemon. First the daemon.

# %% served
from contextlib import ExitStack

import numpy as np

import cudatut as ct
from cudatut.book.memory.sharing.clients import (
    Job, WorkerError, calibrated, together, took_ms,
)  # fmt: skip
from cudatut.book.memory.sharing.daemon import Refused, serving

ms = 50  # of a kernel
launches = 3
rounds = 5
counts = (2, 4)
steps, sms = calibrated(ms)


def serves(daemon):
    """Raises Refused if a process that should be its client is none."""
    try:
        calibrated(1, daemon.env)
    except WorkerError as error:
        raise Refused(f"a client cannot start: {error}") from None
    if not daemon.ask("get_server_list"):
        raise Refused("the process ran without MPS: no server was started")


try:
    with serving() as daemon:
        serves(daemon)
    refused = ""
except Refused as error:
    refused = " ".join(f"{error}".replace("`", "'").split())[:200]
answer = f"no: `{refused}`" if refused else "yes"
ct.facts("MPS on this machine", {"it serves": answer})

# %% [markdown]
# Each measurement has a daemon of its own, which ends with it. Without MPS here,
# these columns stay empty.


# %% measured
def measured(job, processes, mps):
    """Milliseconds by round; None where this machine refuses MPS."""
    if mps and refused:
        return None
    with ExitStack() as stack:
        env = stack.enter_context(serving()).env if mps else None
        return took_ms([job] * processes, rounds, env)


def side_by_side(processes, share):
    """In times of one alone: the GPU has room for 1 / share of them."""
    return max(1, processes * share)


rows, spreads = {}, []
for name, share in (("a quarter", 1 / 4), ("a half", 1 / 2), ("all", 1)):
    job = Job("count", int(sms * share), steps, launches)
    alone = np.median(took_ms([job], rounds))
    for processes in counts:
        turns = measured(job, processes, mps=False)
        mps = measured(job, processes, mps=True)
        spreads += [np.ptp(one) / np.median(one) for one in (turns, mps) if one]
        rows[f"{processes} processes, {name}"] = {
            "by turns, predicted": processes,
            "by turns": float(np.median(turns) / alone),
            "MPS, predicted": side_by_side(processes, int(sms * share) / sms),
            "MPS": float(np.median(mps) / alone) if mps else None,
        }

# %% measured-table
ct.table("processes that share, in times of one alone", rows, corner="share")
ct.facts(
    "how far the rounds lie apart",
    {"most minus least, at worst": (100 * float(max(spreads)), "%")},
)

# %% [markdown]
# A limit for each client: a part of the SMs. With a job that fills the GPU, the
# time is expected to grow as the part shrinks.

# %% portions
portions = (25, 50, 100)  # per cent
portioned = {}
full = Job("count", sms, steps, launches)
where = Job("where", 4 * sms, 100_000)
alone = np.median(took_ms([full], rounds))
for portion in portions:
    row = {
        "SMs, told": None,
        "SMs, used": None,
        "time, predicted": 100 / portion,
        "time": None,
    }
    if not refused:
        with serving() as daemon:
            limit = {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": f"{portion}"}
            env = daemon.env | limit
            row["time"] = float(np.median(took_ms([full], rounds, env)) / alone)
            (found,) = together([where], env=env)
            row["SMs, told"] = found.rounds[0]["sms"]
            row["SMs, used"] = len(found.rounds[0]["where"])
    portioned[f"{portion} %"] = row

# %% portions-table
ct.table("a client with a part of the threads", portioned, corner="part")

# %% [markdown]
# What does a fault of one process do to its neighbor? One works for a while, the
# other writes to address 0. Without MPS, and as clients of one daemon.


# %% fault
def neighbor(env=None):
    """What the working process says while the other one fails."""
    work = Job("count", sms // 4, steps, launches=5)
    outcomes = together([work, Job("stray", amount=2)], env=env)
    failed = bool(outcomes[1].error)
    error = outcomes[0].error
    return failed, f"`{error}`" if error else "all steps made"


if ct.tool.running():
    failed, without, shared = True, "-", "-"  # a fault would be a finding
else:
    failed, without = neighbor()
    shared = "-"
    if not refused:
        with serving() as daemon:
            _, shared = neighbor(daemon.env)

# %% fault-facts
ct.facts(
    "beside a process that fails",
    {
        "the other one failed": failed,
        "its neighbor, without MPS": without,
        "its neighbor, both clients": shared,
    },
)
