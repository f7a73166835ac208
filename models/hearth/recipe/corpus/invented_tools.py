"""Invented tools: a verb and a noun with one or two parameters, so that calls are read off the definition and not
remembered.
"""

import json

from .tables import DAYS, MONTHS
from .tool import Use, define, style
from .words import a, cap, city, person, word

NOUNS = """invoice ticket order photo report robot account sensor camera package file task note user song page list
room table printer plant device door server product letter contract recipe project badge parcel""".split()
VERBS = """find open close delete create update start stop check print lock share rename copy move book cancel clean
repair order show load save send""".split()
# parameter: (type, description, how the question says it, a value)
SLOTS = {
    "name": ("string", "The name", "named {}", lambda rng: rng.choice((person, word))(rng).capitalize()),
    "id": (
        "string",
        "The id",
        "with the id {}",
        lambda rng: rng.choice("ABCDEFGHKMPRSTXZ") + str(rng.randrange(10, 999)),
    ),
    "number": ("integer", "The number", "number {}", lambda rng: rng.randrange(1, 1000)),
    "color": (
        "string",
        "The color",
        "in {}",
        lambda rng: rng.choice(["red", "blue", "green", "yellow", "white", "black", "pink"]),
    ),
    "city": ("string", "The city", "in {}", city),
    "person": ("string", "The person", "for {}", person),
    "date": (
        "string",
        "The date",
        "on {}",
        lambda rng: rng.choice(DAYS + [f"{m} {rng.randrange(1, 29)}" for m in MONTHS]),
    ),
    "folder": ("string", "The folder", "in the folder {}", word),
    "user": ("string", "The user", "of user {}", word),
    "count": ("integer", "How many times", "{} times", lambda rng: rng.randrange(2, 30)),
    "size": ("string", "The size", "in size {}", lambda rng: rng.choice(["small", "medium", "large"])),
    "title": ("string", "The title", "with the title {}", lambda rng: word(rng).capitalize() + " " + word(rng)),
    "priority": ("string", "The priority", "with {} priority", lambda rng: rng.choice(["low", "normal", "high"])),
}
CLASHES = [{"city", "color", "size", "folder"}, {"name", "id", "number", "title"}]


def made_up(rng, verb=None, noun=None):
    """A tool that the model has not seen, with one or two parameters and at times one more that it does not need."""
    verb, noun = (
        verb or rng.choice(VERBS),
        noun or (rng.choice(NOUNS) if rng.random() < 0.8 else word(rng).replace(" ", "_")),
    )
    keys = rng.sample(list(SLOTS), rng.choice((1, 1, 2)))
    if any(len(clash & set(keys)) > 1 for clash in CLASHES):
        keys = keys[:1]
    values = {key: SLOTS[key][3](rng) for key in keys}
    about = rng.choice(
        [
            f"{cap(verb)} {a(noun)}",
            f"{cap(verb)} the {noun}",
            f"{cap(verb)} {a(noun)}.",
            f"Use this to {verb} {a(noun)}",
            f"This function can {verb} {a(noun)}.",
        ]
    )
    optional = [key for key in rng.sample(list(SLOTS), 1) if key not in keys and rng.random() < 0.3]
    listed = rng.sample(keys + optional, len(keys + optional))
    tool = define(
        rng,
        style(rng, verb, noun),
        about,
        {key: SLOTS[key][:2] for key in listed},
        [key for key in listed if key in keys],
    )
    values = {key: values[key] for key in listed if key in keys}
    said = " ".join(SLOTS[key][2].format(values[key]) for key in keys)
    result = rng.choice(["ok", "done", json.dumps({"status": "ok"}), json.dumps({"success": True})])
    return Use(
        tool,
        f"{verb} {noun}",
        rng.choice(
            [
                f"{cap(verb)} the {noun} {said}.",
                f"Please {verb} the {noun} {said}.",
                f"Can you {verb} the {noun} {said}?",
                f"{cap(verb)} {a(noun)} {said}.",
            ]
        ),
        values,
        result,
        f"Done: {verb} the {noun} {said}.",
    )
