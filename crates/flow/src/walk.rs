//! One thread's way through its activations' tables.

use crate::table::{Op, Roots, Table};
use crate::walked::Walked;
use rashomon_units::{Bytes, Line, Lock, Meeting, Mode, Object, Register, Step, Thread};
use rustc_hash::FxHashSet;
use std::rc::Rc;

/// Behind the registers of a table: what code without tables read during a call, and all that it knows; to exchange phis by.
const READ: u32 = 0;
const KNOWN: u32 = 1;
const EXCHANGE: u32 = 2;

/// A call that has not returned.
struct Call {
    tells: bool,
    callee: u64,
    into: Option<Register>,
    arguments: Vec<Roots>,
    /// Code without tables read something.
    reads: bool,
    /// The callee told its result.
    returned: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// Before this step of the segment.
    At(usize),
    /// One of these segments is told next; none: control does not come back but by an exception.
    Told(Vec<u64>),
}

struct Activation {
    table: Rc<Table>,
    /// As [`rashomon_trace::Flow::Resume`] names it.
    number: u64,
    segment: u64,
    block: u64,
    previous: u64,
    state: State,
    call: Option<Call>,
    /// Bytes that a copy has read: where, and how many.
    copies: Option<(u64, u32)>,
}

enum Frame {
    Activation(Activation),
    /// A handler of a signal has interrupted what is below.
    Handler,
}

/// An access as the recording has it.
#[derive(Clone, Copy)]
pub struct Accessed {
    pub bytes: Bytes,
    pub reads: bool,
    pub writes: bool,
    /// Whether it is an atomic operation, and whether that acquires and releases.
    pub atomic: Option<(bool, bool)>,
}

/// Whoever takes the steps.
pub type Sink<'s> = dyn FnMut(Thread, Line, Step<'_>) + 's;

pub struct Walk {
    thread: Thread,
    pub line: Line,
    frames: Vec<Frame>,
    process: u64,
    count: u64,
}

impl Walk {
    pub fn new(thread: Thread) -> Self {
        Self { thread, line: Line(0), frames: Vec::new(), process: 0, count: 0 }
    }

    fn tell(&self, sink: &mut Sink<'_>, step: Step<'_>) {
        sink(self.thread, self.line, step);
    }

    fn top(&mut self) -> Option<&mut Activation> {
        match self.frames.last_mut() {
            Some(Frame::Activation(activation)) => Some(activation),
            _ => None,
        }
    }

    /// A function begins. Without its table the frame is not known, and what it accesses is the caller's.
    pub fn activation(&mut self, process: u64, table: Option<Rc<Table>>, walked: &mut Walked, sink: &mut Sink<'_>) {
        if process != self.process {
            (self.process, self.count) = (process, 0);
        }
        self.count += 1;
        walked.activations += 1;
        let Some(table) = table else {
            walked.misfits += 1;
            self.tell(sink, Step::Lost);
            return;
        };
        let mut arguments: Vec<Vec<Register>> = vec![Vec::new(); table.parameters];
        self.skip_unseen(walked, sink);
        if let Some(caller) = self.top() {
            let known = Register(caller.table.registers + KNOWN);
            if let Some(call) = &caller.call {
                let is_callee = call.callee == 0 || call.callee == table.hash;
                let all: FxHashSet<Register> = call.arguments.iter().flat_map(|roots| roots.iter().copied()).collect();
                let all: Vec<Register> = all.into_iter().chain(call.reads.then_some(known)).collect();
                for (number, argument) in arguments.iter_mut().enumerate() {
                    *argument = match call.arguments.get(number) {
                        Some(roots) if is_callee => roots.to_vec(),
                        _ if is_callee => Vec::new(),
                        _ => all.clone(),
                    };
                }
            }
        }
        let arguments: Vec<&[Register]> = arguments.iter().map(Vec::as_slice).collect();
        self.tell(sink, Step::Enter { arguments: &arguments });
        let number = self.process << rashomon_abi::record::PROCESS_SHIFT | self.count;
        let state = State::At(0);
        let (segment, block, previous) = (0, 0, u64::MAX);
        self.frames.push(Frame::Activation(Activation {
            table,
            number,
            segment,
            block,
            previous,
            state,
            call: None,
            copies: None,
        }));
        self.begin(0, sink);
    }

