"""Small sums: a + b and a - b up to 50, the multiplication table, halves, comparisons, word problems."""

from .tables import NUMBERS
from .words import FRUIT, TOYS, cap, person


def plain(rng):
    """A sum of two small numbers: half of them up to 20, the others up to 50; the tables up to 10 times 10."""
    sign, top = rng.choices("+-*/", (4, 3, 2, 1))[0], rng.choice((20, 50))
    if sign == "+":
        result = rng.randrange(0, top + 1)
        x = rng.randrange(0, result + 1)
        y = result - x
    elif sign == "-":
        x = rng.randrange(0, top + 1)
        y = rng.randrange(0, x + 1)
        result = x - y
    elif sign == "*":
        x, y = rng.randrange(0, 11), rng.randrange(0, 11)
        result = x * y
    else:
        y, result = rng.randrange(1, 11), rng.randrange(0, 11)
        x = y * result
    spoken = {"+": "plus", "-": "minus", "*": "times", "/": "divided by"}[sign]
    said = [f"{x} {sign} {y}", f"{x} {sign} {y}", f"{x} {spoken} {y}"]
    if max(x, y) <= 20:
        said.append(f"{NUMBERS[x]} {spoken} {NUMBERS[y]}")
    asked = rng.choice(["What is {}?", "What is {}?", "What's {}?", "{}", "{} = ?", "Calculate {}.", "How much is {}?"])
    return asked.format(rng.choice(said)), f"{x} {sign} {y} = {result}."


def problem(rng):
    name, thing = person(rng), rng.choice(FRUIT + [toy + "s" for toy in TOYS if toy != "puzzle"])
    x = rng.randrange(3, 15)
    if rng.random() < 0.5:
        y = rng.randrange(1, 11)
        more = rng.choice([f"gets {y} more", f"buys {y} more", f"finds {y} more"])
        return (
            f"{name} has {x} {thing} and {more}. How many {thing} does {name} have now?",
            f"{x} + {y} = {x + y}. {name} has {x + y} {thing} now.",
        )
    y = rng.randrange(1, max(2, x - 1))
    less = rng.choice([f"gives away {y}", f"loses {y}", f"gives {y} to a friend"])
    return (
        f"{name} has {x} {thing} and {less}. How many {thing} does {name} have now?",
        f"{x} - {y} = {x - y}. {name} has {x - y} {thing} now.",
    )


def compare(rng):
    x, y = rng.sample(range(0, 100), 2)
    roll = rng.random()
    if roll < 0.4:
        return f"Which number is bigger, {x} or {y}?", f"{max(x, y)} is bigger than {min(x, y)}."
    if roll < 0.6:
        return f"Which number is smaller, {x} or {y}?", f"{min(x, y)} is smaller than {max(x, y)}."
    if roll < 0.75:
        return f"What number comes after {x}?", f"{x + 1} comes after {x}."
    if roll < 0.85:
        return f"Is {x} even or odd?", f"{x} is {'odd' if x % 2 else 'even'}."
    n = rng.randrange(1, 26)
    word, result = rng.choice([("double", 2 * n), ("half", n)])
    of = n if word == "double" else 2 * n
    return (
        f"What is {word} of {of}?" if word == "half" else f"What is double {of}?",
        f"{cap(word)}{' of' if word == 'half' else ''} {of} is {result}.",
    )


def make(rng):
    """(question, answer) about numbers."""
    roll = rng.random()
    return plain(rng) if roll < 0.7 else problem(rng) if roll < 0.88 else compare(rng)
