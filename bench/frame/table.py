"""The results as a table for a terminal."""

HEADINGS = ("row", "p50", "p99", "unit", "peer p50", "ratio", "spread", "goal", "holds", "peer")
NUMBERS = {"p50", "p99", "peer p50", "ratio"}


def number(value) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _spread(result: dict) -> str:
    if result["ratio_low"] is None:
        return "-"
    return f"{result['ratio_low']:.2f}-{result['ratio_high']:.2f}"


def _cells(result: dict) -> tuple:
    holds = {True: "yes", False: "NO", None: "-"}[result["holds"]]
    ratio = "-" if result["ratio"] is None else f"{result['ratio']:.2f}"
    return (result["name"], number(result["p50"]), number(result["p99"]), result["unit"],
            number(result["peer_p50"]), ratio, _spread(result), result["goal"] or "-", holds,
            result["peer"] or "-")


def render(results: list) -> str:
    measured = [result for result in results if "failure" not in result]
    rows = [HEADINGS] + [_cells(result) for result in measured]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    lines = []
    for row in rows:
        cells = [cell.rjust(width) if heading in NUMBERS else cell.ljust(width)
                 for cell, width, heading in zip(row, widths, HEADINGS)]
        lines.append("  ".join(cells).rstrip())
    lines.insert(1, "  ".join("-" * width for width in widths))
    lines += [f"{result['name']}: not measured: {result['failure']}"
              for result in results if "failure" in result]
    return "\n".join(lines)