    pub fn segment(&mut self, segment: u64, walked: &mut Walked, sink: &mut Sink<'_>) {
        walked.segments += 1;
        self.skip_unseen(walked, sink);
        let accepts = |frame: &Frame| match frame {
            Frame::Activation(Activation { state: State::Told(all), .. }) => all.contains(&segment),
            _ => false,
        };
        let above = self.frames.iter().rev().take_while(|frame| !matches!(frame, Frame::Handler));
        let Some(above) = above.map(accepts).position(|accepts| accepts) else {
            walked.misfits += 1;
            self.tell(sink, Step::Lost);
            return;
        };
        (0..above).for_each(|_| self.leave(walked, sink));
        self.returns(sink);
        self.begin(segment, sink);
    }

    pub fn resume(&mut self, activation: u64, segment: u64, walked: &mut Walked, sink: &mut Sink<'_>) {
        walked.segments += 1;
        self.skip_unseen(walked, sink);
        let is_it = |frame: &Frame| matches!(frame, Frame::Activation(one) if one.number == activation);
        let Some(at) = self.frames.iter().rposition(is_it) else {
            walked.misfits += 1;
            self.tell(sink, Step::Lost);
            return;
        };
        while self.frames.len() > at + 1 {
            self.leave(walked, sink);
        }
        self.returns(sink);
        self.begin(segment, sink);
    }

    pub fn interrupted(&mut self) {
        self.frames.push(Frame::Handler);
    }

    pub fn continues(&mut self, walked: &mut Walked, sink: &mut Sink<'_>) {
        if !self.frames.iter().any(|frame| matches!(frame, Frame::Handler)) {
            return;
        }
        while matches!(self.frames.last(), Some(Frame::Activation(_))) {
            self.leave(walked, sink);
        }
        self.frames.pop();
    }

    /// The innermost frame ends otherwise than by a return.
    fn leave(&mut self, walked: &mut Walked, sink: &mut Sink<'_>) {
        if let Some(Frame::Activation(_)) = self.frames.pop() {
            walked.left += 1;
            self.tell(sink, Step::Lost);
            self.tell(sink, Step::Exit { result: &[], into: None });
        }
    }

    /// The call of the innermost activation has returned.
    fn returns(&mut self, sink: &mut Sink<'_>) {
        let (thread, line) = (self.thread, self.line);
        let Some(top) = self.top() else { return };
        let Some(call) = top.call.take() else { return };
        let Some(into) = call.into.filter(|_| !call.returned) else { return };
        let known = Register(top.table.registers + KNOWN);
        let from: Vec<Register> = call.arguments.iter().flat_map(|roots| roots.iter().copied()).collect();
        let from: Vec<Register> = from.into_iter().chain(call.reads.then_some(known)).collect();
        sink(thread, line, Step::Compute { into, from: &from });
    }

    /// The innermost activation goes on with a segment.
    fn begin(&mut self, segment: u64, sink: &mut Sink<'_>) {
        self.enter(segment, sink);
        self.go_on(sink);
    }

    fn enter(&mut self, segment: u64, sink: &mut Sink<'_>) {
        let (thread, line) = (self.thread, self.line);
        let Some(top) = self.top() else { return };
        let table = Rc::clone(&top.table);
        let code = &table.segments[segment as usize];
        top.segment = segment;
        let mut at = 0;
        if let Some(block) = code.block {
            (top.previous, top.block) = (top.block, block);
            at = phis(thread, line, top.previous, &table, &code.ops, sink);
            if table.meetings.contains(&block) {
                sink(thread, line, Step::Reach { meeting: Meeting(block as u32) });
            }
        }
        top.state = State::At(at);
    }

    /// Goes on up to what has to be recorded.
    fn go_on(&mut self, sink: &mut Sink<'_>) {
        let mut jumps = 0;
        loop {
            let (thread, line) = (self.thread, self.line);
            let Some(top) = self.top() else { return };
            let State::At(at) = top.state else { return };
            let table = Rc::clone(&top.table);
            let op = &table.segments[top.segment as usize].ops[at];
            match op {
                Op::Read { .. } | Op::Write { .. } | Op::Atomic { .. } | Op::Copy | Op::Fill { .. } => return,
                Op::Phi { .. } => {}
                Op::Compute { into, from } => sink(thread, line, Step::Compute { into: *into, from }),
                Op::Branch { on, meeting } => sink(thread, line, Step::Branch { on, meeting: Meeting(*meeting as u32) }),
                Op::Call { tells, callee, into, arguments } => {
                    let (tells, callee, into, arguments) = (*tells, *callee, *into, arguments.clone());
                    if callee == 0 {
                        sink(thread, line, Step::Lost);
                    } else if !tells {
                        let from: Vec<Register> = arguments.iter().flat_map(|roots| roots.iter().copied()).collect();
                        sink(thread, line, Step::Outside { from: &from, accesses: false });
                    }
                    top.call = Some(Call { tells, callee, into, arguments, reads: false, returned: false });
                    top.state = State::At(at + 1);
                    if tells {
                        return;
                    }
                    continue;
                }
                Op::GoOn(next) => {
                    if table.segments[*next as usize].told {
                        top.state = State::Told(vec![*next]);
                        return;
                    }
                    // A loop in which nothing is recorded.
                    jumps += 1;
                    if jumps > table.segments.len() {
                        top.state = State::Told(Vec::new());
                        return;
                    }
                    self.enter(*next, sink);
                    continue;
                }
                Op::Told(next) => {
                    top.state = State::Told(next.clone());
                    return;
                }
                Op::Leave => {
                    top.state = State::Told(Vec::new());
                    return;
                }
                Op::Return(result) => {
                    let hash = table.hash;
                    self.frames.pop();
                    if !self.gives(hash, result, sink) {
                        return;
                    }
                    jumps = 0;
                    continue;
                }
            }
            if let Some(top) = self.top() {
                top.state = State::At(at + 1);
            }
        }
    }

