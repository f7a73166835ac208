"""Questions about small facts: animals, colours, days, months, capitals, opposites, plurals, sizes, counting,
letters.
"""

from .tables import (
    ANIMALS,
    CAPITALS,
    COLOUR_OF,
    CONTINENTS,
    COUNTS,
    DAYS,
    DEFINITIONS,
    FLYERS,
    KINDS,
    LANGUAGES,
    MIXES,
    MONTHS,
    NUMBERS,
    OPPOSITES,
    ORDINALS,
    PAST,
    PEOPLE,
    PLURAL,
    PLURALS,
    REASONS,
    SWIMMERS,
)
from .words import a, cap, join


def plural(noun):
    return PLURAL.get(noun, noun + "s")


def capital(rng):
    country, city = rng.choice(list(CAPITALS.items()))
    bare = country.removeprefix("the ")
    pairs = [(f"What is the capital of {country}?", f"The capital of {country} is {city}.")] * 3 + [
        (f"Which city is the capital of {country}?", f"{city} is the capital of {country}."),
        (f"Name the capital of {country}.", f"The capital of {country} is {city}."),
        (f"Do you know the capital of {country}?", f"Yes. The capital of {country} is {city}."),
        (f"What's {bare}'s capital?", f"The capital of {country} is {city}."),
    ]
    if city != "London":
        pairs.append((f"{city} is the capital of which country?", f"{city} is the capital of {country}."))
        pairs.append((f"Where is {city}?", f"{city} is in {country}."))
    return rng.choice(pairs)


def country(rng):
    if rng.random() < 0.4:
        name, language = rng.choice(list(LANGUAGES.items()))
        return rng.choice(
            [f"What language do people speak in {name}?", f"Which language is spoken in {name}?"]
        ), f"In {name} people speak {language}."
    continent = rng.choice(list(CONTINENTS))
    name = rng.choice(CONTINENTS[continent].split())
    return rng.choice(
        [f"Where is {name}?", f"On which continent is {name}?", f"Which continent is {name} in?"]
    ), f"{name} is in {continent}."


def animal(rng):
    name = rng.choice(list(ANIMALS))
    sound, young, home, food, kind, legs, _ = ANIMALS[name]
    many, one = plural(name), a(name)
    can_fly, can_swim = name in FLYERS, name in SWIMMERS
    other = rng.choice(["bird", "fish", "insect", "mammal", "reptile"])
    pairs = [
        (f"What sound does {one} make?", f"{cap(one)} {sound}."),
        (f"What is a baby {name} called?", f"A baby {name} is called {a(young)}."),
        (f"Where does {one} live?", f"{cap(one)} lives in {home}."),
        (f"What does {one} eat?", f"{cap(one)} eats {food}."),
        (f"What do {many} eat?", f"{cap(many)} eat {food}."),
        (f"Where do {many} live?", f"{cap(many)} live in {home}."),
        (f"What kind of animal is {one}?", f"{cap(one)} is {a(kind)}."),
        (f"How many legs does {one} have?", f"{cap(one)} has {NUMBERS[int(legs)] if legs != '0' else 'no'} legs."),
        (f"Can {one} fly?", f"{'Yes' if can_fly else 'No'}, {one} can{'' if can_fly else 'not'} fly."),
        (f"Is {one} {a(other)}?", f"Yes, {one} is {a(kind)}." if other == kind else f"No, {one} is {a(kind)}."),
        (f"Tell me about {many}.", f"{cap(many)} live in {home}. They eat {food}. A baby {name} is called {a(young)}."),
    ]
    if can_swim:
        pairs.append((f"Can {one} swim?", f"Yes, {one} can swim."))
    return rng.choice(pairs)


def size(rng):
    x, y = rng.sample(list(ANIMALS), 2)
    big, small = sorted((x, y), key=lambda name: int(ANIMALS[name][6]), reverse=True)
    if ANIMALS[big][6] == ANIMALS[small][6]:
        return size(rng)
    return rng.choice(
        [
            (f"Which is bigger, {a(x)} or {a(y)}?", f"{cap(a(big))} is bigger than {a(small)}."),
            (f"Which is smaller, {a(x)} or {a(y)}?", f"{cap(a(small))} is smaller than {a(big)}."),
            (f"Is {a(x)} bigger than {a(y)}?", f"{'Yes' if x == big else 'No'}, {a(big)} is bigger than {a(small)}."),
        ]
    )


def colour(rng):
    if rng.random() < 0.35:
        (x, y), mixed = rng.choice(list(MIXES.items()))
        x, y = rng.sample([x, y], 2)
        return rng.choice(
            [f"What color do you get if you mix {x} and {y}?", f"What do {x} and {y} make?", f"Mix {x} and {y}."]
        ), f"{cap(x)} and {y} make {mixed}."
    thing, name = rng.choice(list(COLOUR_OF.items()))
    return rng.choice(
        [f"What color is {thing}?", f"Which color does {thing} have?", f"Tell me the color of {thing}."]
    ), f"{cap(thing)} is {name}."


def calendar(rng):
    names, unit = rng.choice([(DAYS, "day"), (MONTHS, "month")])
    i = rng.randrange(len(names))
    name, after, before = names[i], names[(i + 1) % len(names)], names[i - 1]
    whole = "week" if unit == "day" else "year"
    return rng.choice(
        [
            (f"Which {unit} comes after {name}?", f"{after} comes after {name}."),
            (f"What {unit} is after {name}?", f"{after} comes after {name}."),
            (f"Which {unit} comes before {name}?", f"{before} comes before {name}."),
            (
                f"What is the {ORDINALS[i]} {unit} of the {whole}?",
                f"The {ORDINALS[i]} {unit} of the {whole} is {name}.",
            ),
        ]
        + (
            [
                (f"If today is {name}, what day is tomorrow?", f"If today is {name}, tomorrow is {after}."),
                (f"If today is {name}, what day was yesterday?", f"If today is {name}, yesterday was {before}."),
            ]
            if unit == "day"
            else []
        )
    )


