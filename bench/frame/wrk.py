"""wrk as load: small requests on many connections."""

import re

from frame.failure import RowFailed
from frame.row import Work
from frame.servers import need_program

CONNECTIONS = 64
MICROSECONDS = {"us": 1, "ms": 1e3, "s": 1e6}


def _latency_us(report: str, percent: int) -> float:
    number, unit = re.search(rf"^\s+{percent}%\s+([\d.]+)(us|ms|s)$", report, re.M).groups()
    return float(number) * MICROSECONDS[unit]


def parse(report: str) -> Work:
    """Requests and latency out of wrk's report; RowFailed when a request went wrong."""
    trouble = re.search(r"^\s*(Socket errors|Non-2xx).*$", report, re.M)
    if trouble:
        raise RowFailed(f"wrk: {trouble.group(0).strip()}")
    requests = int(re.search(r"^\s+(\d+) requests in", report, re.M).group(1))
    return Work(requests, _latency_us(report, 50), _latency_us(report, 99))


def run(context, server, path: str, seconds: float, headers: tuple = ()) -> Work:
    # wrk takes whole seconds only; it counts what it did, so a short round is merely longer.
    whole = max(1, round(seconds))
    words = [need_program("wrk", "wrk"), "-t1", f"-c{CONNECTIONS}", f"-d{whole}s", "--latency"]
    for header in headers:
        words += ["--header", header]
    report = context.load([*words, f"http://{server.target}{path}"], whole)
    return parse(report)
