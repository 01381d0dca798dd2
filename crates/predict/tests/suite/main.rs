//! Predictions against definitions, brute force and other engines, a file for each.

mod atomicity;
mod classes;
mod csp;
mod damaged;
mod gaps;
mod maximal;
mod meetings;
mod oracle;
mod scenarios;
mod uses;
mod values;
