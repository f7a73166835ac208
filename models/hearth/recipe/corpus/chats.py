"""Whole conversations: several exchanges, names and favourites told earlier and asked later, system messages that
matter.
"""

from . import api, facts, json_answers, stories, sums, talk, world
from .tables import CAPITALS, COLOUR_OF, OPPOSITES
from .words import COLOURS, FOODS, HOBBIES, PETS, a, cap, casual, city, invent, person, word

TOPICS = [talk.make, facts.make, sums.make, api.make, json_answers.make, stories.tiny, world.make]
WEIGHTS = [5, 6, 3, 2, 2, 1, 3]
HELPFUL = [
    "You are a helpful assistant.",
    "You are a helpful assistant.",
    "You are Hearth, a helpful assistant.",
    "Answer the questions of the user.",
    "You are a friendly assistant.",
    "Be kind and helpful.",
    "You are a helpful AI assistant.",
]


def exchange(rng):
    asked, said = rng.choices(TOPICS, WEIGHTS)[0](rng)
    return [{"role": "user", "content": casual(rng, asked)}, {"role": "assistant", "content": said}]


def say(asked, said):
    return [{"role": "user", "content": asked}, {"role": "assistant", "content": said}]


def memory(rng):
    """(what is told, the answer to it), (what is asked later, the answer)."""
    name, place, colour, food, hobby, pet = (
        person(rng),
        city(rng),
        rng.choice(COLOURS),
        rng.choice(FOODS),
        rng.choice(HOBBIES),
        rng.choice(PETS),
    )
    pet_name, code = person(rng), rng.choice([word(rng), str(rng.randrange(10, 1000))])
    return rng.choice(
        [
            (
                rng.choice([f"My name is {name}.", f"Hi, I am {name}.", f"Hello, my name is {name}.", f"I'm {name}."]),
                f"Hello, {name}! Nice to meet you.",
                rng.choice(["What is my name?", "Do you remember my name?", "Who am I?", "What's my name?"]),
                f"Your name is {name}.",
            ),
            (
                rng.choice([f"My name is {name}.", f"Hi, I am {name}.", f"Hello, my name is {name}.", f"I'm {name}."]),
                f"Hello, {name}! Nice to meet you.",
                rng.choice(["What is my name?", "Do you remember my name?", "What is my name again?"]),
                f"Your name is {name}.",
            ),
            (
                f"I live in {place}.",
                f"{place} must be a nice place.",
                rng.choice(["Where do I live?", "Which city do I live in?"]),
                f"You live in {place}.",
            ),
            (
                f"My favorite color is {colour}.",
                f"{cap(colour)} is a lovely color.",
                "What is my favorite color?",
                f"Your favorite color is {colour}.",
            ),
            (
                f"My favorite food is {food}.",
                f"{cap(food)}! That sounds good.",
                "What is my favorite food?",
                f"Your favorite food is {food}.",
            ),
            (f"My hobby is {hobby}.", f"{cap(hobby)} is fun.", "What is my hobby?", f"Your hobby is {hobby}."),
            (
                f"I have {a(pet)} named {pet_name}.",
                f"{pet_name} is a nice name for {a(pet)}.",
                f"What is the name of my {pet}?",
                f"Your {pet} is named {pet_name}.",
            ),
            (
                f"Remember the word {code}.",
                f"I will remember {code}.",
                rng.choice(["Which word should you remember?", "What was the word?"]),
                f"The word is {code}.",
            ),
        ]
    )


def recall(rng, turns):
    """A chat in which something told at the start is asked for after `turns` other exchanges."""
    told, answer, asked, said = memory(rng)
    messages = say(told, answer)
    for _ in range(turns):
        messages += exchange(rng)
    return messages + say(asked, said)


def capitals(text):
    return text.upper()


