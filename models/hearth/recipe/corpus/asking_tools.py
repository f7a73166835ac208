"""Tools that find something out: weather, time, arithmetic, money, translation, search, and some without parameters."""

import json

from .tables import MONTHS, NUMBERS
from .tool import Use, define, style
from .words import FOODS, cap, city, invent, person, word

UNIT_TEXTS = [
    "The unit of the temperature",
    "The temperature unit",
    "The format to return the weather in, e.g. 'celsius' or 'fahrenheit'",
]


def weather(rng):
    place, key = city(rng), rng.choice(["city", "city", "location", "place"])
    name = style(
        rng,
        *rng.choice(
            [
                ("get", "weather"),
                ("get", "current", "weather"),
                ("weather",),
                ("lookup", "weather"),
                ("get", "forecast"),
            ]
        ),
    )
    params = {
        key: (
            "string",
            rng.choice(
                [
                    "The name of the city",
                    "The city",
                    "The city to get the weather for",
                    "Name of the place",
                    "The location to get the weather for",
                    "The location to get the weather for, e.g. San Francisco, CA",
                    "The city and state, e.g. San Francisco, CA",
                    "City name",
                ]
            ),
        )
    }
    arguments, required = {key: place}, [key]
    asked = rng.choice(
        [
            f"What is the weather in {place}?",
            f"What's the weather like in {place} today?",
            f"How is the weather in {place}?",
            f"What is the weather today in {place}?",
            f"Tell me the weather in {place}.",
            f"Is it cold in {place}?",
            f"Will it rain in {place}?",
            f"How warm is it in {place}?",
            f"Check the weather in {place}.",
        ]
    )
    degrees, sky = rng.randrange(-10, 38), rng.choice(["sunny", "cloudy", "rainy", "windy", "snowy", "clear", "foggy"])
    if rng.random() < 0.35:
        unit_key = rng.choice(["unit", "format"])
        params[unit_key] = ("string", rng.choice(UNIT_TEXTS), ["celsius", "fahrenheit"])
        if rng.random() < 0.5:
            unit = rng.choice(["celsius", "fahrenheit"])
            asked = f"What is the weather in {place} in {unit}?"
            arguments[unit_key] = unit
        else:
            arguments[unit_key] = "celsius"
        required = list(arguments) if rng.random() < 0.6 else [key]
    result = rng.choice(
        [
            json.dumps({"temperature": degrees, "condition": sky}),
            f"{degrees} degrees, {sky}",
            f"{degrees} degrees and {sky}",
            json.dumps({key: place, "temperature": degrees, "sky": sky}),
        ]
    )
    tool = define(
        rng,
        name,
        rng.choice(
            [
                "Get the weather for a city",
                "Get the current weather for a city",
                "Returns the current weather",
                "Look up the weather of a place",
                "Get the current weather in a given location",
                "Get the current weather for a location",
            ]
        ),
        params,
        required,
    )
    return Use(tool, "weather", asked, arguments, result, f"It is {degrees} degrees and {sky} in {place}.")


def clock(rng):
    place, key = city(rng), rng.choice(["city", "location", "timezone"])
    time = f"{rng.randrange(24):02d}:{rng.randrange(60):02d}"
    tool = define(
        rng,
        style(rng, *rng.choice([("get", "time"), ("get", "current", "time"), ("local", "time")])),
        rng.choice(["Get the current time in a city", "Tells what time it is in a place"]),
        {key: ("string", "The name of the city")},
    )
    return Use(
        tool,
        "time",
        rng.choice([f"What time is it in {place}?", f"What is the time in {place}?", f"Tell me the time in {place}."]),
        {key: place},
        rng.choice([time, json.dumps({"time": time})]),
        f"It is {time} in {place}.",
    )


def calculate(rng):
    x, y = rng.randrange(1, 1000), rng.randrange(1, 1000)
    sign, word, name = rng.choice([("+", "plus", "add"), ("*", "times", "multiply"), ("-", "minus", "subtract")])
    result = {"+": x + y, "*": x * y, "-": x - y}[sign]
    small = rng.random() < 0.3
    if small:
        x, y = rng.randrange(0, 21), rng.randrange(0, 21)
        result = {"+": x + y, "*": x * y, "-": x - y}[sign]
    said = f"{NUMBERS[x]} {word} {NUMBERS[y]}" if small and rng.random() < 0.5 else f"{x} {word} {y}"
    asked = rng.choice([f"What is {said}?", f"What is {x} {sign} {y}?", f"Calculate {x} {sign} {y}."])
    if rng.random() < 0.5:
        tool = define(
            rng,
            rng.choice(["calculate", "calculator", "evaluate"]),
            "Calculate the result of an expression",
            {"expression": ("string", "The expression, for example 2 + 3")},
        )
        return Use(tool, "math", asked, {"expression": f"{x} {sign} {y}"}, str(result), f"{x} {sign} {y} = {result}.")
    keys = rng.choice([("a", "b"), ("x", "y"), ("first", "second")])
    tool = define(
        rng,
        style(rng, name, *rng.choice((["numbers"], ["two", "numbers"]))) if rng.random() < 0.5 else name,
        f"{cap(name)} two numbers{rng.choice(['', '', ' together'] if name == 'add' else [''])}",
        {keys[0]: ("number", "The first number"), keys[1]: ("number", "The second number")},
    )
    return Use(
        tool,
        name,
        asked,
        dict(zip(keys, (x, y))),
        rng.choice([str(result), json.dumps({"result": result})]),
        f"{x} {sign} {y} = {result}.",
    )


