"""What a scripted model says next, and with which of the tools that the client offers.

A script is JSON:

    {"conversations": [
        {"when": "a regular expression, searched in what the user has written (absent: always)",
         "turns": [
            {"say": "I read it.", "do": [{"read": {"path": "SUPPORT.md"}}]},
            {"do": [{"edit": {"path": "add.py", "old": "a - b", "new": "a + b"}}]},
            {"do": [{"shell": {"command": "python3 -m unittest"}}]},
            {"say": "Done."}]}]}

The first conversation that fits is played. Which turn is due is counted in the request: as many as the model has spoken already. So the
server keeps nothing between requests, any number of clients can play the same script at once, and one that asks again gets the same
answer. After the last turn comes its text again: some clients put turns of their own into the model's mouth.

Actions: read {path}, write {path, content}, edit {path, old, new}, shell {command}. Each becomes a call of a tool that this request offers:
its arguments are named as the tool's schema names them, and what the schema requires beside that is filled in. {{last}} in a text of an
action is what the last tool said, {{last|sh}} the same as one word of a shell, {{cwd}} the folder that the client says it works in.
"""
import json
import re
import shlex

# action -> names of tools, best first. A client offers some of them.
TOOLS = {
    "read": ("read", "Read", "read_file", "view"),
    "write": ("write", "Write", "write_file", "create"),
    "edit": ("edit", "Edit", "replace"),
    "shell": ("bash", "Bash", "run_shell_command", "shell_command", "exec_command", "shell", "local_shell"),
}
# argument of an action -> how tools name it
ARGUMENTS = {
    "path": ("path", "file_path", "filePath", "absolute_path"),
    "content": ("content", "file_text"),
    "old": ("old_string", "oldString", "old_str", "oldText"),
    "new": ("new_string", "newString", "new_str", "newText"),
    "command": ("command", "cmd"),
}
# clients that want absolute names
ABSOLUTE = ("file_path", "filePath", "absolute_path")
WHERE = (r"[Ww]orking directory: *([/][^\s<`\"\\]+)", r"<cwd>(?:\\n|\s)*([^<\\]+?)(?:\\n|\s)*</cwd>", r"workspace directories:\s*(?:\\n)*\s*- *([/][^\s<`\"\\]+)",
         r"current working directory[^/\n]{0,40}([/][^\s<`\"\\]+)")
# how long a tool waits for a command before it goes on without it: machines under test are slow
PATIENCE = {"initial_wait": 300, "yield_time_ms": 120000}
FILLER = {"string": "as asked", "number": 0, "integer": 0, "boolean": False, "array": [], "object": {}}


class Tool:
    """One of those that a request offers. kind: function, or custom for one that takes a text."""

    def __init__(self, name, schema=None, kind="function", namespace=None):
        self.name, self.schema, self.kind, self.namespace = name, schema or {}, kind, namespace


def working_directory(text):
    for pattern in WHERE:
        if found := re.search(pattern, text):
            return found.group(1).rstrip(".")
    return None


def kind_of(schema):
    """The type, in lower case; null if that is one of several."""
    kind = schema.get("type") or [kind_of(s) for s in schema.get("anyOf") or schema.get("oneOf") or []] or "string"
    if isinstance(kind, list):
        kind = "null" if "null" in kind else kind[0]
    return kind.lower()


def filled(schema, words, cwd):
    """Arguments for a schema (JSON Schema, types in either case) out of the words of an action."""
    made = {}
    required = schema.get("required") or []
    for name, what in (schema.get("properties") or {}).items():
        kind = kind_of(what)
        word = next((w for w in words if name in ARGUMENTS[w]), None)
        if word is not None:
            value = words[word]
            if word == "path" and name in ABSOLUTE and cwd and not value.startswith("/"):
                value = f"{cwd}/{value}"
            made[name] = ["bash", "-lc", value] if kind == "array" else value
        elif name in PATIENCE:
            made[name] = PATIENCE[name]
        elif kind == "array" and (what.get("items") or {}).get("properties") and name in required:
            made[name] = [filled(what["items"], words, cwd)]
        elif name in required:
            made[name] = what["enum"][0] if what.get("enum") else FILLER.get(kind)
    return made


