//! Variables, and literals: a variable or its negation.

use std::fmt;
use std::ops::Not;

/// A boolean variable, by its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Variable(pub u32);

/// A variable or its negation. Both of one variable are neighbours in the order of literals.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Literal(u32);

impl Variable {
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    pub const fn positive(self) -> Literal {
        Literal(self.0 << 1)
    }

    pub const fn negative(self) -> Literal {
        Literal(self.0 << 1 | 1)
    }

    /// The literal that holds if the variable has this value.
    pub const fn is(self, value: bool) -> Literal {
        Literal(self.0 << 1 | !value as u32)
    }
}

impl Literal {
    pub const fn variable(self) -> Variable {
        Variable(self.0 >> 1)
    }

    /// The value of the variable with which it holds.
    pub const fn sign(self) -> bool {
        self.0 & 1 == 0
    }

    /// Its place in a table with one entry per literal.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl Not for Literal {
    type Output = Self;

    fn not(self) -> Self {
        Self(self.0 ^ 1)
    }
}

impl fmt::Debug for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "x{}", self.0)
    }
}

impl fmt::Debug for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", if self.sign() { "" } else { "!" }, self.variable())
    }
}

#[test]
fn a_literal_is_its_variable_and_a_sign() {
    for number in [0, 1, 77] {
        let variable = Variable(number);
        assert_eq!(!variable.positive(), variable.negative());
        assert_eq!(!!variable.positive(), variable.positive());
        for value in [false, true] {
            assert_eq!((variable.is(value).variable(), variable.is(value).sign()), (variable, value));
        }
    }
    assert_eq!(format!("{:?} {:?}", Variable(3).positive(), Variable(3).negative()), "x3 !x3");
}
