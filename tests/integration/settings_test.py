#!/usr/bin/python3
"""Settings of `burrow serve`: where they come from, which one wins, and what is said when wrong."""

import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from burrow import ROOT, Burrow, run_burrow  # noqa: E402
from tap import equal, main, test  # noqa: E402


class SettingsFile:
    def __init__(self, text):
        self.text = text

    def __enter__(self):
        # pylint: disable=consider-using-with
        self.file = tempfile.NamedTemporaryFile("w", prefix="burrow-test-", suffix=".ini")
        self.file.write(self.text)
        self.file.flush()
        return self.file.name

    def __exit__(self, *_):
        self.file.close()


def is_chatty(*flags, environment=None):
    """Whether the daemon logs lines of level info, which its setting log-level decides."""
    with Burrow(*flags, environment=environment) as server:
        server.stop()
        return '"ready"' in server.log()


def refused(*flags, environment=None):
    """What a start that must fail with status 2 says."""
    with tempfile.TemporaryDirectory(prefix="burrow-test-") as folder:
        status, output = run_burrow("serve", "--data", folder, "--listen", "127.0.0.1:0", *flags,
                                    environment=environment)
    equal(status, 2, f"status of {flags}: {output}")
    assert output.startswith("burrow: ") and output.count("\n") == 1, output
    return output


# --- which one wins ------------------------------------------------------------------------------


@test
def a_flag_wins_over_the_environment_over_the_file_over_the_default():
    with SettingsFile("log-level = error\n") as quiet, SettingsFile("log-level = info\n") as chatty:
        equal(is_chatty(), True, "default")
        equal(is_chatty("--config", quiet), False, "file over default")
        equal(is_chatty("--config", quiet, environment={"BURROW_LOG_LEVEL": "info"}), True,
              "environment over file")
        equal(is_chatty("--config", chatty, environment={"BURROW_LOG_LEVEL": "error"}), False,
              "environment over file")
        equal(is_chatty("--log-level=info", "--config", quiet,
                        environment={"BURROW_LOG_LEVEL": "error"}), True, "flag over all")
        equal(is_chatty("--log-level", "error", "--config", chatty,
                        environment={"BURROW_LOG_LEVEL": "info"}), False, "flag over all")


@test
def the_file_may_be_named_by_the_environment_and_have_a_section():
    with SettingsFile("; of this machine\n[burrow]\nlog_level = error\n") as quiet:
        equal(is_chatty(environment={"BURROW_CONFIG": quiet}), False, "file")


@test
def variables_of_others_are_left_alone():
    equal(is_chatty(environment={"BURROW_SOMETHING_ELSE": "1"}), True, "it starts")


# --- what is said when wrong ---------------------------------------------------------------------


@test
def a_wrong_flag_is_named():
    assert "--head-timeout: 'soon' is not" in refused("--head-timeout", "soon")
    assert "--connections-max: '0' is not a number from 1" in refused("--connections-max=0")
    assert "--no-auth: 'maybe' is not true or false" in refused("--no-auth=maybe")
    assert "--log-level: 'loud' is not one of debug|info" in refused("--log-level", "loud")


@test
def a_wrong_host_of_previews_is_named():
    for wrong, why in (("https://a.test/b", "neither a name nor a URL"), ("https://1.2.3.4", "neither a name"),
                       ("ftp://a.test", "must begin with http"), ("https://", "1 to 253 characters")):
        with tempfile.TemporaryDirectory(prefix="burrow-test-") as folder:
            status, told = run_burrow("serve", "--data", folder, "--listen", "127.0.0.1:0", "--preview-host", wrong)
        equal(status, 2, told)  # found when previews are opened, behind what was said until then
        assert f"burrow: preview-host '{wrong}'" in told.splitlines()[-1] and why in told, told


@test
def a_wrong_variable_is_named():
    assert "BURROW_HEAD_TIMEOUT: '-1' is not" in refused(environment={"BURROW_HEAD_TIMEOUT": "-1"})
    assert "BURROW_NO_AUTH: '2' is not" in refused(environment={"BURROW_NO_AUTH": "2"})


