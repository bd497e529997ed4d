"""net-demo (tests/support/net_demo.c): the network layer with nothing behind it.

    with NetDemo("--idle-timeout", "200") as demo: ...
    with NetDemo(proxy_to=upstream.address) as proxy: ...      # which has no routes of its own
    demo.requests()                                 # its access log, parsed
"""

import json
import os
import re

from program import Program, wait_until


class NetDemo(Program):
    def __init__(self, *flags, proxy_to=None, unix=False, environment=None):
        super().__init__("net-demo", environment=environment)
        self.access_log = os.path.join(self.folder, "access")
        self.address = f"unix:{self.folder}/socket" if unix else None
        self.arguments = ["--listen", self.address or "127.0.0.1:0", "--log", self.access_log,
                          *flags]
        if proxy_to:
            self.arguments += ["--proxy-all", proxy_to]

    def is_ready(self):
        match = re.search(r"^listening (\d+)$", self.log(), re.MULTILINE)
        if match and not self.address:
            self.address = f"127.0.0.1:{match[1]}"
        return match

    def requests(self, count=None):
        """Lines of the access log; waits until there are `count` of them, if given."""
        if count is not None:
            wait_until(lambda: len(self.requests()) >= count, f"{count} lines of access log")
        with open(self.access_log, encoding="utf-8") as lines:
            parsed = [json.loads(line) for line in lines if line.endswith("\n")]
        return [line for line in parsed if line["message"] == "request"]
