# A replay in a debugger, whichever that is: what threads are called, where the user's code is, turns, and how the program starts
# again. What it asks of the debugger is at `RashomonSession`.
#
# `SETTINGS` is set right before:
#   sides      for each side of the finding its thread's name, what it does, and the return addresses of its stack, innermost
#              first, as module and offset
#   turns      of the schedule; null: threads run in parallel
#   words      numbers of the words of `rashomon_debugged`
#   tables     how many words those have that are tables
#   every      processor time in nanoseconds between two process snapshots; 0: none are made
#   wake       the signal at which a snapshot makes an execution
#   refusals   by its code, why there is no snapshot
#   stop       the turn to stop at in each execution, or null
#   prepare    the command that makes the program's session, and restores its world
#   prepared   whether that was done for the first execution
#   editor     whether an editor starts the program

import os
import signal
import subprocess
import time

RASHOMON_NEVER = (1 << 64) - 1
RASHOMON_MOST_FRAMES = 500
# Debug registers of x86-64, each for so many bytes.
RASHOMON_WATCHPOINTS, RASHOMON_WATCHED_BYTES = 4, 8
# Seconds that an execution from a snapshot may take to be there.
RASHOMON_PATIENCE = 10
RASHOMON_PAGE = 4096
RASHOMON_BREAKPOINT = 0xCC
RASHOMON_HELP = """rashomon threads: where each thread is, under the names of the report
rashomon step-turn: on to where another thread has the turn
rashomon back-to TURN: stop at this turn, from the last snapshot before it or from the start; -N: N turns before this one
rashomon snapshot: make a snapshot for back-to as soon as another thread is given the turn
rashomon watch: stop at every access to where the finding's accesses overlap"""


class RashomonError(Exception):
    """Told to the user as it is."""


class RashomonFrame:
    def __init__(self, pc, name, path, line, own):
        self.pc, self.name, self.path, self.line = pc, name or "", path or "", line
        # The debugger's.
        self.own = own

    def is_ours(self):
        """Whether it is of the runtime, or of what it and the system put between a thread's start and its routine."""
        return rashomon_is_ours(self.name)

    def is_users(self):
        """Whether it has a source that is not ours and not of the system."""
        system = self.path.startswith(("/usr/", "/rustc/", "./", "../")) or "/rustlib/src/" in self.path
        return self.path != "" and not system and not self.is_ours()

    def place(self):
        file = self.path.rsplit("/", 1)[-1]
        return "%s %s:%d" % (self.name, file, self.line) if file else self.name or "?"


def rashomon_is_ours(name):
    name = name or ""
    return name.startswith(("rashomon_", "__tsan_", "__interceptor_")) or name in ("start_thread", "clone", "clone3", "__clone3")


def rashomon_users_frame(frames):
    """The innermost of the user's; without one, the innermost that is not ours."""
    others = [frame for frame in frames if not frame.is_ours()]
    return next((frame for frame in others if frame.is_users()), others[0] if others else None)


def rashomon_bases(process):
    """What was added to the addresses of each file of a process."""
    bases = {}
    try:
        with open("/proc/%d/maps" % process) as maps:
            for line in maps:
                parts = line.split(None, 5)
                if len(parts) == 6 and parts[5].startswith("/"):
                    path = parts[5].rstrip("\n")
                    bases.setdefault(path, int(parts[0].split("-")[0], 16) - int(parts[2], 16))
        for path in bases:
            with open(path, "rb") as file:
                head = file.read(18)
                if head[:4] == b"\x7fELF" and head[16:18] == b"\x02\x00":
                    bases[path] = 0
    except OSError:
        pass
    return bases


def rashomon_sides_of(stacks, sides, bases):
    """Which thread is which side: by the most calls in common. `stacks`: for each number of a thread the addresses in it."""
    fits = []
    for thread, stack in stacks.items():
        for number, side in enumerate(sides):
            wanted = {bases[module] + offset for module, offset in side["calls"] if module in bases}
            fit = sum(1 for pc in stack if pc in wanted)
            if fit > 0:
                fits.append((-fit, number, thread))
    named = {}
    for _, number, thread in sorted(fits):
        if number not in named and thread not in named.values():
            named[number] = thread
    return named


