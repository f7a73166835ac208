# Conversations of Python's clients with a running server: clients.py URL MODEL CALLER EMBEDDER [NAME…]
#
#   python3 -m venv VENV && VENV/bin/pip install openai ollama anthropic litellm langchain-ollama langchain-openai
#   VENV/bin/pip install llama-index-llms-ollama dspy aider-chat
#   VENV/bin/pip install instructor 'pydantic-ai-slim[openai]' openai-agents smolagents ollama-haystack llm-ollama
#
# CALLER is a model with tools, EMBEDDER one that makes vectors. Each client asks, goes on with the conversation, streams,
# holds a schema, and calls a tool where the client can demand one. Prints a line for each check; a client that is not
# installed is named and left out.
import json
import os
import shutil
import subprocess
import sys
import tempfile

url, model, caller, embedder, *only = sys.argv[1:]
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 12}, "people": {"type": "integer", "minimum": 0, "maximum": 99999}},
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
        # Models of this size do not end their answers to aider's long prompts by themselves.
        with open(os.path.join(folder, ".aider.model.settings.yml"), "w") as settings:
            json.dump([{"name": f"ollama_chat/{caller}", "extra_params": {"max_tokens": 60}}], settings)
        command = [aider, "--model", f"ollama_chat/{caller}", "--message", "Say hello.", "--yes-always", "--no-check-update"]
        command += ["--no-show-model-warnings", "--no-gitignore", "--map-tokens", "0", "--no-analytics"]
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=300)
        check(name, "answers", done.returncode == 0 and "okens: " in done.stdout, done.stdout[-300:] + done.stderr[-300:])


def use_instructor(name):
    import instructor
    import openai
    from pydantic import BaseModel, Field

    class City(BaseModel):
        city: str = Field(max_length=12)
        people: int = Field(ge=0, le=99999)

    base = openai.OpenAI(base_url=f"{url}/v1", api_key="none")
    for mode, which in ((instructor.Mode.JSON_SCHEMA, model), (instructor.Mode.TOOLS, caller), (instructor.Mode.TOOLS_STRICT, caller)):
        made = instructor.from_openai(base, mode=mode).create(model=which, response_model=City, messages=HISTORY, max_tokens=200, max_retries=1)
        check(name, f"fills a class by {mode.value}", isinstance(made, City), made)
    parts = list(instructor.from_openai(base, mode=instructor.Mode.JSON_SCHEMA).create_partial(model=model, response_model=City, messages=HISTORY, max_tokens=200))
    check(name, "streams a class", len(parts) > 1 and parts[-1].people is not None, parts[-1:])


def use_pydantic_ai(name):
    from pydantic import BaseModel, Field
    from pydantic_ai import Agent, NativeOutput, ToolOutput
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.ollama import OllamaProvider
    from pydantic_ai.providers.openai import OpenAIProvider

    class City(BaseModel):
        city: str = Field(max_length=12)
        people: int = Field(ge=0, le=99999)

    few = {"max_tokens": 200}
    ollama = OllamaProvider(base_url=f"{url}/v1")
    chat = OpenAIChatModel(model, provider=ollama)
    first = Agent(chat, model_settings=few).run_sync("Say hello.")
    check(name, "answers", first.output != "" and first.usage.output_tokens > 0, first)
    with Agent(chat, model_settings=few).run_stream_sync("And goodbye.", message_history=first.all_messages()) as stream:
        text = "".join(stream.stream_text(delta=True))
    check(name, "streams, after a turn", text != "", text)
    made = Agent(chat, output_type=NativeOutput(City), model_settings=few).run_sync("Rome").output
    check(name, "holds a schema", isinstance(made, City), made)
    agent = Agent(OpenAIChatModel(caller, provider=ollama), output_type=ToolOutput(City), model_settings=few)
    check(name, "calls a tool for its output", isinstance(agent.run_sync("Rome").output, City))
    responses = OpenAIResponsesModel(model, provider=OpenAIProvider(base_url=f"{url}/v1", api_key="none"))
    check(name, "answers by responses", Agent(responses, model_settings=few).run_sync("Say hello.").output != "")


def use_openai_agents(name):
    import asyncio

    from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
    from openai import AsyncOpenAI
    from pydantic import BaseModel, Field

    class City(BaseModel):
        city: str = Field(max_length=12)
        people: int = Field(ge=0, le=99999)

    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=f"{url}/v1", api_key="none")
    asked = []

    @function_tool
    def get_weather(city: str) -> str:
        """The weather in a city"""
        asked.append(city)
        return "sunny"

    async def talk(kind):
        label = kind.__name__.removeprefix("OpenAI").removesuffix("Model")
        once = ModelSettings(max_tokens=200, tool_choice="required")
        worker = Agent("a", instructions="Help.", model=kind(caller, client), tools=[get_weather], model_settings=once, tool_use_behavior="stop_on_first_tool")
        before = len(asked)
        run = await Runner.run(worker, "The weather in Rome?", max_turns=3)
        check(name, f"{label}: calls a tool", len(asked) > before and run.final_output == "sunny", run.final_output)
        writer = Agent("b", model=kind(model, client), output_type=City, model_settings=ModelSettings(max_tokens=200))
        stream = Runner.run_streamed(writer, "Rome")
        events = [event.type async for event in stream.stream_events()]
        check(name, f"{label}: streams a class", "raw_response_event" in events and isinstance(stream.final_output, City), stream.final_output)

    async def both():
        for kind in (OpenAIChatCompletionsModel, OpenAIResponsesModel):
            await talk(kind)

    asyncio.run(both())


