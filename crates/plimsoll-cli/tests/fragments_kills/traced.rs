//! A program that runs step by step, as a debugger runs it, and is killed before one of its steps.
//! A step is a call to the system that changes a file or a folder. Nothing of the program knows of it.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// How a run ended.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Run {
    /// Killed before this step.
    Killed,
    /// By itself, after so many steps.
    Ended { steps: u64, code: i32 },
}

/// Calls that change something, whatever their arguments are.
const CHANGES: &[i64] = &[
    libc::SYS_mkdirat,
    libc::SYS_unlinkat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mkdir,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_unlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rename,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_link,
];

/// Calls that change the file behind their first argument.
const CHANGES_FILE: &[i64] = &[
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_pwrite64,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_flock,
    libc::SYS_utimensat,
];

/// Runs a program; if `kill_before` names one of its steps (from 1), it is killed when it comes there. Steps on files count
/// if those lie below `folder`.
pub(crate) fn run(command: &mut Command, folder: &Path, kill_before: Option<u64>) -> Run {
    let folder = folder.canonicalize().unwrap();
    let pid = start(command);
    let mut steps = 0;
    let mut next = (pid, 0);
    loop {
        resume(next.0, next.1);
        let (thread, status) = wait();
        if thread == pid && libc::WIFSIGNALED(status) {
            assert_eq!(libc::WTERMSIG(status), libc::SIGKILL, "nobody else kills it");
            return Run::Killed;
        }
        if thread == pid && libc::WIFEXITED(status) {
            return Run::Ended { steps, code: libc::WEXITSTATUS(status) };
        }
        if !libc::WIFSTOPPED(status) {
            // A thread of it has ended: the others go on by themselves.
            next = (0, 0);
            continue;
        }
        let signal = libc::WSTOPSIG(status);
        next = match signal {
            STOPPED_AT_CALL => {
                steps += u64::from(is_step(thread, &folder));
                if Some(steps) == kill_before {
                    // It dies at the door: the call is not made.
                    kill(pid);
                    (0, 0)
                } else {
                    (thread, 0)
                }
            }
            // Of tracing itself: a new thread, or the start.
            libc::SIGTRAP | libc::SIGSTOP => (thread, 0),
            own => (thread, own),
        };
    }
}

/// What a stop before or after a call looks like, other than a signal.
const STOPPED_AT_CALL: i32 = libc::SIGTRAP | 0x80;

/// Whether the call that a thread is about to make is a step.
fn is_step(thread: i32, folder: &Path) -> bool {
    let Some((call, arguments)) = call(thread) else { return false };
    if call == libc::SYS_openat {
        return arguments[2] & libc::O_CREAT as u64 != 0;
    }
    let is_below = || {
        let link = format!("/proc/{thread}/fd/{}", arguments[0]);
        fs::read_link(link).is_ok_and(|path| path.starts_with(folder))
    };
    CHANGES.contains(&call) || (CHANGES_FILE.contains(&call) && is_below())
}

fn checked(returned: i64) -> i64 {
    assert!(returned >= 0, "{}; tracing is allowed where debuggers work", io::Error::last_os_error());
    returned
}

#[expect(unsafe_code, reason = "there is no safe call for it")]
#[expect(clippy::zombie_processes, reason = "`wait` waits for whichever thread of it ends")]
fn start(command: &mut Command) -> i32 {
    let traced = || {
        // SAFETY: a call without pointers, which is allowed between fork and exec.
        match unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0_usize, 0_usize) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    };
    // SAFETY: the closure makes one call to the system and touches no memory of ours.
    let child = unsafe { command.pre_exec(traced) }.spawn().expect("it starts");
    let pid = child.id() as i32;
    let (stopped, status) = wait();
    assert!(stopped == pid && libc::WIFSTOPPED(status), "it stops before its first instruction");
    let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_TRACECLONE | libc::PTRACE_O_EXITKILL;
    // SAFETY: a call without pointers about our own child, which is stopped.
    checked(unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, pid, 0_usize, options as usize) });
    pid
}

/// Goes on to the next call, or to the next signal.
#[expect(unsafe_code, reason = "there is no safe call for it")]
fn resume(thread: i32, signal: i32) {
    if thread != 0 {
        // SAFETY: a call without pointers. A thread that has died meanwhile is an error that says nothing.
        let _ = unsafe { libc::ptrace(libc::PTRACE_SYSCALL, thread, 0_usize, signal as usize) };
    }
}

/// Waits for whichever thread of our own children stops or ends next. Children of other tests are none of this thread's.
#[expect(unsafe_code, reason = "there is no safe call for it")]
fn wait() -> (i32, i32) {
    let mut status = 0;
    // SAFETY: the status is valid for writing.
    let thread = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL | libc::__WNOTHREAD) };
    (checked(thread.into()) as i32, status)
}

/// The call that a stopped thread is about to make; none if it comes back from one.
#[expect(unsafe_code, reason = "there is no safe call for it")]
fn call(thread: i32) -> Option<(i64, [u64; 6])> {
    // SAFETY: a structure of plain numbers.
    let mut info: libc::ptrace_syscall_info = unsafe { std::mem::zeroed() };
    let size = size_of_val(&info);
    // SAFETY: it is valid for writing this many bytes.
    let told = unsafe { libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, thread, size, &raw mut info) };
    // A thread that another one has just ended tells nothing any more.
    if told <= 0 || info.op != libc::PTRACE_SYSCALL_INFO_ENTRY {
        return None;
    }
    // SAFETY: for a stop before a call the kernel has filled this part.
    let entry = unsafe { info.u.entry };
    Some((entry.nr as i64, entry.args))
}

#[expect(unsafe_code, reason = "there is no safe call for it")]
fn kill(pid: i32) {
    // SAFETY: a call without pointers about our own child, which was not waited for yet.
    checked(unsafe { libc::kill(pid, libc::SIGKILL) }.into());
}
