//! A client on another machine (`--client USER@HOST`): how it is reached, and the addresses at which it and
//! the servers find each other.

use std::net::{Ipv4Addr, TcpListener};

use weigh_fixture::Away;
use weigh_model::described::line;
use weigh_model::kind::Parameter;
use weigh_treatment::remote::{RemoteSession, Ssh};
use weigh_treatment::{ApplyContext, TreatmentError};
use weigh_workload::place::LaunchPlace;
use weigh_workload::setup::Setup;
use weigh_workload::setup::kind::whereabouts::Whereabouts;

/// As it is written.
const FORM: &str = "--client USER@HOST";
const ADDRESSES: [Parameter; 2] = [
    Parameter {
        form: "address=IP",
        help: "address of this machine where servers listen for the client",
    },
    Parameter {
        form: "from=IP",
        help: "address of the client; the servers accept only this address",
    },
];

/// Client that the user named with `--client`.
#[derive(Clone, Debug)]
pub struct ClientLabel {
    ssh: Ssh,
    address: Option<Ipv4Addr>,
    from: Option<Ipv4Addr>,
}

impl ClientLabel {
    /// Parses `USER@HOST` and the parameters that may follow it, separated by commas.
    pub fn read(text: &str) -> Result<ClientLabel, String> {
        let is_count = |word: &str| word == "all" || word.parse::<u32>().is_ok();
        if text.split(',').flat_map(|item| item.split("..")).all(is_count) {
            return Err(format!(
                "takes the machine of the clients, {FORM}; for the number of clients, use --clients {text}"
            ));
        }
        let (ssh, parameters) = Ssh::read(text, FORM, &ADDRESSES)?;
        let address = |key: &str| {
            let value = parameters.value(key);
            let parsed = value.map(|value| value.parse::<Ipv4Addr>()).transpose();
            parsed.map_err(|_| format!("{key}= takes an IPv4 address, such as 192.0.2.1"))
        };
        let (address, from) = (address("address")?, address("from")?);
        Ok(ClientLabel { ssh, address, from })
    }
}

/// Checks the text of a client and returns it with absolute paths.
pub fn checked(text: &str) -> Result<String, String> {
    ClientLabel::read(text)?;
    Ssh::stored(text, FORM, &ADDRESSES)
}

impl ClientLabel {
    /// Returns a notice, for a person who waits, that copying takes time.
    pub fn takes_time(&self) -> String {
        format!("Copying weigh to {}.", self.ssh.destination)
    }
}

/// Connected.
pub struct AwayClient {
    visit: RemoteSession,
    away: Away,
}

impl AwayClient {
    /// Connects, and finds the addresses: those of the connection, unless the user names others.
    pub fn connect(
        label: &ClientLabel,
        context: &ApplyContext,
    ) -> Result<AwayClient, TreatmentError> {
        let mut visit = RemoteSession::to(label.ssh.clone());
        visit.begin(context)?;
        let found = Whereabouts::addresses(visit.whereabouts().unwrap_or_default());
        let of_connection = |end: usize| found.and_then(|ends| ends[end].parse().ok());
        let known = |named: Option<Ipv4Addr>, end: usize, what: &str| {
            named.or_else(|| of_connection(end)).ok_or_else(|| {
                TreatmentError::Unavailable(format!(
                    "--client: ssh reported no IPv4 address of the connection; give the address with {what}"
                ))
            })
        };
        let away = Away {
            listen: known(label.address, 0, ADDRESSES[0].form)?,
            client: known(label.from, 1, ADDRESSES[1].form)?,
        };
        if let Err(error) = TcpListener::bind((away.listen, 0)) {
            return Err(TreatmentError::Unavailable(format!(
                "--client: {} sees this machine as {}, but servers cannot listen on that address ({error}). \
                 If the network translates addresses (NAT), give an address of this machine that the client \
                 reaches (address=IP,from=IP)",
                label.ssh.destination, away.listen
            )));
        }
        Ok(AwayClient { visit, away })
    }

    /// For the servers.
    pub fn addresses(&self) -> Away {
        self.away
    }

    /// Where the client is launched, connected again where that is necessary.
    pub fn place(&mut self) -> Result<LaunchPlace, TreatmentError> {
        if self.visit.is_lost() {
            self.visit.come_back()?;
        }
        let place = self.visit.connection.as_ref().map(|connection| connection.place.clone());
        place.ok_or_else(|| {
            TreatmentError::Unavailable("the client's machine is not connected".into())
        })
    }

    /// How its processes are set up: they tell where they are.
    pub fn setup() -> Setup {
        Setup::default().with(Whereabouts {})
    }

    /// Where they have to be.
    pub fn whereabouts(&self) -> &str {
        self.visit.whereabouts().unwrap_or_default()
    }

    /// For the report.
    pub fn fact(&self) -> String {
        let Some(connection) = &self.visit.connection else { return String::new() };
        let there = &connection.arrival.machine;
        format!(
            "The client runs on `{}`, reached by ssh as {}: {}. The client sends requests to the servers at \
             {} from {}, and is not treated. CPU time does not cover the servers, so it has no verdict.",
            there.hostname,
            self.visit.ssh.destination,
            line(there),
            self.away.listen,
            self.away.client
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_a_destination_with_its_addresses() {
        if Ssh::to("h", FORM).is_err() {
            return;
        }
        let read = ClientLabel::read("root@192.0.2.7,port=2222,address=192.0.2.1").unwrap();
        assert_eq!(read.ssh.destination, "root@192.0.2.7");
        assert_eq!((read.ssh.port, read.from), (Some(2222), None));
        assert_eq!(read.address, Some(Ipv4Addr::new(192, 0, 2, 1)));
        let refused = |text: &str| ClientLabel::read(text).unwrap_err();
        assert!(refused("root@h,address=here").contains("takes an IPv4 address"));
        assert!(refused("root@h,speed=1").contains("does not take `speed=`"));
        assert!(refused("-x").contains("not an ssh destination: write --client USER@HOST"));
        for count in ["4", "1,4,6", "1..all"] {
            assert!(
                refused(count)
                    .ends_with(&format!("for the number of clients, use --clients {count}"))
            );
        }
        assert!(ClientLabel::read("10.0.0.7").is_ok());
    }

    #[test]
    fn the_addresses_are_those_of_the_connection() {
        let word = "boot host 203.0.113.1 5000 203.0.113.2 22";
        assert_eq!(Whereabouts::addresses(word), Some(["203.0.113.1", "203.0.113.2"]));
        assert_eq!(Whereabouts::addresses("boot host "), None);
    }
}
