#!/usr/bin/env python3
"""Draws the rows of bench/results/rows.csv, a picture for each call: bench/plot.py [CALL ...]

Left: microseconds per call over size, Rankine as the strong curve, the best rivals in grey. Right: Rankine's time over each rival's
(below 1 Rankine is faster). Unsteady rows (cores moved) are hollow. The column `picture` names the PNG files. Needs Debian's
python3-matplotlib.
"""
import csv
import pathlib
import re
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import PIL.Image

UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
# column of times, label, colour, width; column of ratios
CURVES = [("limit", "limit of the machine", "#cccccc", 1.0, None),
          ("best library", "best library", "#8a8a8a", 1.4, "rankine/library"),
          ("best expert", "best hand-written loop", "#b5b5b5", 1.4, "rankine/expert"),
          ("rankine (us)", "Rankine", "#0b63ce", 2.8, None)]


def number(cell):
    found = re.match(r"\s*([0-9.]+)", cell)
    return float(found[1]) if found else None


def size(value, _=None):
    unit = next((u for u in reversed(UNITS) if value >= UNITS[u]), "B")
    return f"{value / UNITS[unit]:g} {unit}"


def calls(file):
    """Returns {(call, picture): {protocol: rows}}, each row a dictionary of its cells."""
    found = {}
    with open(file, encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            amount, unit = row["size"].split()
            row |= {"bytes": float(amount) * UNITS[unit], "steady": row["steady"] == "yes"}
            found.setdefault((row["call"], row["picture"]), {}).setdefault(row["protocol"], []).append(row)
    return found


def draw(axis, rows, column, label, colour, width):
    points = [(row["bytes"], number(row[column])) for row in rows if number(row.get(column, ""))]
    if not points:
        return
    axis.plot(*zip(*points), color=colour, linewidth=width, zorder=width)
    moved = [(row["bytes"], number(row[column])) for row in rows if not row["steady"] and number(row.get(column, ""))]
    if moved:
        axis.plot(*zip(*moved), "o", markerfacecolor="white", markeredgecolor=colour, markersize=4, zorder=width)
    return points[-1], label, colour


def label(axis, ends):
    """Writes each curve's name beside its end, moved apart where ends meet."""
    least = 0
    for (x, y), text, colour in sorted((end for end in ends if end), key=lambda end: end[0][1]):
        place = axis.transData.transform((x, y))[1]
        place = max(place, least + 13)
        least = place
        axis.annotate(text, (x, axis.transData.inverted().transform((0, place))[1]), xytext=(6, 0), textcoords="offset points",
                      va="center", color=colour if text == "Rankine" else "#555555", fontsize=9, annotation_clip=False,
                      weight="bold" if text == "Rankine" else "normal")


def picture(title, protocols, file):
    found = [(protocol, rows) for protocol, rows in protocols.items() if len(rows) > 1]
    if not found:
        return False
    figure, axes = plt.subplots(len(found), 2, figsize=(11, 3.6 * len(found)), squeeze=False, width_ratios=(3, 2))
    ends = []
    for (times, ratios), (protocol, rows) in zip(axes, found):
        times_ends = [draw(times, rows, column, name, colour, width) for column, name, colour, width, _ in CURVES]
        times.set_yscale("log")
        times.yaxis.set_major_formatter("{x:g}")
        times.set(title=f"{title}: us per call, {protocol}")
        ratio_ends = [draw(ratios, rows, column, name, colour, 1.8) for _, name, colour, _, column in CURVES if column]
        ends += [(times, times_ends), (ratios, ratio_ends)]
        ratios.axhline(1, color="#0b63ce", linewidth=1, linestyle=":")
        ratios.set(ylim=(0, max(1.3, ratios.get_ylim()[1])), title="Rankine's time over others' (below 1: faster)")
        for axis in (times, ratios):
            axis.set_xscale("log", base=2)
            axis.xaxis.set_major_formatter(size)
            axis.tick_params(labelsize=8)
            axis.spines[["top", "right"]].set_visible(False)
            axis.title.set_fontsize(10)
    figure.tight_layout(w_pad=11, rect=(0, 0, 0.88, 1))
    for axis, curves in ends:
        label(axis, curves)
    figure.savefig(file, dpi=90, metadata={"Software": None})
    with PIL.Image.open(file) as picture:  # 64 colours take a third of the bytes
        picture.convert("RGB").quantize(64, dither=PIL.Image.Dither.NONE).save(file, optimize=True)
    plt.close(figure)
    return True


def main():
    results = pathlib.Path(__file__).with_name("results")
    for (call, name), protocols in calls(results / "rows.csv").items():
        if len(sys.argv) == 1 or call in sys.argv[1:]:
            print(call if picture(call, protocols, results / f"{name}.png") else f"{call}: no curve")


if __name__ == "__main__":
    main()
