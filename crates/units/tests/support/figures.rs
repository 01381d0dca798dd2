//! The functions of the paper's figures, as their instrumentation would tell them.
#![allow(dead_code, reason = "each test uses a part of it")]

use super::{Code, M, N, cell, variable};

/// Fig. 2. Lines are those of the figure, behind `base`.
pub fn scale_vector(base: u32, locks: bool) -> Code {
    let lock = |code: Code| if locks { code.acquire(M) } else { code };
    let unlock = |code: Code| if locks { code.release(M) } else { code };
    let (x, y) = (variable('x'), variable('y'));
    let code = lock(Code::new().at(base + 1).enter(&[]));
    let code = unlock(code.at(base + 2).load(x, 0).load(y, 1));
    // max ← a if a > b else b, of which the first is taken.
    let code = code.at(base + 4).branch(&[0, 1], 1).compute(2, &[0]).reach(1);
    let code = lock(code.at(base + 6)).at(base + 7).load(x, 3).load(y, 4).store(x, &[3, 2]).store(y, &[4, 2]);
    unlock(code).exit(&[], None)
}

/// Fig. 13. sqrt() is not instrumented.
pub fn normalize(base: u32) -> Code {
    let (a, b) = (variable('a'), variable('b'));
    let code = Code::new().enter(&[]).acquire(M);
    let code = code.at(base + 3).load(a, 0).load(a, 1).load(b, 2).load(b, 3).compute(4, &[0, 1, 2, 3]);
    let code = code.at(base + 4).load(a, 5).store(a, &[5, 4]).load(b, 6).store(b, &[6, 4]);
    code.release(M).exit(&[], None)
}

/// Fig. 14: `append`. The string is shared, and so are mCont (c) and mLen (l).
pub fn append(base: u32) -> Code {
    let code = Code::new().at(base + 1).enter(&[]).acquire(M).at(base + 3).load(variable('c'), 0).load(variable('s'), 1);
    // f(mCont, s)
    let code = code.enter(&[&[0], &[1]]).compute(2, &[0, 1]).exit(&[2], Some(3));
    code.store(variable('c'), &[3]).release(M).exit(&[], None)
}

/// Fig. 14: `reflow`.
pub fn reflow(base: u32) -> Code {
    let code = Code::new().at(base + 6).enter(&[]).acquire(N).at(base + 8).load(variable('l'), 0).load(variable('s'), 1);
    let code = code.enter(&[&[0], &[1]]).compute(2, &[0, 1]).exit(&[2], Some(3));
    code.store(variable('l'), &[3]).release(N).exit(&[], None)
}

/// Fig. 15: `strlen` of a string of `len` bytes; its result goes to register `into`.
fn strlen(base: u32, code: Code, string: char, len: u32, into: u32) -> Code {
    let mut code = code.at(base + 12).enter(&[&[]]).at(base + 13).compute(1, &[]);
    for index in 0..=len {
        code = code.at(base + 14).load_through(cell(string, index), &[0, 1], 2).branch(&[2], 9);
        if index < len {
            code = code.compute(1, &[1]);
        }
    }
    code.reach(9).at(base + 15).exit(&[1], Some(into))
}

/// Fig. 15: `bufferAppend` of a string of `len` bytes that goes to outBuf (o) from `at`; outCnt is n. The buffer is not flushed.
pub fn buffer_append(base: u32, string: char, len: u32, at: u32) -> Code {
    let count = variable('n');
    let code = strlen(base, Code::new().at(base + 1).enter(&[&[]]).at(base + 2), string, len, 1);
    let mut code = code.at(base + 3).load(count, 2).branch(&[1, 2], 5).reach(5).at(base + 7).compute(3, &[]);
    for index in 0..=len {
        code = code.at(base + 7).branch(&[3, 1], 8);
        if index < len {
            code = code.at(base + 8).load_through(cell(string, index), &[0, 3], 4).load(count, 5);
            code = code.store_through(cell('o', at + index), &[5, 3], &[4]).at(base + 7).compute(3, &[3]);
        }
    }
    code.reach(8).at(base + 10).load(count, 6).store(count, &[6, 1]).exit(&[], None)
}

/// tmp = a; a = b; b = tmp;
pub fn swap(line: u32, a: char, b: char) -> Code {
    let code = Code::new().at(line).enter(&[]).load(variable(a), 0);
    let code = code.at(line + 1).load(variable(b), 1).store(variable(a), &[1]);
    code.at(line + 2).store(variable(b), &[0]).exit(&[], None)
}

pub fn inc(line: u32, name: char) -> Code {
    Code::new().at(line).enter(&[]).load(variable(name), 0).store(variable(name), &[0]).exit(&[], None)
}

/// Fig. 16: h is list_head; the object's members are a, b and n (next).
pub fn dequeue_and_fill(base: u32) -> Code {
    let code = Code::new().at(base + 2).enter(&[&[], &[]]).at(base + 3).load(variable('h'), 2);
    let code = code.at(base + 4).store_through(variable('a'), &[2], &[0]).store_through(variable('b'), &[2], &[1]);
    let code = code.at(base + 5).load_through(variable('n'), &[2], 3).store(variable('h'), &[3]);
    code.at(base + 6).exit(&[2], None)
}
