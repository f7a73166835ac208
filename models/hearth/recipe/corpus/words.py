"""Word lists and small sentence helpers that every part of the corpus draws from. All text here is our own."""

GIRLS = """Lily Mia Anna Sara Emma Lucy Rosa Nina Zoe Ella Ruby Clara Maya Lena Ivy Nora Eva Tara Hana Julia Kate
Daisy Amy Grace Molly Alice Ada Olga Priya Yuki Leila Fatima Ines Freya""".split()
BOYS = """Tom Ben Max Sam Leo Jack Tim Finn Noah Adam Oscar Hugo Paul Mark Luke Dan Felix Omar Ravi Jonas Peter Theo
Alex Eric Nick Owen Karl Ivan Kenji Ali Marco Diego Emil Otto""".split()
NAMES = GIRLS + BOYS
RELATIVES = ["mom", "dad", "grandma", "grandpa", "aunt", "uncle", "big sister", "big brother"]
COLOURS = ["red", "blue", "green", "yellow", "orange", "purple", "pink", "brown", "black", "white", "gray"]
TOYS = [
    "ball",
    "kite",
    "doll",
    "toy car",
    "teddy bear",
    "puzzle",
    "drum",
    "toy boat",
    "train",
    "robot",
    "yo-yo",
    "scooter",
]
THINGS = TOYS + [
    "hat",
    "scarf",
    "book",
    "bell",
    "key",
    "cup",
    "lamp",
    "basket",
    "umbrella",
    "ring",
    "coat",
    "pencil",
    "box",
]
PETS = ["dog", "cat", "rabbit", "bird", "turtle", "hamster", "puppy", "kitten", "duck", "pony"]
STORY_ANIMALS = PETS + [
    "fox",
    "bear",
    "mouse",
    "owl",
    "frog",
    "squirrel",
    "elephant",
    "lion",
    "penguin",
    "hedgehog",
    "sheep",
    "dragon",
    "monkey",
    "pig",
    "goat",
    "bee",
    "snail",
    "dolphin",
    "deer",
    "tiger",
]
PLACES = [
    "park",
    "garden",
    "forest",
    "beach",
    "farm",
    "village",
    "meadow",
    "river",
    "lake",
    "town",
    "hill",
    "playground",
]
FOODS = [
    "apples",
    "bread",
    "soup",
    "cookies",
    "cake",
    "cheese",
    "berries",
    "pancakes",
    "pizza",
    "rice",
    "honey",
    "carrots",
    "grapes",
    "bananas",
    "noodles",
    "salad",
    "pears",
    "ice cream",
]
FRUIT = ["apples", "pears", "oranges", "plums", "bananas", "cherries", "grapes", "lemons", "peaches", "berries"]
ADJECTIVES = [
    "little",
    "small",
    "happy",
    "kind",
    "brave",
    "shy",
    "clever",
    "curious",
    "gentle",
    "funny",
    "quiet",
    "cheerful",
]
JOBS = [
    "teacher",
    "doctor",
    "baker",
    "farmer",
    "nurse",
    "pilot",
    "cook",
    "painter",
    "singer",
    "driver",
    "builder",
    "writer",
]
HOBBIES = [
    "reading",
    "swimming",
    "drawing",
    "singing",
    "cooking",
    "dancing",
    "running",
    "painting",
    "fishing",
    "chess",
    "football",
    "gardening",
    "music",
    "tennis",
    "cycling",
    "hiking",
]
CITIES = (
    """Paris London Rome Berlin Madrid Tokyo Oslo Vienna Lisbon Dublin Athens Cairo Delhi Boston Chicago
Seattle Denver Toronto Sydney Prague Warsaw Munich Milan Zurich Geneva Helsinki Stockholm Copenhagen Amsterdam
Brussels Budapest Istanbul Moscow Beijing Seoul Bangkok Singapore Nairobi Lagos Lima Bogota Dallas Austin Miami
Houston Portland Phoenix Atlanta Hamburg Barcelona Naples Lyon Porto Krakow Dubai Mumbai Jakarta Manila Hanoi Osaka
Kyoto Melbourne Montreal Vancouver""".split()
    + [
        "New York",
        "San Francisco",
        "Los Angeles",
        "Mexico City",
        "Rio de Janeiro",
        "Buenos Aires",
        "Cape Town",
        "Hong Kong",
    ]
)

ONSETS = "b c d f g h j k l m n p r s t v w z br cl dr fl gr kr pl st tr sh ch th".split()
NUCLEI = "a e i o u ai ea o a e i".split()
CODAS = ["", "", "", "n", "r", "l", "s", "t", "m", "k", "nd", "rt", "x"]


def invent(rng, syllables=None):
    """A pronounceable lower-case word that is in no list, so that the model must copy instead of remember."""
    count = syllables or rng.choice((1, 2, 2))
    return "".join(rng.choice(ONSETS) + rng.choice(NUCLEI) + rng.choice(CODAS) for _ in range(count))


EVERYDAY = THINGS + STORY_ANIMALS + PLACES + FOODS + JOBS + HOBBIES + ADJECTIVES + COLOURS


def word(rng):
    """A word to be copied: mostly an everyday one, at times invented."""
    return invent(rng) if rng.random() < 0.3 else rng.choice(EVERYDAY)


def person(rng):
    """A first name; one in eight is invented."""
    return invent(rng, 2).capitalize() if rng.random() < 0.12 else rng.choice(NAMES)


def city(rng):
    """A city; one in seven is invented."""
    return invent(rng).capitalize() if rng.random() < 0.15 else rng.choice(CITIES)


def a(noun):
    """The noun with its indefinite article."""
    odd = noun.startswith(("hour", "honest"))
    return ("an " if noun[0].lower() in "aeiou" and not noun.startswith(("uni", "use", "eu")) or odd else "a ") + noun


def join(items, last="and"):
    """'x', 'x and y', 'x, y and z'."""
    items = list(items)
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {last} {items[-1]}"


def cap(text):
    """The text with its first letter in upper case."""
    return text[:1].upper() + text[1:]


KEPT = {"I", "My", "Please", "Hi", "Hello", "Hey", *NAMES}  # first words that take no lead


def casual(rng, question):
    """Sometimes drops what people drop when they type: capitals, the final mark, or adds a polite word."""
    roll = rng.random()
    if roll < 0.08:
        question = question[0].lower() + question[1:]
    elif roll < 0.14:
        question = question.rstrip("?.!")
    elif roll < 0.18:
        question = (question[0].lower() + question[1:]).rstrip("?.!")
    elif roll < 0.26 and question[-1:] in "?." and question.split()[0] not in KEPT:
        leads = (
            ["Please tell me: ", "Quick question: ", "I have a question. ", "Now "]
            if question.endswith("?")
            else ["Please "]
        )
        lead = rng.choice(leads + ["Hey, ", "Hello! ", "Hi Hearth, ", "Can you help me? "])
        starts = lead.endswith((": ", "! ", ". ", "? "))
        question = lead + (question if starts else question[0].lower() + question[1:])
    return question
