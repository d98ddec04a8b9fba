//! Packets from a TUN device with `IFF_VNET_HDR`: a virtio-net header and an IP packet, which may
//! stand for many packets on the wire (GSO). The module counts them, and makes a piece that stands
//! for some of them.
//!
//! Bytes that contradict their own header are not split: they are one packet, and go on as they
//! came.

use std::ops::Range;

/// Bytes of the header that stands before each packet.
pub const VNET_HEADER: usize = 10;

const NEEDS_CHECKSUM: u8 = 1;
const GSO_NONE: u8 = 0;
const GSO_TCP4: u8 = 1;
const GSO_TCP6: u8 = 4;
const GSO_UDP: u8 = 5;
/// Beside one of these, that congestion was signalled in the first segment.
const GSO_ECN: u8 = 0x80;

const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;
const TCP_FIN_AND_PUSH: u8 = 0x09;
const TCP_CWR: u8 = 0x80;
const UDP_HEADER: usize = 8;

/// The fields of `struct virtio_net_hdr` (`linux/virtio_net.h`), in the byte order of this machine.
#[derive(Clone, Copy, Debug, PartialEq)]
struct VnetHeader {
    flags: u8,
    gso_type: u8,
    header_bytes: u16,
    gso_bytes: u16,
    checksum_start: u16,
    checksum_offset: u16,
}

impl VnetHeader {
    fn read(bytes: &[u8]) -> Option<VnetHeader> {
        let bytes: &[u8; VNET_HEADER] = bytes.first_chunk()?;
        let word = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        Some(VnetHeader {
            flags: bytes[0],
            gso_type: bytes[1],
            header_bytes: word(2),
            gso_bytes: word(4),
            checksum_start: word(6),
            checksum_offset: word(8),
        })
    }

    fn write(&self, to: &mut [u8]) {
        to[0] = self.flags;
        to[1] = self.gso_type;
        let words = [self.header_bytes, self.gso_bytes, self.checksum_start, self.checksum_offset];
        for (at, word) in words.into_iter().enumerate() {
            to[2 + 2 * at..4 + 2 * at].copy_from_slice(&word.to_ne_bytes());
        }
    }
}

/// Where the parts of a packet that stands for several are, from the start of the IP packet.
#[derive(Clone, Copy, Debug, PartialEq)]
struct SegmentLayout {
    vnet: VnetHeader,
    is_ipv6: bool,
    is_tcp: bool,
    transport: usize,
    payload: usize,
}

/// Packet that was read from a TUN device.
///
/// ```
/// use wire::{Packet, VNET_HEADER};
///
/// // Without offload, a packet is one: the header is zeros.
/// let mut bytes = vec![0; VNET_HEADER];
/// bytes.extend([0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 198, 18, 1, 1, 198, 18, 1, 2]);
/// let packet = Packet::new(&bytes);
/// assert_eq!((packet.segments(), packet.segment_bytes(0)), (1, 20));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    bytes: &'a [u8],
    /// `None` where it is one packet on the wire.
    layout: Option<SegmentLayout>,
}

impl<'a> Packet<'a> {
    /// Parses these bytes: the header, and the packet behind it.
    pub fn new(bytes: &'a [u8]) -> Packet<'a> {
        let layout = layout(bytes).filter(|layout| {
            bytes.len() - VNET_HEADER - layout.payload > usize::from(layout.vnet.gso_bytes)
        });
        Packet { bytes, layout }
    }

    fn ip(&self) -> &'a [u8] {
        self.bytes.get(VNET_HEADER..).unwrap_or_default()
    }

    /// How many packets on the wire it stands for.
    pub fn segments(&self) -> u32 {
        self.layout.as_ref().map_or(1, |layout| {
            (self.ip().len() - layout.payload).div_ceil(layout.vnet.gso_bytes.into()) as u32
        })
    }

    /// How long the IP packet of this segment is on the wire.
    pub fn segment_bytes(&self, segment: u32) -> usize {
        self.layout.map_or(self.ip().len(), |layout| {
            layout.payload + self.data(&layout, segment..segment + 1).len()
        })
    }

    /// All bytes, with the header.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Where the data of these segments is in the IP packet.
    fn data(&self, layout: &SegmentLayout, segments: Range<u32>) -> Range<usize> {
        let end = self.ip().len();
        let at = |segment: u32| {
            (layout.payload + segment as usize * usize::from(layout.vnet.gso_bytes)).min(end)
        };
        at(segments.start)..at(segments.end)
    }

