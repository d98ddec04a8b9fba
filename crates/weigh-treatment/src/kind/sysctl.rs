//! `sysctl`: settings of the kernel, for each treated sample.

use crate::switched::{Switch, Switched};
use crate::{Kind, Parameter, Probe, Treatment, TreatmentKind, writable};
use weigh_host::machine::fix::Setting;
use weigh_host::machine::sysctl::file_of;
use weigh_model::label::Parameters;

pub static KIND: TreatmentKind = TreatmentKind::of(
    Kind {
        name: "sysctl",
        summary: "kernel settings, with their names in sysctl(8)",
        parameters: &[Parameter {
            form: "KEY=VALUE",
            help: "one or several: vm.swappiness=10; quote a value with blanks",
        }],
        probe,
    },
    build,
);

const OCCUPIED: &str = "the kernel's settings (sysctl)";

/// One that every kernel has.
fn probe() -> Probe {
    match writable("/proc/sys/kernel/randomize_va_space") {
        Probe::NeedsRoot(_) => Probe::NeedsRoot("only root can change kernel settings".into()),
        other => other,
    }
}

fn build(parameters: &Parameters) -> Result<Box<dyn Treatment>, String> {
    let switch = |(key, value): (&str, Option<&str>)| {
        let wanted = value.unwrap_or_default().trim().to_owned();
        if wanted.is_empty() || wanted.contains(char::is_control) {
            return Err(format!("{key}= takes one line of text"));
        }
        let file = file_of(key)?.into();
        Ok(Switch { name: key.into(), setting: Setting { file, was: String::new(), wanted } })
    };
    let switches: Vec<_> = parameters.iter().map(switch).collect::<Result<_, _>>()?;
    match switches.is_empty() {
        true => Err("`sysctl` needs a setting: sysctl:vm.swappiness=10".into()),
        false => Ok(Box::new(Switched::new(OCCUPIED, switches))),
    }
}

#[cfg(test)]
mod tests {
    use crate::parse;

    #[test]
    fn what_is_no_setting_or_a_dangerous_one_is_refused() {
        let refused = |label: &str| parse(label).err().unwrap();
        assert!(refused("sysctl").contains("sysctl:vm.swappiness=10"));
        assert!(refused("sysctl:vm.swappiness").contains("it takes KEY=VALUE"));
        assert!(refused("sysctl:kernel.core_pattern=x").contains("a program that the kernel runs"));
        assert!(refused("sysctl:kernel.panic=1").contains("can stop the machine"));
        assert!(refused("sysctl:vm.swappiness=10+sysctl:vm.swappiness=20").contains("twice"));
        assert!(refused("sysctl:vm.swappiness=\" \"").contains("one line of text"));
        assert!(parse("sysctl:net.ipv4.tcp_rmem=\"4096 87380 6291456\"").is_ok());
    }
}
