//! Grids: what defines a BTU. Those of `suites/net/` are embedded; any other file is given by its path.
//! Scores of two grids are never compared: a grid is known by its hash.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use toml::Spanned;
use wire::Patterns;

use super::cell::{Cell, Component, FurtherKind, LinkSetting};
use super::link::GridLink;
use trust::user_file;
use weigh_model::result::work_name::{NET, WorkName};
use weigh_model::workload::toml_problem;

const LONGEST_FILE: u64 = 1 << 20;
/// Payload of a packet of 1500 bytes, in bytes.
const SEGMENT_BYTES: u64 = 1448;
/// Number of sweeps in which each cell without a score has one turn.
pub const FURTHER_TURNS: usize = 3;
const LEAST_FURTHER_MS: u64 = 100;
pub const CELL_START: Duration = Duration::from_millis(60);
/// Each pattern of drops has its turn so often in a cell.
const LEAST_TURNS: u64 = 2;

static EMBEDDED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/grids.rs"));

/// Says why an activity cannot be one.
pub type ActivityCheck<'a> = &'a dyn Fn(&str) -> Result<(), String>;

/// Cells of a network measurement, and how to measure each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grid {
    pub name: String,
    /// One line.
    pub summary: String,
    pub source: Option<String>,
    #[serde(rename = "class")]
    pub classes: Vec<ApplicationClass>,
    /// Workloads that contend with COMM for W_test.
    pub activities: Vec<String>,
    /// How long the black boxes hold what they send to W_test.
    pub delays_ms: Vec<f64>,
    /// Which packets do not arrive at the black boxes.
    pub drops: Vec<Patterns>,
    /// The payload of a cell is the first of these that takes `least_ms`, without an activity; ascending.
    pub tiers_bytes: Vec<u64>,
    pub least_ms: u64,
    pub no_delay: bool,
    pub congestion: String,
    /// Send buffer of W_test. This field and the next three are buffers of W_test and of the black
    /// boxes. The kernel's defaults apply where they are not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_buffer: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_buffer: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_send_buffer: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_receive_buffer: Option<u32>,
    /// Impairments of the wires besides delays and drops, in all cells that use the wires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<GridLink>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ipv6: bool,
    /// Further measurements, which are no part of the score.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further: Vec<FurtherKind>,
}

/// A class of applications, by how much each of them writes at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApplicationClass {
    pub name: String,
    pub bytes: u32,
}

impl Grid {
    /// One that is built in, or a file.
    pub fn find(name: &str) -> Result<Grid, String> {
        Grid::find_if(name, &|_| Ok(()))
    }

    /// Finds a grid whose activities pass this check.
    ///
    /// # Errors
    /// Problem that the check finds in an activity, with the line of the file; or the grid is unknown,
    /// unreadable or invalid.
    pub fn find_if(name: &str, check: ActivityCheck<'_>) -> Result<Grid, String> {
        if name.contains(['/', '.']) {
            let text = user_file::read_text(Path::new(name), LONGEST_FILE)
                .map_err(|error| format!("cannot read the grid {name}: {error}"))?;
            return parse(name, &text, check);
        }
        match EMBEDDED.iter().find(|(known, _)| *known == name) {
            Some((_, text)) => parse(&format!("suites/net/{name}.toml"), text, check),
            None => Err(format!(
                "unknown grid `{name}`; known: {}; for a file, give its path (./{name}.toml)",
                Self::names().collect::<Vec<_>>().join(", ")
            )),
        }
    }

