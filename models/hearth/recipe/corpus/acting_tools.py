"""Tools that do something: messages, timers, lights, songs, reminders."""

import json

from .tool import Use, define, style
from .words import FOODS, a, city, person, word


def message(rng):
    to, text = (
        person(rng),
        rng.choice(
            [
                "I am late",
                "see you soon",
                "happy birthday",
                "call me",
                "dinner is ready",
                "thank you",
                f"meet me in {city(rng)}",
                f"bring some {rng.choice(FOODS)}",
                "good luck",
                f"the code is {rng.randrange(100, 999)}",
            ]
        ),
    )
    keys = rng.choice([("to", "text"), ("recipient", "message"), ("name", "text"), ("to", "message")])
    kind = rng.choice(["message", "email", "text"])
    tool = define(
        rng,
        style(rng, "send", kind),
        f"Send {a(kind)} to a person",
        {keys[0]: ("string", "Who gets it"), keys[1]: ("string", "The text to send")},
    )
    asked = rng.choice(
        [
            f"Send {a(kind)} to {to}: {text}",
            f"Send {to} {a(kind)} that says: {text}",
            f"Tell {to}: {text}",
            f"Write {to} {a(kind)}: {text}",
        ]
    )
    return Use(
        tool,
        "message",
        asked,
        dict(zip(keys, (to, text))),
        rng.choice(["sent", json.dumps({"status": "sent"}), "ok"]),
        f"I sent the {kind} to {to}.",
    )


def timer(rng):
    number, unit = rng.randrange(1, 60), rng.choice(["minutes", "seconds", "hours"])
    key = rng.choice([unit, unit, "duration"])
    value = f"{number} {unit}" if key == "duration" else number
    tool = define(
        rng,
        style(rng, *rng.choice([("set", "timer"), ("start", "timer")])),
        "Start a timer",
        {
            key: ("string", "How long, for example 5 minutes")
            if key == "duration"
            else ("integer", f"The number of {unit}")
        },
    )
    return Use(
        tool,
        "timer",
        rng.choice(
            [f"Set a timer for {number} {unit}.", f"Start a timer of {number} {unit}.", f"Wake me in {number} {unit}."]
        ),
        {key: value},
        rng.choice(["ok", json.dumps({"status": "started"})]),
        f"I set a timer for {number} {unit}.",
    )


def light(rng):
    room = rng.choice(["kitchen", "bedroom", "bathroom", "hall", "garden", "office", "living room", "cellar", "garage"])
    state = rng.choice(["on", "off"])
    tool = define(
        rng,
        style(rng, *rng.choice([("set", "light"), ("switch", "light"), ("control", "light")])),
        "Turn the light in a room on or off",
        {"room": ("string", "The room"), "state": ("string", "on or off", ["on", "off"])},
    )
    return Use(
        tool,
        "light",
        rng.choice(
            [
                f"Turn {state} the light in the {room}.",
                f"Turn the {room} light {state}.",
                f"Please switch {state} the light in the {room}.",
            ]
        ),
        {"room": room, "state": state},
        rng.choice(["ok", json.dumps({"status": "ok"})]),
        f"The light in the {room} is {state} now.",
    )


def play(rng):
    song = " ".join(word(rng).capitalize() for _ in range(rng.randrange(1, 3)))
    key = rng.choice(["song", "title", "name"])
    tool = define(
        rng, style(rng, "play", rng.choice(["music", "song"])), "Play a song", {key: ("string", "The name of the song")}
    )
    return Use(
        tool,
        "music",
        rng.choice([f"Play the song {song}.", f"Play {song}.", f"I want to hear {song}."]),
        {key: song},
        rng.choice(["playing", "ok"]),
        f"Now playing {song}.",
    )


def remind(rng):
    task = rng.choice(
        [
            "water the plants",
            "call the doctor",
            "buy " + rng.choice(FOODS),
            "call " + person(rng),
            "feed the cat",
            "lock the door",
            "pay the bill",
            "close the window",
        ]
    )
    time = rng.choice(
        [
            f"{rng.randrange(1, 13)} o'clock",
            f"{rng.randrange(24)}:{rng.randrange(0, 60, 5):02d}",
            "tomorrow",
            "Monday",
            "Friday",
            "Sunday",
            "tonight",
        ]
    )
    keys = rng.choice([("task", "time"), ("text", "time"), ("text", "when")])
    tool = define(
        rng,
        style(rng, *rng.choice([("set", "reminder"), ("remind",), ("create", "reminder")])),
        "Remind the user of something",
        {keys[0]: ("string", "What to do"), keys[1]: ("string", "When to do it")},
    )
    at = f"at {time}" if time[0].isdigit() else f"on {time}" if time.endswith("day") else time
    return Use(
        tool,
        "remind",
        rng.choice([f"Remind me to {task} {at}.", f"Set a reminder to {task} {at}."]),
        dict(zip(keys, (task, time))),
        rng.choice(["ok", "saved"]),
        f"I will remind you to {task} {at}.",
    )
