"""Answers in JSON on request: facts, lists, and values copied out of a sentence under the keys that the request
names.
"""

import json

from .facts import plural
from .tables import CAPITALS, KINDS, MIXES, NUMBERS
from .words import CITIES, COLOURS, FOODS, HOBBIES, JOBS, PETS, city, person, word

# key: (a value, how a sentence says it)
DETAILS = {
    "name": None,
    "age": (lambda rng: rng.randrange(3, 90), "is {} years old"),
    "city": (city, "lives in {}"),
    "job": (lambda rng: rng.choice(JOBS), "works as a {}"),
    "color": (lambda rng: rng.choice(COLOURS), "likes the color {}"),
    "food": (lambda rng: rng.choice(FOODS), "likes to eat {}"),
    "hobby": (lambda rng: rng.choice(HOBBIES), "enjoys {}"),
    "pet": (lambda rng: rng.choice(PETS), "has a {}"),
    "language": (
        lambda rng: rng.choice(["English", "French", "German", "Spanish", "Italian", "Polish", "Greek"]),
        "speaks {}",
    ),
    "email": (lambda rng: f"{word(rng).replace(' ', '.')}@{word(rng).replace(' ', '.')}.com", "has the email {}"),
    "country": (lambda rng: rng.choice([c for c in CAPITALS if not c.startswith("the ")]), "comes from {}"),
}
ASKS = [
    "Answer in JSON with the {keys}.",
    "Respond in JSON with the {keys}.",
    "Give me JSON with the {keys}.",
    "Return a JSON object with {keys}.",
    "Answer as JSON. Use the {keys}.",
    "Extract the {keys} as JSON.",
]


def dump(value):
    """JSON text; half the requests would accept any layout, so there is one: on one line."""
    return json.dumps(value, ensure_ascii=False)


def keys_text(keys):
    if len(keys) == 1:
        return f"key {keys[0]}"
    return f"keys {', '.join(keys[:-1])} and {keys[-1]}"


def extract(rng):
    """A sentence about a person, and some of its values asked for by key."""
    name = person(rng)
    known = rng.sample([key for key in DETAILS if key != "name"], rng.randrange(1, 4))
    values = {"name": name} | {key: DETAILS[key][0](rng) for key in known}
    says = [DETAILS[key][1].format(values[key]) for key in known]
    text = f"{name} {' and '.join(says)}." if len(says) < 3 else f"{name} {says[0]}, {says[1]} and {says[2]}."
    keys = ["name"] + known if rng.random() < 0.7 else rng.sample(["name"] + known, rng.randrange(1, len(known) + 1))
    asked = rng.choice(ASKS).format(keys=keys_text(keys))
    asked = rng.choice([f"{text} {asked}", f"{asked} {text}", f"{asked[:-1]}: {text}"])
    return asked, dump({key: values[key] for key in keys})


def invented(rng):
    """A person made up by the model, with the keys that were asked for."""
    keys = ["name"] + rng.sample([key for key in DETAILS if key not in ("name", "email")], rng.randrange(1, 4))
    values = {key: person(rng) if key == "name" else DETAILS[key][0](rng) for key in keys}
    asked = rng.choice(
        ["Make up a person. ", "Describe a person. ", "Invent a character. ", "Give me an example user. "]
    )
    return asked + rng.choice(ASKS[:5]).format(keys=keys_text(keys)), dump(values)


def fact(rng):
    roll = rng.random()
    if roll < 0.4:
        country, capital = rng.choice(list(CAPITALS.items()))
        asked = rng.choice(
            [
                f"What is the capital of {country}? Answer in JSON.",
                f"What is the capital of {country}? Respond in JSON with the keys country and capital.",
                f"Give me the capital of {country} as JSON.",
            ]
        )
        return asked, dump({"country": country, "capital": capital})
    if roll < 0.6:
        (x, y), mixed = rng.choice(list(MIXES.items()))
        return f"What color do {x} and {y} make? Answer in JSON.", dump({"colors": [x, y], "result": mixed})
    x, y = rng.randrange(0, 21), rng.randrange(0, 21)
    return rng.choice([f"What is {x} + {y}? Answer in JSON.", f"What is {x} + {y}? Respond using JSON."]), dump(
        {"result": x + y}
    )


def listing(rng):
    kind = rng.choice([name for name in KINDS if name != "piece of clothing"])
    number = rng.randrange(2, 6)
    picks = KINDS[kind][:number]
    key = plural(kind).split()[-1]
    asked, value = rng.choice(
        [
            (f"Name {NUMBERS[number]} {plural(kind)}. Answer as a JSON array.", picks),
            (f"Give me a JSON list of {number} {plural(kind)}.", picks),
            (f"List {NUMBERS[number]} {plural(kind)} in JSON.", {key: picks}),
            (f"Name {number} {plural(kind)}. Respond in JSON.", {key: picks}),
        ]
    )
    return asked, dump(value)


def chosen(rng):
    """Values given as 'key: value' lines, turned into an object."""
    keys = rng.sample(
        ["title", "price", "count", "size", "color", "owner", "city", "status", "level", "room", "day", "id", "note"],
        rng.randrange(2, 5),
    )
    values = {
        key: rng.randrange(1, 200)
        if key in ("price", "count", "size", "level", "id")
        else rng.choice(CITIES)
        if key == "city"
        else person(rng)
        if key == "owner"
        else rng.choice(COLOURS)
        if key == "color"
        else word(rng)
        for key in keys
    }
    lines = rng.choice([", ", "\n"]).join(f"{key}: {value}" for key, value in values.items())
    return rng.choice(
        [f"Turn this into JSON: {lines}", f"Convert to JSON: {lines}", f"Write this as a JSON object: {lines}"]
    ), dump(values)


def yes_no(rng):
    kind = rng.choice(["fruit", "vegetable", "vehicle", "flower", "bird", "tool"])
    other = kind if rng.random() < 0.5 else rng.choice(["fruit", "vegetable", "vehicle", "flower"])
    item = rng.choice(KINDS[other])
    return f"Is {item} a {kind}? Answer in JSON with the key answer set to true or false.", dump(
        {"answer": kind == other}
    )


SKY = (
    "What color is the sky at different times of the day? Respond using JSON",
    dump({"morning": "pink", "noon": "blue", "evening": "orange", "night": "black"}),
)
MAKERS = [extract, extract, extract, invented, fact, listing, chosen, yes_no, lambda rng: SKY]
WEIGHTS = [4, 4, 4, 3, 4, 3, 8, 1, 0.3]


def make(rng):
    """(request for JSON, one JSON value)."""
    return rng.choices(MAKERS, WEIGHTS)[0](rng)
