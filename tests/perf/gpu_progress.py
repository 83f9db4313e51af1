"""The results of a comparison on a GPU so far: results.json is written after each workload, so that a run that was cut off goes on where it was.
NAME.failure.txt beside it says where a comparison failed.

A kernel that reads outside of its memory makes every later call of the process fail, one that never ends keeps it waiting, and libraries keep
their workspaces. The program then starts itself anew, with the workload among the failures, and does the rest.
"""

import contextlib
import json
import os
import sys
import threading
import time
import traceback

import harness

GO_ON = "--continue"
MOST_KEPT = 24 << 30  # bytes of workspaces of libraries that are done


class Progress:
    def __init__(self, path, go_on, limit):
        """`limit` is how many seconds the comparison of one workload may take."""
        self.path, self.limit, self.rows, self.failures, self.more, self.kept_bytes = path, limit, [], {}, {}, 0
        if go_on and path.exists():
            earlier = json.loads(path.read_text())
            self.rows, self.failures = earlier["rows"], earlier["failures"]

    def has(self, name):
        return name in self.failures or any(row["name"] == name for row in self.rows)

    def write(self):
        self.path.write_text(json.dumps({**self.more, "rows": self.rows, "failures": self.failures}, indent=1))

    def add(self, row):
        self.rows.append(row)
        self.write()

    def fail(self, name, reason):
        self.failures[name] = reason
        print(f"{name}: {reason}", flush=True)
        self.write()

    def keep(self, workspace_bytes):
        """Counts a library that is done and keeps its workspace; frees them all, by a new start, when they are too large together."""
        self.kept_bytes += workspace_bytes
        if self.kept_bytes > MOST_KEPT:
            restart("to free the workspaces of libraries that are done")

    def give_up(self, name):
        self.fail(name, f"its comparison took more than {self.limit:g} s")
        restart("since the device may still be busy")

    @contextlib.contextmanager
    def watched(self, name):
        """Within, a comparison. Its failure, whatever it is, is one of the workload's and not of the run's."""
        timer, begin = threading.Timer(self.limit, self.give_up, [name]), time.monotonic()
        timer.daemon = True
        timer.start()
        try:
            yield
        except Exception as error:  # an error of any library; all are listed at the end, and the run fails
            words = (str(error).splitlines() or [""])[0]
            self.path.with_name(f"{name}.failure.txt").write_text(traceback.format_exc())
            self.fail(name, words if isinstance(error, harness.BenchmarkError) else f"{type(error).__name__}: {words}")
            if device_is_lost():
                restart("since the device's context is lost")
        finally:
            timer.cancel()
        print(f"{name}: {time.monotonic() - begin:.1f} s", flush=True)


def device_is_lost():
    import torch

    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return True
    return False


def restart(why):
    """Starts this program anew in its process, to go on with what it has not compared."""
    print(f"starting anew {why}", flush=True)
    words = sys.argv if GO_ON in sys.argv else [*sys.argv, GO_ON]
    os.execv(sys.executable, [sys.executable, "-B", *words])
