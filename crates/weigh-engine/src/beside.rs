//! What is done beside a workload, as its row names it: `feel:spawn/app:db.transaction@mariadb`.

/// What a row has beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beside {
    /// As the name of the row ends.
    pub name: String,
    /// Of the fixture that does it.
    pub label: String,
}
