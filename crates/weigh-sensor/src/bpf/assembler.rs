//! Instructions of BPF (RFC 9669), and jumps forward over some of them.

use std::os::fd::{AsRawFd, OwnedFd};

/// Registers: `R0` is a result, `R1` to `R5` are arguments of a helper, which do not outlive it.
#[derive(Clone, Copy)]
pub enum Register {
    R0,
    R1,
    R2,
    R3,
    /// `R6` to `R9` outlive helpers.
    R6 = 6,
    R7,
    R8,
    R9,
    /// End of the program's own 512 bytes.
    Frame = 10,
}

/// A function of the kernel, by its number in `linux/bpf.h`.
#[derive(Clone, Copy)]
pub enum Helper {
    MapLookup = 1,
    Time = 5,
    ProcessAndThread = 14,
    Command = 16,
    ReadKernel = 113,
    Reserve = 131,
    Submit = 132,
}

/// `struct bpf_insn`: the destination register is in the low half of its byte.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    immediate: i32,
}

const LOAD_MAP: u8 = 0x18;
/// The immediate is the file descriptor of a map (`BPF_PSEUDO_MAP_FD`).
const OF_MAP: u8 = 1;
const LOAD: u8 = 0x79;
/// Number of 4 bytes.
const LOAD_32: u8 = 0x61;
const STORE: u8 = 0x7b;
/// The immediate is the kind: 0 adds.
const ATOMIC: u8 = 0xdb;
/// Number of 4 bytes.
const STORE_NUMBER: u8 = 0x62;
const MOVE: u8 = 0xbf;
const MOVE_IMMEDIATE: u8 = 0xb7;
const ADD_IMMEDIATE: u8 = 0x07;
const SHIFT_RIGHT_IMMEDIATE: u8 = 0x77;
const JUMP: u8 = 0x05;
const JUMP_IF_EQUAL: u8 = 0x15;
const JUMP_IF_NOT_EQUAL: u8 = 0x55;
/// Comparison of the lower halves of the registers (Linux 5.1).
const JUMP_IF_NOT_EQUAL_32: u8 = 0x56;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;

/// A jump that has no target yet.
#[must_use = "a jump needs a target"]
pub struct Jump(usize);

/// A program that grows.
#[derive(Default)]
pub struct Assembler {
    instructions: Vec<Instruction>,
}

impl Assembler {
    pub fn move_to(&mut self, to: Register, from: Register) {
        self.push(MOVE, to, from as u8, 0, 0);
    }

    pub fn set(&mut self, register: Register, value: i32) {
        self.push(MOVE_IMMEDIATE, register, 0, 0, value);
    }

    pub fn add(&mut self, register: Register, value: i32) {
        self.push(ADD_IMMEDIATE, register, 0, 0, value);
    }

    pub fn shift_right(&mut self, register: Register, bits: i32) {
        self.push(SHIFT_RIGHT_IMMEDIATE, register, 0, 0, bits);
    }

    /// Sets a register to the 8 bytes at `from + offset`.
    pub fn load(&mut self, to: Register, from: Register, offset: i16) {
        self.push(LOAD, to, from as u8, offset, 0);
    }

    /// Sets a register to the 4 bytes at `from + offset`, and its upper half to zero.
    pub fn load_32(&mut self, to: Register, from: Register, offset: i16) {
        self.push(LOAD_32, to, from as u8, offset, 0);
    }

    /// Sets the 8 bytes at `to + offset` to a register.
    pub fn store(&mut self, to: Register, offset: i16, from: Register) {
        self.push(STORE, to, from as u8, offset, 0);
    }

    /// Adds a register to the 8 bytes at an address, in one step.
    pub fn add_atomically(&mut self, to: Register, from: Register) {
        self.push(ATOMIC, to, from as u8, 0, 0);
    }

    /// Sets the 4 bytes at `to + offset` to a number.
    pub fn store_number(&mut self, to: Register, offset: i16, value: i32) {
        self.push(STORE_NUMBER, to, 0, offset, value);
    }

    pub fn load_map(&mut self, to: Register, map: &OwnedFd) {
        self.push(LOAD_MAP, to, OF_MAP, 0, map.as_raw_fd());
        // Its second half.
        self.instructions.push(Instruction { code: 0, registers: 0, offset: 0, immediate: 0 });
    }

    pub fn call(&mut self, helper: Helper) {
        self.push(CALL, Register::R0, 0, 0, helper as i32);
    }

    pub fn jump(&mut self) -> Jump {
        self.push_jump(JUMP, Register::R0, 0)
    }

    pub fn jump_if_equal(&mut self, register: Register, value: i32) -> Jump {
        self.push_jump(JUMP_IF_EQUAL, register, value)
    }

    pub fn jump_if_not_equal(&mut self, register: Register, value: i32) -> Jump {
        self.push_jump(JUMP_IF_NOT_EQUAL, register, value)
    }

    /// Jumps if the lower half of a register is another number.
    pub fn jump_if_not_equal_32(&mut self, register: Register, value: i32) -> Jump {
        self.push_jump(JUMP_IF_NOT_EQUAL_32, register, value)
    }

    /// Makes the next instruction the target of a jump.
    pub fn land(&mut self, jump: Jump) {
        let next = self.instructions.len();
        self.instructions[jump.0].offset = (next - jump.0 - 1) as i16;
    }

    /// Ends the program with the result 0.
    pub fn exit(mut self) -> Vec<Instruction> {
        self.set(Register::R0, 0);
        self.push(EXIT, Register::R0, 0, 0, 0);
        self.instructions
    }

    fn push_jump(&mut self, code: u8, register: Register, value: i32) -> Jump {
        self.push(code, register, 0, 0, value);
        Jump(self.instructions.len() - 1)
    }

    fn push(&mut self, code: u8, to: Register, from: u8, offset: i16, immediate: i32) {
        let registers = to as u8 | from << 4;
        self.instructions.push(Instruction { code, registers, offset, immediate });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_passes_over_what_comes_before_its_target() {
        let mut program = Assembler::default();
        let jump = program.jump_if_not_equal(Register::R6, -3);
        program.load(Register::R1, Register::Frame, -8);
        program.store(Register::Frame, -16, Register::R1);
        program.land(jump);
        let bytes = |one: &Instruction| (one.code, one.registers, one.offset, one.immediate);
        let program: Vec<_> = program.exit().iter().map(bytes).collect();
        assert_eq!(
            program,
            [
                (0x55, 0x06, 2, -3),
                (0x79, 0xa1, -8, 0),
                (0x7b, 0x1a, -16, 0),
                (0xb7, 0, 0, 0),
                (0x95, 0, 0, 0)
            ]
        );
    }
}
