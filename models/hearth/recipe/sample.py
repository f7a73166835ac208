"""Greedy answers of a checkpoint to a fixed list of prompts, and its scores on tasks that can be checked: python3
sample.py WORK_DIR

Scores compare with what the corpus generator itself would answer, on documents of a stream that training never sees.
"""

import json
import os
import random
import sys

import torch

from chat import END, render
from corpus import facts, json_answers, sums, tools
from model import Llama, Shape
from tokenizer import Tokenizer

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_current_weather",
        "description": "Get the current weather for a city",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "description": "The name of the city"}},
            "required": ["city"],
        },
    },
}
PROMPTS = [
    "Hello!",
    "Who are you?",
    "Why is the sky blue?",
    "What is the capital of France?",
    "What is 17 + 25?",
    "What is 7 * 8?",
    "Tell me a story about a brave little fox.",
    "Write a poem about the sea.",
    "What does /api/tags do?",
    "What is keep_alive?",
    "Make up a person. Answer in JSON with the keys name and age.",
    "What is the weather in Toronto?",
    "Count to ten.",
    "My name is Bilbo. What is my name?",
    "Tell me a joke.",
    "Name three fruits.",
    "Which is bigger, a cat or a horse?",
]


class Sampler:
    """A loaded checkpoint; `write` continues a text greedily."""

    def __init__(self, folder):
        saved = torch.load(os.path.join(folder, "checkpoint.pt"), map_location="cpu")
        self.tokenizer = Tokenizer.load(os.path.join(folder, "tokenizer.json"))
        self.model = Llama(Shape(**saved["shape"]))
        self.model.load_state_dict(saved["model"])
        self.state = saved["state"]

    @torch.no_grad()
    def write(self, text, limit=256):
        """The continuation up to the end token, which is left out; '...' marks one that reached `limit` tokens."""
        ids, out = self.tokenizer.encode(text), []
        while len(out) < limit:
            token = int(self.model.logits(self.model(torch.tensor([ids + out]))[0, -1]).argmax())
            if self.tokenizer.tokens[token] == END:
                return self.tokenizer.decode(out)
            out.append(token)
        return self.tokenizer.decode(out) + " ..."

    def answer(self, messages, tools=None):
        return self.write(render(messages, tools, generate=True))


def tool_score(sampler, count):
    """(right, wrong examples): the first answer of tool conversations, compared as text."""
    right, wrong = 0, []
    for i in range(count):
        chat = tools.make(random.Random(f"score-{i}"))
        expected = render(chat["messages"][1:2])[len("<|im_start|>assistant\n") : -len(END + "\n")]
        got = sampler.answer(chat["messages"][:1], chat["tools"])
        is_call = "<tool_call>" in expected
        if got == expected or (not is_call and "<tool_call>" not in got):
            right += 1
        else:
            wrong.append((chat["messages"][0]["content"], expected, got))
    return right, wrong


def exact_score(sampler, make, count, key=lambda text: text):
    right, wrong = 0, []
    for i in range(count):
        asked, expected = make(random.Random(f"score-{i}"))
        got = sampler.answer([{"role": "user", "content": asked}])
        if key(got) == key(expected):
            right += 1
        else:
            wrong.append((asked, expected, got))
    return right, wrong


def main(folder, count=60):
    count = int(count)
    sampler = Sampler(folder)
    torch.set_num_threads(1)
    print(f"step {sampler.state['step']}, {sampler.state['tokens']} tokens")
    for prompt in PROMPTS:
        print(f"> {prompt}\n{sampler.answer([{'role': 'user', 'content': prompt}])}\n")
    print(f"> Once upon a time (plain)\n{sampler.write('Once upon a time')}\n")
    asked = "What is the weather today in Toronto?"
    print(f"> {asked} (tools)\n{sampler.answer([{'role': 'user', 'content': asked}], [WEATHER])}\n")
    for name, (right, wrong) in {
        "tools": tool_score(sampler, count),
        "sums": exact_score(sampler, sums.plain, count),
        "facts": exact_score(sampler, facts.make, count),
        "json": exact_score(sampler, json_answers.extract, count),
    }.items():
        print(f"{name}: {right} of {count}")
        for example in wrong[:6]:
            print("   ", json.dumps(example))


if __name__ == "__main__":
    main(*sys.argv[1:])
