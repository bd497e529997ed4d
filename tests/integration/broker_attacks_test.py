#!/usr/bin/python3
"""What hostile sandboxes, and hostile upstreams, try on the egress broker. Each row of an attack list is one
thing that must not work; the broker runs alone, with a policy that a real one would have."""

import contextlib
import json
import os
import ssl
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from broker_demo import BrokerDemo, certificates, drain, read_head  # noqa: E402
from broker_world import HOST, SECRET, Upstream, reasons, status_of, world  # noqa: E402
from scripted_model import KEY, ScriptedModel  # noqa: E402
from tap import equal, main, test  # noqa: E402

def post(target, headers, body=b""):
    return b"POST " + target + b" HTTP/1.1\r\n" + headers + b"\r\n" + body


SECOND = b"GET /api/second HTTP/1.1\r\nHost: x\r\n\r\n"
HOST_LINE = b"Host: x\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"

# --- 1: two parsers, two readings. One 400, a closed connection, and nothing goes out.

SMUGGLED = {
    "length_and_chunks": post(b"/api/x", HOST_LINE + b"Content-Length: 4\r\n" + CHUNKED, b"0\r\n\r\n" + SECOND),
    "two_lengths": post(b"/api/x", HOST_LINE + b"Content-Length: 1\r\nContent-Length: 2\r\n", b"a" + SECOND),
    "a_list_of_lengths": post(b"/api/x", HOST_LINE + b"Content-Length: 1, 1\r\n", b"a" + SECOND),
    "a_signed_length": post(b"/api/x", HOST_LINE + b"Content-Length: +1\r\n", b"a" + SECOND),
    "another_coding": post(b"/api/x", HOST_LINE + b"Transfer-Encoding: xchunked\r\n", b"0\r\n\r\n" + SECOND),
    "two_codings": post(b"/api/x", HOST_LINE + CHUNKED + CHUNKED, b"0\r\n\r\n" + SECOND),
    "a_folded_header": post(b"/api/x", HOST_LINE + b"X: a\r\n Transfer-Encoding: chunked\r\n", SECOND),
    "a_bare_line_feed": post(b"/api/x", HOST_LINE + b"X: a\nTransfer-Encoding: chunked\r\n", SECOND),
    "a_bare_carriage_return": post(b"/api/x", HOST_LINE + b"X: a\rTransfer-Encoding: chunked\r\n", SECOND),
    "a_space_before_a_colon": post(b"/api/x", HOST_LINE + b"Transfer-Encoding : chunked\r\n", SECOND),
    "two_hosts": post(b"/api/x", HOST_LINE + b"Host: y\r\n", SECOND),
    "no_host": post(b"/api/x", b"", SECOND),
    "a_nul_in_a_header": post(b"/api/x", HOST_LINE + b"X: a\0b\r\n", SECOND),
    "a_connect_with_a_body": b"CONNECT site.test:443 HTTP/1.1\r\nHost: site.test\r\nContent-Length: 5\r\n\r\nhello" + SECOND,
    "chunks_in_http_1_0": b"POST /api/x HTTP/1.0\r\nHost: x\r\n" + CHUNKED + b"\r\n0\r\n\r\n" + SECOND,
    "a_target_with_a_space": b"GET /api/x y HTTP/1.1\r\nHost: x\r\n\r\n" + SECOND,
}


@test
def what_two_parsers_read_differently_goes_nowhere():
    with world() as demo:
        for name, data in SMUGGLED.items():
            answer = demo.raw(data)
            equal(answer.count(b"Date: "), 1, f"answers to {name}: {answer}")
            assert status_of(answer) in (400, 505), (name, answer)
            assert b'"error"' in answer, (name, answer)
        equal(demo.upstream.heard, [], "what the upstream heard")
        equal(demo.asked(), [], "what was asked")
        assert "malformed_request" in reasons(demo), demo.log()


# --- 2: other hosts than were granted.