    /// A packet that stands for these segments alone: its headers go to `head`, what follows them is
    /// returned.
    pub fn part(&self, segments: Range<u32>, head: &mut Vec<u8>) -> &'a [u8] {
        head.clear();
        let Some(layout) = self.layout.filter(|_| segments != (0..self.segments())) else {
            return self.bytes;
        };
        let data = self.data(&layout, segments.clone());
        head.extend_from_slice(&self.bytes[..VNET_HEADER + layout.payload]);
        let mut vnet = layout.vnet;
        // The kernel's hint may take in data, and refuses a packet that is shorter than it.
        vnet.header_bytes = layout.payload as u16;
        if data.len() <= usize::from(vnet.gso_bytes) {
            (vnet.gso_type, vnet.gso_bytes) = (GSO_NONE, 0);
        } else if segments.start > 0 {
            vnet.gso_type &= !GSO_ECN;
        }
        vnet.write(head);
        let is_last = segments.end == self.segments();
        let ip = &mut head[VNET_HEADER..];
        let before_bytes = data.start - layout.payload;
        renumber(ip, &layout, &segments, before_bytes as u32, is_last);
        resize(ip, &layout, data.len());
        &self.ip()[data]
    }
}

/// The parts of a packet that is to be segmented; `None` where it is not, or not what it says.
fn layout(bytes: &[u8]) -> Option<SegmentLayout> {
    let vnet = VnetHeader::read(bytes)?;
    let ip = &bytes[VNET_HEADER..];
    let is_ipv6 = match ip.first()? >> 4 {
        4 => false,
        6 => true,
        _ => return None,
    };
    let is_tcp = match (vnet.gso_type & !GSO_ECN, is_ipv6) {
        (GSO_TCP4, false) | (GSO_TCP6, true) => true,
        (GSO_UDP, _) => false,
        _ => return None,
    };
    let transport = usize::from(vnet.checksum_start);
    let (checksum_offset, header) = if is_tcp { (16, 20) } else { (6, UDP_HEADER) };
    let is_possible = vnet.flags & NEEDS_CHECKSUM != 0
        && vnet.gso_bytes > 0
        && usize::from(vnet.checksum_offset) == checksum_offset
        && ip.len() >= transport + header
        && has_ip_header(ip, is_ipv6, is_tcp, transport);
    if !is_possible {
        return None;
    }
    let header = if is_tcp { usize::from(ip[transport + 12] >> 4) * 4 } else { header };
    let payload = transport + header;
    let is_possible = header >= if is_tcp { 20 } else { UDP_HEADER } && ip.len() > payload;
    is_possible.then_some(SegmentLayout { vnet, is_ipv6, is_tcp, transport, payload })
}

/// Returns true if an IP header ends at `transport`. In IPv6, extension headers may come between;
/// they are copied as they are.
fn has_ip_header(ip: &[u8], is_ipv6: bool, is_tcp: bool, transport: usize) -> bool {
    let word = |at: usize| usize::from(u16::from_be_bytes([ip[at], ip[at + 1]]));
    if is_ipv6 {
        return transport >= 40 && ip.len() == 40 + word(4);
    }
    let protocol = if is_tcp { PROTOCOL_TCP } else { PROTOCOL_UDP };
    let header = usize::from(ip[0] & 15) * 4;
    header >= 20 && transport == header && ip[9] == protocol && ip.len() == word(2)
}

/// Sets the fields that differ from segment to segment: the IPv4 identification, and for TCP the
/// sequence number and flags.
fn renumber(
    ip: &mut [u8],
    layout: &SegmentLayout,
    segments: &Range<u32>,
    before_bytes: u32,
    is_last: bool,
) {
    if !layout.is_ipv6 {
        let identification = u16::from_be_bytes([ip[4], ip[5]]).wrapping_add(segments.start as u16);
        ip[4..6].copy_from_slice(&identification.to_be_bytes());
    }
    if layout.is_tcp {
        let tcp = &mut ip[layout.transport..];
        let sequence = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]);
        tcp[4..8].copy_from_slice(&sequence.wrapping_add(before_bytes).to_be_bytes());
        if !is_last {
            tcp[13] &= !TCP_FIN_AND_PUSH;
        }
        if segments.start > 0 {
            tcp[13] &= !TCP_CWR;
        }
    }
}

