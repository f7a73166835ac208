"""What a tool is in the corpus: its definition as clients send it, and one right use of it."""

from dataclasses import dataclass


@dataclass
class Use:
    """One right use of one tool. `asked` and `said` are text; `result` is what the tool returns, as text."""

    tool: dict
    topic: str
    asked: str
    arguments: dict
    result: str
    said: str


def define(rng, name, description, params, required=None):
    """A tool definition; params maps a name to (type, description) or (type, description, enum)."""
    properties = {}
    for key, (kind, text, *enum) in params.items():
        properties[key] = {"type": kind, "description": text} | ({"enum": enum[0]} if enum else {})
        if rng.random() < 0.1:
            properties[key] = dict(reversed(properties[key].items()))
    required = list(params) if required is None else required
    parts = [("properties", properties), ("required", required)]
    if rng.random() < 0.4:
        parts.reverse()
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": {"type": "object"} | dict(parts)},
    }


def style(rng, *words):
    """A function name from words: snake_case mostly, camelCase at times."""
    return "_".join(words) if rng.random() < 0.8 else words[0] + "".join(word.capitalize() for word in words[1:])