    /// A function has returned to whoever is now innermost. Whether that goes on at once.
    fn gives(&mut self, hash: u64, result: &[Register], sink: &mut Sink<'_>) -> bool {
        let mut into = None;
        let mut goes_on = false;
        let (thread, line) = (self.thread, self.line);
        let mut knows = None;
        if let Some(caller) = self.top()
            && let Some(call) = &mut caller.call
        {
            if call.callee == 0 || call.callee == hash {
                (into, call.returned) = (call.into, true);
                goes_on = call.tells;
            } else {
                // Code without tables has called back, and goes on with the result.
                let read = Register(caller.table.registers + READ);
                into = Some(read);
                knows = Some((read, Register(caller.table.registers + KNOWN)));
                call.reads = true;
            }
        }
        self.tell(sink, Step::Exit { result, into });
        if let Some((read, known)) = knows {
            sink(thread, line, Step::Compute { into: known, from: &[known, read] });
            sink(thread, line, Step::Outside { from: &[read], accesses: false });
        }
        if goes_on && let Some(caller) = self.top() {
            caller.call = None;
        }
        goes_on
    }

    /// Whether the innermost activation stands at an access.
    fn stands_at(&mut self) -> Option<(Rc<Table>, u64, usize)> {
        let top = self.top()?;
        match top.state {
            // At a call of a function that tells itself it waits for that.
            State::At(at) if top.call.as_ref().is_none_or(|call| !call.tells) => Some((Rc::clone(&top.table), top.segment, at)),
            _ => None,
        }
    }

    /// Accesses of a segment that were not recorded: their values depend on nothing that is known.
    fn skip_unseen(&mut self, walked: &mut Walked, sink: &mut Sink<'_>) {
        while self.skip_one(walked, sink) {}
    }

    fn skip_one(&mut self, walked: &mut Walked, sink: &mut Sink<'_>) -> bool {
        let (thread, line) = (self.thread, self.line);
        let Some((table, segment, at)) = self.stands_at() else { return false };
        match &table.segments[segment as usize].ops[at] {
            Op::Read { into, .. } | Op::Atomic { into, .. } => {
                walked.unseen += 1;
                sink(thread, line, Step::Lost);
                sink(thread, line, Step::Compute { into: *into, from: &[] });
            }
            Op::Write { .. } => {
                walked.unseen += 1;
                sink(thread, line, Step::Lost);
            }
            // There may be nothing to copy.
            Op::Copy | Op::Fill { .. } => {}
            _ => return false,
        }
        self.pass(at, sink);
        true
    }

    fn pass(&mut self, at: usize, sink: &mut Sink<'_>) {
        if let Some(top) = self.top() {
            top.copies = None;
            top.state = State::At(at + 1);
        }
        self.go_on(sink);
    }

    pub fn access(&mut self, accessed: Accessed, walked: &mut Walked, sink: &mut Sink<'_>) {
        while let Some((table, segment, at)) = self.stands_at() {
            let op = &table.segments[segment as usize].ops[at];
            if self.place(op, accessed, sink) {
                walked.placed += 1;
                if self.top().is_none_or(|top| top.copies.is_none()) {
                    self.pass(at, sink);
                }
                return;
            }
            let copied = self.top().and_then(|top| top.copies.take());
            if !self.skip_one(walked, sink) {
                break;
            }
            // There was nothing to copy: what was taken for the read of a copy was another one.
            if let Some((start, len)) = copied {
                let bytes = Bytes::new(start, len);
                self.access(Accessed { bytes, reads: true, writes: false, atomic: None }, walked, sink);
            }
        }
        walked.outside += 1;
        self.outside(accessed, sink);
    }

