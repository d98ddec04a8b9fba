//! Classic BPF for seccomp: the handful of instructions that filters are made of
//! (`include/uapi/linux/seccomp.h`, `linux/filter.h`).

use crate::seccomp_program::{
    AND, Instruction, JUMP_IF_EQUAL, JUMP_IF_GREATER, JUMP_IF_GREATER_OR_EQUAL, LOAD_WORD, RETURN,
};

/// The kernel's `BPF_MAXINSNS`.
pub const MAX_INSTRUCTIONS: usize = 4096;

/// Offsets in `struct seccomp_data`.
const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;
const ARGUMENTS_AT: u32 = 16;

/// How an argument is compared with a 64-bit value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    /// `argument & mask == value`
    MaskedEqual {
        mask: u64,
    },
}

/// A condition on one argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// 0 to 5.
    pub argument: u32,
    pub comparison: Comparison,
    pub value: u64,
}

/// A filter that compares the low half of the first argument `compares` times, each time with an
/// instruction to return behind it, as compiled profiles look, and allows everything.
pub fn compare_first_argument(compares: u32) -> Vec<Instruction> {
    let mut program = vec![load_argument_half(0, false)];
    for index in 0..compares {
        // No workload passes such a value, so every comparison is made; it would be allowed too.
        program.push((JUMP_IF_EQUAL, 0, 1, 0x8bad_0000 | index));
        program.push(allow());
    }
    program.push(allow());
    program
}

pub fn load_number() -> Instruction {
    (LOAD_WORD, 0, 0, NUMBER_AT)
}

pub fn load_architecture() -> Instruction {
    (LOAD_WORD, 0, 0, ARCHITECTURE_AT)
}

/// Goes on with the next instruction where the loaded word is `value`, else skips `skip`.
pub fn skip_unless_equal(value: u32, skip: u8) -> Instruction {
    (JUMP_IF_EQUAL, 0, skip, value)
}

/// Skips one instruction where the loaded word is below `value`.
pub fn skip_next_if_below(value: u32) -> Instruction {
    (JUMP_IF_GREATER_OR_EQUAL, 0, 1, value)
}

pub fn return_action(action: u32) -> Instruction {
    (RETURN, 0, 0, action)
}

fn allow() -> Instruction {
    return_action(libc::SECCOMP_RET_ALLOW)
}

/// A block that returns `action` where all conditions hold, and otherwise falls through behind it.
pub fn conditional_return(conditions: &[Condition], action: u32) -> Vec<Instruction> {
    let blocks: Vec<Vec<Step>> = conditions.iter().map(|condition| condition.steps()).collect();
    let total: usize = blocks.iter().map(Vec::len).sum();
    let mut program = Vec::with_capacity(total + 1);
    for block in &blocks {
        let block_end = program.len() + block.len();
        for step in block {
            let here = program.len() + 1;
            let distance = |to: To| match to {
                To::Next => 0,
                To::Pass => (block_end - here) as u8,
                // Six conditions of five instructions: far below the 255 that a jump can reach.
                To::Fail => (total + 1 - here) as u8,
            };
            program.push((
                step.code,
                distance(step.if_true),
                distance(step.if_false),
                step.constant,
            ));
        }
    }
    program.push(return_action(action));
    program
}

#[derive(Clone, Copy)]
enum To {
    Next,
    /// The condition holds: to the next one.
    Pass,
    /// It does not: behind the whole block.
    Fail,
}

struct Step {
    code: u16,
    constant: u32,
    if_true: To,
    if_false: To,
}

