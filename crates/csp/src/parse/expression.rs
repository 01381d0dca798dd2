//! Expressions and processes, by how tight their operators bind.

use super::{KEYWORDS, NESTING, Parser};
use crate::error::ScriptError;
use crate::lexer::Word;
use crate::syntax::{
    Clause, DefinitionId, Expression, Field, Items, Kind, Operator, Prefix, Qualifier, Replicated, Shape, Unary,
};

const HIDE: u8 = 1;
const PARALLEL: u8 = 3;
const PREFIX: u8 = 9;
pub(super) const DOT: u8 = 10;
const OR: u8 = 11;
const NOT: u8 = 13;
const LENGTH: u8 = 17;

/// Operators with two sides, all of which bind to the left, and how tight they bind.
const BINARY: [(&str, u8, Operator); 18] = [
    ("|||", 2, Operator::Interleave),
    ("|~|", 4, Operator::Internal),
    ("[]", 5, Operator::External),
    ("/\\", 6, Operator::Interrupt),
    ("[>", 7, Operator::Sliding),
    (";", 8, Operator::Sequence),
    ("==", 14, Operator::Equal),
    ("!=", 14, Operator::Unequal),
    ("<", 14, Operator::Less),
    ("<=", 14, Operator::LessOrEqual),
    (">", 14, Operator::Greater),
    (">=", 14, Operator::GreaterOrEqual),
    ("+", 15, Operator::Add),
    ("-", 15, Operator::Subtract),
    ("*", 16, Operator::Multiply),
    ("/", 16, Operator::Divide),
    ("%", 16, Operator::Remainder),
    ("^", 18, Operator::Concatenate),
];

fn highest<'e>(all: impl IntoIterator<Item = &'e Expression>) -> u16 {
    all.into_iter().map(|one| one.height).max().unwrap_or(0)
}

fn highest_of(qualifiers: &[Qualifier]) -> u16 {
    highest(qualifiers.iter().map(|qualifier| match qualifier {
        Qualifier::Each(_, of) | Qualifier::Condition(of) => of,
    }))
}

impl Parser<'_, '_> {
    /// One whose operators bind at least as tight.
    pub(super) fn expression(&mut self, least: u8) -> Result<Expression, ScriptError> {
        self.source.depth += 1;
        if self.source.depth > NESTING {
            return self.wrong(&format!("at most {NESTING} expressions within each other"));
        }
        let mut left = self.operand(least)?;
        while let Some(more) = self.behind(&mut left, least)? {
            left = more;
        }
        self.source.depth -= 1;
        Ok(left)
    }

