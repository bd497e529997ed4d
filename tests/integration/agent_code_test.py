#!/usr/bin/python3
"""Code in the agent: contexts, and what code shows.

# timeout: 600
"""

import base64
import json
import os
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from agent import Agent  # noqa: E402
from agent_code import (DEBIAN, NODE, PYTHON, context, contexts, create, delete,  # noqa: E402
                        events_of, good, is_well, open_run, run, text)
from shared import SHARED  # noqa: E402
from tap import equal, main, skip, test  # noqa: E402

MIB = 1 << 20


# --- contexts ------------------------------------------------------------------------------------


@test
def a_context_keeps_variables_functions_and_imports():
    with context() as python:
        good(SHARED, "import math\nx = 20\ndef double(n): return n * 2", context_id=python)
        equal(text(SHARED, "double(x) + math.floor(2.5)", context_id=python), "42", "value")
    with context(NODE) as node:
        good(SHARED, "let x = 20; const y = 1; class A { f() { return 2 } }", context_id=node)
        good(SHARED, "let x = 40", context_id=node)
        equal(text(SHARED, "x + y + new A().f() - 1", context_id=node), "42", "value")


@test
def contexts_do_not_see_each_other():
    with context() as one, context() as other:
        good(SHARED, "secret = 1", context_id=one)
        equal(run(SHARED, "secret", context_id=other).error["ename"], "NameError", "error")


@test
def a_context_is_told_listed_and_deleted():
    made = json.loads(SHARED.post("/api/contexts", {"language": "python3"}).body)
    equal((made["success"], made["language"], made["cwd"]), (True, "python", "/workspace"), "reply")
    assert "timestamp" in made and len(made["contextId"]) == 36, made
    listed = [c for c in contexts(SHARED) if c["id"] == made["contextId"]]
    equal([(c["language"], c["cwd"]) for c in listed], [("python", "/workspace")], "list")
    gone = json.loads(delete(SHARED, made["contextId"]).body)
    equal((gone["success"], gone["contextId"]), (True, made["contextId"]), "deletion")
    assert made["contextId"] not in [c["id"] for c in contexts(SHARED)]
    again = delete(SHARED, made["contextId"])
    equal((again.status, json.loads(again.body)["code"]), (404, "CONTEXT_NOT_FOUND"), "again")


@test
def directory_and_variables_of_a_context_are_honoured():
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/local_thing.py", "w", encoding="ascii") as file:
            file.write("value = 7")
        with context(cwd=folder, env_vars={"COLOUR": "blue", "NOTHING": None}) as python:
            equal(text(SHARED, "import os; (os.getcwd(), os.environ['COLOUR'])",
                       context_id=python), repr((os.path.realpath(folder), "blue")), "python")
            equal(text(SHARED, "import local_thing; local_thing.value", context_id=python), "7",
                  "import from the directory")
            equal(good(SHARED, "os.system('echo $COLOUR; pwd')", context_id=python).stdout,
                  f"blue\n{os.path.realpath(folder)}\n", "children")
        with context(NODE, cwd=folder, env_vars={"COLOUR": "red"}) as node:
            equal(text(SHARED, "[process.cwd(), process.env.COLOUR].join()", context_id=node),
                  f"'{os.path.realpath(folder)},red'", "node")


@test
def a_directory_that_is_missing_is_an_error():
    for language in (PYTHON, NODE):
        response = SHARED.post("/api/contexts", {"language": language, "cwd": "/no/such/place"})
        equal((response.status, json.loads(response.body)["code"]), (404, "FILE_NOT_FOUND"),
              language)
    is_well()


