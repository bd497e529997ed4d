#!/usr/bin/python3
"""`burrow image pull`: images from Debian's docker-registry, from behind tokens, and from liars.

# timeout: 600
"""

import os
import pty
import re
import signal
import ssl
import subprocess
import sys
import termios
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from image_place import ImagePlace  # noqa: E402
from images import ARCHITECTURE, digest, file, layer, programs  # noqa: E402
from launcher import children, status_of  # noqa: E402
from program import clean_environment, program, wait_until  # noqa: E402
from registry import PASSWORD, USER, Front, Registry, token_rule, write_secret  # noqa: E402
from tap import equal, main, test  # noqa: E402

OTHER = "arm64" if ARCHITECTURE == "amd64" else "amd64"
CONFIG = {"Env": ["PATH=/bin", "GREETING=hello"], "WorkingDir": "/etc"}
TOP = layer([file("etc/new", b"new\n")])
LARGE = layer([file("etc/large", os.urandom(3 << 20))])
SMALL = layer([file("etc/small", b"small\n")])
BASE = None


def base():
    global BASE  # pylint: disable=global-statement
    BASE = BASE or layer(programs("sh", "cat"))
    return BASE


def pulled(answer, *lines):
    status, out = answer
    equal(status, 0, out)
    for line in lines:
        assert line in out, f"'{line}' is not in {out!r}"
    return out


def refused(place, answer, *words):
    """It failed with one sentence, and nothing is left of it."""
    status, out = answer
    equal(status, 1, out)
    last = out.splitlines()[-1]
    assert last.startswith("burrow image: "), out
    for word in words:
        assert word in last, f"'{word}' is not in {last!r}"
    assert PASSWORD not in out, "the password is shown"
    equal(place.layers(), [], "layers of a refused image")
    equal(place.image("ls")[1].count("\n"), 1, "images")


@test
def a_pulled_image_runs_and_its_layers_are_shared():
    with Registry() as registry, Front(registry) as front, ImagePlace() as place:
        registry.push("some/tool", "1", [base(), TOP], CONFIG)
        pulled(place.image("pull", f"{front.address}/some/tool:1"), "2 layers", "layer 2 of 2: fetched",
               "layer 2 of 2: unpacked")
        equal(place.sandbox("tool", "cat /etc/new; echo $GREETING; cat new"), (0, "new\nhello\nnew\n"), "sandbox")
        equal(place.layers(), sorted([digest(base()), digest(TOP)]), "layers")

        described = registry.push("some/other", "latest", [base(), SMALL], CONFIG)
        front.requests.clear()
        pulled(place.image("pull", "mine", f"{front.address}/some/other"), described["digest"],
               "layer 1 of 2: here already", "layer 2 of 2: fetched")
        equal(len(front.blobs()), 2, "blobs fetched: the config and one layer")
        equal(place.sandbox("mine", "cat small"), (0, "small\n"), "sandbox")


@test
def dockers_own_types_are_taken_too():
    with Registry() as registry, ImagePlace() as place:
        registry.push("tool", "latest", [base(), TOP], CONFIG, kind="docker")
        pulled(place.image("pull", f"{registry.address}/tool"))
        equal(place.sandbox("tool", "cat new"), (0, "new\n"), "sandbox")


@test
def of_several_architectures_this_machines_is_taken():
    for kind in ("oci", "docker"):
        with Registry() as registry, Front(registry) as front, ImagePlace() as place:
            others = registry.push("tool", None, [LARGE], kind=kind, architecture=OTHER)
            ours = registry.push("tool", None, [TOP], kind=kind)
            registry.push_index("tool", "both", [(OTHER, others), (ARCHITECTURE, ours)], kind)
            registry.push_index("tool", "foreign", [(OTHER, others)], kind)
            refused(place, place.image("pull", f"{front.address}/tool:foreign"), "nothing for linux/")
            pulled(place.image("pull", f"{front.address}/tool:both"), ours["digest"])
            equal(place.layers(), [digest(TOP)], "layers")
            equal(len(front.blobs()), 2, "blobs fetched: nothing of the other's")


