# A replay in a debugger, whichever that is: what threads are called, where the user's code is, turns, and how the program starts
# again. What it asks of the debugger is at `RashomonSession`.
#
# `SETTINGS` is set right before:
#   sides      for each side of the finding its thread's name, what it does, and the return addresses of its stack, innermost
#              first, as module and offset
#   turns      of the schedule; null: threads run in parallel
#   words      numbers of the words of `rashomon_debugged`
#   stop       the turn to stop at in each execution, or null
#   prepare    the command that makes the program's session, and restores its world
#   prepared   whether that was done for the first execution
#   editor     whether an editor starts the program

import subprocess

RASHOMON_NEVER = (1 << 64) - 1
RASHOMON_MOST_FRAMES = 500
# Debug registers of x86-64, each for so many bytes.
RASHOMON_WATCHPOINTS, RASHOMON_WATCHED_BYTES = 4, 8
RASHOMON_HELP = """rashomon threads: where each thread is, under the names of the report
rashomon step-turn: on to where another thread has the turn
rashomon back-to TURN: start again and stop at this turn; -N: N turns before this one
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


class RashomonSession:
    """The debugger has: its `name`; `process()`, the process's number or 0; `threads()`, with `number`, `kernel_id` and
    `frames()`, which gives `RashomonFrame`s; `stopped(threads)`, which of them came to a breakpoint; `call(thread, name)`;
    `select(thread, frame)`; `place_of(symbol)` or None; `read(address, bytes)`, `write(address, bytes)`; `watch(address, size)`;
    `proceed()`; `restart()`; `say(text)`."""

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
        # By the debugger's numbers of threads, which are the same in each replay of a schedule; and those by the sides.
        self.names = {}
        self.sides = {}

    # Before and at the beginning of an execution.

    def prepare(self):
        self.reached, self.turn = False, 0
        if not self.has_turns():
            self.names, self.sides = {}, {}
        if self.fresh:
            self.fresh = False
            return
        done = subprocess.run(self.settings["prepare"], stdin=subprocess.DEVNULL, capture_output=True)
        if done.returncode != 0:
            raise RashomonError(done.stderr.decode(errors="replace").strip() or "%s failed" % self.settings["prepare"][0])

    def begins(self):
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
        threads = self.debugger.threads()
        stacks = {thread.number: [frame.pc for frame in thread.frames()] for thread in threads}
        self.sides = rashomon_sides_of(stacks, self.settings["sides"], rashomon_bases(self.debugger.process()))
        self.names.update((thread, self.settings["sides"][side]["name"]) for side, thread in self.sides.items())
        self.debugger.say("rashomon: the finding has come about")
        self.say_threads([thread for thread in threads if thread.number in self.sides.values()], self.action_of)
        here = self.debugger.stopped(threads)
        shown = [thread for thread in threads if thread.number in self.sides.values()]
        self.name_and_show(threads, here if here in shown or not shown else shown[0])

    def turn_reached(self):
        self.look()
        threads = self.debugger.threads()
        here = self.debugger.stopped(threads)
        self.debugger.say("rashomon: %s, in %s" % (self.turn_words(), self.name_of(here) if here else "no thread"))
        self.name_and_show(threads, here)

    def look(self):
        if self.has_turns():
            self.turn = self.word("TURN")

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
        known = {"threads": self.threads, "step-turn": self.step_turn, "back-to": self.back_to, "watch": self.watch}
        if words[0] not in known:
            raise RashomonError(RASHOMON_HELP)
        known[words[0]](*words[1:] if words[0] == "back-to" else [])

    def threads(self):
        self.running()
        self.look()
        if self.has_turns():
            self.debugger.say(self.turn_words() + (": the finding has come about" if self.reached else ""))
        self.say_threads(self.debugger.threads(), self.doing_of)

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
            self.debugger.restart()
        elif self.debugger.name == "lldb":
            self.debugger.say("rashomon: restart the program in the editor, and it stops there")
        else:
            again = "rashomon replay ... --vscode --back-to %d" % self.stop
            raise RashomonError("the editor starts gdb anew: let `%s` make a configuration for it" % again)

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

    def set_word(self, name, value):
        self.debugger.write(self.place_of_word(name), value.to_bytes(8, "little"))

    def place_of_word(self, name):
        place = self.debugger.place_of("rashomon_debugged")
        if place is None:
            raise RashomonError("the program's runtime has no `rashomon_debugged`: link it again with this version")
        return place + 8 * self.settings["words"][name]

    def is_named(self, thread):
        return thread.number == 1 or thread.number in self.names

    def name_of(self, thread):
        first = "main thread" if thread.number == 1 else "another thread"
        return self.names.get(thread.number, first)

    def say_threads(self, threads, words):
        for thread in threads:
            known = self.name_of(thread), self.debugger.name, thread.number, words(thread)
            self.debugger.say("%s (%s's thread %d): %s" % known)

    def action_of(self, thread):
        side = next(side for side, number in self.sides.items() if number == thread.number)
        return self.settings["sides"][side]["action"]

    def doing_of(self, thread):
        frame = rashomon_users_frame(thread.frames())
        words = [frame.place() if frame else "in the runtime"]
        if self.has_turns() and thread.kernel_id == self.word("HOLDER"):
            words.append("has the turn")
        if self.reached and thread.number in self.sides.values():
            words.append("stood at the finding")
        return "; ".join(words)
