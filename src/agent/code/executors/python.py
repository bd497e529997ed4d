"""Runs code in Python for the agent: a fork server, and the contexts it becomes.

Started as `python3 -u -` with this text as standard input and a socket as descriptor 3. Each
message on the socket carries three descriptors: a channel, stdout and stderr of a new context. The
server keeps some children forked that wait for the next; such a child speaks newline JSON on the
channel (code_frame.h says what), and whatever is written to descriptors 1 and 2 is the output.
Everything slow to import is imported before the first fork, from "/" so that no file of the user's
can stand in for a module of Python's.
"""

import ast
import base64
import builtins
import collections  # noqa: F401 (what code imports first costs nothing in a context)
import datetime  # noqa: F401
import functools  # noqa: F401
import gc
import io
import itertools  # noqa: F401
import json
import linecache
import math
import os
import random  # noqa: F401
import re
import select
import signal
import socket
import subprocess
import sys
import threading  # noqa: F401
import time
import traceback
import types

CONTROL = 3
SPARES = 2
TAKEN, OVER = b"t", b"o"  # what a spare tells the server
NO_ROOM_SECONDS = 0.05
# The agent refuses more: see code_frame.h.
TEXT_MAX = 1 << 20
JSON_MAX = 1 << 20
DATA_MAX = 6 << 20
JSON_DEPTH = 32
JSON_VALUES = 50000
TRACEBACK_MAX = 64 << 10
INTEGER_MAX = 2 ** 63

OWN_FILE = (lambda: 0).__code__.co_filename

# Method of a rich object, field of the result, whether bytes are expected.
REPRESENTATIONS = (
    ("_repr_html_", "html", False),
    ("_repr_markdown_", "markdown", False),
    ("_repr_svg_", "svg", False),
    ("_repr_png_", "png", True),
    ("_repr_jpeg_", "jpeg", True),
    ("_repr_latex_", "latex", False),
    ("_repr_json_", "json", False),
    ("_repr_javascript_", "javascript", False),
)

MIME_TYPES = {
    "text/plain": "text",
    "text/html": "html",
    "text/markdown": "markdown",
    "text/latex": "latex",
    "image/svg+xml": "svg",
    "image/png": "png",
    "image/jpeg": "jpeg",
    "application/json": "json",
    "application/javascript": "javascript",
}


# --- values as JSON ------------------------------------------------------------------------------


def clean(text):
    """A string that every reader of JSON takes: no lone surrogates, no NUL."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")


class Budget:
    """How many values a document may still have."""

    def __init__(self):
        self.left = JSON_VALUES

    def take(self):
        self.left -= 1
        if self.left < 0:
            raise ValueError("too many values")


def plain(value, budget, depth=JSON_DEPTH):
    """The same made of what JSON has; what it does not have becomes text."""
    budget.take()
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, int):
        return int(value) if -INTEGER_MAX <= value < INTEGER_MAX else str(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if depth and isinstance(value, dict):
        return {clean(str(key)): plain(item, budget, depth - 1) for key, item in value.items()}
    if depth and isinstance(value, (list, tuple)):
        return [plain(item, budget, depth - 1) for item in value]
    if not depth:
        raise ValueError("too deep")
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:  # a number of numpy's
        return plain(value.item(), budget, 0)
    return clean(str(value))


def as_json(value):
    """A value the frame can hold, or None."""
    try:
        document = plain(value, Budget())
        return document if len(json.dumps(document)) <= JSON_MAX else None
    except Exception:  # pylint: disable=broad-except
        return None


def cut(text, limit=TEXT_MAX):
    if len(text) <= limit:
        return clean(text)
    return clean(text[:limit]) + f"\n... {len(text) - limit} more characters"


# --- results -------------------------------------------------------------------------------------


def note_failure(what):
    """The object's own method failed: say so as Python says it of others, and go on."""
    print(f"{what} failed:", file=sys.stderr)
    traceback.print_exc()


def set_field(result, field, data):
    """Put one representation into a result, unless it is nothing or too much."""
    if isinstance(data, tuple) and len(data) == 2 and isinstance(data[1], dict):
        metadata = as_json(data[1])
        if metadata:
            result["metadata"].update(metadata)
        data = data[0]
    if data is None:
        return
    if field == "json":
        document = as_json(data)
        if document is not None:
            result["json"] = document
        return
    if isinstance(data, (bytes, bytearray)):
        data = base64.b64encode(data).decode("ascii")
    data = str(data)
    if len(data.encode("utf-8", "replace")) <= DATA_MAX:
        result[field] = clean(data)
    else:
        print(f"a result as {field} is too large to be shown ({len(data)} characters)",
              file=sys.stderr)