    /// The operator behind an expression, with its right side; `None` if there is none that binds tight enough.
    fn behind(&mut self, left: &mut Expression, least: u8) -> Result<Option<Expression>, ScriptError> {
        let Word::Sign(sign) = *self.word() else { return self.word_behind(left, least) };
        let empty = Expression { place: left.place, height: 0, kind: Kind::Stop };
        let place = left.place;
        let mut taken = || std::mem::replace(left, empty.clone());
        if let Some(&(_, binds, operator)) = BINARY.iter().find(|other| other.0 == sign) {
            if binds < least || sign == ">" && self.source.in_sequence {
                return Ok(None);
            }
            let left = taken();
            self.advance();
            let right = self.expression(binds + 1)?;
            return self.binary(operator, left, right).map(Some);
        }
        match sign {
            "\\" if least <= HIDE => {
                let left = taken();
                self.advance();
                let set = self.expression(HIDE + 1)?;
                self.made(place, highest([&left, &set]), Kind::Hide(Box::new([left, set]))).map(Some)
            }
            "[|" if least <= PARALLEL => {
                let left = taken();
                self.advance();
                let set = self.bracketed(0)?;
                self.need("|]")?;
                let right = self.expression(PARALLEL + 1)?;
                self.made(place, highest([&left, &set, &right]), Kind::Parallel(Box::new([left, set, right]))).map(Some)
            }
            "[" if least <= PARALLEL => {
                let left = taken();
                self.advance();
                let of_left = self.bracketed(0)?;
                self.need("||")?;
                let of_right = self.bracketed(0)?;
                self.need("]")?;
                let right = self.expression(PARALLEL + 1)?;
                let below = highest([&left, &of_left, &of_right, &right]);
                self.made(place, below, Kind::Alphabetised(Box::new([left, of_left, of_right, right]))).map(Some)
            }
            "?" | "!" | "$" | "->" if least <= PREFIX => {
                let left = taken();
                self.prefixed(left).map(Some)
            }
            "&" if least <= PREFIX => {
                let left = taken();
                self.advance();
                let right = self.expression(PREFIX)?;
                self.made(place, highest([&left, &right]), Kind::Guard(Box::new([left, right]))).map(Some)
            }
            "." if least <= DOT => {
                let left = taken();
                self.advance();
                let right = self.expression(DOT + 1)?;
                let below = highest([&left, &right]);
                let mut parts = match left.kind {
                    Kind::Dot(parts) => parts,
                    _ => vec![left],
                };
                parts.push(right);
                self.made(place, below, Kind::Dot(parts)).map(Some)
            }
            "@@" => {
                let left = taken();
                self.advance();
                let right = self.expression(DOT)?;
                self.made(place, highest([&left, &right]), Kind::Both(Box::new([left, right]))).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn word_behind(&mut self, left: &mut Expression, least: u8) -> Result<Option<Expression>, ScriptError> {
        for (keyword, binds, operator) in [("or", OR, Operator::Or), ("and", OR + 1, Operator::And)] {
            if binds >= least && self.keyword(keyword) {
                let left = std::mem::replace(left, Expression { place: left.place, height: 0, kind: Kind::Stop });
                let right = self.expression(binds + 1)?;
                return self.binary(operator, left, right).map(Some);
            }
        }
        Ok(None)
    }

    fn binary(&self, operator: Operator, left: Expression, right: Expression) -> Result<Expression, ScriptError> {
        self.made(left.place, highest([&left, &right]), Kind::Binary(operator, Box::new([left, right])))
    }

    /// Within brackets of its own, where `>` is an operator again.
    fn bracketed(&mut self, least: u8) -> Result<Expression, ScriptError> {
        let before = std::mem::replace(&mut self.source.in_sequence, false);
        let inner = self.expression(least)?;
        self.source.in_sequence = before;
        Ok(inner)
    }

    /// Behind the event of a prefix: its fields, and what follows it.
    fn prefixed(&mut self, event: Expression) -> Result<Expression, ScriptError> {
        let place = event.place;
        let mut below = event.height;
        let mut fields = Vec::new();
        while !self.take("->") {
            let Word::Sign(sign @ ("?" | "!" | "$")) = *self.word() else {
                return self.wrong("`->`, `?`, `!` or `$`");
            };
            self.advance();
            let value = self.expression(DOT)?;
            below = below.max(value.height);
            if sign == "!" {
                fields.push(Field::Output(value));
                continue;
            }
            let pattern = self.pattern(value)?;
            let set = if self.take(":") { Some(self.expression(OR)?) } else { None };
            below = below.max(set.as_ref().map_or(0, |set| set.height));
            fields.push(if sign == "?" { Field::Input(pattern, set) } else { Field::Choice(pattern, set) });
        }
        let then = self.expression(PREFIX)?;
        self.made(place, below.max(then.height), Kind::Prefix(Box::new(Prefix { event, fields, then })))
    }

    fn operand(&mut self, least: u8) -> Result<Expression, ScriptError> {
        let place = self.place();
        let unary = match self.word() {
            Word::Sign("-") => Some((Unary::Negate, LENGTH)),
            Word::Sign("#") => Some((Unary::Length, LENGTH)),
            Word::Name(name) if name == "not" => Some((Unary::Not, NOT)),
            _ => None,
        };
        if let Some((unary, binds)) = unary {
            self.advance();
            let of = self.expression(binds)?;
            return self.made(place, of.height, Kind::Unary(unary, Box::new(of)));
        }
        if self.keyword("if") {
            let condition = self.bracketed(0)?;
            self.need_keyword("then")?;
            let yes = self.bracketed(0)?;
            self.need_keyword("else")?;
            let no = self.expression(0)?;
            return self.made(place, highest([&condition, &yes, &no]), Kind::If(Box::new([condition, yes, no])));
        }
        if self.keyword("let") {
            return self.definitions();
        }
        if self.take("\\") {
            return self.lambda();
        }
        if let Some(replicated) = self.replicated()? {
            return Ok(replicated);
        }
        let mut primary = self.primary(if least <= PREFIX { "a process" } else { "a value" })?;
        loop {
            // What begins a line is no argument.
            let before = &self.source.tokens[self.source.next.saturating_sub(1)];
            if self.is("(") && before.place.line == self.place().line {
                self.advance();
                let arguments = self.listed(")")?;
                let below = highest(arguments.iter().chain([&primary]));
                primary = self.made(place, below, Kind::Apply(Box::new(primary), arguments))?;
            } else if self.take("[[") {
                primary = self.renamed(primary)?;
            } else {
                return Ok(primary);
            }
        }
    }

    fn primary(&mut self, expected: &str) -> Result<Expression, ScriptError> {
        let place = self.place();
        let leaf = |kind| Expression { place, height: 1, kind };
        match self.word().clone() {
            Word::Number(number) => {
                self.advance();
                Ok(leaf(Kind::Number(number)))
            }
            Word::Name(name) if name == "_" => {
                self.advance();
                Ok(leaf(Kind::Anything))
            }
            Word::Name(name) if name == "STOP" => {
                self.advance();
                Ok(leaf(Kind::Stop))
            }
            Word::Name(name) if name == "SKIP" => {
                self.advance();
                Ok(leaf(Kind::Skip))
            }
            Word::Name(name) if !KEYWORDS.contains(&name.as_str()) => {
                let symbol = self.name(expected)?;
                Ok(leaf(Kind::Name(symbol)))
            }
            Word::Sign("(") => {
                self.advance();
                let mut inner = self.listed(")")?;
                match inner.len() {
                    0 => self.wrong_at(place, expected, "`()`"),
                    1 => inner.pop().map_or_else(|| self.wrong(expected), Ok),
                    _ => self.made(place, highest(&inner), Kind::Tuple(inner)),
                }
            }
            Word::Sign("{") => self.collection(Shape::Set, "}"),
            Word::Sign("{|") => self.collection(Shape::Productions, "|}"),
            Word::Sign("<") => self.collection(Shape::Sequence, ">"),
            _ => self.wrong(expected),
        }
    }

    /// With commas between them, up to a closing bracket.
    fn listed(&mut self, close: &str) -> Result<Vec<Expression>, ScriptError> {
        let mut all = Vec::new();
        while !self.take(close) {
            if !all.is_empty() && !self.take(",") {
                return if all.len() == 1 { self.wrong(&format!("`{close}`")) } else { self.wrong(&format!("`,` or `{close}`")) };
            }
            all.push(self.bracketed(0)?);
        }
        Ok(all)
    }

    fn collection(&mut self, shape: Shape, close: &str) -> Result<Expression, ScriptError> {
        let place = self.place();
        self.advance();
        let before = std::mem::replace(&mut self.source.in_sequence, shape == Shape::Sequence);
        let mut all: Vec<Expression> = Vec::new();
        let mut qualifiers = Vec::new();
        let mut end = None;
        while !self.take(close) {
            if !all.is_empty() && self.take("|") {
                qualifiers = self.qualifiers()?;
                self.need(close)?;
                break;
            }
            if all.len() == 1 && shape != Shape::Productions && self.take("..") {
                end = Some(if self.is(close) { None } else { Some(Box::new(self.expression(0)?)) });
                self.need(close)?;
                break;
            }
            if !all.is_empty() && !self.take(",") {
                return self.wrong(&format!("`|`, `,` or `{close}`"));
            }
            all.push(self.expression(0)?);
        }
        self.source.in_sequence = before;
        let mut below = highest(&all).max(highest_of(&qualifiers));
        let items = match (end, all.pop()) {
            (Some(end), Some(first)) => {
                below = below.max(end.as_ref().map_or(0, |end| end.height));
                Items::Range(Box::new(first), end)
            }
            (_, last) => {
                all.extend(last);
                Items::Listed(all)
            }
        };
        self.made(place, below, Kind::Collection(shape, items, qualifiers))
    }

    /// Of comprehensions and replicated operators: `x <- S`, `x : S` or a condition, with commas between them.
    fn qualifiers(&mut self) -> Result<Vec<Qualifier>, ScriptError> {
        let mut all = Vec::new();
        loop {
            let one = self.expression(OR.min(DOT))?;
            all.push(if self.take("<-") || self.take(":") {
                let pattern = self.pattern(one)?;
                Qualifier::Each(pattern, self.expression(OR)?)
            } else {
                Qualifier::Condition(one)
            });
            if !self.take(",") {
                return Ok(all);
            }
        }
    }

    fn replicated(&mut self) -> Result<Option<Expression>, ScriptError> {
        let place = self.place();
        let operator = match self.word() {
            Word::Sign("|||") => Operator::Interleave,
            Word::Sign("|~|") => Operator::Internal,
            Word::Sign("[]") => Operator::External,
            Word::Sign(";") => Operator::Sequence,
            Word::Sign("[|") => {
                self.advance();
                let set = self.bracketed(0)?;
                self.need("|]")?;
                let qualifiers = self.qualifiers()?;
                self.need("@")?;
                let body = self.expression(0)?;
                let below = highest([&set, &body]).max(highest_of(&qualifiers));
                let kind = Kind::Replicated(Replicated::Sharing(Box::new(set)), qualifiers, Box::new(body));
                return self.made(place, below, kind).map(Some);
            }
            Word::Sign("||") => {
                self.advance();
                let qualifiers = self.qualifiers()?;
                self.need("@")?;
                self.need("[")?;
                let alphabet = self.bracketed(0)?;
                self.need("]")?;
                let body = self.expression(0)?;
                let below = highest([&alphabet, &body]).max(highest_of(&qualifiers));
                let kind = Kind::Replicated(Replicated::Alphabets(Box::new(alphabet)), qualifiers, Box::new(body));
                return self.made(place, below, kind).map(Some);
            }
            _ => return Ok(None),
        };
        self.advance();
        let qualifiers = self.qualifiers()?;
        self.need("@")?;
        let body = self.expression(0)?;
        let below = body.height.max(highest_of(&qualifiers));
        self.made(place, below, Kind::Replicated(Replicated::With(operator), qualifiers, Box::new(body))).map(Some)
    }

    /// Behind `P[[`.
    fn renamed(&mut self, process: Expression) -> Result<Expression, ScriptError> {
        let place = process.place;
        let mut below = process.height;
        let (mut pairs, mut qualifiers) = (Vec::new(), Vec::new());
        let before = std::mem::replace(&mut self.source.in_sequence, false);
        loop {
            let from = self.expression(DOT)?;
            self.need("<-")?;
            let to = self.expression(DOT)?;
            below = below.max(highest([&from, &to]));
            pairs.push([from, to]);
            if self.take("|") {
                qualifiers = self.qualifiers()?;
                below = below.max(highest_of(&qualifiers));
            } else if self.take(",") {
                continue;
            }
            self.need("]]")?;
            break;
        }
        self.source.in_sequence = before;
        self.made(place, below, Kind::Rename(Box::new(process), pairs, qualifiers))
    }

    /// Behind `let`.
    fn definitions(&mut self) -> Result<Expression, ScriptError> {
        let place = self.place();
        let before = std::mem::replace(&mut self.source.in_sequence, false);
        let mut group: Vec<DefinitionId> = Vec::new();
        while group.is_empty() || !self.is_keyword("within") {
            let at = self.place();
            let definition = self.definition(group.last().copied(), "a definition or `within`")?;
            if group.contains(&definition) {
                continue;
            }
            let symbol = self.program.definition(definition).symbol;
            if group.iter().any(|&other| self.program.definition(other).symbol == symbol) {
                let found = format!("`{}`", self.program.name(symbol));
                return self.wrong_at(at, "a name that is not defined yet", &found);
            }
            group.push(definition);
        }
        self.need_keyword("within")?;
        let bodies = group.iter().flat_map(|&id| &self.program.definition(id).clauses).map(|clause| &clause.body);
        let highest_body = highest(bodies);
        for &id in &group {
            self.program.definitions[id.0 as usize].group.clone_from(&group);
        }
        self.source.in_sequence = before;
        let within = self.expression(0)?;
        self.made(place, within.height.max(highest_body), Kind::Let(group, Box::new(within)))
    }

    /// Behind the backslash.
    fn lambda(&mut self) -> Result<Expression, ScriptError> {
        let place = self.place();
        let mut patterns = Vec::new();
        loop {
            let pattern = self.expression(DOT)?;
            patterns.push(self.pattern(pattern)?);
            if !self.take(",") {
                break;
            }
        }
        self.need("@")?;
        let body = self.expression(0)?;
        let (below, parameters) = (body.height, patterns.len());
        let symbol = self.symbol("\\");
        let id = self.defined(symbol, place, parameters, Clause { patterns, body });
        self.made(place, below, Kind::Lambda(id))
    }
}
