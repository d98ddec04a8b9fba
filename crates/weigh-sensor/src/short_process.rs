//! A process that does nothing and ends, to see what the kernel does then.

use std::io;
use std::process::Stdio;

use trust::program;
use trust::start::{self, Inherited};

/// Starts a program that does nothing, and returns its process number when it has ended.
pub fn end_one() -> Result<u32, String> {
    let mut command = start::command(program::named("true")?, Inherited::Fixed);
    let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let failed = |error: io::Error| format!("cannot run the program `true`: {error}");
    let mut child = command.spawn().map_err(failed)?;
    child.wait().map_err(failed)?;
    Ok(child.id())
}
