#!/usr/bin/env python3
"""Writes bench/RESULTS.md, and beside the results rows.csv and a picture for each call, from one JSON file.

    report.py --results bench/results/results.json --markdown bench/RESULTS.md --pictures

The file has a document of rivals or mailbox under the name of each run: {"all_reduce_n2": {...}, ...}; protocol.h describes the
documents. Pictures (--pictures) need Debian's python3-matplotlib: left, us per call over size, Rankine as the strong curve; right,
Rankine's time over others'; unsteady rows are hollow.

Exit status: 0, 2 usage or an invalid document, 3 a file that cannot be written.
"""
import argparse
import json
import math
import os
import pathlib
import sys

PROTOCOLS = ["warm", "fresh"]
COLLECTIVES = ["all_reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all", "reduce"]
PERCENTILES = ["p50", "p90", "p99", "p999", "max"]
# The columns of ratios. Processes have the last two, on memory that all ranks reach.
RATIOS = ["rankine/expert", "rankine/library", "rankine/limit", "rankine/exchange", "rankine/chain", "shared/library", "shared/limit"]


def size_text(size):
    """Returns the text of engine/base/units.h's format_bytes()."""
    units = ["B", "KiB", "MiB", "GiB", "TiB"]
    while size >= 1024 and len(units) > 1:
        size /= 1024
        units.pop(0)
    return f"{size:.{0 if units[0] == 'B' or size >= 100 or size == int(size) else 1}f} {units[0]}"


def us_text(us):
    return f"{us:.{3 if us < 10 else 1 if us < 100 else 0}f}"


def spread_text(spread):
    return f"±{100 * spread:.0f}%" if spread < 10 else "±>999%"


class Source:
    """A document with the name of its run; its picture is <name>.png."""

    def __init__(self, name, document):
        self.name, self.document = name, document
        self.is_mailbox = "channels" in document
        if self.is_mailbox:
            self.place = (2, False, "", 0, False)
            return
        self.context, self.rows = document["context"], document["rows"]
        self.processes = self.context.get("processes", False)
        self.crowded = self.context.get("crowded", False)
        self.call = (self.context["collective"], self.context["ranks"], self.context.get("in_place", False), self.processes)
        collective, ranks, in_place, _ = self.call
        # All-reduce first, by ranks, threads before processes; then the other collectives; then the mailbox.
        self.place = (0 if collective == "all_reduce" else 1, self.processes, collective, ranks, in_place)
        self.subject = (f"{collective}{' in place' if in_place else ''}, {ranks} {'processes' if self.processes else 'ranks'}"
                        + (f" on {len(self.context['cpus'])} cores" if self.crowded else ""))


class Ratios:
    """Ratios of one kind over the sizes of one protocol; unsteady rows do not count."""

    def __init__(self, rows=(), protocol="", ratio_of=None, least=0):
        self.values, self.sizes, self.unsteady = [], [], 0
        for row in rows:
            if row["protocol"] != protocol or row["size"] < least or "ratios" not in row:
                continue
            ratio = ratio_of(row["ratios"])
            if ratio is None:
                continue
            if not row["steady"]:
                self.unsteady += 1
                continue
            self.values.append(ratio)
            self.sizes.append(row["size"])

    def mean(self):
        return math.exp(sum(map(math.log, self.values)) / len(self.values)) if self.values else None


class Asked:
    """The ratios of a target; source None: not measured."""

    def __init__(self, source, protocol, title, least=0):
        self.source, self.protocol, self.title, self.least = source, protocol, title, least

    def ratios(self):
        return Ratios(self.source.rows if self.source else (), self.protocol, lambda ratios: ratios.get(self.title), self.least)

    def limit_ratios(self):
        """Returns the ratios if Rankine took the limit's time in each row: rankine/x over rankine/limit, shared/x over shared/limit.

        None if ranks share cores: then the limit does not include the cost of switching.
        """
        over_limit = self.title.split("/")[0] + "/limit"
        rows = self.source.rows if self.source and not self.source.crowded else ()
        return Ratios(rows, self.protocol, lambda ratios: ratios[self.title] / ratios[over_limit]
                      if self.title in ratios and over_limit in ratios else None, self.least)


