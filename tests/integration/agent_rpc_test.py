#!/usr/bin/python3
"""capnweb at /rpc of a real agent, frame by frame: calls, streams, callbacks, references.

# timeout: 600
"""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from agent import NO_SESSION, Agent  # noqa: E402
from capnweb_raw import UNDEFINED, RpcError, Upload, open_rpc  # noqa: E402
from http_raw import get  # noqa: E402
from program import wait_until  # noqa: E402
from tap import equal, main, test  # noqa: E402
from websocket_raw import BINARY, TEXT  # noqa: E402

MIB = 1 << 20


def fails(peer, *call):
    try:
        peer.call(*call)
    except RpcError as error:
        return error
    raise AssertionError(f"did not fail: {call}")


def events(stream):
    """[(type, object)] of server-sent events."""
    frames = b"".join(stream).decode().split("\n\n")
    equal(frames.pop(), "", "end of the last event")
    result = []
    for frame in frames:
        first, second = frame.split("\n")
        result.append((first.removeprefix("event: "), json.loads(second.removeprefix("data: "))))
    return result


# --- calls ---------------------------------------------------------------------------------------


@test
def calls_answer_their_results():
    with open_rpc(SHARED.address) as peer:
        equal(peer.call("utils", "ping"), "healthy", "ping")
        equal(peer.call("utils", "getCommands"), [], "commands")
        assert peer.call("utils", "getVersion"), "version"
        assert peer.is_idle()


@test
def frames_are_what_capnweb_expects():
    with open_rpc(SHARED.address) as peer:
        peer.send(["push", ["pipeline", 0, ["utils", "ping"], []]])
        peer.send(["pull", 1])
        equal(peer.receive(), ["resolve", 1, "healthy"], "answer")
        peer.send(["release", 1, 1])
        peer.send(["push", ["pipeline", 0, ["utils", "getCommands"], []]])
        peer.send(["pull", 2])
        equal(peer.receive(), ["resolve", 2, [[]]], "an array")


@test
def answers_wait_until_they_are_pulled():
    with open_rpc(SHARED.address) as peer:
        first, second = peer.push("utils", "ping"), peer.push("utils", "getCommands")
        equal(peer.pull(second), [], "the second")
        equal(peer.pull(first), "healthy", "the first")
        assert peer.is_idle()


@test
def a_thousand_calls_at_once_are_answered():
    with open_rpc(SHARED.address) as peer:
        numbers = [peer.push("utils", "ping") for _ in range(1000)]
        for number in numbers:
            equal(peer.pull(number), "healthy", "answer")
        assert peer.is_idle()


@test
def what_is_not_there_is_an_error_with_a_code():
    with open_rpc(SHARED.address) as peer:
        equal(fails(peer, "nothing", "here", [1], UNDEFINED).code, "UNKNOWN_ERROR", "method")
        for expression in (["pipeline", 0, ["utils"]], ["pipeline", 77, ["x"], []], 5,
                           ["remap", 0, [], [["import", 0]], []]):
            peer.send(["push", expression])
            number = peer.next_import()
            peer.pending[number] = None
            try:
                peer.pull(number)
                raise AssertionError(f"accepted {expression}")
            except RpcError as error:
                assert error.code, expression
        assert peer.is_idle()


@test
def functions_that_nobody_calls_are_released():
    with open_rpc(SHARED.address) as peer:
        equal(peer.call("utils", "ping", print, {"deep": [print]}), "healthy", "answer")
        assert peer.is_idle()


@test
def tunnels_are_the_control_planes():
    with open_rpc(SHARED.address) as peer:
        equal(peer.call("tunnels", "listTunnels"), [], "list")
        for call in (("runQuickTunnel", "t", 8080), ("runNamedTunnel", "t", "token", 8080),
                     ("ensureTunnelRun", {"tunnelId": "t", "runId": "r", "port": 8080})):
            error = fails(peer, "tunnels", *call)
            equal(error.code, "PORT_OPERATION_ERROR", "code")
            assert "control plane" in error.message, error.message
        equal(peer.call("tunnels", "destroyTunnel", "t"), None, "destroy")
        equal(peer.call("tunnels", "stopTunnelRun", {"tunnelId": "t", "runId": "r"}),
              {"stopped": False}, "stop")
        assert peer.is_idle()


