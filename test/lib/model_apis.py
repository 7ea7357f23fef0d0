"""The four protocols that agents speak to a model: what a request says, and the answer, whole or as a stream.

parse(api, path, body) -> Talk      answer(api, talk, say, calls) -> (content type, pieces of bytes)
refusal(api, status, text) -> dict  models(api) -> dict

A stream is cut as the real services cut it: words one by one, the arguments of a tool in two pieces.
"""
import collections
import json
import re
import threading
import time
import uuid

from model_script import Tool, kind_of

MODELS = ("test-model", "gpt-5.1-codex", "gpt-5", "gpt-4.1", "claude-sonnet-4-5", "claude-haiku-4-5", "gemini-2.5-pro", "gemini-2.5-flash")


class Talk:
    """A request, the same for all protocols.

    turn: how often the model has spoken already. user: all that the user has written. last: what the last tool said.
    everything: all text of it. form: a schema that the answer has to fit, or None.
    """
    model, stream, tools, turn, user, last, everything, form, usage = "test-model", False, (), 0, "", "", "", None, True


def flat(content):
    """Text of a message's content, in any of the shapes."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        return flat(content.get("text") or content.get("content") or content.get("output") or content.get("parts") or "")
    return "\n".join(filter(None, map(flat, content)))


def count(text):
    return max(1, len(text) // 4)


# ---- requests

def parse_chat(t, body):
    was = None
    for m in body.get("messages", []):
        role, text = m.get("role"), flat(m.get("content"))
        t.turn += role == "assistant"
        if role == "user":
            t.user += text + "\n"
        if role in ("tool", "function"):
            t.last = text
        was = role
    t.tools = [Tool(x["function"]["name"], x["function"].get("parameters")) if x.get("type") == "function" else
               Tool((x.get("custom") or x).get("name", ""), None, "custom") for x in body.get("tools") or []]
    t.usage = bool((body.get("stream_options") or {}).get("include_usage"))
    t.form = (body.get("response_format") or {}).get("json_schema", {}).get("schema")
    return was


def parse_responses(t, body):
    ours, offered = False, list(body.get("tools") or [])
    items = body.get("input", [])
    for m in [{"role": "user", "content": items}] if isinstance(items, str) else items:
        kind, role = m.get("type", "message"), m.get("role")
        offered += m.get("tools") or [] if kind == "additional_tools" else []
        if kind.endswith("_output"):
            t.last, ours = flat(m.get("output")), False
        elif role == "assistant" or kind.endswith("_call") or kind == "reasoning":
            t.turn += not ours
            ours = True
        else:
            ours = False
            if role == "user":
                t.user += flat(m.get("content")) + "\n"
    offered = [(x, None) for x in offered] + [(x, n["name"]) for n in offered if n["type"] == "namespace" for x in n.get("tools") or []]
    t.tools = [Tool(x.get("name") or x["type"], x.get("parameters"), "custom" if x["type"] == "custom" else "function", space)
               for x, space in offered if x["type"] in ("function", "custom", "local_shell")]
    t.form = ((body.get("text") or {}).get("format") or {}).get("schema")


def parse_messages(t, body):
    for m in body.get("messages", []):
        if m.get("role") == "assistant":
            t.turn += 1
            continue
        for part in m["content"] if isinstance(m.get("content"), list) else [m.get("content")]:
            if isinstance(part, dict) and part.get("type") == "tool_result":
                t.last = flat(part.get("content"))
            else:
                t.user += flat(part) + "\n"
    t.tools = [Tool(x["name"], x.get("input_schema")) for x in body.get("tools") or [] if "input_schema" in x]
    t.form = ((body.get("output_config") or {}).get("format") or body.get("output_format") or {}).get("schema")


def parse_gemini(t, body):
    for m in body.get("contents", []):
        if m.get("role") == "model":
            t.turn += 1
            continue
        for part in m.get("parts", []):
            if said := part.get("functionResponse"):
                said = said.get("response") or {}
                t.last = flat(said.get("output") or said.get("content") or json.dumps(said))
            else:
                t.user += part.get("text", "") + "\n"
    t.tools = [Tool(f["name"], f.get("parametersJsonSchema") or f.get("parameters"))
               for x in body.get("tools") or [] for f in x.get("functionDeclarations") or x.get("function_declarations") or []]
    settings = body.get("generationConfig") or {}
    t.form = settings.get("responseJsonSchema") or settings.get("responseSchema")


PARSERS = {"chat": parse_chat, "responses": parse_responses, "messages": parse_messages, "gemini": parse_gemini}


class Threads:
    """What was said before, for requests that say no more than what is new since an answer, by the answer's id: Anthropic's message threads, and
    previous_response_id of OpenAI's responses. The latest of them are kept."""
    MAX = 4096

    def __init__(self):
        self.bodies, self.lock = collections.OrderedDict(), threading.Lock()

    def whole(self, body):
        thread = body.get("thread") or {}
        before = thread.get("previous_message_id") if thread.get("type") == "continue" else body.get("previous_response_id")
        if not before:
            return body
        with self.lock:
            was = self.bodies.get(before)
        if was is None:
            raise KeyError("no such thread")
        field = "messages" if "messages" in body else "input"
        return {**was, **body, field: was[field] + body[field]}

    def keep(self, body, field, name, said):
        with self.lock:
            self.bodies[name] = {**{k: v for k, v in body.items() if k != "generate"}, field: body[field] + said}
            if len(self.bodies) > self.MAX:
                self.bodies.popitem(last=False)


