"""The results as an SVG picture: one bar per row, its peer at 1, its goal as a mark.

Bars show how we compare so that right is always better: ours / peer for rates, peer / ours for
times and sizes. A row without a peer is shown against its goal, which then lies at 1.
"""

from textwrap import shorten
from xml.sax.saxutils import escape

from frame.row import MORE
from frame.table import number

WIDTH = 1040
LEFT, RIGHT = 190, 330  # room for the names and for the values
TOP, BOTTOM = 84, 66
ROW_HEIGHT, BAR_HEIGHT = 46, 20
SCALE_MINIMUM, SCALE_MAXIMUM = 1.25, 3.0
GRID_STEP = 0.25
FAILURE_WIDTH = 42

INK, FAINT, GRID = "#1f2933", "#616e7c", "#dde3ea"
HELD, MISSED, NO_GOAL = "#2f855a", "#c53030", "#4a78b5"
FONT = "font-family='DejaVu Sans, Helvetica, Arial, sans-serif'"


def _text(x, y, content, size=13, anchor="start", fill=INK, weight="normal") -> str:
    return (f"<text x='{x:.1f}' y='{y:.1f}' font-size='{size}' text-anchor='{anchor}' "
            f"fill='{fill}' font-weight='{weight}'>{escape(content)}</text>")


def _line(x1, y1, x2, y2, stroke, width=1, dash="") -> str:
    dashes = f" stroke-dasharray='{dash}'" if dash else ""
    return (f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}' stroke='{stroke}' "
            f"stroke-width='{width}'{dashes}/>")


def _right_is_better(value, reference, better: str):
    """value / reference or its inverse; None when either is missing or zero."""
    if not value or not reference:
        return None
    return value / reference if better == MORE else reference / value


def score(result: dict) -> tuple:
    """Where the bar ends and where the goal lies; None for what there is not."""
    better = result["better"]
    of, bound = None, None
    if result["goal"]:  # "ratio >= 0.6"
        of, _, bound = result["goal"].split()
        bound = float(bound)
    if result["peer"] is None:
        return _right_is_better(result[of], bound, better) if of else None, 1.0 if of else None
    bar = _right_is_better(result["ratio"], 1, better)
    if of is None:
        return bar, None
    return bar, _right_is_better(bound, 1 if of == "ratio" else result["peer_p50"], better)


def _values(result: dict) -> tuple:
    """Two short lines beside the bar."""
    if "failure" in result:
        return "not measured", shorten(result["failure"], FAILURE_WIDTH, placeholder=" …")
    first = f"{number(result['p50'])} {result['unit']}"
    peer = result["peer"].partition(",")[0].split()[0] if result["peer"] else None
    second = [f"{peer} {number(result['peer_p50'])}"] if result["peer_p50"] is not None else []
    if result["goal"]:
        second.append(f"goal {result['goal'].replace('>=', '≥').replace('<=', '≤')}"
                      f" {'holds' if result['holds'] else 'MISSED'}")
    return first, " · ".join(second)


class _Picture:
    def __init__(self, report: dict):
        self.report = report
        self.results = report["rows"]
        scores = [value for result in self.results for value in score(result) if value]
        self.scale = min(max([SCALE_MINIMUM] + [value * 1.05 for value in scores]), SCALE_MAXIMUM)
        self.floor = TOP + ROW_HEIGHT * len(self.results)
        self.height = self.floor + BOTTOM

    def x(self, value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * min(value, self.scale) / self.scale

    def heading(self) -> list:
        machine = self.report["machine"]
        commit = (machine["commit"] or "no commit")[:12]
        commit += " with changes" if machine["changed"] else ""
        note = "quick run · " if self.report["quick"] else ""
        note += "self check: the peer on both sides · " if self.report["self_check"] else ""
        where = f"{machine['cpu']}, {machine['cores']} cores, Linux {machine['kernel']}"
        return [
            _text(24, 34, "Burrow beside its peers", 20, weight="bold"),
            _text(24, 56, f"{note}{machine['date'][:10]} · {commit} · {where}", 12, fill=FAINT),
        ]

    def axis(self) -> list:
        parts = []
        for step in range(int(self.scale / GRID_STEP) + 1):
            x = self.x(step * GRID_STEP)
            parts.append(_line(x, TOP, x, self.floor, GRID))
            parts.append(_text(x, self.floor + 18, f"{step * GRID_STEP:g}", 11, "middle", FAINT))
        one = self.x(1)
        parts.append(_line(one, TOP - 4, one, self.floor, INK, 1.5, "5 4"))
        parts.append(_text(one, TOP - 9, "peer = 1", 11, "middle", INK))
        return parts

    def legend(self) -> list:
        y = self.floor + 46
        parts = []
        for x, colour, text in ((24, HELD, "goal holds"), (124, MISSED, "goal missed"),
                                (232, NO_GOAL, "no goal")):
            parts.append(f"<rect x='{x}' y='{y - 10}' width='12' height='12' fill='{colour}'/>")
            parts.append(_text(x + 18, y, text, 11, fill=FAINT))
        parts.append(_line(320, y - 12, 320, y + 4, INK, 3))
        parts.append(_text(330, y, "goal", 11, fill=FAINT))
        parts.append(_text(380, y, "thin line: lowest and highest round. Right is better: "
                           "ours/peer for rates, peer/ours for times and sizes.", 11, fill=FAINT))
        return parts

    def bar(self, index: int, result: dict) -> list:
        middle = TOP + ROW_HEIGHT * index + ROW_HEIGHT / 2
        value, goal = score(result)
        colour = {True: HELD, False: MISSED, None: NO_GOAL}[result["holds"]]
        first, second = _values(result)
        parts = [
            _text(LEFT - 12, middle + 5, result["name"], 13, "end"),
            _text(WIDTH - RIGHT + 84, middle - 3, first, 12),
            _text(WIDTH - RIGHT + 84, middle + 13, second, 11, fill=FAINT),
        ]
        if value:
            parts += self.measured(middle, value, result, colour)
        if goal:
            x = self.x(goal)
            parts.append(_line(x, middle - 16, x, middle + 16, INK, 3))
        return parts

    def measured(self, middle: float, value: float, result: dict, colour: str) -> list:
        parts = [f"<rect x='{LEFT}' y='{middle - BAR_HEIGHT / 2}' "
                 f"width='{max(self.x(value) - LEFT, 1):.1f}' height='{BAR_HEIGHT}' "
                 f"fill='{colour}'/>"]
        end = value
        if result["ratio_low"]:
            bounds = sorted(bound if result["better"] == MORE else 1 / bound
                            for bound in (result["ratio_low"], result["ratio_high"]))
            parts.append(_line(self.x(bounds[0]), middle, self.x(bounds[1]), middle, INK, 1.5))
            end = max(value, bounds[1])
        _, goal = score(result)
        after = max(self.x(end), self.x(goal or 0)) + 8
        beyond = "›" if value > self.scale else ""
        parts.append(_text(after, middle + 5, f"{value:.2f}{beyond}", 13, weight="bold"))
        return parts

    def render(self) -> str:
        parts = self.heading() + self.axis()
        for index, result in enumerate(self.results):
            parts += self.bar(index, result)
        parts += self.legend()
        return (f"<svg xmlns='http://www.w3.org/2000/svg' width='{WIDTH}' height='{self.height}' "
                f"viewBox='0 0 {WIDTH} {self.height}' {FONT}>\n"
                f"<rect width='100%' height='100%' fill='#ffffff'/>\n"
                + "\n".join(parts) + "\n</svg>\n")


def render(report: dict) -> str:
    return _Picture(report).render()
