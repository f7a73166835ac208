"""Makes test/engine/text/template/golden/jinja.json: what Python's jinja2, set up as transformers sets it up, makes of jinja/*.jinja for
every conversation in conversations.json, and of every line of jinja-expressions.json. Run by hand, with jinja2 3.1; the tests
need only its output:

    cd test/engine/text/template/golden && python3 make.py
"""
import glob
import json
import os
from datetime import datetime

import jinja2
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

NOW = datetime(2026, 11, 21, 9, 5, 7)


class Generation(Extension):
    """The tag that marks a model's own words; it prints its body."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def environment():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = NOW.strftime
    return env


def render(source, values):
    try:
        return {"text": environment().from_string(source).render(**values)}
    except Exception as error:  # whatever a template may do wrong
        return {"text": "", "error": f"{type(error).__name__}: {error}"}


def main():
    with open("conversations.json") as file:
        conversations = json.load(file)
    chats = {}
    for path in sorted(glob.glob("jinja/*.jinja")):
        with open(path) as file:
            source = file.read()
        results = chats[os.path.basename(path)[: -len(".jinja")]] = {}
        for one in conversations:
            if not one["messages"]:
                continue
            values = {"messages": one["messages"], "tools": one.get("tools"), "bos_token": "<s>", "eos_token": "</s>"}
            if "think" in one:
                values["enable_thinking"] = one["think"]
            last = one["messages"][-1]
            values["add_generation_prompt"] = last["role"] != "assistant"
            results[one["name"]] = render(source, values)
    with open("jinja-expressions.json") as file:
        expressions = json.load(file)
    lines = {source: render(source, expressions["values"]) for source in expressions["templates"]}
    with open("jinja.json", "w") as file:
        json.dump({"jinja2": jinja2.__version__, "chats": chats, "expressions": lines}, file, indent=2, ensure_ascii=False)
        file.write("\n")


if __name__ == "__main__":
    main()
