"""The program that talks to a model, without a GPU."""

import sys

import numpy as np
import pytest

TEXT = "春眠不觉晓"


@pytest.fixture
def chat(tiny_path):
    from chat import Chat

    return Chat(tiny_path, cpu=True)


def test_an_answer_comes_in_pieces_and_is_that_of_the_reference(chat, checkpoint):
    from reference import Reference, greedy

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
    import flash
    from arrivals import Clock, ModelBackend
    from engine import Engine
    from prefix import PrefixBlocks
    from request import Request
    from scheduler import Scheduler
    from step_shape import arrange

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
    from chat import wrapped

    text = "a few words " * 20 + "\n\n- x " + "long" * 12 + " end\n"
    pieces = (text[i : i + step] for i in range(0, len(text), step))
    shown = "".join(wrapped(pieces, 20))
    assert shown.split() == text.split() and shown.endswith("end\n")
    assert all(len(line.rstrip()) <= 20 or "long" in line for line in shown.splitlines())
    assert "".join(wrapped(iter([TEXT]), 3)) == TEXT


def test_what_the_program_says(tiny_path, monkeypatch, capsys):
    import chat

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
    import chat

    typed = iter(["雪", TEXT, ""])
    monkeypatch.setattr("builtins.input", lambda _: next(typed))
    monkeypatch.setattr(
        sys, "argv", ["chat", "--cpu", "--model", str(tiny_path), "--max-tokens", "2"]
    )
    chat.main()
    shown = capsys.readouterr().out
    assert "has never seen 雪" in shown and "tokens; first after" in shown
