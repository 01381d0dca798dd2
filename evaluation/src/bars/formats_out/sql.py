"""Runs every query of a chapter on a Parquet file: `sql.py CHAPTER FILE [--dump D] [--stat S] [--report R]`.

Answers are compared with what Rashomon says elsewhere:
- D, the same trace as `rashomon trace dump` prints it: each answer is computed from that again, without SQL.
- S, `rashomon trace stat` of the same recording as a packed trace: how much there is of each operation, how many threads,
  variables and locks, and how many locks a thread holds at the same time.
- R, the JSON report of a check of the recording: every data race is on a variable that two threads use under different locks.

Prints what was read as one line, and ends with 1 and the faults where something is wrong.
"""

import argparse
import json
import re
import sys
from collections import defaultdict


def queries(chapter):
    """The chapter's queries by their names, which stand in the first line of each."""
    with open(chapter) as file:
        blocks = re.findall(r"^```sql\n-- ([^\n]*)\n(.*?)^```$", file.read(), re.MULTILINE | re.DOTALL)
    return {name: text for name, text in blocks}


def events(dump):
    """Number, thread, operation and target of each line."""
    operations = (
        "atomic read|atomic write|atomic update|acquire shared|release shared|request shared|acquire object|release object|"
        "acquire|release|request|read|write|fork|join|begin|end|enter|exit|forget|branch|fence|nothing"
    )
    line = re.compile(rf"^ *(\d+) (\S+) ({operations})(?: (.*?))?(?: order \d+)?(?: at \S+)?$")
    with open(dump) as file:
        for text in file:
            found = line.match(text.rstrip("\n"))
            if not found:
                raise ValueError(f"not understood: {text!r}")
            number, thread, operation, target = found.groups()
            yield int(number), thread, operation, target


class Model:
    """What the queries ask, computed event by event."""

    def __init__(self, dump):
        self.operations = defaultdict(int)
        self.holdings = []
        self.locks = defaultdict(lambda: [0, 0, set()])
        self.variables = defaultdict(lambda: [0, 0, set()])
        self.accesses = defaultdict(set)
        self.nested = defaultdict(set)
        self.waits = defaultdict(list)
        taken, held, waiting, last = {}, defaultdict(set), {}, -1
        for number, thread, operation, target in events(dump):
            last = number
            self.operations[operation] += 1
            if thread in waiting:
                self.waits[thread].append(number - waiting.pop(thread))
            if operation in ("request", "request shared", "enter"):
                waiting[thread] = number
            if operation in ("acquire", "acquire shared"):
                for outer in held[thread]:
                    self.nested[outer, target].add(thread)
                held[thread].add(target)
                taken[thread, target] = number
            if operation in ("release", "release shared"):
                held[thread].discard(target)
                begin = taken.pop((thread, target))
                self.holdings.append((target, thread, begin, number - begin))
            if operation.split()[0] in ("acquire", "release", "request") and not operation.endswith("object"):
                lock = self.locks[target]
                lock[0] += operation.startswith("acquire")
                lock[1] += operation.startswith("request")
                lock[2].add(thread)
            if operation.split()[-1] in ("read", "write", "update"):
                writes, atomic = not operation.endswith("read"), operation.startswith("atomic")
                variable = self.variables[target]
                variable[0] += 1
                variable[1] += writes
                variable[2].add(thread)
                self.accesses[target].add((thread, writes, atomic, frozenset(held[thread])))
        for (lock, thread), begin in taken.items():
            self.holdings.append((lock, thread, begin, last + 1 - begin))
        for thread in waiting:
            self.waits[thread].append(None)

    def different_locks(self):
        """Pairs of threads by variable."""
        pairs = {}
        for variable, accesses in self.accesses.items():
            found = {
                frozenset((one[0], other[0]))
                for one in accesses
                for other in accesses
                if one[0] != other[0] and (one[1] or other[1]) and not (one[2] and other[2]) and not one[3] & other[3]
            }
            if found:
                pairs[variable] = len(found)
        return pairs

    def both_orders(self):
        orders = {}
        for (outer, inner), threads in self.nested.items():
            others = self.nested.get((inner, outer), set())
            pairs = {frozenset((one, other)) for one in threads for other in others if one != other}
            if outer < inner and pairs:
                orders[frozenset((outer, inner))] = True
        return orders


def most(counts):
    """The ten largest numbers."""
    return sorted(counts, reverse=True)[:10]


