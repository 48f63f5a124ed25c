"""Talk to a language model that runs on the kernels of this book.

    python -m cudatut run llm/chat                            # a conversation
    python -m cudatut run llm/chat --prompt "Why is the sky blue?"
    python examples/llm/chat.py --cpu --prompt "..."          # NumPy: slow
    python examples/llm/chat.py --tang --prompt 春眠不觉晓    # our own model

The answer appears as it is generated, and below it the tokens per second. The
model is SmolLM2-135M-Instruct; it is downloaded once, 98 MB, into your cache.
It is small: it talks well and knows little. Ctrl-C ends an answer. When the
conversation has outgrown the model's context, its oldest turns are forgotten.
"""

import argparse
import signal
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from time import perf_counter

import cudatut as ct
from cudatut.book.llm.model import tokens
from cudatut.book.llm.model.checkpoint import Checkpoint
from cudatut.book.llm.engine.engine import Engine, StepFailed
from cudatut.book.llm.model.fetch import fetch
from cudatut.book.llm.backends.numpy_backend import NumpyBackend
from cudatut.book.llm.engine.prefix import PrefixBlocks
from cudatut.book.llm.engine.request import Request, State
from cudatut.book.llm.engine.sampler import GREEDY, Sampling
from cudatut.book.llm.engine.scheduler import Refused, Scheduler

# What `run` replays where there is no GPU.
REPLAY = "llm/serving_chat"
BLOCK = 16
# What --model takes, and chapters say so.
MODELS = (
    "--model takes a GGUF of the architecture 'llama' with the tokenizer of "
    "SmolLM2 or one of characters, tensors in F32, F16, BF16, Q8_0 or Q4_1, and "
    "none besides those of a plain Llama (no RoPE factors, no biases). On a GPU "
    "its heads have 64 or 128 elements."
)