@test
def what_is_asked_wrongly_is_refused():
    for fields, name in (({"language": "ruby"}, "language"), ({"language": 1}, "language"),
                         ({"env_vars": {"A B": "x"}}, "env_vars"), ({"env_vars": 1}, "env_vars"),
                         ({"cwd": 5}, "cwd")):
        body = json.loads(SHARED.post("/api/contexts", fields).body)
        equal((body["code"], body["context"]["validationErrors"][0]["field"]),
              ("VALIDATION_FAILED", name), f"{fields}")
    for fields, status, code in (
            ({"context_id": "nobody", "code": "1"}, 404, "CONTEXT_NOT_FOUND"),
            ({}, 400, "VALIDATION_FAILED"),
            ({"code": 5}, 400, "VALIDATION_FAILED"),
            ({"code": "1", "timeout_ms": -1}, 400, "VALIDATION_FAILED"),
            ({"code": "#" * (3 * MIB)}, 400, "VALIDATION_FAILED")):
        response = SHARED.post("/api/execute/code", fields)
        body = json.loads(response.body)
        equal((response.status, body["code"]), (status, code), f"{list(fields)}")
        assert "error" in body and "details" in body and "message" not in body, body
    with context(NODE) as node:
        response = SHARED.post("/api/execute/code",
                               {"context_id": node, "code": "1", "language": "python"})
        equal(response.status, 400, "python in a context of node")


@test
def health_is_told():
    body = json.loads(SHARED.get("/api/interpreter/health").body)
    equal((body["success"], body["status"]), (True, "healthy"), "health")


@test
def code_without_a_context_uses_one_per_language():
    good(SHARED, "shared_name = 5")
    equal(text(SHARED, "shared_name", language="python3"), "5", "python")
    good(SHARED, "var sharedName = 6", language="js")
    equal(text(SHARED, "sharedName", language="node"), "6", "javascript")


@test
def there_are_only_so_many_contexts():
    with Agent(environment=DEBIAN) as agent:
        made = [create(agent) for _ in range(64)]
        response = agent.post("/api/contexts", {})
        equal((response.status, json.loads(response.body)["code"]), (409, "RESOURCE_BUSY"), "65th")
        delete(agent, made[0])
        create(agent)
        is_there = [text(agent, f"{i}", context_id=made[i]) for i in (1, 30, 63)]
        equal(is_there, ["1", "30", "63"], "values")


@test
def without_an_interpreter_the_error_says_so():
    with tempfile.TemporaryDirectory() as folder:
        with Agent(environment={"PATH": folder}) as agent:
            for language, code in ((PYTHON, "PYTHON_NOT_AVAILABLE"),
                                   (NODE, "JAVASCRIPT_NOT_AVAILABLE"),
                                   ("typescript", "JAVASCRIPT_NOT_AVAILABLE")):
                response = agent.post("/api/contexts", {"language": language})
                equal((response.status, json.loads(response.body)["code"]), (501, code), language)
                response = agent.post("/api/execute/code", {"code": "1", "language": language})
                equal((response.status, json.loads(response.body)["code"]), (501, code), language)


@test
def an_interpreter_that_cannot_start_is_not_ready():
    with tempfile.TemporaryDirectory() as folder:
        for name in ("python3", "node"):
            with open(f"{folder}/{name}", "w", encoding="ascii") as file:
                file.write("#!/bin/sh\nexit 3\n")
            os.chmod(f"{folder}/{name}", 0o755)
        with Agent(environment={"PATH": folder}) as agent:
            for language in (PYTHON, NODE):
                response = agent.post("/api/contexts", {"language": language})
                equal((response.status, json.loads(response.body)["code"]),
                      (503, "INTERPRETER_NOT_READY"), language)
            equal(contexts(agent), [], "contexts")
            equal(agent.get("/api/ping").status, 200, "ping")


# --- output --------------------------------------------------------------------------------------


@test
def output_streams_while_the_code_runs():
    gate = f"{SHARED.folder}/two"
    for language, code in (
            (PYTHON, "import os, time\nprint('one', end='')\n"
                     f"while not os.path.exists('{gate}'): time.sleep(0.02)\nprint('two')"),
            (NODE, f"process.stdout.write('one'); while (!require('fs').existsSync('{gate}')) "
                   "await new Promise(r => setTimeout(r, 20)); console.log('two')")):
        with context(language) as made, open_run(SHARED, code, context_id=made) as connection:
            events = events_of(connection)
            equal(next(events)["text"], "one", "first piece")
            open(gate, "wb").close()  # until then it says nothing more
            equal("".join(e["text"] for e in events if e["type"] == "stdout"), "two\n", "rest")
        os.unlink(gate)


