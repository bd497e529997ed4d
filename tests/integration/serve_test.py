#!/usr/bin/python3
"""`burrow serve`: who is let in, what the daemon tells about itself, and its data folder."""

import json
import os
import pty
import re
import stat
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from burrow import Burrow, run_burrow  # noqa: E402
from http_raw import connect, get, request  # noqa: E402
from program import wait_until  # noqa: E402
from tap import equal, main, test  # noqa: E402


# --- without keys: a web page must not drive the daemon ------------------------------------------


def host_status(server, host, path="/metrics", **more):
    headers = [("Host", host), *((name.replace("_", "-"), value) for name, value in more.items())]
    return get(server.address, path, headers).status


@test
def without_keys_only_names_of_this_machine_are_answered():
    with Burrow("--no-auth") as server:
        port = server.address.rpartition(":")[2]
        for host in ("localhost", f"localhost:{port}", "127.0.0.1", f"127.0.0.1:{port}", "[::1]",
                     "LOCALHOST", f"[::1]:{port}", "localhost:1"):
            equal(host_status(server, host), 200, f"status for Host {host}")
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1.nip.example",
                     "localhost.evil.example", "evil-localhost", "0.0.0.0", "10.0.0.1", "[::]", ""):
            equal(host_status(server, host), 421, f"status for Host {host}")
            equal(host_status(server, host, "/health"), 421, f"even of /health for {host}")


