//! What programs that make system calls by themselves say before and after each (`sanitizer/linux_syscall_hooks.h`).
//!
//! Calls that transfer bytes access the program's memory, and order through their descriptor; what the others do is of no use
//! here, or is seen where `syscall` is interposed.

use super::descriptors::{Part, look, parts};
use crate::intercept::hooks::access_range;
use crate::record::recorder;
use crate::system::thread::Runtime;
use crate::system::tls::caller;
use core::ffi::c_int;
use rashomon_abi::record::{AccessClass, Op, sync_source};

/// Bytes at `buffer` were accessed by the kernel.
fn transferred(buffer: u64, bytes: i64, class: AccessClass) {
    if bytes > 0 {
        // SAFETY: only the numbers are used.
        unsafe { access_range(buffer, bytes as u64, caller(), class as u64) };
    }
}

/// # Safety
/// `vector` points to `count` parts, or `count` is not positive.
unsafe fn transferred_parts(vector: *const Part, count: i64, bytes: i64, class: AccessClass) {
    let mut left = bytes;
    // SAFETY: by the contract.
    for part in unsafe { parts(vector, count as c_int) } {
        let here = left.min(part.bytes as i64);
        transferred(part.base as u64, here, class);
        left -= here;
    }
}

fn orders(op: Op, file: i64) {
    let site = caller();
    if let Some(runtime) = Runtime::try_enter() {
        let descriptor = look(file as c_int);
        if !descriptor.is_silent() {
            recorder::sync(runtime.thread(), op, descriptor.object(), sync_source::FILE, site, &[]);
        }
    }
}

unsafe extern "C" fn ignored() {}

unsafe extern "C" fn after_read(result: i64, file: i64, buffer: u64, _bytes: i64) {
    if result > 0 {
        orders(Op::Acquire, file);
    }
    transferred(buffer, result, AccessClass::Write);
}

unsafe extern "C" fn before_write(file: i64, buffer: u64, bytes: i64) {
    transferred(buffer, bytes, AccessClass::Read);
    orders(Op::Release, file);
}

unsafe extern "C" fn after_read_of_parts(result: i64, file: i64, vector: *const Part, count: i64) {
    if result > 0 {
        orders(Op::Acquire, file);
    }
    // SAFETY: the arguments of the call that was made.
    unsafe { transferred_parts(vector, count, result, AccessClass::Write) };
}

unsafe extern "C" fn before_write_of_parts(file: i64, vector: *const Part, count: i64) {
    // SAFETY: the arguments of the call to be made.
    unsafe { transferred_parts(vector, count, i64::MAX, AccessClass::Read) };
    orders(Op::Release, file);
}

unsafe extern "C" fn before_close(file: i64) {
    orders(Op::Release, file);
}

interpose! {
    __sanitizer_syscall_pre_impl_read => ignored;
    __sanitizer_syscall_post_impl_read => after_read;
    __sanitizer_syscall_pre_impl_pread64 => ignored;
    __sanitizer_syscall_post_impl_pread64 => after_read;
    __sanitizer_syscall_pre_impl_readv => ignored;
    __sanitizer_syscall_post_impl_readv => after_read_of_parts;
    __sanitizer_syscall_pre_impl_write => before_write;
    __sanitizer_syscall_post_impl_write => ignored;
    __sanitizer_syscall_pre_impl_pwrite64 => before_write;
    __sanitizer_syscall_post_impl_pwrite64 => ignored;
    __sanitizer_syscall_pre_impl_writev => before_write_of_parts;
    __sanitizer_syscall_post_impl_writev => ignored;
    __sanitizer_syscall_pre_impl_close => before_close;
    __sanitizer_syscall_post_impl_close => ignored;
}

macro_rules! unused {
    ($($call:ident)*) => { $(
        const _: () = {
            #[unsafe(export_name = concat!("__sanitizer_syscall_pre_impl_", stringify!($call)))]
            #[unsafe(naked)]
            pub unsafe extern "C" fn before() {
                core::arch::naked_asm!("ret")
            }
            #[unsafe(export_name = concat!("__sanitizer_syscall_post_impl_", stringify!($call)))]
            #[unsafe(naked)]
            pub unsafe extern "C" fn after() {
                core::arch::naked_asm!("ret")
            }
        };
    )* };
}

