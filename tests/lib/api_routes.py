"""Every route of every dialect, as the daemon itself tells them, and requests that fit them.

    for route in all_routes(plane):                  # from the OpenAPI document
        path = route.fill({"id": "demo", "port": 8080}) + route.query
        plane.ask(route.method, path, route.body)

A route added to a table of the daemon is here by itself. What its schema does not say (bodies and
queries without which a request is refused before anything is looked up) is in the tables below.
"""

import json
import urllib.parse

from control_plane import NATIVE

BOX = f"{NATIVE}/sandboxes/{{id}}"
BRIDGE = "/v1/sandbox/{id}"
STACKMEMORY = "/v1/sandboxes/{id}"
AGENTPOD = "/sandbox/{id}"

# Good bodies where the schema is missing or says too little.
BODIES = {
    ("POST", f"{NATIVE}/sandboxes"): {"labels": {"made": "here"}, "network": "none"},
    ("PATCH", BOX): {"labels": {"seen": "1"}},
    ("POST", f"{BOX}/exec"): {"command": "true"},
    ("POST", f"{BOX}/sessions"): {"id": "another"},
    ("POST", f"{BOX}/processes"): {"command": "true"},
    ("PUT", f"{BOX}/files/{{path}}"): b"content",
    ("POST", f"{BOX}/files/{{path}}"): {"action": "mkdir", "recursive": True},
    ("PUT", f"{BOX}/archive"): bytes(1024),  # a tar archive with nothing in it
    ("POST", f"{BOX}/watch"): {"path": "/workspace"},
    ("POST", f"{BOX}/code/contexts"): {"language": "python"},
    ("POST", f"{BOX}/code/run"): {"code": "1 + 1"},
    ("POST", f"{BOX}/git/clone"): {"url": "file:///nowhere.git"},
    ("POST", f"{BOX}/container/{{path}}"): {"command": "true"},
    ("POST", f"{BOX}/ports"): {"port": 5000},
    ("POST", f"{BOX}/restore"): {"backup": "8f14e45f-ceea-467f-a8f3-0123456789ab"},
    ("POST", f"{BOX}/mounts"): {"path": "/mnt/x", "bucket": "bucket"},
    ("POST", f"{BOX}/conversations"): {"kind": "command", "command": "true"},
    ("POST", f"{BOX}/conversations/{{conversation}}/turns"): {"text": "x"},
    ("POST", f"{BOX}/permissions/{{permission}}"): {"reply": "once"},
    ("POST", f"{BOX}/questions/{{permission}}"): {"answers": [["x"]]},
    ("POST", f"{NATIVE}/tasks"): {"text": "x", "sandbox": "nosuch"},
    ("POST", f"{NATIVE}/teams"): {"members": []},
    ("POST", f"{NATIVE}/schedules"): {"name": "x", "cron": "@yearly", "task": {"text": "x"}},
    ("PATCH", f"{NATIVE}/schedules/{{schedule}}"): {"paused": True},
    ("PUT", f"{NATIVE}/templates/{{name}}"): {"labels": {"made": "here"}},
    ("PATCH", f"{BOX}/egress"): {"rules": []},
    ("PATCH", f"{NATIVE}/egress"): {"policy": None},
    ("PUT", f"{NATIVE}/credentials/{{credential}}"): {"kind": "bearer", "value": "secret", "hosts": ["a.test"]},
    ("POST", f"{NATIVE}/webhooks"): {"url": "http://127.0.0.1:9/hook"},
    ("PATCH", f"{NATIVE}/webhooks/{{webhook}}"): {"enabled": True},
    ("POST", f"{NATIVE}/users"): {"name": "somebody"},
    ("PATCH", f"{NATIVE}/users/{{user}}"): {"name": "Another"},
    ("POST", f"{NATIVE}/keys"): {"name": "another", "scope": "read"},
    ("POST", "/api/auth/sign-up/email"): {"name": "x", "email": "x@example.org",
                                          "password": "long enough"},
    ("POST", "/api/auth/sign-in/email"): {"email": "x@example.org", "password": "not the one"},
    ("POST", f"{BRIDGE}/exec"): {"argv": ["true"]},
    ("PUT", f"{BRIDGE}/file/{{path}}"): b"content",
    ("POST", f"{BRIDGE}/hydrate"): bytes(1024),
    ("POST", f"{BRIDGE}/mount"): {"bucket": "b", "mountPath": "/mnt", "options": {
        "endpoint": "http://127.0.0.1:9", "credentials": {"accessKeyId": "a",
                                                          "secretAccessKey": "b"}}},
    ("POST", f"{BRIDGE}/unmount"): {"mountPath": "/mnt"},
    ("POST", f"{STACKMEMORY}/bootstrap"): {},
    ("POST", f"{STACKMEMORY}/exec"): {"command": "true"},
    ("PUT", f"{STACKMEMORY}/files"): {"path": "/workspace/other", "content": "content"},
    ("POST", "/sandbox"): {"id": "made-by-agentpod", "userId": "user-1"},
    ("POST", f"{AGENTPOD}/message"): {"message": "hello"},
    ("POST", f"{AGENTPOD}/opencode/session/{{session}}/message"): {"parts": [{"type": "text", "text": "hello"}]},
    ("POST", "/api/v2/agents/task"): {"message": "hello", "sandboxId": "nobody"},
    ("POST", "/api/v2/agents/task/stream"): {"message": "hello", "sandboxId": "nobody"},
    ("POST", "/api/v2/agents/team"): {"agents": []},
    ("POST", "/workflow/execute"): {"executionId": "one", "workflow": {"nodes": []}},
    ("POST", "/workflow/validate"): {"workflow": {"nodes": []}},
}