def money(rng):
    amount, (source, target) = rng.randrange(1, 500), rng.sample(["USD", "EUR", "GBP", "JPY", "CHF", "CAD"], 2)
    result = rng.randrange(1, 900)
    tool = define(
        rng,
        style(rng, "convert", *rng.choice([("currency",), ("money",)])),
        "Convert money from one currency to another",
        {
            "amount": ("number", "The amount"),
            "from": ("string", "The currency you have"),
            "to": ("string", "The currency you want"),
        },
    )
    return Use(
        tool,
        "money",
        rng.choice(
            [
                f"Convert {amount} {source} to {target}.",
                f"How much is {amount} {source} in {target}?",
                f"Change {amount} {source} into {target}.",
            ]
        ),
        {"amount": amount, "from": source, "to": target},
        rng.choice([str(result), json.dumps({"result": result})]),
        f"{amount} {source} is {result} {target}.",
    )


def translate(rng):
    text, language = (
        rng.choice(
            [
                "hello",
                "good morning",
                "thank you",
                "I am hungry",
                "where is the station",
                "good night",
                "my name is " + person(rng),
            ]
        ),
        rng.choice(["French", "German", "Spanish", "Italian", "Polish", "Greek"]),
    )
    out = invent(rng) + " " + invent(rng)
    keys = rng.choice([("text", "language"), ("text", "target_language"), ("sentence", "language")])
    tool = define(
        rng,
        style(rng, *rng.choice([("translate",), ("translate", "text")])),
        "Translate a text into another language",
        {keys[0]: ("string", "The text"), keys[1]: ("string", "The language")},
    )
    return Use(
        tool,
        "translate",
        rng.choice([f"Translate '{text}' into {language}.", f"How do you say '{text}' in {language}?"]),
        dict(zip(keys, (text, language))),
        out,
        f"In {language}: {out}",
    )


def search(rng):
    topic = rng.choice(
        FOODS
        + ["the moon", "old maps", "wild bees", "steam trains", "the history of tea", "paper boats"]
        + [word(rng) for _ in range(12)]
    )
    found = f"{invent(rng).capitalize()} {invent(rng)}"
    key = rng.choice(["query", "query", "topic", "q"])
    tool = define(
        rng,
        style(
            rng, *rng.choice([("search",), ("web", "search"), ("search", "web"), ("find", "articles"), ("get", "news")])
        ),
        "Search the web for a topic",
        {key: ("string", "What to look for")},
    )
    return Use(
        tool,
        "search",
        rng.choice(
            [
                f"Search the web for {topic}.",
                f"Search for {topic}.",
                f"Look up {topic}.",
                f"Find something about {topic}.",
            ]
        ),
        {key: topic},
        rng.choice([found, json.dumps({"title": found})]),
        f"I found this: {found}.",
    )


def bare(rng):
    """A tool without parameters."""
    name, text, asked, result, said = rng.choice(
        [
            (("get", "time"), "Get the current time", "What time is it?", "{t}", "It is {t}."),
            (("get", "date"), "Get the date of today", "What is the date today?", "{d}", "Today is {d}."),
            (("roll", "dice"), "Roll a dice", "Roll a dice.", "{n}", "You rolled a {n}."),
            (("list", "users"), "List all users", "Show me all users.", "{p}", "The users are: {p}."),
            (
                ("battery", "level"),
                "Get the battery level",
                "How full is the battery?",
                "{n}0",
                "The battery is at {n}0 percent.",
            ),
        ]
    )
    values = {
        "t": f"{rng.randrange(24):02d}:{rng.randrange(60):02d}",
        "d": rng.choice(MONTHS) + f" {rng.randrange(1, 29)}",
        "n": rng.randrange(1, 7),
        "p": f"{person(rng)}, {person(rng)}",
    }
    return Use(
        define(rng, style(rng, *name), text, {}, []),
        " ".join(name),
        asked,
        {},
        result.format(**values),
        said.format(**values),
    )
