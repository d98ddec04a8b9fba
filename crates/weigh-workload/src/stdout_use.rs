//! Uses of a worker's whole stdout, of which otherwise only the end is kept.
//!
//! It can be saved, or compared byte by byte with saved output while it arrives.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// As much of a line as helps to tell two apart, before the difference and after it.
const BEFORE_BYTES: usize = 40;
const AFTER_BYTES: usize = 80;

/// A job's setting for the stdout of its worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StdoutUse {
    #[default]
    KeepEnd,
    SaveTo(PathBuf),
    CompareWith(PathBuf),
}

/// Where two outputs differ first: the line, counted from 1, and both there. `None` is an output that has
/// ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputDifference {
    pub line: u64,
    pub expected: Option<String>,
    pub found: Option<String>,
}

/// Consumer of a worker's stdout while the worker runs.
pub enum StdoutSink {
    Nothing,
    Saving(File),
    Comparing(Box<OutputComparison>),
}

impl StdoutSink {
    pub fn open(wanted: &StdoutUse) -> io::Result<StdoutSink> {
        let sink = match wanted {
            StdoutUse::KeepEnd => Ok(StdoutSink::Nothing),
            StdoutUse::SaveTo(path) => File::create(path).map(StdoutSink::Saving),
            StdoutUse::CompareWith(path) => {
                let comparison =
                    |file| StdoutSink::Comparing(Box::new(OutputComparison::with(file)));
                File::open(path).map(comparison)
            }
        };
        sink.map_err(|error| said(&error))
    }

    pub fn take(&mut self, chunk: &[u8]) -> io::Result<()> {
        let taken = match self {
            StdoutSink::Nothing => Ok(()),
            StdoutSink::Saving(file) => file.write_all(chunk),
            StdoutSink::Comparing(comparison) => comparison.take(chunk),
        };
        taken.map_err(|error| said(&error))
    }

    /// Where it differs, when all of it was taken.
    pub fn difference(self) -> io::Result<Option<OutputDifference>> {
        match self {
            StdoutSink::Comparing(comparison) => comparison.end().map_err(|error| said(&error)),
            StdoutSink::Nothing | StdoutSink::Saving(_) => Ok(None),
        }
    }
}

fn said(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot save or compare its output: {error}"))
}

/// Output that is held against a file.
pub struct OutputComparison {
    expected: BufReader<File>,
    line: u64,
    /// The end of what the current line has in both.
    before: Vec<u8>,
    /// Text from the first difference on: expected text, and the text found so far.
    differing: Option<(Excerpt, Excerpt)>,
}

/// The rest of a line.
#[derive(Default)]
struct Excerpt {
    bytes: Vec<u8>,
    /// True if the line ends here, so that the excerpt is complete.
    has_ended: bool,
    is_nothing: bool,
}

impl Excerpt {
    fn take(&mut self, bytes: &[u8]) {
        if self.has_ended {
            return;
        }
        let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let room = AFTER_BYTES.saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(&line[..line.len().min(room)]);
        self.has_ended = line.len() < bytes.len() || line.len() >= room;
    }

    fn text(&self, before: &[u8]) -> Option<String> {
        if self.is_nothing && before.is_empty() {
            return None;
        }
        let text = [before, &self.bytes].concat();
        Some(String::from_utf8_lossy(&text).into_owned())
    }
}

impl OutputComparison {
    fn with(expected: File) -> OutputComparison {
        let expected = BufReader::new(expected);
        OutputComparison { expected, line: 1, before: Vec::new(), differing: None }
    }

    fn take(&mut self, mut chunk: &[u8]) -> io::Result<()> {
        if let Some((_, found)) = &mut self.differing {
            found.take(chunk);
            return Ok(());
        }
        while !chunk.is_empty() {
            let there = self.expected.fill_buf()?;
            let length = there.len().min(chunk.len());
            let is_other = |(one, other): (&u8, &u8)| one != other;
            let same = match chunk[..length] == there[..length] && length > 0 {
                true => length,
                false => chunk.iter().zip(there).position(is_other).unwrap_or(length),
            };
            self.expected.consume(same);
            let (alike, rest) = chunk.split_at(same);
            self.pass(alike);
            chunk = rest;
            if same < length || length == 0 {
                return self.differ(chunk);
            }
        }
        Ok(())
    }

