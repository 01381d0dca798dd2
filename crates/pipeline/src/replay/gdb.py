# What gdb shows when a finding has come about: the user's frames, and threads under the names of the report.
#
# gdb runs this before the program starts. `SIDES` is set right before: for each side of the finding its thread's name, what it
# does, and the return addresses of its stack, innermost first, as module and offset.

import gdb


def rashomon_is_ours(frame):
    """Whether a frame is of the runtime, or of what it and the system put between a thread's start and its routine."""
    name = frame.name() or ""
    return name.startswith(("rashomon_", "__tsan_", "__interceptor_")) or name in ("start_thread", "clone", "clone3")


class RashomonFilter:
    """Leaves the runtime's frames out of backtraces; `disable frame-filter global rashomon` shows them."""

    def __init__(self):
        self.name = "rashomon"
        self.priority = 100
        self.enabled = True
        gdb.frame_filters[self.name] = self

    def filter(self, frames):
        return (one for one in frames if not rashomon_is_ours(one.inferior_frame()))


def rashomon_bases():
    """What was added to the addresses of each file."""
    bases = {}
    try:
        with open("/proc/%d/maps" % gdb.selected_inferior().pid) as maps:
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


def rashomon_frames():
    frame, count = gdb.newest_frame(), 0
    while frame is not None and count < 500:
        yield frame
        frame, count = frame.older(), count + 1


def rashomon_fit(side, bases):
    """How many of a side's calls the selected thread stands in."""
    wanted = {bases[module] + offset for module, offset in side["calls"] if module in bases}
    return sum(1 for frame in rashomon_frames() if frame.pc() in wanted)


def rashomon_select_users_frame():
    """The innermost frame with a source that is not ours and not of the system; without one, the innermost that is not ours."""
    others = []
    for frame in rashomon_frames():
        if rashomon_is_ours(frame):
            continue
        table = frame.find_sal().symtab
        path = table.fullname() if table else ""
        if path and not path.startswith(("/usr/", "/rustc/", "./")) and "/rustlib/src/" not in path:
            frame.select()
            return
        others.append(frame)
    if others:
        others[0].select()


def rashomon_reached():
    bases = rashomon_bases()
    here = gdb.selected_thread()
    threads = sorted(gdb.selected_inferior().threads(), key=lambda thread: thread.num)
    fits = []
    for thread in threads:
        thread.switch()
        for number, side in enumerate(SIDES):
            fit = rashomon_fit(side, bases)
            if fit > 0:
                fits.append((-fit, number, thread.num))
    named = {}
    for _, number, thread in sorted(fits):
        if number not in named and thread not in named.values():
            named[number] = thread
    if threads and threads[0].num not in named.values():
        threads[0].name = "main thread"
    print("rashomon: the finding has come about")
    for thread in threads:
        for number, side in enumerate(SIDES):
            if named.get(number) == thread.num:
                thread.name = side["name"]
                thread.switch()
                rashomon_select_users_frame()
                print("%s (gdb's thread %d): %s" % (side["name"], thread.num, side["action"]))
                if here is None or here.num not in named.values():
                    here = thread
    if here is not None and here.is_valid():
        here.switch()
    rashomon_select_users_frame()
    gdb.execute("frame")


def rashomon_begin():
    RashomonFilter()
    reached = [one for one in gdb.breakpoints() or () if "rashomon_finding_reached" in (one.location or "")]
    for one in reached:
        one.commands = "silent\npython rashomon_reached()"


rashomon_begin()
