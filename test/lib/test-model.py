#!/usr/bin/python3
"""What `model` promises, by curl over TLS: each protocol, whole and as a stream, through a script to its end.

The tools that are offered here are named and shaped as the agents name and shape theirs; what each agent was seen to send.
"""
import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
KEY = "a-real-key"
rows = 0


def row(good, name, more=""):
    global rows
    rows += 1
    print(f"{'ok' if good else 'not ok'} {rows} - {name}", flush=True)
    if not good:
        print("\n".join("# " + line for line in str(more)[:2000].splitlines()), flush=True)


def same(name, got, want):
    row(got == want, name, f"got:    {got!r}\nwanted: {want!r}")


class Model:
    def __init__(self, root, script, key=True):
        self.root = root
        root.mkdir()
        (root / "key").write_text(KEY + "\n")
        self.process = subprocess.Popen([HERE / "model", root / "m", "--script", script] + (["--key", root / "key"] if key else []))
        end = time.monotonic() + 30
        while not (root / "m/ports").exists():
            if self.process.poll() is not None or time.monotonic() > end:
                sys.exit("the model did not start")
            time.sleep(0.02)
        self.ports = dict(line.split("=") for line in (root / "m/ports").read_text().split())

    def curl(self, host, path, body=None, headers=(), plain=False, more=()):
        """Status, type, text."""
        port = self.ports["plain" if plain else "tls"]
        url = f"http://127.0.0.1:{port}{path}" if plain else f"https://{host}:{port}{path}"
        args = ["curl", "-sS", "--noproxy", "*", "--max-time", "30", "--cacert", self.root / "m/ca.pem", "--resolve", f"{host}:{port}:127.0.0.1", "-w",
                "\n%{http_code} %{content_type}"]
        for h in headers:
            args += ["-H", h]
        if body is not None:
            args += ["-H", "Content-Type: application/json", "--data-binary", "@-"]
        out = subprocess.run([*args, *more, url], input=json.dumps(body).encode(), capture_output=True, check=False)
        text, _, last = out.stdout.decode().rpartition("\n")
        status, _, kind = last.partition(" ")
        return int(status or 0), kind, text or out.stderr.decode()

    def seen(self):
        return [json.loads(line) for line in (self.root / "m/seen").read_text().splitlines()]

    def end(self, sig=signal.SIGTERM):
        self.process.send_signal(sig)
        return self.process.wait(10)


def events(text):
    """The documents of a stream, [DONE] left out."""
    found = [line[6:] for line in text.split("\n") if line.startswith("data: ")]
    return [json.loads(e) for e in found if e != "[DONE]"]


def string(**names):
    return {"type": "object", "properties": {n: {"type": t} for n, t in names.items()}, "required": list(names)}


PI = {"read": string(path="string"), "write": string(path="string", content="string"), "bash": string(command="string"),
      "edit": {"type": "object", "required": ["path", "edits"], "properties": {
          "path": {"type": "string"}, "edits": {"type": "array", "items": string(oldText="string", newText="string")}}}}
CLAUDE = {"Read": string(file_path="string"), "Edit": string(file_path="string", old_string="string", new_string="string"),
          "Bash": string(command="string", description="string"), "Write": string(file_path="string", content="string")}
GEMINI = {"read_file": string(file_path="STRING"), "run_shell_command": string(command="STRING"),
          "replace": string(file_path="STRING", instruction="STRING", old_string="STRING", new_string="STRING")}
OPENCODE = {"read": string(filePath="string"), "edit": string(filePath="string", oldString="string", newString="string"),
            "bash": string(command="string", description="string")}
COPILOT = {"view": string(path="string"), "edit": string(path="string", old_str="string", new_str="string"), "bash": string(command="string", initial_wait="integer")}


# ---- a client for each protocol: ask(stream) -> text, [(name, arguments)], usage seen

