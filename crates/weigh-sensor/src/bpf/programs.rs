//! The programs, as instructions. Each is the least that its kind of sensor does.

use std::os::fd::OwnedFd;

use serde::{Deserialize, Serialize};

use super::assembler::Register::{Frame, R0, R1, R2, R3, R6, R7, R8, R9};
use super::assembler::{Assembler, Helper, Instruction, Jump};
use super::event::{self, Moment};
use weigh_workload::setup::kind::proof_calls::ProofCalls;

/// Entries of the map of counters, of which each CPU has its own.
#[derive(Clone, Copy)]
pub enum Counter {
    Counted,
    /// Calls of a worker that prove the sensor, before its program; at the hook for opens, opens of the file
    /// that proves it.
    Worker,
    /// Calls of its launcher that prove the sensor, when the worker had ended.
    Launcher,
    /// Events that found no room in the ring buffer.
    Dropped,
}

pub const COUNTERS: u32 = 4;

/// First and second argument of a system call, in the registers that the kernel saved (`struct pt_regs`).
#[cfg(target_arch = "aarch64")]
const ARGUMENTS: [i16; 2] = [0, 8];
#[cfg(not(target_arch = "aarch64"))]
const ARGUMENTS: [i16; 2] = [112, 104];

/// Offsets in the kernel's structures.
#[derive(Clone, Copy)]
pub struct InodeOffsets {
    pub inode_of_file: i16,
    pub number_of_inode: i16,
    pub file_system_of_inode: i16,
    pub device_of_file_system: i16,
}

/// A file that is told from all others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchedInode {
    pub number: u64,
    /// Device of its file system, as the kernel writes the number.
    pub device: u32,
}

/// Arguments of a system call, as a program can read them.
#[derive(Clone, Copy)]
enum Source {
    /// In the registers that the kernel saved, whose address is in `R6`: only a helper may read there.
    Saved,
    /// At these offsets from `R6`, where the program itself may read.
    Readable([i16; 2]),
}

/// Counts all system calls, at the raw tracepoint `sys_enter`.
///
/// It looks at the arguments of one number only, which no kernel has.
pub fn counter(counters: &OwnedFd, proof: &ProofCalls) -> Vec<Instruction> {
    let mut program = Assembler::default();
    let is_common = load_call(&mut program, proof);
    count(&mut program, Source::Saved, vec![is_common], counters, proof);
    program.exit()
}

/// Counts one system call, at the raw tracepoint of all calls.
pub fn raw_tracepoint(counters: &OwnedFd, proof: &ProofCalls) -> Vec<Instruction> {
    let mut program = Assembler::default();
    let is_other = load_call(&mut program, proof);
    count(&mut program, Source::Saved, Vec::new(), counters, proof);
    program.land(is_other);
    program.exit()
}

/// Counts one system call, at its tracepoint.
pub fn tracepoint(counters: &OwnedFd, proof: &ProofCalls) -> Vec<Instruction> {
    let mut program = Assembler::default();
    program.move_to(R6, R1);
    // Behind the fields of each tracepoint and the number of the call.
    count(&mut program, Source::Readable([16, 24]), Vec::new(), counters, proof);
    program.exit()
}

/// Counts one system call, at a kprobe of its function. The argument of that is the address of the saved
/// registers.
pub fn kprobe(counters: &OwnedFd, proof: &ProofCalls) -> Vec<Instruction> {
    let mut program = Assembler::default();
    program.load(R6, R1, ARGUMENTS[0]);
    count(&mut program, Source::Saved, Vec::new(), counters, proof);
    program.exit()
}

/// Counts one system call, where its function begins. The kernel knows what the argument of that points to.
pub fn fentry(counters: &OwnedFd, proof: &ProofCalls) -> Vec<Instruction> {
    let mut program = Assembler::default();
    program.load(R6, R1, 0);
    count(&mut program, Source::Readable(ARGUMENTS), Vec::new(), counters, proof);
    program.exit()
}

/// Counts files that are opened, at the hook of security modules, and allows all of them.
///
/// It looks for one file by its device and the lower half of its inode number, as a policy looks for its
/// files. Other file systems have the same numbers: an open in an overlay opens the file below too, which has
/// the same one. The kernel lets a program of this kind alone be preempted, so it counts atomically.
pub fn file_open(
    counters: &OwnedFd,
    offsets: InodeOffsets,
    watched: WatchedInode,
) -> Vec<Instruction> {
    let mut program = Assembler::default();
    program.load(R1, R1, 0);
    program.load(R1, R1, offsets.inode_of_file);
    program.load(R2, R1, offsets.number_of_inode);
    let has_other_number = program.jump_if_not_equal_32(R2, watched.number as u32 as i32);
    program.load(R1, R1, offsets.file_system_of_inode);
    program.load_32(R1, R1, offsets.device_of_file_system);
    let has_other_device = program.jump_if_not_equal_32(R1, watched.device as i32);
    increment_atomically(&mut program, counters, Counter::Worker);
    let counted = program.jump();
    program.land(has_other_number);
    program.land(has_other_device);
    increment_atomically(&mut program, counters, Counter::Counted);
    program.land(counted);
    program.exit()
}

