"""Conversations and the text that the model was trained to read for each.

    python3 conversations.py > conversations.json && bun fmt conversations.json

Whoever renders the GGUF's Jinja template must get the same bytes; Hearth's tests compare with this file.
"""

import json
import random
import sys

from chat import render
from corpus import chats, tools

COUNT = 20
TRICKY = {
    "messages": [
        {"role": "system", "content": 'Be "exact" & <b>brief</b>.'},
        {"role": "user", "content": "Two calls, please: café, \\ and \n a new line"},
        {
            "role": "assistant",
            "content": "Wait.",
            "tool_calls": [
                {
                    "type": "function",
                    "function": {"name": "f", "arguments": {"a": 'é "q" \\ </b>', "b": [1, True, None]}},
                },
                {"type": "function", "function": {"name": "g", "arguments": {}}},
            ],
        },
        {"role": "tool", "content": '{"ok": true}'},
        {"role": "tool", "content": "two"},
    ],
    "tools": [],
}


def main():
    cases = [TRICKY]
    while len(cases) < COUNT:
        rng = random.Random(f"conversation-{len(cases)}")
        cases.append(tools.make(rng) if len(cases) % 2 else {"messages": chats.make(rng), "tools": []})
    for case in cases:
        ends_with_model = case["messages"][-1]["role"] == "assistant"
        case["generate"] = not ends_with_model
        case["text"] = render(case["messages"], case["tools"], case["generate"])
    json.dump(cases, sys.stdout, ensure_ascii=False, indent=1)
    print()


if __name__ == "__main__":
    main()