    /// Returns the names of those that are built in.
    pub fn names() -> impl Iterator<Item = &'static str> {
        EMBEDDED.iter().map(|(name, _)| *name)
    }

    /// Finds the grid that a workload's label names, if there is one.
    pub fn named(label: &str) -> Option<Grid> {
        let names = WorkName::names_of(&[label.to_owned()]).ok()?;
        Grid::find(names.first()?.strip_prefix(NET)?).ok()
    }

    /// Returns the hash that identifies the grid's score, whatever the grid's name: eight
    /// hexadecimal digits.
    pub fn hash(&self) -> String {
        let (name, summary, further) = (String::new(), String::new(), Vec::new());
        let nameless = Grid { name, summary, source: None, further, ..self.clone() };
        let text = serde_json::to_string(&nameless).expect("plain data with text keys");
        let digest = Sha256::digest(text.as_bytes());
        digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
    }

    /// COMM without and with each activity, and each activity alone, once per class: it is what penalties are
    /// held against. Behind them what is not scored.
    pub fn cells(&self) -> Vec<Cell> {
        let mut cells = self.cells_of_score();
        for class in &self.classes {
            for activity in self.activities_and_none() {
                for further in &self.further {
                    let (bytes, activity, further) =
                        (class.bytes, activity.clone(), Some(*further));
                    let link = LinkSetting::default();
                    cells.push(Cell { bytes, component: None, further, link, activity });
                }
            }
        }
        cells
    }

    /// Returns the cells that make up the score, and the cells that the score is compared with.
    pub fn cells_of_score(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for class in &self.classes {
            for activity in self.activities_and_none() {
                for component in Component::ALL {
                    for link in self.settings(component) {
                        let (bytes, activity) = (class.bytes, activity.clone());
                        let component = Some(component);
                        cells.push(Cell { bytes, component, further: None, link, activity });
                    }
                }
                if activity.is_some() {
                    let link = LinkSetting::default();
                    let (bytes, component, further) = (class.bytes, None, None);
                    cells.push(Cell { bytes, component, further, link, activity });
                }
            }
        }
        cells
    }

    fn activities_and_none(&self) -> Vec<Option<String>> {
        let activities = self.activities.iter().cloned().map(Some);
        std::iter::once(None).chain(activities).collect()
    }

    fn settings(&self, component: Component) -> Vec<LinkSetting> {
        if component.has_delay() {
            let of =
                |delay_ms: &f64| LinkSetting { delay_us: (delay_ms * 1e3) as u64, drops: None };
            return self.delays_ms.iter().map(of).collect();
        }
        if component.has_drops() {
            let of = |drops: &Patterns| LinkSetting { delay_us: 0, drops: Some(drops.clone()) };
            return self.drops.iter().map(of).collect();
        }
        vec![LinkSetting::default()]
    }

    /// The smallest payload of a cell: drops that never come are none.
    pub fn least_bytes(&self, cell: &Cell) -> u64 {
        let wanted = self.wanted_bytes(cell);
        let fits = self.tiers_bytes.iter().find(|tier| **tier >= wanted);
        fits.or(self.tiers_bytes.last()).copied().unwrap_or(wanted)
    }

    fn wanted_bytes(&self, cell: &Cell) -> u64 {
        let packets = cell.link.drops.as_ref().map_or(0, |drops| drops.period() * LEAST_TURNS);
        let connections = cell.component.map_or(1, |component| component.transfers().len() as u64);
        packets * SEGMENT_BYTES * connections
    }

    /// About how long one cell takes, by what is known before anything was measured: its least time, or what
    /// the window of a black box lets through in a round trip.
    fn predicted(&self, cell: &Cell) -> Duration {
        let least = Duration::from_millis(2 * self.least_ms);
        let windows = [self.peer_receive_buffer, self.peer_send_buffer];
        let round_trip = Duration::from_micros(cell.link.delay_us);
        let alone = match windows.into_iter().flatten().min() {
            Some(window) => {
                // Half of a buffer is the kernel's own.
                let round_trips = self.least_bytes(cell) / u64::from(window / 2).max(SEGMENT_BYTES);
                least.max(round_trip * u32::try_from(round_trips).unwrap_or(u32::MAX))
            }
            None => least + 10 * round_trip,
        };
        let alone = alone.max(GridLink::least_time(self.link.as_ref(), self.least_bytes(cell)));
        // Beside an activity both take about twice as long.
        if cell.activity.is_some() && cell.component.is_some() { alone * 2 } else { alone }
    }

    /// Predicts the time of one sweep over all cells, including the start of each cell.
    pub fn predicted_sweep(&self) -> Duration {
        let of = |cell: &Cell| self.predicted(cell) + CELL_START;
        let besides = self.cells().len() - self.cells_of_score().len();
        let besides = (Duration::from_millis(self.further_ms() * 2) + CELL_START)
            * (besides / FURTHER_TURNS) as u32;
        self.cells_of_score().iter().map(of).sum::<Duration>() + besides
    }

    /// Predicts the time of all cells, each once.
    pub fn predicted_all(&self) -> Duration {
        self.cells().iter().map(|cell| self.predicted(cell) + CELL_START).sum()
    }

    /// Predicts the time in which all cells are sized, before the first sweep: a cell without an activity is
    /// run with growing payloads, and the last two of them take most of the time.
    pub fn predicted_sizing(&self) -> Duration {
        let of = |cell: &Cell| (self.predicted(cell) + CELL_START) * 2;
        self.cells_of_score().iter().filter(|cell| cell.activity.is_none()).map(of).sum()
    }

    /// Predicts the time of a pair of sweeps, which leaves out cells without an activity.
    pub fn predicted_pair(&self) -> Duration {
        let of = |cell: &Cell| (self.predicted(cell) + CELL_START) * 2;
        self.cells_of_score().iter().filter(|cell| cell.activity.is_some()).map(of).sum()
    }

    /// How long what is not scored lasts at least: percentiles take some requests.
    pub fn further_ms(&self) -> u64 {
        self.least_ms.max(LEAST_FURTHER_MS)
    }

    /// Returns true if every cell with drops can have a payload large enough for each pattern to
    /// have its turns.
    fn has_turns(&self) -> bool {
        let largest = self.tiers_bytes.last().copied().unwrap_or_default();
        let cells = self.cells_of_score();
        cells
            .iter()
            .filter(|cell| cell.link.drops.is_some())
            .all(|cell| self.wanted_bytes(cell) <= largest)
    }

    pub(super) fn check(&self) -> Result<(), String> {
        let repeats = |all: &mut Vec<String>| {
            let count = all.len();
            all.sort_unstable();
            all.dedup();
            all.len() < count
        };
        let sizes = self.classes.iter().map(|class| class.bytes.to_string());
        let lists = [
            sizes.collect::<Vec<_>>(),
            self.activities.clone(),
            self.delays_ms.iter().map(f64::to_string).collect(),
            self.drops.iter().map(Patterns::to_string).collect(),
            self.further.iter().map(|one| one.title().to_owned()).collect(),
        ];
        let is_ascending = self.tiers_bytes.windows(2).all(|pair| pair[0] < pair[1]);
        let wrong = [
            (self.classes.is_empty(), "the grid needs a [[class]]"),
            (
                self.classes.iter().any(|class| !(1..=1 << 20).contains(&class.bytes)),
                "the bytes of a class must be from 1 to 1048576",
            ),
            (
                self.delays_ms.is_empty() || self.drops.is_empty(),
                "`delays_ms` and `drops` need at least one value each",
            ),
            (
                self.delays_ms.iter().any(|ms| !(0.001..=1000.0).contains(ms)),
                "a delay must be from 0.001 to 1000 ms",
            ),
            (
                self.activities.is_empty(),
                "`activities` needs a workload, because penalties come from activities",
            ),
            (
                lists.into_iter().any(|mut list| repeats(&mut list)),
                "a class, activity, delay, pattern of drops or further measurement appears twice",
            ),
            (self.tiers_bytes.is_empty() || !is_ascending, "`tiers_bytes` must be ascending"),
            (
                self.tiers_bytes.first().is_some_and(|tier| *tier < 2),
                "a tier needs at least two bytes",
            ),
            (!(1..=60_000).contains(&self.least_ms), "`least_ms` must be from 1 to 60000"),
            (
                !self.has_turns(),
                "the largest of `tiers_bytes` has fewer packets than two rounds of `drops`",
            ),
        ];
        match wrong.into_iter().find(|(is_wrong, _)| *is_wrong) {
            Some((_, problem)) => Err(problem.to_owned()),
            None => {
                let longest_ms = self.delays_ms.iter().copied().fold(0.0, f64::max);
                let longest_us = (longest_ms * 1e3).round() as u64;
                self.link.as_ref().map_or(Ok(()), |link| link.check(longest_us))
            }
        }
    }
}