@test
def without_keys_an_absolute_target_counts_as_the_host():
    with Burrow("--no-auth") as server, connect(server.address) as connection:
        connection.send(b"GET http://evil.example/metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        equal(connection.response().status, 421, "status")


@test
def without_keys_http_1_0_without_a_host_is_refused():
    with Burrow("--no-auth") as server, connect(server.address) as connection:
        connection.send(b"GET /metrics HTTP/1.0\r\n\r\n")
        equal(connection.response().status, 421, "status")


@test
def allowed_hosts_are_answered_too():
    with Burrow("--no-auth", "--allowed-hosts", "box.lan,Dev.Example") as server:
        for host, status in (("box.lan", 200), ("dev.example:99", 200), ("localhost", 200),
                             ("other.lan", 421), ("sub.box.lan", 421)):
            equal(host_status(server, host), status, f"status for Host {host}")
        server.stop()
        status, output = run_burrow("serve", "--no-auth", "--data", server.data, "--listen",
                                    "127.0.0.1:0", "--allowed-hosts", "fine,a b")
        equal(status, 2, "status")
        assert "allowed host 'a b' is not a host name" in output, output


@test
def without_keys_foreign_origins_are_refused():
    with Burrow("--no-auth") as server:
        own = server.address
        for origin in ("http://evil.example", "null", "http://localhost:1", f"https://{own}x",
                       f"http://{own}.evil.example", "http://127.0.0.1", "file://", "", "localhost",
                       "http://localhost@evil.example"):
            equal(host_status(server, own, Origin=origin), 403, f"status for Origin {origin!r}")
        equal(host_status(server, own, Origin=f"http://{own}"), 200, "our own origin")
        port = own.rpartition(":")[2]
        equal(host_status(server, f"localhost:{port}", Origin=f"http://localhost:{port}"), 200,
              "our own origin by its other name")
        equal(host_status(server, f"localhost:{port}", Origin=f"http://{own}"), 403,
              "another name is another origin")


@test
def without_keys_foreign_fetches_are_refused_and_links_followed():
    with Burrow("--no-auth") as server:
        def status(method="GET", **headers):
            pairs = [(name.replace("_", "-"), value) for name, value in headers.items()]
            return request(server.address, method, "/health", pairs).status
        for site in ("cross-site", "same-site"):
            equal(status(Sec_Fetch_Site=site), 403, f"{site} without a mode")
            equal(status(Sec_Fetch_Site=site, Sec_Fetch_Mode="no-cors"), 403, f"{site} no-cors")
            equal(status(Sec_Fetch_Site=site, Sec_Fetch_Mode="navigate"), 200, f"a link, {site}")
            equal(status("POST", Sec_Fetch_Site=site, Sec_Fetch_Mode="navigate"), 403, "a form")
        for site in ("same-origin", "none"):
            equal(status(Sec_Fetch_Site=site, Sec_Fetch_Mode="cors"), 200, site)


@test
def a_refused_page_learns_nothing_through_cors():
    with Burrow("--no-auth") as server:
        response = request(server.address, "OPTIONS", "/metrics", [
            ("Origin", "http://evil.example"), ("Access-Control-Request-Method", "GET")])
        equal(response.status, 403, "status")
        assert not any(name.lower().startswith("access-control") for name, _ in response.headers)


@test
def a_unix_socket_without_keys_checks_the_same():
    with Burrow("--no-auth", unix=True) as server:
        equal(host_status(server, "localhost"), 200, "localhost")
        equal(host_status(server, "evil.example"), 421, "a foreign name")


# --- with keys -----------------------------------------------------------------------------------


@test
def with_keys_metrics_need_one_and_health_does_not():
    with Burrow() as server:
        response = get(server.address, "/metrics")
        equal(response.status, 401, "without a key")
        equal(response.headers["www-authenticate"], "Bearer", "WWW-Authenticate")
        for value in ("Bearer wrong", f"Basic {server.key}", server.key, "Bearer", "Bearer ",
                      f"Bearer {server.key[:-1]}", f"Bearer {server.key}x"):
            equal(get(server.address, "/metrics", [("Authorization", value)]).status, 401, value)
        for value in (f"Bearer {server.key}", f"bearer {server.key}"):
            equal(get(server.address, "/metrics", [("Authorization", value)]).status, 200, value)
        for path in ("/health", "/ready", "/burrow/v1/version", "/burrow/v1/openapi.json"):
            equal(get(server.address, path).status, 200, path)


@test
def with_keys_any_host_is_answered():
    with Burrow() as server:
        equal(host_status(server, "public.example", "/health"), 200, "status")


class Terminal:
    """The daemon with a terminal as its stdout, in place of the one that was started with a log."""

    def __init__(self, server):
        self.controller, terminal = pty.openpty()
        self.shown = b""
        self.process = subprocess.Popen(
            [server.path(), *server.arguments], stdin=subprocess.DEVNULL, stdout=terminal,
            stderr=subprocess.DEVNULL, env=server.environment)
        os.close(terminal)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        os.close(self.controller)

    def read_until(self, mark):
        while mark not in self.shown:
            self.shown += os.read(self.controller, 4096)
        return self.shown.decode()


@test
def a_person_at_a_terminal_is_shown_the_key_once():
    with Burrow() as server:
        server.stop()
        os.unlink(os.path.join(server.data, "keys/admin"))
        with Terminal(server) as terminal:
            shown = terminal.read_until(b"url  ")
        with open(os.path.join(server.data, "keys/admin"), encoding="ascii") as file:
            equal(shown.count("key  " + file.read().strip()), 1, f"times it was shown: {shown!r}")


@test
def a_person_at_a_terminal_is_shown_a_token_for_the_first_account():
    person = {"name": "Ada", "email": "ada@example.org", "password": "correct horse"}
    path = "/api/auth/sign-up/email"
    with Burrow() as server:
        assert "burrow_first_" not in server.log(), "a log was told"
        server.stop()
        with Terminal(server) as terminal:
            token = re.search(r"^first  (burrow_first_[0-9a-f]{64})\r?$",
                              terminal.read_until(b"within 24 hours"), re.MULTILINE)[1]
            for headers, status in (([], 403), ([("Authorization", f"Bearer {token}")], 200),
                                    ([("Authorization", f"Bearer {token}")], 403)):
                answer = request(server.address, "POST", path,
                                 [("Host", server.address), *headers], json.dumps(person).encode())
                equal(answer.status, status, f"status with {headers}: {answer.body}")
        with Terminal(server) as terminal:
            terminal.read_until(b"url  ")
            wait_until(lambda: get(server.address, "/ready").status == 200, "it is open")
            shown = terminal.shown
        assert b"burrow_first_" not in shown, shown


@test
def the_key_is_told_to_no_log_and_kept_for_its_owner_alone():
    with Burrow() as server:
        key, path = server.key, os.path.join(server.data, "keys/admin")
        with open(path, encoding="ascii") as file:
            equal(file.read().strip(), key, "the key on disk")
        equal(stat.S_IMODE(os.stat(path).st_mode), 0o600, "mode of the key")
        equal(stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode), 0o700, "mode of its folder")
        assert re.fullmatch(r"burrow_[0-9a-f]{64}", key), key
        server.stop()
        server.start()
        equal(server.log().count(key), 0, "times it was written to a log")
        equal(get(server.address, "/metrics", [("Authorization", f"Bearer {key}")]).status, 200,
              "the same key after a restart")


@test
def two_daemons_have_two_keys():
    with Burrow() as one, Burrow() as other:
        assert one.key != other.key


# --- the data folder -----------------------------------------------------------------------------


@test
def a_second_daemon_is_kept_from_the_data_folder():
    with Burrow() as server:
        status, output = run_burrow("serve", "--data", server.data, "--listen", "127.0.0.1:0")
        equal(status, 2, "status")
        assert f"'{server.data}' is in use by another burrow" in output, output
        equal(get(server.address, "/health").status, 200, "the first goes on")


@test
def the_data_folder_of_a_killed_daemon_is_free_again():
    with Burrow() as server:
        server.process.kill()
        server.wait()
        server.start()


@test
def a_newer_data_folder_is_refused_and_left_alone():
    with Burrow() as server:
        server.stop()
        path = os.path.join(server.data, "version")
        with open(path, encoding="ascii") as file:
            equal(file.read(), "1\n", "version on disk")
        for version, message in (("2\n", "has version 2, this burrow knows 1"),
                                 ("abc\n", "is not a number")):
            with open(path, "w", encoding="ascii") as file:
                file.write(version)
            status, output = run_burrow("serve", "--data", server.data, "--listen", "127.0.0.1:0")
            equal(status, 2, "status")
            assert message in output, output
            with open(path, encoding="ascii") as file:
                equal(file.read(), version, "version afterwards")


