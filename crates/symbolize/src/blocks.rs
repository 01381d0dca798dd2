//! A file as readers of object files want it, who ask for a few bytes tens of thousands of times: whole blocks are read, and some
//! are kept.

use object::read::ReadCacheOps;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

const BLOCK: u64 = 1 << 14;
/// Blocks that are kept, each at a place of its own: readers go to and fro between tables.
const KEPT: u64 = 64;

/// The file, and blocks of it that were looked at.
#[derive(Debug)]
pub struct Blocks {
    file: File,
    position: u64,
    /// By number modulo [`KEPT`]: where each begins, and its bytes (fewer at the file's end).
    kept: Vec<(u64, Vec<u8>)>,
}

impl Blocks {
    pub fn of(file: File) -> Self {
        Self { file, position: 0, kept: vec![(0, Vec::new()); KEPT as usize] }
    }

    /// The bytes from the position to the end of its block. Empty at the file's end.
    fn at_position(&mut self) -> io::Result<&[u8]> {
        let (number, offset) = (self.position / BLOCK, (self.position % BLOCK) as usize);
        let (start, block) = &mut self.kept[(number % KEPT) as usize];
        if *start != number * BLOCK || block.len() <= offset {
            *start = number * BLOCK;
            block.resize(BLOCK as usize, 0);
            let mut filled = 0;
            while filled < block.len() {
                match self.file.read_at(&mut block[filled..], *start + filled as u64) {
                    Ok(0) => break,
                    Ok(bytes) => filled += bytes,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => {
                        block.clear();
                        return Err(error);
                    }
                }
            }
            block.truncate(filled);
        }
        Ok(block.get(offset..).unwrap_or(&[]))
    }
}

impl ReadCacheOps for Blocks {
    fn len(&mut self) -> Result<u64, ()> {
        self.file.metadata().map(|metadata| metadata.len()).map_err(drop)
    }

    fn seek(&mut self, position: u64) -> Result<u64, ()> {
        self.position = position;
        Ok(position)
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ()> {
        let bytes = self.at_position().map_err(drop)?;
        let count = bytes.len().min(buffer.len());
        buffer[..count].copy_from_slice(&bytes[..count]);
        self.position += count as u64;
        Ok(count)
    }

    fn read_exact(&mut self, buffer: &mut [u8]) -> Result<(), ()> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.read(&mut buffer[filled..])? {
                0 => return Err(()),
                bytes => filled += bytes,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_range_is_as_in_the_file() {
        let content: Vec<u8> = (0..3 * BLOCK + 5).map(|at| (at % 251) as u8 ^ (at / BLOCK) as u8).collect();
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&content, 0).unwrap();
        let mut blocks = Blocks::of(file);
        assert_eq!(blocks.len(), Ok(content.len() as u64));
        let edges = [0, 1, 7, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 3 * BLOCK, 3 * BLOCK + 4, 3 * BLOCK + 5];
        for from in edges {
            for to in edges.into_iter().filter(|&to| to >= from) {
                let mut buffer = vec![0; (to - from) as usize];
                blocks.seek(from).unwrap();
                assert_eq!(blocks.read_exact(&mut buffer), Ok(()));
                assert_eq!(buffer, content[from as usize..to as usize], "{from}..{to}");
            }
            blocks.seek(from).unwrap();
            let mut beyond = vec![0; content.len() + 1];
            assert_eq!(blocks.read_exact(&mut beyond), Err(()), "{from}");
        }
        blocks.seek(1 << 40).unwrap();
        assert_eq!(blocks.read(&mut [0]), Ok(0), "behind the end is nothing");
    }
}