def patch(action, words, cwd):
    """The text that apply_patch takes."""
    path = words["path"]
    if action == "write":
        lines = ["*** Add File: " + path] + ["+" + line for line in words["content"].splitlines()]
    else:
        lines = ["*** Update File: " + path, "@@"] + ["-" + line for line in words["old"].splitlines()]
        lines += ["+" + line for line in words["new"].splitlines()]
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch", ""])


def in_shell(action, words):
    """The same as a command, for a client that offers a shell and nothing else."""
    if action == "read":
        return "cat " + shlex.quote(words["path"])
    if action == "write":
        return f"printf %s {shlex.quote(words['content'])} > {shlex.quote(words['path'])}"
    code = "import sys; p, a, b = sys.argv[1:]; t = open(p).read(); assert a in t; open(p, 'w').write(t.replace(a, b, 1))"
    return shlex.join(["python3", "-c", code, words["path"], words["old"], words["new"]])


def in_code(action, words, cwd):
    """The same as JavaScript, for a client whose only tool runs that, with its tools in it."""
    if action in ("write", "edit"):
        return f"text(await tools.apply_patch({json.dumps(patch(action, words, cwd))}));"
    command = words["command"] if action == "shell" else in_shell(action, words)
    pragma = "// @exec: " + json.dumps({"yield_time_ms": PATIENCE["yield_time_ms"]})
    return f"{pragma}\nconst r = await tools.exec_command({json.dumps({'cmd': command, 'yield_time_ms': PATIENCE['yield_time_ms']})}); text(r.output);"


def call(action, words, tools, cwd):
    """The tool and its arguments (a dict, or a text for a custom tool)."""
    by_name = {t.name: t for t in tools}
    if "exec" in by_name and by_name["exec"].kind == "custom":
        return by_name["exec"], in_code(action, words, cwd)
    if action in by_name and action not in TOOLS:
        return by_name[action], words
    tool = next((by_name[n] for n in TOOLS[action] if n in by_name), None)
    if tool is None and action in ("write", "edit") and "apply_patch" in by_name:
        tool, text = by_name["apply_patch"], patch(action, words, cwd)
        if tool.kind == "custom":
            return tool, text
        return tool, {next(iter(tool.schema.get("properties") or {"input": 0})): text}
    if tool is None:
        if action == "shell":
            raise LookupError("no shell among the tools: " + " ".join(sorted(by_name)))
        return call("shell", {"command": in_shell(action, words)}, tools, cwd)
    if tool.kind == "custom":
        return tool, words.get("command") or json.dumps(words)
    return tool, filled(tool.schema, words, cwd)


class Script:
    def __init__(self, text):
        self.conversations = json.loads(text)["conversations"]

    def turn(self, user, number):
        for c in self.conversations:
            if re.search(c.get("when", ""), user):
                return c["turns"][number] if number < len(c["turns"]) else {"say": c["turns"][-1].get("say", "Done.")}
        return {"say": "I have no part in this conversation."}

    def next(self, talk):
        """What to say and [(tool, arguments)] for a request (model_apis.Talk)."""
        if not talk.tools:
            return "A task", []
        turn = self.turn(talk.user, talk.turn)
        cwd = working_directory(talk.everything)

        def put(value):
            if not isinstance(value, str):
                return value
            return value.replace("{{last|sh}}", shlex.quote(talk.last)).replace("{{last}}", talk.last).replace("{{cwd}}", cwd or ".")
        calls = [call(action, {k: put(v) for k, v in words.items()}, talk.tools, cwd) for step in turn.get("do", []) for action, words in step.items()]
        return put(turn.get("say")), calls
