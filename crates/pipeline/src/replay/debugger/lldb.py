# The session of session.py under lldb and lldb-dap, which import this before the program starts. More of `SETTINGS`:
# `arguments`, `directory`, `environment` (what the program has beside lldb's own), `input` (a file, or null).

import os
import stat

import lldb


class RashomonLldbThread:
    def __init__(self, own):
        self.own, self.number, self.kernel_id = own, own.GetIndexID(), own.GetThreadID()

    def frames(self):
        frames = []
        for number in range(min(self.own.GetNumFrames(), RASHOMON_MOST_FRAMES)):
            frame = self.own.GetFrameAtIndex(number)
            place = frame.GetLineEntry()
            path = place.GetFileSpec().fullpath if place.IsValid() else ""
            frames.append(RashomonFrame(frame.GetPC(), frame.GetFunctionName(), path, place.GetLine(), number))
        return frames


class RashomonLldb:
    name = "lldb"

    def __init__(self, debugger):
        self.debugger = debugger
        # Where to say something: of a command, of a stop.
        self.result = self.stream = None
        # The thread that stopped; thread and frame to show.
        self.stop = self.shown = None
        # The process that has its session, in an editor.
        self.loaded = None
        # Numbers of watchpoints.
        self.watched = []

    def target(self):
        return self.debugger.GetSelectedTarget()

    def alive(self):
        process = self.target().GetProcess()
        return process if process.IsValid() and process.is_alive else None

    def process(self):
        process = self.alive()
        return process.GetProcessID() if process else 0

    def threads(self):
        return [RashomonLldbThread(one) for one in self.alive().threads]

    def stopped(self, threads):
        return next((thread for thread in threads if thread.kernel_id == self.stop.GetThreadID()), None)

    def call(self, thread, name):
        """lldb takes no names of threads from scripts."""

    def select(self, thread, frame):
        self.shown = thread.own, frame.own if frame is not None else 0
        self.alive().SetSelectedThread(thread.own)
        thread.own.SetSelectedFrame(self.shown[1])

    def settle(self):
        """A command of ours brought the program here, and lldb has selected what it likes."""
        if self.shown is not None and self.alive() and not self.debugger.GetAsync():
            thread, frame = self.shown
            self.alive().SetSelectedThread(thread)
            thread.SetSelectedFrame(frame)
            # The command of ours may have begun without a process.
            context, shown = lldb.SBExecutionContext(thread.GetFrameAtIndex(frame)), lldb.SBCommandReturnObject()
            self.debugger.GetCommandInterpreter().HandleCommand("frame select %d" % frame, context, shown, False)
            self.say((shown.GetOutput() or "").rstrip())

    def place_of(self, symbol):
        for found in self.target().FindSymbols(symbol):
            place = found.GetSymbol().GetStartAddress().GetLoadAddress(self.target())
            if place != lldb.LLDB_INVALID_ADDRESS:
                return place
        return None

    def read(self, address, count):
        error = lldb.SBError()
        data = self.alive().ReadMemory(address, count, error)
        if not error.Success():
            raise RashomonError("cannot read the program's memory: %s" % error)
        return data

    def write(self, address, data):
        error = lldb.SBError()
        self.alive().WriteMemory(address, data, error)
        if not error.Success():
            raise RashomonError("cannot write the program's memory: %s" % error)

    def watch(self, address, size):
        error = lldb.SBError()
        one = self.target().WatchAddress(address, size, True, True, error)
        if not error.Success():
            raise RashomonError("cannot watch 0x%x: %s" % (address, error))
        self.watched.append(one.GetID())
        self.say("Watchpoint %d: %d bytes at 0x%x" % (one.GetID(), size, address))

    def watch_again(self):
        """lldb disables them when a process ends."""
        for one in (self.target().FindWatchpointByID(number) for number in self.watched):
            if one.IsValid():
                one.SetEnabled(True)

    def proceed(self):
        self.check(self.alive().Continue())

    def restart(self):
        self.kill()
        self.launch()

    def kill(self):
        process = self.alive()
        if process:
            self.check(process.Kill())

    def attach(self, process):
        error = lldb.SBError()
        self.target().AttachToProcessWithID(lldb.SBListener(), process, error)
        self.watch_again()
        return error.Success()

    def launch_info(self, target):
        info = target.GetLaunchInfo()
        info.SetArguments(SETTINGS["arguments"], False)
        environment = lldb.SBEnvironment(target.GetEnvironment())
        for name, value in SETTINGS["environment"]:
            environment.Set(name, value, True)
        info.SetEnvironment(environment, False)
        info.SetWorkingDirectory(SETTINGS["directory"])
        info.AddOpenFileAction(0, SETTINGS["input"] or os.devnull, True, False)
        if not SETTINGS["editor"]:
            for file in (1, 2):
                self.share(info, file)
        return info

    def share(self, info, file):
        """The program prints to where lldb does. lldb's own terminal for it would be gone for executions from a snapshot, and lldb
        would wait for the snapshots to close it."""
        mode = os.fstat(file).st_mode
        if stat.S_ISFIFO(mode) or os.isatty(file):
            info.AddOpenFileAction(file, "/proc/%d/fd/%d" % (os.getpid(), file), False, True)

    def launch(self):
        RASHOMON.prepare()
        info, error = self.launch_info(self.target()), lldb.SBError()
        self.target().Launch(info, error)
        if not error.Success() and "personality" in str(error):
            # A container may forbid to keep addresses where they are. No schedule depends on them.
            info.SetLaunchFlags(info.GetLaunchFlags() & ~lldb.eLaunchFlagDisableASLR)
            error = lldb.SBError()
            self.target().Launch(info, error)
        self.check(error)

    def check(self, error):
        if not error.Success():
            raise RashomonError("lldb: %s" % error)

    def say(self, text):
        if self.result is not None:
            self.result.AppendMessage(text)
        elif self.stream is not None:
            self.stream.Print(text + "\n")


