//! `weigh agent`: a machine that is a black box of another's `weigh net`. For who does not have its token it
//! starts nothing, and keeps nothing beyond a few bytes for some seconds.

mod gate;
pub mod server;

pub use gate::Gates;