class Verdict:
    """A target: `reached` must be at most `allowed`; None: not measured. at_limit: the mean at the limit's time."""

    def __init__(self, what, allowed, reached=None, remark="", at_limit=None):
        self.what, self.allowed, self.reached, self.remark, self.at_limit = what, allowed, reached, remark, at_limit

    def cell(self):
        text = f"{'not measured' if self.reached is None else f'{self.reached:.2f}'} ({self.allowed:.3g})"
        met = self.reached is not None and self.reached <= self.allowed
        if self.reached is not None:
            text += " met" if met else " **not met**"
        if self.at_limit is not None:
            beyond = self.reached is not None and not met and self.at_limit > self.allowed
            text += (", nor at the limit " if beyond else "; limit ") + f"{self.at_limit:.2f}"
        return "; ".join(filter(None, [text, self.remark]))


def worst(what, asked, allowed):
    ratios = asked.ratios()
    left_out = f"{ratios.unsteady} unsteady {'row' if ratios.unsteady == 1 else 'rows'} left out" if ratios.unsteady else ""
    if not ratios.values:
        return Verdict(what, allowed, remark=left_out)
    reached = max(ratios.values)
    where = "at " + size_text(ratios.sizes[ratios.values.index(reached)])
    within = sum(value <= allowed for value in ratios.values)
    if within < len(ratios.values):
        where += f"; {within} of {len(ratios.values)} sizes within"
    return Verdict(what, allowed, reached, "; ".join(filter(None, [where, left_out])))


def mean(asked, allowed):
    return Verdict("", allowed, asked.ratios().mean(), at_limit=asked.limit_ratios().mean())


def verdict_rows(sources):
    """Returns rows (call, other side, verdict on the worst size, verdict on the mean or None)."""
    def find(collective, ranks, in_place=False, processes=False):
        return next((s for s in sources if not s.is_mailbox and s.call == (collective, ranks, in_place, processes)), None)

    rows = []

    def add(call, over, asked, allowed, allowed_mean=None):
        rows.append((call, over, worst(over, asked, allowed), None if allowed_mean is None else mean(asked, allowed_mean)))

    for in_place in (False, True):
        source, call = find("all_reduce", 2, in_place), f"all-reduce, N = 2, fresh, {'in place' if in_place else 'out of place'}"
        add(call, "best expert", Asked(source, "fresh", "rankine/expert"), 1.05, 0.85)
        if in_place:
            add(call, "best library", Asked(source, "fresh", "rankine/library"), 1.05, 0.5)
        add(call, "limit from 32 KiB", Asked(source, "fresh", "rankine/limit", 32 << 10), 1.5)
        add(call, "limit from 1 KiB", Asked(source, "fresh", "rankine/limit", 1 << 10), 3)
    for processes, kind, allowed_mean in ((False, "", 0.5), (True, " processes, private buffers", 0.6)):
        for collective in COLLECTIVES:
            for protocol in PROTOCOLS:
                asked = Asked(find(collective, 2, processes=processes), protocol, "rankine/library")
                add(f"{collective}, N = 2{kind}, {protocol}", "best library", asked, 1.05, allowed_mean)
    for ranks in (4, 8, 16):
        source, call = find("all_reduce", ranks), f"all-reduce, N = {ranks} sharing cores, fresh"
        if source and not source.crowded:
            source = None
        add(call, "better MPI", Asked(source, "fresh", "rankine/mpi"), 1, 1 / 3)
        add(call, "best expert", Asked(source, "fresh", "rankine/expert"), 1)
    shared = Asked(find("all_reduce", 2, processes=True), "fresh", "shared/library")
    add("all-reduce, N = 2 processes, fresh, shared", "best library", shared, 1, 0.4)
    for protocol in PROTOCOLS:
        asked = Asked(find("all_reduce", 64), protocol, "rankine/chain")
        add(f"all-reduce of 8 B, N = 64 sharing cores, {protocol}", "futex-only chain", asked, 3)
    latency, throughput = Verdict("", 1.2), Verdict("", 1)
    for source in sources:
        if not source.is_mailbox:
            continue
        ours = [c for c in source.document["channels"] if c["name"] == "mailbox"]
        others = [c["million_messages_per_s"] for c in source.document["channels"] if c["name"] != "mailbox"]
        if ours:
            latency.reached = ours[-1]["latency_ratio"]
            throughput.reached = max(others, default=0) / ours[-1]["million_messages_per_s"]
        if not source.document["steady"]:
            latency.remark = throughput.remark = "the machine moved"
    rows.append(("mailbox", "one-way latency over the bare line's", latency, None))
    rows.append(("mailbox", "the better queue's throughput over its own", throughput, None))
    return rows