RASHOMON = RashomonSession(None, SETTINGS)


def rashomon_command(debugger, line, context, result, _):
    """`rashomon launch` starts the program; the others are those of the session."""
    RASHOMON.debugger.result = result
    try:
        RASHOMON.debugger.shown = None
        if line.split()[:1] == ["launch"]:
            RASHOMON.debugger.launch()
        else:
            RASHOMON.command(line)
        RASHOMON.debugger.settle()
    except RashomonError as error:
        result.SetError("rashomon: %s" % error)
    finally:
        RASHOMON.debugger.result = None


def rashomon_is_loaded(frame, location, extra, _):
    """An editor started the program, and the loader is at work. Whether to stop there."""
    process = frame.GetThread().GetProcess().GetProcessID()
    if process == RASHOMON.debugger.loaded:
        return False
    RASHOMON.debugger.loaded = process
    try:
        RASHOMON.prepare()
    except RashomonError as error:
        print("rashomon: the program was not prepared and must not go on: %s" % error)
        return True
    return False


def rashomon_begins(frame, location, extra, _):
    RASHOMON.debugger.watch_again()
    RASHOMON.begins()
    return False


class RashomonStops:
    """Of each stop: whether it is one of ours, and then what to say and to select."""

    def __init__(self, target, extra, _):
        pass

    def handle_stop(self, context, stream):
        RASHOMON.debugger.stop, RASHOMON.debugger.stream = context.GetThread(), stream
        function = context.GetThread().GetFrameAtIndex(0).GetFunctionName()
        work = {"rashomon_finding_reached": RASHOMON.finding_reached, "rashomon_turn_reached": RASHOMON.turn_reached}
        if function == "rashomon_finding_reached" and RASHOMON.passes_finding():
            return False
        if function in work:
            try:
                work[function]()
            except RashomonError as error:
                RASHOMON.debugger.say("rashomon: %s" % error)
        RASHOMON.debugger.stream = None
        return True


def __lldb_init_module(debugger, _):
    RASHOMON.debugger = RashomonLldb(debugger)
    module = __name__
    for line in (
        "command script add --overwrite --synchronicity current --function %s.rashomon_command rashomon" % module,
        "command unalias run",
        "command unalias r",
        "command alias run rashomon launch",
        "command alias r rashomon launch",
        "target stop-hook add --script-class %s.RashomonStops" % module,
    ):
        debugger.GetCommandInterpreter().HandleCommand(line, lldb.SBCommandReturnObject())
    target = debugger.GetSelectedTarget()
    target.BreakpointCreateByName("rashomon_finding_reached")
    target.BreakpointCreateByName("rashomon_turn_reached")
    begin = target.BreakpointCreateByName("rashomon_turns_begin")
    begin.SetScriptCallbackFunction(module + ".rashomon_begins")
    if SETTINGS["editor"]:
        # lldb-dap does not tell before it starts a program again. The loader calls this before any code of the program.
        loaded = target.BreakpointCreateByName("_dl_debug_state")
        loaded.SetScriptCallbackFunction(module + ".rashomon_is_loaded")
        target.SetLaunchInfo(RASHOMON.debugger.launch_info(target))