@test
def a_wrong_line_of_the_file_is_named_with_its_number():
    with SettingsFile("# fine\nlog-level = info\nbody-timeout = often\n") as path:
        assert f"{path} line 3: body-timeout: 'often' is not" in refused("--config", path)
    with SettingsFile("log-level info\n") as path:
        assert f"{path} line 1: " in refused("--config", path)
    with SettingsFile("[daemon]\nlog-level = info\n") as path:
        assert f"{path} line 2: unknown section [daemon]" in refused("--config", path)


@test
def a_file_that_cannot_be_read_is_named():
    message = refused("--config", "/nonexistent/burrow.ini")
    assert "/nonexistent/burrow.ini" in message and "No such file" in message, message


@test
def an_unknown_setting_is_answered_with_the_nearest_one():
    assert "unknown setting 'lisen'; did you mean 'listen'?" in refused("--lisen", "x")
    assert "unknown setting 'noauth'; did you mean 'no-auth'?" in refused("--noauth")
    with SettingsFile("\nlog-levle = info\n") as path:
        expected = f"{path} line 2: unknown setting 'log-levle'; did you mean 'log-level'?"
        assert expected in refused("--config", path)


@test
def an_unknown_setting_unlike_any_gets_no_guess():
    message = refused("--frobnicate")
    assert "unknown setting 'frobnicate'" in message and "did you mean" not in message, message


@test
def a_flag_without_its_value_and_a_stray_word_are_refused():
    assert "--head-timeout needs a value" in refused("--head-timeout")
    assert "--config needs a value" in refused("--config")
    assert "unexpected word 'now'" in refused("now")


@test
def combinations_that_make_no_sense_are_refused():
    assert "belong together" in refused("--tls-key", "/key.pem")
    assert "listen: 'here' is not" in refused("--listen", "here")
    assert "listen: no address" in refused("--listen", "")


# --- no-auth and who could reach it --------------------------------------------------------------


@test
def no_auth_refuses_listeners_that_others_can_reach():
    for address in ("0.0.0.0:0", "[::]:0", "192.0.2.1:8787", "10.0.0.1:8787", "[fe80::1]:8787",
                    "[::ffff:10.0.0.1]:8787", "127.0.0.1:0,0.0.0.0:0", "unix:/tmp/x,[::]:0"):
        message = refused("--no-auth", "--listen", address)
        assert "no-auth: refused with the listener" in message, message
    message = refused("--listen", "0.0.0.0:0", environment={"BURROW_NO_AUTH": "yes"})
    assert "no-auth: refused" in message, message


@test
def no_auth_takes_loopback_and_unix_listeners():
    for address in ("127.0.0.1:0", "127.5.5.5:0", "[::1]:0"):
        with Burrow("--no-auth", "--listen", address, listen=False) as server:
            assert "url  http://" in server.log()
    with Burrow("--no-auth", unix=True):
        pass


# --- documents -----------------------------------------------------------------------------------


@test
def docs_settings_md_is_what_burrow_settings_prints():
    status, output = run_burrow("settings")
    equal(status, 0, "status")
    with open(os.path.join(ROOT, "docs/settings.md"), encoding="utf-8") as page:
        equal(page.read(), output, "docs/settings.md (write it with `burrow settings`)")


@test
def help_names_every_setting():
    status, output = run_burrow("serve", "--help")
    equal(status, 0, "status")
    _, page = run_burrow("settings")
    flags = [line.split("`")[1] for line in page.splitlines() if line.startswith("| `--")]
    assert len(flags) > 10, page
    for flag in flags:
        assert f"  {flag} " in output, f"{flag} is not in the help"


@test
def an_unknown_verb_gets_status_2_and_the_one_that_was_meant():
    status, output = run_burrow("sevre")
    equal(status, 2, "status")
    assert "no verb 'sevre'; did you mean 'serve'?" in output, output


main()