/// Where a file names its activities.
#[derive(Deserialize)]
struct ActivityPlaces {
    activities: Vec<Spanned<String>>,
}

fn parse(file: &str, text: &str, check: ActivityCheck<'_>) -> Result<Grid, String> {
    let wrong = |error| toml_problem::sentence(file, text, &error);
    let grid: Grid = toml::from_str(text).map_err(wrong)?;
    grid.check().map_err(|problem| format!("{file}: {problem}"))?;
    let places: ActivityPlaces = toml::from_str(text).map_err(wrong)?;
    for activity in places.activities {
        let line = toml_problem::line_at(text, activity.span().start);
        check(activity.get_ref()).map_err(|problem| format!("{file}:{line}: {problem}"))?;
    }
    Ok(grid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_grids_have_the_papers_classes_and_components() {
        for (name, _) in EMBEDDED {
            let grid = Grid::find(name).unwrap();
            assert_eq!(grid.name, *name);
            let bytes: Vec<u32> = grid.classes.iter().map(|class| class.bytes).collect();
            assert_eq!(bytes, [100, 1024, 1250, 4096, 65536]);
        }
        let grid = Grid::find("quick").unwrap();
        let cells = grid.cells_of_score();
        let of = |is: fn(&Cell) -> bool| cells.iter().filter(|cell| is(cell)).count();
        assert_eq!(of(|cell| cell.component.is_some() && cell.activity.is_some()), 90);
        assert_eq!(of(|cell| cell.activity.is_none()), 30);
        assert_eq!(of(|cell| cell.component.is_none()), 15);
    }

    #[test]
    fn a_grid_is_known_by_what_it_measures_and_not_by_its_name() {
        let grid = Grid::find("quick").unwrap();
        let renamed = Grid { name: "mine".into(), ..grid.clone() };
        assert_eq!(renamed.hash(), grid.hash());
        assert_eq!(grid.hash().len(), 8);
        let other = Grid { no_delay: true, ..grid.clone() };
        assert_ne!(other.hash(), grid.hash());
    }

    #[test]
    fn drops_come_in_every_cell_and_time_is_foretold() {
        let grid = Grid::find("1996").unwrap();
        let cells = grid.cells();
        let rare = cells
            .iter()
            .find(|cell| cell.link.drops.as_ref().is_some_and(|drops| drops.period() == 10_000));
        assert!(grid.least_bytes(rare.unwrap()) >= 2 * 2 * 10_000 * SEGMENT_BYTES);
        // A second of delay and 2 KiB in flight: the smallest tier alone takes seconds, hundreds of times.
        assert!(grid.predicted_sweep() > Duration::from_secs(600));
        assert!(Grid::find("quick").unwrap().predicted_sweep() < Duration::from_secs(60));
    }

    #[test]
    fn what_is_no_grid_is_said_with_its_line() {
        assert!(Grid::find("nonesuch").unwrap_err().contains("known: 1996, btu-quick"));
        let text = EMBEDDED.iter().find(|(name, _)| *name == "quick").unwrap().1;
        let check = |name: &str| if name == "rude" { Err("a guest".into()) } else { Ok(()) };
        let broken =
            |from: &str, to: &str| parse("x.toml", &text.replace(from, to), &check).unwrap_err();
        let activities = "activities = [\n  \"activity-cpu\",\n  \"rude\",\n]\n#";
        assert_eq!(broken("activities = ", activities), "x.toml:6: a guest");
        assert!(broken("least_ms = 40", "least_ms = 0").contains("from 1 to 60000"));
        assert!(broken("delays_ms", "delay_ms").starts_with("x.toml:"));
        assert!(broken("1@200%400", "500@200%400").contains("500@200%400"));
        assert!(broken("[1.0]", "[0.0001]").contains("from 0.001 to 1000 ms"));
        assert!(broken("[1.0]", "[1.0, 1.0]").contains("twice"));
        assert!(broken("1@200%400", "1@200%4000000").contains("two rounds of `drops`"));
        assert!(broken("[1.0]", "[1001]").contains("from 0.001 to 1000 ms"));
    }
}