def rashomon_turn_of(text, present):
    """The turn that `TURN` or `-N` means."""
    try:
        number = int(text.strip())
    except ValueError:
        raise RashomonError("say a turn, such as 12, or how many turns back, such as -1") from None
    turn = present + number if text.strip().startswith("-") else number
    if turn < 0:
        raise RashomonError("the present turn is %d: there are not so many before it" % present)
    return turn


def rashomon_watches(address, count):
    """Aligned pieces of a place, as debug registers take them, and how many bytes are left out."""
    pieces, end = [], address + count
    while address < end and len(pieces) < RASHOMON_WATCHPOINTS:
        size = RASHOMON_WATCHED_BYTES
        while address % size or address + size > end:
            size //= 2
        pieces.append((address, size))
        address += size
    return pieces, end - address


def rashomon_children(process):
    """Numbers of its children, as the kernel lists them."""
    try:
        with open("/proc/%d/task/%d/children" % (process, process)) as children:
            return {int(number) for number in children.read().split()}
    except OSError:
        return set()


def rashomon_restore_code(process):
    """Takes away breakpoints that an execution has in its code because they were set when its snapshot was made. Debuggers would
    take them for the program's own."""
    with open("/proc/%d/maps" % process) as maps:
        lines = [line.split(None, 5) for line in maps]
    with open("/proc/%d/pagemap" % process, "rb") as pages, open("/proc/%d/mem" % process, "r+b", 0) as memory:
        for line in lines:
            if len(line) < 6 or "x" not in line[1] or not line[5].startswith("/"):
                continue
            start, end = (int(part, 16) for part in line[0].split("-"))
            pages.seek(start // RASHOMON_PAGE * 8)
            entries = pages.read((end - start) // RASHOMON_PAGE * 8)
            for number in range(len(entries) // 8):
                entry = int.from_bytes(entries[8 * number : 8 * number + 8], "little")
                # There, and no page of the file any more.
                if entry >> 63 and not entry >> 61 & 1:
                    place = number * RASHOMON_PAGE
                    rashomon_restore_page(memory, start + place, line[5].rstrip("\n"), int(line[2], 16) + place)


def rashomon_restore_page(memory, address, path, place):
    with open(path, "rb") as file:
        file.seek(place)
        original = file.read(RASHOMON_PAGE)
    memory.seek(address)
    for at, (now, then) in enumerate(zip(memory.read(RASHOMON_PAGE), original)):
        if now == RASHOMON_BREAKPOINT and then != now:
            memory.seek(address + at)
            memory.write(bytes([then]))


class RashomonSnapshots:
    """Processes that stand at turns of this execution, or of a later part of it that was left by going back."""

    def __init__(self, wake):
        self.wake = wake
        # By process, how many turns are over.
        self.turns = {}

    def add(self, table):
        self.turns.update((process, turn) for turn, process in table if process != 0)

    def end(self):
        for process in self.turns:
            self.kill(process)
        self.turns = {}

    def kill(self, process):
        try:
            os.kill(process, signal.SIGKILL)
        except OSError:
            pass

    def before(self, turn):
        """The last one before a turn: how many turns are over there, and the process."""
        return max(((over, process) for process, over in self.turns.items() if over < turn), default=(0, None))

    def execution(self, process):
        """A new execution from one, which waits for a debugger. None: it is gone, or the system does not let us at it."""
        earlier, until = rashomon_children(process), time.monotonic() + RASHOMON_PATIENCE
        try:
            os.kill(process, self.wake)
        except OSError:
            return None
        while time.monotonic() < until:
            for made in rashomon_children(process) - earlier:
                try:
                    rashomon_restore_code(made)
                    return made
                except OSError:
                    # It has yet to say that it may be looked at.
                    pass
            time.sleep(0.001)
        return None


class RashomonSession:
    """The debugger has: its `name`; `process()`, the process's number or 0; `threads()`, with `number`, `kernel_id` and
    `frames()`, which gives `RashomonFrame`s; `stopped(threads)`, which of them came to a breakpoint; `call(thread, name)`;
    `select(thread, frame)`; `place_of(symbol)` or None; `read(address, bytes)`, `write(address, bytes)`; `watch(address, size)`;
    `proceed()`; `restart()`; `kill()`; `attach(process)`, to one that stops there, True if it could; `say(text)`."""

    def __init__(self, debugger, settings):
        self.debugger, self.settings = debugger, settings
        self.fresh = settings["prepared"]
        # Of the next execution alone.
        self.stop = None
        self.turn = 0
        self.reached = False
        # The turn at which it is, once that is known, and whether the execution is to go on there, to a later turn.
        self.found_at = None
        self.passes = False
        # By numbers of threads, which are the same in each replay of a schedule; and those by the sides.
        self.names = {}
        self.sides = {}
        self.snapshots = RashomonSnapshots(settings["wake"])

    # Before and at the beginning of an execution.

    def prepare(self):
        self.reached, self.turn = False, 0
        self.snapshots.end()
        if not self.has_turns():
            self.names, self.sides = {}, {}
        if self.fresh:
            self.fresh = False
            return
        done = subprocess.run(self.settings["prepare"], stdin=subprocess.DEVNULL, capture_output=True)
        if done.returncode != 0:
            raise RashomonError(done.stderr.decode(errors="replace").strip() or "%s failed" % self.settings["prepare"][0])

    def ends(self):
        self.debugger.kill()
        self.snapshots.end()

    def begins(self):
        self.set_word("EVERY", self.settings["every"])
        self.set_word("DEBUGGER", os.getpid())
        self.set_stop()

    def set_stop(self):
        stop, self.stop = self.settings["stop"] if self.stop is None else self.stop, None
        self.passes = stop is not None and self.found_at is not None and stop > self.found_at
        self.set_word("STOP", RASHOMON_NEVER if stop is None else stop)

    # Where it stops.

    def passes_finding(self):
        """Whether the execution goes on at the finding."""
        self.reached = self.reached or self.passes
        return self.passes

    def finding_reached(self):
        self.reached = True
        self.look()
        self.found_at = self.turn
        if self.has_turns() and self.word("STOP") <= self.turn:
            self.set_word("STOP", RASHOMON_NEVER)
        threads = self.known_threads()
        stacks = {thread.key: [frame.pc for frame in thread.frames()] for thread in threads}
        self.sides = rashomon_sides_of(stacks, self.settings["sides"], rashomon_bases(self.debugger.process()))
        self.names.update((thread, self.settings["sides"][side]["name"]) for side, thread in self.sides.items())
        self.debugger.say("rashomon: the finding has come about")
        shown = [thread for thread in threads if thread.key in self.sides.values()]
        self.say_threads(shown, self.action_of)
        here = self.debugger.stopped(threads)
        self.name_and_show(threads, here if here in shown or not shown else shown[0])

    def turn_reached(self):
        self.look()
        threads = self.known_threads()
        here = self.debugger.stopped(threads)
        self.debugger.say("rashomon: %s, in %s" % (self.turn_words(), self.name_of(here) if here else "no thread"))
        self.name_and_show(threads, here)

    def look(self):
        if self.has_turns():
            self.turn = self.word("TURN")
            table = self.table("SNAPSHOT")
            self.snapshots.add(zip(table[::2], table[1::2]))

    def known_threads(self):
        """Threads of the debugger, with numbers that are the same in all executions."""
        threads = self.debugger.threads()
        numbers = {kernel_id: number for number, kernel_id in enumerate(self.table("THREADS")) if kernel_id != 0}
        for thread in threads:
            # Others, such as the runtime's own, have the debugger's.
            thread.key = numbers.get(thread.kernel_id, -thread.number)
        return threads

    def name_and_show(self, threads, shown):
        """Threads have the report's names in the debugger's lists, and the user's frame of one is selected."""
        for thread in threads:
            if self.is_named(thread):
                self.debugger.call(thread, self.name_of(thread))
        if shown is not None:
            self.debugger.select(shown, rashomon_users_frame(shown.frames()))

    # Commands.

    def command(self, line):
        words = line.split(None, 1) or [""]
        known = {"threads": self.threads, "step-turn": self.step_turn, "back-to": self.back_to, "watch": self.watch, "snapshot": self.snapshot}
        if words[0] not in known:
            raise RashomonError(RASHOMON_HELP)
        known[words[0]](*words[1:] if words[0] == "back-to" else [])

    def threads(self):
        self.running()
        self.look()
        if self.has_turns():
            self.debugger.say(self.turn_words() + (": the finding has come about" if self.reached else ""))
        self.say_threads(self.known_threads(), self.doing_of)

    def step_turn(self):
        self.running()
        self.with_turns()
        self.look()
        self.set_word("STOP", self.turn + 1)
        self.debugger.proceed()

    def back_to(self, text=""):
        self.with_turns()
        if self.debugger.process():
            self.look()
        self.stop = rashomon_turn_of(text, self.turn)
        if not self.settings["editor"]:
            if not self.goes_on_from_snapshot(self.stop):
                self.debugger.restart()
        elif self.debugger.name == "lldb":
            self.debugger.say("rashomon: restart the program in the editor, and it stops there")
        else:
            again = "rashomon replay ... --vscode --back-to %d" % self.stop
            raise RashomonError("the editor starts gdb anew: let `%s` make a configuration for it" % again)

    def goes_on_from_snapshot(self, stop):
        """False: there is none, and the present execution is as it was or at its end."""
        over, process = self.snapshots.before(stop)
        if process is None:
            return False
        self.debugger.kill()
        execution = self.snapshots.execution(process)
        if execution is None:
            return False
        if not self.debugger.attach(execution):
            self.snapshots.kill(execution)
            return False
        self.reached, self.turn = False, over
        self.set_stop()
        self.set_word("GO", 1)
        self.debugger.say("rashomon: from the snapshot after %d turn%s" % (over, "" if over == 1 else "s"))
        self.debugger.proceed()
        return True

    def snapshot(self):
        self.running()
        self.with_turns()
        if self.word("EVERY") == 0:
            raise RashomonError("there are no snapshots in an editor, nor of programs that have a client or a command before each")
        self.look()
        if self.word("WANTED") == 0:
            self.set_word("WANTED", 1)
            self.debugger.say("rashomon: a snapshot is made as soon as another thread is given the turn")
        else:
            why = self.settings["refusals"][self.word("REFUSED")] if self.word("REFUSED") else "nobody was given the turn"
            self.debugger.say("rashomon: there is no snapshot yet: %s" % why)

    def watch(self):
        self.running()
        address, count = self.word("ADDRESS"), self.word("BYTES")
        if not self.reached or count == 0:
            why = "this finding has no such place" if self.reached else "the finding has not come about yet"
            raise RashomonError("where the accesses overlap is not known: " + why)
        pieces, left = rashomon_watches(address, count)
        for piece in pieces:
            self.debugger.watch(*piece)
        if left:
            self.debugger.say("rashomon: debug registers are too few for the last %d bytes" % left)

    # What is known.

    def has_turns(self):
        return self.settings["turns"] is not None

    def with_turns(self):
        if not self.has_turns():
            raise RashomonError("this finding is replayed with threads in parallel, which take no turns")

    def running(self):
        if not self.debugger.process():
            raise RashomonError("the program is not running: `run` starts it")

    def turn_words(self):
        return "after %d turn%s (the schedule has %d)" % (self.turn, "" if self.turn == 1 else "s", self.settings["turns"])

    def word(self, name):
        return int.from_bytes(self.debugger.read(self.place_of_word(name), 8), "little")

    def table(self, name):
        data = self.debugger.read(self.place_of_word(name), 8 * self.settings["tables"][name])
        return [int.from_bytes(data[at : at + 8], "little") for at in range(0, len(data), 8)]

    def set_word(self, name, value):
        self.debugger.write(self.place_of_word(name), value.to_bytes(8, "little"))

    def place_of_word(self, name):
        place = self.debugger.place_of("rashomon_debugged")
        if place is None:
            raise RashomonError("the program's runtime has no `rashomon_debugged`: link it again with this version")
        return place + 8 * self.settings["words"][name]

    def is_named(self, thread):
        return thread.key == 0 or thread.key in self.names

    def name_of(self, thread):
        first = "main thread" if thread.key == 0 else "another thread"
        return self.names.get(thread.key, first)

    def say_threads(self, threads, words):
        for thread in threads:
            known = self.name_of(thread), self.debugger.name, thread.number, words(thread)
            self.debugger.say("%s (%s's thread %d): %s" % known)

    def action_of(self, thread):
        side = next(side for side, key in self.sides.items() if key == thread.key)
        return self.settings["sides"][side]["action"]

    def doing_of(self, thread):
        frame = rashomon_users_frame(thread.frames())
        words = [frame.place() if frame else "in the runtime"]
        if self.has_turns() and thread.kernel_id == self.word("HOLDER"):
            words.append("has the turn")
        if self.reached and thread.key in self.sides.values():
            words.append("stood at the finding")
        return "; ".join(words)