threads = Threads()


def parse(api, path, body):
    t = Talk()
    body = t.body = threads.whole(body)
    PARSERS[api](t, body)
    t.everything = json.dumps(body, ensure_ascii=False)
    t.model = body.get("model") or (re.search(r"models/([^:/?]+)", path) or [0, t.model])[1]
    t.stream = "stream" in path.partition("?")[0].rpartition(":")[2] if api == "gemini" else bool(body.get("stream"))
    t.sse = api != "gemini" or "alt=sse" in path
    return t


def shaped(schema):
    """The least JSON value that a schema allows."""
    if schema.get("enum"):
        return schema["enum"][0]
    kind = kind_of(schema)
    if kind == "object":
        return {k: shaped(v) for k, v in (schema.get("properties") or {}).items()}
    return {"string": "A task", "number": 1, "integer": 1, "boolean": False, "array": []}.get(kind)


# ---- answers: a document for the whole, events for the stream

def name(prefix):
    return prefix + uuid.uuid4().hex[:24]


def words(text):
    return re.findall(r"\S*\s*", text)[:-1] if text else []


def halves(text):
    return [text[:len(text) // 2], text[len(text) // 2:]]


def chat(t, say, calls):
    called = [{"id": name("call_"), "type": "function", "function": {"name": x.name, "arguments": json.dumps(a)}} if x.kind == "function" else
              {"id": name("call_"), "type": "custom", "custom": {"name": x.name, "input": a}} for x, a in calls]
    reads, writes = count(t.everything), count((say or "") + json.dumps(called))
    usage = {"prompt_tokens": reads, "completion_tokens": writes, "total_tokens": reads + writes}
    base = {"id": name("chatcmpl-"), "created": int(time.time()), "model": t.model}
    why = "tool_calls" if calls else "stop"
    whole = {**base, "object": "chat.completion", "usage": usage,
             "choices": [{"index": 0, "finish_reason": why, "message": {"role": "assistant", "content": say, **({"tool_calls": called} if called else {})}}]}

    def events():
        def chunk(delta, end=None):
            return None, {**base, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": end}]}
        yield chunk({"role": "assistant", "content": "" if say else None})
        for w in words(say):
            yield chunk({"content": w})
        for i, c in enumerate(called):
            kind, field = c["type"], "arguments" if c["type"] == "function" else "input"
            first, second = halves(c[kind][field])
            yield chunk({"tool_calls": [{"index": i, "id": c["id"], "type": kind, kind: {"name": c[kind]["name"], field: first}}]})
            yield chunk({"tool_calls": [{"index": i, kind: {field: second}}]})
        yield chunk({}, why)
        if t.usage:
            yield None, {**base, "object": "chat.completion.chunk", "choices": [], "usage": usage}
        yield None, "[DONE]"
    return whole, events()


def responses(t, say, calls):
    items = []
    if say:
        items.append({"id": name("msg_"), "type": "message", "status": "completed", "role": "assistant",
                      "content": [{"type": "output_text", "text": say, "annotations": [], "logprobs": []}]})
    for x, a in calls:
        space = {"namespace": x.namespace} if x.namespace else {}
        if x.name == "local_shell":
            items.append({"id": name("lsh_"), "type": "local_shell_call", "call_id": name("call_"), "status": "completed",
                          "action": {"type": "exec", "command": a["command"], "env": {}}})
        elif x.kind == "custom":
            items.append({"id": name("ctc_"), "type": "custom_tool_call", "call_id": name("call_"), "status": "completed", "name": x.name, "input": a,
                          **space})
        else:
            items.append({"id": name("fc_"), "type": "function_call", "call_id": name("call_"), "status": "completed", "name": x.name,
                          "arguments": json.dumps(a), **space})
    reads, writes = count(t.everything), count(json.dumps(items))
    usage = {"input_tokens": reads, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": writes,
             "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": reads + writes}
    base = {"id": name("resp_"), "object": "response", "created_at": int(time.time()), "model": t.model, "error": None, "incomplete_details": None,
            "parallel_tool_calls": False, "tool_choice": "auto", "tools": [], "metadata": {}}
    whole = {**base, "status": "completed", "output": items, "usage": usage}

    def events():
        number = 0

        def event(kind, **what):
            nonlocal number
            number += 1
            return kind, {"type": kind, "sequence_number": number - 1, **what}
        yield event("response.created", response={**base, "status": "in_progress", "output": [], "usage": None})
        yield event("response.in_progress", response={**base, "status": "in_progress", "output": [], "usage": None})
        for i, item in enumerate(items):
            at = {"output_index": i, "item_id": item["id"]}
            kind = item["type"]
            empty = {"message": {"content": []}, "function_call": {"arguments": ""}, "custom_tool_call": {"input": ""}}.get(kind, {})
            yield event("response.output_item.added", output_index=i, item={**item, "status": "in_progress", **empty})
            if kind == "message":
                part = item["content"][0]
                yield event("response.content_part.added", **at, content_index=0, part={**part, "text": ""})
                for w in words(part["text"]):
                    yield event("response.output_text.delta", **at, content_index=0, delta=w, logprobs=[])
                yield event("response.output_text.done", **at, content_index=0, text=part["text"], logprobs=[])
                yield event("response.content_part.done", **at, content_index=0, part=part)
            elif kind != "local_shell_call":
                what, field = ("function_call_arguments", "arguments") if kind == "function_call" else ("custom_tool_call_input", "input")
                for piece in halves(item[field]):
                    yield event(f"response.{what}.delta", **at, delta=piece)
                yield event(f"response.{what}.done", **at, **{field: item[field]})
            yield event("response.output_item.done", output_index=i, item=item)
        yield event("response.completed", response=whole)
    return whole, events()


def messages(t, say, calls):
    content = [{"type": "text", "text": say}] if say else []
    content += [{"type": "tool_use", "id": name("toolu_"), "name": x.name, "input": a if isinstance(a, dict) else {"input": a}} for x, a in calls]
    why = "tool_use" if calls else "end_turn"
    usage = {"input_tokens": count(t.everything), "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": count(json.dumps(content))}
    whole = {"id": name("msg_"), "type": "message", "role": "assistant", "model": t.model, "content": content, "stop_reason": why, "stop_sequence": None,
             "usage": usage}

    def events():
        yield "message_start", {"type": "message_start",
                                "message": {**whole, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}}
        for i, block in enumerate(content):
            text = block["type"] == "text"
            yield "content_block_start", {"type": "content_block_start", "index": i, "content_block": {**block, **({"text": ""} if text else {"input": {}})}}
            if not i:
                yield "ping", {"type": "ping"}
            for piece in words(block["text"]) if text else halves(json.dumps(block["input"])):
                delta = {"type": "text_delta", "text": piece} if text else {"type": "input_json_delta", "partial_json": piece}
                yield "content_block_delta", {"type": "content_block_delta", "index": i, "delta": delta}
            yield "content_block_stop", {"type": "content_block_stop", "index": i}
        yield "message_delta", {"type": "message_delta", "delta": {"stop_reason": why, "stop_sequence": None}, "usage": usage}
        yield "message_stop", {"type": "message_stop"}
    return whole, events()


def gemini(t, say, calls):
    parts = [{"text": say}] if say else []
    parts += [{"functionCall": {"name": x.name, "args": a if isinstance(a, dict) else {"input": a}}, "thoughtSignature": "c2lnbmVk"} for x, a in calls]
    reads, writes = count(t.everything), count(json.dumps(parts))
    usage = {"promptTokenCount": reads, "candidatesTokenCount": writes, "totalTokenCount": reads + writes}
    base = {"modelVersion": t.model, "responseId": name("")}

    def answer(some, end=True):
        return {"candidates": [{"content": {"role": "model", "parts": some}, "index": 0, **({"finishReason": "STOP"} if end else {})}],
                "usageMetadata": usage, **base}

    def events():
        pieces = [{"text": w} for w in words(say)] + parts[bool(say):]
        for i, part in enumerate(pieces):
            yield None, answer([part], i + 1 == len(pieces))
    return answer(parts), events()


ANSWERS = {"chat": chat, "responses": responses, "messages": messages, "gemini": gemini}


def both(api, t, say, calls):
    """An answer as a document, and as events."""
    if t.form and not calls:
        say = json.dumps(shaped(t.form))
    if say is None and not calls:
        say = "Done."
    whole, events = ANSWERS[api](t, say, calls)
    if api == "messages" and "thread" in t.body:
        threads.keep(t.body, "messages", whole["id"], [{"role": "assistant", "content": whole["content"]}])
    if api == "responses" and isinstance(t.body.get("input"), list):
        threads.keep(t.body, "input", whole["id"], whole["output"])
    return whole, events


def answer(api, t, say, calls):
    """The type and the pieces of an answer over HTTP."""
    whole, events = both(api, t, say, calls)
    if not t.stream:
        return "application/json", [json.dumps(whole).encode()]
    if not t.sse:
        return "application/json", [json.dumps([d for _, d in events]).encode()]

    def pieces():
        for kind, data in events:
            yield ((f"event: {kind}\n" if kind else "") + "data: " + (data if isinstance(data, str) else json.dumps(data)) + "\n\n").encode()
    return "text/event-stream", pieces()


# ---- the rest

GOOGLE = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 404: "NOT_FOUND"}
ANTHROPIC = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error"}


def refusal(api, status, text):
    if api == "messages":
        return {"type": "error", "error": {"type": ANTHROPIC[status], "message": text}, "request_id": name("req_")}
    if api == "gemini":
        return {"error": {"code": status, "message": text, "status": GOOGLE[status]}}
    return {"error": {"message": text, "type": "invalid_request_error", "param": None, "code": "invalid_api_key" if status == 401 else None}}


def models(api, one=None):
    if api == "messages":
        every = [{"type": "model", "id": m, "display_name": m, "created_at": "2026-01-01T00:00:00Z"} for m in MODELS]
        whole = {"data": every, "has_more": False, "first_id": MODELS[0], "last_id": MODELS[-1]}
    elif api == "gemini":
        every = [{"name": f"models/{m}", "version": "1", "displayName": m, "inputTokenLimit": 1048576, "outputTokenLimit": 65536,
                  "supportedGenerationMethods": ["generateContent", "countTokens"]} for m in MODELS]
        whole = {"models": every}
    else:
        every = [{"id": m, "object": "model", "created": 1767225600, "owned_by": "test"} for m in MODELS]
        whole = {"object": "list", "data": every}
    return whole if one is None else next((e for e in every if one in (e.get("id"), (e.get("name") or "")[7:])), {**every[0], "id": one})
