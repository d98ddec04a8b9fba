//! Starting a program that was made just now.

use std::io::ErrorKind;
use std::process::{Child, Command};
use std::time::Duration;

/// Starts it, again where it is open for writing: also in a child of another test's thread that is not yet
/// the program which it is to be.
pub fn spawn(command: &mut Command) -> Child {
    const TRIES: u32 = 1000;
    const PAUSE: Duration = Duration::from_millis(10);
    for _ in 1..TRIES {
        match command.spawn() {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(PAUSE)
            }
            other => return other.unwrap(),
        }
    }
    command.spawn().unwrap()
}