def add_bundle(result, value):
    method = getattr(value, "_repr_mimebundle_", None)
    if not callable(method):
        return
    try:
        bundle = method(include=None, exclude=None)
        if isinstance(bundle, tuple):
            bundle = bundle[0]
        for kind, data in (bundle or {}).items():
            if kind in MIME_TYPES:
                set_field(result, MIME_TYPES[kind], data)
    except Exception:  # pylint: disable=broad-except
        note_failure("_repr_mimebundle_")


def add_representations(result, value):
    for name, field, _ in REPRESENTATIONS:
        method = getattr(value, name, None)
        if field in result or not callable(method):
            continue
        try:
            set_field(result, field, method())
        except Exception:  # pylint: disable=broad-except
            note_failure(name)


def is_loose_figure(value):
    return type(value).__module__ == "matplotlib.figure" and hasattr(value, "savefig")


def describe(value):
    """All representations of a value, as one result."""
    result = {"type": "result", "metadata": {}}
    if not isinstance(value, type):
        add_bundle(result, value)
        add_representations(result, value)
    if isinstance(value, (dict, list)):
        set_field(result, "json", value)
    if is_loose_figure(value) and "png" not in result:
        result["png"] = figure_png(value)
    if "text" not in result:
        try:
            result["text"] = cut(repr(value))
        except Exception:  # pylint: disable=broad-except
            note_failure("repr")
    return result


def figure_png(figure):
    image = io.BytesIO()
    figure.savefig(image, format="png", bbox_inches="tight")
    return base64.b64encode(image.getvalue()).decode("ascii")


