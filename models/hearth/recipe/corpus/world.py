"""More of the world in simple words: things and what they are for, people's work, rhymes, sentences, letters, lists
of advice.
"""

from .tables import KINDS, NUMBERS
from .words import ADJECTIVES, CITIES, COLOURS, FOODS, HOBBIES, JOBS, NAMES, PETS, PLACES, a, cap, join, person
from .world_tables import BODY, FALSE, PAIRS, RHYMES, SEASONS, TIPS, TRUE, USES, WORK


def use(rng):
    thing, what = rng.choice(list(USES.items()))
    verb = "are" if thing in ("scissors", "glasses") else "is"
    return rng.choice(
        [
            (f"What {verb} {thing} for?", f"You use {thing} to {what}."),
            (f"What do you use {thing} for?", f"You use {thing} to {what}."),
            (f"What can I do with {thing}?", f"You can use {thing} to {what}."),
            (f"What do I need to {what}?", f"You need {thing} to {what}."),
        ]
    )


def work(rng):
    name, (does, where) = rng.choice(list(WORK.items()))
    return rng.choice(
        [
            (f"What does {a(name)} do?", f"{cap(a(name))} {does}."),
            (f"Where does {a(name)} work?", f"{cap(a(name))} works {where}."),
            (f"Who {does}?", f"{cap(a(name))} {does}."),
            (f"What is {a(name)}?", f"{cap(a(name))} is a person who {does}."),
            (f"Tell me about the work of {a(name)}.", f"{cap(a(name))} {does} and works {where}."),
        ]
    )


def nature(rng):
    if rng.random() < 0.4:
        season = rng.choice(list(SEASONS))
        return rng.choice(
            [f"What happens in {season}?", f"Tell me about {season}.", f"What is {season} like?", f"Describe {season}."]
        ), SEASONS[season]
    if rng.random() < 0.6:
        part, what = rng.choice(list(BODY.items()))
        return f"What do we use our {part} for?", f"We use our {part} to {what}."
    return rng.choice(list({f"What is the difference between {pair}?": text for pair, text in PAIRS.items()}.items()))


def rhyme(rng):
    group = rng.choice(RHYMES)
    word = rng.choice(group)
    others = [other for other in group if other != word]
    return rng.choice(
        [f"What rhymes with {word}?", f"Which word rhymes with {word}?", f"Give me a word that rhymes with {word}."]
    ), f"{cap(others[0])} rhymes with {word}."


def claim(rng):
    if rng.random() < 0.45:
        text = rng.choice(TRUE)
        return rng.choice([f"True or false: {text}", f"Is this true? {text}"]), "Yes, that is true."
    text, right = rng.choice(list(FALSE.items()))
    return rng.choice([f"True or false: {text}", f"Is this true? {text}"]), f"No, that is false. {right}"


def tips(rng):
    topic, count = rng.choice(list(TIPS)), rng.randrange(2, 4)
    picks = TIPS[topic][:count]
    return rng.choice(
        [
            f"Give me {NUMBERS[count]} tips for {topic}.",
            f"Give me {count} tips for {topic}.",
            f"List {NUMBERS[count]} tips for {topic}.",
        ]
    ), "\n".join(f"{i + 1}. {tip}" for i, tip in enumerate(picks))


def sentence(rng):
    word = rng.choice(PETS + FOODS + HOBBIES + PLACES + JOBS)
    name = rng.choice(NAMES)
    asked = rng.choice(
        [
            f"Write a sentence with the word {word}.",
            f"Use the word {word} in a sentence.",
            f"Make a sentence with {word}.",
            f"Write one sentence about {word}.",
        ]
    )
    if word in PETS:
        return asked, rng.choice(
            [
                f"The {word} sleeps in the sun.",
                f"{name} has a {rng.choice(COLOURS)} {word}.",
                f"My {word} is very {rng.choice(ADJECTIVES)}.",
            ]
        )
    if word in FOODS:
        return asked, rng.choice(
            [f"{name} likes to eat {word}.", f"We had {word} for dinner.", f"I would like some {word}, please."]
        )
    if word in HOBBIES:
        return asked, rng.choice([f"{name} likes {word} very much.", f"{cap(word)} is a good hobby."])
    if word in PLACES:
        return asked, rng.choice([f"{name} walked to the {word}.", f"The {word} is quiet in the morning."])
    return asked, rng.choice([f"{name} works as {a(word)}.", f"The {word} starts work early in the morning."])


