//! Recordings: what is written is read, what is damaged is refused.

mod chunks;
mod control;
mod damage;
mod golden;
mod load;
mod roundtrip;
mod specification;
mod unseen_calls;
mod values;
