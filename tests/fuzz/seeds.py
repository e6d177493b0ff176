#!/usr/bin/env python3
"""Reads and extends seeds.json, the fuzz targets' inputs: {target: {name: bytes, each as the character of that number}}.

tests/fuzz/seeds.py unpack DIR    writes DIR/TARGET/NAME for every input
tests/fuzz/seeds.py add DIR       adds the files DIR/TARGET/NAME that seeds.json does not hold
"""
import json
import pathlib
import sys

if len(sys.argv) != 3 or sys.argv[1] not in ("unpack", "add"):
    sys.exit(__doc__)
action, folder = sys.argv[1], pathlib.Path(sys.argv[2])
file = pathlib.Path(__file__).with_name("seeds.json")
seeds = json.loads(file.read_text())
if action == "unpack":
    for target, inputs in seeds.items():
        (folder / target).mkdir(parents=True, exist_ok=True)
        for name, text in inputs.items():
            (folder / target / name).write_bytes(text.encode("latin-1"))
else:
    for path in sorted(folder.glob("*/*")):
        seeds[path.parent.name].setdefault(path.name, path.read_bytes().decode("latin-1"))
    file.write_text(json.dumps(seeds, indent=2) + "\n")