    /// Goes on behind what is the same in both.
    fn pass(&mut self, alike: &[u8]) {
        self.line += alike.iter().filter(|byte| **byte == b'\n').count() as u64;
        if let Some(end) = alike.iter().rposition(|byte| *byte == b'\n') {
            self.before.clear();
            self.before.extend_from_slice(&alike[end + 1..]);
        } else {
            self.before.extend_from_slice(alike);
        }
        let surplus = self.before.len().saturating_sub(BEFORE_BYTES);
        self.before.drain(..surplus);
    }

    /// Notes that the outputs differ here, where this comes.
    fn differ(&mut self, chunk: &[u8]) -> io::Result<()> {
        let mut rest = Vec::new();
        (&mut self.expected).take(AFTER_BYTES as u64 + 1).read_to_end(&mut rest)?;
        let excerpt = |bytes: &[u8]| {
            let mut excerpt = Excerpt { is_nothing: bytes.is_empty(), ..Excerpt::default() };
            excerpt.take(bytes);
            excerpt
        };
        self.differing = Some((excerpt(&rest), excerpt(chunk)));
        Ok(())
    }

    fn end(mut self) -> io::Result<Option<OutputDifference>> {
        if self.differing.is_none() && !self.expected.fill_buf()?.is_empty() {
            self.differ(&[])?;
        }
        Ok(self.differing.map(|(expected, found)| OutputDifference {
            line: self.line,
            expected: expected.text(&self.before),
            found: found.text(&self.before),
        }))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The difference of an output that comes in pieces of this size.
    fn difference(expected: &[u8], found: &[u8], size: usize) -> Option<OutputDifference> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(expected).unwrap();
        std::io::Seek::rewind(&mut file).unwrap();
        let mut comparison = OutputComparison::with(file);
        found.chunks(size).for_each(|chunk| comparison.take(chunk).unwrap());
        comparison.end().unwrap()
    }

    fn said(expected: &str, found: &str) -> String {
        let said = |text: Option<String>| text.unwrap_or_else(|| "nothing".into());
        let one = |size| {
            let found = difference(expected.as_bytes(), found.as_bytes(), size);
            found.map_or("same".into(), |d| {
                format!("{}: {} | {}", d.line, said(d.expected), said(d.found))
            })
        };
        assert_eq!(one(1), one(1000));
        one(3)
    }

    #[test]
    fn the_first_line_that_differs_is_told() {
        assert_eq!(said("a\nb\nc\n", "a\nb\nc\n"), "same");
        assert_eq!(said("", ""), "same");
        assert_eq!(said("a\nbcd\ne\n", "a\nbxd\ne\n"), "2: bcd | bxd");
        assert_eq!(said("a\n", "a\nb\n"), "2: nothing | b");
        assert_eq!(said("a\nb\n", "a\n"), "2: b | nothing");
        assert_eq!(said("a\n", "a"), "1: a | a", "only the end of the line is missing");
        assert_eq!(said("", "x"), "1: nothing | x");
        let long = "x".repeat(200_000);
        let told = said(&format!("{long}1\n"), &format!("{long}2\n"));
        assert!(told.starts_with("1: xxx") && told.ends_with("x2") && told.len() < 100, "{told}");
    }

    proptest! {
        #[test]
        fn equal_is_what_is_equal(
            one in prop::collection::vec(0u8..3, 0..40),
            other in prop::collection::vec(0u8..3, 0..40),
            size in 1usize..9,
        ) {
            prop_assert_eq!(difference(&one, &other, size).is_none(), one == other);
            prop_assert_eq!(difference(&one, &one, size), None);
        }
    }
}
