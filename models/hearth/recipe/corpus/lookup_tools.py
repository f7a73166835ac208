"""More tools that find something out or do it, as rows of a table: keys, questions for them, what they return."""

import json

from .tables import COUNTRIES, OPPOSITES
from .tool import Use, define, style
from .words import FOODS, city, invent, person, word

SYMBOLS = ["AAPL", "MSFT", "GOOG", "AMZN", "TSLA", "IBM", "NVDA", "META", "SAP", "ORCL", "NKE", "KO"]
AIRPORTS = ["NYC", "LAX", "LHR", "CDG", "SFO", "JFK", "BER", "FRA", "AMS", "MAD", "ROM", "TYO", "DUB", "VIE", "OSL"]
# name words; description; {key: (type, description, value)}; questions; result; report
ROWS = [
    (
        ["get stock price", "stock price"],
        ["Get the price of a stock", "Get the current stock price for a symbol"],
        {"symbol": ("string", "The stock symbol", lambda rng: rng.choice(SYMBOLS))},
        ["What is the stock price of {symbol}?", "What is the price of {symbol}?", "How much is {symbol} stock?"],
        "{n}",
        "{symbol} is at {n} dollars.",
    ),
    (
        ["get temperature", "get current temperature"],
        ["Get the temperature in a city", "Get the current temperature for a city"],
        {"city": ("string", "The name of the city", city)},
        ["What is the temperature in {city}?", "How many degrees is it in {city}?", "How hot is it in {city}?"],
        "{n} degrees",
        "It is {n} degrees in {city}.",
    ),
    (
        ["get flight times", "find flights"],
        ["Get the flight times between two cities", "Find flights between two airports"],
        {
            "departure": ("string", "The departure airport code", lambda rng: rng.choice(AIRPORTS)),
            "arrival": ("string", "The arrival airport code", lambda rng: rng.choice(AIRPORTS)),
        },
        [
            "What is the flight time from {departure} to {arrival}?",
            "Find flights from {departure} to {arrival}.",
            "When is the flight from {departure} to {arrival}?",
        ],
        "{n}:30",
        "The flight from {departure} to {arrival} is at {n}:30.",
    ),
    (
        ["get distance", "distance"],
        ["Get the distance between two cities"],
        {"from": ("string", "The first city", city), "to": ("string", "The second city", city)},
        ["How far is it from {from} to {to}?", "What is the distance from {from} to {to}?"],
        "{n} km",
        "It is {n} km from {from} to {to}.",
    ),
    (
        ["get antonyms", "find opposite"],
        ["Get the antonyms of a word", "Find the opposite of a word"],
        {"word": ("string", "The word", lambda rng: rng.choice(list(OPPOSITES)))},
        ["What are the antonyms of {word}?", "Find an antonym of {word}.", "Give me antonyms of {word}."],
        "{w}",
        "An antonym of {word} is {w}.",
    ),
    (
        ["read file", "open file"],
        ["Read a file", "Read the content of a file"],
        {
            "path": (
                "string",
                "The path of the file",
                lambda rng: word(rng).replace(" ", "_") + rng.choice([".txt", ".md", ".json", ".csv"]),
            )
        },
        ["Read the file {path}.", "What is in the file {path}?", "Show me {path}."],
        "{w} {v}",
        "The file says: {w} {v}",
    ),
    (
        ["get user", "find user", "get contact"],
        ["Get a user by name", "Look up a person"],
        {"name": ("string", "The name of the person", person)},
        ["Who is {name}?", "Find the user {name}.", "What is the email of {name}?"],
        "{w}@mail.com",
        "The email of {name} is {w}@mail.com.",
    ),
    (
        ["find recipe", "get recipe"],
        ["Find a recipe for a dish"],
        {"dish": ("string", "The dish", lambda rng: rng.choice(FOODS))},
        ["Find a recipe for {dish}.", "How do I cook {dish}?", "I want to make {dish}."],
        "{w} {v}",
        "I found a recipe: {w} {v}.",
    ),
    (
        ["create event", "add event"],
        ["Create an event in the calendar"],
        {
            "title": (
                "string",
                "The title of the event",
                lambda rng: rng.choice(["lunch", "dinner", "meeting", "party", "lesson"]),
            ),
            "date": ("string", "The date", lambda rng: f"2026-{rng.randrange(1, 13):02d}-{rng.randrange(1, 29):02d}"),
        },
        ["Add {title} on {date} to my calendar.", "Create an event {title} on {date}.", "Plan a {title} on {date}."],
        "ok",
        "I added {title} on {date}.",
    ),
    (
        ["get population", "country population"],
        ["Get the population of a country", "Returns how many people live in a country"],
        {"country": ("string", "The country", lambda rng: rng.choice(COUNTRIES))},
        ["How many people live in {country}?", "What is the population of {country}?"],
        "{n} million",
        "{n} million people live in {country}.",
    ),
    (
        ["book table", "reserve table"],
        ["Book a table in a restaurant"],
        {
            "restaurant": ("string", "The name of the restaurant", lambda rng: word(rng).capitalize()),
            "people": ("integer", "The number of people", lambda rng: rng.randrange(1, 12)),
        },
        ["Book a table at {restaurant} for {people} people.", "Reserve a table for {people} people at {restaurant}."],
        "booked",
        "I booked a table at {restaurant} for {people} people.",
    ),
]


def lookup(rng):
    """A use of one row."""
    names, descriptions, keys, questions, result, said = rng.choice(ROWS)
    arguments = {key: make(rng) for key, (_, _, make) in keys.items()}
    found = {"n": rng.randrange(1, 90), "w": invent(rng), "v": invent(rng)}
    params = {key: (kind, text) for key, (kind, text, _) in keys.items()}
    tool = define(rng, style(rng, *rng.choice(names).split()), rng.choice(descriptions), params)
    text = result.format(**found)
    returned = text if rng.random() < 0.6 else json.dumps({"result": text})
    asked = rng.choice(questions).format(**arguments)
    return Use(tool, names[0], asked, arguments, returned, said.format(**arguments, **found))
