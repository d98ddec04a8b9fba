//! Encrypted frames between two machines that share a token.
//!
//! Noise (`Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s`): both ends prove that they know the token, keys are fresh
//! for each connection, and what was recorded yesterday opens nothing today. There are no certificates.
//!
//! A [`Channel`] has no socket and no clock: bytes that came go in, bytes to be sent come out. So the whole
//! of it can be given anything, and whoever has the socket decides how long it may take.
//!
//! ```
//! use channel::{Channel, Secret};
//!
//! let secret = Secret::of_token("0123456789abcdef0123456789abcdef")?;
//! let (mut caller, mut answerer) = (Channel::call(&secret), Channel::answer(&secret));
//! answerer.take(&caller.unsent());
//! assert_eq!(answerer.next_frame()?, None); // that was the greeting
//! caller.take(&answerer.unsent());
//! assert_eq!(caller.next_frame()?, None);
//! caller.send(b"an order")?;
//! answerer.take(&caller.unsent());
//! assert_eq!(answerer.next_frame()?.as_deref(), Some(&b"an order"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(missing_docs)]

use sha2::{Digest, Sha256};
use snow::{Builder, HandshakeState, TransportState};

const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";
/// Both ends have it, so another version of this protocol is another token.
const PROLOGUE: &[u8] = b"weighbridge 1";
/// A key of 32 bytes and a tag of 16: each of the two messages that begin it.
const GREETING_BYTES: usize = 48;
const TAG_BYTES: usize = 16;
/// Before each frame.
const LENGTH_BYTES: usize = 2;
/// Of what is said in one frame, until more is allowed.
const SHORT_FRAME_BYTES: usize = 1024;
/// The same, once both know each other.
pub const LONGEST_FRAME_BYTES: usize = 16 << 10;
/// 32 characters of base64 or hexadecimal have 128 bits and more.
const SHORTEST_TOKEN: usize = 32;

/// What both ends know, and nobody else.
#[derive(Clone)]
pub struct Secret([u8; 32]);

/// A token that is none.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a token has {SHORTEST_TOKEN} characters or more, without spaces (`weigh agent --new-token FILE`)"
)]
pub struct TokenError;

impl Secret {
    /// That of the text of a token file; space around it does not count.
    ///
    /// # Errors
    /// Where it is too short to be by chance, or of several words.
    pub fn of_token(text: &str) -> Result<Secret, TokenError> {
        let token = text.trim();
        match token.len() >= SHORTEST_TOKEN && !token.contains(char::is_whitespace) {
            true => Ok(Secret(Sha256::digest(token.as_bytes()).into())),
            false => Err(TokenError),
        }
    }
}

/// Why a channel is over.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChannelError {
    /// The other end does not know the token, speaks another version or another protocol, or what it sent was
    /// changed on the way.
    #[error("the other end does not have the same token, or is no weigh of this version")]
    NotOurs,
    /// A frame that nobody of ours sends.
    #[error("a frame of {0} bytes is longer than what is allowed")]
    TooLong(usize),
    /// Something was to be sent before both know each other, or too much of it.
    #[error("this cannot be sent now")]
    NotNow,
}

enum ChannelStage {
    /// Whose turn it is to say who he is.
    Greeting(Box<HandshakeState>),
    Open(Box<TransportState>),
    Over,
}

/// One end.
pub struct Channel {
    stage: ChannelStage,
    longest: usize,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
    /// Whether a frame came that only who knows the token can have made.
    is_proved: bool,
}

impl Channel {
    /// The end that calls. Its greeting is to be sent at once.
    ///
    /// # Panics
    /// Where the system gives no random bytes.
    pub fn call(secret: &Secret) -> Channel {
        let handshake = builder(secret).build_initiator().expect("the pattern needs nothing else");
        let mut channel = Channel::new(handshake);
        channel.greet().expect("the caller's turn is the first");
        channel
    }

    /// The end that is called. It says nothing before the other has proved that it knows the token.
    ///
    /// # Panics
    /// As [`Channel::call`].
    pub fn answer(secret: &Secret) -> Channel {
        Channel::new(builder(secret).build_responder().expect("the pattern needs nothing else"))
    }

    fn new(handshake: HandshakeState) -> Channel {
        Channel {
            stage: ChannelStage::Greeting(Box::new(handshake)),
            longest: SHORT_FRAME_BYTES,
            incoming: Vec::new(),
            outgoing: Vec::new(),
            is_proved: false,
        }
    }

    /// Takes what came from the other end.
    pub fn take(&mut self, bytes: &[u8]) {
        self.incoming.extend_from_slice(bytes);
    }

