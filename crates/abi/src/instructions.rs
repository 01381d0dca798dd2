//! Which instructions may tell a program something that is not in its memory or its registers. Kept here, and not in the runtime,
//! because it can be tested here.

/// What an instruction is, as far as it matters here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// It depends on registers and memory alone.
    Plain,
    /// `syscall`
    Call,
    /// It may depend on something else, or its effect is not followed: time, random numbers, the processor, flags, other ways
    /// into the kernel.
    Other,
}

/// The longest instruction.
const LONGEST: usize = 15;

/// What stands there. `byte`: the instruction's bytes in order, read only as far as needed.
pub fn kind(byte: impl Fn(usize) -> u8) -> Kind {
    let (mut at, mut prefixed) = (0, false);
    while at < LONGEST && matches!(byte(at), 0x66 | 0x67 | 0xf0 | 0xf2 | 0xf3 | 0x2e | 0x36 | 0x3e | 0x26 | 0x64 | 0x65) {
        prefixed |= matches!(byte(at), 0x66 | 0xf2 | 0xf3);
        at += 1;
    }
    if byte(at) & 0xf0 == 0x40 {
        at += 1;
    }
    let of_registers = |modrm: u8| modrm >= 0xc0;
    let extension = |modrm: u8| modrm >> 3 & 7;
    match byte(at) {
        // pushf, popf, breakpoints, interrupts, far returns, input and output, hlt, cli, sti, moves to segment registers.
        0x9c | 0x9d | 0xcc..=0xcf | 0xca | 0xcb | 0xe4..=0xe7 | 0xec..=0xef | 0x6c..=0x6f | 0xf1 | 0xf4 | 0xfa | 0xfb | 0x8e => {
            Kind::Other
        }
        // xabort, xbegin
        0xc6 | 0xc7 if byte(at + 1) == 0xf8 => Kind::Other,
        // Far calls and jumps.
        0xff if matches!(extension(byte(at + 1)), 3 | 5) => Kind::Other,
        0x0f => match byte(at + 1) {
            0x05 => Kind::Call,
            // Descriptor tables, xgetbv, rdtscp, lar, lsl, sysret, rdtsc, rdmsr, rdpmc, sysenter, pop to segment registers,
            // cpuid.
            0x00..=0x04 | 0x06..=0x0a | 0x30..=0x37 | 0xa1 | 0xa2 | 0xa9 | 0x20..=0x23 => Kind::Other,
            // rdrand, rdseed, rdpid; user interrupts.
            0xc7 if of_registers(byte(at + 2)) => Kind::Other,
            // umonitor, umwait, tpause; the fences have no prefix.
            0xae if prefixed && of_registers(byte(at + 2)) && extension(byte(at + 2)) == 6 => Kind::Other,
            _ => Kind::Plain,
        },
        _ => Kind::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, kind};

    fn of(bytes: &[u8]) -> Kind {
        kind(|at| bytes.get(at).copied().unwrap_or(0x90))
    }

    #[test]
    fn what_reads_the_outside_is_known() {
        let outside: [&[u8]; 12] = [
            &[0x0f, 0x31],             // rdtsc
            &[0x0f, 0x01, 0xf9],       // rdtscp
            &[0x48, 0x0f, 0xc7, 0xf0], // rdrand rax
            &[0x0f, 0xc7, 0xf9],       // rdseed ecx
            &[0xf3, 0x0f, 0xc7, 0xf8], // rdpid rax
            &[0x0f, 0xa2],             // cpuid
            &[0x0f, 0x34],             // sysenter
            &[0xcd, 0x80],             // int 0x80
            &[0x0f, 0x03, 0xc1],       // lsl
            &[0xc7, 0xf8, 0, 0, 0, 0], // xbegin
            &[0xf2, 0x0f, 0xae, 0xf1], // umwait
            &[0x9d],                   // popf
        ];
        for bytes in outside {
            assert_eq!(of(bytes), Kind::Other, "{bytes:02x?}");
        }
        assert_eq!(of(&[0x0f, 0x05]), Kind::Call);
    }

    #[test]
    fn the_rest_is_plain() {
        let plain: [&[u8]; 9] = [
            &[0xf3, 0x90],                   // pause
            &[0x0f, 0xae, 0xf0],             // mfence
            &[0xf0, 0x48, 0x0f, 0xc7, 0x0f], // lock cmpxchg16b [rdi]
            &[0xf0, 0x0f, 0xb1, 0x0f],       // lock cmpxchg [rdi], ecx
            &[0xc7, 0x00, 1, 0, 0, 0],       // mov dword [rax], 1
            &[0xe8, 0x0f, 0x05, 0, 0],       // call
            &[0xff, 0xd0],                   // call rax
            &[0x0f, 0x1f, 0x00],             // nop
            &[0xc3],                         // ret
        ];
        for bytes in plain {
            assert_eq!(of(bytes), Kind::Plain, "{bytes:02x?}");
        }
    }
}