@test
def a_digest_names_one_content():
    with Registry() as registry, Front(registry) as front, ImagePlace() as place:
        described = registry.push("tool", "1", [TOP])
        other = registry.push("tool", "2", [SMALL])
        reference = f"{front.address}/tool:1@{described['digest']}"
        front.rule = lambda request: "/manifests/" in request.path and request.answer(
            200, registry.call("GET", f"/v2/tool/manifests/{other['digest']}",
                               Accept=described["mediaType"])[2])
        refused(place, place.image("pull", reference), "is not what the registry says")
        front.rule = None
        pulled(place.image("pull", reference), described["digest"])


@test
def a_registry_with_passwords_opens_for_the_right_one():
    with Registry(auth="htpasswd") as registry, Front(registry) as front, ImagePlace() as place:
        registry.push("tool", "latest", [TOP])
        reference = f"{front.address}/tool"
        refused(place, place.image("pull", reference), "wants a name and a password: --user or --credentials")
        refused(place, place.image("pull", "--user", USER, reference, given=b"wrong\n"), "401", "other credentials")
        refused(place, place.image("pull", "--user", USER, reference), "no password on standard input")
        refused(place, place.image("pull", "--user", "a:b", reference, given=b"x"), "no ':'")
        pulled(place.image("pull", "--user", USER, reference, given=f"{PASSWORD}\nand more\n".encode()))
        equal(place.image("rm", "tool"), (0, ""), "rm")
        secret = write_secret(place.folder, f"{USER}:{PASSWORD}\n")
        pulled(place.image("pull", "--credentials", secret, reference), "here already")
        os.chmod(secret, 0o644)
        status, out = place.image("pull", "--credentials", secret, reference)
        equal((status, "chmod 600" in out), (1, True), out)


def with_tokens(rule_of, check):
    """A registry behind a token server, which answers by rule_of(tokens)."""
    with Front() as server, Registry("token", f"http://{server.address}/token") as registry, ImagePlace() as place:
        server.rule = rule_of(registry.tokens)
        registry.push("some/tool", "latest", [TOP])
        check(place, server, f"{registry.address}/some/tool")


@test
def a_token_server_is_asked_for_a_token_to_read_this_one_repository():
    def check(place, server, reference):
        refused(place, place.image("pull", reference), "token server refuses who has none")
        refused(place, place.image("pull", "--user", USER, reference, given=b"wrong"),
                "token server refuses these credentials")
        server.requests.clear()
        pulled(place.image("pull", "--user", USER, reference, given=PASSWORD.encode()))
        equal(len(server.requests), 1, "one token for all of it")
        assert "scope=repository%3Asome%2Ftool%3Apull" in server.requests[0][0], server.requests
    with_tokens(token_rule, check)


@test
def tokens_for_everybody_need_no_credentials():
    with_tokens(lambda tokens: token_rule(tokens, None),
                lambda place, server, reference: pulled(place.image("pull", reference)))


@test
def a_token_that_expires_on_the_way_is_replaced():
    with Front() as server, Registry("token", f"http://{server.address}/token") as registry, \
            Front(registry) as front, ImagePlace() as place:
        server.rule = token_rule(registry.tokens, None)
        registry.push("tool", "latest", [TOP, SMALL])
        old = []

        def expire(request):
            """A blob is not given out for the first token."""
            if request.authorization and not old:
                old.append(request.authorization)
            if request.is_blob and request.authorization == old[0]:
                return request.answer(401, WWW_Authenticate=f'Bearer realm="http://{server.address}/token",'
                                      'service="registry of a test",scope="repository:tool:pull"')
            return False
        front.rule = expire
        pulled(place.image("pull", f"{front.address}/tool"))
        equal(len(server.requests), 2, "tokens")


@test
def nonsense_of_a_token_server_is_refused():
    for body, why in ((b"{}", "no token"), (b"[]", "no object"), (b'{"token": "a\\nb"}', "no header"),
                      (b"<html>", "invalid JSON")):
        with_tokens(lambda tokens, body=body: lambda request: request.answer(200, body),
                    lambda place, server, reference, why=why: refused(place, place.image("pull", reference), why))


