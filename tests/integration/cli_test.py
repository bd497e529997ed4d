#!/usr/bin/python3
"""The burrow command line as an ordinary client of a real daemon: its verbs, their output for people
and for programs, their exit statuses, and what they say when something is wrong.

# timeout: 600
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from cli import environment, good, plane, run, start  # noqa: E402
from program import PATIENCE, clean_environment, program, wait_until  # noqa: E402
from tap import equal, main, skip, test  # noqa: E402

MIB = 1 << 20


def listed(*words):
    return json.loads(good("ls", "--json", *words))


def refused(status, sentence, *words, **options):
    """It fails with that status, and says so in one sentence on stderr."""
    done = run(*words, **options)
    equal(done.status, status, f"status of {words}: {done.err}")
    assert sentence in done.err, f"{words}: {done.err!r} does not say {sentence!r}"
    assert done.err.startswith("burrow: "), done.err
    return done


# --- sandboxes -----------------------------------------------------------------------------------

@test
def a_sandbox_is_made_and_listed():
    equal(good("create", "demo", "--label", "team=blue", "--env", "COLOUR=red", "--memory", "512M",
               "--sleep-after", "5m"), "demo\n", "create")
    rows = good("ls").splitlines()
    equal(rows[0].split(), ["NAME", "STATUS", "IMAGE", "CREATED", "ACTIVE", "ID"], "titles")
    equal(rows[1].split()[:2], ["demo", "running"], "row")
    box = listed()[0]
    equal((box["name"], box["labels"], box["env"], box["limits"]["memory"], box["sleepAfter"]),
          ("demo", {"team": "blue"}, {"COLOUR": "red"}, 512 * MIB, 300), "what was asked for")
    equal(good("ls", "-q"), box["id"] + "\n", "ids alone")
    equal(good("exec", "demo", "sh", "-c", "echo $COLOUR"), "red\n", "its variable")


@test
def making_one_that_is_there_says_so_and_is_no_failure():
    done = run("create", "demo")
    equal((done.status, done.out), (0, b"demo\n"), "create again")
    assert "was there already" in done.err, done.err


@test
def one_without_a_name_is_known_by_its_id():
    name = good("create").strip()
    assert re.fullmatch("[a-z2-7]{26}", name), name
    assert name in good("ls", "--names").split()
    equal(good("rm", name), name + "\n", "rm")
    equal(good("ls", "--names"), "demo\n", "names")


@test
def lists_are_filtered():
    good("create", "other", "--label", "team=green")
    equal([box["name"] for box in listed("--label", "team=blue")], ["demo"], "by label")
    equal([box["name"] for box in listed("--prefix", "ot")], ["other"], "by prefix")
    equal(listed("--status", "stopped"), [], "by status")
    refused(1, "unknown status 'tired'; one of ", "ls", "--status", "tired")


@test
def sandboxes_sleep_wake_stop_and_start():
    for verb, expected in (("sleep", ("frozen", "hibernated")), ("wake", ("running",)),
                           ("stop", ("stopped",)), ("start", ("running",))):
        equal(good(verb, "demo", "other"), "demo\nother\n", verb)
        for box in listed():
            assert box["status"] in expected, f"{verb}: {box['status']}"
    good("sleep", "other")
    equal(good("exec", "other", "echo", "awake"), "awake\n", "exec wakes")


@test
def one_bad_name_of_many_is_told_and_the_others_are_done():
    done = run("stop", "demo", "nowhere", "other")
    equal((done.status, done.out), (1, b"demo\nother\n"), "stop")
    equal(done.err.count("\n"), 1, "complaints")
    equal(good("start", "demo", "other", "--json").count('"status":"running"'), 2, "start")


@test
def all_of_them_are_stopped_at_once():
    ids = sorted(box["id"] for box in listed())
    equal(sorted(good("stop", "--all").split()), ids, "stopped")
    equal({box["status"] for box in listed()}, {"stopped"}, "status")
    equal(good("stop", "--all"), "", "stopped ones are left alone")
    good("start", "demo")
    refused(1, "say which", "stop")


@test
def removing_is_for_ever_and_force_forgives():
    equal(good("rm", "other"), "other\n", "rm")
    refused(1, "no such sandbox 'other'", "rm", "other")
    equal(good("rm", "-f", "other"), "", "rm -f")


# --- commands ------------------------------------------------------------------------------------

@test
def the_exit_status_of_a_command_is_passed_on():
    for script, status in (("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143)):
        equal(run("exec", "demo", "--", "sh", "-c", script).status, status, script)
    refused(127, "nosuch", "exec", "demo", "nosuch")
    refused(126, "/etc", "exec", "demo", "/etc")
    refused(124, "not done after 200ms", "exec", "--timeout", "200ms", "demo", "sleep", "60")


@test
def input_and_both_outputs_are_passed_through_byte_for_byte():
    data = os.urandom(3 * MIB)
    equal(run("exec", "demo", "cat", stdin=data).out, data, "stdin to stdout")
    done = run("exec", "demo", "sh", "-c", "echo out; echo err >&2")
    equal((done.out, done.err), (b"out\n", "err\n"), "both")


@test
def a_command_gets_its_folder_and_variables():
    equal(good("exec", "-w", "/tmp", "-e", "A=1", "--env", "MINE", "demo", "sh", "-c",
               "pwd; echo $A $MINE", MINE="2"), "/tmp\n1 2\n", "output")
    refused(125, "write NAME=TEXT", "exec", "-e", "NOT_SET_HERE", "demo", "true")


@test
def a_signal_reaches_the_command():
    process = start("exec", "demo", "sh", "-c",
                    'trap "echo caught; exit 9" TERM; echo ready; while :; do sleep 0.1; done')
    equal(process.stdout.readline(), b"ready\n", "first line")
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=PATIENCE)
    equal((process.returncode, out), (9, b"caught\n"), "end")


@test
def a_reader_that_leaves_ends_the_writer():
    line = f"{program()} exec demo yes | head -1"
    done = subprocess.run(["bash", "-c", line], env=environment(), stdout=subprocess.PIPE,
                          timeout=PATIENCE, check=True)
    equal(done.stdout, b"y\n", "output")


@test
def a_command_for_programs_is_one_object():
    done = run("exec", "--json", "demo", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    answer = json.loads(done.out)
    equal((done.status, answer["exitCode"], answer["stdout"], answer["stderr"]),
          (3, 3, "out\n", "err\n"), "answer")


@test
def background_processes_are_started_listed_followed_and_ended():
    loop = good("exec", "-d", "demo", "--", "sh", "-c", "while :; do echo 'tick tock'; sleep 0.1; done")
    short = good("exec", "--detach", "demo", "echo out; echo err >&2; exit 4").strip()
    rows = {row.split()[0]: row for row in good("ps", "demo").splitlines()}
    assert "running" in rows[loop.strip()] and "tick tock" in rows[loop.strip()], rows
    wait_until(lambda: {row["id"]: row.get("exitCode") for row in
                        json.loads(good("ps", "demo", "--json"))}[short] == 4, "its end")
    done = run("logs", "demo")
    equal((done.out, done.err), (b"out\n", "err\n"), "the newest one's log")
    done = run("logs", "-f", "demo", short)
    equal((done.status, done.out, done.err), (0, b"out\n", "err\n"), "followed to its end")
    process = start("logs", "-f", "demo", loop.strip())
    for _ in range(3):
        equal(process.stdout.readline(), b"tick tock\n", "line")
    equal(good("kill", "demo", loop.strip()), loop, "kill")
    process.communicate(timeout=PATIENCE)
    refused(1, "not found", "logs", "demo", "nosuch")


# --- what else there is --------------------------------------------------------------------------

@test
def top_shows_what_is_used():
    rows = good("top").splitlines()
    equal(rows[0].split()[:3], ["NAME", "CPU", "MEMORY"], "titles")
    assert re.match(r"demo +\d+\.\d% ", rows[1]), rows
    busy = start("exec", "demo", "sh", "-c", "while :; do :; done")
    try:
        wait_until(lambda: json.loads(good("top", "--json"))[0]["cpu"] > 2, "the share of CPU time")
    finally:
        busy.terminate()
        busy.communicate(timeout=PATIENCE)


@test
def ports_get_a_url_that_works():
    good("exec", "-d", "demo", "cd /tmp && echo hello >index.html && python3 -m http.server 8000")
    url = good("port", "expose", "demo", "8000", "--name", "web").strip()
    assert re.fullmatch(r"http://8000-\w+-\w+\.localhost:\d+/", url), url
    host = url.split("/")[2]
    wait_until(lambda: plane().ask("GET", "/", key="", headers=[("Host", host)]).body == b"hello\n",
               "the preview")
    equal(good("port", "ls", "demo").splitlines()[1].split()[:3], ["8000", "web", "no"], "row")
    equal(good("port", "rm", "demo", "8000"), "8000\n", "rm")
    equal(json.loads(good("port", "ls", "demo", "--json"))["ports"], [], "ports")
    refused(1, "not exposed", "port", "rm", "demo", "8000")
    refused(1, "'many' is not a port from 1 to 65535", "port", "expose", "demo", "many")


@test
def events_are_listed_and_followed_across_a_restart():
    types = [json.loads(line)["type"] for line in good("events", "demo", "--json").splitlines()]
    equal(types[0], "sandbox.created", "first")
    assert "sandbox.stopped" in types, types
    assert re.search(r"^\d{4}-\S+Z  sandbox.created +sandboxId=", good("events"), re.MULTILINE)
    process = start("events", "-f", "--after", "-1", "--type", "sandbox.", "--json")
    try:
        time.sleep(0.5)
        good("sleep", "demo")
        equal(json.loads(process.stdout.readline())["data"]["reason"], "put to sleep on request",
              "event")
        old = plane().daemon_pid
        os.kill(old, signal.SIGKILL)
        wait_until(lambda: plane().daemon_pid not in (None, old) and plane().is_ready(), "restart")
        wait_until(lambda: run("wake", "demo").status == 0, "wake")
        equal(json.loads(process.stdout.readline())["type"], "sandbox.woken", "event behind it")
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)


@test
def users_and_keys_are_managed():
    ann = good("user", "create", "ann", "--quota", "sandboxes=1", "--quota", "memory=4G",
               "--quota", "cpu=1.5").strip()
    done = run("user", "change", "ann", "--email", "ann@example.com", "--password-stdin", "--json",
               stdin=b"correct horse battery\n")
    answer = json.loads(done.out)
    equal((answer["id"], answer["email"], answer["hasPassword"], answer["quotas"]["sandboxes"],
           answer["quotas"]["cpu"]), (ann, "ann@example.com", True, 1, 1.5), "user")
    key = good("key", "create", "laptop", "--user", "ann", "--expires", "1d").strip()
    equal(good("ls", "--names", "--key", key), "", "hers")
    equal(good("create", "demo", "--cpus", "1", BURROW_API_KEY=key), "demo\n", "a demo of her own")
    refused(1, "over the quota", "create", "more", "--key", key)
    assert good("ls").splitlines()[0].endswith("OWNER"), "administrators see whose it is"
    rows = {row.split()[0]: row.split() for row in good("key", "ls").splitlines()}
    equal(rows["laptop"][1], "write", "scope")
    good("rm", "demo", "--key", key)
    good("key", "revoke", rows["laptop"][-1])
    refused(1, "", "ls", "--key", key)
    assert "laptop" not in good("key", "ls") and "laptop" in good("key", "ls", "--all")
    assert "ann" in good("user", "ls")
    equal(good("user", "rm", "ann"), "ann\n", "rm")
    equal([user["name"] for user in json.loads(good("user", "ls", "--json"))], ["admin"], "users")


@test
def what_login_keeps_is_used_afterwards():
    nothing = {"BURROW_URL": "", "BURROW_API_KEY": ""}
    refused(1, "", "login", "--url", f"http://{plane().address}", stdin=b"wrong\n", **nothing)
    done = good("login", "--url", f"http://{plane().address}", stdin=plane().key.encode() + b"\n",
                **nothing)
    assert done.startswith("admin at http://"), done
    path = os.path.join(environment()["HOME"], ".config/burrow/credentials")
    equal(os.stat(path).st_mode & 0o777, 0o600, "mode")
    equal(good("ls", "--names", **nothing), "demo\n", "ls")
    os.unlink(path)


@test
def beside_the_daemon_root_needs_no_key():
    equal(good("ls", "--names", BURROW_API_KEY="", BURROW_DATA=plane().data), "demo\n", "ls")
    refused(1, "a key is needed", "ls", BURROW_API_KEY="", BURROW_DATA="/nonexistent")


@test
def the_database_is_copied_while_it_works_and_the_copy_is_whole():
    path = good("db", "backup").strip()
    data = os.path.join(plane().data, "daemon")
    assert os.path.dirname(path) == os.path.join(data, "backups"), path
    assert "0 problems" in good("db", "check", "--data", data, path)
    refused(1, "in use by another burrow", "db", "rotate-keys", "--data", data)
    with open(path, "r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 4096)
    assert run("db", "check", "--data", data, path).status == 1


@test
def keys_of_smaller_scopes_are_held_to_them():
    reader = good("key", "create", "reader", "--scope", "read").strip()
    equal(good("ls", "--names", "--key", reader), "demo\n", "reading")
    for words in (("exec", "--key", reader, "demo", "true"), ("shell", "--key", reader, "demo")):
        refused(125, "scope 'read'", *words)
    one = good("key", "create", "one", "--sandbox", "demo").strip()
    equal(good("exec", "--key", one, "demo", "echo", "in"), "in\n", "its sandbox")
    refused(1, "", "create", "more", "--key", one)


# --- what is wrong -------------------------------------------------------------------------------

@test
def a_stopped_sandbox_says_so_to_who_wants_in():
    good("stop", "demo")
    for status, words in ((125, ("exec", "demo", "true")), (125, ("shell", "demo")),
                          (1, ("cp", "demo:x", "-"))):
        refused(status, "is stopped (stopped on request); start it first", *words)
    good("start", "demo")


@test
def a_slip_of_typing_is_explained():
    refused(125, "no such sandbox 'dmo'; did you mean 'demo'?", "exec", "dmo", "true")
    refused(1, "no such sandbox 'elephant'; `burrow ls` lists them", "stop", "elephant")
    refused(2, "there is no verb 'crate'; did you mean 'create'?", "crate")
    refused(2, "key what? One of: create, ls, revoke", "key")
    refused(2, "create has no option --memroy; did you mean --memory?", "create", "--memroy", "1G")
    refused(2, "cp needs more: cp FROM TO", "cp", "x")


@test
def a_daemon_that_is_not_there_is_told_with_what_to_do():
    refused(1, "start it with `burrow serve`", "ls", BURROW_URL="http://127.0.0.1:9")
    refused(1, "not known", "ls", "--url", "http://nowhere.invalid")
    refused(1, "", "ls", "--url", "gopher://x")


@test
def what_others_wrote_cannot_steer_a_terminal():
    plane().call("POST", "/burrow/v1/sandboxes/demo/processes", {"command": "true '\x1b[2J'"})
    assert "\x1b" not in good("ps", "demo")


# --- the table -----------------------------------------------------------------------------------

def verbs():
    usage = good("--help")
    return [line[2:18].strip() for line in usage.splitlines() if line.startswith("  ")]


@test
def every_verb_has_help_and_is_in_all_documents():
    names = verbs()
    assert len(names) > 30, names
    man, bash, zsh = good("man"), good("completion", "bash"), good("completion", "zsh")
    for name in names:
        assert f"burrow {name}" in good(*name.split(), "--help"), name
        escaped = name.replace("-", "\\-")
        assert f".SS burrow {escaped}" in man, name
        assert f'"{name} "*)' in bash and f"'{name} '*)" in zsh, name
    refused(2, "not for 'fish'", "completion", "fish")


@test
def the_manual_page_is_good_roff():
    if not os.path.exists("/usr/bin/groff"):
        skip("groff")
    done = subprocess.run(["groff", "-man", "-ww", "-Tutf8"], input=good("man").encode(),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
    equal(done.stderr, b"", "complaints of groff")
    assert b"burrow key create" in done.stdout


@test
def bash_completes_verbs_options_and_names():
    script = ('. <(burrow completion bash); words() { COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); '
              'COMPREPLY=(); _burrow; echo "${COMPREPLY[*]}"; }; '
              'words burrow sh; words burrow key c; words burrow key create --sc; '
              'words burrow exec d; words burrow create d')
    done = subprocess.run(["bash", "-c", script], stdout=subprocess.PIPE, check=True, timeout=PATIENCE,
                          env={**environment(), "PATH": f"{os.path.dirname(program())}:{os.environ['PATH']}"})
    equal(done.stdout.decode().splitlines(), ["shell", "create", "--scope", "demo", ""], "words")


@test
def names_of_sandboxes_are_not_run_by_the_shell_that_completes_them():
    with tempfile.TemporaryDirectory() as folder:
        script = (f'. <(burrow completion bash); cd {folder}; '
                  'burrow() { printf "%s\\n" \'d$(touch ran)\' \'d`touch ran`\' "demo"; }; '
                  'COMP_WORDS=(burrow exec d); COMP_CWORD=2; _burrow; '
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "-c", script], stdout=subprocess.PIPE, check=True, timeout=PATIENCE,
                              env={**clean_environment(),
                                   "PATH": f"{os.path.dirname(program())}:{os.environ['PATH']}"})
        equal(done.stdout.decode().splitlines(),
              ["d\\$\\(touch\\ ran\\)", "d\\`touch\\ ran\\`", "demo"], "words")
        equal(os.listdir(folder), [], "what ran")


@test
def without_a_daemon_the_local_verbs_work():
    for words in (["version"], ["--version"], ["help"], ["help", "exec"], ["man"]):
        done = subprocess.run([program(), *words], env=clean_environment(), check=False,
                              stdout=subprocess.PIPE, timeout=PATIENCE)
        assert done.returncode == 0 and done.stdout, words
    equal(subprocess.run([program()], env=clean_environment(), check=False, timeout=PATIENCE,
                         stderr=subprocess.DEVNULL).returncode, 2, "no verb")


main()
