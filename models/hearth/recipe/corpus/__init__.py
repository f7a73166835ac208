"""The corpus of the embedded model: an endless, seeded stream of documents, every sentence of it made by this
folder.
"""

import random

from chat import BEGIN, END, render

from . import api, chats, facts, json_answers, stories, sums, talk, tools, world
from .words import casual


def single(maker):
    """A document maker from a (question, answer) maker."""

    def make(rng):
        asked, said = maker(rng)
        messages = [{"role": "user", "content": casual(rng, asked)}, {"role": "assistant", "content": said}]
        if rng.random() < 0.12:
            messages.insert(0, {"role": "system", "content": rng.choice(chats.HELPFUL)})
        return render(messages)

    return make


def plain_story(rng):
    """Running text; at times behind the begin-of-text token, for servers that put one there."""
    return (BEGIN if rng.random() < 0.2 else "") + stories.plain(rng) + END


def plain_fact(rng):
    """A few facts as running text, for completion without a template."""
    return " ".join(facts.make(rng)[1] for _ in range(rng.randrange(1, 4))) + END


def tool_chat(rng):
    chat = tools.make(rng)
    messages = chat["messages"]
    if rng.random() < 0.2:
        messages = [{"role": "system", "content": rng.choice(chats.HELPFUL)}] + messages
    return render(messages, chat["tools"])


def chat(rng):
    return render(chats.make(rng))


def long_chat(rng):
    """Up to the context length: what the model learns about far positions, it learns here."""
    return render(chats.recall(rng, rng.randrange(10, 70)))


MAKERS = {  # share of documents
    plain_story: 8,
    single(stories.make): 12,
    single(stories.tiny): 2,
    single(stories.poem): 1.5,
    plain_fact: 3,
    single(facts.make): 18,
    single(world.make): 13,
    single(sums.make): 34,
    single(talk.make): 14,
    single(talk.long_echo): 3,
    single(api.make): 8,
    single(json_answers.make): 14,
    tool_chat: 15,
    chat: 14,
    long_chat: 2.5,
}


def document(seed):
    """The document of this seed, with its special tokens written out; equal seeds give equal text."""
    rng = random.Random(seed)
    return rng.choices(list(MAKERS), list(MAKERS.values()))[0](rng)
