//! Arithmetic, order and logic of values.

use super::{ELEMENTS, Environment, Evaluator, Found, Value};
use crate::syntax::{Expression, Operator, Unary};

impl<'e> Evaluator<'e> {
    pub(super) fn unary(&mut self, operator: Unary, inner: &'e Expression, environment: &Environment) -> Found<Value> {
        Ok(match operator {
            Unary::Not => Value::Bool(!self.truth(inner, environment)?),
            Unary::Negate => match self.number(inner, environment)?.checked_neg() {
                Some(number) => Value::Number(number),
                None => return self.too_much(inner.place, "a number of 64 bits"),
            },
            Unary::Length => Value::Number(self.sequence(inner, environment)?.len() as i64),
        })
    }

    pub(super) fn binary(&mut self, operator: Operator, sides: &'e [Expression; 2], environment: &Environment) -> Found<Value> {
        let [one, other] = sides;
        match operator {
            Operator::And => {
                return Ok(Value::Bool(self.truth(one, environment)? && self.truth(other, environment)?));
            }
            Operator::Or => {
                return Ok(Value::Bool(self.truth(one, environment)? || self.truth(other, environment)?));
            }
            Operator::Concatenate => {
                let mut all = self.sequence(one, environment)?.to_vec();
                all.extend_from_slice(&self.sequence(other, environment)?);
                if all.len() > ELEMENTS {
                    return self.too_much(one.place, &format!("a sequence of at most {ELEMENTS} elements"));
                }
                return Ok(Value::Sequence(all.into()));
            }
            _ => {}
        }
        let (left, right) = (self.evaluate(one, environment)?, self.evaluate(other, environment)?);
        if let Some(ordered) = compared(operator, &left, &right) {
            return Ok(Value::Bool(ordered));
        }
        let (Value::Number(left), Value::Number(right)) = (&left, &right) else {
            let (place, value) = if matches!(left, Value::Number(_)) { (other.place, right) } else { (one.place, left) };
            return self.wrong(place, "a number", &value);
        };
        let number = match operator {
            Operator::Add => left.checked_add(*right),
            Operator::Subtract => left.checked_sub(*right),
            Operator::Multiply => left.checked_mul(*right),
            _ if *right == 0 => return self.wrong(other.place, "a divisor that is not 0", &Value::Number(0)),
            // Rounded down, as in FDR.
            Operator::Divide => floor(*left, *right),
            _ => floor(*left, *right).and_then(|quotient| left.checked_sub(quotient.checked_mul(*right)?)),
        };
        match number {
            Some(number) => Ok(Value::Number(number)),
            None => self.too_much(one.place, "a number of 64 bits"),
        }
    }
}

fn floor(left: i64, right: i64) -> Option<i64> {
    let quotient = left.checked_div(right)?;
    Some(if left.checked_rem(right)? != 0 && (left < 0) != (right < 0) { quotient - 1 } else { quotient })
}

/// Equality of all values, order of numbers, of sets (parts) and of sequences (beginnings).
fn compared(operator: Operator, left: &Value, right: &Value) -> Option<bool> {
    let at_most = |one: &Value, other: &Value| match (one, other) {
        (Value::Number(one), Value::Number(other)) => Some(one <= other),
        (Value::Set(one), Value::Set(other)) => Some(one.is_subset(other)),
        (Value::Sequence(one), Value::Sequence(other)) => Some(other.starts_with(one)),
        _ => None,
    };
    match operator {
        Operator::Equal => Some(left == right),
        Operator::Unequal => Some(left != right),
        Operator::LessOrEqual => at_most(left, right),
        Operator::Less => at_most(left, right).map(|at_most| at_most && left != right),
        Operator::GreaterOrEqual => at_most(right, left),
        Operator::Greater => at_most(right, left).map(|at_most| at_most && left != right),
        _ => None,
    }
}