    /// The next frame of what came; `None` where it has not all come. Greetings are answered on the way.
    ///
    /// # Errors
    /// Nothing can be sent or received any more.
    pub fn next_frame(&mut self) -> Result<Option<Vec<u8>>, ChannelError> {
        let next = self.read_frame();
        if next.is_err() {
            self.stage = ChannelStage::Over;
        }
        next
    }

    fn read_frame(&mut self) -> Result<Option<Vec<u8>>, ChannelError> {
        loop {
            let Some((head, rest)) = self.incoming.split_first_chunk::<LENGTH_BYTES>() else {
                return Ok(None);
            };
            let length = usize::from(u16::from_be_bytes(*head));
            match self.stage {
                ChannelStage::Greeting(_) if length != GREETING_BYTES => {
                    return Err(ChannelError::NotOurs);
                }
                ChannelStage::Open(_) if length > self.longest + TAG_BYTES => {
                    return Err(ChannelError::TooLong(length));
                }
                ChannelStage::Over => return Err(ChannelError::NotOurs),
                _ => {}
            }
            let Some(frame) = rest.get(..length) else { return Ok(None) };
            let mut plain = vec![0; length];
            match &mut self.stage {
                ChannelStage::Greeting(handshake) => {
                    let read = handshake.read_message(frame, &mut plain);
                    read.map_err(|_| ChannelError::NotOurs)?;
                    self.incoming.drain(..LENGTH_BYTES + length);
                    self.go_on()?;
                }
                ChannelStage::Open(transport) => {
                    let read = transport.read_message(frame, &mut plain);
                    plain.truncate(read.map_err(|_| ChannelError::NotOurs)?);
                    self.incoming.drain(..LENGTH_BYTES + length);
                    self.is_proved = true;
                    return Ok(Some(plain));
                }
                ChannelStage::Over => return Err(ChannelError::NotOurs),
            }
        }
    }

    /// After a greeting of the other end: answers it, or is open.
    fn go_on(&mut self) -> Result<(), ChannelError> {
        let is_ours = |handshake: &HandshakeState| {
            handshake.is_my_turn() && !handshake.is_handshake_finished()
        };
        if matches!(&self.stage, ChannelStage::Greeting(handshake) if is_ours(handshake)) {
            self.greet()?;
        }
        self.stage = match std::mem::replace(&mut self.stage, ChannelStage::Over) {
            ChannelStage::Greeting(handshake) if handshake.is_handshake_finished() => {
                let transport = handshake.into_transport_mode();
                ChannelStage::Open(Box::new(transport.map_err(|_| ChannelError::NotOurs)?))
            }
            other => other,
        };
        Ok(())
    }

    fn greet(&mut self) -> Result<(), ChannelError> {
        let ChannelStage::Greeting(handshake) = &mut self.stage else {
            return Err(ChannelError::NotNow);
        };
        let mut message = [0; GREETING_BYTES];
        handshake.write_message(&[], &mut message).map_err(|_| ChannelError::NotNow)?;
        self.outgoing.extend((GREETING_BYTES as u16).to_be_bytes());
        self.outgoing.extend(message);
        Ok(())
    }

    /// Encrypts a frame, to be sent with what is unsent.
    ///
    /// # Errors
    /// [`ChannelError::NotNow`] before both have greeted each other, or where it is too long.
    pub fn send(&mut self, plain: &[u8]) -> Result<(), ChannelError> {
        let ChannelStage::Open(transport) = &mut self.stage else {
            return Err(ChannelError::NotNow);
        };
        if plain.len() > LONGEST_FRAME_BYTES {
            return Err(ChannelError::NotNow);
        }
        let mut frame = vec![0; plain.len() + TAG_BYTES];
        let length = transport.write_message(plain, &mut frame);
        let length = length.map_err(|_| ChannelError::NotNow)?;
        self.outgoing.extend((length as u16).to_be_bytes());
        self.outgoing.extend(&frame[..length]);
        Ok(())
    }

    /// What is to be sent to the other end now, and is not here any more.
    pub fn unsent(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.outgoing)
    }

    /// Whether frames can be sent.
    pub fn is_open(&self) -> bool {
        matches!(self.stage, ChannelStage::Open(_))
    }

    /// From now on frames may be longer, if one came that only who knows the token can have made.
    pub fn allow_long_frames(&mut self) {
        if self.is_proved {
            self.longest = LONGEST_FRAME_BYTES;
        }
    }
}

