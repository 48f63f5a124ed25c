# ---
# jupyter:
#   cudatut:
#     title: {en: "Sharing one GPU: MPS", zh: "共享一块 GPU：MPS"}
#     requires: sm_75
#     timeout_s: 300
#     sizes:
#       ms: [50, 1]
#       rounds: [3, 1]
#       portions: [[25, 50], [50]]
# ---

# %% [markdown]
# Two and four processes with counted work on a quarter, a half or all of the
# SMs: by turns, and as clients of an MPS daemon.

# %% plans
import numpy as np

import cudatut as ct
from cudatut.book.memory.sharing.clients import (
    Job, WorkerError, calibrated, together, took_ms, without_error,
)  # fmt: skip
from cudatut.book.memory.sharing.daemon import Refused, serving

ms = 50  # of a kernel
rounds = 3
steps, sms = calibrated(ms)
shares = {  # in blocks
    "a quarter": sms // 4,
    "a half": sms // 2,
    "all": sms,
    "all, two blocks each": 2 * sms,  # of 1024 threads on each SM
}
jobs = {name: Job("count", blocks, steps) for name, blocks in shares.items()}
wanted = (
    (2, "a quarter"),
    (4, "a quarter"),
    (4, "a half"),
    (2, "all"),
    (2, "all, two blocks each"),
)
alone = {name: [job] for name, job in jobs.items()}
shared = {
    f"{processes} processes, {name}": [jobs[name]] * processes
    for processes, name in wanted
}
portions = (25, 50)  # per cent


def medians(plans, env=None):
    """Milliseconds of each plan."""
    times = took_ms(plans, rounds, env)
    return {name: float(np.median(some)) for name, some in times.items()}


def neighbor(env=None):
    """Whether a process failed, and what the one that worked says."""
    work = Job("count", sms // 4, steps, launches=5)
    pair = [work, Job("stray", amount=2)]
    try:
        one, other = together(pair, env=env, limit_s=20)
    except WorkerError as error:  # it waits for a GPU that gives no answer
        return True, f"`{error}`"
    return bool(
        other.error
    ), f"`{one.error}`" if one.error else "all steps made"


# %% turns
turns = medians(alone | shared)

# %% [markdown]
# The same with a daemon, which ends with the block. Then a limit for a client: a
# part of the SMs. Last a fault: one process works for a while, the other one
# writes to address 0. Where the machine refuses MPS, it says why.


# %% served
def serves(daemon):
    """Raises Refused if a process that should be its client is none."""
    try:
        calibrated(1, daemon.env)
    except WorkerError as error:
        raise Refused(f"a client cannot start: {error}") from None
    if not daemon.ask("get_server_list"):
        raise Refused("the process ran without MPS: no server was started")


served, limited, both_clients, refused = {}, {}, "-", ""
full = [jobs["all"]]
where = Job("where", 4 * sms, 100_000)
try:
    with serving() as daemon:
        serves(daemon)
        served = medians(shared, daemon.env)
        for portion in portions:
            env = daemon.env | {
                "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": f"{portion}"
            }
            (process,) = together(full, [where], rounds=1 + rounds, env=env)
            first, *some = without_error(process)
            took = np.median([turn["ms"] for turn in some[:rounds]])
            limited[portion] = float(took), some[-1]
        _, both_clients = neighbor(daemon.env)
except Refused as error:
    refused = " ".join(f"{error}".replace("`", "'").split())[:200]

# %% answer
reason = {"because": f"`{refused}`"} if refused else {}
ct.facts(
    "MPS on this machine",
    {"it serves": "no" if refused else "yes", **reason},
)

# %% measured-table
rows = {}
for (processes, name), plan in zip(wanted, shared, strict=True):
    mps = served.get(plan)
    rows[plan] = {
        "by turns, predicted": processes,
        "by turns": turns[plan] / turns[name],
        "MPS, predicted": max(1, processes * min(1, shares[name] / sms)),
        "MPS": mps / turns[name] if mps else None,
    }
ct.table("processes that share, in times of one alone", rows, corner="share")

# %% portions-table
rows = {}
for portion in portions:
    took, found = limited.get(portion, (None, {}))
    rows[f"{portion} %"] = {
        "SMs, told": found.get("sms"),
        "SMs, used": len(found["where"]) if found else None,
        "time, predicted": 100 / portion,
        "time": took / turns["all"] if took else None,
    }
ct.table("a client with a part of the threads", rows, corner="part")

# %% [markdown]
# And the same fault without MPS.

# %% fault-facts
failed, without = True, "-"
if not ct.tool.running():  # to a tool the fault would be a finding
    failed, without = neighbor()
ct.facts(
    "beside a process that fails",
    {
        "the other one failed": "yes" if failed else "no",
        "its neighbor, without MPS": without,
        "its neighbor, both clients": both_clients,
    },
)