unused! {
    accept accept4 access acct add_key adjtimex alarm bdflush bind brk capget capset chdir chmod chown chown16 chroot
    clock_adjtime clock_getres clock_gettime clock_nanosleep clock_settime connect creat delete_module dup dup2 dup3
    epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd eventfd2 exit exit_group faccessat
    fanotify_init fanotify_mark fchdir fchmod fchmodat fchown fchown16 fchownat fcntl fcntl64 fdatasync fgetxattr flistxattr
    flock fork fremovexattr fsetxattr fstat fstat64 fstatat64 fstatfs fstatfs64 fsync ftruncate futex futimesat get_mempolicy
    get_robust_list getcpu getcwd getdents getdents64 getegid getegid16 geteuid geteuid16 getgid getgid16 getgroups
    getgroups16 gethostname getitimer getpeername getpgid getpgrp getpid getppid getpriority getresgid getresgid16 getresuid
    getresuid16 getrlimit getrusage getsid getsockname getsockopt gettid gettimeofday getuid getuid16 getxattr init_module
    inotify_add_watch inotify_init inotify_init1 inotify_rm_watch io_cancel io_destroy io_getevents io_setup io_submit ioctl
    ioperm ioprio_get ioprio_set ipc kexec_load keyctl kill lchown lchown16 lgetxattr link linkat listen listxattr llistxattr
    llseek lookup_dcookie lremovexattr lseek lsetxattr lstat lstat64 madvise mbind migrate_pages mincore mkdir mkdirat mknod
    mknodat mlock mlockall mmap_pgoff mount move_pages mprotect mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedsend
    mq_unlink mremap msgctl msgget msgrcv msgsnd msync munlock munlockall munmap name_to_handle_at nanosleep newfstat
    newfstatat newlstat newstat newuname ni_syscall nice old_getrlimit old_mmap old_readdir old_select oldumount olduname open
    open_by_handle_at openat pause pciconfig_iobase pciconfig_read pciconfig_write perf_event_open personality pipe pipe2
    pivot_root poll ppoll preadv prlimit64 process_vm_readv process_vm_writev pselect6 ptrace pwritev quotactl readlink
    readlinkat reboot recv recvfrom recvmmsg recvmsg remap_file_pages removexattr rename renameat request_key restart_syscall
    rmdir rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigtimedwait rt_tgsigqueueinfo sched_get_priority_max
    sched_get_priority_min sched_getaffinity sched_getparam sched_getscheduler sched_rr_get_interval sched_setaffinity
    sched_setparam sched_setscheduler sched_yield select semctl semget semop semtimedop send sendfile sendfile64 sendmmsg
    sendmsg sendto set_mempolicy set_robust_list set_tid_address setdomainname setfsgid setfsgid16 setfsuid setfsuid16 setgid
    setgid16 setgroups setgroups16 sethostname setitimer setns setpgid setpriority setregid setregid16 setresgid setresgid16
    setresuid setresuid16 setreuid setreuid16 setrlimit setsid setsockopt settimeofday setuid setuid16 setxattr sgetmask shmat
    shmctl shmdt shmget shutdown sigaction sigaltstack signal signalfd signalfd4 sigpending sigprocmask socket socketcall
    socketpair splice spu_create spu_run ssetmask stat stat64 statfs statfs64 stime swapoff swapon symlink symlinkat sync
    syncfs sysctl sysfs sysinfo syslog tee tgkill time timer_create timer_delete timer_getoverrun timer_gettime timer_settime
    timerfd_create timerfd_gettime timerfd_settime times tkill truncate umask umount uname unlink unlinkat unshare uselib
    ustat utime utimensat utimes vfork vhangup vmsplice wait4 waitid waitpid
}