# --8<-- [start:chat]
class Chat:
    """A conversation. cpu: NumPy computes, in fp32. context: most tokens.

    Raises CheckpointError, ToolMissing, NoGpuError, UnsupportedGpuError.
    """

    def __init__(self, path: Path, cpu: bool = False, context: int = 4096):
        self.checkpoint = Checkpoint.open(path)
        self.tokenizer = tokens.load(self.checkpoint)
        context = min(context, self.checkpoint.config.context)
        size = ct.cdiv(context, BLOCK), BLOCK
        if cpu:
            backend = NumpyBackend(self.checkpoint, *size)
        else:
            ct.require("sm_80")
            from cudatut.book.llm.backends.gpu_backend import GpuBackend

            backend = GpuBackend(
                self.checkpoint, *size, max_tokens=512, max_requests=1
            )
        # What was said before is found again by its hashes: of a second
        # question only the new tokens are computed.
        blocks = PrefixBlocks(*size)
        scheduler = Scheduler(blocks, max_running=1, context=context)
        self.engine = Engine(backend, scheduler, ahead=not cpu)
        self.messages: list[tuple[str, str]] = []
        self.last = Request(0, [0], 1)  # the last request, with its times
        self.began = 0.0  # when it was asked
        self.notes: list[str] = []  # what its reader should know besides
        self._numbers = count(1)  # of requests

    def prompt(self, text: str) -> list[int]:
        """Tokens of the conversation with this question; a model that has not
        learned to chat continues the text alone. Raises TextError.
        """
        if not self.tokenizer.chats:
            return self.tokenizer.alone(text)
        return self.tokenizer.chat([*self.messages, ("user", text)])

    def ask(
        self, text: str, max_tokens: int = 300, sampling: Sampling = GREEDY
    ) -> Iterator[str]:
        """The answer, a piece after each step, maybe an empty one; whoever
        closes the iterator ends the answer. Shorter than max_tokens if the
        context is full. Raises TextError, Refused, StepFailed, ValueError.
        """
        tokenizer, engine, self.notes = self.tokenizer, self.engine, []
        prompt = self.recall(text, max_tokens)
        room = max(1, engine.scheduler.context - len(prompt))
        request = Request(
            next(self._numbers), prompt, min(max_tokens, room),
            stop=tokenizer.stop, sampling=sampling,
        )  # fmt: skip
        self.began = engine.clock()
        engine.add(request)
        self.last, stream = request, tokenizer.stream()
        try:
            while engine.busy:
                new = [t for output in engine.step() for t in output.tokens]
                yield "".join(map(stream.push, new))
            yield stream.end()
        finally:
            if request.id in engine.scheduler.requests:
                engine.cancel(request.id)
            while engine.busy:  # a step may be under way
                engine.step()
            if request.output and request.state is not State.FAILED:
                answer = tokenizer.decode(request.output)
                self.messages += [("user", text), ("assistant", answer)]
        cut = request.output[-1] not in request.stop
        if cut and request.max_tokens < max_tokens:
            self.notes.append("the answer ends here: the context is full")

    def recall(self, text: str, max_tokens: int) -> list[int]:
        """The prompt of this question, after as much of the conversation as
        leaves room for an answer: the oldest turns are forgotten.

        Some more than need be, so that the next prompts begin as this one does:
        what they share need not be computed.
        """
        context, forgotten = self.engine.scheduler.context, 0
        spare = context // 4
        prompt, answer = self.prompt(text), min(max_tokens, spare)
        if len(prompt) + answer <= context:
            return prompt
        while self.messages and len(prompt) + answer > context - spare:
            del self.messages[:2]  # a question and its answer
            forgotten += 1
            prompt = self.prompt(text)
        if forgotten:
            self.notes.append(
                f"the context of {context} tokens is full: the oldest "
                f"{forgotten} of the turns are forgotten"
            )
        return prompt

    def speed(self) -> str:
        """Tokens per second of the last answer, after its first token."""
        times, cached = self.last.times, self.last.cached
        if not times:
            return "[no token]"
        first = 1e3 * (times[0] - self.began)
        said = f"{len(times)} tokens; first after {first:.1f} ms"
        if len(times) > 1:
            rate = (len(times) - 1) / max(1e-9, times[-1] - times[0])
            said += f", then {rate:.0f} per second"
        if cached:
            said += f"; {cached} of {len(self.last.prompt)} found"
        return f"[{said}]"

    def warm_up(self, longest: int | None = None) -> None:
        """Compile the kernels and record the graphs of all steps that a
        conversation of up to `longest` tokens needs; default: of any one.
        """
        self.tokenizer.stream()  # lists the bytes of all tokens, once
        scheduler = self.engine.scheduler
        longest = min(longest or scheduler.context, scheduler.context)
        # Sizes of a step are rounded, so these prompts bring all of them: what
        # is computed last of a prompt, behind what was computed before.
        budget, most = scheduler.token_budget, longest - 2
        lengths = {
            min(old + new, most)
            for old in (0, *doubled(budget, most), most)
            for new in doubled(2, budget)
        }
        for length in sorted(lengths):
            self._rehearse(length)

    def _rehearse(self, length: int) -> None:
        """A prompt of so many tokens, and a step after it."""
        number = next(self._numbers)
        # Each has tokens of its own: what is found would not be computed.
        token = number % self.checkpoint.config.vocab
        self.engine.add(Request(number, [token] * length, 2))
        while self.engine.busy:
            self.engine.step()


# --8<-- [end:chat]


