"""The program that talks to a model, without a GPU."""

import re
import sys

import numpy as np
import pytest

TEXT = "春眠不觉晓"


@pytest.fixture
def chat(tiny_path):
    from cudatut.book.llm.chat import Chat

    return Chat(tiny_path, cpu=True)


def test_an_answer_comes_in_pieces_and_is_that_of_the_reference(chat, checkpoint):
    from cudatut.book.llm.model.reference import Reference, greedy

    said = "".join(chat.ask(TEXT, max_tokens=8))
    prompt = [chat.tokenizer.bos, *chat.tokenizer.encode(TEXT)]
    tokens = greedy(Reference(checkpoint), prompt, 8)
    stop = next((i for i, t in enumerate(tokens) if t in chat.tokenizer.stop), len(tokens))
    assert said == chat.tokenizer.decode(tokens[: stop + 1])
    assert chat.messages == [("user", TEXT), ("assistant", said)]
    assert "tokens; first after" in chat.speed()


def test_the_second_time_its_beginning_is_found(chat):
    long = TEXT * 8
    first = "".join(chat.ask(long, max_tokens=4))
    assert chat.last.cached == 0
    assert "".join(chat.ask(long, max_tokens=4)) == first and chat.last.cached >= 32
    assert " found]" in chat.speed()


def test_a_warm_up_is_no_part_of_the_conversation(chat):
    chat.warm_up()
    assert chat.messages == []


@pytest.mark.parametrize("longest", [4096, 2048, 700])
def test_after_a_warm_up_no_step_of_a_conversation_is_new(chat, longest):
    """On the GPU a step with new sizes takes long: none is left for the answers."""
    from cudatut.book.llm.backends.step_shape import arrange
    from cudatut.book.llm.engine.arrivals import Clock, ModelBackend
    from cudatut.book.llm.engine.engine import Engine
    from cudatut.book.llm.engine.prefix import PrefixBlocks
    from cudatut.book.llm.engine.request import Request
    from cudatut.book.llm.engine.scheduler import Scheduler
    from cudatut.book.llm.kernels.attention import flash

    class Shapes(ModelBackend):
        def run(self, batch):
            shapes.add(arrange(batch, flash.tile_for(64), False, True)[0])
            return super().run(batch)

    shapes, blocks = set(), PrefixBlocks(256, 16)
    scheduler = Scheduler(blocks, max_running=1, context=4096)
    chat.engine = engine = Engine(Shapes(Clock(), 256, 16), scheduler, ahead=True)
    chat.warm_up(longest)
    known, rng = set(shapes), np.random.default_rng(0)
    for number in range(20):
        said: list[int] = []
        while True:  # questions and answers, until there is no room for one
            asked, answer = rng.integers(9, 1 + longest // 2), int(rng.integers(1, longest // 4))
            said += rng.integers(0, 9999, asked).tolist()
            if len(said) + answer > longest:
                break
            engine.add(request := Request(number, said, answer))
            while engine.busy:
                engine.step()
            said += request.output
    assert shapes == known and len(known) < 50


@pytest.mark.parametrize("step", [1, 2, 7])
def test_lines_are_broken_between_words(step):
    from cudatut.book.llm.chat import wrapped

    text = "a few words " * 20 + "\n\n- x " + "long" * 12 + " end\n"
    pieces = (text[i : i + step] for i in range(0, len(text), step))
    shown = "".join(wrapped(pieces, 20))
    assert shown.split() == text.split() and shown.endswith("end\n")
    assert all(len(line.rstrip()) <= 20 or "long" in line for line in shown.splitlines())
    assert "".join(wrapped(iter([TEXT]), 3)) == TEXT


def test_what_the_program_says(tiny_path, monkeypatch, capsys):
    from cudatut.book.llm import chat

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["chat", *words])
        chat.main()
        return capsys.readouterr().out

    model = "--cpu", "--model", str(tiny_path)
    shown = run(*model, "--", "--prompt", TEXT, "--max-tokens", "3")
    assert shown.startswith(TEXT) and "tokens; first after" in shown
    with pytest.raises(SystemExit, match="has never seen 雪"):
        run(*model, "--prompt", "雪")
    with pytest.raises(SystemExit, match="temperature"):
        run(*model, "--prompt", TEXT, "--temperature", "-1")
    with pytest.raises(SystemExit, match="no model file"):
        run("--cpu", "--model", "/nowhere.gguf", "--prompt", TEXT)


def test_a_conversation_goes_on_after_a_text_that_is_unknown(tiny_path, monkeypatch, capsys):
    from cudatut.book.llm import chat

    typed = iter(["雪", TEXT, ""])
    monkeypatch.setattr("builtins.input", lambda _: next(typed))
    monkeypatch.setattr(
        sys, "argv", ["chat", "--cpu", "--model", str(tiny_path), "--max-tokens", "2"]
    )
    chat.main()
    shown = capsys.readouterr().out
    assert "has never seen 雪" in shown and "tokens; first after" in shown


class Talking:
    """Our model of poems, in a conversation: its tokenizer writes the turns one after the other."""

    chats = True

    def __init__(self, tokenizer):
        self.inner = tokenizer

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def chat(self, messages):
        parts = [self.inner.encode(text) for _, text in messages]
        return [self.bos, *(token for part in parts for token in part)]


@pytest.fixture(scope="module")
def tang():
    from cudatut import paths

    return paths.examples_dir() / "llm/model/tang.gguf"