/// Lengths, and the checksums that depend on them. That of TCP or UDP is begun here, and finished by who
/// receives it.
fn resize(ip: &mut [u8], layout: &SegmentLayout, data_bytes: usize) {
    let total = layout.payload + data_bytes;
    let transport_bytes = total - layout.transport;
    let addresses = if layout.is_ipv6 {
        ip[4..6].copy_from_slice(&((total - 40) as u16).to_be_bytes());
        8..40
    } else {
        ip[2..4].copy_from_slice(&(total as u16).to_be_bytes());
        ip[10..12].fill(0);
        let checksum = !fold(sum(&ip[..layout.transport]));
        ip[10..12].copy_from_slice(&checksum.to_be_bytes());
        12..20
    };
    let protocol = if layout.is_tcp { PROTOCOL_TCP } else { PROTOCOL_UDP };
    let pseudo = sum(&ip[addresses]) + u64::from(protocol) + transport_bytes as u64;
    let transport = &mut ip[layout.transport..];
    if !layout.is_tcp {
        transport[4..6].copy_from_slice(&(transport_bytes as u16).to_be_bytes());
    }
    let at = usize::from(layout.vnet.checksum_offset);
    transport[at..at + 2].copy_from_slice(&fold(pseudo).to_be_bytes());
}