def use_smolagents(name):
    from smolagents import OpenAIModel, Tool

    class Weather(Tool):
        name = "get_weather"
        description = "The weather in a city"
        inputs = {"city": {"type": "string", "description": "its name"}}
        output_type = "string"

        def forward(self, city: str) -> str:
            return "sunny"

    chat = OpenAIModel(model, api_base=f"{url}/v1", api_key="none", max_tokens=60)
    first = chat.generate([{"role": "user", "content": [{"type": "text", "text": "Say hello."}]}], stop_sequences=["Observation:"])
    check(name, "answers, with parts and stops", bool(first.content) and first.token_usage.output_tokens > 0, first)
    parts = list(chat.generate_stream([{"role": "user", "content": [{"type": "text", "text": "Say hello."}]}]))
    check(name, "streams", any(part.content for part in parts) and any(part.token_usage for part in parts), parts[-1:])
    called = OpenAIModel(caller, api_base=f"{url}/v1", api_key="none", max_tokens=200).generate(
        [{"role": "user", "content": [{"type": "text", "text": "The weather in Rome?"}]}], tools_to_call_from=[Weather()]
    )
    check(name, "calls a tool", called.tool_calls[0].function.name == "get_weather", called)


def use_haystack(name):
    from haystack.dataclasses import ChatMessage
    from haystack.tools import Tool
    from haystack_integrations.components.embedders.ollama import OllamaDocumentEmbedder, OllamaTextEmbedder
    from haystack_integrations.components.generators.ollama import OllamaChatGenerator
    from haystack import Document

    few = {"num_predict": 60}
    chat = OllamaChatGenerator(model=model, url=url, generation_kwargs=few)
    first = chat.run([ChatMessage.from_user("Say hello.")])["replies"][0]
    check(name, "answers", bool(first.text), first)
    parts = []
    streamed = OllamaChatGenerator(model=model, url=url, generation_kwargs=few, streaming_callback=parts.append)
    second = streamed.run([ChatMessage.from_user("Say hello."), first, ChatMessage.from_user("And goodbye.")])["replies"][0]
    check(name, "streams, after a turn", len(parts) > 1 and bool(second.text) and second.meta.get("usage"), second)
    made = OllamaChatGenerator(model=model, url=url, generation_kwargs={"num_predict": 200}, response_format=SCHEMA).run([ChatMessage.from_user("Rome")])["replies"][0]
    check(name, "holds a schema", set(json.loads(made.text)) == {"city", "people"}, made)
    tool = Tool(name="get_weather", description="The weather", parameters=TOOL["function"]["parameters"], function=lambda city: "sunny")
    called = OllamaChatGenerator(model=caller, url=url, generation_kwargs=few, tools=[tool]).run([ChatMessage.from_user("The weather in Rome?")])["replies"][0]
    check(name, "takes tools", called.text is not None or called.tool_calls, called)
    text = OllamaTextEmbedder(model=model, url=url).run("a")["embedding"]
    documents = OllamaDocumentEmbedder(model=model, url=url, progress_bar=False).run([Document(content="a"), Document(content="b")])["documents"]
    check(name, "embeds", len(text) > 8 and len(documents[1].embedding) == len(text))


def use_llm(name):
    with tempfile.TemporaryDirectory() as folder:
        env = os.environ | {"OLLAMA_HOST": url, "LLM_USER_PATH": folder, "HOME": folder}
        llm = [os.path.join(os.path.dirname(sys.executable), "llm")]

        def run(*args):
            return subprocess.run([*llm, *args], env=env, capture_output=True, text=True, timeout=300)

        if not os.path.exists(llm[0]):
            raise ImportError("no command llm")
        import llm_ollama  # noqa: F401

        listed = run("ollama", "models")
        check(name, "lists models", f"{model}:latest" in listed.stdout, listed)
        first = run("-m", f"ollama/{model}", "Say hello.", "-o", "num_predict", "40", "-u")
        check(name, "answers, with usage", first.stdout.strip() != "" and "Token usage" in first.stderr, first)
        second = run("-c", "And goodbye.", "-o", "num_predict", "40", "--no-stream")
        check(name, "goes on", second.returncode == 0 and second.stdout.strip() != "", second)
        made = run("-m", f"ollama/{model}", "Rome", "--schema", "city, people int", "-o", "num_predict", "200")
        check(name, "holds a schema", set(json.loads(made.stdout)) == {"city", "people"}, made)
        called = run("-m", f"ollama/{caller}", "The weather?", "-T", "llm_version", "--td", "-o", "num_predict", "60")
        check(name, "takes tools", called.returncode == 0, called)
        embedded = run("embed", "-m", f"ollama/{embedder}", "-c", "a")
        check(name, "embeds", embedded.stdout.startswith("["), embedded)


CLIENTS = {
    "openai": use_openai,
    "ollama": use_ollama,
    "anthropic": use_anthropic,
    "litellm": use_litellm,
    "langchain": use_langchain,
    "llama-index": use_llama_index,
    "dspy": use_dspy,
    "aider": use_aider,
    "instructor": use_instructor,
    "pydantic-ai": use_pydantic_ai,
    "openai-agents": use_openai_agents,
    "smolagents": use_smolagents,
    "haystack": use_haystack,
    "llm": use_llm,
}
for name in only or CLIENTS:
    try:
        CLIENTS[name](name)
    except ImportError as error:
        print("--- ", name, "is not installed:", error)
    except Exception as error:
        check(name, "ends", False, f"{type(error).__name__}: {error}")
sys.exit(1 if failed else 0)