@test
def a_redirected_blob_is_fetched_without_our_credentials():
    with Registry(auth="htpasswd") as registry, Front(registry) as front, Front() as store, ImagePlace() as place:
        registry.push("tool", "latest", [LARGE])
        store.rule = lambda request: request.answer(200, registry.call("GET", request.path)[2])
        front.rule = lambda request: request.is_blob and request.answer(
            307, Location=f"http://{store.address}{request.path}")
        pulled(place.image("pull", "--user", USER, f"{front.address}/tool", given=PASSWORD.encode()))
        equal(sorted(store.requests), sorted((path, None, None) for path, _, _ in store.requests), "what the store saw")
        equal(len(store.requests), 2, "blobs")
        assert all(authorization for path, authorization, _ in front.requests if "/blobs/" in path)


@test
def redirects_that_stay_keep_the_credentials_and_those_that_lead_astray_are_refused():
    with Registry(auth="htpasswd") as registry, Front(registry) as front, ImagePlace() as place:
        registry.push("tool", "latest", [TOP])

        def pull():
            return place.image("pull", "--user", USER, f"{front.address}/tool", given=PASSWORD.encode())
        for location, why in (("http://10.1.2.3/x", "10.1.2.3 is private"),
                              ("http://169.254.169.254/x", "link-local"),
                              ("ftp://127.0.0.1/x", "invalid URL"), ("//host/x", "invalid URL"), ("x", "invalid URL"),
                              ("http://user:word@127.0.0.1/", "invalid URL")):
            front.rule = lambda request, location=location: request.is_blob and request.answer(302, Location=location)
            refused(place, pull(), why)
        front.rule = lambda request: request.is_blob and request.answer(302, Location=request.path)
        refused(place, pull(), "in circles")

        def stay(request):
            if request.path.startswith("/moved"):
                request.path = request.path[len("/moved"):]
                return False
            return request.is_blob and request.answer(302, Location="/moved" + request.path)
        front.rule = stay
        pulled(pull())


@test
def lies_are_found_out():
    with Registry() as registry, Front(registry) as front, ImagePlace() as place:
        registry.push("tool", "latest", [LARGE, TOP])
        reference = f"{front.address}/tool"

        def change(body):
            return body[:-1] + bytes([body[-1] ^ 1])
        front.rule = lambda request: request.is_blob and request.pass_on(change)
        refused(place, place.image("pull", reference), "a document is not what the registry says it is")
        front.rule = lambda request: request.is_blob and request.pass_on(
            lambda body: change(body) if len(body) > 1 << 20 else body)
        refused(place, place.image("pull", reference), "layer 1 of 2: it is not what the registry says it is")
        front.rule = lambda request: request.is_blob and request.pass_on(
            lambda body: body + b"more" if len(body) > 1 << 20 else body)
        refused(place, place.image("pull", reference), "layer 1 of 2", "gives more than")
        for body, why in ((b"{", "invalid JSON"), (b"{}", "config"), (b'{"manifests": 1}', "manifests"),
                          (b'{"fsLayers": []}', "first format"), (b"[" * 100000, "more than"),
                          (b" " * (5 << 20), "more than")):
            front.rule = lambda request, body=body: "/manifests/" in request.path and request.answer(200, body)
            refused(place, place.image("pull", reference), why)
        front.rule = None
        pulled(place.image("pull", reference))


@test
def what_breaks_off_is_continued():
    with Registry() as registry, Front(registry) as front, ImagePlace() as place:
        registry.push("tool", "latest", [LARGE])
        cuts = [1 << 20, 1 << 20, 100]

        manifest = registry.call("GET", "/v2/tool/manifests/latest", Accept="application/vnd.oci.image.manifest.v1+json")
        large = re.search(rb'"layers".*?sha256:([0-9a-f]{64})', manifest[2]).group(1).decode()
        front.rule = lambda request: request.path.endswith(large) and cuts and request.pass_on(cut=cuts.pop(0))
        pulled(place.image("pull", f"{front.address}/tool"), "trying again")
        equal([range_ for path, _, range_ in front.requests if path.endswith(large)],
              [None, f"bytes={1 << 20}-", f"bytes={2 << 20}-", f"bytes={(2 << 20) + 100}-"], "parts asked for")
        equal(place.layers(), [digest(LARGE)], "layers")


