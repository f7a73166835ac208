"""Conversations with tools: one to four are listed, of which at most one fits; calls, results put in words, and
plain answers.
"""

import json

from . import api, facts, sums, talk
from .invented_tools import VERBS, made_up
from .acting_tools import light, message, play, remind, timer
from .asking_tools import bare, calculate, clock, money, search, translate, weather
from .tool import Use
from .words import CITIES, casual, city

MAKERS = {
    weather: 5,
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


def others(rng, use, count):
    """Up to `count` tools about other topics than `use`."""
    tools, topics, names = [], {use.topic}, {use.tool["function"]["name"]}
    for _ in range(count):
        other = draw(rng)
        if len(use.topic.split()) == 2 and use.topic.split()[0] in VERBS and rng.random() < 0.35:
            verb, noun = use.topic.split()  # a near miss
            other = made_up(rng, verb, None) if rng.random() < 0.5 else made_up(rng, None, noun)
        name = other.tool["function"]["name"]
        if (
            other.topic not in topics
            and name not in names
            and (use.topic, other.topic) not in (("time", "get time"), ("get time", "time"))
        ):
            tools.append(other.tool)
            topics.add(other.topic)
            names.add(name)
    return tools


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


NO_TOOL = "I cannot do that. None of my tools fits."


def make(rng):
    """{messages, tools}: a question with its call, often its result and report, or a question that needs no tool."""
    use = draw(rng)
    tools = others(rng, use, rng.choice((0, 0, 1, 1, 2, 3)))
    roll = rng.random()
    if roll < 0.14 and tools:
        return {"tools": tools, "messages": [user(casual(rng, use.asked)), assistant(NO_TOOL)]}
    tools = rng.sample(tools + [use.tool], len(tools) + 1)
    if roll < 0.30:
        pool = [talk.greeting, talk.fixed, facts.make, facts.make, api.make, talk.joke] + (
            [sums.plain] if use.topic != "math" and not any("number" in json.dumps(t) for t in tools) else []
        )
        asked, said = rng.choice(pool)(rng)
        return {"tools": tools, "messages": [user(casual(rng, asked)), assistant(said)]}
    messages = [user(casual(rng, use.asked)), {"role": "assistant", "content": "", "tool_calls": [call(use)]}]
    if use.topic == "weather" and rng.random() < 0.1 and len(use.arguments) == 1:
        (key, first), second = next(iter(use.arguments.items())), rng.choice(CITIES)
        messages = [
            user(f"What is the weather in {first} and {second}?"),
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    call(use),
                    {
                        "type": "function",
                        "function": {"name": use.tool["function"]["name"], "arguments": {key: second}},
                    },
                ],
            },
        ]
        return {"tools": tools, "messages": messages}
    if rng.random() < 0.25:  # something was said before
        messages = [
            message
            for asked, said in (rng.choice([talk.greeting, talk.fixed, facts.make])(rng),)
            for message in (user(asked), assistant(said))
        ] + messages
    if rng.random() < 0.45:
        messages += [{"role": "tool", "content": use.result}, assistant(use.said)]
        if use.topic in ("weather", "time") and len(use.arguments) == 1 and rng.random() < 0.5:
            messages += again(rng, use)
        elif rng.random() < 0.35:
            messages += rng.choice(
                [[user("Thank you!"), assistant("You are welcome!")], [user("Thanks"), assistant("You are welcome!")]]
            )
    return {"tools": tools, "messages": messages}
