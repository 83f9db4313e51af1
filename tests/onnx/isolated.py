"""Runs tasks in processes of their own, several at a time: a crash, a hang or a leak of one is not the others'.

Each process is forked from this one, so that what this one imported is there at once. This process must not run an OpenMP team before.
"""

import collections
import json
import os
import resource
import selectors
import signal
import time
import typing


class Outcome(typing.NamedTuple):
    """`result` is what the work returned, or None with the reason in `died`; `stage` is the last one that the work announced."""
    task: typing.Any
    result: typing.Any
    died: str
    stage: str


class Running:
    """One process. It writes lines of JSON into a pipe: {"stage": NAME} any number of times, then {"result": VALUE}."""

    def __init__(self, task, work, seconds):
        self.task, self.seconds = task, seconds
        self.deadline = time.monotonic() + seconds
        self.text, self.late = b"", False
        self.read_end, write_end = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.read_end)
            child(task, work, write_end)
        os.close(write_end)

    def read(self):
        """False at the end of what the process writes."""
        piece = os.read(self.read_end, 1 << 16)
        self.text += piece
        return bool(piece)

    def kill(self):
        for kill in (os.killpg, os.kill):  # it has no group of its own until it runs
            try:
                kill(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def outcome(self):
        os.close(self.read_end)
        _, status = os.waitpid(self.pid, 0)
        stage, result, done = "", None, False
        for line in self.text.splitlines():
            message = json.loads(line) if line.endswith(b"}") else {}
            stage = message.get("stage", stage)
            if "result" in message:
                result, done = message["result"], True
        died = ""
        if not done:
            died = f"took more than {self.seconds:g} s" if self.late else ended(os.waitstatus_to_exitcode(status))
        return Outcome(self.task, result, died, stage)


def ended(code):
    """An exit code, negative for a signal, in words."""
    return f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"


def child(task, work, write_end):
    """The forked process's life. It never returns."""
    status = 1
    try:
        os.setsid()  # a group of its own, to be killed with all that it starts
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nothing, number)

        def say(message):
            os.write(write_end, json.dumps(message).encode() + b"\n")

        say({"result": work(task, lambda stage: say({"stage": stage}))})
        status = 0
    finally:
        os._exit(status)


def run_all(tasks, work, jobs, seconds):
    """Yields an Outcome for each task as it ends. `work(task, announce)` returns what JSON can hold; announce(NAME) begins a stage."""
    waiting, running = collections.deque(tasks), {}
    with selectors.DefaultSelector() as selector:
        try:
            while waiting or running:
                while waiting and len(running) < jobs:
                    one = Running(waiting.popleft(), work, seconds)
                    running[one.read_end] = one
                    selector.register(one.read_end, selectors.EVENT_READ)
                earliest = min(one.deadline for one in running.values())
                events = selector.select(max(0.0, earliest - time.monotonic()))
                ready = [running[key.fd] for key, _ in events]
                for one in running.values():
                    if not one.late and time.monotonic() > one.deadline:
                        one.late, one.deadline = True, time.monotonic() + one.seconds  # its end comes at once
                        one.kill()
                for one in ready:
                    if not one.read():
                        selector.unregister(one.read_end)
                        del running[one.read_end]
                        one.kill()  # what it started and left behind
                        yield one.outcome()
        finally:
            for one in running.values():
                one.kill()
                one.outcome()