def verdict_table(sources):
    """Returns the table of verdicts; a repeated call is not shown again."""
    text, before = "| | Rankine over | worst size | geometric mean |\n|---|---|---|---|\n", ""
    for call, over, at_worst, on_mean in verdict_rows(sources):
        text += f"| {'' if call == before else call} | {over} | {at_worst.cell()} | {on_mean.cell() if on_mean else ''} |\n"
        before = call
    return text


def figure(row, name):
    cell = row.get("contenders", {}).get(name)
    if cell is None:
        return "-"
    return "WRONG" if cell["wrong"] > 0 else f"{us_text(cell['median_us'])} {spread_text(cell['spread'])}"


def against(row, title):
    name = row.get("against", {}).get(title)
    return "-" if name is None else f"{figure(row, name)} {name}"


def calls_text(row, name):
    """Returns the percentiles of a contender's single calls, "0.61 0.70 0.9 3.1 12": p50 p90 p99 p99.9 max."""
    calls = row.get("contenders", {}).get(name, {}).get("calls_us", {})
    return " ".join(us_text(calls[part]) for part in PERCENTILES if part in calls) or "-"


def rows_csv(sources):
    """Returns every row of the rivals' documents as CSV."""
    text = ",".join(["call,picture,protocol,size,steady,ping-pong before (ns),ping-pong after (ns),rankine (us),rankine_shared (us)",
                     "best expert,best library,limit"] + RATIOS +
                    ["rankine's calls: p50 p90 p99 p99.9 max (us)", "best library's calls"]) + "\n"
    for source in sources:
        for row in [] if source.is_mailbox else source.rows:
            probes, ratios = row["ping_pong_ns"], row.get("ratios", {})
            ours = "rankine_processes" if source.processes else "rankine"
            text += ",".join([f'"{source.subject}"', source.name, row["protocol"], size_text(row["size"]),
                              "yes" if row["steady"] else "no", f"{probes[0]:.0f}", f"{probes[-1]:.0f}",
                              figure(row, ours), figure(row, "rankine_shared"),
                              against(row, "rankine/expert"), against(row, "rankine/library"),
                              us_text(row["limit"]["us"]) if "limit" in row else "-"]
                             + [f"{ratios[title]:.2f}" if title in ratios else "-" for title in RATIOS]
                             + [calls_text(row, ours), calls_text(row, row.get("against", {}).get("rankine/library"))]) + "\n"
    return text


def summary(sources, pictures):
    text = (f"## Rows\n\n[rows.csv]({pictures}/rows.csv) has every row. Geometric means of the ratios over all sizes:\n\n"
            "| call | warm: rankine/expert | /library | /limit | fresh: rankine/expert | /library | /limit |\n"
            "|---|--:|--:|--:|--:|--:|--:|\n")
    drawn = ""
    for source in sources:
        if source.is_mailbox:
            continue
        means = [Asked(source, protocol, title).ratios().mean() for protocol in PROTOCOLS for title in RATIOS[:3]]
        text += f"| {source.subject} | {' | '.join('-' if one is None else f'{one:.2f}' for one in means)} |\n"
        if any(sum(row["protocol"] == protocol for row in source.rows) > 1 for protocol in PROTOCOLS):
            drawn += f"![{source.subject}]({pictures}/{source.name}.png)\n\n"
    return text + "\n" + tails(sources) + drawn


def tails(sources):
    """Returns a table of the percentiles of single calls, at three sizes of each fresh all-reduce of two ranks."""
    text = ""
    for source in sources:
        if source.is_mailbox or source.call[:3] != ("all_reduce", 2, False):
            continue
        rows = [row for row in source.rows if row["protocol"] == "fresh" and row["size"] in (8, 4096, 65536, 1 << 20)]
        for row in rows:
            library = row.get("against", {}).get("rankine/library")
            for name in ("rankine_processes" if source.processes else "rankine", library):
                told = calls_text(row, name)
                if told != "-":
                    text += f"| {source.subject} | {size_text(row['size'])} | {name} | {' | '.join(told.split())} |\n"
    if not text:
        return ""
    return ("Single calls of fresh rows in us, by the slowest rank: medians over the rounds, and the greatest of all.\n\n"
            "| call | size | | p50 | p90 | p99 | p99.9 | max |\n|---|--:|---|--:|--:|--:|--:|--:|\n" + text + "\n")