def open_figures():
    """What code drew and nobody has seen yet; seen once, it is closed."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if not pyplot or not hasattr(pyplot, "get_fignums"):
        return
    for number in pyplot.get_fignums():
        figure = pyplot.figure(number)
        try:
            if figure.get_axes() or figure.texts or figure.images or figure.lines:
                yield {"type": "result", "png": figure_png(figure), "metadata": {}}
        except Exception:  # pylint: disable=broad-except
            note_failure("savefig")
        finally:
            pyplot.close(figure)


# --- errors --------------------------------------------------------------------------------------


def without_own_frames(trace):
    while trace and trace.tb_frame.f_code.co_filename == OWN_FILE:
        trace = trace.tb_next
    return trace


def describe_error(error):
    trace = without_own_frames(error.__traceback__)
    try:
        text = "".join(traceback.format_exception(type(error), error, trace))
    except Exception:  # pylint: disable=broad-except
        text = f"{type(error).__name__}: (its text cannot be made)"
    try:
        value = str(error)
    except Exception:  # pylint: disable=broad-except
        value = ""
    if len(text) > TRACEBACK_MAX:  # both ends say most
        half = TRACEBACK_MAX // 2
        text = text[:half] + "\n...\n" + text[-half:]
    return {"type": "error", "ename": clean(type(error).__name__), "evalue": cut(value),
            "traceback": [clean(line) for line in text.rstrip("\n").split("\n")]}


# --- notebook lines ------------------------------------------------------------------------------


def shell(command):
    """What `!command` of a notebook does."""
    status = subprocess.call(command, shell=True)
    if status:
        print(f"exit status {status}", file=sys.stderr)


def translate_notebook(code):
    """`!command`, `%pip ...` and `%matplotlib ...`, which notebooks have made customary. Only asked
    for code that is no Python as it stands."""
    lines = []
    for line in code.split("\n"):
        match = re.match(r"(\s*)(!|%pip\b|%matplotlib\b)(.*)$", line)
        if match:
            indent, kind, rest = match.groups()
            if kind == "%matplotlib":
                line = indent + "pass"
            else:
                command = rest if kind == "!" else f"'{sys.executable}' -m pip{rest}"
                line = f"{indent}__import__('builtins').__burrow_shell__({command.strip()!r})"
        lines.append(line)
    return "\n".join(lines)


def parse(code, name):
    flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    try:
        return compile(code, name, "exec", flags, dont_inherit=True)
    except SyntaxError:
        other = translate_notebook(code)
        if other == code:
            raise
        return compile(other, name, "exec", flags, dont_inherit=True)


# --- a context -----------------------------------------------------------------------------------


class Context:
    def __init__(self, channel):
        self.channel = channel
        self.lines = channel.makefile("rb")
        self.pid = os.getpid()
        self.interruptible = False
        self.interrupted = False
        self.count = 0
        self.loop = None
        self.module = types.ModuleType("__main__")
        self.names = self.module.__dict__
        self.names["__builtins__"] = builtins
        builtins.display = self.display
        builtins.__burrow_shell__ = shell

    def send(self, frame):
        """Whole or not at all, whatever signal comes."""
        if os.getpid() != self.pid:
            return
        before, self.interruptible = self.interruptible, False
        self.channel.sendall(json.dumps(frame).encode("ascii") + b"\n")
        self.interruptible = before
        if before and self.interrupted:
            self.interrupted = False
            raise KeyboardInterrupt

    def on_interrupt(self, _number, _frame):
        if self.interruptible:
            raise KeyboardInterrupt
        self.interrupted = True

    def display(self, *values, **_options):
        for value in values:
            self.send(describe(value))

    # --- one run

    def evaluate(self, code):
        if not code.co_flags & 0x80:  # CO_COROUTINE: it awaits
            return eval(code, self.names)  # pylint: disable=eval-used
        import asyncio  # pylint: disable=import-outside-toplevel
        if self.loop is None or self.loop.is_closed():
            self.loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self.loop)
        awaitable = eval(code, self.names)  # pylint: disable=eval-used
        return self.loop.run_until_complete(awaitable)

    def run_statements(self, tree, name):
        """Returns the value of the last expression, or None."""
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        if tree.body:
            self.evaluate(compile(tree, name, "exec", flags, dont_inherit=True))
        if last is None:
            return None
        expression = ast.Expression(last.value)
        return self.evaluate(compile(expression, name, "eval", flags, dont_inherit=True))

    def run_user(self, code, name):
        value = self.run_statements(parse(code, name), name)
        if value is not None:
            builtins._ = value
            self.send(describe(value))
        for figure in open_figures():
            self.send(figure)

    def run(self, code):
        """Run and tell everything but the end. Returns the error's frame, or None."""
        self.count += 1
        name = f"<code-{self.count}>"
        linecache.cache[name] = (len(code), None, [line + "\n" for line in code.split("\n")], name)
        error = None
        try:
            self.interrupted = False
            self.interruptible = True
            self.run_user(code, name)
            self.interruptible = False
        except BaseException as raised:  # pylint: disable=broad-except
            self.interruptible = False
            if os.getpid() != self.pid:  # a child that the code forked, and that got here
                code = raised.code if isinstance(raised, SystemExit) else 1
                os._exit(code if isinstance(code, int) else 0 if code is None else 1)
            error = describe_error(raised)
        if os.getpid() != self.pid:
            os._exit(0)
        return error

    def flush(self):
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:  # pylint: disable=broad-except
                pass  # the code has closed or replaced it

    def serve(self):
        for line in self.lines:
            request = json.loads(line)
            error = self.run(request["code"])
            self.flush()
            if error:
                self.send(error)
            self.send({"type": "end"})

    # --- its beginning

    def prepare(self):
        setup = json.loads(self.lines.readline())
        os.environ.clear()
        for variable in setup["environment"]:
            name, _, text = variable.partition("=")
            os.environ[name] = text
        os.environ.setdefault("MPLBACKEND", "Agg")
        time.tzset()
        try:
            enter(setup["directory"], setup["anyDirectory"])
        except OSError as failure:
            self.send({"type": "failed", "errno": failure.errno})
            os._exit(0)
        os.environ["PWD"] = os.getcwd()
        path = os.environ.get("PYTHONPATH", "")
        sys.path[1:1] = [part for part in path.split(os.pathsep)
                         if part and part not in sys.path]
        sys.argv = [""]
        sys.modules["__main__"] = self.module
        self.send({"type": "ready", "pid": self.pid})


def enter(directory, any_directory):
    places = [directory]
    if any_directory:
        places += [os.environ.get("HOME") or "/", "/"]
    for place in places:
        try:
            os.chdir(place)
            return
        except OSError:
            if place is places[-1]:
                raise


