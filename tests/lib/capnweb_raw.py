"""A peer of capnweb sessions that counts references: everything it may not forget, and nothing else.

    with open_rpc(agent.address) as peer:
        peer.call("utils", "ping")                          # "healthy"
        peer.call("files", "readFile", "/nope", "s1")       # raises RpcError: code, details
        for chunk in peer.call("commands", "executeStream", "ls", "s1"): ...
        peer.call("files", "writeFileStream", "/f", Upload([b"a", b"b"]), "s1")
        peer.call("interpreter", "runCodeStream", "c", "1", None, {"onStdout": print})
        peer.is_idle()                                      # both tables are empty again
        peer.send(["push", ...]); peer.receive()            # or frame by frame

Single-threaded: frames are handled while somebody waits for something.
"""

import base64
import json

from websocket_raw import CLOSE, TEXT, open_websocket


class RpcError(Exception):
    def __init__(self, message, properties):
        super().__init__(f"{message} {properties}")
        self.message = message
        self.code = properties.get("code")
        self.details = properties.get("details")
        self.properties = properties


class Aborted(Exception):
    """The other side sent ["abort", ...]."""


class Date(int):
    """Milliseconds."""


class Undefined:
    pass


UNDEFINED = Undefined()


class Upload:
    """An argument that is a stream. `pieces` may raise, which aborts it."""

    def __init__(self, pieces):
        self.pieces = iter(pieces)
        self.pipe = None
        self.refused = None


class Stream:
    """A result that is a stream: iterate for its pieces, or cancel."""

    def __init__(self, peer):
        self.peer = peer
        self.pieces = []        # (id, bytes): not read, not acknowledged
        self.end = None         # (id, exception or None)
        self.cancelled = False

    def __iter__(self):
        while True:
            self.peer.pump(lambda: self.pieces or self.end)
            if self.pieces:
                number, data = self.pieces.pop(0)
                self.peer.send(["resolve", number, ["undefined"]])
                yield data
            else:
                number, error = self.end
                if number is not None:
                    self.peer.send(["resolve", number, ["undefined"]])
                self.end = (None, error)
                if error:
                    raise error
                return

    def cancel(self):
        self.cancelled = True
        while self.pieces:
            self.peer.send(["reject", self.pieces.pop(0)[0], "cancelled"])


