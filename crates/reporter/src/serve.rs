//! A session over two streams: questions come in, answers go out, until the runtime is gone.

use crate::error::ReporterError;
use crate::session::Session;
use rashomon_abi::report::{HEAD_WORDS, head};
use std::io::{ErrorKind, Read, Write};

/// Holds the conversation. Ends without error when the input ends between two messages.
pub fn serve(mut input: impl Read, mut output: impl Write) -> Result<(), ReporterError> {
    let mut session = Session::default();
    for number in 1.. {
        let Some(first) = words(&mut input, HEAD_WORDS, true)? else { return Ok(()) };
        let [first, second] = [first[0], first[1]];
        let Some((kind, length)) = head([first, second]) else {
            return Err(ReporterError::NoMessage { number, first: u64::from_le(first), second: u64::from_le(second) });
        };
        let Some(body) = words(&mut input, length, false)? else { return Ok(()) };
        if let Some(answer) = session.handle(kind, &body)? {
            let bytes: Vec<u8> = answer.encode().iter().flat_map(|word| word.to_ne_bytes()).collect();
            output.write_all(&bytes).and_then(|()| output.flush()).map_err(ReporterError::Write)?;
        }
    }
    Ok(())
}

/// Words as they lie in memory; `None` at the end of the input, where it may end.
fn words(input: &mut impl Read, count: usize, may_end: bool) -> Result<Option<Vec<u64>>, ReporterError> {
    let mut bytes = vec![0_u8; count * 8];
    match input.read_exact(&mut bytes) {
        Ok(()) => Ok(Some(bytes.chunks_exact(8).map(|chunk| u64::from_ne_bytes(chunk.try_into().unwrap_or_default())).collect())),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof && may_end => Ok(None),
        Err(error) => Err(ReporterError::Read(error)),
    }
}
