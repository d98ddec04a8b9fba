//! The side that has a testbed: starting it, and asking it.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use wire::{DroppedPacket, Impairment};

use super::{
    BlackBox, Heading, LinkCount, RoundTripTimes, SUBCOMMAND, TestbedAnswer, TestbedOrder,
    TestbedReady, TestbedSetup, Via,
};
use weigh_host::lines::{LinesError, PROMPTLY};
use weigh_host::own_program;
use weigh_host::own_program::Helper;
use weigh_model::printable::brief;

/// A datagram that does not come back holds up a measurement of round trips for so long at most.
const LONGEST_ROUND: Duration = Duration::from_secs(5);

/// Why a testbed did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum TestbedError {
    /// The user asked us to stop.
    #[error("interrupted")]
    Interrupted,
    /// Refusal by the testbed, with its reason.
    #[error("the testbed: {0}")]
    Refused(String),
    /// It does not answer, or not as it should.
    #[error("the testbed: {0}")]
    Failed(String),
}

impl From<LinesError> for TestbedError {
    fn from(error: LinesError) -> TestbedError {
        match error {
            LinesError::Interrupted => TestbedError::Interrupted,
            other => TestbedError::Failed(other.to_string()),
        }
    }
}

/// Three hosts. They are gone when this is.
pub struct Testbed {
    helper: Helper,
    pub ready: TestbedReady,
}

impl Testbed {
    /// Makes one in this program ([`Testbed::role`]).
    pub fn start(
        command: Command,
        setup: &TestbedSetup,
        interrupted: &AtomicBool,
    ) -> Result<Testbed, TestbedError> {
        let failed = |error: std::io::Error| TestbedError::Failed(error.to_string());
        Testbed::over(Helper::start(command).map_err(failed)?, setup, interrupted)
    }

    /// Makes one in a helper that is in that role, on this machine or another.
    pub fn over(
        mut helper: Helper,
        setup: &TestbedSetup,
        interrupted: &AtomicBool,
    ) -> Result<Testbed, TestbedError> {
        let failed = |error: std::io::Error| TestbedError::Failed(error.to_string());
        helper.lines.send(setup).map_err(failed)?;
        match helper.lines.receive(interrupted, Instant::now() + PROMPTLY) {
            Ok(TestbedAnswer::Ready(ready)) => Ok(Testbed { helper, ready: *ready }),
            Ok(answer) => Err(unexpected(answer)),
            Err(LinesError::Interrupted) => Err(TestbedError::Interrupted),
            Err(error) => {
                Err(TestbedError::Failed(helper.last_words().unwrap_or_else(|| error.to_string())))
            }
        }
    }

    /// This program as a testbed.
    pub fn role() -> Command {
        own_program::command(SUBCOMMAND)
    }

    /// Has one direction of a link be so from now on, and count from 1.
    pub fn configure(
        &mut self,
        link: BlackBox,
        heading: Heading,
        impairment: &Impairment,
        interrupted: &AtomicBool,
    ) -> Result<(), TestbedError> {
        let impairment = Box::new(impairment.clone());
        self.done(&TestbedOrder::Configure { link, heading, impairment }, interrupted)
    }

    /// Allows or forbids the kernels of both ends to leave segmentation and checksums to the wire.
    pub fn set_offload(
        &mut self,
        link: BlackBox,
        is_on: bool,
        interrupted: &AtomicBool,
    ) -> Result<(), TestbedError> {
        self.done(&TestbedOrder::Offload { link, is_on }, interrupted)
    }

    /// Has both directions count from 1, and draw from their seeds again.
    pub fn reset(&mut self, link: BlackBox, interrupted: &AtomicBool) -> Result<(), TestbedError> {
        self.done(&TestbedOrder::Reset(link), interrupted)
    }

    /// See [`Helper::let_go`].
    pub fn let_go(&mut self) {
        self.helper.let_go();
    }

    pub fn counters(
        &mut self,
        link: BlackBox,
        interrupted: &AtomicBool,
    ) -> Result<LinkCount, TestbedError> {
        match self.ask(&TestbedOrder::Counters(link), PROMPTLY, interrupted)? {
            TestbedAnswer::Counters(count) => Ok(*count),
            answer => Err(unexpected(answer)),
        }
    }

    /// Writes down what W_test's interfaces carry from now on, into this file.
    pub fn begin_trace(
        &mut self,
        path: &Path,
        interrupted: &AtomicBool,
    ) -> Result<(), TestbedError> {
        self.done(&TestbedOrder::Trace(Some(path.to_owned())), interrupted)
    }

    /// Ends that: how many packets are in the file, and how many were missed.
    pub fn end_trace(&mut self, interrupted: &AtomicBool) -> Result<(u64, u64), TestbedError> {
        match self.ask(&TestbedOrder::Trace(None), PROMPTLY, interrupted)? {
            TestbedAnswer::Traced(packets, missed) => Ok((packets, missed)),
            answer => Err(unexpected(answer)),
        }
    }

    /// Which packets it dropped, where that is written down ([`Impairment::logs_drops`]).
    pub fn drops(
        &mut self,
        link: BlackBox,
        heading: Heading,
        interrupted: &AtomicBool,
    ) -> Result<Vec<DroppedPacket>, TestbedError> {
        match self.ask(&TestbedOrder::Drops { link, heading }, PROMPTLY, interrupted)? {
            TestbedAnswer::Drops(drops) => Ok(drops),
            answer => Err(unexpected(answer)),
        }
    }

    /// How long datagrams take there and back, as the link is now. For the calibration, it does nothing then.
    pub fn round_trips(
        &mut self,
        link: BlackBox,
        via: Via,
        rounds: u32,
        interrupted: &AtomicBool,
    ) -> Result<RoundTripTimes, TestbedError> {
        let limit = PROMPTLY + LONGEST_ROUND * rounds;
        match self.ask(&TestbedOrder::RoundTrips { link, via, rounds }, limit, interrupted)? {
            TestbedAnswer::RoundTrips(times) => Ok(times),
            answer => Err(unexpected(answer)),
        }
    }

    fn done(&mut self, order: &TestbedOrder, interrupted: &AtomicBool) -> Result<(), TestbedError> {
        match self.ask(order, PROMPTLY, interrupted)? {
            TestbedAnswer::Done => Ok(()),
            answer => Err(unexpected(answer)),
        }
    }

    fn ask(
        &mut self,
        order: &TestbedOrder,
        limit: Duration,
        interrupted: &AtomicBool,
    ) -> Result<TestbedAnswer, TestbedError> {
        let sent = self.helper.lines.send(order);
        sent.map_err(|error| TestbedError::Failed(error.to_string()))?;
        Ok(self.helper.lines.receive(interrupted, Instant::now() + limit)?)
    }
}

fn unexpected(answer: TestbedAnswer) -> TestbedError {
    match answer {
        TestbedAnswer::Error(problem) => TestbedError::Refused(brief(&problem)),
        _ => TestbedError::Failed("the answer was unexpected".into()),
    }
}
