//! From text to what a script says. `docs/reference/csp.md` describes the subset of CSP_M.
//!
//! Patterns are read as expressions and made patterns of when what follows says that they are (as in the parser of FDR): only
//! then `f(x) = …`, `x <- S` and a condition differ.

mod expression;
mod pattern;

use crate::builtin::Builtin;
use crate::error::{Place, ScriptError};
use crate::lexer::{Token, Word, words};
use crate::refine::Model;
use crate::syntax::{
    Asked, Asserted, Channel, Clause, Definition, DefinitionId, Expression, Global, Kind, Program, Symbol, TypeBody,
    TypeDeclaration,
};
use rustc_hash::FxHashMap;

/// Expressions within each other, in parentheses and behind prefixes.
const NESTING: usize = 200;
/// Operators within each other.
const HEIGHT: u16 = 500;
/// Scripts that include each other, and all that are included.
const INCLUDED: usize = 8;
const FILES: usize = 64;
/// Bytes of all texts.
const TEXT: usize = 16 << 20;

const KEYWORDS: [&str; 20] = [
    "channel",
    "assert",
    "datatype",
    "subtype",
    "nametype",
    "include",
    "transparent",
    "external",
    "module",
    "print",
    "if",
    "then",
    "else",
    "let",
    "within",
    "not",
    "and",
    "or",
    "STOP",
    "SKIP",
];

const DECLARATION: &str = "`channel`, `datatype`, `subtype`, `nametype`, `include`, `transparent`, `assert` or a definition \
                           `NAME = process`";

/// Reads what a script includes, by its name.
pub type Include<'i> = dyn FnMut(&str) -> Result<String, String> + 'i;

pub fn program(text: &str, include: &mut Include<'_>) -> Result<(Program, Vec<Asserted>), ScriptError> {
    let mut parser = Parser {
        include,
        source: Source::default(),
        program: Program::default(),
        symbols: FxHashMap::default(),
        assertions: Vec::new(),
        within: 0,
        bytes: 0,
    };
    parser.read(text, 0)?;
    let (mut program, symbols) = (parser.program, parser.symbols);
    for (name, symbol) in symbols {
        if let Some(builtin) = Builtin::named(&name) {
            program.globals.entry(symbol).or_insert(Global::Builtin(builtin));
        }
    }
    Ok((program, parser.assertions))
}

/// One text that is being read.
#[derive(Default)]
struct Source {
    tokens: Vec<Token>,
    next: usize,
    depth: usize,
    /// `>` ends a sequence here.
    in_sequence: bool,
}

struct Parser<'i, 'f> {
    include: &'i mut Include<'f>,
    source: Source,
    program: Program,
    symbols: FxHashMap<String, Symbol>,
    assertions: Vec<Asserted>,
    within: usize,
    bytes: usize,
}

impl Parser<'_, '_> {
    fn read(&mut self, text: &str, file: u16) -> Result<(), ScriptError> {
        self.bytes += text.len();
        let before = std::mem::replace(&mut self.source, Source { tokens: words(text, file), ..Source::default() });
        let mut last = None;
        while *self.word() != Word::End {
            last = self.declaration(text, last)?;
        }
        self.source = before;
        Ok(())
    }

    fn word(&self) -> &Word {
        &self.source.tokens[self.source.next].word
    }

    fn place(&self) -> Place {
        self.source.tokens[self.source.next].place
    }

    fn advance(&mut self) {
        self.source.next = (self.source.next + 1).min(self.source.tokens.len() - 1);
    }

    fn wrong<T>(&self, expected: &str) -> Result<T, ScriptError> {
        let (expected, found) = match self.word() {
            Word::Unclosed => ("`-}` behind this `{-`", String::from("the end of the script")),
            word => (expected, found(word)),
        };
        Err(self.program.error(self.place(), expected, found))
    }

    fn wrong_at<T>(&self, place: Place, expected: &str, found: &str) -> Result<T, ScriptError> {
        Err(self.program.error(place, expected, found.to_owned()))
    }

    fn is(&self, sign: &str) -> bool {
        matches!(self.word(), Word::Sign(found) if *found == sign)
    }

    fn take(&mut self, sign: &str) -> bool {
        let there = self.is(sign);
        if there {
            self.advance();
        }
        there
    }

    fn need(&mut self, sign: &str) -> Result<(), ScriptError> {
        if self.take(sign) { Ok(()) } else { self.wrong(&format!("`{sign}`")) }
    }

    fn is_keyword(&self, keyword: &str) -> bool {
        matches!(self.word(), Word::Name(name) if name == keyword)
    }

    fn keyword(&mut self, keyword: &str) -> bool {
        let there = self.is_keyword(keyword);
        if there {
            self.advance();
        }
        there
    }

    fn need_keyword(&mut self, keyword: &str) -> Result<(), ScriptError> {
        if self.keyword(keyword) { Ok(()) } else { self.wrong(&format!("`{keyword}`")) }
    }

