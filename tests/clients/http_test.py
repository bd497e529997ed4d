#!/usr/bin/python3
# timeout: 700
"""Cloudflare's own client over http, as published, against the agent in a chroot."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../lib"))
from client_cases import main  # pylint: disable=wrong-import-position

main("http")