/// The sum of 16-bit words that Internet checksums are made of.
fn sum(bytes: &[u8]) -> u64 {
    let words = bytes.chunks(2);
    words.map(|word| u64::from(word[0]) << 8 | u64::from(word.get(1).copied().unwrap_or(0))).sum()
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A packet of this much data, to be cut in pieces of `gso_bytes`, as the kernel would hand it over.
    fn packet(is_ipv6: bool, is_tcp: bool, data_bytes: usize, gso_bytes: u16) -> Vec<u8> {
        let (transport, header) = (if is_ipv6 { 40 } else { 20 }, if is_tcp { 32 } else { 8 });
        let total = transport + header + data_bytes;
        let mut ip = vec![0; transport];
        if is_ipv6 {
            ip[0] = 0x60;
            ip[4..6].copy_from_slice(&((total - 40) as u16).to_be_bytes());
            ip[6] = if is_tcp { 6 } else { 17 };
            ip[8..40].copy_from_slice(&std::array::from_fn::<u8, 32, _>(|at| at as u8 * 7));
        } else {
            ip[0] = 0x45;
            ip[2..4].copy_from_slice(&(total as u16).to_be_bytes());
            ip[4..6].copy_from_slice(&[0xff, 0xfe]);
            ip[9] = if is_tcp { 6 } else { 17 };
            ip[12..20].copy_from_slice(&[198, 18, 1, 1, 198, 18, 1, 2]);
        }
        let mut head = vec![0; header];
        if is_tcp {
            head[4..8].copy_from_slice(&0xffff_ff00_u32.to_be_bytes());
            (head[12], head[13]) = (0x80, 0x10 | TCP_FIN_AND_PUSH | TCP_CWR);
        } else {
            head[4..6].copy_from_slice(&((8 + data_bytes) as u16).to_be_bytes());
        }
        let gso_type = if !is_tcp {
            5
        } else if is_ipv6 {
            4
        } else {
            1
        };
        let checksum_offset = if is_tcp { 16 } else { 6 };
        let checksum_start = transport as u16;
        let header_bytes = (transport + header) as u16;
        let vnet = VnetHeader {
            flags: 1,
            gso_type,
            header_bytes,
            gso_bytes,
            checksum_start,
            checksum_offset,
        };
        let mut bytes = vec![0; VNET_HEADER];
        vnet.write(&mut bytes);
        bytes.extend(ip);
        bytes.extend(head);
        bytes.extend((0..data_bytes).map(|at| (at / 7) as u8));
        bytes
    }

    fn part(bytes: &[u8], segments: Range<u32>) -> Vec<u8> {
        let mut head = Vec::new();
        let rest = Packet::new(bytes).part(segments, &mut head);
        head.extend_from_slice(rest);
        head
    }

    /// The bytes on the wire: the header taken off, the checksum finished.
    fn finished(bytes: &[u8]) -> Vec<u8> {
        let vnet = VnetHeader::read(bytes).unwrap();
        let mut ip = bytes[VNET_HEADER..].to_vec();
        let start = usize::from(vnet.checksum_start);
        let checksum = !fold(sum(&ip[start..]));
        let at = start + usize::from(vnet.checksum_offset);
        ip[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
        ip
    }

    /// Returns true if the packet's checksums are right, computed from the bytes on the wire alone.
    fn is_right(ip: &[u8]) -> bool {
        let is_ipv6 = ip[0] >> 4 == 6;
        let (addresses, transport) = if is_ipv6 { (8..40, 40) } else { (12..20, 20) };
        let protocol = u64::from(ip[if is_ipv6 { 6 } else { 9 }]);
        let length = (ip.len() - transport) as u64;
        let pseudo = sum(&ip[addresses]) + protocol + length;
        let is_header_right = is_ipv6 || fold(sum(&ip[..transport])) == 0xffff;
        is_header_right && fold(pseudo + sum(&ip[transport..])) == 0xffff
    }

    #[test]
    fn each_segment_is_as_the_kernel_would_have_sent_it() {
        for (is_ipv6, is_tcp) in [(false, true), (true, true), (false, false), (true, false)] {
            let whole = packet(is_ipv6, is_tcp, 2500, 1000);
            let found = Packet::new(&whole);
            assert_eq!(found.segments(), 3);
            let header = found.segment_bytes(2) - 500;
            let mut data = Vec::new();
            for segment in 0..3 {
                let bytes = part(&whole, segment..segment + 1);
                assert_eq!(bytes[1], GSO_NONE);
                let ip = finished(&bytes);
                assert!(is_right(&ip), "IPv6: {is_ipv6}, TCP: {is_tcp}, segment {segment}");
                assert_eq!(ip.len(), found.segment_bytes(segment));
                if is_tcp {
                    let tcp = &ip[header - 32..];
                    let sequence = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]);
                    assert_eq!(sequence, 0xffff_ff00_u32.wrapping_add(1000 * segment));
                    assert_eq!(tcp[13] & TCP_FIN_AND_PUSH != 0, segment == 2);
                    assert_eq!(tcp[13] & TCP_CWR != 0, segment == 0);
                }
                if !is_ipv6 {
                    let identification = u16::from_be_bytes([ip[4], ip[5]]);
                    assert_eq!(identification, 0xfffe_u16.wrapping_add(segment as u16));
                }
                data.extend_from_slice(&ip[header..]);
            }
            assert_eq!(data, whole[whole.len() - 2500..]);
        }
    }

    #[test]
    fn what_is_no_packet_of_several_goes_on_as_it_came() {
        let whole = packet(false, true, 2500, 1000);
        assert_eq!(part(&whole, 0..3), whole);
        // Of each of these fields, the change makes it something else than it says.
        for (at, byte) in
            [(0, 0), (1, 4), (1, 3), (4, 0), (8, 6), (10, 0x65), (12, 0), (19, 17), (42, 0x40)]
        {
            let mut odd = whole.clone();
            odd[at] = byte;
            if at == 4 {
                odd[5] = 0;
            }
            assert_eq!(Packet::new(&odd).segments(), 1, "byte {at}");
            assert_eq!(part(&odd, 0..1), odd);
        }
        for length in 0..VNET_HEADER + 52 {
            assert_eq!(Packet::new(&whole[..length]).segments(), 1, "{length} bytes");
        }
    }

    proptest! {
        /// However it is cut, and cut again, the packets on the wire are the same.
        #[test]
        fn parts_of_parts_are_the_same_packets(
            (is_ipv6, is_tcp) in any::<(bool, bool)>(),
            data_bytes in 1_usize..9000,
            gso_bytes in 500_u16..2000,
            cut in any::<u32>(),
        ) {
            let whole = packet(is_ipv6, is_tcp, data_bytes, gso_bytes);
            let segments = Packet::new(&whole).segments();
            let cut = cut % (segments + 1);
            let mut again = Vec::new();
            for piece in [0..cut, cut..segments] {
                if piece.is_empty() {
                    continue;
                }
                let bytes = part(&whole, piece.clone());
                let found = Packet::new(&bytes);
                prop_assert_eq!(found.segments(), piece.len() as u32);
                again.extend((0..found.segments()).map(|at| finished(&part(&bytes, at..at + 1))));
            }
            let once = (0..segments).map(|at| finished(&part(&whole, at..at + 1)));
            prop_assert_eq!(again, once.collect::<Vec<_>>());
        }

        /// Foreign bytes, some of them nearly right, are counted and cut without a panic.
        #[test]
        fn foreign_bytes_are_packets_too(
            (is_ipv6, is_tcp) in any::<(bool, bool)>(),
            data_bytes in 0_usize..4000,
            changes in prop::collection::vec((0_usize..100, any::<u8>()), 0..6),
            length in 0_usize..5000,
            noise in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let mut nearly = packet(is_ipv6, is_tcp, data_bytes, 1000);
            for (at, byte) in changes {
                if let Some(place) = nearly.get_mut(at) {
                    *place = byte;
                }
            }
            nearly.truncate(length);
            for bytes in [nearly, noise] {
                let found = Packet::new(&bytes);
                let segments = found.segments();
                prop_assert!(segments >= 1);
                let mut data_bytes = 0;
                for segment in 0..segments {
                    let piece = part(&bytes, segment..segment + 1);
                    prop_assert!(piece.len() <= bytes.len());
                    if segments > 1 {
                        prop_assert_eq!(piece.len(), VNET_HEADER + found.segment_bytes(segment));
                    }
                    data_bytes += found.segment_bytes(segment);
                }
                prop_assert!(data_bytes >= bytes.len().saturating_sub(VNET_HEADER));
            }
        }
    }
}