    fn symbol(&mut self, name: &str) -> Symbol {
        let next = Symbol(self.program.symbols.len() as u32);
        *self.symbols.entry(name.to_owned()).or_insert_with_key(|name| {
            self.program.symbols.push(name.clone());
            next
        })
    }

    fn name(&mut self, expected: &str) -> Result<Symbol, ScriptError> {
        match self.word() {
            Word::Name(name) if !KEYWORDS.contains(&name.as_str()) && name != "_" => {
                let name = name.clone();
                self.advance();
                Ok(self.symbol(&name))
            }
            _ => self.wrong(expected),
        }
    }

    fn made(&self, place: Place, below: u16, kind: Kind) -> Result<Expression, ScriptError> {
        if below >= HEIGHT {
            return self.wrong_at(place, &format!("at most {HEIGHT} operators within each other"), "more");
        }
        Ok(Expression { place, height: below + 1, kind })
    }

    /// What is declared is a global name; `place` is that of its name.
    fn declare(&mut self, symbol: Symbol, place: Place, global: Global, expected: &str) -> Result<(), ScriptError> {
        if self.program.globals.insert(symbol, global).is_some() {
            let found = format!("`{}`", self.program.name(symbol));
            return self.wrong_at(place, expected, &found);
        }
        Ok(())
    }

    /// Returns the definition that it was: clauses of one follow each other.
    fn declaration(&mut self, text: &str, last: Option<DefinitionId>) -> Result<Option<DefinitionId>, ScriptError> {
        let place = self.place();
        match self.word() {
            Word::Name(name) if KEYWORDS.contains(&name.as_str()) => {
                let keyword = name.clone();
                self.advance();
                match keyword.as_str() {
                    "channel" => self.channels()?,
                    "assert" => self.assertion(text, place)?,
                    "datatype" => self.datatype(true)?,
                    "subtype" => self.datatype(false)?,
                    "nametype" => self.nametype()?,
                    "transparent" => self.transparent()?,
                    "include" => self.included()?,
                    _ => return self.wrong_at(place, DECLARATION, &format!("`{keyword}`")),
                }
                Ok(None)
            }
            _ => {
                let definition = self.definition(last, DECLARATION)?;
                if last != Some(definition) {
                    let symbol = self.program.definition(definition).symbol;
                    self.declare(symbol, place, Global::Definition(definition), "a name that is not defined yet")?;
                }
                Ok(Some(definition))
            }
        }
    }

    fn definition(&mut self, last: Option<DefinitionId>, expected: &str) -> Result<DefinitionId, ScriptError> {
        let place = self.place();
        let symbol = self.name(expected)?;
        let mut patterns = Vec::new();
        if self.take("(") {
            loop {
                let pattern = self.expression(0)?;
                patterns.push(self.pattern(pattern)?);
                if !self.take(",") {
                    break;
                }
            }
            self.need(")")?;
        }
        self.need("=")?;
        let body = self.expression(0)?;
        let parameters = patterns.len();
        let clause = Clause { patterns, body };
        if let Some(last) = last
            && let Some(definition) = self.program.definitions.get_mut(last.0 as usize)
            && definition.symbol == symbol
            && definition.parameters == parameters
            && parameters > 0
        {
            definition.clauses.push(clause);
            return Ok(last);
        }
        Ok(self.defined(symbol, place, parameters, clause))
    }

    fn defined(&mut self, symbol: Symbol, place: Place, parameters: usize, clause: Clause) -> DefinitionId {
        let id = DefinitionId(self.program.definitions.len() as u32);
        self.program.definitions.push(Definition {
            symbol,
            place,
            parameters,
            clauses: vec![clause],
            group: Vec::new(),
            free: Vec::new(),
            is_process: false,
        });
        id
    }

    fn channels(&mut self) -> Result<(), ScriptError> {
        let mut names = Vec::new();
        loop {
            let place = self.place();
            names.push((self.name("the name of an event")?, place));
            if !self.take(",") {
                break;
            }
        }
        let fields = if self.take(":") { self.fields()? } else { Vec::new() };
        for (symbol, place) in names {
            let number = self.program.channels.len() as u32;
            self.declare(symbol, place, Global::Channel(number), "an event that is not declared yet")?;
            self.program.channels.push(Channel { symbol, place, fields: fields.clone() });
        }
        Ok(())
    }

    /// Types with dots between them.
    fn fields(&mut self) -> Result<Vec<Expression>, ScriptError> {
        let of = self.expression(expression::DOT)?;
        Ok(match of.kind {
            Kind::Dot(fields) => fields,
            _ => vec![of],
        })
    }

    fn datatype(&mut self, new: bool) -> Result<(), ScriptError> {
        let place = self.place();
        let symbol = self.name("the name of a type")?;
        self.need("=")?;
        let mut constructors = Vec::new();
        loop {
            let place = self.place();
            let constructor = self.name("the name of a constructor")?;
            let fields = if self.take(".") { self.fields()? } else { Vec::new() };
            if new {
                let number = Global::Constructor(self.program.constructors.len() as u32);
                self.declare(constructor, place, number, "a constructor that is not declared yet")?;
                self.program.constructors.push(constructor);
            }
            constructors.push((constructor, place, fields));
            if !self.take("|") {
                break;
            }
        }
        self.type_of(symbol, place, TypeBody::Data(constructors))
    }

