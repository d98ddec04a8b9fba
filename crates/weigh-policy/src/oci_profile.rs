//! Seccomp profiles in the JSON of the OCI runtime specification (`config-linux.md`, "Seccomp"),
//! with the conditions that Docker and Podman add, compiled for the machine's own ABI and, where the profile
//! lists them, for the 32-bit ABIs of x86-64.
//!
//! As libseccomp does it: a rule without arguments outweighs those with; the others of one system
//! call are tried in the order written.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::abi::{self, Abi};
use super::host::HostFeatures;
use super::profile_text;
use trust::user_file;
use weigh_model::format;
use weigh_workload::seccomp_instructions::{self, Comparison, Condition};
use weigh_workload::seccomp_program::{Instruction, JUMP, JUMP_IF_EQUAL, NATIVE_ARCHITECTURE};

/// Docker's profile has 12 KB.
const LONGEST_FILE: u64 = 4 << 20;
/// The calls of `SystemCallFilter=@system-service` in systemd 252, with `SystemCallErrorNumber=EPERM`.
pub const SYSTEM_SERVICE: &str = "@system-service";
/// Calls that a tree compares one after the other.
const LEAF: usize = 4;

/// A profile, compiled.
#[derive(Clone, Debug, PartialEq)]
pub struct Compiled {
    pub program: Vec<Instruction>,
    /// Summary of the profile for the report, without a full stop.
    pub description: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OciProfile {
    default_action: String,
    default_errno_ret: Option<u16>,
    #[serde(default)]
    architectures: Option<Vec<String>>,
    /// Docker's form of `architectures`.
    #[serde(default)]
    arch_map: Option<Vec<ArchitectureMap>>,
    #[serde(default)]
    syscalls: Vec<OciRule>,
    /// How a runtime installs the filter, such as `SECCOMP_FILTER_FLAG_SPEC_ALLOW`.
    #[serde(default)]
    flags: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ArchitectureMap {
    architecture: String,
    #[serde(default)]
    sub_architectures: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OciRule {
    #[serde(default)]
    names: Vec<String>,
    /// Docker's older form.
    name: Option<String>,
    action: String,
    errno_ret: Option<u16>,
    args: Option<Vec<Argument>>,
    includes: Option<OciConditions>,
    excludes: Option<OciConditions>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Argument {
    index: u32,
    value: u64,
    #[serde(default)]
    value_two: u64,
    op: String,
}

/// When an entry is meant; all that is stated must hold.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct OciConditions {
    caps: Vec<String>,
    arches: Vec<String>,
    min_kernel: String,
}

/// Order in which a filter looks for the number of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// One comparison after the other, in the order of numbers: libseccomp's default, and so systemd's.
    #[default]
    Chain,
    /// A binary search: runc asks libseccomp for it above eight rules.
    Tree,
}

/// Reads and compiles a profile: a file, or [`SYSTEM_SERVICE`].
///
/// # Errors
/// A sentence with the file, the place, and what is wrong.
pub fn read(path: &Path, layout: Layout) -> Result<Compiled, String> {
    let text = match path.to_str() {
        Some(SYSTEM_SERVICE) => include_str!("system-service.json").to_owned(),
        _ => user_file::read_text(path, LONGEST_FILE)
            .map_err(|error| format!("cannot read the profile {}: {error}", path.display()))?,
    };
    compile(&text, &HostFeatures::read(), layout)
        .map_err(|problem| format!("{}: {problem}", path.display()))
}

fn compile(text: &str, host: &HostFeatures, layout: Layout) -> Result<Compiled, String> {
    let (profile, origin): (OciProfile, _) = profile_text::profile(text)?;
    let default = action(&profile.default_action, profile.default_errno_ret)?;
    let (rules, unknown_names) = profile.rules(Abi::Native, host)?;
    let foreign: Vec<Abi> = abi::FOREIGN.into_iter().filter(|abi| profile.lists(*abi)).collect();
    let others = foreign.iter().map(|abi| Ok((*abi, profile.rules(*abi, host)?.0)));
    let others = others.collect::<Result<Vec<_>, String>>()?;
    let program = assemble(&rules, &others, default, layout);
    if program.len() > seccomp_instructions::MAX_INSTRUCTIONS {
        return Err(format!(
            "it compiles to {} BPF instructions, but the kernel takes at most {}",
            program.len(),
            seccomp_instructions::MAX_INSTRUCTIONS
        ));
    }
    let mut description =
        format!("{origin}rules for {}", format::plural(rules.len(), "system call"));
    if layout == Layout::Tree {
        description += ", found by a binary search";
    }
    for abi in foreign {
        description += &format!(", also for {}", abi.name());
    }
    if unknown_names > 0 {
        let names = format::plural(unknown_names, "name");
        description += &format!("; {names} of other architectures or kernels");
    }
    if !profile.flags.is_empty() {
        description += &format!("; its flags are not applied: {}", profile.flags.join(", "));
    }
    Ok(Compiled { program, description })
}

/// Calls of an ABI with their rules, by number.
type Rules = BTreeMap<u32, Vec<(Vec<Condition>, u32)>>;

impl OciProfile {
    /// Returns true if the profile has rules for the calls of a foreign ABI.
    fn lists(&self, abi: Abi) -> bool {
        let mapped = self.arch_map.iter().flatten();
        let own = mapped.filter(|map| map.architecture == Abi::Native.listed());
        let subs = own.flat_map(|map| map.sub_architectures.iter().flatten());
        self.architectures.iter().flatten().chain(subs).any(|name| name == abi.listed())
    }

    /// The rules for an ABI's calls, and the number of names that it lacks.
    fn rules(&self, abi: Abi, host: &HostFeatures) -> Result<(Rules, usize), String> {
        let (mut rules, mut unknown_names) = (Rules::new(), 0);
        for entry in self.syscalls.iter().filter(|entry| entry.is_meant(host)) {
            let conditions = entry.conditions()?;
            let result = action(&entry.action, entry.errno_ret)?;
            for name in entry.names.iter().chain(&entry.name) {
                match abi.number(name) {
                    Some(number) => {
                        rules.entry(number).or_default().push((conditions.clone(), result));
                    }
                    None => unknown_names += 1,
                }
            }
        }
        Ok((rules, unknown_names))
    }
}

/// The calls of the machine's own ABI come first, so other ABIs cost them nothing. Calls of an ABI that the
/// profile does not list kill the thread, as in libseccomp (`SCMP_FLTATR_ACT_BADARCH`).
fn assemble(
    rules: &Rules,
    others: &[(Abi, Rules)],
    default: u32,
    layout: Layout,
) -> Vec<Instruction> {
    let body = |rules: &Rules| {
        let blocks: Vec<(u32, Vec<Instruction>)> =
            rules.iter().map(|(number, choices)| (*number, block(choices, default))).collect();
        match layout {
            Layout::Chain => chain(&blocks, default),
            Layout::Tree => tree(&blocks, default),
        }
    };
    let kill = seccomp_instructions::return_action(libc::SECCOMP_RET_KILL_THREAD);
    let of =
        |abi: Abi| others.iter().find(|(other, _)| *other == abi).map(|(_, rules)| body(rules));
    let jump = |over: usize| (JUMP, 0, 0, over as u32);
    let mut native = vec![seccomp_instructions::load_number()];
    let own = body(rules);
    if cfg!(target_arch = "x86_64") {
        native.push(seccomp_instructions::skip_next_if_below(abi::X32_BIT));
        native.push(of(Abi::X32).map_or(kill, |_| jump(own.len())));
    }
    native.extend(own);
    native.extend(of(Abi::X32).into_iter().flatten());
    let mut program = vec![
        seccomp_instructions::load_architecture(),
        (JUMP_IF_EQUAL, 1, 0, NATIVE_ARCHITECTURE),
        jump(native.len()),
    ];
    program.extend(native);
    if let Some(i386) = of(Abi::I386) {
        program.push((JUMP_IF_EQUAL, 1, 0, abi::I386_ARCHITECTURE));
        program.push(kill);
        program.push(seccomp_instructions::load_number());
        program.extend(i386);
    } else {
        program.push(kill);
    }
    program
}

/// The answer to a call whose number is known.
fn block(choices: &[(Vec<Condition>, u32)], default: u32) -> Vec<Instruction> {
    if let Some((_, action)) = choices.iter().find(|(conditions, _)| conditions.is_empty()) {
        return vec![seccomp_instructions::return_action(*action)];
    }
    let conditional = choices.iter().flat_map(|(conditions, action)| {
        seccomp_instructions::conditional_return(conditions, *action)
    });
    conditional.chain([seccomp_instructions::return_action(default)]).collect()
}

fn chain(blocks: &[(u32, Vec<Instruction>)], default: u32) -> Vec<Instruction> {
    let mut program = Vec::new();
    for (number, block) in blocks {
        match u8::try_from(block.len()) {
            Ok(length) => program.push(seccomp_instructions::skip_unless_equal(*number, length)),
            Err(_) => {
                // Too long to be jumped over in one step: an unconditional jump does it.
                program.push((0x15, 1, 0, *number));
                program.push((0x05, 0, 0, block.len() as u32));
            }
        }
        program.extend(block);
    }
    program.push(seccomp_instructions::return_action(default));
    program
}

fn tree(blocks: &[(u32, Vec<Instruction>)], default: u32) -> Vec<Instruction> {
    if blocks.len() <= LEAF {
        return chain(blocks, default);
    }
    let (lower, upper) = blocks.split_at(blocks.len() / 2);
    let (first, lower) = (upper[0].0, tree(lower, default));
    // `BPF_JGE`, which jumps 255 instructions at most; `BPF_JA` jumps further.
    let mut program = match u8::try_from(lower.len()) {
        Ok(length) => vec![(0x35, length, 0, first)],
        Err(_) => vec![(0x35, 0, 1, first), (0x05, 0, 0, lower.len() as u32)],
    };
    program.extend(lower);
    program.extend(tree(upper, default));
    program
}

fn action(name: &str, errno: Option<u16>) -> Result<u32, String> {
    const EPERM: u16 = 1;
    Ok(match name {
        "SCMP_ACT_ALLOW" => libc::SECCOMP_RET_ALLOW,
        "SCMP_ACT_ERRNO" => libc::SECCOMP_RET_ERRNO | u32::from(errno.unwrap_or(EPERM)),
        "SCMP_ACT_KILL" | "SCMP_ACT_KILL_THREAD" => libc::SECCOMP_RET_KILL_THREAD,
        "SCMP_ACT_KILL_PROCESS" => libc::SECCOMP_RET_KILL_PROCESS,
        "SCMP_ACT_TRAP" => libc::SECCOMP_RET_TRAP,
        "SCMP_ACT_TRACE" => libc::SECCOMP_RET_TRACE | u32::from(errno.unwrap_or(EPERM)),
        "SCMP_ACT_LOG" => libc::SECCOMP_RET_LOG,
        "SCMP_ACT_NOTIFY" => {
            return Err("SCMP_ACT_NOTIFY needs a supervisor, which weigh does not provide".into());
        }
        other => {
            return Err(format!("`{other}` is not an action (SCMP_ACT_ALLOW, SCMP_ACT_ERRNO, …)"));
        }
    })
}

impl OciRule {
    fn conditions(&self) -> Result<Vec<Condition>, String> {
        let arguments = self.args.as_deref().unwrap_or_default();
        if arguments.len() > 6 {
            return Err(format!("{:?}: a system call has six arguments at most", self.names));
        }
        arguments.iter().map(Argument::condition).collect()
    }

    fn is_meant(&self, host: &HostFeatures) -> bool {
        self.includes.as_ref().is_none_or(|filter| filter.all_hold(host))
            && !self.excludes.as_ref().is_some_and(|filter| filter.any_holds(host))
    }
}

impl Argument {
    fn condition(&self) -> Result<Condition, String> {
        if self.index > 5 {
            return Err(format!("argument {} does not exist: arguments are 0 to 5", self.index));
        }
        let (comparison, value) = match self.op.as_str() {
            "SCMP_CMP_EQ" => (Comparison::Equal, self.value),
            "SCMP_CMP_NE" => (Comparison::NotEqual, self.value),
            "SCMP_CMP_LT" => (Comparison::Less, self.value),
            "SCMP_CMP_LE" => (Comparison::LessOrEqual, self.value),
            "SCMP_CMP_GT" => (Comparison::Greater, self.value),
            "SCMP_CMP_GE" => (Comparison::GreaterOrEqual, self.value),
            "SCMP_CMP_MASKED_EQ" => (Comparison::MaskedEqual { mask: self.value }, self.value_two),
            other => return Err(format!("`{other}` is not a comparison (SCMP_CMP_EQ, …)")),
        };
        Ok(Condition { argument: self.index, comparison, value })
    }
}

impl OciConditions {
    fn all_hold(&self, host: &HostFeatures) -> bool {
        self.caps.iter().all(|capability| host.has(capability))
            && (self.arches.is_empty() || self.names_this_machine())
            && (self.min_kernel.is_empty() || host.is_at_least(&self.min_kernel))
    }

    fn any_holds(&self, host: &HostFeatures) -> bool {
        self.caps.iter().any(|capability| host.has(capability))
            || self.names_this_machine()
            || (!self.min_kernel.is_empty() && host.is_at_least(&self.min_kernel))
    }

    fn names_this_machine(&self) -> bool {
        let names: &[&str] =
            if cfg!(target_arch = "x86_64") { &["amd64", "x86_64"] } else { &["arm64", "aarch64"] };
        self.arches.iter().any(|arch| names.contains(&arch.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weigh_workload::seccomp_program::{Call, action};

    const HOST: HostFeatures = HostFeatures { capabilities: 1 << 21, kernel: (6, 1) };
    const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
    const DENY: u32 = libc::SECCOMP_RET_ERRNO | 1;

    fn run(program: &[Instruction], name: &str, arguments: [u64; 6]) -> u32 {
        let number = name.parse::<syscalls::Sysno>().unwrap().id() as u32;
        action(program, &Call { architecture: NATIVE_ARCHITECTURE, number, arguments })
    }

    #[test]
    fn a_profile_does_what_it_says() {
        let text = r#"{"defaultAction":"SCMP_ACT_ERRNO","architectures":["SCMP_ARCH_X86_64"],
            "syscalls":[
              {"names":["read","write","no_such_call"],"action":"SCMP_ACT_ALLOW"},
              {"names":["personality"],"action":"SCMP_ACT_ALLOW",
               "args":[{"index":0,"value":8,"op":"SCMP_CMP_EQ"}]},
              {"names":["clone"],"action":"SCMP_ACT_ALLOW",
               "args":[{"index":0,"value":2114060288,"valueTwo":0,"op":"SCMP_CMP_MASKED_EQ"}]},
              {"names":["mount"],"action":"SCMP_ACT_ALLOW","includes":{"caps":["CAP_SYS_ADMIN"]}},
              {"names":["bpf"],"action":"SCMP_ACT_ALLOW","includes":{"caps":["CAP_BPF"]}},
              {"names":["ptrace"],"action":"SCMP_ACT_ALLOW","includes":{"minKernel":"4.8"}},
              {"names":["socket"],"action":"SCMP_ACT_ERRNO","errnoRet":97}]}"#;
        let Compiled { program, description } = compile(text, &HOST, Layout::Chain).unwrap();
        assert_eq!(run(&program, "read", [0; 6]), ALLOW);
        assert_eq!(run(&program, "getppid", [0; 6]), DENY);
        assert_eq!(run(&program, "personality", [8, 0, 0, 0, 0, 0]), ALLOW);
        assert_eq!(run(&program, "personality", [9, 0, 0, 0, 0, 0]), DENY);
        assert_eq!(run(&program, "clone", [0x11, 0, 0, 0, 0, 0]), ALLOW);
        assert_eq!(run(&program, "clone", [0x1000_0000, 0, 0, 0, 0, 0]), DENY);
        assert_eq!(run(&program, "mount", [0; 6]), ALLOW);
        assert_eq!(run(&program, "bpf", [0; 6]), DENY);
        assert_eq!(run(&program, "ptrace", [0; 6]), ALLOW);
        assert_eq!(run(&program, "socket", [0; 6]), libc::SECCOMP_RET_ERRNO | 97);
        let foreign = Call { architecture: abi::I386_ARCHITECTURE, number: 0, arguments: [0; 6] };
        assert_eq!(action(&program, &foreign), libc::SECCOMP_RET_KILL_THREAD);
        assert!(description.contains("1 name "));
    }

    /// Allows getpid only, of these ABIs.
    #[cfg(target_arch = "x86_64")]
    fn getpid_only(architectures: &str, layout: Layout) -> Compiled {
        let text = format!(
            r#"{{"defaultAction":"SCMP_ACT_ERRNO",{architectures},
            "syscalls":[{{"names":["getpid","exit_group","exit"],"action":"SCMP_ACT_ALLOW"}}]}}"#
        );
        compile(&text, &HOST, layout).unwrap()
    }

    #[cfg(target_arch = "x86_64")]
    const OF_X86: &str = r#""architectures":["SCMP_ARCH_X86_64","SCMP_ARCH_X86","SCMP_ARCH_X32"]"#;

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn calls_of_32_bit_abis_have_the_rules_of_the_profile_or_kill() {
        let docker = r#""archMap":[{"architecture":"SCMP_ARCH_X86_64",
            "subArchitectures":["SCMP_ARCH_X86","SCMP_ARCH_X32"]},
            {"architecture":"SCMP_ARCH_AARCH64","subArchitectures":["SCMP_ARCH_ARM"]}]"#;
        let [i386, x32] = [abi::I386_ARCHITECTURE, NATIVE_ARCHITECTURE];
        let answer = |compiled: &Compiled, architecture, number| {
            action(&compiled.program, &Call { architecture, number, arguments: [0; 6] })
        };
        for listed in [getpid_only(OF_X86, Layout::Chain), getpid_only(docker, Layout::Tree)] {
            assert!(listed.description.contains("also for i386, also for x32"));
            // getpid and getppid: 20 and 64 of i386, 39 and 110 of x86-64.
            assert_eq!([20, 64].map(|number| answer(&listed, i386, number)), [ALLOW, DENY]);
            let of_x32 = [39, 110].map(|number| answer(&listed, x32, abi::X32_BIT | number));
            assert_eq!(of_x32, [ALLOW, DENY]);
            assert_eq!([39, 110].map(|number| answer(&listed, x32, number)), [ALLOW, DENY]);
        }
        let only = getpid_only(r#""architectures":["SCMP_ARCH_X86_64"]"#, Layout::Chain);
        let kill = libc::SECCOMP_RET_KILL_THREAD;
        assert_eq!([answer(&only, i386, 20), answer(&only, x32, abi::X32_BIT | 39)], [kill; 2]);
        assert_eq!(answer(&only, 0xc000_00b7, 172), kill, "of another machine");
    }

    /// Makes a call of i386, under the filter if there is one, in a process of its own. Gives how it ended.
    #[cfg(target_arch = "x86_64")]
    fn call_of_i386(filter: Option<Compiled>, call: i32) -> i32 {
        use weigh_workload::setup::{Act, kind::seccomp_filter::SeccompFilter};
        // SAFETY: the child makes system calls only; it may use the heap as it was, before other threads.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let program = filter.map(|compiled| compiled.program);
            let step = program.map(|program| SeccompFilter { program, times: 1 });
            let status = match step.map_or(Ok(()), |step| step.in_worker()) {
                Ok(()) => {
                    let answer: i32;
                    // SAFETY: a system call without arguments, which keeps all but these registers.
                    unsafe {
                        std::arch::asm!("int 0x80", inlateout("eax") call => answer,
                            out("r8") _, out("r9") _, out("r10") _, out("r11") _);
                    }
                    if answer > 0 { 0 } else { -answer }
                }
                Err(_) => 99,
            };
            // SAFETY: it ends this process without running what others left to do at its end.
            unsafe { libc::_exit(status) }
        }
        let mut status = 0;
        // SAFETY: it writes a status, which lives across the call.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        if libc::WIFSIGNALED(status) { -libc::WTERMSIG(status) } else { libc::WEXITSTATUS(status) }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn the_kernel_answers_a_32_bit_call_as_the_profile_says() {
        const GETPID: i32 = 20;
        const GETPPID: i32 = 64;
        if call_of_i386(None, GETPID) != 0 {
            eprintln!("skipped: this kernel lacks 32-bit calls (CONFIG_IA32_EMULATION)");
            return;
        }
        let listed = || Some(getpid_only(OF_X86, Layout::Chain));
        assert_eq!(call_of_i386(listed(), GETPID), 0);
        assert_eq!(call_of_i386(listed(), GETPPID), libc::EPERM);
        let only = getpid_only(r#""architectures":["SCMP_ARCH_X86_64"]"#, Layout::Chain);
        assert_eq!(call_of_i386(Some(only), GETPID), -libc::SIGSYS);
    }

    #[test]
    fn flags_that_are_not_applied_are_named() {
        let text = r#"{"linux":{"seccomp":{"defaultAction":"SCMP_ACT_ALLOW",
            "flags":["SECCOMP_FILTER_FLAG_LOG"]}}}"#;
        assert_eq!(
            compile(text, &HOST, Layout::Chain).unwrap().description,
            "only linux.seccomp of this config.json is used: rules for 0 system calls; its flags \
             are not applied: SECCOMP_FILTER_FLAG_LOG"
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        let problem = |text: &str| compile(text, &HOST, Layout::Chain).unwrap_err();
        assert!(problem("{").contains("line 1"));
        assert!(problem(r#"{"defaultAction":"ALLOW"}"#).contains("`ALLOW` is not an action"));
        let entry = |rest: &str| {
            format!(
                r#"{{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{{"names":["read"],"action":"SCMP_ACT_ALLOW",{rest}}}]}}"#
            )
        };
        assert!(
            problem(&entry(r#""args":[{"index":9,"value":0,"op":"SCMP_CMP_EQ"}]"#))
                .contains("argument 9")
        );
        assert!(problem(&entry(r#""args":[{"index":0,"value":0,"op":"=="}]"#)).contains("`==`"));
    }

    #[test]
    fn a_tree_answers_as_the_chain_does() {
        let [chain, tree] = [Layout::Chain, Layout::Tree]
            .map(|layout| read(Path::new(SYSTEM_SERVICE), layout).unwrap().program);
        assert!(tree.len() > chain.len());
        let numbers = (0..600).chain([0x4000_0000, 0x4000_0001, u32::MAX]);
        for call in numbers.flat_map(|number| {
            [NATIVE_ARCHITECTURE, abi::I386_ARCHITECTURE].map(|architecture| Call {
                architecture,
                number,
                arguments: [0; 6],
            })
        }) {
            assert_eq!(action(&tree, &call), action(&chain, &call), "{}", call.number);
        }
        assert_eq!(run(&tree, "read", [0; 6]), ALLOW);
        assert_eq!(run(&tree, "reboot", [0; 6]), DENY);
        assert_eq!(run(&tree, "kexec_load", [0; 6]), DENY);
    }

    /// The lower half is longer than one step.
    #[test]
    fn a_tree_jumps_over_long_halves() {
        let long = vec![seccomp_instructions::load_number(); 200];
        let block = |number| (number, [long.clone(), vec![(0x06, 0, 0, number)]].concat());
        let blocks: Vec<_> = (0..32).map(block).collect();
        let mut program = vec![seccomp_instructions::load_number()];
        program.extend(tree(&blocks, ALLOW));
        for number in 0..40 {
            let call = Call { architecture: NATIVE_ARCHITECTURE, number, arguments: [0; 6] };
            assert_eq!(action(&program, &call), if number < 32 { number } else { ALLOW });
        }
    }

    proptest! {
        #[test]
        fn foreign_text_never_panics(text in "\\PC{0,200}") {
            let _ = compile(&text, &HOST, Layout::Chain);
        }
    }
}