def open_output(fd):
    """Written at once, so that nothing waits behind what others write to the descriptor."""
    return io.TextIOWrapper(io.FileIO(fd, "w", closefd=False), encoding="utf-8",
                            errors="backslashreplace", write_through=True)


def become_context(fds, server):
    channel = socket.socket(fileno=fds[0])
    os.dup2(fds[1], 1)
    os.dup2(fds[2], 2)
    os.close(fds[1])
    os.close(fds[2])
    os.setsid()
    context = Context(channel)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, context.on_interrupt)
    # A child that the code forks keeps no hold of the channel: its end is the context's end.
    os.register_at_fork(after_in_child=channel.close)
    context.prepare()
    os.close(server)  # now it has time to fork another
    context.serve()


def run_context(fds, server):
    """Never returns, or there would be two servers."""
    status = 1
    try:
        become_context(fds, server)
        status = 0
    except (BrokenPipeError, ConnectionResetError):
        status = 0  # the agent does not want it any more
    except BaseException:  # pylint: disable=broad-except
        traceback.print_exc()
    finally:
        os._exit(status)


def wait_as_spare(control, server):
    """Forked ahead of time, so that the next context is there at once. Tells the server when it is
    needed, and by closing the line when it is ready. Never returns."""
    fds = []
    sys.stdout = sys.__stdout__ = open_output(1)
    sys.stderr = sys.__stderr__ = open_output(2)
    try:
        if not select.select((control,), (), (), 0)[0]:  # else somebody waits already
            warm_up()
        message, fds, _, _ = socket.recv_fds(control, 16, 3)
        os.write(server, TAKEN if message else OVER)
    except OSError:
        pass  # the server was killed: the agent starts another
    control.close()
    if len(fds) == 3:
        run_context(fds, server)
    os._exit(0)


def warm_up():
    """Rehearse, so that the pages that every context writes to are its own before somebody waits."""
    agent, channel = socket.socketpair()
    context = Context(channel)
    setup = {"environment": [f"{name}={text}" for name, text in os.environ.items()],
             "directory": "/", "anyDirectory": True}
    agent.sendall(json.dumps(setup).encode() + b"\n")
    path, arguments, module = sys.path[:], sys.argv, sys.modules["__main__"]
    context.prepare()
    context.run("[str(1)]")
    agent.close()
    channel.close()
    sys.path[:], sys.argv, sys.modules["__main__"] = path, arguments, module
    del builtins._


class Spares:
    """Children that wait to become contexts. The next one is forked when nobody waits for what was
    taken: a fork holds up the processor that a new context needs."""

    def __init__(self, control):
        self.control = control
        self.waiting = set()  # lines to them
        self.taken = set()  # lines to those that are no contexts yet

    def is_one_wanted(self):
        return not self.waiting or (len(self.waiting) < SPARES and not self.taken)

    def add(self):
        """Returns whether there was room for a process."""
        reader, writer = os.pipe()
        try:
            pid = os.fork()
        except OSError:
            os.close(reader)
            os.close(writer)
            return False
        if pid == 0:
            for line in {reader} | self.waiting | self.taken:
                os.close(line)
            wait_as_spare(self.control, writer)
        os.close(writer)
        self.waiting.add(reader)
        return True

    def listen(self, seconds):
        """Take what they tell. Returns whether to go on."""
        for line in select.select(self.waiting | self.taken, (), (), seconds)[0]:
            word = os.read(line, len(TAKEN))
            if word == OVER:
                return False
            self.waiting.discard(line)
            if word == TAKEN:
                self.taken.add(line)
            else:  # it is ready, or was killed
                self.taken.discard(line)
                os.close(line)
        return True


def serve(control):
    spares = Spares(control)
    goes_on = True
    while goes_on:
        has_room = True
        while has_room and spares.is_one_wanted():
            has_room = spares.add()
        goes_on = spares.listen(None if has_room else NO_ROOM_SECONDS)  # those who ask wait


def main():
    control = socket.socket(fileno=os.dup(CONTROL))
    os.set_inheritable(control.fileno(), False)
    os.close(CONTROL)
    empty, writer = os.pipe()  # in place of this text
    os.close(writer)
    os.dup2(empty, 0)
    os.close(empty)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.collect()
    gc.freeze()
    serve(control)


main()