def mailbox_section(document):
    bare = document["bare_line_ns"]
    text = ("## Mailbox\n\n8 B messages between two pinned threads, all in turns. A bare cache line takes "
            f"{bare[0]:.1f} ns one way before and {bare[-1]:.1f} ns after"
            f"{'' if document['steady'] else '; the machine moved meanwhile (~)'}.\n\n"
            "| | latency (ns) | over the bare line | million messages/s |\n|---|--:|--:|--:|\n")
    for one in document["channels"]:
        text += (f"| {one['name']} | {one['latency_ns']:.1f} ±{100 * one['latency_spread']:.0f}% | {one['latency_ratio']:.2f} | "
                 f"{one['million_messages_per_s']:.1f} ±{100 * one['throughput_spread']:.0f}% |\n")
    return text + "\n"


def levels_table(levels):
    text = ("| all cores at once, GB/s of one core | working set | copy | add | read | read of data that another core has just written |\n"
            "|---|--:|--:|--:|--:|--:|\n")
    for level in levels:
        rates = " | ".join(f"{level[way + '_gbs']:.0f}" for way in ("copy", "add", "read", "cross_read"))
        text += f"| {level['level']} | {size_text(level['bytes_per_core'])} | {rates} |\n"
    return text + "\n"


def machine_text(sources):
    machines, times, methods, contenders, levels = set(), set(), set(), {}, ""
    for source in sources:
        where = source.document if source.is_mailbox else source.context
        machine = where["machine"]
        times.add(machine["time"])
        machines.add(f"{machine['cpu']}; {machine['summary']}; L1d {size_text(machine['l1d_bytes'])}, L2 {size_text(machine['l2_bytes'])}, "
                     f"L3 {size_text(machine['l3_bytes'])}; {machine['kernel']}")
        if source.is_mailbox:
            continue
        if not levels and "levels" in where:
            levels = levels_table(where["levels"])
        methods.add(f"{where['rounds']} rounds of {where['batch_us'] / 1000:.3g} ms, {where['kernels']} loops")
        for name, about in where["contenders"].items():
            if about["missing"]:
                contenders[name] = "missing: " + about["missing"]
            elif about["version"]:
                # Flags differ where ranks share cores; the first run of all with a core each stands here.
                contenders.setdefault(name, "; ".join(filter(None, [about["version"], about.get("settings")])))
    text = f"Measured {min(times)} to {max(times)} on\n\n" + "".join(f"- {machine}\n" for machine in sorted(machines))
    text += "\nMethod: [rivals/README.md](rivals/README.md)." + "".join(f" {method}." for method in sorted(methods)) + "\n\n"
    text += "".join(f"- {name}: {about}\n" for name, about in sorted(contenders.items()))
    return text + ("\n" if contenders else "") + levels


def results_markdown(sources, pictures):
    """Returns the text of bench/RESULTS.md. pictures: the folder of the pictures, rows.csv and notes.md in the text's links."""
    text = "# Results\n\nWritten by `bench/rivals/measure_all`; do not edit.\n\n" + machine_text(sources)
    text += ("Times are medians in us ± half the interquartile range. Ratios are Rankine's time over another's, medians over the rounds "
             "of the ratio within a round; below 1 Rankine is faster. Rows during which the cores moved (steady: no) count in no mean and "
             "no verdict.\n\n## Verdicts\n\nEach figure has its allowed maximum in brackets. *Limit*: the mean over equal rows if Rankine "
             "took the limit's time in each; above the allowed maximum the machine is the cause. "
             f"[Notes]({pictures}/notes.md) give causes, as measured.\n\n")
    text += verdict_table(sources) + "\n" + summary(sources, pictures)
    text += "".join(mailbox_section(source.document) for source in sources if source.is_mailbox)
    return text.rstrip("\n") + "\n"


def replace(path, text):
    """Writes the file whole or not at all."""
    beside = path.with_name(path.name + ".new")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)


# name in ratios and `against`, label, colour, width
CURVES = [("rankine/limit", "limit of the machine", "#cccccc", 1.0), ("rankine/library", "best library", "#8a8a8a", 1.4),
          ("rankine/expert", "best hand-written loop", "#b5b5b5", 1.4), (None, "Rankine", "#0b63ce", 2.8)]


def us_of(row, title, ours):
    if title == "rankine/limit":
        return row.get("limit", {}).get("us")
    return row.get("contenders", {}).get(row.get("against", {}).get(title) if title else ours, {}).get("median_us")


