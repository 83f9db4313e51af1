"""The output of a run of the stored cases: counts of each operator, the cases that do not pass with their reasons, the figures."""

import collections
import re
import typing

import harness
from conformance_case import FAILED, PASSED, UNSUPPORTED

STATUSES = (PASSED, FAILED, UNSUPPORTED)
EXAMPLES = 3  # names shown of a group of cases with one reason
LONGEST = 300  # characters shown of a reason


class Result(typing.NamedTuple):
    kind: str
    name: str
    operator: str
    status: str
    reason: str
    with_values: bool = False  # whether it was compiled with values of inputs


def count_rows(results):
    """[operator, passed, failed, unsupported] of each, and of all."""
    counts = collections.defaultdict(collections.Counter)
    for result in results:
        counts[result.operator][result.status] += 1
        counts["all"][result.status] += 1
    order = sorted(counts, key=lambda operator: (operator == "all", operator.startswith("("), operator.lower()))
    return [[operator, *(str(counts[operator][status] or "-") for status in STATUSES)] for operator in order]


def group_of(reason):
    """The reason without what differs from case to case: numbers, and names in quotes. A model with several nodes that are not supported
    has a list of them, which becomes one of operators."""
    if "not supported" in reason and (operators := sorted(set(re.findall(r"\boperator `?([\w.]+)", reason)))):
        return f"not supported: {', '.join(operators)}"
    reason = re.sub(r"; --value .* would fix it$", "", reason)
    reason = re.sub(r"`[^`]*`", "`...`", reason)
    reason = re.sub(r"(element|has shape|expected|is) (\[[^\]]*\]|[-+\w.]+)", r"\1 ...", reason) if "differ" in reason else reason
    return re.sub(r"\d+", "N", reason)


def grouped_lines(results):
    """A line for each reason, the most frequent first."""
    groups = collections.defaultdict(list)
    for result in results:
        if result.status != PASSED:
            groups[result.status, group_of(result.reason)].append(result.name)
    for (status, reason), names in sorted(groups.items(), key=lambda item: (STATUSES.index(item[0][0]), -len(item[1]), item[0][1])):
        more = f", and {len(names) - EXAMPLES} more" if len(names) > EXAMPLES else ""
        yield f"{len(names):5d} {status}: {shortened(reason)} ({', '.join(names[:EXAMPLES])}{more})"


def case_lines(results):
    for result in results:
        if result.status != PASSED:
            yield f"{result.status} {result.name}: {shortened(result.reason)}"


def shortened(reason):
    return reason if len(reason) <= LONGEST else reason[:LONGEST] + " ..."


def figures(results):
    node = [result.status == PASSED for result in results if result.kind == "node"]
    other = [result.status == PASSED for result in results if result.kind != "node"]
    return {"node_passed": sum(node), "node_total": len(node), "other_passed": sum(other), "other_total": len(other)}


def print_report(results, brief):
    harness.print_table(["operator", *STATUSES], count_rows(results))
    print()
    for line in grouped_lines(results) if brief else case_lines(results):
        print(line)
    print(f"{sum(result.with_values for result in results)} of the cases that pass were compiled with values of inputs known")
    print()


def print_figures(results):
    for name, value in figures(results).items():
        print(f"{name}: {value}")


def read_names(text):
    """The names in a file of required cases: one a line, and comments after `#`."""
    return [words[0] for line in text.splitlines() if (words := line.partition("#")[0].split())]


def missing(required, results):
    """A line for each required case of the run that did not pass."""
    required = set(required)
    return [f"{result.name}: {result.status}: {shortened(result.reason)}" for result in results if result.name in required and result.status != PASSED]