class Chat:
    host, path, headers = "api.openai.com", "/v1/chat/completions", (f"Authorization: Bearer {KEY}",)

    def __init__(self, tools, prompt):
        self.body = {"model": "gpt-4.1", "messages": [{"role": "system", "content": "Working directory: /w/d"}, {"role": "user", "content": prompt}],
                     "tools": [{"type": "function", "function": {"name": n, "parameters": s}} for n, s in tools.items()]}

    def request(self, stream):
        return self.path, {**self.body, "stream": stream, **({"stream_options": {"include_usage": True}} if stream else {})}

    def read(self, text, stream):
        if not stream:
            d = json.loads(text)
            m = d["choices"][0]["message"]
            return m["content"], [(c["id"], c["function"]["name"], c["function"]["arguments"]) for c in m.get("tool_calls", [])], d["usage"]["total_tokens"]
        say, calls, used, last = "", {}, 0, None
        for e in events(text):
            used = (e.get("usage") or {}).get("total_tokens", used)
            for c in e["choices"]:
                last = c["finish_reason"] or last
                say += c["delta"].get("content") or ""
                for t in c["delta"].get("tool_calls", []):
                    was = calls.setdefault(t["index"], ["", "", ""])
                    was[0], was[1] = t.get("id") or was[0], t["function"].get("name") or was[1]
                    was[2] += t["function"]["arguments"]
        row(last == ("tool_calls" if calls else "stop") and text.rstrip().endswith("data: [DONE]"), "chat: the stream ends as it should", text)
        return say, [tuple(c) for c in calls.values()], used

    def answer(self, say, calls, result):
        self.body["messages"] += [{"role": "assistant", "content": say, "tool_calls": [
            {"id": i, "type": "function", "function": {"name": n, "arguments": a}} for i, n, a in calls]}]
        self.body["messages"] += [{"role": "tool", "tool_call_id": i, "content": result} for i, _, _ in calls]


class Responses:
    host, path, headers = "api.openai.com", "/v1/responses", (f"Authorization: Bearer {KEY}",)

    def __init__(self, tools, prompt):
        self.body = {"model": "gpt-5", "input": [{"role": "developer", "content": "<cwd>/w/d</cwd>"},
                                                 {"role": "user", "content": [{"type": "input_text", "text": prompt}]}],
                     "tools": [{"type": "function", "name": n, "parameters": s} for n, s in tools.items()]}

    def request(self, stream):
        return self.path, {**self.body, "stream": stream}

    def read(self, text, stream):
        d = json.loads(text) if not stream else None
        if stream:
            said, arguments, added = "", {}, []
            for e in events(text):
                if e["type"] == "response.output_item.added":
                    added.append(e["item"]["id"])
                if e["type"] == "response.output_text.delta":
                    said += e["delta"]
                if e["type"] == "response.function_call_arguments.delta":
                    arguments[e["item_id"]] = arguments.get(e["item_id"], "") + e["delta"]
            d = events(text)[-1]["response"]
            whole = "".join(p["text"] for i in d["output"] if i["type"] == "message" for p in i["content"])
            row(said == whole and arguments == {i["id"]: i["arguments"] for i in d["output"] if i["type"] == "function_call"} and
                added == [i["id"] for i in d["output"]] and [e["sequence_number"] for e in events(text)] == list(range(len(events(text)))),
                "responses: the deltas add up to the document at the end", text)
        self.output = d["output"]
        return ("".join(p["text"] for i in d["output"] if i["type"] == "message" for p in i["content"]),
                [(i["call_id"], i["name"], i["arguments"]) for i in d["output"] if i["type"] == "function_call"], d["usage"]["total_tokens"])

    def answer(self, _, calls, result):
        self.body["input"] += self.output + [{"type": "function_call_output", "call_id": i, "output": result} for i, _, _ in calls]