# --- the services, as far as the transport matters -----------------------------------------------


@test
def a_command_runs():
    with open_rpc(SHARED.address) as peer:
        result = peer.call("commands", "execute", "echo $X; echo err >&2; exit 3", NO_SESSION,
                           {"timeoutMs": 20000, "env": {"X": "hi"}})
        equal((result["exitCode"], result["stdout"], result["stderr"]), (3, "hi\n", "err\n"),
              "result")
        assert peer.is_idle()


@test
def a_commands_output_is_a_stream_of_events():
    with open_rpc(SHARED.address) as peer:
        told = events(peer.call("commands", "executeStream", "echo hi", NO_SESSION))
        equal([kind for kind, _ in told], ["start", "stdout", "complete"], "events")
        equal([event["type"] for _, event in told], ["start", "stdout", "complete"], "types")
        equal(told[1][1]["data"], "hi\n", "data")
        assert peer.is_idle()


@test
def a_long_output_arrives_whole():
    with open_rpc(SHARED.address) as peer:
        told = events(peer.call("commands", "executeStream", "seq 1 300000", NO_SESSION))
        text = "".join(event["data"] for kind, event in told if kind == "stdout")
        equal(text, "".join(f"{i}\n" for i in range(1, 300001)), "output")
        assert peer.is_idle()


@test
def a_reader_that_does_not_read_holds_the_output_back():
    with open_rpc(SHARED.address) as peer:
        stream = peer.call("commands", "executeStream", "head -c 100000000 /dev/zero | tr '\\0' x",
                           NO_SESSION)
        peer.call("utils", "ping")
        peer.call("commands", "execute", "sleep 0.3", NO_SESSION)
        waiting = sum(len(data) for _, data in stream.pieces)
        assert 0 < waiting <= 512 * 1024, waiting
        total = sum(len(data) for data in stream)
        assert total > 100000000, total
        assert peer.is_idle()


@test
def a_cancelled_stream_leaves_nothing_behind():
    with open_rpc(SHARED.address) as peer:
        stream = peer.call("commands", "executeStream", "yes | head -c 30000000", NO_SESSION)
        next(iter(stream))
        stream.cancel()
        wait_until(peer.is_idle, "the stream is gone")


@test
def a_start_that_fails_is_an_event():
    with open_rpc(SHARED.address) as peer:
        told = events(peer.call("commands", "executeStream", "", NO_SESSION))
        equal([kind for kind, _ in told], ["error"], "events")
        assert told[0][1]["error"] and told[0][1]["timestamp"], told
        assert peer.is_idle()


@test
def a_closed_connection_ends_its_commands():
    with open_rpc(SHARED.address) as peer:
        stream = peer.call("commands", "executeStream", "echo on; exec yes", NO_SESSION)
        next(iter(stream))
    wait_until(lambda: SHARED.activity()["running"] == 0, "no command is running")


@test
def a_file_goes_in_and_out_as_streams():
    path = os.path.join(SHARED.folder, "streamed")
    pieces = [os.urandom(70000) for _ in range(60)]
    with open_rpc(SHARED.address) as peer:
        written = peer.call("files", "writeFileStream", path, Upload(pieces), NO_SESSION)
        equal(written["bytesWritten"], 60 * 70000, "bytes written")
        with open(path, "rb") as file:
            assert file.read() == b"".join(pieces), "the file is what was sent"
        result = peer.call("files", "readFile", path, NO_SESSION, {"encoding": "none"})
        equal(result["size"], 60 * 70000, "size")
        assert b"".join(result["content"]) == b"".join(pieces), "what came back"
        assert peer.is_idle()


