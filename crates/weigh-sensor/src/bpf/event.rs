//! An event, as a program writes it and the sensor reads it: of a system call, with its arguments, or of the
//! life of a process.

/// Offsets of its parts.
pub const TIME: i16 = 0;
pub const PROCESS: i16 = 8;
/// Number of the call, or a [`Moment`].
pub const WHAT: i16 = 16;
pub const COMMAND: i16 = 24;
pub const COMMAND_BYTES: i32 = 16;
/// Length of an event without registers.
pub const SHORT_BYTES: i32 = 40;
pub const REGISTERS: i16 = 40;
pub const REGISTERS_BYTES: i32 = 64;
pub const LONG_BYTES: i32 = 104;

/// Moment in the life of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Its parent made it; the event is the parent's.
    Fork = 1,
    Exec = 2,
    /// The end of one of its threads.
    Exit = 3,
}

/// First of the saved registers in an event, and where the arguments of a call are from there, in words.
#[cfg(target_arch = "aarch64")]
pub const FIRST_REGISTER: i32 = 0;
#[cfg(target_arch = "aarch64")]
const ARGUMENTS: [usize; 6] = [0, 1, 2, 3, 4, 5];
#[cfg(not(target_arch = "aarch64"))]
pub const FIRST_REGISTER: i32 = 56;
#[cfg(not(target_arch = "aarch64"))]
const ARGUMENTS: [usize; 6] = [7, 6, 5, 0, 2, 1];

#[derive(Debug, PartialEq, Eq)]
pub struct Event {
    /// Number of the process, in the initial PID namespace.
    pub process: u32,
    pub what: u64,
    /// Absent in the life of a process.
    pub arguments: Option<[u64; 6]>,
}

impl Event {
    /// Reads an event; `None` if it has another length.
    pub fn read(bytes: &[u8]) -> Option<Event> {
        let word = |at: usize| Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
        let arguments = match i32::try_from(bytes.len()).ok()? {
            SHORT_BYTES => None,
            LONG_BYTES => {
                let mut arguments = [0; 6];
                for (argument, at) in arguments.iter_mut().zip(ARGUMENTS) {
                    *argument = word(REGISTERS as usize + 8 * at)?;
                }
                Some(arguments)
            }
            _ => return None,
        };
        // The upper half is the process, the lower one its thread.
        let process = (word(PROCESS as usize)? >> 32) as u32;
        Some(Event { process, what: word(WHAT as usize)?, arguments })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_the_arguments_in_their_order() {
        let words: [u64; 13] = std::array::from_fn(|at| at as u64);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let event = Event::read(&bytes).unwrap();
        assert_eq!((event.process, event.what), (0, 2));
        if cfg!(target_arch = "x86_64") {
            // r10, r9, r8, ax, cx, dx, si, di
            assert_eq!(event.arguments, Some([12, 11, 10, 5, 7, 6]));
        }
        assert_eq!(Event::read(&bytes[1..]), None);
        assert_eq!(Event::read(&bytes[..40]).unwrap().arguments, None);
    }
}