class Messages:
    host, path, headers = "api.anthropic.com", "/v1/messages", (f"x-api-key: {KEY}", "anthropic-version: 2023-06-01")

    def __init__(self, tools, prompt):
        self.body = {"model": "claude-sonnet-4-5", "max_tokens": 1000, "system": [{"type": "text", "text": "Primary working directory: /w/d"}],
                     "messages": [{"role": "user", "content": [{"type": "text", "text": prompt}]}],
                     "tools": [{"name": n, "input_schema": s} for n, s in tools.items()]}

    def request(self, stream):
        return self.path + "?beta=true", {**self.body, "stream": stream}

    def read(self, text, stream):
        if not stream:
            d = json.loads(text)
            content, used = d["content"], d["usage"]["output_tokens"]
        else:
            kinds = [line[7:] for line in text.split("\n") if line.startswith("event: ")]
            content, used = [], 0
            for e in events(text):
                if e["type"] == "content_block_start":
                    content.append({**e["content_block"], "raw": ""})
                if e["type"] == "content_block_delta":
                    content[e["index"]]["raw"] += e["delta"].get("text") or e["delta"].get("partial_json") or ""
                if e["type"] == "message_delta":
                    used = e["usage"]["output_tokens"]
            for c in content:
                raw = c.pop("raw")
                c.update({"text": raw} if c["type"] == "text" else {"input": json.loads(raw)})
            row(kinds[0] == "message_start" and kinds[-2:] == ["message_delta", "message_stop"] and kinds == [e["type"] for e in events(text)],
                "messages: the events are named and in order", text)
        self.content = content
        return ("".join(c["text"] for c in content if c["type"] == "text"),
                [(c["id"], c["name"], json.dumps(c["input"])) for c in content if c["type"] == "tool_use"], used)

    def answer(self, _, calls, result):
        self.body["messages"] += [{"role": "assistant", "content": self.content},
                                  {"role": "user", "content": [{"type": "tool_result", "tool_use_id": i, "content": result} for i, _, _ in calls]}]


class Gemini:
    host, path, headers = "generativelanguage.googleapis.com", "/v1beta/models/gemini-2.5-pro", (f"x-goog-api-key: {KEY}",)

    def __init__(self, tools, prompt):
        self.body = {"systemInstruction": {"parts": [{"text": "workspace directories:\n  - /w/d\n"}]},
                     "contents": [{"role": "user", "parts": [{"text": prompt}]}],
                     "tools": [{"functionDeclarations": [{"name": n, "parametersJsonSchema": s} for n, s in tools.items()]}]}

    def request(self, stream):
        return self.path + (":streamGenerateContent?alt=sse" if stream else ":generateContent"), self.body

    def read(self, text, stream):
        every = events(text) if stream else [json.loads(text)]
        self.parts = [p for d in every for c in d["candidates"] for p in c["content"]["parts"]]
        row(every[-1]["candidates"][0].get("finishReason") == "STOP", "gemini: the end says why", text)
        return ("".join(p.get("text", "") for p in self.parts),
                [("", p["functionCall"]["name"], json.dumps(p["functionCall"]["args"])) for p in self.parts if "functionCall" in p],
                every[-1]["usageMetadata"]["totalTokenCount"])

    def answer(self, _, calls, result):
        self.body["contents"] += [{"role": "model", "parts": self.parts},
                                  {"role": "user", "parts": [{"functionResponse": {"name": n, "response": {"output": result}}} for _, n, _ in calls]}]


def play(model, protocol, tools, stream, prompt="fix the failing test"):
    """The whole conversation: texts, and calls as (name, arguments)."""
    client, said, called, used = protocol(tools, prompt), [], [], []
    for i in range(9):
        path, body = client.request(stream)
        status, kind, text = model.curl(client.host, path, body, client.headers)
        if status != 200 or not kind.startswith("text/event-stream" if stream else "application/json"):
            row(False, f"{protocol.__name__}: status {status}, {kind}", text)
            break
        say, calls, tokens = client.read(text, stream)
        said.append(say)
        used.append(tokens)
        called += [(n, json.loads(a)) for _, n, a in calls]
        if not calls:
            break
        client.answer(say, calls, f"result {i}: it's \"so\"")
    row(all(used), f"{protocol.__name__}: tokens are counted", used)
    return said, called