@test
def an_upload_that_breaks_off_leaves_no_file():
    path = os.path.join(SHARED.folder, "broken")

    def pieces():
        yield b"x" * 100000
        raise ValueError("the source failed")

    with open_rpc(SHARED.address) as peer:
        error = fails(peer, "files", "writeFileStream", path, Upload(pieces()), NO_SESSION)
        assert error.code, error
        assert not os.path.exists(path)
        assert peer.is_idle()


@test
def an_upload_that_cannot_be_written_is_stopped():
    upload = Upload(b"x" * 65536 for _ in range(100))
    with open_rpc(SHARED.address) as peer:
        error = fails(peer, "files", "writeFileStream", "/proc/no/such", upload, NO_SESSION)
        assert error.code, error
        assert upload.refused or upload.over
        assert peer.is_idle()


@test
def file_errors_are_typed():
    with open_rpc(SHARED.address) as peer:
        error = fails(peer, "files", "readFile", "/no/such/file", NO_SESSION)
        equal((error.code, error.details["path"], error.properties["httpStatus"]),
              ("FILE_NOT_FOUND", "/no/such/file", 404), "error")


@test
def text_with_a_nul_is_refused_and_the_session_goes_on():
    with open_rpc(SHARED.address) as peer:
        equal(fails(peer, "commands", "execute", "a\0b", NO_SESSION).code, "VALIDATION_FAILED",
              "code")
        equal(peer.call("utils", "ping"), "healthy", "ping")


@test
def halves_of_characters_become_replacement_characters():
    path = os.path.join(SHARED.folder, "halves")
    with open_rpc(SHARED.address) as peer:
        frame = ('["push",["pipeline",0,["files","writeFile"],["%s","a\\ud83d-\\\\ud83d-\\ude00-'
                 '\\ud83d\\ude00","%s"]]]' % (path, NO_SESSION))
        peer.websocket.send(TEXT, frame.encode())
        number = peer.next_import()
        peer.pending[number] = None
        peer.pull(number)
        with open(path, encoding="utf-8") as file:
            equal(file.read(), "a\ufffd-\\ud83d-\ufffd-\U0001f600", "content")


# --- a peer that breaks the rules ----------------------------------------------------------------


def expect_abort(peer):
    message = peer.receive()
    equal(message[0], "abort", "message")
    equal(message[1][0], "error", "reason")
    equal(peer.websocket.receive_close(), 3000, "close code")


@test
def what_is_no_message_ends_the_session():
    for frame in (b"nonsense", b"{}", b"[]", b'["hello"]', b'["pull",5]', b'["release",0,1]',
                  b"[" * 1000 + b"]" * 1000):
        with open_rpc(SHARED.address) as peer:
            peer.websocket.send(TEXT, frame)
            expect_abort(peer)
    with open_rpc(SHARED.address) as peer:
        peer.websocket.send(BINARY, b'["pipe"]')
        expect_abort(peer)
    with open_rpc(SHARED.address) as peer:
        equal(peer.call("utils", "ping"), "healthy", "the agent goes on")


@test
def a_client_that_takes_no_answers_costs_little_memory():
    before = SHARED.memory_kb()
    with open_rpc(SHARED.address) as peer:
        try:
            for _ in range(20000):
                peer.send(["push", ["pipeline", 0, ["utils", "ping"], []]])
        except OSError:
            pass  # it was cut off, as it should be
        equal(SHARED.get("/api/ping").status, 200, "another client")
    wait_until(lambda: SHARED.memory_kb() < before + 20000, "the memory is given back")


@test
def a_request_that_is_no_websocket_is_told_so():
    assert get(SHARED.address, "/rpc").status in (400, 426)


@test
def the_token_guards_it():
    with Agent("--token", "secret", headers=[("Authorization", "Bearer secret")]) as agent:
        equal(get(agent.address, "/rpc").status, 401, "without")
        with open_rpc(agent.address, extra=["Authorization: Bearer secret"]) as peer:
            equal(peer.call("utils", "ping"), "healthy", "with")


if __name__ == "__main__":
    with Agent() as SHARED:
        main()
