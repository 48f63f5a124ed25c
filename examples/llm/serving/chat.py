# ---
# jupyter:
#   cudatut:
#     title: {en: "A conversation", zh: "一次对话"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 180
#     sizes: {longest: [4096, 4], most: [200, 1], short: [8, 1]}
# ---

# %% [markdown]
# What `python -m cudatut run llm/chat` does, with three questions. Where there
# is no GPU, this is what it replays.

# %% setup
from time import perf_counter

import cudatut as ct
from cudatut.book.llm.chat import Chat, show
from cudatut.book.llm.model.fetch import fetch
from cudatut.book.llm.engine.sampler import GREEDY

questions = (
    "What is the capital of France?",
    "And what is it famous for? Answer in one sentence.",
    "Write a haiku about a fast GPU.",
)
poems = ct.paths.examples_dir() / "llm/model/tang.gguf"
model = poems if ct.tool.running() else fetch()
if ct.tool.running():  # a sanitizer watches our small model
    questions = ("春眠不觉晓，",)

# %% warm-up
longest = 4096  # tokens of a conversation
begin = perf_counter()
chat = Chat(model)
chat.warm_up(longest)
ct.facts(
    "before the first answer",
    {
        "graphs that were recorded": chat.engine.backend.recorded,
        "time": (perf_counter() - begin, "s"),
    },
)

# %% conversation
most = 200  # tokens of an answer
for question in questions:
    print(f"you: {question}")
    show(chat, question, most, GREEDY)

# %% [markdown]
# Is every answer the one of the reference, in NumPy and fp32? The first
# question, token by token.

# %% reference
from cudatut.book.llm.model.reference import Reference, greedy

short = 8  # tokens
again = Chat(model)
"".join(again.ask(questions[0], short))
expected = greedy(
    Reference(chat.checkpoint),
    again.last.prompt,
    len(again.last.output),
)
same = [a == b for a, b in zip(again.last.output, expected)]
ct.facts(
    "beside the reference",
    {
        "tokens": len(same),
        "first tokens that are the same": [*same, False].index(False),
    },
)

# %% [markdown]
# Our own model, which has learned nothing but poems, on the CPU.

# %% poems
tang = Chat(poems, cpu=True)
for line in ("春眠不觉晓，", "明月松间照，", "白日依山尽，"):
    poem = line + "".join(tang.ask(line, max_tokens=42))
    print(poem)
