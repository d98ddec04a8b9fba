//! Answers of a seccomp filter to system calls: the classic BPF of `include/uapi/linux/seccomp.h`, run as the
//! kernel runs it, and a variant of the filter in which calls that it denies are announced to a supervisor.

use std::io;
use std::os::fd::RawFd;

/// The fields of `struct sock_filter`: code, jump if true, jump if false, constant.
pub type Instruction = (u16, u8, u8, u32);

pub const LOAD_WORD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
pub const AND: u16 = 0x54; // BPF_ALU | BPF_AND | BPF_K
pub const JUMP: u16 = 0x05; // BPF_JMP | BPF_JA
pub const JUMP_IF_EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
pub const JUMP_IF_GREATER: u16 = 0x25; // BPF_JMP | BPF_JGT | BPF_K
pub const JUMP_IF_GREATER_OR_EQUAL: u16 = 0x35; // BPF_JMP | BPF_JGE | BPF_K
pub const RETURN: u16 = 0x06; // BPF_RET | BPF_K

#[cfg(target_arch = "x86_64")]
pub const NATIVE_ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
pub const NATIVE_ARCHITECTURE: u32 = 0xc000_00b7;

/// A system call as a filter sees it.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub architecture: u32,
    pub number: u32,
    pub arguments: [u64; 6],
}

impl Call {
    /// The word at this offset of `struct seccomp_data`; 0 for the instruction pointer, which our filters do
    /// not read.
    fn word(&self, offset: u32) -> u32 {
        match offset {
            0 => self.number,
            4 => self.architecture,
            16.. => {
                let half = (offset - 16) / 4;
                let argument = self.arguments.get(half as usize / 2).copied().unwrap_or(0);
                let is_high = (half % 2 == 1) == cfg!(target_endian = "little");
                if is_high { (argument >> 32) as u32 } else { argument as u32 }
            }
            _ => 0,
        }
    }
}

/// Runs the filter on a call, and returns the action. An invalid program returns KILL, like a failing filter.
pub fn action(program: &[Instruction], call: &Call) -> u32 {
    let (mut at, mut word) = (0, 0_u32);
    while let Some(&(code, if_true, if_false, constant)) = program.get(at) {
        at += 1;
        let is_true = match code {
            LOAD_WORD => {
                word = call.word(constant);
                continue;
            }
            AND => {
                word &= constant;
                continue;
            }
            JUMP => {
                at += constant as usize;
                continue;
            }
            RETURN => return constant,
            JUMP_IF_EQUAL => word == constant,
            JUMP_IF_GREATER => word > constant,
            JUMP_IF_GREATER_OR_EQUAL => word >= constant,
            _ => break,
        };
        at += usize::from(if is_true { if_true } else { if_false });
    }
    libc::SECCOMP_RET_KILL_PROCESS
}

/// Returns true if a call with this action is not made.
pub fn denies(action: u32) -> bool {
    !matches!(
        action & libc::SECCOMP_RET_ACTION_FULL,
        libc::SECCOMP_RET_ALLOW | libc::SECCOMP_RET_LOG
    )
}

/// The error that a call with a `SECCOMP_RET_ERRNO` action gets: what a filter asks for, up to the largest
/// error that the kernel knows.
pub fn errno(action: u32) -> i32 {
    const MAX_ERRNO: u32 = 4095; // include/linux/err.h
    (action & libc::SECCOMP_RET_DATA).min(MAX_ERRNO) as i32
}

/// Returns true if the filter denies any call.
pub fn can_deny(program: &[Instruction]) -> bool {
    program.iter().any(|&(code, _, _, action)| code == RETURN && denies(action))
}

/// Filter that notifies its supervisor instead of each denial.
pub fn announcing(program: &[Instruction]) -> Vec<Instruction> {
    let announced = |&(code, if_true, if_false, constant): &Instruction| {
        let is_denial = code == RETURN && denies(constant);
        let constant = if is_denial { libc::SECCOMP_RET_USER_NOTIF } else { constant };
        (code, if_true, if_false, constant)
    };
    program.iter().map(announced).collect()
}

/// Puts this process under a filter that asks a supervisor, and returns the descriptor on which the
/// supervisor is asked (`seccomp_unotify(2)`).
///
/// # Errors
/// Fails if the kernel refuses the filter, or has more instructions than it takes.
pub fn install_notifying(program: &[Instruction]) -> io::Result<RawFd> {
    rustix::thread::set_no_new_privs(true)?;
    let instruction = |&(code, jt, jf, k): &_| libc::sock_filter { code, jt, jf, k };
    let mut instructions: Vec<libc::sock_filter> = program.iter().map(instruction).collect();
    let length = u16::try_from(instructions.len())
        .map_err(|_| io::Error::other("a seccomp filter has at most 4096 instructions"))?;
    let filter = libc::sock_fprog { len: length, filter: instructions.as_mut_ptr() };
    // SAFETY: `filter` and the instructions that it points to live across the call.
    let listener = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &raw const filter,
        )
    };
    if listener < 0 { Err(io::Error::last_os_error()) } else { Ok(listener as RawFd) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EPERM: u32 = libc::SECCOMP_RET_ERRNO | 1;
    const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;

    /// Denies call 7 where the high half of its second argument is 5.
    const FILTER: [Instruction; 6] = [
        (LOAD_WORD, 0, 0, 0),
        (JUMP_IF_EQUAL, 0, 3, 7),
        (LOAD_WORD, 0, 0, if cfg!(target_endian = "little") { 28 } else { 24 }),
        (JUMP_IF_EQUAL, 0, 1, 5),
        (RETURN, 0, 0, EPERM),
        (RETURN, 0, 0, ALLOW),
    ];

    #[test]
    fn a_denial_is_announced_and_all_else_stays() {
        let call = |number, argument| Call {
            architecture: NATIVE_ARCHITECTURE,
            number,
            arguments: [0, argument, 0, 0, 0, 0],
        };
        let denied = call(7, 5 << 32);
        let allowed = [call(7, 5), call(8, 5 << 32)];
        assert_eq!(action(&FILTER, &denied), EPERM);
        assert_eq!(allowed.map(|call| action(&FILTER, &call)), [ALLOW; 2]);
        let announcing = announcing(&FILTER);
        assert_eq!(action(&announcing, &denied), libc::SECCOMP_RET_USER_NOTIF);
        assert_eq!(allowed.map(|call| action(&announcing, &call)), [ALLOW; 2]);
        assert!(can_deny(&FILTER) && !can_deny(&[(RETURN, 0, 0, libc::SECCOMP_RET_LOG)]));
    }

    #[test]
    fn the_kernel_has_no_larger_error_than_4095() {
        assert_eq!([EPERM, EPERM + 5000].map(errno), [1, 4095]);
    }

    #[test]
    fn a_program_without_an_end_kills() {
        let call = Call { architecture: 0, number: 0, arguments: [0; 6] };
        assert_eq!(action(&[(JUMP, 0, 0, 9)], &call), libc::SECCOMP_RET_KILL_PROCESS);
    }
}
