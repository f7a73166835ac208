# Conversations of Python's clients with a running server: clients.py URL MODEL CALLER [NAME…]
#
#   python3 -m venv VENV && VENV/bin/pip install openai ollama anthropic litellm langchain-ollama langchain-openai
#   VENV/bin/pip install llama-index-llms-ollama dspy aider-chat
#
# CALLER is a model with tools. Each client asks, goes on with the conversation, streams, holds a schema, and calls a tool where the client can demand one.
# Prints a line for each check; a client that is not installed is named and left out.
import json
import os
import shutil
import subprocess
import sys
import tempfile

url, model, caller, *only = sys.argv[1:]
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 40}, "people": {"type": "integer"}},
    "required": ["city", "people"],
    "additionalProperties": False,
}
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
HISTORY = [{"role": "user", "content": "Say hello."}]
failed = []


def check(client, what, holds, seen=""):
    print("ok " if holds else "NOT", client, what, "" if holds else repr(seen)[:300], flush=True)
    if not holds:
        failed.append((client, what))


def followed(text):
    return [*HISTORY, {"role": "assistant", "content": text}, {"role": "user", "content": "And goodbye."}]


def use_openai(name):
    import openai

    client = openai.OpenAI(base_url=f"{url}/v1", api_key="none")
    first = client.chat.completions.create(model=model, messages=HISTORY, max_tokens=40).choices[0].message.content
    check(name, "answers", bool(first), first)
    chunks = client.chat.completions.create(
        model=model, messages=followed(first), max_tokens=40, stream=True, stream_options={"include_usage": True}
    )
    text, usage = "", None
    for chunk in chunks:
        text += (chunk.choices[0].delta.content or "") if chunk.choices else ""
        usage = chunk.usage or usage
    check(name, "streams, with usage", bool(text) and usage.completion_tokens > 0, (text, usage))
    form = {"type": "json_schema", "json_schema": {"name": "city", "schema": SCHEMA, "strict": True}}
    made = client.chat.completions.create(model=model, messages=HISTORY, response_format=form, max_tokens=200)
    value = json.loads(made.choices[0].message.content)
    check(name, "holds a schema", set(value) == {"city", "people"}, value)
    called = client.chat.completions.create(model=caller, messages=HISTORY, tools=[TOOL], tool_choice="required", max_tokens=200)
    call = called.choices[0].message.tool_calls[0]
    check(name, "calls a tool", call.function.name == "get_weather" and "city" in json.loads(call.function.arguments), call)
    back = [*HISTORY, called.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
    check(name, "goes on after the call", client.chat.completions.create(model=caller, messages=back, tools=[TOOL], max_tokens=40).choices[0].finish_reason in ("stop", "length", "tool_calls"))
    reply = client.responses.create(model=model, input="Say hello.", max_output_tokens=40)
    again = client.responses.create(model=model, input="And goodbye.", previous_response_id=reply.id, max_output_tokens=40)
    check(name, "responses that follow each other", bool(reply.output_text) and again.previous_response_id == reply.id, again)
    vectors = client.embeddings.create(model=model, input=["a", "b"])
    check(name, "embeds", len(vectors.data) == 2 and len(vectors.data[0].embedding) > 8)
    check(name, "lists models", any(each.id.startswith(model) for each in client.models.list()))


def use_ollama(name):
    import ollama

    client = ollama.Client(host=url)
    first = client.chat(model, HISTORY, options={"num_predict": 40})
    check(name, "answers", bool(first.message.content), first)
    parts = list(client.chat(model, followed(first.message.content), stream=True, options={"num_predict": 40}))
    check(name, "streams", len(parts) > 1 and parts[-1].done and parts[-1].eval_count > 0, parts[-1])
    value = json.loads(client.chat(model, HISTORY, format=SCHEMA, options={"num_predict": 200}).message.content)
    check(name, "holds a schema", set(value) == {"city", "people"}, value)
    check(name, "generates", bool(client.generate(model, "Say hello.", options={"num_predict": 20}).response))
    check(name, "embeds", len(client.embed(model, ["a", "b"]).embeddings) == 2)
    check(name, "shows and lists", bool(client.show(model).details) and any(each.model.startswith(model) for each in client.list().models))

    def get_weather(city: str) -> str:
        """The weather in a city

        Args:
          city: its name
        """
        return "sunny"

    answer = client.chat(caller, [{"role": "user", "content": "What is the weather in Rome?"}], tools=[get_weather], options={"num_predict": 60})
    check(name, "takes functions as tools", answer.done, answer)


def use_anthropic(name):
    import anthropic

    client = anthropic.Anthropic(base_url=url, api_key="none")
    first = client.messages.create(model=model, max_tokens=40, messages=HISTORY)
    check(name, "answers", first.content[0].text != "", first)
    with client.messages.stream(model=model, max_tokens=40, messages=followed(first.content[0].text)) as stream:
        text = "".join(stream.text_stream)
        usage = stream.get_final_message().usage
    check(name, "streams, with usage", text != "" and usage.output_tokens > 0, usage)
    tool = {"name": "get_weather", "description": "The weather", "input_schema": TOOL["function"]["parameters"]}
    called = client.messages.create(model=caller, max_tokens=200, messages=HISTORY, tools=[tool], tool_choice={"type": "any"})
    use = called.content[-1]
    check(name, "calls a tool", use.type == "tool_use" and "city" in use.input, called)
    result = {"type": "tool_result", "tool_use_id": use.id, "content": "sunny"}
    back = [*HISTORY, {"role": "assistant", "content": called.content}, {"role": "user", "content": [result]}]
    check(name, "goes on after the call", client.messages.create(model=caller, max_tokens=40, messages=back, tools=[tool]).stop_reason is not None)
    check(name, "counts tokens", client.messages.count_tokens(model=model, messages=HISTORY).input_tokens > 0)


def use_litellm(name):
    import litellm

    for kind, base in (("ollama_chat", url), ("ollama", url), ("openai", f"{url}/v1"), ("hosted_vllm", f"{url}/v1")):
        ask = dict(model=f"{kind}/{model}", api_base=base, api_key="none", max_tokens=40)
        first = litellm.completion(messages=HISTORY, **ask).choices[0].message.content
        check(name, f"{kind} answers", bool(first), first)
        text = "".join(part.choices[0].delta.content or "" for part in litellm.completion(messages=followed(first), stream=True, **ask))
        check(name, f"{kind} streams", bool(text), text)
    called = litellm.completion(model=f"openai/{caller}", api_base=f"{url}/v1", api_key="none", messages=HISTORY, tools=[TOOL], tool_choice="required", max_tokens=200)
    check(name, "calls a tool", called.choices[0].message.tool_calls[0].function.name == "get_weather", called)


def use_langchain(name):
    from langchain_core.tools import tool
    from langchain_ollama import ChatOllama, OllamaEmbeddings
    from langchain_openai import ChatOpenAI
    from pydantic import BaseModel

    class City(BaseModel):
        city: str
        people: int

    @tool
    def get_weather(city: str) -> str:
        """The weather in a city"""
        return "sunny"

    chat = ChatOllama(model=model, base_url=url, num_predict=100)
    first = chat.invoke("Say hello.")
    check(name, "answers", bool(first.content), first)
    check(name, "streams", "".join(part.content for part in chat.stream([("user", "Say hello."), ("ai", first.content), ("user", "And goodbye.")])) != "")
    check(name, "holds a schema", isinstance(chat.with_structured_output(City, method="json_schema").invoke("Rome"), City))
    check(name, "takes tools", ChatOllama(model=caller, base_url=url, num_predict=100).bind_tools([get_weather]).invoke("The weather in Rome?") is not None)
    other = ChatOpenAI(model=model, base_url=f"{url}/v1", api_key="none", max_tokens=200)
    called = ChatOpenAI(model=caller, base_url=f"{url}/v1", api_key="none", max_tokens=200).bind_tools([get_weather], tool_choice="get_weather").invoke("The weather in Rome?")
    check(name, "calls a tool", called.tool_calls[0]["name"] == "get_weather", called)
    check(name, "holds a schema, as OpenAI's client", isinstance(other.with_structured_output(City).invoke("Rome"), City))
    check(name, "embeds", len(OllamaEmbeddings(model=model, base_url=url).embed_documents(["a", "b"])) == 2)


def use_llama_index(name):
    from llama_index.core.llms import ChatMessage
    from llama_index.llms.ollama import Ollama
    from pydantic import BaseModel

    class City(BaseModel):
        city: str
        people: int

    llm = Ollama(model=model, base_url=url, request_timeout=120, additional_kwargs={"num_predict": 100})
    first = llm.chat([ChatMessage(role="user", content="Say hello.")])
    check(name, "answers", bool(first.message.content), first)
    history = [ChatMessage(**each) for each in followed(first.message.content)]
    check(name, "streams", "".join(part.delta or "" for part in llm.stream_chat(history)) != "")
    made = llm.as_structured_llm(City).complete("Rome")
    check(name, "holds a schema", isinstance(made.raw, City), made)


def use_dspy(name):
    import dspy

    # the smallest models do not keep to its forms of prompts, so only what travels is checked
    lm = dspy.LM(f"openai/{model}", api_base=f"{url}/v1", api_key="none", max_tokens=60, cache=False)
    answers = lm("Say hello.")
    check(name, "answers", len(answers) == 1, answers)


def use_aider(name):
    with tempfile.TemporaryDirectory() as folder:
        env = os.environ | {"OLLAMA_API_BASE": url, "HOME": folder}
        aider = shutil.which("aider", path=os.path.dirname(sys.executable)) or shutil.which("aider")
        if aider is None:
            raise ImportError("no command aider")
        subprocess.run(["git", "init", "-q", folder], check=True)
        command = [aider, "--model", f"ollama_chat/{caller}", "--message", "Say hello.", "--yes-always", "--no-check-update"]
        command += ["--no-show-model-warnings", "--no-gitignore", "--map-tokens", "0", "--no-analytics"]
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=300)
        check(name, "answers", done.returncode == 0 and "Tokens:" in done.stdout, done.stdout[-300:] + done.stderr[-300:])


CLIENTS = {
    "openai": use_openai,
    "ollama": use_ollama,
    "anthropic": use_anthropic,
    "litellm": use_litellm,
    "langchain": use_langchain,
    "llama-index": use_llama_index,
    "dspy": use_dspy,
    "aider": use_aider,
}
for name in only or CLIENTS:
    try:
        CLIENTS[name](name)
    except ImportError as error:
        print("--- ", name, "is not installed:", error)
    except Exception as error:
        check(name, "ends", False, f"{type(error).__name__}: {error}")
sys.exit(1 if failed else 0)