@test
def who_gives_no_parts_is_asked_for_the_whole_again():
    with Registry() as registry, Front(registry) as front, ImagePlace() as place:
        registry.push("tool", "latest", [LARGE])
        cuts = [1 << 20]
        front.rule = lambda request: request.is_blob and request.pass_on(
            cut=cuts.pop(0) if cuts and int(request.fetch()[1]["Content-Length"]) > 1 << 20 else None, keep_range=False)
        pulled(place.image("pull", f"{front.address}/tool"), "trying again")
        equal(place.layers(), [digest(LARGE)], "layers")


@test
def a_blob_that_always_breaks_off_fails_in_the_end():
    with Registry() as registry, Front(registry) as front, ImagePlace() as place:
        registry.push("tool", "latest", [TOP])
        front.rule = lambda request: request.is_blob and request.pass_on(cut=0)
        refused(place, place.image("pull", f"{front.address}/tool"), "ended too early")
        equal(len([1 for path, _, _ in front.requests if "/blobs/" in path]), 5, "attempts")


@test
def a_registry_that_is_busy_is_asked_again_and_one_that_refuses_is_not():
    with Registry() as registry, Front(registry) as front, ImagePlace() as place:
        registry.push("tool", "latest", [TOP])
        reference = f"{front.address}/tool"
        for statuses in ([429, 503], [500, 502, 504]):
            front.rule = lambda request, left=statuses: left and request.answer(left.pop(0), Retry_After="1")
            pulled(place.image("pull", reference), "trying again: the registry answers")
            place.image("rm", "tool")
            place.image("prune")
        for status, words in ((404, ("404", "no such image (MANIFEST_UNKNOWN: it?is gone)")), (403, ("403",)),
                              (418, ("status 418",)), (429, ("429", "too often"))):
            front.requests.clear()
            front.rule = lambda request, status=status: request.answer(
                status, b'{"errors": [{"code": "MANIFEST_UNKNOWN", "message": "it\\u001bis gone"}]}', Retry_After="3600")
            refused(place, place.image("pull", reference), *words)
            equal(len(front.requests), 1, f"requests after {status}")
        front.rule = None
        refused(place, place.image("pull", f"{front.address}/nothing:here"), "no such image", "MANIFEST_UNKNOWN")


@test
def certificates_are_checked_and_plain_http_is_for_this_machine():
    with Registry() as registry, ImagePlace() as place:
        registry.push("tool", "latest", [TOP])
        certificate, key = f"{place.folder}/tls.crt", f"{place.folder}/tls.key"
        os.chmod(place.folder, 0o755)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate,
                        "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"], check=True,
                       capture_output=True)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate, key)
        with Front(registry, tls=tls) as front:
            reference = f"https://{front.address}/tool"
            refused(place, place.image("pull", reference), "certificate is not trusted")
            front.rule = lambda request: request.is_blob and request.answer(
                302, Location=f"http://{registry.address}{request.path}")
            refused(place, place.image("pull", reference, environment={"SSL_CERT_FILE": certificate}),
                    "from https to plain http")
            front.rule = None
            pulled(place.image("pull", reference, environment={"SSL_CERT_FILE": certificate}))
        refused_words = place.image("pull", "x", "http://192.0.2.1/tool")
        equal((refused_words[0], "--plain-http" in refused_words[1]), (1, True), refused_words[1])


@test
def wrong_words_are_told():
    with ImagePlace() as place:
        for reference, why in (("Debian", "give one"), ("a/b:bad tag", "a tag has"), ("tool@sha256:1", "64 digits"),
                               ("a//b", "its path"), ("x" * 2000, "give one")):
            refused(place, place.image("pull", reference), why)
        refused(place, place.image("pull", "Bad", "127.0.0.1:1/tool"), "name")
        refused(place, place.image("pull", "host", "127.0.0.1:1/tool"), "built-in")
        refused(place, place.image("pull", "--allow", "nowhere", "127.0.0.1:1/tool"), "nowhere")
        refused(place, place.image("pull", "127.0.0.1:1/tool"), "cannot connect")
        for words in (["pull"], ["pull", "a", "b", "c"], ["--user", "x", "ls"]):
            status, out = place.image(*words)
            equal((status, "usage: burrow image" in out), (2, True), f"{words}: {out}")


