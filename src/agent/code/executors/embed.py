#!/usr/bin/env python3
"""Make files into a C source: embed.py OUTPUT HEADER NAME=FILE[+FILE...] ...

Each NAME becomes a constant of type struct executor_source, declared in HEADER; files behind one
name are joined. TEXT:NAME becomes an array of characters that ends with a 0.
"""

import sys


def literal(data):
    lines = []
    for line in data.splitlines(keepends=True):
        escaped = "".join(chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?'
                          else f"\\{byte:03o}" for byte in line)
        lines.append(f'    "{escaped}"')
    return "\n".join(lines)


def main(output, header, *items):
    parts = [f'#include "{header}"\n']
    for item in items:
        name, _, files = item.partition("=")
        data = b""
        for path in files.split("+"):
            with open(path, "rb") as file:
                data += file.read()
        if name.startswith("TEXT:"):
            parts.append(f"const char {name[5:]}[] =\n{literal(data)};\n")
            continue
        parts.append(f"static const char {name}_bytes[] =\n{literal(data)};\n")
        parts.append(f"const struct executor_source {name} = "
                     f"{{{name}_bytes, sizeof({name}_bytes) - 1}};\n")
    with open(output, "w", encoding="ascii") as file:
        file.write("\n".join(parts))


main(*sys.argv[1:])
