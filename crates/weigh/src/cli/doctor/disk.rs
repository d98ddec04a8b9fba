//! `weigh doctor --disk`: what the device below a directory can do.

use std::path::Path;

use crate::cli::{Context, output};
use weigh_host::machine::disk_speed;
use weigh_model::format;

/// Measures it, tells it, and keeps it for reports.
pub fn measure(directory: &Path, is_json: bool, context: &Context) -> Result<u8, String> {
    let place = directory.display();
    output::note(&format!("Measuring the device of {place} for about five seconds."));
    let found = disk_speed::measure(directory)?;
    let kept = context.data_directory()?;
    disk_speed::keep(&found, &kept).map_err(|error| format!("{}: {error}", kept.display()))?;
    if is_json {
        let json = serde_json::to_string_pretty(&found).map_err(|error| error.to_string())?;
        output::print_json(&(json + "\n"))?;
        return Ok(0);
    }
    let per_s = |bytes: f64| format!("{}/s", format::bytes(bytes));
    let blocks = |count: f64| format!("{} a second", format::integer(count.round() as u64));
    let lines = [
        ("read in order, 1 MiB at a time", per_s(found.read_bytes_per_s)),
        ("written in order, 1 MiB at a time", per_s(found.write_bytes_per_s)),
        ("read at random, 4 KiB at a time", blocks(found.random_reads_per_s)),
        ("written at random, 4 KiB at a time", blocks(found.random_writes_per_s)),
        ("written at random, each synced, by one thread", blocks(found.synced_writes_per_s)),
    ];
    let mut text = format!("Device {} below {place}, without the page cache:\n\n", found.device);
    for (what, amount) in lines {
        text += &format!("  {what:<46}{amount:>16}\n");
    }
    text += "\nReports mark a row as `cache` if the device moved less than half of its bytes.\n";
    output::print(&text)?;
    Ok(0)
}
