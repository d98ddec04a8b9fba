//! Surroundings of the kernel: hypervisor, container, distribution, C library, power, daemons.

use crate::machine::source::Source;

/// Whose virtual machine this is; `None` on hardware.
pub(super) fn hypervisor(source: Source) -> Option<String> {
    if let Some(kind) = source.text("/sys/hypervisor/type") {
        return Some(kind);
    }
    let flags = source.value("/proc/cpuinfo", "flags", ':').unwrap_or_default();
    let vendor = source.text("/sys/class/dmi/id/sys_vendor").unwrap_or_default();
    // AArch64 has no such flag; there only the firmware's vendor tells.
    let firmware = ["QEMU", "VMware", "Xen", "innotek", "Amazon EC2", "Google", "Microsoft"];
    let virtual_vendor = firmware.iter().any(|name| vendor.starts_with(name));
    let flagged = flags.split(' ').any(|flag| flag == "hypervisor");
    let aarch64_guest = flags.is_empty() && virtual_vendor;
    if !flagged && !aarch64_guest {
        return None;
    }
    if virtual_vendor {
        return Some(vendor);
    }
    // A small virtual machine has no firmware tables, but its kernel knows its hypervisor's clock.
    let clocks = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
    let clocks = source.text(clocks).unwrap_or_default();
    let known = [("kvm-clock", "kvm"), ("hyperv", "hyperv"), ("xen", "xen"), ("vmware", "vmware")];
    let by_clock = known.iter().find(|(clock, _)| clocks.contains(clock));
    Some(by_clock.map_or("unknown", |(_, name)| name).to_string())
}

/// Returns the container type that marks of this file system show; `None` without a mark.
pub(super) fn container(source: Source) -> Option<String> {
    let marks = [("/.dockerenv", "docker"), ("/run/.containerenv", "podman")];
    source.text("/run/systemd/container").or_else(|| {
        let mark = marks.iter().find(|(file, _)| source.path(file).exists())?;
        Some(mark.1.to_string())
    })
}

/// The name of the distribution, as it shows itself.
pub(super) fn distribution(source: Source) -> Option<String> {
    let name = |file| source.value(file, "PRETTY_NAME", '=');
    let name = name("/etc/os-release").or_else(|| name("/usr/lib/os-release"))?;
    Some(name.trim_matches(['"', '\'']).to_string())
}

/// Returns the C library's own name: in glibc a line like `GNU C Library (Debian GLIBC 2.36-9)
/// stable release version 2.36.`
pub(super) fn libc_name(source: Source) -> Option<String> {
    const TITLE: &[u8] = b"GNU C Library ";
    let triple = format!("/lib/{}-linux-gnu", std::env::consts::ARCH);
    let directories = [triple.as_str(), "/lib64", "/usr/lib64", "/lib", "/usr/lib"];
    for directory in directories {
        let Some(library) = source.bytes(&format!("{directory}/libc.so.6")) else { continue };
        let start = library.windows(TITLE.len()).position(|window| window == TITLE)?;
        let line = library[start..].split(|byte| matches!(byte, b'\n' | 0)).next()?;
        return Some(String::from_utf8_lossy(line).trim_end_matches('.').to_string());
    }
    source.names("/lib").iter().any(|name| name.starts_with("ld-musl-")).then(|| "musl".to_string())
}

/// Returns true if a process of this name runs; `None` where no process can be seen.
pub(super) fn runs(source: Source, name: &str) -> Option<bool> {
    let is_process = |entry: &String| entry.bytes().all(|byte| byte.is_ascii_digit());
    let mut names = (source.names("/proc").into_iter().filter(is_process))
        .filter_map(|process| source.text(&format!("/proc/{process}/comm")))
        .peekable();
    names.peek()?;
    Some(names.any(|found| found == name))
}

/// Returns true if the machine runs on its battery; `None` without a battery. A mouse's battery,
/// with the scope `Device`, does not count.
pub(super) fn on_battery(source: Source) -> Option<bool> {
    let directory = "/sys/class/power_supply";
    let status = |supply: String| {
        let text = |file| source.text(&format!("{directory}/{supply}/{file}"));
        let is_ours = text("type")? == "Battery" && text("scope").as_deref() != Some("Device");
        is_ours.then(|| text("status")).flatten()
    };
    let statuses: Vec<String> = source.names(directory).into_iter().filter_map(status).collect();
    (!statuses.is_empty()).then(|| statuses.iter().any(|status| status == "Discharging"))
}

#[cfg(test)]
mod tests {
    use crate::machine::source::tests::root_with;
    use weigh_model::facts::Facts;

    const QEMU: [(&str, &str); 2] = [
        ("/proc/cpuinfo", "processor : 0\nmodel name : AMD EPYC\nflags : fpu hypervisor avx\n"),
        ("/sys/class/dmi/id/sys_vendor", "QEMU\n"),
    ];

    fn read(files: &[(&str, &str)]) -> Facts {
        crate::machine::facts::read_from(root_with(files).path())
    }

    #[test]
    fn hypervisors_are_named_by_firmware_or_by_clock() {
        assert_eq!(read(&QEMU).hypervisor.as_deref(), Some("QEMU"));
        assert_eq!(read(&QEMU).cpu_model, "AMD EPYC");
        let clocks = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
        let small = read(&[QEMU[0], (clocks, "kvm-clock tsc acpi_pm\n")]);
        assert_eq!(small.hypervisor.as_deref(), Some("kvm"));
        let hardware =
            read(&[("/proc/cpuinfo", "flags : fpu\n"), ("/sys/class/dmi/id/sys_vendor", "Google")]);
        assert_eq!(hardware.hypervisor, None);
        let xen = read(&[("/sys/hypervisor/type", "xen\n")]);
        assert_eq!(xen.hypervisor.as_deref(), Some("xen"));
    }

    #[test]
    fn the_distribution_and_its_library_are_named() {
        let facts = read(&[
            ("/usr/lib/os-release", "ID=x\nPRETTY_NAME=\"Example Linux 7\"\n"),
            ("/lib64/libc.so.6", "\u{0}x\u{0}GNU C Library (GNU libc) release version 2.36.\nmore"),
        ]);
        assert_eq!(facts.distribution.as_deref(), Some("Example Linux 7"));
        assert_eq!(facts.libc.as_deref(), Some("GNU C Library (GNU libc) release version 2.36"));
        assert_eq!(read(&[("/lib/ld-musl-x86_64.so.1", "")]).libc.as_deref(), Some("musl"));
        assert_eq!(read(&[("/.dockerenv", "")]).container.as_deref(), Some("docker"));
    }
}
