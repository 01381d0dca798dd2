# The session of session.py under gdb, which runs this before the program starts. `SETTINGS["environment"]` is what the program
# has beside gdb's own environment.

import os

import gdb


class RashomonGdbThread:
    def __init__(self, own):
        self.own, self.number, self.kernel_id = own, own.num, own.ptid[1]

    def frames(self):
        """Switches to the thread."""
        self.own.switch()
        frames, frame = [], gdb.newest_frame()
        while frame is not None and len(frames) < RASHOMON_MOST_FRAMES:
            place = frame.find_sal()
            frames.append(RashomonFrame(frame.pc(), frame.name(), place.symtab and place.symtab.fullname(), place.line, frame))
            frame = frame.older()
        return frames


class RashomonGdb:
    name = "gdb"

    def process(self):
        return gdb.selected_inferior().pid

    def threads(self):
        return [RashomonGdbThread(one) for one in sorted(gdb.selected_inferior().threads(), key=lambda thread: thread.num)]

    def stopped(self, threads):
        here = gdb.selected_thread()
        return next((thread for thread in threads if here and thread.number == here.num), None)

    def call(self, thread, name):
        thread.own.name = name

    def select(self, thread, frame):
        thread.own.switch()
        if frame is not None:
            frame.own.select()
        gdb.execute("frame")

    def place_of(self, symbol):
        try:
            return int(gdb.parse_and_eval("(unsigned long)&" + symbol))
        except gdb.error:
            return None

    def read(self, address, count):
        return bytes(gdb.selected_inferior().read_memory(address, count))

    def write(self, address, data):
        gdb.selected_inferior().write_memory(address, data)

    def watch(self, address, size):
        kind = {1: "char", 2: "short", 4: "int", 8: "long"}[size]
        gdb.execute("awatch *(%s *) 0x%x" % (kind, address))

    def proceed(self):
        gdb.execute("continue")

    def restart(self):
        gdb.execute("run")

    def kill(self):
        if self.process():
            gdb.execute("kill", to_string=True)

    def attach(self, process):
        # What the C library knows of threads are the kernel's numbers from before.
        search = gdb.parameter("libthread-db-search-path")
        gdb.execute("set libthread-db-search-path /nonexistent")
        try:
            with RashomonSilence():
                gdb.execute("attach %d" % process)
        except gdb.error:
            return False
        finally:
            gdb.execute("set libthread-db-search-path %s" % search)
        return True

    def say(self, text):
        print(text)


class RashomonSilence:
    """What gdb says of attaching goes to its own output and errors, and nowhere else."""

    def __enter__(self):
        self.flush()
        self.kept = [(file, os.dup(file)) for file in (1, 2)]
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for file, _ in self.kept:
            os.dup2(nowhere, file)
        os.close(nowhere)

    def __exit__(self, *_):
        self.flush()
        for file, kept in self.kept:
            os.dup2(kept, file)
            os.close(kept)

    def flush(self):
        for stream in (gdb.STDOUT, gdb.STDERR):
            gdb.flush(stream)


class RashomonFilter:
    """Leaves the runtime's frames out of backtraces; `disable frame-filter global rashomon` shows them."""

    def __init__(self):
        self.name, self.priority, self.enabled = "rashomon", 100, True
        gdb.frame_filters[self.name] = self

    def filter(self, frames):
        return (one for one in frames if not rashomon_is_ours(one.inferior_frame().name()))


class RashomonCommand(gdb.Command):
    __doc__ = RASHOMON_HELP

    def __init__(self):
        super().__init__("rashomon", gdb.COMMAND_RUNNING)

    def invoke(self, line, _):
        here = gdb.selected_thread(), gdb.selected_frame() if gdb.selected_thread() else None
        rashomon_tell(lambda: RASHOMON.command(line))
        # Who looks at all threads stays where he was.
        if line.split()[:1] == ["threads"] and here[0] is not None and here[0].is_valid():
            here[0].switch()
            here[1].select()

    def complete(self, text, word):
        return [one for one in ("threads", "step-turn", "back-to", "snapshot", "watch") if one.startswith(word or text)]


class RashomonStop(gdb.Breakpoint):
    def stop(self):
        return not ("finding" in self.location and RASHOMON.passes_finding())


class RashomonBegin(gdb.Breakpoint):
    """Sets where to stop; the program goes on."""

    def stop(self):
        rashomon_tell(RASHOMON.begins)
        return False


def rashomon_tell(work):
    try:
        work()
    except RashomonError as error:
        raise gdb.GdbError("rashomon: %s" % error) from None


def rashomon_stops(function, command):
    """The breakpoint that a user sees, and may delete."""
    one = RashomonStop(function)
    # Without a word from gdb an editor would not know why it stops.
    one.commands = ("" if SETTINGS["editor"] else "silent\n") + "python %s" % command


def rashomon_begin():
    for name, value in SETTINGS["environment"]:
        if os.environ.get(name) != value:
            gdb.execute("set environment %s %s" % (name, value))
    RashomonFilter()
    RashomonCommand()
    rashomon_stops("rashomon_finding_reached", "rashomon_tell(RASHOMON.finding_reached)")
    if RASHOMON.has_turns():
        rashomon_stops("rashomon_turn_reached", "rashomon_tell(RASHOMON.turn_reached)")
        RashomonBegin("rashomon_turns_begin", internal=True)
    if hasattr(gdb.events, "gdb_exiting"):
        # A process that it was attached to gdb would let go on.
        gdb.events.gdb_exiting.connect(lambda _: RASHOMON.ends())
    for start in ("run", "start"):
        gdb.execute("define hook-%s\npython rashomon_tell(RASHOMON.prepare)\nend" % start)


RASHOMON = RashomonSession(RashomonGdb(), SETTINGS)
rashomon_begin()