OLD, NEW = "    return a - b", "    return a + b"
SAID = ["I look at the code first.", "The sign is wrong.", None, "add() adds now, and its test passes."]
COMMAND = "python3 -m unittest 2>&1 | tail -n 3"
WANT = [
    ("pi, chat", Chat, PI, [("read", {"path": "add.py"}), ("edit", {"path": "add.py", "edits": [{"oldText": OLD, "newText": NEW}]}),
                            ("bash", {"command": COMMAND})]),
    ("opencode, responses", Responses, OPENCODE, [("read", {"filePath": "/w/d/add.py"}),
                                                  ("edit", {"filePath": "/w/d/add.py", "oldString": OLD, "newString": NEW}),
                                                  ("bash", {"command": COMMAND, "description": "as asked"})]),
    ("claude, messages", Messages, CLAUDE, [("Read", {"file_path": "/w/d/add.py"}),
                                            ("Edit", {"file_path": "/w/d/add.py", "old_string": OLD, "new_string": NEW}),
                                            ("Bash", {"command": COMMAND, "description": "as asked"})]),
    ("gemini", Gemini, GEMINI, [("read_file", {"file_path": "/w/d/add.py"}),
                                ("replace", {"file_path": "/w/d/add.py", "instruction": "as asked", "old_string": OLD, "new_string": NEW}),
                                ("run_shell_command", {"command": COMMAND})]),
    ("copilot, messages", Messages, COPILOT, [("view", {"path": "add.py"}), ("edit", {"path": "add.py", "old_str": OLD, "new_str": NEW}),
                                              ("bash", {"command": COMMAND, "initial_wait": 300})]),
]


def conversations(model):
    for name, protocol, tools, want in WANT:
        for stream in (False, True):
            said, called = play(model, protocol, tools, stream)
            what = f"{name}, {'stream' if stream else 'whole'}"
            same(f"{what}: says", [s or None for s in said], SAID)
            same(f"{what}: does", called, want)


def refusals(model):
    for name, protocol, header in (("chat", Chat, "Authorization: Bearer proxy-managed"), ("responses", Responses, "Authorization: Bearer proxy-managed"),
                                   ("messages", Messages, "x-api-key: proxy-managed"), ("gemini", Gemini, "x-goog-api-key: proxy-managed")):
        client = protocol(PI, "x")
        path, body = client.request(True)
        status, _, text = model.curl(client.host, path, body, [header])
        error = json.loads(text)["error"]
        same(f"{name}: another key gets 401", status, 401)
        row(error.get("message") and {"messages": error.get("type") == "authentication_error", "gemini": error.get("status") == "UNAUTHENTICATED"}.get(
            name, error.get("code") == "invalid_api_key"), f"{name}: as its protocol says it", text)
        same(f"{name}: and is written down", (model.seen()[-1]["status"], model.seen()[-1]["key"]), (401, "proxy-managed"))
    same("no key: 401", model.curl("api.openai.com", "/v1/models")[0], 401)
    same("gemini: the key in the address", model.curl("generativelanguage.googleapis.com", f"/v1beta/models?key={KEY}")[0], 200)
    status, _, text = model.curl("api.openai.com", "/v1/nothing", {"x": 1}, Chat.headers)
    same("what is not there: 404", (status, model.seen()[-1]["path"], model.seen()[-1]["body"]), (404, "/v1/nothing", {"x": 1}))
    same("no request: 400", model.curl("api.openai.com", "/v1/chat/completions", [1], Chat.headers)[0], 400)
    row("error" in json.loads(text), "in words of JSON", text)
    (model.root / "key").write_text("another")
    same("the file's key is the one of now", model.curl("api.openai.com", "/v1/models", headers=Chat.headers)[0], 401)
    (model.root / "key").write_text(KEY)