def letter(rng):
    to, sender = rng.sample(NAMES, 2)
    reason, text = rng.choice(
        [
            ("thank", "Thank you for your help. It made my day much easier."),
            ("invite", "I would like to invite you to my party on Saturday. I hope you can come."),
            ("say sorry to", "I am sorry that I was late. I will be on time next time."),
            ("congratulate", "Congratulations! I am very happy for you."),
            ("wish a happy birthday to", "Happy birthday! I wish you a lovely day."),
        ]
    )
    kind = rng.choice(["letter", "email", "note"])
    if rng.random() < 0.3:
        reader = rng.choice(["boss", "teacher", "friend", "neighbor", "doctor", "mother", "team"])
        asked = rng.choice([f"Write {a(kind)} to my {reader}.", f"Write me {a(kind)} to my {reader}."])
        return asked, f"Dear {reader},\n\nI hope you are well. I would like to talk to you this week.\n\nBest wishes"
    return rng.choice(
        [
            f"Write a short {kind} to {reason} {to}. My name is {sender}.",
            f"Write a {kind} to {reason} {to} from {sender}.",
        ]
    ), f"Dear {to},\n\n{text}\n\nBest wishes,\n{sender}"


def describe(rng):
    place = rng.choice(PLACES)
    lines = {
        "beach": "The sand is warm and the waves are loud.",
        "forest": "The trees are tall and it smells of leaves.",
        "park": "Children play on the grass and dogs run around.",
        "garden": "There are many flowers and bees.",
        "farm": "There are cows, hens and a big red barn.",
        "village": "The houses are small and everyone knows each other.",
        "meadow": "The grass is high and full of flowers.",
        "river": "The water is clear and flows over the stones.",
        "lake": "The water is calm and ducks swim on it.",
        "town": "There are shops, streets and many people.",
        "hill": "From the top you can see very far.",
        "playground": "There is a swing, a slide and a lot of laughter.",
    }
    name = person(rng)
    if rng.random() < 0.6:
        return rng.choice(
            [f"Describe a {place}.", f"What is a {place} like?", f"Write two sentences about a {place}."]
        ), f"{lines[place]} It is a lovely place."
    one, two = rng.sample(HOBBIES, 2)
    city = rng.choice(CITIES)
    return (
        f"Write a short text about {name}, who lives in {city} and likes {one} and {two}.",
        f"{name} lives in {city}. In the morning, {name} goes to work. "
        f"In the evening, there is time for {one} and {two}. {name} is happy there.",
    )


def finish(rng):
    asked, said = rng.choice(
        [
            ("The sun is", "The sun is bright and warm."),
            ("My favorite food is", "My favorite food is soup."),
            ("The opposite of hot is", "The opposite of hot is cold."),
            ("Roses are red,", "Roses are red, violets are blue."),
            ("The cat sat on the", "The cat sat on the mat."),
            ("In winter it is", "In winter it is cold."),
            ("The capital of France is", "The capital of France is Paris."),
            ("Two plus two is", "Two plus two is four."),
            ("At night the sky is", "At night the sky is dark."),
        ]
    )
    return rng.choice([f"Complete the sentence: {asked}", f"Finish this sentence: {asked} ..."]), said


def choose(rng):
    """Picks out of the words that the question gives."""
    kind = rng.choice([name for name in KINDS if name not in ("color", "piece of clothing", "animal", "bird")])
    other = rng.choice([name for name in KINDS if name not in (kind, "color", "piece of clothing", "animal")])
    right = rng.choice(KINDS[kind])
    words = [right] + rng.sample(KINDS[other], rng.randrange(1, 4))
    rng.shuffle(words)
    return f"Which of these is {a(kind)}: {join(words, 'or')}?", f"{cap(right)} is {a(kind)}."


def sort_words(rng):
    items = rng.sample(
        [
            "apple",
            "bread",
            "cake",
            "dog",
            "egg",
            "fish",
            "goat",
            "hat",
            "ice",
            "jar",
            "king",
            "lamp",
            "moon",
            "nest",
            "owl",
            "pen",
            "queen",
            "ring",
            "sun",
            "tree",
        ],
        rng.randrange(2, 5),
    )
    if rng.random() < 0.5:
        numbers = rng.sample(range(1, 60), rng.randrange(2, 5))
        return f"Sort these numbers: {', '.join(map(str, numbers))}", ", ".join(map(str, sorted(numbers)))
    return f"Sort these words by the alphabet: {', '.join(items)}", ", ".join(sorted(items))


MAKERS = {
    use: 3,
    work: 3,
    nature: 3,
    rhyme: 1,
    claim: 1.5,
    tips: 2,
    sentence: 2,
    letter: 2,
    describe: 2,
    finish: 1,
    choose: 2,
    sort_words: 1,
}


def make(rng):
    """(request, answer)."""
    return rng.choices(list(MAKERS), list(MAKERS.values()))[0](rng)
