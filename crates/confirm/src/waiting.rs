//! Waiting for processes to end without looking again and again.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Between two looks where the kernel gives no handle: before Linux 5.3, and where the process is gone already.
const PAUSE: Duration = Duration::from_millis(5);

/// A process that is waited for: this one, whoever has its number later.
#[derive(Debug)]
pub(crate) struct Handle(Option<OwnedFd>);

impl Handle {
    pub(crate) fn of(number: u32) -> Self {
        let process = Pid::from_raw(number.cast_signed());
        Self(process.and_then(|process| pidfd_open(process, PidfdFlags::empty()).ok()))
    }
}

/// Returns when one of them has ended, at that moment, or earlier: the caller looks which it was.
pub(crate) fn until_one_ends(handles: &[&Handle], until: Option<Instant>) {
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    let descriptors: Option<Vec<_>> =
        handles.iter().map(|handle| handle.0.as_ref().map(|handle| PollFd::new(handle, PollFlags::IN))).collect();
    let time = left.map(|left| Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: i64::from(left.subsec_nanos()) });
    match descriptors.map(|mut descriptors| poll(&mut descriptors, time.as_ref())) {
        Some(Ok(_) | Err(rustix::io::Errno::INTR)) => {}
        Some(Err(_)) | None => std::thread::sleep(left.map_or(PAUSE, |left| left.min(PAUSE))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn the_first_end_is_waited_for_and_no_longer_than_that() {
        let mut long = Command::new("sleep").arg("1000").spawn().unwrap();
        let mut short = Command::new("true").spawn().unwrap();
        let handles = [&long, &short].map(|child| Handle::of(child.id()));
        until_one_ends(&[&handles[0], &handles[1]], None);
        assert!(short.try_wait().unwrap().is_some() && long.try_wait().unwrap().is_none());
        let begin = Instant::now();
        until_one_ends(&[&handles[0]], Some(begin + Duration::from_millis(20)));
        assert!(begin.elapsed() >= Duration::from_millis(20) && long.try_wait().unwrap().is_none());
        long.kill().unwrap();
        until_one_ends(&[&handles[0]], None);
        assert!(long.try_wait().unwrap().is_some());
    }
}
