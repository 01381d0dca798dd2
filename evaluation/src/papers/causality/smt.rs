//! Z3 as a process, for comparison: problems of `rashomon-sat` as SMT-LIB2 in difference logic (`QF_IDL`).

use crate::common::debian;
use anyhow::{Context as _, Result, bail};
use rashomon_sat::{Literal, Problem};
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = "z3";
const READY: &str = "ready";

pub struct Z3 {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    pub version: String,
}

impl Z3 {
    /// Debian's package, installed where it is missing. `None`, told: it cannot be had.
    pub fn start() -> Option<Self> {
        match Self::try_start() {
            Ok(solver) => Some(solver),
            Err(error) => {
                eprintln!("z3: {error:#}; what it would say is not compared");
                None
            }
        }
    }

    fn try_start() -> Result<Self> {
        debian::provide(&[(PROGRAM, debian::starts(PROGRAM))])?;
        let version = Command::new(PROGRAM).arg("--version").output().context("cannot start z3")?;
        let mut command = Command::new(PROGRAM);
        command.args(["-in", "-smt2"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot start z3")?;
        let input = child.stdin.take().context("z3 has no input")?;
        let output = BufReader::new(child.stdout.take().context("z3 has no output")?);
        Ok(Self { child, input, output, version: String::from_utf8_lossy(&version.stdout).trim().to_owned() })
    }

    /// Whether the problem has a solution, if that is known within the time; and what the answer took, once the problem was read.
    pub fn solve(&mut self, problem: &Problem, within: Duration) -> Result<(Option<bool>, Duration)> {
        let begin = format!("(reset)\n(set-option :timeout {})\n", within.as_millis());
        writeln!(self.input, "{begin}{}(echo \"{READY}\")", script(problem))?;
        let ready = self.line()?;
        if ready != READY {
            bail!("z3 refuses a problem: {ready}");
        }
        let start = Instant::now();
        self.input.write_all(b"(check-sat)\n")?;
        let answer = match self.line()?.as_str() {
            "sat" => Some(true),
            "unsat" => Some(false),
            "unknown" | "timeout" => None,
            other => bail!("z3 answers {other}"),
        };
        Ok((answer, start.elapsed()))
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            bail!("z3 has ended");
        }
        Ok(line.trim().to_owned())
    }
}

impl Drop for Z3 {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _waited = self.child.wait();
    }
}

/// Nodes are integers, an edge says that one is less than another.
fn script(problem: &Problem) -> String {
    let mut text = String::from("(set-logic QF_IDL)\n");
    let literal = |literal: Literal| {
        let variable = format!("x{}", literal.variable().0);
        if literal.sign() { variable } else { format!("(not {variable})") }
    };
    // Writing to a string does not fail.
    let mut line = |arguments: std::fmt::Arguments<'_>| _ = text.write_fmt(format_args!("{arguments}\n"));
    (0..problem.variables()).for_each(|variable| line(format_args!("(declare-const x{variable} Bool)")));
    (0..problem.nodes()).for_each(|node| line(format_args!("(declare-const n{node} Int)")));
    for pair in problem.chains().iter().flat_map(|chain| chain.windows(2)) {
        line(format_args!("(assert (< n{} n{}))", pair[0].0, pair[1].0));
    }
    for edge in problem.fixed() {
        line(format_args!("(assert (< n{} n{}))", edge.from.0, edge.to.0));
    }
    for &(condition, edge) in problem.conditional() {
        line(format_args!("(assert (=> {} (< n{} n{})))", literal(condition), edge.from.0, edge.to.0));
    }
    for clause in problem.clauses() {
        match clause.as_slice() {
            [] => line(format_args!("(assert false)")),
            [one] => line(format_args!("(assert {})", literal(*one))),
            more => {
                let literals: Vec<String> = more.iter().map(|&one| literal(one)).collect();
                line(format_args!("(assert (or {}))", literals.join(" ")));
            }
        }
    }
    text
}
