//! On which machine a bench ran.

/// Where the figures are from.
pub fn line() -> String {
    let facts = weigh_host::machine::facts::read();
    format!(
        "{}, {} CPUs, Linux {}{}",
        facts.cpu_model,
        facts.cpus_online,
        facts.kernel,
        facts.hypervisor.map(|name| format!(", under {name}")).unwrap_or_default(),
    )
}