def doubled(first: int, last: int) -> list[int]:
    """first, twice that, and so on up to `last`."""
    count = max(0, (last // first).bit_length())
    return [first << i for i in range(count)]


def wrapped(pieces: Iterator[str], width: int = 76) -> Iterator[str]:
    """The text of pieces, word by word, on lines of `width` characters."""
    column, word = 0, ""
    for piece in pieces:
        for character in piece:
            if not character.isspace():
                word += character
                continue
            if column and column + len(word) > width:
                yield "\n"
                column = 0
            yield word + character
            column = 0 if character == "\n" else column + len(word) + 1
            word = ""
    yield "\n" + word if column and column + len(word) > width else word


class CtrlC:
    """While it is entered, Ctrl-C is only noted: an answer can end between two
    steps, not within one. Whoever presses it again ends the program.
    """

    def __init__(self):
        self.pressed = False

    def __enter__(self) -> "CtrlC":
        self._before = signal.signal(signal.SIGINT, self._press)
        return self

    def __exit__(self, *_) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _press(self, *_) -> None:
        if self.pressed:
            raise KeyboardInterrupt
        self.pressed = True


def until(
    pieces: Iterator[str], stopped: Callable[[], bool] | None
) -> Iterator[str]:
    """The pieces that come until somebody says stop."""
    for piece in pieces:
        yield piece
        if stopped and stopped():
            pieces.close()
            return


def show(
    chat: Chat,
    text: str,
    max_tokens: int,
    sampling: Sampling,
    stopped: Callable[[], bool] | None = None,
) -> None:
    """Print an answer as it comes, its speed, and what its reader should know;
    a text that is continued is printed with it. stopped: whether to end it.
    """
    chat.prompt(text)  # raises before anything is printed
    if not chat.tokenizer.chats:
        print(text, end="", flush=True)
    answer = until(chat.ask(text, max_tokens, sampling), stopped)
    for piece in wrapped(answer):
        print(piece, end="", flush=True)
    print(f"\n{chat.speed()}", flush=True)
    for note in chat.notes:
        print(f"[{note}]", flush=True)


def prepare(chat: Chat) -> None:
    """Warm up, and say so: it takes a while."""
    print("compiling kernels, recording graphs ...", end="\r", file=sys.stderr)
    begin = perf_counter()
    chat.warm_up()
    seconds = perf_counter() - begin
    count = chat.engine.backend.recorded
    print(
        f"[{count} graphs of steps, recorded in {seconds:.1f} s]    ",
        file=sys.stderr,
    )


def questions(prompt: str | None) -> Iterator[str]:
    """The one of the command line, or what is typed until the end of input."""
    if prompt is not None:
        yield prompt
        return
    print("Ask something; an empty line ends the conversation.")
    while True:
        try:
            text = input("you: ").strip()
        except EOFError:
            print()
            return
        if not text:
            return
        yield text


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], epilog=MODELS
    )
    add = parser.add_argument
    add("--prompt", help="one question; default: a conversation")
    add("--max-tokens", type=int, default=300, metavar="N", help="of an answer")
    add("--temperature", type=float, default=0.0, help="0: no randomness")
    add("--top-p", type=float, default=1.0, help="least probability kept")
    add("--seed", type=int, help="the same one: the same answer")
    add("--model", type=Path, metavar="FILE", help="another GGUF, see below")
    add("--tang", action="store_true", help="our model, which writes poems")
    add("--cpu", action="store_true", help="without a GPU, slowly")
    # `run llm/chat -- --prompt ...` may hand over the two dashes, too.
    options = parser.parse_args([word for word in sys.argv[1:] if word != "--"])
    sampling = Sampling(
        options.temperature, top_p=options.top_p, seed=options.seed
    )
    ours = ct.paths.examples_dir() / "llm/model/tang.gguf"
    cpu = options.cpu or options.tang  # which is small enough for NumPy
    try:
        sampling.check()
        if not cpu:
            ct.activate()  # before 98 MB are downloaded in vain
        path = options.model or (ours if options.tang else fetch())
        chat = Chat(path, cpu)
        if not cpu:
            prepare(chat)
        for text in questions(options.prompt):
            try:
                with CtrlC() as ctrl_c:
                    how = options.max_tokens, sampling
                    show(chat, text, *how, lambda: ctrl_c.pressed)
            except (tokens.TextError, Refused, StepFailed) as error:
                if options.prompt is not None:
                    raise
                print(error)
            if ctrl_c.pressed and options.prompt is not None:
                raise SystemExit(130)
    except ct.NoGpuError as error:
        raise SystemExit(
            f"{error}\nWith --cpu, NumPy computes: slowly."
        ) from None
    except (ct.CudatutError, ValueError) as error:
        raise SystemExit(str(error)) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
