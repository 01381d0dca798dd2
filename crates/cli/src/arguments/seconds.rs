//! Times on the command line.

use std::time::Duration;

/// Longest time that can be asked for: a year.
const MAX_SECONDS: f64 = 31_536_000.0;

pub fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.strip_suffix('s').unwrap_or(text).parse().map_err(|_| "not a number of seconds".to_owned())?;
    if !(0.0..=MAX_SECONDS).contains(&number) {
        return Err(format!("not between 0 and {MAX_SECONDS} seconds"));
    }
    Ok(Duration::from_secs_f64(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_make_no_sense_are_refused() {
        assert!(["-1", "nan", "inf", "1e300", "x"].iter().all(|bad| seconds(bad).is_err()));
        assert_eq!(seconds("1.5"), Ok(Duration::from_millis(1500)));
    }
}
