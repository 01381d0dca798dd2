//! Functions of numbers that have a second result.

use super::*;
use core::ffi::c_int;

effects! {
    frexp(x: f64, place) -> f64, writes |w, _| { w.bytes(place, 4); };
    frexpf(x: f32, place) -> f32, writes |w, _| { w.bytes(place, 4); };
    modf(x: f64, place) -> f64, writes |w, _| { w.bytes(place, 8); };
    modff(x: f32, place) -> f32, writes |w, _| { w.bytes(place, 4); };
    remquo(x: f64, y: f64, place) -> f64, writes |w, _| { w.bytes(place, 4); };
    remquof(x: f32, y: f32, place) -> f32, writes |w, _| { w.bytes(place, 4); };
    lgamma_r(x: f64, place) -> f64, writes |w, _| { w.bytes(place, 4); };
    lgammaf_r(x: f32, place) -> f32, writes |w, _| { w.bytes(place, 4); };
    sincos(x: f64, sine, cosine) -> (), writes |w, ()| { w.bytes(sine, 8); w.bytes(cosine, 8); };
    sincosf(x: f32, sine, cosine) -> (), writes |w, ()| { w.bytes(sine, 4); w.bytes(cosine, 4); };
    rand_r(seed) -> c_int, writes |w, _| { w.bytes(seed, 4); };
    random_r(state, place) -> c_int, writes |w, result| { if result == 0 { w.bytes(state, 48); w.bytes(place, 4); } };
    srandom_r(seed, state) -> c_int, writes |w, _| { w.bytes(state, 48); };
    erand48(state) -> f64, writes |w, _| { w.bytes(state, 6); };
    nrand48(state) -> usize, writes |w, _| { w.bytes(state, 6); };
    jrand48(state) -> usize, writes |w, _| { w.bytes(state, 6); };
    drand48_r(state, place) -> c_int, writes |w, _| { w.bytes(state, 24); w.bytes(place, 8); };
    lrand48_r(state, place) -> c_int, writes |w, _| { w.bytes(state, 24); w.bytes(place, 8); };
    mrand48_r(state, place) -> c_int, writes |w, _| { w.bytes(state, 24); w.bytes(place, 8); };
    srand48_r(seed, state) -> c_int, writes |w, _| { w.bytes(state, 24); };
}