@test
def both_outputs_are_apart_and_what_children_write_is_there():
    outcome = good(SHARED, "import os, subprocess, sys\nprint('a')\n"
                           "os.write(1, b'b\\n')\nsubprocess.run('echo c; echo d >&2', shell=True)\n"
                           "print('e')\nprint('f', file=sys.stderr)\n0;")
    equal((outcome.stdout, outcome.stderr), ("a\nb\nc\ne\n", "d\nf\n"), "python")
    outcome = good(SHARED, "console.log('a'); require('fs').writeSync(1, 'b\\n'); "
                           "require('child_process').execSync('echo c; echo d >&2', "
                           "{stdio: 'inherit'}); console.log('e'); console.error('f')",
                   language=NODE)
    equal((outcome.stdout, outcome.stderr), ("a\nb\nc\ne\n", "d\nf\n"), "node")


@test
def output_comes_before_the_result_that_follows_it():
    for language, code in ((PYTHON, "print('x' * 300000)\ndisplay(1)\nprint('y')\n2"),
                           (NODE, "console.log('x'.repeat(300000)); display(1); "
                                  "console.log('y'); 2")):
        outcome = good(SHARED, code, language=language)
        order = [e["type"] for e in outcome.events]
        before = outcome.events[:order.index("result")]
        assert sum(len(e["text"]) for e in before) >= 300001, "output came late"
        equal([r["text"] for r in outcome.results], ["1", "2"], "results")
        equal((outcome.stdout[-3:], outcome.events[-2]["text"]), ("\ny\n", "2"), language)


@test
def characters_are_never_cut():
    outcome = good(SHARED, "print('\u00e9\U0001f600' * 100000)")
    equal(outcome.stdout, "\u00e9\U0001f600" * 100000 + "\n", "text")
    outcome = good(SHARED, "import os; os.write(1, b'\\xff\\xfe ok\\n'); print('\\ud800 \\0')")
    assert "ok" in outcome.stdout and "\\ud800 \0" in outcome.stdout, repr(outcome.stdout)


@test
def much_output_waits_for_a_slow_client():
    code = "import sys\nfor _ in range(400): sys.stdout.write('z' * 131072)"
    with context() as made, open_run(SHARED, code, context_id=made) as connection:
        time.sleep(1)
        assert SHARED.anonymous_kb() < 48 * 1024, SHARED.anonymous_kb()
        total = sum(len(e["text"]) for e in events_of(connection) if e["type"] == "stdout")
    equal(total, 400 * 131072, "bytes")


@test
def standard_input_of_code_is_empty():
    equal(text(SHARED, "import sys; sys.stdin.read()"), "''", "python")
    equal(good(SHARED, "import os; os.system('cat')").stdout, "", "its children")
    equal(text(SHARED, "require('fs').readFileSync(0).length", language=NODE), "0", "node")


# --- results -------------------------------------------------------------------------------------


@test
def the_last_expression_is_the_result():
    equal(text(SHARED, "'a' + 'b'"), "'ab'", "text")
    equal(good(SHARED, "x = 5").results, [], "of a statement")
    equal(good(SHARED, "None").results, [], "of None")
    equal(good(SHARED, "").results, [], "of nothing")
    equal(text(SHARED, "[1, 2].map(x => x * 2).join()", language=NODE), "'2,4'", "node")
    equal(good(SHARED, "undefined", language=NODE).results, [], "of undefined")
    equal(good(SHARED, "const z9 = 1", language=NODE).results, [], "of a declaration")