def test_a_conversation_forgets_its_oldest_turns_and_says_so(tang):
    """Fifty questions; the context ends at the fifth or so. Each is answered as the reference answers its prompt."""
    from cudatut.book.llm.chat import Chat
    from cudatut.book.llm.model.reference import Reference, greedy

    chat, rng = Chat(tang, cpu=True, context=64), np.random.default_rng(0)
    chat.tokenizer = Talking(chat.tokenizer)
    scheduler, names = chat.engine.scheduler, chat.tokenizer.names
    letters = [n for n in names if len(n) == 1][:500]
    model, forgot, found, asked = Reference(chat.checkpoint), [], 0, []
    for number in range(50):
        question = "".join(rng.choice(letters, int(rng.integers(3, 9))))
        most = 300 if number in (20, 40) else int(rng.choice([1, 2]))
        asked.append(question)
        answer = "".join(chat.ask(question, most))
        request = chat.last
        assert request.output and len(request.prompt) + len(request.output) <= 64
        assert len(request.output) <= most and not chat.engine.busy
        if number in (19, 49):
            assert request.output == greedy(model, request.prompt, len(request.output))
        # Nothing but the last turns is kept, in pairs, and this one is whole.
        assert [q for q, _ in chat.messages] == ["user", "assistant"] * (len(chat.messages) // 2)
        kept = [text for _, text in chat.messages[::2]]
        assert kept == asked[-len(kept) :] and chat.messages[-1][1] == answer
        notes = [note for note in chat.notes if "the oldest" in note]
        forgot += notes
        found += request.cached > len(request.prompt) // 2
        scheduler.blocks.check()
    assert forgot[0].startswith("the context of 64 tokens is full: the oldest ")
    assert 5 < len(forgot) < 35, "more is forgotten than need be: not at every question"
    assert found > 10, "the beginning of most prompts is found"


def test_an_answer_ends_where_the_context_does(tang):
    from cudatut.book.llm.chat import Chat
    from cudatut.book.llm.engine.scheduler import Refused

    chat = Chat(tang, cpu=True, context=64)
    rest = list(chat.ask("春眠不觉晓，" * 9, 300))
    assert rest and len(chat.last.prompt) + len(chat.last.output) <= 64
    stopped = chat.last.output[-1] in chat.tokenizer.stop
    assert ("the answer ends here: the context is full" in chat.notes) != stopped
    for text, most in (("春眠不觉晓，" * 30, 300), (TEXT, 0)):
        with pytest.raises(Refused):
            list(chat.ask(text, most))
    assert "".join(chat.ask(TEXT, 3)) and chat.notes == []


def test_who_stops_reading_ends_the_answer(tang):
    from cudatut.book.llm.chat import Chat
    from cudatut.book.llm.engine.request import State

    chat = Chat(tang, cpu=True, context=256)
    for ahead in (False, True):
        chat.engine.ahead = ahead
        pieces = chat.ask(TEXT, 40)
        said = "".join(next(pieces) for _ in range(4))
        pieces.close()
        assert chat.last.state is State.CANCELLED and not chat.engine.busy
        assert chat.messages[-1] == ("assistant", said) and len(said) >= 3
        assert chat.engine.scheduler.blocks.free == chat.engine.scheduler.blocks.count
        assert len("".join(chat.ask(TEXT, 5))) >= 4, "the next one is answered"


def test_a_failed_step_ends_an_answer_and_not_the_conversation(tang):
    from cudatut.book.llm.chat import Chat
    from cudatut.book.llm.engine.engine import StepFailed

    chat = Chat(tang, cpu=True, context=256)
    run, calls = chat.engine.backend.run, []

    def broken(batch):
        calls.append(batch)
        if len(calls) == 3:
            raise MemoryError("out of memory")
        return run(batch)

    chat.engine.backend.run = broken
    with pytest.raises(StepFailed, match="out of memory"):
        list(chat.ask(TEXT, 9))
    assert chat.messages == [] and "".join(chat.ask(TEXT, 5)) and len(chat.messages) == 2


def test_control_c_ends_the_answer_and_twice_the_program(tang, monkeypatch, capsys):
    import os
    import signal

    from cudatut.book.llm import chat
    from cudatut.book.llm.backends.numpy_backend import NumpyBackend

    typed = iter([TEXT, TEXT, ""])
    monkeypatch.setattr("builtins.input", lambda _: next(typed))
    run, calls, pressed = NumpyBackend.run, [], {5}

    def interrupted(self, batch):
        calls.append(batch)
        for _ in range(len(calls) in pressed):
            os.kill(os.getpid(), signal.SIGINT)
        return run(self, batch)

    monkeypatch.setattr(NumpyBackend, "run", interrupted)
    before = signal.getsignal(signal.SIGINT)
    words = ["chat", "--cpu", "--model", str(tang), "--max-tokens", "30"]
    monkeypatch.setattr(sys, "argv", words)
    chat.main()
    shown = capsys.readouterr().out
    first, second = (int(n) for n in re.findall(r"(\d+) tokens; first after", shown))
    assert first < 6 < second, "the first answer was ended, the second was not"
    assert signal.getsignal(signal.SIGINT) is before
    calls.clear()
    monkeypatch.setattr(sys, "argv", [*words, "--prompt", TEXT])
    with pytest.raises(SystemExit) as caught:
        chat.main()
    assert caught.value.code == 130
    with chat.CtrlC() as ctrl_c:
        os.kill(os.getpid(), signal.SIGINT)
        assert ctrl_c.pressed
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_the_same_seed_gives_the_same_answer(tang):
    from cudatut.book.llm.chat import Chat
    from cudatut.book.llm.engine.sampler import Sampling

    chat = Chat(tang, cpu=True, context=256)

    def said(how):
        return "".join(chat.ask(TEXT, 20, how))

    seeded, other = Sampling(1.0, seed=5), Sampling(1.0)
    assert said(seeded) == said(seeded) and said(other) != said(other)
