"""Short stories in simple English: a cast, a plot of a few beats, and several ways to say each beat.

Slots in braces are filled from the cast, so that a name, a pronoun or an object stays the same through the story.
"""

from .plots import HOMES, OPENINGS, PLOTS, SKILLS
from .words import ADJECTIVES, BOYS, FOODS, GIRLS, PLACES, RELATIVES, STORY_ANIMALS, TOYS, a, cap, invent


def cast(rng):
    """The slots of one story."""
    is_animal = rng.random() < 0.35
    girl = rng.random() < 0.5
    kind = rng.choice(STORY_ANIMALS) if is_animal else ("girl" if girl else "boy")
    name = rng.choice(GIRLS if girl else BOYS) if rng.random() < 0.85 else invent(rng, 2).capitalize()
    friend = rng.choice([other for other in GIRLS + BOYS if other != name])
    colour, colour2 = rng.sample(
        ["red", "blue", "green", "yellow", "purple", "pink", "brown", "white", "orange", "golden"], 2
    )
    animal = rng.choice([other for other in STORY_ANIMALS if other != kind])
    he, him, his = ("she", "her", "her") if girl else ("he", "him", "his")
    adjective = rng.choice(ADJECTIVES)
    return {
        "name": name,
        "kind": kind,
        "friend": friend,
        "he": he,
        "him": him,
        "his": his,
        "He": cap(he),
        "His": cap(his),
        "adj": adjective,
        "a_adj": a(adjective),
        "place": rng.choice(PLACES),
        "toy": rng.choice(TOYS),
        "food": rng.choice(FOODS),
        "colour": colour,
        "a_colour": a(colour),
        "a_colour2": a(colour2),
        "animal": animal,
        "a_animal": a(animal),
        "relative": f"{his} {rng.choice(RELATIVES)}",
        "skill": rng.choice(SKILLS),
    }


def sentence(rng, alternatives, slots):
    text = rng.choice(alternatives).format(**slots)
    return '"' + cap(text[1:]) if text.startswith('"') else cap(text)


def tell(rng, slots, plot, beats=None):
    """The story as text: opening, perhaps a home, then `beats` of the plot's beats (all by default), in paragraphs."""
    body = PLOTS[plot][1]
    lines = [sentence(rng, OPENINGS, slots)]
    if beats is None and rng.random() < 0.5:
        lines.append(
            sentence(rng, [home for home in HOMES if "{friend}" not in home or plot not in ("friend",)], slots)
        )
    if beats is not None:
        body = body[: beats - 2] + body[-1:]
    lines += [sentence(rng, beat, slots) for beat in body]
    if beats is not None or rng.random() < 0.3:
        return " ".join(lines)
    cut = rng.randrange(2, 4), rng.randrange(6, 9)
    return "\n\n".join(" ".join(part) for part in (lines[: cut[0]], lines[cut[0] : cut[1]], lines[cut[1] :]))


def plain(rng):
    """A story as running text, sometimes under a title."""
    slots, plot = cast(rng), rng.choice(list(PLOTS))
    text = tell(rng, slots, plot)
    return f"{cap(PLOTS[plot][0].format(**slots))}\n\n{text}" if rng.random() < 0.15 else text


def make(rng):
    """(request, story): the request names what the story must contain, or nothing."""
    slots, plot = cast(rng), rng.choice(list(PLOTS))
    name, kind = slots["name"], slots["kind"]
    about = rng.choice(
        [
            f"{a(slots['adj'])} {kind}",
            f"{a(kind)} named {name}",
            f"{a(kind)} named {name}",
            a(kind),
            f"{name} the {kind}",
            f"{name}",
            f"how {PLOTS[plot][0].format(**slots)}",
        ]
    )
    if plot in ("lost", "share", "friend", "treasure") and rng.random() < 0.2:
        about = f"{a(kind)} and {a(slots['toy'])}"
    if plot in ("rescue", "friend") and rng.random() < 0.3:
        about = f"{a(kind)} and {a(slots['animal'])}"
    asked = rng.choice(
        [
            f"Tell me a story about {about}.",
            f"Tell me a story about {about}.",
            f"Write a short story about {about}.",
            f"Can you tell me a story about {about}?",
            f"Please write a story about {about}.",
            f"I want a story about {about}.",
            "Tell me a story.",
            "Tell me a short story.",
            "Write a story.",
            f"Once upon a time there was {a(kind)}. Go on.",
        ]
    )
    return asked, tell(rng, slots, plot, beats=None)


def tiny(rng):
    """(request, story) for a story of a few sentences."""
    slots = cast(rng)
    slots_text = f"{a(slots['kind'])} named {slots['name']}"
    lines = rng.choice(
        [
            [
                "{Name} went to the {place} with {friend}.",
                "They played with {a_colour} {toy} and ate {food}.",
                "It was a lovely day.",
            ],
            [
                "{Name} found {a_colour} {toy} near the {place}.",
                "It belonged to {friend}, so {he} gave it back.",
                "{friend} was very happy.",
            ],
            [
                "{Name} wanted to {skill}.",
                "{He} tried every day.",
                "In the end, {he} could do it, and {friend} was proud.",
            ],
        ]
    )
    slots["Name"] = f"{cap(a(slots['kind']))} named {slots['name']}"
    asked = rng.choice(
        [
            "Tell me a very short story about {}.",
            "Write a story about {} in three sentences.",
            "Tell me a tiny story about {}.",
            "Write three sentences about {}.",
        ]
    ).format(slots_text)
    return asked, " ".join(cap(line.format(**slots)) for line in lines)


def poem(rng):
    """(request, a four-line poem) about a thing."""
    thing = rng.choice(
        [
            "the sun",
            "the moon",
            "the sea",
            "a tree",
            "the rain",
            "a cat",
            "a dog",
            "spring",
            "winter",
            "a bird",
            "a friend",
            "the stars",
            "a river",
            "the wind",
            "summer",
            "a flower",
        ]
    )
    first = [f"I look at {thing} every day,", f"I think of {thing} and start to play,", f"Oh, {thing} is here to stay,"]
    second = ["it takes my little fears away.", "and all my worries go away.", "it makes me smile in every way."]
    third = [
        "It shines so soft, it shines so bright,",
        "I dream of it all through the night,",
        "It fills the world with gentle light,",
    ]
    fourth = [
        "and makes my heart feel warm and light.",
        "until the morning sun is bright.",
        "and everything will be all right.",
    ]
    asked = rng.choice(
        [
            f"Write a poem about {thing}.",
            f"Write a short poem about {thing}.",
            f"Can you write a poem about {thing}?",
            f"Make a rhyme about {thing}.",
        ]
    )
    return asked, "\n".join(cap(rng.choice(lines)) for lines in (first, second, third, fourth))