@test
def containers_are_json_too():
    result = good(SHARED, "{'a': [1, 2.5, None, True, 'x'], 2: {'b': float('nan')}}").results[0]
    equal(result["json"], {"a": [1, 2.5, None, True, "x"], "2": {"b": None}}, "dict")
    equal(good(SHARED, "[10 ** 30, object]").results[0]["json"][0], str(10 ** 30), "large integer")
    equal(good(SHARED, "d = {}; d['d'] = d; d").results[0].get("json"), None, "endless")
    result = good(SHARED, "({a: [1, {b: 'c'}], d: new Date(0)})", language=NODE).results[0]
    equal(result["json"], {"a": [1, {"b": "c"}], "d": "1970-01-01T00:00:00.000Z"}, "object")
    equal("json" in good(SHARED, "var o = {}; o.o = o; o", language=NODE).results[0], False,
          "endless object")


@test
def rich_objects_show_themselves():
    code = """
class Rich:
    def _repr_html_(self): return '<b>h</b>'
    def _repr_markdown_(self): return '**m**'
    def _repr_svg_(self): return '<svg/>'
    def _repr_png_(self): return b'png'
    def _repr_jpeg_(self): return b'jpeg'
    def _repr_latex_(self): return '$l$'
    def _repr_json_(self): return {'j': 1}
    def _repr_javascript_(self): return 'alert(1)', {'m': 2}
    def __repr__(self): return 'rich'
Rich()"""
    equal(good(SHARED, code).results,
          [{"type": "result", "text": "rich", "html": "<b>h</b>", "markdown": "**m**",
            "svg": "<svg/>", "png": base64.b64encode(b"png").decode(),
            "jpeg": base64.b64encode(b"jpeg").decode(), "latex": "$l$",
            "javascript": "alert(1)", "json": {"j": 1}, "metadata": {"m": 2}}], "python")
    result = good(SHARED, "({_repr_html_() { return '<i>' }, _repr_png_() { "
                          "return Buffer.from('png') }})", language=NODE).results[0]
    equal((result["html"], result["png"]), ("<i>", base64.b64encode(b"png").decode()), "node")


@test
def an_object_that_cannot_show_itself_hurts_nobody():
    outcome = good(SHARED, "class Bad:\n  def _repr_html_(self): return 1 / 0\n"
                           "  def __repr__(self): raise ValueError('no')\nBad()")
    assert "ZeroDivisionError" in outcome.stderr, outcome
    is_well()


def has_module(name):
    return run(SHARED, f"import {name}").error is None


@test
def frames_of_pandas_are_tables():
    if not has_module("pandas"):
        skip("python3-pandas")
    result = good(SHARED, "import pandas\npandas.DataFrame({'n': [1, 2]})").results[0]
    assert "<table" in result["html"] and "n" in result["text"], result


@test
def figures_of_matplotlib_are_pictures():
    if not has_module("matplotlib"):
        skip("python3-matplotlib")
    outcome = good(SHARED, "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.figure()\n"
                           "plt.plot([3, 4])\nplt.show()")
    pictures = [base64.b64decode(r["png"]) for r in outcome.results if "png" in r]
    equal([picture[:8] for picture in pictures], [b"\x89PNG\r\n\x1a\n"] * 2, "pictures")
    equal(good(SHARED, "1").results[0].get("png"), None, "they are shown once")


# --- errors --------------------------------------------------------------------------------------


@test
def errors_are_told_without_our_own_frames():
    outcome = run(SHARED, "def f():\n    raise ValueError('bad')\nprint('before')\nf()")
    equal((outcome.error["ename"], outcome.error["evalue"]), ("ValueError", "bad"), "error")
    trace = "\n".join(outcome.error["traceback"])
    assert trace.startswith("Traceback") and "raise ValueError('bad')" in trace, trace
    assert "run_statements" not in trace and "<stdin>" not in trace, trace
    equal(outcome.stdout, "before\n", "output before it")
    outcome = run(SHARED, "function f() { throw new TypeError('bad') }\nf()", language=NODE)
    equal((outcome.error["ename"], outcome.error["evalue"]), ("TypeError", "bad"), "error")
    trace = "\n".join(outcome.error["traceback"])
    assert ":1:22" in trace and "inspector" not in trace and "stdin" not in trace, trace


