//! Lists the plans of `weigh run`, which are found by a glob. Adding one is adding one file.

use file_lists::{Modules, list_modules};

const PLANS: Modules = Modules {
    directory: "src/plan/kind",
    item: "PLAN",
    type_name: "crate::plan::PlanKind",
    list: "PLANS",
    output: "plans.rs",
};

fn main() {
    list_modules(&PLANS);
}