def draw_curve(axis, rows, value, label, colour, width):
    """Returns the end of the curve with its label, or None."""
    points = [(row["size"], value(row), row["steady"]) for row in rows if value(row)]
    if not points:
        return None
    axis.plot(*zip(*(point[:2] for point in points)), color=colour, linewidth=width, zorder=width)
    moved = [point[:2] for point in points if not point[2]]
    if moved:
        axis.plot(*zip(*moved), "o", markerfacecolor="white", markeredgecolor=colour, markersize=4, zorder=width)
    return points[-1][:2], label, colour


def label_ends(axis, ends):
    """Writes each curve's name beside its end, moved apart where ends meet."""
    least = 0
    for (x, y), text, colour in sorted((end for end in ends if end), key=lambda end: end[0][1]):
        least = max(axis.transData.transform((x, y))[1], least + 13)
        axis.annotate(text, (x, axis.transData.inverted().transform((0, least))[1]), xytext=(6, 0), textcoords="offset points",
                      va="center", color=colour if text == "Rankine" else "#555555", fontsize=9, annotation_clip=False,
                      weight="bold" if text == "Rankine" else "normal")


def draw(source, file):
    """Draws a picture of a document with more than one size."""
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    import PIL.Image
    ours = "rankine_processes" if source.processes else "rankine"
    found = [(protocol, [row for row in source.rows if row["protocol"] == protocol]) for protocol in PROTOCOLS]
    found = [(protocol, rows) for protocol, rows in found if len(rows) > 1]
    if not found:
        return
    figure, axes = plt.subplots(len(found), 2, figsize=(11, 3.6 * len(found)), squeeze=False, width_ratios=(3, 2))
    ends = []
    for (times, ratios), (protocol, rows) in zip(axes, found):
        ends.append((times, [draw_curve(times, rows, lambda row: us_of(row, title, ours), name, colour, width)
                             for title, name, colour, width in CURVES]))
        ends.append((ratios, [draw_curve(ratios, rows, lambda row: row.get("ratios", {}).get(title), name, colour, 1.8)
                              for title, name, colour, _ in CURVES if title and title != "rankine/limit"]))
        times.set(yscale="log", title=f"{source.subject}: us per call, {protocol}")
        times.yaxis.set_major_formatter("{x:g}")
        ratios.axhline(1, color="#0b63ce", linewidth=1, linestyle=":")
        ratios.set(ylim=(0, max(1.3, ratios.get_ylim()[1])), title="Rankine's time over others' (below 1: faster)")
        for axis in (times, ratios):
            axis.set_xscale("log", base=2)
            axis.xaxis.set_major_formatter(lambda size, _: size_text(size))
            axis.tick_params(labelsize=8)
            axis.spines[["top", "right"]].set_visible(False)
            axis.title.set_fontsize(10)
    figure.tight_layout(w_pad=11, rect=(0, 0, 0.88, 1))
    for axis, curves in ends:
        label_ends(axis, curves)
    figure.savefig(file, dpi=90, metadata={"Software": None})
    with PIL.Image.open(file) as picture:  # 64 colours take a third of the bytes
        picture.convert("RGB").quantize(64, dither=PIL.Image.Dither.NONE).save(file, optimize=True)
    plt.close(figure)


def draw_all(sources, folder):
    try:
        for source in sources:
            if not source.is_mailbox:
                draw(source, folder / f"{source.name}.png")
    except ImportError as error:
        print(f"report.py: no pictures: {error}; Debian's package is python3-matplotlib", file=sys.stderr)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--results", type=pathlib.Path, required=True, help="the documents by the names of their runs, as JSON")
    options.add_argument("--markdown", type=pathlib.Path, required=True, help="the report; it links to files beside the results")
    options.add_argument("--pictures", action="store_true", help="draw them too, with matplotlib")
    given = options.parse_args()
    sources = []
    try:
        for name, document in json.loads(given.results.read_text(encoding="utf-8")).items():
            sources.append(Source(name, document))
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        options.error(f"--results is {given.results}; allowed are files of documents of rivals or mailbox by name: {error!r}")
    if not sources:
        options.error(f"--results is {given.results}, which has no document")
    sources.sort(key=lambda source: source.place)
    folder = given.results.parent
    pictures = pathlib.Path(os.path.relpath(folder, given.markdown.absolute().parent)).as_posix()
    try:
        rows, text = rows_csv(sources), results_markdown(sources, pictures)
    except LookupError as error:
        options.error(f"a document lacks the field {error}")
    try:
        replace(folder / "rows.csv", rows)
        replace(given.markdown, text)
        if given.pictures:
            draw_all(sources, folder)
    except OSError as error:
        print(f"report.py: {error}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
