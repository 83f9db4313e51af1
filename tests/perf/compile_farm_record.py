"""Makes the table of recorded builds that compile_farm.sh replays, from the log of a tune: for each candidate, in the order of its task, the seconds
that its build and its measurement took, and how it ended.

    mycc-tune serve ... & mycc-tune worker --device cuda:0 ... & mycc-tune tune tests/perf/suite_gpu.te --trials 576 ...
    mycc-tune log export --log FILE | python3 tests/perf/compile_farm_record.py > tests/perf/compile_farm_h200.txt
"""

import json
import sys


def main():
    _, *lines = sys.stdin
    records = [json.loads(line)["record"] for line in lines]
    rows = []
    for record in records:
        if "@" in record["trial"]:
            continue  # a final round's
        origin, result = record["provenance"], record["result"]
        place = (int(origin.get("task", 0)), int(origin.get("generation", 0)), int(origin.get("index", 0)))
        timing = result["timing"]
        rows.append((place, record["workload_name"], timing.get("build_seconds", 0), timing.get("run_seconds", 0), result["status"]))
    device = records[0]["result"]["device"]
    print(f"# {len(rows)} candidates of a tune on one {device['model']}, driver {device['driver']}, built by 16 processes at once on its host.")
    print("# workload, seconds to build, seconds to measure, status; made by compile_farm_record.py")
    for _, workload, build, run, status in sorted(rows):
        print(f"{workload} {build:.3f} {run:.3f} {status}")


if __name__ == "__main__":
    main()