REDIRECTED = {
    "absolute_form_with_another_host": (b"GET http://site.test:%d/ HTTP/1.1\r\nHost: other.test\r\n\r\n", 400),
    "absolute_form_with_another_port": (b"GET http://site.test:%d/ HTTP/1.1\r\nHost: site.test:1\r\n\r\n", 400),
    "a_connect_with_another_host": (b"CONNECT site.test:%d HTTP/1.1\r\nHost: other.test\r\n\r\n", 400),
    "https_without_a_tunnel": (b"GET https://site.test:%d/ HTTP/1.1\r\nHost: site.test\r\n\r\n", 400),
    "a_target_with_a_user": (b"GET http://me@site.test:%d/ HTTP/1.1\r\nHost: site.test\r\n\r\n", 400),
    "a_file_url": (b"GET file:///etc/passwd?%d HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "a_gopher_url": (b"GET gopher://site.test:%d/ HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "a_decimal_address": (b"GET http://2130706433:%d/ HTTP/1.1\r\nHost: 2130706433\r\n\r\n", 400),
    "a_short_address": (b"GET http://127.1:%d/ HTTP/1.1\r\nHost: 127.1\r\n\r\n", 400),
    "a_hexadecimal_address": (b"GET http://0x7f.0.0.1:%d/ HTTP/1.1\r\nHost: 0x7f.0.0.1\r\n\r\n", 400),
    "an_escaped_host": (b"GET http://site%%2etest:%d/ HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "a_host_that_is_not_granted": (b"GET http://other.test:%d/ HTTP/1.1\r\nHost: other.test:%d\r\n\r\n", 403),
    "the_same_host_at_another_port": (b"GET http://site.test:1%d/ HTTP/1.1\r\nHost: site.test\r\n\r\n", 400),
    "a_name_below_the_granted_one": (b"GET http://a.site.test:%d/ HTTP/1.1\r\nHost: a.site.test:%d\r\n\r\n", 403),
    "a_connect_to_port_0": (b"CONNECT site.test:0 HTTP/1.1\r\nHost: site.test\r\nX: %d\r\n\r\n", 400),
    "a_connect_without_a_port": (b"CONNECT site.test HTTP/1.1\r\nHost: site.test\r\nX: %d\r\n\r\n", 400),
    "a_trace": (b"TRACE /api/x HTTP/1.1\r\nHost: x\r\nMax-Forwards: %d\r\n\r\n", 405),
    "no_route_at_all": (b"GET / HTTP/1.1\r\nHost: x\r\nX: %d\r\n\r\n", 404),
}


@test
def no_spelling_of_a_host_leads_elsewhere():
    with world() as demo:
        for name, (data, status) in REDIRECTED.items():
            data = data % ((demo.upstream.port,) * data.replace(b"%%", b"").count(b"%d"))
            with demo.connect() as sock:
                sock.sendall(data)
                answer = read_head(sock)
            assert status_of(answer) == status or (status == 400 and status_of(answer) in (400, 403)), (name, answer)
        equal(demo.upstream.heard, [], "what the upstream heard")


# --- 3: addresses inside.

INSIDE = {
    "loopback": "127.0.0.1", "loopback_elsewhere": "127.9.9.9", "metadata": "169.254.169.254", "private": "10.0.0.1",
    "another_private": "192.168.1.1", "shared": "100.64.0.1", "unspecified": "0.0.0.0", "ipv6_loopback": "::1",
    "mapped": "::ffff:127.0.0.1", "unique_local": "fd00:ec2::254", "nat64": "64:ff9b::7f00:1", "multicast": "224.0.0.1",
    "a_private_one_behind_a_private_one": "10.0.0.1 127.0.0.1",
}


@test
def a_granted_name_that_leads_inside_leads_nowhere():
    names = {f"{name.replace('_', '-')}.test": address for name, address in INSIDE.items()}
    policy = "\n".join(f"host {name}" for name in names)
    with Upstream() as upstream, BrokerDemo(policy, hosts=names) as demo:
        for name in names:
            status, _, got = demo.ask("GET", f"http://{name}:{upstream.port}/", headers={"Host": f"{name}:{upstream.port}"})
            equal((status, json.loads(got)["error"]["message"]), (403, "the host has no public address"), name)
            sock, head = demo.tunnel(f"{name}:{upstream.port}")
            assert sock is None and b"no public address" in head, (name, head)
        equal(upstream.connections, 0, "connections")


@test
def an_address_that_is_granted_as_a_number_is_checked_like_a_name():
    with Upstream() as upstream:
        with BrokerDemo("host 127.0.0.1\nhost ::1\nhost 169.254.169.254") as demo:
            for name in ("127.0.0.1", "[::1]", "169.254.169.254"):
                status, _, got = demo.ask("GET", f"http://{name}:{upstream.port}/", headers={"Host": f"{name}:{upstream.port}"})
                equal((status, b"no public address" in got), (403, True), name)
        equal(upstream.connections, 0, "connections")


@test
def an_allowed_range_does_not_mean_this_machine():
    with Upstream(address="0.0.0.0") as upstream:
        with BrokerDemo("host range.test", "--allow", "127.0.0.0/8", hosts={"range.test": "127.0.0.1"}) as demo:
            status, _, got = demo.ask("GET", f"http://range.test:{upstream.port}/", headers={"Host": f"range.test:{upstream.port}"})
            equal((status, b"no public address" in got), (403, True), "in a range")
            equal(upstream.connections, 0, "connections")
        with BrokerDemo("host range.test", "--allow", "127.0.0.1", hosts={"range.test": "127.0.0.1"}) as demo:
            status, _, _ = demo.ask("GET", f"http://range.test:{upstream.port}/", headers={"Host": f"range.test:{upstream.port}"})
            equal(status, 200, "named as itself")


@test
def a_name_that_changes_its_address_gains_nothing():
    with Upstream() as upstream:
        with BrokerDemo("host turning.test", "--allow", "127.0.0.1", hosts={"turning.test": "127.0.0.1"}) as demo:
            ask = ("GET", f"http://turning.test:{upstream.port}/", None, {"Host": f"turning.test:{upstream.port}"})
            equal(demo.ask(*ask)[0], 200, "before")
            demo.hosts({"turning.test": "127.0.0.2"})
            for _ in range(3):
                # What is kept leads to where it was checked; what is new is checked.
                assert demo.ask(*ask)[0] in (200, 403)
            sock, head = demo.tunnel(f"turning.test:{upstream.port}")
            assert sock is None and b"no public address" in head, head


# --- 4: paths.

PATHS = {
    "escaped_dots": "/api/v1/%2e%2e/files", "escaped_slash": "/api/v1/..%2ffiles", "double_escaped": "/api/v1/%252e%252e/files",
    "triple_escaped": "/api/v1/%25252e%25252e/files", "backslash": "/api/v1/..\\files", "escaped_backslash": "/api/v1/..%5cfiles",
    "parameters": "/api/v1/..;/files", "nul": "/api/v1/%00", "escaped_newline": "/api/v1/%0d%0aX-A:b", "a_bad_escape": "/api/%zz",
    "out_of_the_route": "/api/../other/x", "out_of_the_root": "/../../api/x/../../files",
}


@test
def a_path_is_what_was_asked_for_or_it_goes_nowhere():
    with world() as demo:
        for name, path in PATHS.items():
            before = len(demo.upstream.heard)
            answer = demo.raw(b"GET " + path.encode() + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            if status_of(answer) == 200:
                asked, heard = demo.asked()[-1], demo.upstream.heard[-1]
                equal(heard.split(b" ")[1].decode(), "/base" + asked["path"], f"sent for {name}")
                assert ".." not in asked["path"] and "%2" not in asked["path"].lower(), (name, asked)
            else:
                assert status_of(answer) in (400, 403, 404), (name, answer)
                equal(len(demo.upstream.heard), before, f"what the upstream heard of {name}")
        equal(demo.asked()[0]["path"], "/files", "the first is resolved before it is asked for")


# --- 5: the key stays outside.


@test
def no_answer_of_ours_has_the_key():
    with world() as demo:
        demo.upstream.__exit__()
        for target, headers in ((f"http://{HOST}:{demo.upstream.port}/", {"Host": f"{HOST}:{demo.upstream.port}"}),
                                ("/api/x", {}), ("/api/x?key=abc", {})):
            status, headers, got = demo.ask("GET", target, headers=headers)
            equal(status in (502, 504), True, "status")
            assert SECRET not in str(headers) and SECRET.encode() not in got and b"base" not in got, got


@test
def headers_cannot_take_the_key_s_place_or_carry_it_out():
    with world() as demo:
        demo.raw(b"GET /api/x HTTP/1.1\r\nHost: x\r\nConnection: close, authorization, x-a\r\nX-A: 1\r\n"
                 b"Authorization: Bearer mine\r\nAUTHORIZATION: Bearer two\r\nProxy-Authorization: x\r\n\r\n")
        heard = demo.upstream.heard[-1].lower()
        equal(heard.count(b"authorization:"), 1, "authorization")
        assert f"authorization: bearer {SECRET}".encode().lower() in heard, heard
        assert b"x-a:" not in heard and b"mine" not in heard and b"two" not in heard, heard
        equal(heard.count(b"host:"), 1, "host")


@test
def an_upstream_that_says_in_its_head_what_it_was_sent_is_not_heard():
    reply = (f"HTTP/1.1 302 Found\r\nLocation: http://{HOST}/?key=planted%2Fquery-key\r\nX-Raw: planted/query-key\r\n"
             f"X-Echo: Bearer {SECRET}\r\nX-Kept: yes\r\nContent-Length: 0\r\n\r\n")
    with world(reply.encode(), words="query=planted/query-key") as demo:
        status, headers, _ = demo.ask("GET", "/api/x")
        equal((status, headers["x-kept"], headers["x-echo"], headers["location"], headers["x-raw"]),
              (302, "yes", None, None, None), "reply")
        assert b"key=planted%2Fquery-key" in demo.upstream.heard[-1], demo.upstream.heard


@test
def a_key_with_a_line_break_is_not_sent():
    with Upstream() as upstream:
        with BrokerDemo(f"route api base=http://127.0.0.1:{upstream.port} header=x-api-key:a\x01b local") as demo:
            status, _, got = demo.ask("GET", "/api/x")
            equal((status, b"a\x01b" in got, b"characters" in got), (500, False, True), "answer")
        equal(upstream.heard, [], "heard")


# --- 6: hostile upstreams.

BAD_REPLIES = {
    "two_lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "length_and_chunks": b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a_header_split": b"HTTP/1.1 200 OK\r\nX: a\nSet-Cookie: b\r\nContent-Length: 0\r\n\r\n",
    "a_folded_header": b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n",
    "no_http": b"SSH-2.0-OpenSSH\r\n\r\n",
    "too_many_headers": b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1000 + b"\r\n",
    "a_head_without_end": b"HTTP/1.1 200 OK\r\nX: " + b"y" * 200000,
    "interim_without_end": b"HTTP/1.1 100 Continue\r\n\r\n" * 100,
    "a_switch_nobody_asked_for": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
}


@test
def a_hostile_upstream_is_an_error_and_no_more():
    for name, reply in BAD_REPLIES.items():
        with world(reply) as demo:
            status, _, got = demo.ask("GET", "/api/x")
            equal((status, "error" in json.loads(got)), (502, True), name)


@test
def what_an_upstream_sends_behind_its_reply_reaches_nobody():
    with world(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen") as demo:
        for _ in range(4):
            equal(demo.ask("GET", "/api/x")[2], b"ok", "body")


@test
def an_upstream_that_says_nothing_is_given_up():
    with world(lambda sock: drain(sock), flags=("--answer-ms", "200")) as demo:
        status, _, got = demo.ask("GET", "/api/x")
        equal((status, json.loads(got)["error"]["type"]), (504, "upstream_timeout"), "answer")


@test
def a_certificate_that_nobody_trusts_ends_it():
    with tempfile.TemporaryDirectory() as folder:
        _, both = certificates(folder, HOST)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(both)

        def serve(sock):
            with contextlib.suppress(OSError), context.wrap_socket(sock, server_side=True) as secure:
                heard.append(secure.recv(100))

        heard = []
        with Upstream(serve) as upstream:
            with BrokerDemo(f"route api base=https://{HOST}:{upstream.port} header=authorization:Bearer+{SECRET} local",
                            hosts={HOST: "127.0.0.1"}) as demo:
                status, _, got = demo.ask("GET", "/api/x")
                equal((status, b"certificate" in got), (502, True), "answer")
        equal(heard, [], "what it heard")


# --- 7: TLS.


def hello_for(name):
    """A ClientHello of Python's, as bytes."""
    context = ssl.create_default_context()
    context.check_hostname = name is not None
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = context.wrap_bio(incoming, outgoing, server_hostname=name) if name else None
    if session is None:
        context.check_hostname = False
        session = context.wrap_bio(incoming, outgoing)
    with contextlib.suppress(ssl.SSLWantReadError):
        session.do_handshake()
    return outgoing.read()


def with_extension(hello, kind):
    """The same hello with one extension more, empty."""
    extension = kind.to_bytes(2, "big") + b"\0\0"
    at = 5 + 4 + 2 + 32
    at += 1 + hello[at]
    at += 2 + int.from_bytes(hello[at:at + 2], "big")
    at += 1 + hello[at]
    length = int.from_bytes(hello[at:at + 2], "big") + len(extension)
    body = hello[9:at] + length.to_bytes(2, "big") + hello[at + 2:] + extension
    message = b"\x01" + len(body).to_bytes(3, "big") + body
    return b"\x16\x03\x01" + len(message).to_bytes(2, "big") + message


@test
def a_tunnel_is_for_the_name_that_was_asked_for():
    first = hello_for(HOST)
    attacks = {
        "another_name": (hello_for("other.test"), "sni_mismatch"), "no_name": (hello_for(None), "no_sni"),
        "encrypted": (with_extension(first, 0xfe0d), "encrypted_hello"), "no_tls": (b"GET / HTTP/1.1\r\n\r\n", "not_tls"),
        "ssh": (b"SSH-2.0-x\r\n", "not_tls"), "an_alert": (b"\x15\x03\x01\0\x02\x01\0", "not_tls"),
        "a_broken_hello": (first[:60] + b"\xff" * (len(first) - 60), "malformed_hello"),
        "an_empty_record": (b"\x16\x03\x01\0\0" + first, "malformed_hello"),
        "a_long_hello": (b"\x16\x03\x01\x3f\xff\x01\x00\xff\xff" + b"a" * 20000, "malformed_hello"),
    }
    with world(extra=f"host {HOST} verdict=tunnel local") as demo:
        demo.policy(f"host {HOST}:{demo.upstream.port} verdict=tunnel local")
        for name, (data, reason) in attacks.items():
            sock, _ = demo.tunnel(f"{HOST}:{demo.upstream.port}")
            with sock:
                with contextlib.suppress(OSError):
                    sock.sendall(data)
                drain(sock)
            equal(reasons(demo)[-1], reason, name)
        equal(demo.upstream.heard, [], "what the upstream heard")
        # In pieces it is the same hello.
        sock, _ = demo.tunnel(f"{HOST}:{demo.upstream.port}")
        with sock:
            for byte in first[:-1]:
                sock.sendall(bytes([byte]))
            equal(len(reasons(demo)), len(attacks), "violations")


@test
def at_the_door_of_tls_only_a_name_gets_in():
    with world() as demo:
        for data, reason in ((hello_for(None), "no_sni"), (with_extension(hello_for(HOST), 0xfe0d), "encrypted_hello"),
                             (b"GET / HTTP/1.1\r\n\r\n", "not_tls")):
            demo.raw(data, port=443)
            equal(reasons(demo)[-1], reason, "reason")
        answer = demo.raw(hello_for("other.test"), port=443)
        equal(answer, bytes([21, 3, 3, 0, 2, 2, 49]), "an alert says access denied")


@test
def inside_of_tls_there_is_one_host():
    with tempfile.TemporaryDirectory() as folder:
        ca, _ = certificates(folder, HOST)
        with BrokerDemo(f"host {HOST} verdict=intercept header=authorization:Bearer+{SECRET} local\nhost other.test verdict=intercept",
                        "--intercept", HOST, ca=ca, hosts={HOST: "127.0.0.1"}) as demo:
            for data in (b"GET / HTTP/1.1\r\nHost: other.test\r\n\r\n", b"GET http://other.test/ HTTP/1.1\r\nHost: other.test\r\n\r\n",
                         b"CONNECT other.test:443 HTTP/1.1\r\nHost: other.test\r\n\r\n",
                         f"GET / HTTP/1.1\r\nHost: {HOST}:444\r\n\r\n".encode()):
                with demo.secure(f"{HOST}:443") as sock:
                    sock.sendall(data)
                    assert status_of(read_head(sock)) in (400, 405), data
            equal([line["way"] for line in demo.asked()], [2] * 4, "no request was asked for")
            sock, head = demo.tunnel("other.test:443")
            assert sock is None and b"403" in head and b"not among the hosts" in head, head


@test
def a_real_client_takes_the_authority_for_its_hosts_and_no_other():
    with tempfile.TemporaryDirectory() as folder:
        with BrokerDemo(f"host {HOST} verdict=intercept local\nhost other.test verdict=intercept local",
                        "--intercept", HOST) as demo:
            with demo.secure(f"{HOST}:443") as sock:
                equal(sock.version() in ("TLSv1.2", "TLSv1.3"), True, "version")
                leaf = sock.getpeercert()
                equal(leaf["subjectAltName"], (("DNS", HOST),), "names of the leaf")
                lifetime = ssl.cert_time_to_seconds(leaf["notAfter"]) - time.time()
                assert 0 < lifetime <= 24 * 3600 + 5, lifetime
            with open(os.path.join(folder, "trusted.pem"), "w", encoding="ascii") as file:
                file.write(demo.authority())
            for context in (ssl.create_default_context(cafile=os.path.join(folder, "trusted.pem")),):
                try:
                    demo.secure(f"{HOST}:443", name=HOST, context=context).close()
                except ssl.SSLError as error:
                    raise AssertionError(error) from error
            # A client that speaks only HTTP/2 is told so by TLS itself.
            context = demo.context()
            context.set_alpn_protocols(["h2"])
            try:
                demo.secure(f"{HOST}:443", context=context).close()
                raise AssertionError("h2 was taken")
            except ssl.SSLError as error:
                assert "alert" in str(error).lower() or "protocol" in str(error).lower(), error
            context.set_alpn_protocols(["h2", "http/1.1"])
            with demo.secure(f"{HOST}:443", context=context) as sock:
                equal(sock.selected_alpn_protocol(), "http/1.1", "protocol")


# --- 8: what is taken out, and what is not passed on.


@test
def a_placeholder_is_told_and_never_sent():
    with world() as demo:
        for header in ("Authorization: Bearer burrow-other", "x-api-key: burrow-other", "x-goog-api-key: burrow-other",
                       "api-key: burrow-other", "Authorization: Basic eDpidXJyb3ctb3RoZXI="):
            demo.raw(f"GET /api/x HTTP/1.1\r\nHost: x\r\n{header}\r\nConnection: close\r\n\r\n".encode())
            equal(demo.asked()[-1]["placeholder"], "burrow-other", header)
        demo.ask("GET", "/api/x?a=b&key=burrow-other&%6bey=again")
        equal(demo.asked()[-1]["placeholder"], "burrow-other", "in the query")
        heard = b"".join(demo.upstream.heard)
        assert b"burrow-other" not in heard and b"eDpid" not in heard and b"again" not in heard, heard
        assert b"GET /base/x?a=b HTTP" in heard, heard


@test
def a_websocket_to_a_metered_api_is_answered_with_426():
    with ScriptedModel() as model:
        with BrokerDemo(f"route openai base={model.url}/v1 format=2 header=authorization:Bearer+{KEY} local") as demo:
            answer = demo.raw(b"GET /openai/responses HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade, close\r\n\r\n")
            equal(status_of(answer), 426, "status")
        equal(model.questions, [], "questions")


@test
def an_upgrade_to_something_else_is_plain_http():
    with world() as demo:
        answer = demo.raw(b"GET /api/x HTTP/1.1\r\nHost: x\r\nUpgrade: h2c\r\nConnection: Upgrade, close\r\n\r\n")
        equal(status_of(answer), 200, "status")
        assert b"h2c" not in demo.upstream.heard[-1] and b"pgrade" not in demo.upstream.heard[-1], demo.upstream.heard


@test
def an_expectation_is_answered_here_and_only_for_what_is_granted():
    with world() as demo:
        with demo.connect() as sock:
            sock.sendall(b"POST /nothing/x HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
            equal(status_of(read_head(sock)), 403, "refused before the body")
        with demo.connect() as sock:
            sock.sendall(b"POST /api/x HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
            equal(status_of(read_head(sock)), 100, "go on")
            sock.sendall(b"hello")
            equal(status_of(read_head(sock)), 200, "answer")
        assert b"xpect" not in demo.upstream.heard[-1], demo.upstream.heard


main()
