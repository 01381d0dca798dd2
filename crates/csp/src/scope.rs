//! What names stand for. Every name is defined, a pattern binds each name once; definitions within a `let` know what they take
//! from around it, and it is known which definitions stand for processes.

use crate::builtin::Builtin;
use crate::error::{Place, ScriptError};
use crate::syntax::{
    Asked, Asserted, Clause, Definition, DefinitionId, Expression, Field, Global, Items, Kind, Pattern, PatternKind, Program,
    Qualifier, Replicated, Symbol, TypeBody,
};
use std::collections::BTreeSet;

/// Checks the names, and completes the definitions.
pub fn resolve(program: &mut Program, assertions: &[Asserted]) -> Result<(), ScriptError> {
    let mut scope = Scope { program, local: Vec::new(), groups: Vec::new(), free: Vec::new(), heads: Vec::new() };
    scope.free = vec![None; program.definitions.len()];
    scope.heads = vec![Heads::default(); program.definitions.len()];
    let named = |global: &Global| if let Global::Definition(id) = global { Some(*id) } else { None };
    let definitions: BTreeSet<DefinitionId> = program.globals.values().filter_map(named).collect();
    definitions.into_iter().try_for_each(|id| scope.definition(id))?;
    for channel in &program.channels {
        channel.fields.iter().try_for_each(|field| scope.expression(field))?;
    }
    for declaration in &program.types {
        match &declaration.is {
            TypeBody::Name(is) => scope.expression(is)?,
            TypeBody::Data(constructors) => {
                for (symbol, place, fields) in constructors {
                    if !matches!(program.globals.get(symbol), Some(Global::Constructor(_))) {
                        return Err(program.error(*place, "a constructor of a datatype", format!("`{}`", program.name(*symbol))));
                    }
                    fields.iter().try_for_each(|field| scope.expression(field))?;
                }
            }
        }
    }
    for assertion in assertions {
        scope.expression(&assertion.process)?;
        if let Asked::Refines(_, other) = &assertion.asked {
            scope.expression(other)?;
        }
    }
    let (free, mut heads) = (scope.free, scope.heads);
    for (definition, free) in program.definitions.iter_mut().zip(free) {
        definition.free = free.unwrap_or_default();
    }
    spread(&mut heads);
    for (definition, heads) in program.definitions.iter_mut().zip(heads) {
        definition.is_process = heads.process;
    }
    Ok(())
}

/// What may be the result of a definition.
#[derive(Clone, Debug, Default)]
struct Heads {
    process: bool,
    of: BTreeSet<DefinitionId>,
}

