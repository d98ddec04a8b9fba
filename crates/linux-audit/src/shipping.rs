//! Records that are shipped to another machine, over a connection that is there already: what both ends say.
//!
//! Each record goes as its length and its line, one after the other, as a stream. From time to time the
//! sender asks for a receipt (a length of 0): how many records and bytes have arrived and been written since
//! the beginning.

use std::io::{self, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use super::log_file::LogFile;

/// The kernel sends no longer ones.
const LONGEST_RECORD: usize = 64 << 10;
/// As long as a receiver of our own may take to write what waits.
const PATIENCE: Duration = Duration::from_secs(30);

/// The end that sends.
pub struct Shipment {
    stream: TcpStream,
    records: u64,
    bytes: u64,
    /// Records of the last receipt.
    receipted: u64,
}

impl Shipment {
    /// Over this connection, which is dropped where the other end takes nothing for half a minute.
    ///
    /// # Errors
    /// As `setsockopt(2)`.
    pub fn over(stream: TcpStream) -> io::Result<Shipment> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Shipment { stream, records: 0, bytes: 0, receipted: 0 })
    }

    /// Sends one record.
    ///
    /// # Errors
    /// Where the other end takes no more.
    pub fn send(&mut self, line: &[u8]) -> io::Result<()> {
        let length = u32::try_from(line.len()).map_err(io::Error::other)?;
        self.stream.write_all(&[&length.to_be_bytes(), line].concat()).map_err(stalled)?;
        self.records += 1;
        self.bytes += line.len() as u64;
        Ok(())
    }

    /// Waits until all that was sent has been written there; gives how many records that were since the last
    /// time.
    ///
    /// # Errors
    /// Where there are fewer, or other ones.
    pub fn receipt(&mut self) -> io::Result<u64> {
        // What Nagle's algorithm holds back leaves (tcp(7)).
        self.stream.write_all(&0_u32.to_be_bytes()).map_err(stalled)?;
        self.stream.set_nodelay(true)?;
        self.stream.set_nodelay(false)?;
        let mut receipt = [0; 16];
        self.stream.read_exact(&mut receipt).map_err(stalled)?;
        let (records, bytes) = receipt.split_at(8);
        let number = |bytes: &[u8]| bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        let (records, bytes) = (number(records), number(bytes));
        if (records, bytes) != (self.records, self.bytes) {
            return Err(io::Error::other(format!(
                "records shipped: {} ({} bytes), records that arrived: {records} ({bytes} bytes)",
                self.records, self.bytes
            )));
        }
        let since = records - self.receipted;
        self.receipted = records;
        Ok(since)
    }
}

fn stalled(error: io::Error) -> io::Error {
    let why = match error.kind() {
        io::ErrorKind::WouldBlock => "the receiving machine accepts no more records".into(),
        _ => format!("the connection to the receiving machine is lost: {error}"),
    };
    io::Error::new(error.kind(), why)
}

/// The end that receives: writes a log as the other receivers do, until the sender has ended.
///
/// # Errors
/// Where the log cannot be written, or what comes is no shipment.
pub fn receive(stream: TcpStream, log: &Path) -> io::Result<()> {
    let mut answers = stream.try_clone()?;
    let mut incoming = BufReader::with_capacity(LONGEST_RECORD, stream);
    let mut log = LogFile::create(log)?;
    let (mut records, mut bytes) = (0_u64, 0_u64);
    let mut length = [0; 4];
    loop {
        match incoming.read_exact(&mut length) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            other => other?,
        }
        let wanted = u32::from_be_bytes(length) as usize;
        if wanted > LONGEST_RECORD {
            return Err(io::Error::other("a record is too long"));
        }
        if wanted == 0 {
            log.wait_until_flushed();
            answers.write_all(&[records.to_be_bytes(), bytes.to_be_bytes()].concat())?;
            continue;
        }
        let mut line = vec![0; wanted];
        incoming.read_exact(&mut line)?;
        log.write(&line)?;
        records += 1;
        bytes += wanted as u64;
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    fn ends() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (sender, listener.accept().unwrap().0)
    }

    #[test]
    fn what_was_shipped_is_in_the_log_there_when_its_receipt_comes() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("audit.log");
        let (sender, receiver) = ends();
        let there = log.clone();
        let receiving = thread::spawn(move || receive(receiver, &there));
        let mut shipment = Shipment::over(sender).unwrap();
        assert_eq!(shipment.receipt().unwrap(), 0);
        for number in 0..1000 {
            shipment.send(format!("type=SYSCALL msg={number}\n").as_bytes()).unwrap();
        }
        assert_eq!(shipment.receipt().unwrap(), 1000);
        assert_eq!(fs::read_to_string(&log).unwrap().lines().count(), 1000);
        shipment.send(b"one more\n").unwrap();
        assert_eq!(shipment.receipt().unwrap(), 1);
        shipment.send(&[b'x'; LONGEST_RECORD]).unwrap();
        assert_eq!(shipment.receipt().unwrap(), 1);
        drop(shipment);
        receiving.join().unwrap().unwrap();
    }

    #[test]
    fn a_receipt_for_other_records_is_an_error() {
        let (sender, mut receiver) = ends();
        let mut shipment = Shipment::over(sender).unwrap();
        shipment.send(b"lost").unwrap();
        receiver.write_all(&[0; 16]).unwrap();
        let problem = shipment.receipt().unwrap_err().to_string();
        assert_eq!(problem, "records shipped: 1 (4 bytes), records that arrived: 0 (0 bytes)");
        drop(receiver);
        let problem = shipment.receipt().unwrap_err().to_string();
        assert!(problem.contains("is lost"), "{problem}");
    }

    #[test]
    fn what_is_no_shipment_ends_it() {
        let directory = tempfile::tempdir().unwrap();
        let (mut sender, receiver) = ends();
        sender.write_all(&[0xff; 9]).unwrap();
        assert!(receive(receiver, &directory.path().join("log")).is_err());
    }

    #[test]
    fn a_sender_that_ended_is_told_from_a_broken_connection() {
        let directory = tempfile::tempdir().unwrap();
        let [ended, broken] = ["ended", "broken"].map(|name| directory.path().join(name));
        let (sender, receiver) = ends();
        drop(sender);
        receive(receiver, &ended).unwrap();
        let (mut sender, receiver) = ends();
        let receiving = thread::spawn(move || receive(receiver, &broken));
        sender.write_all(&[0; 4]).unwrap();
        sender.peek(&mut [0; 16]).unwrap();
        // tcp(7): what is closed with unread bytes is reset.
        drop(sender);
        let problem = receiving.join().unwrap().unwrap_err();
        assert_eq!(problem.kind(), io::ErrorKind::ConnectionReset);
    }

    #[test]
    fn a_receiver_that_takes_no_more_is_told_from_one_that_is_gone() {
        let said = |kind: io::ErrorKind| stalled(kind.into()).to_string();
        let full = said(io::ErrorKind::WouldBlock);
        assert_eq!(full, "the receiving machine accepts no more records");
        let gone = said(io::ErrorKind::BrokenPipe);
        assert!(gone.starts_with("the connection to the receiving machine is lost"), "{gone}");
    }
}