def lists(model):
    ids = json.loads(model.curl("api.openai.com", "/v1/models", headers=Chat.headers)[2])["data"]
    row("gpt-5" in [m["id"] for m in ids], "models of OpenAI", ids)
    d = json.loads(model.curl("api.anthropic.com", "/v1/models", headers=Messages.headers)[2])
    row(d["data"][0]["type"] == "model" and d["has_more"] is False, "models of Anthropic", d)
    d = json.loads(model.curl(Gemini.host, "/v1beta/models", headers=Gemini.headers)[2])
    row(d["models"][0]["name"].startswith("models/"), "models of Gemini", d)
    same("one of them", json.loads(model.curl("api.openai.com", "/v1/models/gpt-5", headers=Chat.headers)[2])["id"], "gpt-5")
    n = json.loads(model.curl("api.anthropic.com", "/v1/messages/count_tokens", {"messages": []}, Messages.headers)[2])
    row(n["input_tokens"] > 0, "count_tokens", n)
    n = json.loads(model.curl(Gemini.host, "/v1beta/models/x:countTokens", {"contents": []}, Gemini.headers)[2])
    row(n["totalTokens"] > 0, "countTokens", n)
    d = json.loads(model.curl("api.github.com", "/copilot_internal/user", headers=Chat.headers)[2])
    same("Copilot is sent to its host", d["endpoints"]["api"], "https://api.individual.githubcopilot.com")
    d = json.loads(model.curl("api.individual.githubcopilot.com", "/models", headers=Chat.headers)[2])
    row("capabilities" in d["data"][0], "models of Copilot", d)