/// A definition that may result in one that stands for a process stands for a process.
fn spread(heads: &mut [Heads]) {
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); heads.len()];
    for (user, heads) in heads.iter().enumerate() {
        heads.of.iter().for_each(|id| users[id.0 as usize].push(user));
    }
    let mut open: Vec<usize> = (0..heads.len()).filter(|&id| heads[id].process).collect();
    while let Some(id) = open.pop() {
        for &user in &users[id] {
            if !std::mem::replace(&mut heads[user].process, true) {
                open.push(user);
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Bound {
    Variable,
    Definition(DefinitionId),
}

struct Scope<'p> {
    program: &'p Program,
    local: Vec<(Symbol, Bound)>,
    /// Of each group of definitions that is open: how much is around it, and what it takes from there.
    groups: Vec<(usize, BTreeSet<Symbol>)>,
    free: Vec<Option<Vec<Symbol>>>,
    heads: Vec<Heads>,
}

impl<'p> Scope<'p> {
    fn find(&self, symbol: Symbol) -> Option<(usize, Bound)> {
        self.local.iter().enumerate().rev().find(|(_, bound)| bound.0 == symbol).map(|(place, bound)| (place, bound.1))
    }

    fn name(&mut self, symbol: Symbol, place: Place, expected: &str) -> Result<(), ScriptError> {
        if let Some((at, _)) = self.find(symbol) {
            for (around, free) in &mut self.groups {
                if at < *around {
                    free.insert(symbol);
                }
            }
            return Ok(());
        }
        if self.program.globals.contains_key(&symbol) {
            return Ok(());
        }
        Err(self.program.error(place, expected, format!("`{}`", self.program.name(symbol))))
    }

    fn definition(&mut self, id: DefinitionId) -> Result<(), ScriptError> {
        let program: &'p Program = self.program;
        let definition: &'p Definition = program.definition(id);
        for clause in &definition.clauses {
            self.clause(id, clause)?;
        }
        Ok(())
    }

    fn clause(&mut self, id: DefinitionId, clause: &'p Clause) -> Result<(), ScriptError> {
        let around = self.local.len();
        let before = self.local.len();
        for pattern in &clause.patterns {
            self.bind(pattern, before)?;
        }
        self.expression(&clause.body)?;
        self.head(id, &clause.body);
        self.local.truncate(around);
        Ok(())
    }

    /// Definitions of one `let`, or a function without a name. Leaves the names of the group bound.
    fn group(&mut self, group: &[DefinitionId], named: bool) -> Result<(), ScriptError> {
        self.groups.push((self.local.len(), BTreeSet::new()));
        if named {
            self.local.extend(group.iter().map(|&id| (self.program.definition(id).symbol, Bound::Definition(id))));
        }
        for &id in group {
            self.definition(id)?;
        }
        let free: Vec<Symbol> = self.groups.pop().map(|(_, free)| free).unwrap_or_default().into_iter().collect();
        for &id in group {
            self.free[id.0 as usize] = Some(free.clone());
        }
        Ok(())
    }

    /// Notes what a definition may result in; names are bound as in its body.
    fn head(&mut self, id: DefinitionId, body: &'p Expression) {
        let mut open = vec![body];
        // Names that a `let` on the way binds, outside of which they may mean something else.
        let mut inner: Vec<(Symbol, DefinitionId)> = Vec::new();
        while let Some(one) = open.pop() {
            let named = |expression: &Expression| if let Kind::Name(symbol) = expression.kind { Some(symbol) } else { None };
            match &one.kind {
                Kind::If(parts) => open.extend(&parts[1..]),
                Kind::Let(group, within) => {
                    inner.extend(group.iter().map(|&id| (self.program.definition(id).symbol, id)));
                    open.push(within);
                }
                Kind::Name(_) | Kind::Apply(..) => {
                    let called = if let Kind::Apply(called, _) = &one.kind { named(called) } else { named(one) };
                    let Some(symbol) = called else { continue };
                    let within = inner.iter().rev().find(|bound| bound.0 == symbol).map(|bound| Bound::Definition(bound.1));
                    let head = within.or_else(|| self.find(symbol).map(|found| found.1));
                    match (head, self.program.globals.get(&symbol)) {
                        (Some(Bound::Definition(other)), _) | (None, Some(&Global::Definition(other))) => {
                            self.heads[id.0 as usize].of.insert(other);
                        }
                        (None, Some(Global::Transparent | Global::Builtin(Builtin::Chaos | Builtin::Run | Builtin::Diverge))) => {
                            self.heads[id.0 as usize].process = true;
                        }
                        _ => {}
                    }
                }
                Kind::Binary(operator, _) => self.heads[id.0 as usize].process |= operator.is_of_processes(),
                Kind::Stop
                | Kind::Skip
                | Kind::Prefix(_)
                | Kind::Guard(_)
                | Kind::Parallel(_)
                | Kind::Alphabetised(_)
                | Kind::Hide(_)
                | Kind::Rename(..)
                | Kind::Replicated(..) => self.heads[id.0 as usize].process = true,
                Kind::Number(_)
                | Kind::Anything
                | Kind::Both(_)
                | Kind::Tuple(_)
                | Kind::Collection(..)
                | Kind::Dot(_)
                | Kind::Unary(..)
                | Kind::Lambda(_) => {}
            }
        }
    }

    /// Binds what the pattern names; `before`: how many names are bound around all patterns of this place.
    fn bind(&mut self, pattern: &Pattern, before: usize) -> Result<(), ScriptError> {
        match &pattern.kind {
            PatternKind::Anything | PatternKind::Number(_) => {}
            PatternKind::Name(symbol) => {
                if self.program.is_literal(*symbol) {
                    return Ok(());
                }
                if self.local[before..].iter().any(|bound| bound.0 == *symbol) {
                    let found = format!("`{}` again", self.program.name(*symbol));
                    return Err(self.program.error(pattern.place, "another name", found));
                }
                self.local.push((*symbol, Bound::Variable));
            }
            PatternKind::Tuple(all) | PatternKind::Dot(all) => {
                all.iter().try_for_each(|one| self.bind(one, before))?;
            }
            PatternKind::Sequence(first, middle, last) => {
                let all = first.iter().chain(middle.as_deref()).chain(last);
                all.into_iter().try_for_each(|one| self.bind(one, before))?;
            }
            PatternKind::Set(one) => one.iter().try_for_each(|one| self.bind(one, before))?,
            PatternKind::Both(both) => both.iter().try_for_each(|one| self.bind(one, before))?,
        }
        Ok(())
    }

    /// Leaves what they bind bound.
    fn qualifiers(&mut self, qualifiers: &'p [Qualifier]) -> Result<(), ScriptError> {
        for qualifier in qualifiers {
            match qualifier {
                Qualifier::Each(pattern, of) => {
                    self.expression(of)?;
                    self.bind(pattern, self.local.len())?;
                }
                Qualifier::Condition(condition) => self.expression(condition)?,
            }
        }
        Ok(())
    }

    fn expression(&mut self, expression: &'p Expression) -> Result<(), ScriptError> {
        let around = self.local.len();
        match &expression.kind {
            Kind::Number(_) | Kind::Stop | Kind::Skip => {}
            Kind::Anything | Kind::Both(_) => {
                return Err(self.program.error(expression.place, "a value", String::from("a pattern")));
            }
            Kind::Name(symbol) => self.name(*symbol, expression.place, "a declared event or a defined name")?,
            Kind::Apply(function, arguments) => {
                self.expression(function)?;
                arguments.iter().try_for_each(|one| self.expression(one))?;
            }
            Kind::Tuple(all) | Kind::Dot(all) => all.iter().try_for_each(|one| self.expression(one))?,
            Kind::Collection(_, items, qualifiers) => {
                self.qualifiers(qualifiers)?;
                match items {
                    Items::Listed(all) => all.iter().try_for_each(|one| self.expression(one))?,
                    Items::Range(first, last) => {
                        self.expression(first)?;
                        last.iter().try_for_each(|last| self.expression(last))?;
                    }
                }
            }
            Kind::Unary(_, inner) => self.expression(inner)?,
            Kind::Binary(_, both) | Kind::Guard(both) | Kind::Hide(both) => {
                both.iter().try_for_each(|one| self.expression(one))?;
            }
            Kind::If(parts) | Kind::Parallel(parts) => parts.iter().try_for_each(|one| self.expression(one))?,
            Kind::Alphabetised(parts) => parts.iter().try_for_each(|one| self.expression(one))?,
            Kind::Let(group, within) => {
                self.group(group, true)?;
                self.expression(within)?;
            }
            Kind::Lambda(id) => self.group(&[*id], false)?,
            Kind::Prefix(prefix) => {
                match prefix.event.kind {
                    Kind::Name(symbol) => self.name(symbol, prefix.event.place, "a declared event")?,
                    _ => self.expression(&prefix.event)?,
                }
                for field in &prefix.fields {
                    match field {
                        Field::Output(value) => self.expression(value)?,
                        Field::Input(pattern, set) | Field::Choice(pattern, set) => {
                            set.iter().try_for_each(|set| self.expression(set))?;
                            self.bind(pattern, self.local.len())?;
                        }
                    }
                }
                self.expression(&prefix.then)?;
            }
            Kind::Rename(process, pairs, qualifiers) => {
                self.expression(process)?;
                self.qualifiers(qualifiers)?;
                pairs.iter().flatten().try_for_each(|one| self.expression(one))?;
            }
            Kind::Replicated(operator, qualifiers, body) => {
                if let Replicated::Sharing(set) = operator {
                    self.expression(set)?;
                }
                self.qualifiers(qualifiers)?;
                if let Replicated::Alphabets(alphabet) = operator {
                    self.expression(alphabet)?;
                }
                self.expression(body)?;
            }
        }
        self.local.truncate(around);
        Ok(())
    }
}

impl Program {
    /// Whether a pattern that names it stands for it alone.
    pub fn is_literal(&self, symbol: Symbol) -> bool {
        matches!(
            self.globals.get(&symbol),
            Some(Global::Channel(_) | Global::Constructor(_) | Global::Builtin(Builtin::True | Builtin::False))
        )
    }
}
