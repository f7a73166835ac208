"""Conversations with tools: one to four are listed and asked for in turn; calls, reports, and plain answers."""

import json

from . import api, facts, sums, talk
from .acting_tools import light, message, play, remind, timer
from .asking_tools import bare, calculate, clock, money, search, translate, weather
from .invented_tools import VERBS, made_up
from .lookup_tools import lookup
from .tool import Use
from .words import CITIES, casual, city

MAKERS = {
    weather: 5,
    lookup: 5,
    clock: 2,
    calculate: 2,
    message: 2,
    timer: 1.5,
    light: 1.5,
    money: 1.5,
    translate: 1.5,
    search: 2,
    play: 1,
    remind: 1.5,
    made_up: 12,
    bare: 1.2,
}


def draw(rng):
    return rng.choices(list(MAKERS), list(MAKERS.values()))[0](rng)


ALIKE = [
    {"math", "add"},
    {"math", "subtract"},
    {"math", "multiply"},
    {"time", "get time"},
    {"weather", "get temperature"},
    {"message", "get user"},
]  # not listed side by side


def draw_several(rng, count):
    """Up to `count` uses of tools with different names and topics."""
    uses, topics, names = [], set(), set()
    for _ in range(count):
        use = draw(rng)
        if uses and rng.random() < 0.3 and " " in uses[0].topic and uses[0].topic.split()[0] in VERBS:
            verb, noun = uses[0].topic.split()  # a near miss of the first
            use = made_up(rng, verb, None) if rng.random() < 0.5 else made_up(rng, None, noun)
        name = use.tool["function"]["name"]
        if use.topic not in topics and name not in names:
            uses.append(use)
            topics.add(use.topic)
            names.add(name)
        topics = topics.union(*(group for group in ALIKE if use.topic in group))
    return uses or [weather(rng)]


def call(use):
    return {"type": "function", "function": {"name": use.tool["function"]["name"], "arguments": use.arguments}}


def assistant(text):
    return {"role": "assistant", "content": text}


def user(text):
    return {"role": "user", "content": text}


def again(rng, use):
    """The same tool once more, for another place named in half a sentence."""
    (key, _), place = next(iter(use.arguments.items())), city(rng)
    return [
        user(rng.choice([f"And in {place}?", f"What about {place}?", f"And {place}?"])),
        {"role": "assistant", "content": "", "tool_calls": [call(Use(use.tool, use.topic, "", {key: place}, "", ""))]},
    ]


def both(rng, use):
    """Two calls in one answer."""
    (key, first), second = next(iter(use.arguments.items())), rng.choice(CITIES)
    other = Use(use.tool, use.topic, "", {key: second}, use.result, "")
    asked = user(f"What is the weather in {first} and {second}?")
    return [asked, {"role": "assistant", "content": "", "tool_calls": [call(use), call(other)]}]


def one_call(rng, use, last):
    """The turns around one call; the last of a chat may stop at the call, or go on to another place."""
    if last and use.topic == "weather" and len(use.arguments) == 1 and rng.random() < 0.12:
        return both(rng, use)
    turns = [user(casual(rng, use.asked)), {"role": "assistant", "content": "", "tool_calls": [call(use)]}]
    if last and rng.random() < 0.5:
        return turns
    turns += [{"role": "tool", "content": use.result}, assistant(use.said)]
    if last and use.topic in ("weather", "time") and len(use.arguments) == 1 and rng.random() < 0.5:
        return turns + again(rng, use)
    if rng.random() < 0.15:
        turns += [user(rng.choice(["Thank you!", "Thanks"])), assistant("You are welcome!")]
    return turns


NO_TOOL = "I cannot do that. None of my tools fits."
PLAIN = [talk.greeting, talk.fixed, facts.make, facts.make, api.make, talk.joke]


def make(rng):
    """{messages, tools}: one to four questions about the listed tools, some that no tool fits, some that need none."""
    uses = draw_several(rng, rng.choice((1, 2, 2, 3, 4)))
    absent = uses.pop() if len(uses) > 1 and rng.random() < 0.3 else None
    tools = rng.sample([use.tool for use in uses], len(uses))
    arithmetic = any("number" in json.dumps(tool) or "alculat" in json.dumps(tool) for tool in tools)
    waiting = rng.sample(uses, len(uses))
    messages = []
    count = rng.choice((1, 2, 2, 3, 3, 4))
    for i in range(count):
        roll, last = rng.random(), i == count - 1
        if roll < 0.65 and waiting:
            messages += one_call(rng, waiting.pop(), last)
        elif roll < 0.85 and absent:
            messages += [user(casual(rng, absent.asked)), assistant(NO_TOOL)]
            absent = None
        else:
            asked, said = rng.choice(PLAIN if arithmetic else PLAIN + [sums.plain])(rng)
            messages += [user(casual(rng, asked)), assistant(said)]
    return {"tools": tools, "messages": messages}