impl Condition {
    fn steps(self) -> Vec<Step> {
        use Comparison::*;
        use To::*;
        let (high, low) = ((self.value >> 32) as u32, self.value as u32);
        let load = |is_high| {
            let (code, _, _, constant) = load_argument_half(self.argument, is_high);
            Step { code, constant, if_true: Next, if_false: Next }
        };
        let jump = |code, constant, if_true, if_false| Step { code, constant, if_true, if_false };
        let order = |low_code, greater: To, not_greater: To| {
            vec![
                load(true),
                jump(JUMP_IF_GREATER, high, greater, Next),
                jump(JUMP_IF_EQUAL, high, Next, not_greater),
                load(false),
                jump(low_code, low, greater, not_greater),
            ]
        };
        match self.comparison {
            Equal => vec![
                load(true),
                jump(JUMP_IF_EQUAL, high, Next, Fail),
                load(false),
                jump(JUMP_IF_EQUAL, low, Next, Fail),
            ],
            NotEqual => vec![
                load(true),
                jump(JUMP_IF_EQUAL, high, Next, Pass),
                load(false),
                jump(JUMP_IF_EQUAL, low, Fail, Next),
            ],
            Greater => order(JUMP_IF_GREATER, Pass, Fail),
            GreaterOrEqual => order(JUMP_IF_GREATER_OR_EQUAL, Pass, Fail),
            LessOrEqual => order(JUMP_IF_GREATER, Fail, Pass),
            Less => order(JUMP_IF_GREATER_OR_EQUAL, Fail, Pass),
            MaskedEqual { mask } => vec![
                load(true),
                jump(AND, (mask >> 32) as u32, Next, Next),
                jump(JUMP_IF_EQUAL, high, Next, Fail),
                load(false),
                jump(AND, mask as u32, Next, Next),
                jump(JUMP_IF_EQUAL, low, Next, Fail),
            ],
        }
    }
}

fn load_argument_half(argument: u32, is_high: bool) -> Instruction {
    let is_second_half = is_high == cfg!(target_endian = "little");
    (LOAD_WORD, 0, 0, ARGUMENTS_AT + argument * 8 + if is_second_half { 4 } else { 0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seccomp_program::{Call, action};
    use proptest::prelude::*;

    fn run(program: &[Instruction], number: u32, arguments: [u64; 6]) -> u32 {
        action(program, &Call { architecture: 0, number, arguments })
    }

    fn holds(comparison: Comparison, argument: u64, value: u64) -> bool {
        match comparison {
            Comparison::Equal => argument == value,
            Comparison::NotEqual => argument != value,
            Comparison::Less => argument < value,
            Comparison::LessOrEqual => argument <= value,
            Comparison::Greater => argument > value,
            Comparison::GreaterOrEqual => argument >= value,
            Comparison::MaskedEqual { mask } => argument & mask == value,
        }
    }

    fn comparisons() -> impl Strategy<Value = Comparison> {
        prop_oneof![
            Just(Comparison::Equal),
            Just(Comparison::NotEqual),
            Just(Comparison::Less),
            Just(Comparison::LessOrEqual),
            Just(Comparison::Greater),
            Just(Comparison::GreaterOrEqual),
            any::<u64>().prop_map(|mask| Comparison::MaskedEqual { mask }),
        ]
    }

    /// Values whose halves often agree, where the borders are.
    fn values() -> impl Strategy<Value = u64> {
        let half = prop_oneof![Just(0u64), Just(1), Just(2), Just(0xffff_ffff), 0u64..=0xffff_ffff];
        (half.clone(), half).prop_map(|(high, low)| high << 32 | low)
    }

    proptest! {
        #[test]
        fn conditions_hold_exactly_when_they_should(
            parts in proptest::collection::vec((0u32..6, comparisons(), values()), 1..=6),
            arguments in proptest::array::uniform6(values()),
        ) {
            let conditions: Vec<Condition> = parts
                .iter()
                .map(|&(argument, comparison, value)| Condition { argument, comparison, value })
                .collect();
            let expected = conditions
                .iter()
                .all(|c| holds(c.comparison, arguments[c.argument as usize], c.value));
            let mut program = conditional_return(&conditions, 1);
            program.push(return_action(2));
            prop_assert_eq!(run(&program, 0, arguments), if expected { 1 } else { 2 });
        }
    }

    #[test]
    fn the_comparing_filter_allows_everything_and_fits() {
        let program = compare_first_argument(2000);
        assert!(program.len() <= MAX_INSTRUCTIONS);
        assert_eq!(run(&program, 39, [0; 6]), libc::SECCOMP_RET_ALLOW);
    }
}