def word(rng):
    roll = rng.random()
    if roll < 0.45:
        x, y = rng.choice(list(OPPOSITES.items()))
        if rng.random() < 0.5 and y not in OPPOSITES and list(OPPOSITES.values()).count(y) == 1:
            x, y = y, x
        return rng.choice(
            [
                f"What is the opposite of {x}?",
                f"What's the opposite of {x}?",
                f"Give me the opposite of {x}.",
                f"Opposite of {x}?",
            ]
        ), f"The opposite of {x} is {y}."
    if roll < 0.75:
        x, y = rng.choice(list(PLURALS.items()))
        return rng.choice(
            [f"What is the plural of {x}?", f"Give me the plural of {x}.", f"One {x}, two what?"]
        ), f"The plural of {x} is {y}."
    x, y = rng.choice(list(PAST.items()))
    return rng.choice(
        [f"What is the past tense of {x}?", f"What is the past of {x}?"]
    ), f"The past tense of {x} is {y}."


def count(rng):
    roll = rng.random()
    if roll < 0.35:
        thing, whole, number = rng.choice(COUNTS)
        verb = "have" if whole == "one hand" else "has"
        return (
            f"How many {thing} are in {whole}?" if rng.random() < 0.5 else f"How many {thing} does {whole} have?",
            f"{cap(whole)} {verb.replace('have', 'has')} {number} {thing}.",
        )
    if roll < 0.65:
        start = 1 if rng.random() < 0.6 else rng.randrange(1, 30)
        stop = start + rng.choice((2, 4, 4, 9, 9))
        names = ", ".join(str(n) for n in range(start, stop + 1))
        if start == 1 and rng.random() < 0.5:
            return rng.choice(
                [
                    f"Count to {stop}.",
                    f"Count to {NUMBERS[stop]}.",
                    f"Can you count to {stop}?",
                    f"Please count up to {NUMBERS[stop]}.",
                ]
            ), names + "."
        if rng.random() < 0.2:
            return f"Count down from {stop} to {start}.", ", ".join(str(n) for n in range(stop, start - 1, -1)) + "."
        return f"Count from {start} to {stop}.", names + "."
    if roll < 0.85:
        i = rng.randrange(25)
        x, y = chr(65 + i), chr(66 + i)
        return rng.choice(
            [
                (f"Which letter comes after {x}?", f"The letter {y} comes after {x}."),
                (f"Which letter comes before {y}?", f"The letter {x} comes before {y}."),
            ]
        )
    i = rng.randrange(21)
    return rng.choice(
        [
            (f"How do you write {i} as a word?", f"{i} is written as {NUMBERS[i]}."),
            (f"Which number is {NUMBERS[i]}?", f"{cap(NUMBERS[i])} is the number {i}."),
        ]
    )


def kind(rng):
    name = rng.choice(list(KINDS))
    many = "pieces of clothing" if name == "piece of clothing" else plural(name)
    if rng.random() < 0.55:
        number = rng.randrange(2, 6)
        picks = KINDS[name][:number]  # always the same ones: a small model loses count of what it drew
        asked = rng.choice(
            [
                f"Name {NUMBERS[number]} {many}.",
                f"Tell me {NUMBERS[number]} {many}.",
                f"List {NUMBERS[number]} {many}.",
                f"Can you name {NUMBERS[number]} {many}?",
                f"Give me a list of {number} {many}.",
            ]
        )
        if "list" in asked.lower():
            return asked, "\n".join(f"{i + 1}. {cap(item)}" for i, item in enumerate(picks))
        return asked, f"{cap(NUMBERS[number])} {many} are {join(picks)}."
    item = rng.choice(KINDS[name])
    if name == "color":
        return f"Is {item} a color?", f"Yes, {item} is a color."
    if rng.random() < 0.6:
        return rng.choice([f"What is {a(item)}?", f"What kind of thing is {a(item)}?"]), f"{cap(a(item))} is {a(name)}."
    other = rng.choice(["fruit", "vegetable", "tool", "vehicle", "musical instrument", "flower"])
    return f"Is {a(item)} {a(other)}?", f"{'Yes' if other == name else 'No'}, {a(item)} is {a(name)}."


def definition(rng):
    if rng.random() < 0.45:
        return rng.choice(list(REASONS.items()))
    if rng.random() < 0.1:
        name, text = rng.choice(list(PEOPLE.items()))
        return rng.choice([f"Who was {name}?", f"Who is {name}?", f"Tell me about {name}."]), text
    thing, text = rng.choice(list(DEFINITIONS.items()))
    return rng.choice(
        [
            f"What is {thing}?",
            f"What is {thing}?",
            f"Explain what {thing} is.",
            f"Explain {thing}.",
            f"Explain {thing} to a child.",
            f"Tell me about {thing}.",
            f"What do you know about {thing}?",
            f"Tell me what {thing} is.",
            f"What does the word {thing.split(' ', 1)[-1]} mean?",
        ]
    ), text


MAKERS = [
    capital,
    capital,
    country,
    animal,
    animal,
    size,
    colour,
    calendar,
    word,
    word,
    count,
    kind,
    definition,
    definition,
]


def make(rng):
    """(question, answer) about one small fact."""
    return rng.choice(MAKERS)(rng)