def odd_shapes(model):
    """What is left: no tools, a form, a patch, a namespace with code, a thread, plain HTTP, one connection for many."""
    status, _, text = model.curl("api.openai.com", "/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}]}, Chat.headers, plain=True)
    same("plain HTTP; no tools: a title", (status, json.loads(text)["choices"][0]["message"]["content"]), (200, "A task"))
    form = {"type": "object", "properties": {"score": {"type": "integer"}, "why": {"type": "string"}}}
    _, _, text = model.curl(Gemini.host, Gemini.path + ":generateContent",
                            {"contents": [], "generationConfig": {"responseJsonSchema": form}}, Gemini.headers)
    same("a form is filled in", json.loads(json.loads(text)["candidates"][0]["content"]["parts"][0]["text"]), {"score": 1, "why": "A task"})
    client = Responses({}, "x")
    client.body["input"].append({"role": "assistant", "content": "one"})
    client.body["tools"] = [{"type": "custom", "name": "apply_patch"}, {"type": "function", "name": "shell", "parameters": string(command="array")}]
    d = json.loads(model.curl(client.host, client.path, client.body, client.headers)[2])["output"]
    same("a patch", [(i["type"], i["input"]) for i in d if "input" in i],
         [("custom_tool_call", f"*** Begin Patch\n*** Update File: add.py\n@@\n-{OLD}\n+{NEW}\n*** End Patch\n")])
    client.body["input"] += [{"role": "user", "content": "more"}, {"role": "assistant", "content": "x"}] * 9
    d = json.loads(model.curl(client.host, client.path, client.body, client.headers)[2])["output"]
    same("behind the last turn: its text again", d[0]["content"][0]["text"], SAID[-1])
    client.body["input"] = client.body["input"][:2]
    d = json.loads(model.curl(client.host, client.path, client.body, client.headers)[2])["output"]
    same("no tool to read: the shell", json.loads(d[-1]["arguments"]), {"command": ["bash", "-lc", "cat add.py"]})
    client.body["tools"] = []
    client.body["input"].insert(0, {"type": "additional_tools", "tools": [
        {"type": "namespace", "name": "functions", "tools": [{"type": "custom", "name": "exec"}]}]})
    d = json.loads(model.curl(client.host, client.path, client.body, client.headers)[2])["output"][-1]
    row(d["name"] == "exec" and d["namespace"] == "functions" and "tools.exec_command" in d["input"], "code in a namespace", d)
    out = model.curl("api.openai.com", "/v1/models", headers=Chat.headers, more=["-w", "%{num_connects}\n", f"https://api.openai.com:{model.ports['tls']}/v1/models"])
    row(out[2].endswith("}0"), "a connection is kept", out)


def threads(model):
    client = Messages(PI, "x")
    body = {**client.body, "thread": {"type": "create"}}
    d = json.loads(model.curl(client.host, client.path, body, client.headers)[2])
    result = [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": d["content"][-1]["id"], "content": "x"}]}]
    more = {"model": "m", "messages": result, "thread": {"type": "continue", "previous_message_id": d["id"]}}
    d = json.loads(model.curl(client.host, client.path, more, client.headers)[2])
    same("a thread goes on", d["content"][-1]["name"], "edit")
    more["thread"]["previous_message_id"] = "none"
    same("one that is not known: 400", model.curl(client.host, client.path, more, client.headers)[0], 400)


def web_socket(model):
    context = ssl.create_default_context(cafile=model.root / "m/ca.pem")
    with context.wrap_socket(socket.create_connection(("127.0.0.1", int(model.ports["tls"])), 10), server_hostname="api.openai.com") as s:
        s.sendall(f"GET /v1/responses HTTP/1.1\r\nHost: api.openai.com\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                  f"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nAuthorization: Bearer {KEY}\r\n\r\n".encode())
        f = s.makefile("rb")
        head = b"".join(iter(f.readline, b"\r\n"))
        row(b" 101 " in head and b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in head, "a WebSocket opens", head)

        def ask(d):
            data = json.dumps(d).encode()
            s.sendall(b"\x81\xfe" + struct.pack(">H", len(data)) + b"\0\0\0\0" + data)
            while True:
                size = f.read(2)[1]
                size = int.from_bytes(f.read(2 if size == 126 else 8), "big") if size >= 126 else size
                event = json.loads(f.read(size))
                if event["type"] in ("response.completed", "error"):
                    return event
        client = Responses(PI, "x")
        e = ask({"type": "response.create", "generate": False, **client.body})["response"]
        same("what is only to be kept has no answer", e["output"], [])
        e = ask({"type": "response.create", "input": [], "previous_response_id": e["id"]})["response"]
        same("the first turn over it", e["output"][-1]["name"], "read")
        e = ask({"type": "response.create", "input": [{"type": "function_call_output", "call_id": "c", "output": "x"}], "previous_response_id": e["id"]})
        same("the second says only what is new", e["response"]["output"][-1]["name"], "edit")
        same("nonsense is answered", ask({"input": 5, "previous_response_id": "none"})["type"], "error")


def scripts(root):
    """Every script there is can be played with every agent's tools to its end."""
    for script in sorted((HERE / "model-scripts").glob("*.json")):
        model = Model(root / script.stem, script)
        for name, protocol, tools, _ in WANT:
            said, called = play(model, protocol, tools, True, "do what is asked")
            row(len(said) == len(json.loads(script.read_text())["conversations"][-1]["turns"]) and called, f"{script.name} with {name}", (said, called))
        if script.stem == "inject":
            row("result 1: it" in called[-1][1]["command"] and "'\"'\"'" in called[-1][1]["command"], "what a tool said is quoted for the shell", called[-1])
        model.end()


def main():
    for tool in ("curl", "openssl"):
        if not shutil.which(tool):
            print(f"1..0 # SKIP there is no {tool}")
            return
    with tempfile.TemporaryDirectory() as where:
        model = Model(pathlib.Path(where, "one"), HERE / "model-scripts/edit.json")
        for part in (conversations, refusals, lists, odd_shapes, threads, web_socket):
            part(model)
        row(KEY not in os.popen(f"ps -o args= -p {model.process.pid}").read(), "the key is in no command line")
        same("SIGTERM ends it", model.end(), 0)
        scripts(pathlib.Path(where))
    print(f"1..{rows}")


main()
