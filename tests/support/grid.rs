//! Grids of `weigh net` with cells as short as can be, in which nothing waits long.

/// The text of `small.toml`: beside one activity, of these classes of messages with their bytes.
pub fn small(activity: &str, classes: &[(&str, u32)]) -> String {
    let class =
        |(name, bytes): &(&str, u32)| format!("[[class]]\nname = \"{name}\"\nbytes = {bytes}\n");
    format!(
        r#"
name = "small"
summary = "for tests"
activities = ["{activity}"]
delays_ms = [1.0]
drops = ["1@20%40"]
tiers_bytes = [20_000, 400_000]
least_ms = 1
no_delay = true
congestion = "reno"
{}"#,
        classes.iter().map(class).collect::<String>()
    )
}
