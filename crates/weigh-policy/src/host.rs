//! Capabilities and kernel of a host, which a seccomp profile's conditions are compared with.

/// Host features that a profile's conditions are compared with.
pub struct HostFeatures {
    /// Bits of the effective capabilities.
    pub capabilities: u64,
    /// Major and minor number of the release.
    pub kernel: (u32, u32),
}

impl HostFeatures {
    /// This process and this kernel.
    pub fn read() -> HostFeatures {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let capabilities = status
            .lines()
            .find_map(|line| line.strip_prefix("CapEff:"))
            .and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok())
            .unwrap_or(0);
        let release = rustix::system::uname().release().to_string_lossy().into_owned();
        HostFeatures { capabilities, kernel: version(&release) }
    }

    /// Returns true if a capability is effective.
    ///
    /// It knows the capabilities that Docker's default profile asks about, by their bit
    /// (`linux/capability.h`).
    pub fn has(&self, capability: &str) -> bool {
        let bit = match capability {
            "CAP_DAC_READ_SEARCH" => 2,
            "CAP_SYS_MODULE" => 16,
            "CAP_SYS_RAWIO" => 17,
            "CAP_SYS_CHROOT" => 18,
            "CAP_SYS_PTRACE" => 19,
            "CAP_SYS_PACCT" => 20,
            "CAP_SYS_ADMIN" => 21,
            "CAP_SYS_BOOT" => 22,
            "CAP_SYS_NICE" => 23,
            "CAP_SYS_TIME" => 25,
            "CAP_SYS_TTY_CONFIG" => 26,
            "CAP_AUDIT_CONTROL" => 30,
            "CAP_SYSLOG" => 34,
            "CAP_PERFMON" => 38,
            "CAP_BPF" => 39,
            _ => return false,
        };
        self.capabilities & (1 << bit) != 0
    }

    /// Returns true if the kernel is of this release or newer.
    pub fn is_at_least(&self, wanted: &str) -> bool {
        self.kernel >= version(wanted)
    }
}

fn version(text: &str) -> (u32, u32) {
    let mut parts = text.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}