def compared(answers, model):
    """Name of the query, what it says, what the model says."""
    held = defaultdict(int)
    for lock, _, _, length in model.holdings:
        held[lock] += length
    column = lambda name, at: [row[at] for row in answers[name]]
    yield "operations", {row[0]: row[1] for row in answers["operations"]}, dict(model.operations)
    said = [(row[1], row[2], row[3], row[4]) for row in answers["held longest"]]
    yield "held longest", column("held longest", 4), most(holding[3] for holding in model.holdings)
    yield "held longest: each", [holding for holding in said if holding not in model.holdings], []
    yield "held in all", column("held in all", 3), most(held.values())
    yield "different locks", {row[1]: row[3] for row in answers["different locks"]}, model.different_locks()
    waits = {row[0]: (row[1], row[2], row[3]) for row in answers["waits"]}
    total = lambda lengths: sum(lengths) if lengths else None
    known = {thread: [length for length in lengths if length is not None] for thread, lengths in model.waits.items()}
    expected = {
        thread: (len(lengths), total(known[thread]), max(known[thread], default=None)) for thread, lengths in model.waits.items()
    }
    yield "waits", waits, expected
    contended = sorted(((lock[1], lock[0], len(lock[2])) for lock in model.locks.values()), reverse=True)[:10]
    said = sorted(((row[3], row[2], row[4]) for row in answers["contention"]), reverse=True)
    yield "contention", [row[:2] for row in said], [row[:2] for row in contended]
    yield "hot variables", column("hot variables", 2), most(variable[0] for variable in model.variables.values())
    hot = {row[1]: (row[2], row[3], row[4]) for row in answers["hot variables"]}
    known = {name: (accesses, writes, len(threads)) for name, (accesses, writes, threads) in model.variables.items()}
    yield "hot variables: each", hot, {name: known.get(name) for name in hot}
    yield "both orders", {frozenset((row[1], row[3])) for row in answers["both orders"]}, set(model.both_orders())


def counted(table, stat):
    """Name of a number in the statistics, what the table says, what they say."""
    import duckdb

    with open(stat) as file:
        expected = {name: int(count) for name, count in re.findall(r"^(.*?) +(\d+)$", file.read(), re.MULTILINE)}
    by_operation = {
        "acquire": "operation IN ('acquire', 'wait end', 'wait timed out')",
        "release": "operation IN ('release', 'wait begin')",
        "request": "operation = 'request'",
        "fork": "operation = 'fork'",
        "join": "operation = 'join'",
        "read": "reads AND NOT atomic",
        "write": "writes AND NOT atomic",
        "atomic read": "operation = 'atomic read'",
        "atomic write": "operation = 'atomic write'",
        "atomic update": "operation = 'atomic update'",
    }
    asked = {name: f"count(*) FILTER ({which})" for name, which in by_operation.items()}
    asked["threads"] = "count(DISTINCT thread)"
    asked["variables"] = "count(DISTINCT variable)"
    asked["locks"] = "count(DISTINCT lock)"
    asked["locks held"] = "coalesce(max(len(held) + 1) FILTER (takes), 0)"
    row = duckdb.execute(f"SELECT {', '.join(asked.values())} FROM '{table}'").fetchone()
    for name, count in zip(asked, row):
        yield name, count, expected.get(name, 0)


def raced(answers, report):
    """Each variable that is reported to race, whether the query has it, and True."""
    with open(report) as file:
        findings = json.load(file)["findings"]
    names = {row[1] for row in answers["different locks"]}
    for finding in findings:
        if finding["kind"] == "data-race":
            # The table's name has no size.
            subject = re.sub(r" \(\d+ bytes?\)$", "", finding["subject"])
            yield f"race on {subject}", subject in names, True


def main():
    import duckdb

    parser = argparse.ArgumentParser()
    parser.add_argument("chapter")
    parser.add_argument("table")
    for name in ("--dump", "--stat", "--report"):
        parser.add_argument(name)
    given = parser.parse_args()
    faults, answers, same = [], {}, 0
    asked = queries(given.chapter)
    if not asked:
        faults.append("no query in the chapter")
    comparisons = []
    try:
        for name, text in asked.items():
            answers[name] = duckdb.execute(text.replace("'events.parquet'", f"'{given.table}'")).fetchall()
        rows = duckdb.execute(f"SELECT count(*), count(DISTINCT event) FROM '{given.table}'").fetchone()
        if given.dump and "made-up" in given.dump:
            faults += [f"{name}: no answer" for name, answer in answers.items() if not answer]
        if given.dump:
            comparisons += compared(answers, Model(given.dump))
        if given.stat:
            comparisons += counted(given.table, given.stat)
        if given.report:
            comparisons += raced(answers, given.report)
    except duckdb.Error as error:
        faults.append(f"{type(error).__name__}: {error}".splitlines()[0])
    for name, said, expected in comparisons:
        if said == expected:
            same += 1
        else:
            faults.append(f"{name}: {said} instead of {expected}"[:300])
    if (given.dump or given.stat or given.report) and not comparisons:
        faults.append("nothing was compared")
    if faults:
        print("; ".join(faults[:5]))
        sys.exit(1)
    print(f"{len(asked)} queries on {rows[1]} events in {rows[0]} rows, {same} comparisons")


main()