/// Writes an event for each system call into a ring buffer, at `sys_enter`, but for those of one process.
///
/// It counts a call before it asks for room.
pub fn events(
    counters: &OwnedFd,
    ring: &OwnedFd,
    own_process: u32,
    proof: &ProofCalls,
) -> Vec<Instruction> {
    let mut program = Assembler::default();
    program.load(R8, R1, 8);
    program.load(R6, R1, 0);
    program.call(Helper::ProcessAndThread);
    program.move_to(R7, R0);
    program.shift_right(R0, 32);
    // An event of the reader would wake up the reader.
    let is_own = program.jump_if_equal(R0, own_process as i32);
    let is_common = program.jump_if_not_equal(R8, proof.call as i32);
    count(&mut program, Source::Saved, vec![is_common], counters, proof);

    let has_no_room = begin_event(&mut program, ring, event::LONG_BYTES);
    program.move_to(R1, R9);
    program.add(R1, event::REGISTERS.into());
    program.set(R2, event::REGISTERS_BYTES);
    program.move_to(R3, R6);
    program.add(R3, event::FIRST_REGISTER);
    program.call(Helper::ReadKernel);
    end_event(&mut program, counters, has_no_room);
    program.land(is_own);
    program.exit()
}

/// Writes an event of this moment in the life of a process into a ring buffer.
pub fn lifecycle(counters: &OwnedFd, ring: &OwnedFd, moment: Moment) -> Vec<Instruction> {
    let mut program = Assembler::default();
    program.call(Helper::ProcessAndThread);
    program.move_to(R7, R0);
    program.set(R8, moment as i32);
    increment(&mut program, counters, Counter::Counted);
    let has_no_room = begin_event(&mut program, ring, event::SHORT_BYTES);
    end_event(&mut program, counters, has_no_room);
    program.exit()
}

/// Sets `R9` to a new event of the process in `R7`, about what is in `R8`; jumps if there is no room.
fn begin_event(program: &mut Assembler, ring: &OwnedFd, bytes: i32) -> Jump {
    program.load_map(R1, ring);
    program.set(R2, bytes);
    program.set(R3, 0);
    program.call(Helper::Reserve);
    let has_no_room = program.jump_if_equal(R0, 0);
    program.move_to(R9, R0);
    program.store(R9, event::PROCESS, R7);
    program.store(R9, event::WHAT, R8);
    program.call(Helper::Time);
    program.store(R9, event::TIME, R0);
    program.move_to(R1, R9);
    program.add(R1, event::COMMAND.into());
    program.set(R2, event::COMMAND_BYTES);
    program.call(Helper::Command);
    has_no_room
}

/// Hands the event in `R9` over, or counts that it had no room.
fn end_event(program: &mut Assembler, counters: &OwnedFd, has_no_room: Jump) {
    program.move_to(R1, R9);
    program.set(R2, 0);
    program.call(Helper::Submit);
    let submitted = program.jump();
    program.land(has_no_room);
    increment(program, counters, Counter::Dropped);
    program.land(submitted);
}

/// Sets `R6` to the address of the saved registers, at `sys_enter`; jumps if it is not the call of the proof.
fn load_call(program: &mut Assembler, proof: &ProofCalls) -> Jump {
    program.move_to(R6, R1);
    program.load(R1, R6, 8);
    let is_other = program.jump_if_not_equal(R1, proof.call as i32);
    program.load(R6, R6, 0);
    is_other
}

/// Counts a call by its first argument: one that proves the sensor apart from all others, which are those of
/// `common` too.
fn count(
    program: &mut Assembler,
    source: Source,
    mut common: Vec<Jump>,
    counters: &OwnedFd,
    proof: &ProofCalls,
) {
    common.extend(load_argument(program, source, 0));
    common.push(program.jump_if_not_equal_32(R1, proof.token as i32));
    common.extend(load_argument(program, source, 1));
    let is_launcher = program.jump_if_not_equal(R1, ProofCalls::OF_WORKER as i32);
    increment(program, counters, Counter::Worker);
    let of_worker = program.jump();
    program.land(is_launcher);
    increment(program, counters, Counter::Launcher);
    let of_launcher = program.jump();
    common.into_iter().for_each(|jump| program.land(jump));
    increment(program, counters, Counter::Counted);
    program.land(of_worker);
    program.land(of_launcher);
}

/// Sets `R1` to an argument; jumps if it cannot be read.
fn load_argument(program: &mut Assembler, source: Source, at: usize) -> Option<Jump> {
    match source {
        Source::Readable(offsets) => {
            program.load(R1, R6, offsets[at]);
            None
        }
        Source::Saved => {
            program.move_to(R1, Frame);
            program.add(R1, -8);
            program.set(R2, 8);
            program.move_to(R3, R6);
            program.add(R3, ARGUMENTS[at].into());
            program.call(Helper::ReadKernel);
            let unread = program.jump_if_not_equal(R0, 0);
            program.load(R1, Frame, -8);
            Some(unread)
        }
    }
}

/// Adds 1 to a counter of this CPU, in a program that nothing can interrupt there to run it again.
fn increment(program: &mut Assembler, counters: &OwnedFd, counter: Counter) {
    let absent = find(program, counters, counter);
    program.load(R1, R0, 0);
    program.add(R1, 1);
    program.store(R0, 0, R1);
    program.land(absent);
}

/// Adds 1 to a counter of this CPU, also if another task runs the program there meanwhile.
fn increment_atomically(program: &mut Assembler, counters: &OwnedFd, counter: Counter) {
    let absent = find(program, counters, counter);
    program.set(R1, 1);
    program.add_atomically(R0, R1);
    program.land(absent);
}

/// Sets `R0` to the address of a counter of this CPU; jumps if it is absent.
fn find(program: &mut Assembler, counters: &OwnedFd, counter: Counter) -> Jump {
    program.store_number(Frame, -16, counter as i32);
    program.load_map(R1, counters);
    program.move_to(R2, Frame);
    program.add(R2, -16);
    program.call(Helper::MapLookup);
    program.jump_if_equal(R0, 0)
}
