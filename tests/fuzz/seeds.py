#!/usr/bin/env python3
"""Reads and extends seeds.json, the fuzz targets' inputs: {target: [bytes, each as the character of that number]}.

tests/fuzz/seeds.py unpack DIR    writes DIR/TARGET/NUMBER for every input
tests/fuzz/seeds.py add DIR       adds the files DIR/TARGET/NAME that seeds.json does not hold
"""
import json
import pathlib
import sys


def lines_of(inputs):
    line = ""
    for text in map(json.dumps, inputs):
        if line and len(line) + len(text) > 130:
            yield line + ","
            line = ""
        line += (", " if line else "") + text
    yield line


if len(sys.argv) != 3 or sys.argv[1] not in ("unpack", "add"):
    sys.exit(__doc__)
action, folder = sys.argv[1], pathlib.Path(sys.argv[2])
file = pathlib.Path(__file__).with_name("seeds.json")
seeds = json.loads(file.read_text())
if action == "unpack":
    for target, inputs in seeds.items():
        (folder / target).mkdir(parents=True, exist_ok=True)
        for number, text in enumerate(inputs):
            (folder / target / str(number)).write_bytes(text.encode("latin-1"))
else:
    for path in sorted(folder.glob("*/*")):
        text = path.read_bytes().decode("latin-1")
        if text not in seeds[path.parent.name]:
            seeds[path.parent.name].append(text)
    targets = (f'  "{t}": [\n    ' + "\n    ".join(lines_of(inputs)) + "\n  ]" for t, inputs in seeds.items())
    file.write_text("{\n" + ",\n".join(targets) + "\n}\n")