class Peer:
    def __init__(self, websocket):
        self.websocket = websocket
        self.last_import = 0    # what we pushed, streamed, piped
        self.last_export = 0    # what the other side did
        self.last_stub = 0
        self.pending = {}       # import id -> None, or ("resolve"/"reject", value)
        self.imports = set()    # not released by us
        self.exports = {}       # id -> Stream, function, ("answer", value)
        self.uploads = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.websocket.__exit__()

    def send(self, message):
        self.websocket.send(TEXT, json.dumps(message).encode())

    def receive(self):
        """The next message as it is."""
        opcode, payload = self.websocket.receive_message()
        if opcode == CLOSE:
            raise ConnectionError(f"closed: {payload!r}")
        return json.loads(payload)

    def is_idle(self):
        """Whether nothing is left on either side; frames on their way count."""
        self.call("utils", "ping")
        return not self.imports and not self.exports

    # --- calls ---

    def next_import(self):
        self.last_import += 1
        return self.last_import

    def push(self, namespace, method, *arguments):
        """Start a call; its id."""
        uploads = []
        expressions = [self.write(argument, uploads) for argument in arguments]
        self.send(["push", ["pipeline", 0, [namespace, method], expressions]])
        number = self.next_import()
        self.imports.add(number)
        self.pending[number] = None
        self.uploads += uploads
        return number

    def pull(self, number):
        """The value of a call, which is released."""
        self.send(["pull", number])
        self.pump(lambda: self.pending[number])
        kind, value = self.pending.pop(number)
        self.release(number)
        self.pump(lambda: not self.uploads)
        if kind == "reject":
            raise value if isinstance(value, Exception) else RpcError(str(value), {})
        return value

    def release(self, number):
        self.send(["release", number, 1])
        self.imports.discard(number)
        self.pending.pop(number, None)

    def call(self, namespace, method, *arguments):
        return self.pull(self.push(namespace, method, *arguments))

    # --- frames ---

    def pump(self, condition):
        """Handle frames until the condition holds."""
        while not condition():
            if self.uploads and self.feed():
                continue
            self.handle(self.receive())

    def feed(self):
        """Send what an upload's window of one piece allows. Whether anything was sent."""
        for upload in self.uploads:
            if upload.waiting is not None and self.pending[upload.waiting] is None:
                continue
            if upload.waiting is not None:
                kind, value = self.pending.pop(upload.waiting)
                upload.refused = value if kind == "reject" else None
            if upload.over or upload.refused:
                self.release(upload.pipe)
                self.uploads.remove(upload)
                return True
            try:
                piece = next(upload.pieces, None)
                call = (["write"], [self.write(piece)]) if piece is not None else (["close"], [])
            except Exception as error:  # pylint: disable=broad-except
                piece, call = None, (["abort"], [["error", "Error", str(error)]])
            upload.over = piece is None
            self.send(["stream", ["pipeline", upload.pipe, *call]])
            upload.waiting = self.next_import()
            self.pending[upload.waiting] = None
            return True
        return False

    def handle(self, message):
        kind, *rest = message
        if kind == "pipe":
            self.last_export += 1
            self.exports[self.last_export] = Stream(self)
        elif kind in ("push", "stream"):
            self.last_export += 1
            self.evaluate(self.last_export, rest[0], kind == "stream")
        elif kind == "pull":
            tag, value = self.exports[rest[0]]
            assert tag == "answer", message
            self.send(["resolve", rest[0], value])
        elif kind in ("resolve", "reject"):
            if rest[0] in self.pending:
                assert self.pending[rest[0]] is None, f"answered twice: {message}"
                self.pending[rest[0]] = (kind, self.read(rest[1]))
        elif kind == "release":
            assert rest[1] == 1 and rest[0] in self.exports, f"released too often: {message}"
            del self.exports[rest[0]]
        elif kind == "abort":
            raise Aborted(self.read(rest[0]))
        else:
            raise AssertionError(f"unknown message: {message}")

    def evaluate(self, number, expression, once):
        tag, target, path, arguments = expression
        assert tag == "pipeline", expression
        target = self.exports[target]
        if isinstance(target, Stream):
            assert once, expression
            if target.cancelled:
                self.send(["reject", number, "cancelled"])
            elif path == ["write"]:
                target.pieces.append((number, self.read(arguments[0])))
            else:
                error = self.read(arguments[0]) if path == ["abort"] else None
                target.end = (number, error)
        else:
            function = target if not path else getattr(target, path[0])
            function(*[self.read(argument) for argument in arguments])
            self.exports[number] = ("answer", ["undefined"])

    # --- values ---

    def write(self, value, uploads=None):
        if isinstance(value, Upload):
            self.send(["pipe"])
            value.pipe = self.next_import()
            value.waiting = None
            value.over = False
            self.imports.add(value.pipe)
            uploads.append(value)
            return ["readable", value.pipe]
        if callable(value):
            self.last_stub -= 1
            self.exports[self.last_stub] = value
            return ["export", self.last_stub]
        if value is UNDEFINED:
            return ["undefined"]
        if isinstance(value, bytes):
            return ["bytes", base64.b64encode(value).decode().rstrip("=")]
        if isinstance(value, (list, tuple)):
            return [[self.write(item, uploads) for item in value]]
        if isinstance(value, dict):
            return {key: self.write(item, uploads) for key, item in value.items()}
        return value

    def read(self, expression):
        if isinstance(expression, dict):
            return {key: self.read(item) for key, item in expression.items()}
        if not isinstance(expression, list):
            return expression
        if len(expression) == 1 and isinstance(expression[0], list):
            return [self.read(item) for item in expression[0]]
        tag, *rest = expression
        if tag == "bytes":
            return base64.b64decode(rest[0] + "=" * (-len(rest[0]) % 4), validate=True)
        if tag == "error":
            return RpcError(rest[1], self.read(rest[3]) if len(rest) > 3 else {})
        if tag == "readable":
            return self.exports[rest[0]]
        if tag == "date":
            return Date(rest[0])
        if tag == "undefined":
            return None
        raise AssertionError(f"unknown expression: {expression}")


def open_rpc(address, path="/rpc", extra=()):
    return Peer(open_websocket(address, path, extra))