@test
def code_that_is_no_code_is_a_syntax_error():
    equal(run(SHARED, "1 +").error["ename"], "SyntaxError", "python")
    equal(run(SHARED, "let = = 1", language=NODE).error["ename"], "SyntaxError", "javascript")
    equal(run(SHARED, "let x: = 1", language="ts").error["ename"], "SyntaxError", "typescript")


@test
def exits_are_errors_and_the_context_stays():
    with context() as python:
        good(SHARED, "kept = 1", context_id=python)
        outcome = run(SHARED, "import sys; sys.exit(3)", context_id=python)
        equal((outcome.error["ename"], outcome.error["evalue"]), ("SystemExit", "3"), "python")
        equal(text(SHARED, "kept", context_id=python), "1", "kept")
    with context(NODE) as node:
        outcome = run(SHARED, "var kept = 1; process.exit(4)", context_id=node)
        equal((outcome.error["ename"], outcome.error["evalue"]), ("SystemExit", "4"), "node")
        equal(text(SHARED, "kept", context_id=node), "1", "kept")


@test
def await_works_at_the_top():
    equal(text(SHARED, "import asyncio\nawait asyncio.sleep(0.01, 'slept')"), "'slept'", "python")
    equal(text(SHARED, "await new Promise(r => setTimeout(r, 10, 'slept'))", language=NODE),
          "'slept'", "node")
    equal(text(SHARED, "Promise.resolve(8)", language=NODE), "8", "a promise as result")


@test
def modules_can_be_imported():
    equal(text(SHARED, "import fs, {existsSync as there} from 'fs'\nthere('/') && "
                       "fs.existsSync('/')", language=NODE), "true", "static")
    equal(text(SHARED, "import * as path from 'node:path'\nexport const a = 1\nexport default a\n"
                       "path.basename('/a/b') + `${a}` + /import x from 'y'/.source.length", language=NODE),
          "'b117'", "as a whole, and what is exported")
    equal(text(SHARED, "(await import('path')).basename('/a/b')", language=NODE), "'b'", "dynamic")
    equal(text(SHARED, "require('path').basename('/a/c')", language=NODE), "'c'", "require")


@test
def notebook_lines_are_understood():
    equal(good(SHARED, "x = 1\n!echo hello\nx").stdout, "hello\n", "a command")


@test
def typescript_runs_without_its_types():
    code = """
interface Point { x: number; y?: number }
enum Color { Red, Green = 'g' }
type Pair<T> = [T, T];
class Named<T extends object> implements Point {
  x = 1;
  constructor(private readonly name: string, public items: Array<T> = []) {}
  get label(): string { return `${this.name}:${this.items.length as number}`; }
}
const pair: Pair<number> = [1, 2];
const add = <T,>(a: T, b?: T): T => (b! as T) ?? a;
function over(a: string): string;
function over(a: any): any { return a satisfies unknown; }
[new Named<Point>('n', [{x: 1}]).label, Color.Green, Color[0], add<number>(...pair), over('o')].join()
"""
    equal(text(SHARED, code, language="typescript"), "'n:1,g,Red,2,o'", "value")
    with context("ts") as made:
        good(SHARED, "import fs, {type Stats, existsSync as there} from 'fs'\nimport path = require('path');\n"
                     "let n: number = 5;", context_id=made)
        equal(text(SHARED, "[there('/'), fs.existsSync('/'), path.basename('/a/b') as string].join()",
                   context_id=made), "'true,true,b'", "imports are kept")
        equal(text(SHARED, "n + 1 as number", context_id=made), "6", "kept")
        error = run(SHARED, "1;\nnamespace N { export const a = 1 }", context_id=made).error
        equal((error["ename"], "namespace" in error["evalue"], ":2:22" in "".join(error["traceback"])),
              ("SyntaxError", True, True), f"a namespace with values: {error}")
        error = run(SHARED, "const a: number = 1;\n\nnull!.x;", context_id=made).error
        assert any(":3:" in line for line in error["traceback"]), error


with Agent(environment=DEBIAN) as AGENT:
    SHARED.stand_for(AGENT)
    main()
