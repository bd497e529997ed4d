#!/usr/bin/python3
"""Lists come in pages: short ones are as they always were, long ones end a page, and all pages
together have everything once. What makes a list long is left out of it, which it says."""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from burrow import Burrow  # noqa: E402
from http_raw import request  # noqa: E402
from tap import equal, main, test  # noqa: E402

NATIVE = "/burrow/v1"
PAGE = 128 << 10  # and one entry more
SHARES = "templates=2000,template_bytes=64M"


class Town:
    """A daemon, and one user."""

    def __init__(self):
        self.server = Burrow("--share-limits", SHARES)

    def __enter__(self):
        self.server.__enter__()
        user = self.call("POST", f"{NATIVE}/users", {"name": "ann"}, self.server.key)
        self.key = self.call("POST", f"{NATIVE}/keys", {"name": "ann", "user": user["id"]}, self.server.key)["key"]
        return self

    def __exit__(self, *reason):
        self.server.__exit__(*reason)

    def ask(self, method, path, body=None, key=None):
        headers = [("Authorization", f"Bearer {key or self.key}")]
        if body is not None:
            headers.append(("Content-Type", "application/json"))
            body = json.dumps(body).encode()
        return request(self.server.address, method, path, headers, body or b"")

    def call(self, method, path, body=None, key=None):
        answer = self.ask(method, path, body, key)
        assert 200 <= answer.status < 300, (method, path, answer.status, answer.body)
        return json.loads(answer.body) if answer.body else None

    def pages(self, what, query="", cursor="cursor", following="nextCursor"):
        """Each page as a list, and the longest answer."""
        pages, behind, longest = [], "", 0
        while True:
            answer = self.ask("GET", f"{NATIVE}/{what}?{query}{behind}")
            equal(answer.status, 200, answer.body)
            longest = max(longest, len(answer.body))
            document = json.loads(answer.body)
            pages.append(document[what])
            if document[following] is None:
                return pages, longest
            behind = f"&{cursor}={document[following]}"


@test
def short_lists_are_as_they_always_were():
    with Town() as town:
        for name in ("c", "a", "b"):
            town.call("PUT", f"{NATIVE}/templates/{name}", {"env": {"OF": name}})
        document = town.call("GET", f"{NATIVE}/templates")
        found = document["templates"]
        equal({one["name"] for one in found}, {"a", "b", "c"}, "all")
        equal(found, sorted(found, key=lambda one: (one["createdAt"], one["name"])), "in the order they were made")
        equal([one["env"] for one in found], [{"OF": one["name"]} for one in found], "whole")
        assert "brief" not in document["templates"][0], document
        equal(document["nextCursor"], None, "there is no more")


@test
def long_lists_of_templates_come_in_pages():
    with Town() as town:
        names = [f"t{i:03}" for i in range(300)]
        for name in names:
            town.call("PUT", f"{NATIVE}/templates/{name}", {"env": {f"V{i}": "x" * 900 for i in range(20)},
                                                           "labels": {"note": "y" * 900}})
        pages, longest = town.pages("templates")
        assert len(pages) > 2, len(pages)
        assert longest < PAGE + 8192, longest
        equal(sorted(one["name"] for page in pages for one in page), names, "all, once")
        one = pages[0][0]
        equal((one["brief"], one["env"]["V1"], one["labels"]), (True, None, {"note": "y" * 900}), "brief")
        alone = town.call("GET", f"{NATIVE}/templates/t000")
        equal(alone["env"]["V1"], "x" * 900, "alone it is whole")
        assert "brief" not in alone, alone
        pages, _ = town.pages("templates", "limit=7")
        equal({len(page) for page in pages[:-1]}, {7}, "as many as asked for")


@test
def webhooks_and_keys_come_in_pages():
    with Town() as town:
        for i in range(20):
            town.call("POST", f"{NATIVE}/webhooks", {"url": f"https://example.org/{i}/{'p' * 1500}"})
        pages, _ = town.pages("webhooks", "limit=8", "after", "next")
        equal([len(page) for page in pages], [8, 8, 4], "pages")
        equal([one["url"].split("/")[3] for page in pages for one in page], [str(i) for i in range(20)], "all, once")
        for i in range(9):
            town.call("POST", f"{NATIVE}/keys", {"name": f"k{i}"})
        pages, _ = town.pages("keys", "limit=4", "after", "next")
        equal([len(page) for page in pages], [4, 4, 2], "pages")


@test
def a_cursor_that_no_page_gave_is_refused():
    with Town() as town:
        hook = town.call("POST", f"{NATIVE}/webhooks", {"url": "https://example.org/"})["id"]
        for path in ("templates?cursor=x", "templates?cursor=1.xyz", "templates?limit=0",
                     f"webhooks/{hook}/deliveries?cursor=x", "webhooks?after=x"):
            answer = town.ask("GET", f"{NATIVE}/{path}")
            equal(answer.status, 400, path)
            equal(json.loads(answer.body)["error"]["code"], "invalid_request", path)
        document = town.call("GET", f"{NATIVE}/webhooks/{hook}/deliveries")
        equal(document, {"deliveries": [], "nextCursor": None}, "nothing was sent")


main()