@test
def on_a_terminal_the_password_is_asked_for_and_a_bar_is_shown():
    with Registry(auth="htpasswd") as registry, ImagePlace() as place:
        registry.push("some/tool", "latest", [LARGE])
        ours, theirs = pty.openpty()
        with subprocess.Popen([program(), "image", "--data", place.data, "--run", place.run_folder, "pull", "--user",
                               USER, f"{registry.address}/some/tool"], env=clean_environment(), stdin=theirs,
                              stdout=theirs, stderr=theirs) as process:
            os.close(theirs)
            out = b""
            while True:
                try:
                    out += os.read(ours, 4096)
                except OSError:  # nobody has the other end any more
                    break
                if out.endswith(f"password of {USER}: ".encode()):
                    os.write(ours, f"{PASSWORD}\n".encode())
            os.close(ours)
        equal(process.returncode, 0, out)
        assert b"\r\x1b[Ktool  [" in out, out
        assert PASSWORD.encode() not in out, out


def echoes(terminal):
    return bool(termios.tcgetattr(terminal)[3] & termios.ECHO)


@test
def who_is_interrupted_while_asking_leaves_the_terminal_as_it_was():
    with ImagePlace() as place:
        ours, theirs = pty.openpty()
        for number in (signal.SIGINT, signal.SIGTERM):
            with subprocess.Popen([program(), "image", "--data", place.data, "--run", place.run_folder, "pull", "--user",
                                   USER, "localhost:1/tool"], env=clean_environment(), stdin=theirs, stdout=theirs,
                                  stderr=theirs) as process:
                out = b""
                while not out.endswith(b": "):
                    out += os.read(ours, 4096)
                equal(echoes(theirs), False, "while it asks")
                process.send_signal(number)
            equal(process.returncode, -number, "how it ended")
            equal(echoes(theirs), True, "afterwards")
            equal(os.read(ours, 4096), b"\r\n", "what it said")
        os.close(ours)
        os.close(theirs)


def command_of(pid):
    with open(f"/proc/{pid}/cmdline", "rb") as content:
        return content.read()


def processes_below(pid):
    return [pid, *(one for child in children(pid) for one in processes_below(child))]


@test
def who_fetches_has_no_rights_and_ends_with_us():
    with Registry() as registry, Front(registry) as front, ImagePlace() as place:
        registry.push("tool", "latest", [TOP])
        reached, go_on = threading.Event(), threading.Event()

        def stall(request):
            reached.set()
            go_on.wait(60)
            return request.answer(404)
        front.rule = stall
        secret = write_secret(place.folder, f"{USER}:{PASSWORD}")
        with subprocess.Popen([program(), "image", "--data", place.data, "--run", place.run_folder, "pull",
                               "--credentials", secret, f"{front.address}/tool"], env=clean_environment(),
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                assert reached.wait(60), "no request came"
                pullers = [pid for pid in processes_below(process.pid) if command_of(pid).startswith(b"burrow-puller\0")]
                equal(len(pullers), 1, "pullers")
                status = status_of(pullers[0])
                ids = set(status["Uid"].split() + status["Gid"].split())
                equal((len(ids), int(ids.pop()) >= 0x10000000), (1, True), "ids of its own")
                for field in ("CapPrm", "CapEff", "CapInh", "CapBnd", "CapAmb"):
                    equal(int(status[field], 16), 0, field)
                equal((status["NoNewPrivs"].strip(), status["NSpid"].split()[-1]), ("1", "1"), "rights, pid")
                equal(sorted(int(fd) for fd in os.listdir(f"/proc/{pullers[0]}/fd"))[:5], [0, 1, 2, 3, 4], "fds")
                for pid in processes_below(process.pid):
                    assert PASSWORD.encode() not in command_of(pid), "the password is an argument"
                process.kill()
                process.wait()
                wait_until(lambda: not os.path.exists(f"/proc/{pullers[0]}"), "end of the puller")
            finally:
                process.kill()
                go_on.set()
        equal(place.image("prune"), (0, "1 deleted\n"), "what a killed pull leaves")


main()