@test
def a_missing_data_folder_is_made_for_its_owner_alone():
    with Burrow() as server:
        server.stop()
        deep = os.path.join(server.folder, "a/b")
        server.arguments[server.arguments.index(server.data)] = deep
        server.start()
        equal(stat.S_IMODE(os.stat(deep).st_mode), 0o700, "mode")


# --- what it tells about itself ------------------------------------------------------------------


@test
def health_ready_and_version_are_json():
    with Burrow() as server:
        health = json.loads(get(server.address, "/health").body)
        equal((health["ok"], health["status"], health["service"]), (True, "ok", "burrow"), "health")
        equal(json.loads(get(server.address, "/ready").body), {"ready": True, "sandboxes": False, "objects": True}, "ready")
        version = json.loads(get(server.address, "/burrow/v1/version").body)["version"]
        equal(run_burrow("version"), (0, f"burrow {version}\n"), "version")
        equal(health["version"], version, "version in health")


def parse_metrics(text):
    """{name{labels}: value}; fails where a scraper of Prometheus would."""
    types, values = {}, {}
    for line in text.splitlines():
        if line.startswith("# "):
            match = re.fullmatch(r"# (HELP|TYPE) ([a-z_:][a-z0-9_:]*) (.+)", line)
            kind, name, rest = match.groups()
            if kind == "TYPE":
                assert name not in types and rest in ("counter", "gauge", "histogram"), line
                types[name] = rest
            continue
        match = re.fullmatch(r'([a-z_:][a-z0-9_:]*)(\{[a-z_]+="[^"\\]*"(?:,[a-z_]+="[^"\\]*")*\})? (\S+)', line)
        assert match, f"malformed: {line}"
        family = re.sub(r"_(bucket|sum|count)$", "", match[1])
        if types.get(family) != "histogram":
            assert match[1] in types, f"without a type: {line}"
            # Names of others' are kept as their dashboards know them.
            assert ((types[match[1]] == "counter") == match[1].endswith("_total")
                    or match[1].startswith("cloudflare_")), line
        assert match[1] + (match[2] or "") not in values, f"twice: {line}"
        values[match[1] + (match[2] or "")] = float(match[3])
    return values


def scrape(server):
    response = get(server.address, "/metrics", [("Authorization", f"Bearer {server.key}")])
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert response.body.endswith(b"\n")
    return parse_metrics(response.body.decode())


@test
def metrics_are_prometheus_text_and_count():
    with Burrow() as server:
        before = scrape(server)
        for _ in range(5):
            get(server.address, "/nowhere")
        with connect(server.address) as connection:
            connection.send(b"nonsense\r\n\r\n")
            connection.read_to_end()
        after = scrape(server)
        grown = {name: after[name] - before[name] for name in after}
        equal(grown["burrow_http_requests_total"], 7, "requests")
        equal(grown['burrow_http_replies_total{class="4xx"}'], 6, "4xx")
        equal(grown["burrow_http_refused_total"], 1, "refused")
        equal(grown["burrow_http_connections_total"], 7, "connections")
        assert grown["burrow_uptime_seconds"] > 0 and "burrow_heap_bytes" in after
        equal(after['burrow_share_limit_of_one{share="event_streams"}'], 64, "a share")
        assert any(name.startswith("burrow_info{version=") for name in after), after


PREFIXES = ("/health", "/ready", "/metrics", "/burrow/v1/sandboxes", "/burrow/v1/users",
            "/burrow/v1/webhooks", "/v1/sandbox/", "/v1/pool/", "/v1/sandboxes/", "/sandbox",
            "/api/auth/", "/api/v2/")


@test
def the_openapi_document_has_every_dialect_and_every_route_answers():
    with Burrow("--no-auth") as server:
        document = json.loads(get(server.address, "/burrow/v1/openapi.json").body)
        assert document["openapi"].startswith("3.1") and document["info"]["version"], document
        operations = {(method, path): operation for path, item in document["paths"].items()
                      for method, operation in item.items()}
        for prefix in PREFIXES:
            assert any(path.startswith(prefix) for _, path in operations), f"nothing at {prefix}"
        for (method, path), operation in operations.items():
            assert operation["summary"] and operation["responses"], (path, operation)
            named = {parameter["name"] for parameter in operation["parameters"]
                     if parameter.get("in", "path") == "path"}
            equal(named, set(re.findall(r"\{(\w+)\}", path)), f"parameters of {path}")
            answer = request(server.address, method.upper(), re.sub(r"\{\w+\}", "x", path))
            assert answer.status not in (405, 500), f"{method} {path}: {answer}"
            if "{" not in path:
                assert answer.status != 404, f"{method} {path}: {answer}"


@test
def it_has_walls_also_without_sandboxes():
    with Burrow("--no-auth") as server:
        with open(f"/proc/{server.pid}/status", encoding="ascii") as file:
            kept = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    if "san" not in os.environ.get("BURROW_BUILD", ""):
        equal((kept["NoNewPrivs"], kept["Seccomp"]), ("1", "2"), "no new privileges, filter")


main()