fn builder(secret: &Secret) -> Builder<'_> {
    let pattern = PATTERN.parse().expect("it is one that snow has");
    let builder = Builder::new(pattern).psk(0, &secret.0);
    builder.and_then(|builder| builder.prologue(PROLOGUE)).expect("each is set once")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";

    fn secret(token: &str) -> Secret {
        Secret::of_token(token).unwrap()
    }

    /// What the caller sends until it has said something, and the open answerer.
    fn conversation() -> (Vec<u8>, Channel, Channel) {
        let secret = secret(TOKEN);
        let (mut caller, mut answerer) = (Channel::call(&secret), Channel::answer(&secret));
        let greeting = caller.unsent();
        answerer.take(&greeting);
        assert_eq!(answerer.next_frame(), Ok(None));
        caller.take(&answerer.unsent());
        assert_eq!(caller.next_frame(), Ok(None));
        caller.send(b"hello").unwrap();
        (greeting, caller, answerer)
    }

    #[test]
    fn both_ends_say_what_they_like_in_frames() {
        let (_, mut caller, mut answerer) = conversation();
        let sent = caller.unsent();
        for byte in &sent[..sent.len() - 1] {
            answerer.take(&[*byte]);
            assert_eq!(answerer.next_frame(), Ok(None));
        }
        answerer.take(&sent[sent.len() - 1..]);
        assert_eq!(answerer.next_frame(), Ok(Some(b"hello".to_vec())));
        answerer.send(b"").unwrap();
        answerer.send(&[7; LONGEST_FRAME_BYTES]).unwrap();
        assert_eq!(answerer.send(&[7; LONGEST_FRAME_BYTES + 1]), Err(ChannelError::NotNow));
        caller.take(&answerer.unsent());
        assert_eq!(caller.next_frame(), Ok(Some(Vec::new())));
        caller.allow_long_frames();
        assert_eq!(caller.next_frame().unwrap().unwrap().len(), LONGEST_FRAME_BYTES);
        assert!(!sent.windows(5).any(|bytes| bytes == b"hello"));
    }

    #[test]
    fn another_token_is_refused_before_anything_is_said() {
        let mut caller = Channel::call(&secret("another-token-of-32-characters-is"));
        let mut answerer = Channel::answer(&secret(TOKEN));
        answerer.take(&caller.unsent());
        assert_eq!(answerer.next_frame(), Err(ChannelError::NotOurs));
        assert_eq!((answerer.unsent(), answerer.is_open()), (Vec::new(), false));
        assert_eq!(caller.send(b"hello"), Err(ChannelError::NotNow));
    }

    /// Who recorded a whole conversation gets an answer to its greeting, which tells nothing, and no further.
    #[test]
    fn what_was_recorded_opens_nothing() {
        let (greeting, mut caller, _) = conversation();
        let mut answerer = Channel::answer(&secret(TOKEN));
        answerer.take(&greeting);
        answerer.take(&caller.unsent());
        assert_eq!(answerer.next_frame(), Err(ChannelError::NotOurs));
        assert!(!answerer.is_open());
    }

    #[test]
    fn frames_are_short_until_the_other_end_is_known() {
        let (_, mut caller, mut answerer) = conversation();
        answerer.allow_long_frames();
        let _ = caller.unsent();
        caller.send(&[0; SHORT_FRAME_BYTES + 1]).unwrap();
        answerer.take(&caller.unsent()[..LENGTH_BYTES]);
        let length = SHORT_FRAME_BYTES + 1 + TAG_BYTES;
        assert_eq!(answerer.next_frame(), Err(ChannelError::TooLong(length)));
    }

    #[test]
    fn tokens_are_long_and_of_one_word() {
        assert!(Secret::of_token(&format!("  {TOKEN}\n")).is_ok());
        for wrong in ["", "secret", &TOKEN[1..], &format!("{TOKEN}\n{TOKEN}")] {
            assert!(Secret::of_token(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn garbage_is_refused_or_waited_for(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut answerer = Channel::answer(&secret(TOKEN));
            answerer.take(&bytes);
            let next = answerer.next_frame();
            prop_assert!(matches!(next, Ok(None) | Err(ChannelError::NotOurs)));
            prop_assert!(answerer.unsent().is_empty() && !answerer.is_open());
        }

        #[test]
        fn what_is_changed_on_the_way_is_refused(at in 0_usize..100, bit in 0_u8..8) {
            let (greeting, mut caller, _) = conversation();
            let secret = secret(TOKEN);
            let mut sent = [greeting, caller.unsent()].concat();
            let at = at % sent.len();
            sent[at] ^= 1 << bit;
            let mut answerer = Channel::answer(&secret);
            answerer.take(&sent);
            prop_assert!(matches!(answerer.next_frame(), Ok(None) | Err(_)));
        }
    }
}
