//! The few messages of Perfetto's protobuf format that a trace of threads needs.
//!
//! Field numbers are those of `protos/perfetto/trace` (`trace_packet.proto`, `track_event.proto`, `track_descriptor.proto`). A
//! trace is a sequence of field 1 of the message `Trace`, so packets can be written one after the other. Names are written out
//! each time; interning would make files smaller, and readers and this writer larger.

use std::io::{self, Write};

/// Packets of one writer share it.
const SEQUENCE: u64 = 1;

/// A message under construction.
#[derive(Clone, Debug, Default)]
pub struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn key(&mut self, field: u32, wire_type: u64) {
        self.varint(u64::from(field) << 3 | wire_type);
    }

    pub fn number(mut self, field: u32, value: u64) -> Self {
        self.key(field, 0);
        self.varint(value);
        self
    }

    fn fixed(mut self, field: u32, value: u64) -> Self {
        self.key(field, 1);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    fn bytes(mut self, field: u32, bytes: &[u8]) -> Self {
        self.key(field, 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    pub fn text(self, field: u32, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    fn message(self, field: u32, inner: &Self) -> Self {
        self.bytes(field, &inner.0)
    }

    /// As a packet of the trace.
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&Self::default().bytes(1, &self.0).0)
    }
}

/// What an event of a track is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Begin = 1,
    End = 2,
    Instant = 3,
}

/// A track: `process` for the one that all others belong to.
pub fn write_process(out: &mut dyn Write, track: u64, pid: u64, name: &str) -> io::Result<()> {
    let process = Message::default().number(1, pid).text(6, name);
    let descriptor = Message::default().number(1, track).message(3, &process);
    descriptor_packet(&descriptor, out)
}

/// The track of a thread. `number` orders the tracks and stands for a thread id.
pub fn write_thread(out: &mut dyn Write, track: u64, pid: u64, number: u64, name: &str) -> io::Result<()> {
    let thread = Message::default().number(1, pid).number(2, number).text(5, name);
    let descriptor = Message::default().number(1, track).message(4, &thread);
    descriptor_packet(&descriptor, out)
}

/// A track below another one.
pub fn write_lane(out: &mut dyn Write, track: u64, parent: u64, name: &str) -> io::Result<()> {
    let descriptor = Message::default().number(1, track).text(2, name).number(5, parent);
    descriptor_packet(&descriptor, out)
}

fn descriptor_packet(descriptor: &Message, out: &mut dyn Write) -> io::Result<()> {
    Message::default().number(10, SEQUENCE).message(60, descriptor).write(out)
}

/// An event of a track.
#[derive(Clone, Debug)]
pub struct TrackEvent {
    time: u64,
    message: Message,
}

impl TrackEvent {
    pub fn new(kind: Kind, track: u64, time: u64) -> Self {
        Self { time, message: Message::default().number(9, kind as u64).number(11, track) }
    }

    pub fn named(mut self, category: &str, name: &str) -> Self {
        self.message = self.message.text(22, category).text(23, name);
        self
    }

    /// The flow goes on from here.
    pub fn begins_flow(mut self, flow: u64) -> Self {
        self.message = self.message.fixed(47, flow);
        self
    }

    /// It ends here.
    pub fn ends_flow(mut self, flow: u64) -> Self {
        self.message = self.message.fixed(48, flow);
        self
    }

    /// Something more to know about it.
    pub fn with_text(mut self, name: &str, value: &str) -> Self {
        self.message = self.message.message(4, &Message::default().text(10, name).text(6, value));
        self
    }

    pub fn with_number(mut self, name: &str, value: u64) -> Self {
        self.message = self.message.message(4, &Message::default().text(10, name).number(3, value));
        self
    }

    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        Message::default().number(8, self.time).number(10, SEQUENCE).message(11, &self.message).write(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The encoding that the protobuf documentation gives for these values.
    #[test]
    fn fields_are_encoded_as_protobuf_says() {
        assert_eq!(Message::default().number(1, 150).0, [0x08, 0x96, 0x01]);
        assert_eq!(Message::default().text(2, "testing").0, b"\x12\x07testing");
        assert_eq!(Message::default().number(60, 0).0, [0xe0, 0x03, 0x00]);
        assert_eq!(Message::default().fixed(47, 1).0, [0xf9, 0x02, 1, 0, 0, 0, 0, 0, 0, 0]);
        let inner = Message::default().number(1, 150);
        assert_eq!(Message::default().message(3, &inner).0, [0x1a, 0x03, 0x08, 0x96, 0x01]);
        assert_eq!(Message::default().number(1, u64::MAX).0.len(), 11);
    }
}