QUERIES = {
    ("GET", f"{BOX}/archive"): "?path=/workspace",
    ("PUT", f"{BOX}/archive"): "?path=/workspace",
    ("DELETE", f"{BOX}/mounts"): "?path=/mnt/x",
    ("GET", f"{BOX}/diff"): "?from=nosuch",
    ("GET", f"{STACKMEMORY}/files"): "?path=/workspace/secret",
    ("GET", f"{STACKMEMORY}/ls"): "?path=/workspace",
}

# GET routes that are WebSockets, and those of the container behind its pass-through.
WEBSOCKETS = ((f"{BOX}/exec/ws", {}), (f"{BOX}/terminals", {}),
              (f"{BOX}/container/{{path}}", {"path": "ws"}),
              (f"{BOX}/container/{{path}}", {"path": "ws/pty"}),
              (f"{BOX}/container/{{path}}", {"path": "rpc"}),
              (f"{BRIDGE}/pty", {}), (f"{STACKMEMORY}/terminal", {}),
              ("/api/v2/sandboxes/{id}/terminal", {}))


class Route:
    """One method of one path."""

    def __init__(self, method, pattern, operation):
        self.method, self.pattern = method, pattern
        self.dialect = operation["tags"][0]
        self.is_public = operation.get("security") == []
        self.summary = operation["summary"]
        places = {"path": [], "query": []}
        for parameter in operation["parameters"]:
            places.setdefault(parameter["in"], []).append(parameter["name"])
        self.parameters, self.query_names = places["path"], places["query"]
        content = operation.get("requestBody", {}).get("content", {})
        self.schema = content.get("application/json", {}).get("schema")

    def __repr__(self):
        return f"{self.method} {self.pattern}"

    @property
    def key(self):
        return self.method, self.pattern

    @property
    def query(self):
        return QUERIES.get(self.key, "")

    @property
    def body(self):
        """A good one; None: none."""
        if self.key in BODIES:
            return BODIES[self.key]
        return example(self.schema) if self.schema else None

    def fill(self, values):
        """The path, with {name: value} in the place of its parameters."""
        path = self.pattern
        for name in self.parameters:
            path = path.replace(f"{{{name}}}", urllib.parse.quote(str(values[name]), safe="/"))
        return path


def example(schema):
    """The smallest value that a schema describes."""
    if "enum" in schema:
        return schema["enum"][0]
    if "oneOf" in schema or "anyOf" in schema:
        return example((schema.get("oneOf") or schema["anyOf"])[0])
    kind = schema.get("type", "object")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        fields = schema.get("properties", {})
        return {name: example(fields.get(name, {"type": "string"}))
                for name in schema.get("required", [])}
    return {"string": "text", "integer": schema.get("minimum", 1), "number": 1, "boolean": True,
            "array": [], "null": None}[kind]


def all_routes(plane):
    """[Route] of the document that the daemon makes from its own tables."""
    document = json.loads(plane.ask("GET", f"{NATIVE}/openapi.json", key="").body)
    return [Route(method.upper(), pattern, operation)
            for pattern, methods in document["paths"].items()
            for method, operation in methods.items()]
