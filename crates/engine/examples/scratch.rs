use rashomon_engine::*;
use rashomon_packed::*;
fn cpu() -> f64 {
    std::fs::read_to_string("/proc/thread-self/schedstat").unwrap().split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
}
fn main() {
    let n: usize = 10_000_000;
    let vars_per_lock: u64 = std::env::args().nth(1).map_or(40, |a| a.parse().unwrap());
    let threads = 16u64;
    let mut s = 1u64;
    let mut r = move |b: u64| {
        s = s.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = s;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % b
    };
    let mut ev = Vec::with_capacity(n);
    let mut held: Vec<Option<(u32, u32)>> = vec![None; 16];
    let mut owner = vec![None; 100];
    let base_local = 100 * vars_per_lock;
    let locals = (vars_per_lock * 100).max(64 * threads) / threads;
    while ev.len() < n {
        let t = r(threads) as usize;
        let e = match held[t] {
            Some((l, 0)) => {
                held[t] = None;
                owner[l as usize] = None;
                Event::new(t as u16, Op::Release, l, 1)
            }
            Some((l, k)) => {
                held[t] = Some((l, k - 1));
                let v = l as u64 * vars_per_lock + r(vars_per_lock);
                Event::new(t as u16, if r(3) == 0 { Op::Write } else { Op::Read }, v as u32, r(1000) as u32)
            }
            None => match r(100) {
                0..9 => {
                    let l = r(100) as u32;
                    if owner[l as usize].is_some() {
                        continue;
                    }
                    owner[l as usize] = Some(t);
                    held[t] = Some((l, 1 + r(8) as u32));
                    Event::new(t as u16, Op::Acquire, l, 1)
                }
                9..25 => Event::new(t as u16, Op::Read, (base_local + threads * locals + r(2000)) as u32, 5),
                _ => Event::new(
                    t as u16,
                    if r(3) == 0 { Op::Write } else { Op::Read },
                    (base_local + t as u64 * locals + r(locals)) as u32,
                    7,
                ),
            },
        };
        ev.push(e);
    }
    for (name, wanted) in [
        ("hb", Wanted::default()),
        ("hb+shb", Wanted { shb: true, lock_sets: false }),
        ("all", Wanted { shb: true, lock_sets: true }),
    ] {
        for _ in 0..3 {
            let mut d = Detector::new(wanted);
            d.expect(Space::Variable, (base_local + threads * locals + 2000) as u32);
            let t = cpu();
            for (i, b) in ev.chunks(BLOCK).enumerate() {
                d.block((i * BLOCK) as u64, b);
            }
            let s = cpu() - t;
            println!(
                "{name}: {:.1} ns/event = {:.1} M/s, {} MB, {} events",
                s * 1e9 / n as f64,
                n as f64 / s / 1e6,
                d.bytes() >> 20,
                d.found().hb.events()
            );
        }
    }
}
