//! Activity alongside a workload, as its row names it: `feel:spawn/app:db.transaction@mariadb`.

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackgroundLoad {
    /// As the name of the row ends.
    pub name: String,
    /// Label of the fixture that runs the activity.
    pub label: String,
}