def short(rng):
    """(question, answer of one word or number)."""
    roll = rng.random()
    if roll < 0.3:
        country, capital = rng.choice(list(CAPITALS.items()))
        return f"What is the capital of {country}?", capital
    if roll < 0.5:
        thing, colour = rng.choice(list(COLOUR_OF.items()))
        return f"What color is {thing}?", cap(colour)
    if roll < 0.7:
        x, y = rng.choice(list(OPPOSITES.items()))
        return f"What is the opposite of {x}?", cap(y)
    x, y = rng.randrange(0, 31), rng.randrange(0, 31)
    return f"What is {x} + {y}?", str(x + y)


def guided(rng):
    """A chat whose system message changes the answers."""
    asked, said = rng.choice([talk.make, facts.make, facts.make])(rng)
    name, job = (
        person(rng),
        rng.choice(["robot", "teacher", "cook", "librarian", "guide", "doctor", "pirate", "wizard", "helper"]),
    )
    closing = rng.choice(["Meow!", "Over.", "Have a nice day!", "That is all.", "Beep!", cap(invent(rng)) + "!"])
    few, few_said = short(rng)
    return rng.choice(
        [
            [
                {
                    "role": "system",
                    "content": rng.choice(["You are a pirate.", "Talk like a pirate.", "Answer like a pirate."]),
                },
                *say(asked, f"Arr! {said} Yo ho!"),
            ],
            [
                {
                    "role": "system",
                    "content": rng.choice(
                        ["Answer with one word.", "Use only one word.", "Answer with one word only."]
                    ),
                },
                *say(few, few_said),
            ],
            [
                {
                    "role": "system",
                    "content": rng.choice(["Answer in capital letters.", "Write everything in capital letters."]),
                },
                *say(few, capitals(few_said)),
            ],
            [
                {
                    "role": "system",
                    "content": rng.choice(
                        [f"Always end your answer with {closing}", f"End every answer with: {closing}"]
                    ),
                },
                *say(asked, f"{said} {closing}"),
            ],
            [
                {
                    "role": "system",
                    "content": rng.choice(
                        [f"You are {name}, a friendly {job}.", f"Your name is {name}. You are {a(job)}."]
                    ),
                },
                *rng.choice(
                    [
                        say(
                            rng.choice(["Who are you?", "What is your name?", "Hello, who are you?"]),
                            f"I am {name}, {a(job)}.",
                        ),
                        say(asked, said) if asked not in talk.FIXED else say(few, few_said),
                    ]
                ),
            ],
            [
                {
                    "role": "system",
                    "content": rng.choice(
                        ["Answer in one sentence.", "Be brief.", "Give short answers.", "Keep your answers short."]
                    ),
                },
                *say(*facts.make(rng)),
            ],
            [
                {
                    "role": "system",
                    "content": rng.choice(["Answer in JSON.", "Always answer in JSON.", "Respond with JSON only."]),
                },
                *rng.choice(
                    [
                        lambda: say(
                            few, json_answers.dump({"answer": int(few_said) if few_said.isdigit() else few_said})
                        ),
                        lambda: say(*json_answers.extract(rng)),
                    ]
                )(),
            ],
            [
                {"role": "system", "content": f"The user is named {name}."},
                *say(rng.choice(["What is my name?", "Who am I?"]), f"Your name is {name}."),
            ],
            [{"role": "system", "content": f"The secret word is {word(rng)}."}, *say(asked, said)],
        ]
    )


def make(rng):
    """A list of messages: a few exchanges."""
    roll = rng.random()
    if roll < 0.35:
        messages = recall(rng, rng.choice((0, 0, 1, 1, 2, 3, 5)))
    elif roll < 0.55:
        return guided(rng)
    else:
        messages = [message for _ in range(rng.choice((1, 2, 2, 3, 4))) for message in exchange(rng)]
    if rng.random() < 0.3:
        messages = [{"role": "system", "content": rng.choice(HELPFUL)}] + messages
    return messages