    fn nametype(&mut self) -> Result<(), ScriptError> {
        let place = self.place();
        let symbol = self.name("the name of a type")?;
        self.need("=")?;
        let is = self.expression(expression::DOT)?;
        self.type_of(symbol, place, TypeBody::Name(is))
    }

    fn type_of(&mut self, symbol: Symbol, place: Place, is: TypeBody) -> Result<(), ScriptError> {
        let number = Global::Type(self.program.types.len() as u32);
        self.declare(symbol, place, number, "a type that is not declared yet")?;
        self.program.types.push(TypeDeclaration { place, is });
        Ok(())
    }

    fn transparent(&mut self) -> Result<(), ScriptError> {
        loop {
            let symbol = self.name("the name of a function")?;
            self.program.globals.insert(symbol, Global::Transparent);
            if !self.take(",") {
                return Ok(());
            }
        }
    }

    fn included(&mut self) -> Result<(), ScriptError> {
        let place = self.place();
        let Word::Text(name) = self.word().clone() else { return self.wrong("the name of a script between quotes") };
        self.advance();
        if self.within >= INCLUDED || self.program.files.len() >= FILES {
            let expected = format!("at most {FILES} included scripts, {INCLUDED} within each other");
            return self.wrong_at(place, &expected, "one more");
        }
        let text = match (self.include)(&name) {
            Ok(text) => text,
            Err(why) => return self.wrong_at(place, "a script that can be read", &why),
        };
        if self.bytes + text.len() > TEXT {
            return self.wrong_at(place, &format!("at most {TEXT} bytes of scripts"), "more");
        }
        self.program.files.push(shortened(&name).to_owned());
        self.within += 1;
        self.read(&text, self.program.files.len() as u16)?;
        self.within -= 1;
        Ok(())
    }

    /// Behind `assert`.
    fn assertion(&mut self, text: &str, place: Place) -> Result<(), ScriptError> {
        let first = self.source.next;
        let negated = self.keyword("not");
        let process = self.expression(0)?;
        let asked = if self.take("[T=") {
            Asked::Refines(Model::Traces, Box::new(self.expression(0)?))
        } else if self.take("[F=") {
            Asked::Refines(Model::StableFailures, Box::new(self.expression(0)?))
        } else if self.take("[FD=") {
            Asked::Refines(Model::FailuresDivergences, Box::new(self.expression(0)?))
        } else if self.take(":[") {
            self.property()?
        } else {
            return self.wrong("`[T=`, `[F=`, `[FD=`, `:[deadlock free]`, `:[divergence free]` or `:[deterministic]`");
        };
        let (from, to) = (self.source.tokens[first].from, self.source.tokens[self.source.next - 1].to);
        let words: Vec<&str> = text[from..to].split_whitespace().collect();
        let text = shortened(&words.join(" ")).to_owned();
        self.assertions.push(Asserted { place, text, negated, process, asked });
        Ok(())
    }

    /// Behind `:[`.
    fn property(&mut self) -> Result<Asked, ScriptError> {
        const PROPERTIES: &str = "`deadlock free`, `divergence free` or `deterministic`";
        let deterministic = self.keyword("deterministic");
        let deadlock = !deterministic && self.keyword("deadlock");
        let divergence = !deterministic && !deadlock && (self.keyword("divergence") || self.keyword("livelock"));
        if !deterministic && !((deadlock || divergence) && self.keyword("free")) {
            return self.wrong(PROPERTIES);
        }
        let mut asked = match (deterministic, deadlock) {
            (true, _) => Asked::Deterministic(Model::FailuresDivergences),
            (_, true) => Asked::DeadlockFree,
            _ => Asked::DivergenceFree,
        };
        if !self.take("[") {
            self.need("]")?;
            return Ok(asked);
        }
        if self.keyword("FD") {
            asked = if deadlock { Asked::Free } else { asked };
        } else if divergence || !self.keyword("F") {
            return self.wrong(if divergence { "`FD`" } else { "`F` or `FD`" });
        } else if deterministic {
            asked = Asked::Deterministic(Model::StableFailures);
        }
        if !self.take("]]") {
            self.need("]")?;
            self.need("]")?;
        }
        Ok(asked)
    }
}

/// At most 100 letters.
fn shortened(text: &str) -> &str {
    text.char_indices().nth(100).map_or(text, |(end, _)| &text[..end])
}

/// A word as errors name it.
fn found(word: &Word) -> String {
    match word {
        Word::Name(name) => format!("`{}`", shortened(name)),
        Word::Number(number) => format!("`{number}`"),
        Word::Text(text) => format!("\"{}\"", shortened(text).escape_debug()),
        Word::Sign(sign) => format!("`{sign}`"),
        Word::Unknown(text) => format!("`{}`", shortened(text).replace(char::is_control, "?")),
        Word::Unclosed => String::from("`{-`"),
        Word::End => String::from("the end of the script"),
    }
}