    /// Whether the access is this step.
    fn place(&mut self, op: &Op, accessed: Accessed, sink: &mut Sink<'_>) -> bool {
        let bytes = accessed.bytes;
        match (op, accessed.atomic) {
            (Op::Read { into, address }, None) if accessed.reads => self.tell(sink, Step::Load { bytes, address, into: *into }),
            (Op::Write { from, address }, None) if accessed.writes => self.tell(sink, Step::Store { bytes, address, from }),
            (Op::Fill { from }, None) if accessed.writes => self.tell(sink, Step::Fill { bytes, from }),
            (Op::Copy, None) => {
                let Some(top) = self.top() else { return false };
                match top.copies {
                    None if accessed.reads => top.copies = Some((bytes.start, bytes.len)),
                    Some((from, len)) if accessed.writes && len == bytes.len => {
                        top.copies = None;
                        self.tell(sink, Step::Copy { from, to: bytes.start, len });
                    }
                    _ => return false,
                }
            }
            (Op::Atomic { into, from, address }, Some(_)) => self.atomic(accessed, *into, from, address, sink),
            _ => return false,
        }
        true
    }

    /// Of code without tables, during a call or with no activation at all.
    fn outside(&mut self, accessed: Accessed, sink: &mut Sink<'_>) {
        let (mut read, mut known) = (Register(0), None);
        let mut from: Vec<Register> = Vec::new();
        if let Some(top) = self.top() {
            (read, known) = (Register(top.table.registers + READ), Some(Register(top.table.registers + KNOWN)));
            if let Some(call) = &mut top.call {
                from.extend(call.arguments.iter().flat_map(|roots| roots.iter().copied()));
                from.extend(known.filter(|_| call.reads));
                call.reads |= accessed.reads;
            }
        }
        self.tell(sink, Step::Outside { from: &from, accesses: true });
        if accessed.atomic.is_some() {
            self.atomic(accessed, read, &from, &[], sink);
        } else {
            let bytes = accessed.bytes;
            if accessed.reads {
                self.tell(sink, Step::Load { bytes, address: &[], into: read });
            }
            if accessed.writes {
                self.tell(sink, Step::Store { bytes, address: &[], from: &from });
            }
        }
        if let Some(known) = known.filter(|_| accessed.reads) {
            from.retain(|one| *one == known);
            from.push(read);
            self.tell(sink, Step::Compute { into: known, from: &from });
        }
    }

    fn atomic(&self, accessed: Accessed, into: Register, from: &[Register], address: &[Register], sink: &mut Sink<'_>) {
        let bytes = accessed.bytes;
        let (acquires, releases) = accessed.atomic.unwrap_or_default();
        let (lock, object) = (Lock::of_atomic(bytes), Object(Lock::of_atomic(bytes).0));
        self.tell(sink, Step::Acquire { lock, mode: Mode::Exclusive });
        if acquires {
            self.tell(sink, Step::Wait { object });
        }
        if accessed.reads {
            self.tell(sink, Step::Load { bytes, address, into });
        }
        if accessed.writes {
            self.tell(sink, Step::Store { bytes, address, from });
        }
        if releases {
            self.tell(sink, Step::Signal { object });
        }
        self.tell(sink, Step::Release { lock });
    }
}

/// The phis at the begin of a block, all at once. How many there are.
fn phis(thread: Thread, line: Line, previous: u64, table: &Table, ops: &[Op], sink: &mut Sink<'_>) -> usize {
    let all: Vec<(Register, &[Register])> = ops
        .iter()
        .map_while(|op| match op {
            Op::Phi { into, ways } => {
                let way = ways.iter().find(|(from, _)| *from == previous);
                Some((*into, way.map_or(&[][..], |(_, roots)| roots)))
            }
            _ => None,
        })
        .collect();
    let overwrites =
        |(number, (into, _)): (usize, &(Register, &[Register]))| all[number + 1..].iter().any(|(_, roots)| roots.contains(into));
    let exchange = all.iter().enumerate().any(overwrites);
    let aside = |number: usize| Register(table.registers + EXCHANGE + number as u32);
    for (number, (into, from)) in all.iter().enumerate() {
        let into = if exchange { aside(number) } else { *into };
        sink(thread, line, Step::Compute { into, from });
    }
    for (number, (into, _)) in all.iter().enumerate().filter(|_| exchange) {
        sink(thread, line, Step::Compute { into: *into, from: &[aside(number)] });
    }
    all.len()
}
