//! What a certificate says of itself: from when and until when it is valid, and whose it is.
//!
//! What it does: walks the fields of a certificate as far as these. What it does not: check anything; TLS libraries do that.
//! Invariant: whatever the bytes are, the answer is what stands there or nothing.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

const INTEGER: u8 = 0x02;
const BOOLEAN: u8 = 0x01;
const OCTETS: u8 = 0x04;
const OBJECT: u8 = 0x06;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
/// The version's tag, which certificates of the first version lack.
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;
/// The tags of names that are text: mail address, DNS name, URI.
const TEXTS: [u8; 3] = [0x81, 0x82, 0x86];
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const SUBJECT_ALTERNATIVE_NAME: &[u8] = &[0x55, 0x1d, 0x11];

/// The first and the last moment at which a certificate in DER is valid.
pub(super) fn validity(certificate: &[u8]) -> Option<(Timestamp, Timestamp)> {
    let (start, rest) = time(fields(certificate)?.validity)?;
    let (end, _) = time(rest)?;
    Some((start, end))
}

/// The common names of the subject, and its alternative names as far as they are text.
pub(super) fn names(certificate: &[u8]) -> Vec<String> {
    let Some(fields) = fields(certificate) else { return Vec::new() };
    let common = Elements(fields.subject).filter_map(|(tag, set)| {
        let (attribute, _) = element(set, SEQUENCE)?;
        let (kind, value) = element(attribute, OBJECT)?;
        let (_, value) = Elements(value).next()?;
        (tag == SET && kind == COMMON_NAME).then_some(value)
    });
    let alternative = Elements(fields.alternative).filter_map(|(tag, value)| TEXTS.contains(&tag).then_some(value));
    common.chain(alternative).filter_map(|name| Some(std::str::from_utf8(name).ok()?.to_owned())).collect()
}

/// The contents of some fields; what is missing is empty.
struct Fields<'d> {
    validity: &'d [u8],
    subject: &'d [u8],
    alternative: &'d [u8],
}

fn fields(certificate: &[u8]) -> Option<Fields<'_>> {
    let (signed, _) = element(certificate, SEQUENCE)?;
    let (fields, _) = element(signed, SEQUENCE)?;
    let fields = element(fields, VERSION).map_or(fields, |(_, rest)| rest);
    let (_serial, fields) = element(fields, INTEGER)?;
    let (_algorithm, fields) = element(fields, SEQUENCE)?;
    let (_issuer, fields) = element(fields, SEQUENCE)?;
    let (validity, fields) = element(fields, SEQUENCE)?;
    let (subject, fields) = element(fields, SEQUENCE).unwrap_or_default();
    let extensions = Elements(fields).find_map(|(tag, content)| (tag == EXTENSIONS).then_some(content));
    let alternative = extensions.and_then(alternative).unwrap_or_default();
    Some(Fields { validity, subject, alternative })
}

fn alternative(extensions: &[u8]) -> Option<&[u8]> {
    let (extensions, _) = element(extensions, SEQUENCE)?;
    Elements(extensions).find_map(|(_, extension)| {
        let (kind, rest) = element(extension, OBJECT)?;
        let value = element(rest, BOOLEAN).map_or(rest, |(_critical, rest)| rest);
        let (value, _) = element(value, OCTETS)?;
        let (names, _) = element(value, SEQUENCE)?;
        (kind == SUBJECT_ALTERNATIVE_NAME).then_some(names)
    })
}

/// The time that comes first, in either of its forms, and what follows it.
fn time(bytes: &[u8]) -> Option<(Timestamp, &[u8])> {
    if let Some((text, rest)) = element(bytes, GENERALIZED_TIME) {
        return Some((moment(std::str::from_utf8(text).ok()?)?, rest));
    }
    let (text, rest) = element(bytes, UTC_TIME)?;
    let text = std::str::from_utf8(text).ok()?;
    // Two digits of a year mean 1950 to 2049.
    let century = if text.get(..2)?.parse::<u8>().ok()? < 50 { "20" } else { "19" };
    Some((moment(&format!("{century}{text}"))?, rest))
}

fn moment(text: &str) -> Option<Timestamp> {
    let time = DateTime::strptime("%Y%m%d%H%M%SZ", text).ok()?;
    Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

/// The elements that stand one after the other, each with its tag; ends where one cannot be read.
struct Elements<'d>(&'d [u8]);

impl<'d> Iterator for Elements<'d> {
    type Item = (u8, &'d [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let tag = *self.0.first()?;
        let (content, rest) = element(self.0, tag)?;
        self.0 = rest;
        Some((tag, content))
    }
}

/// The content of the first element, which must have this tag, and what follows it.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&found, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    if found != tag {
        return None;
    }
    // Up to 127 the byte is the length; beyond it says how many bytes of length follow.
    let more = usize::from(first & 0x7f);
    let (length, rest) = if first < 0x80 {
        (more, rest)
    } else {
        let (digits, rest) = rest.split_at_checked(more)?;
        let shift = |length: usize, digit: &u8| Some(length.checked_mul(256)?.saturating_add(usize::from(*digit)));
        (digits.iter().try_fold(0, shift)?, rest)
    };
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DnType, KeyPair, SanType, date_time_ymd};

    fn certificate(year: i32) -> Vec<u8> {
        let mut params = CertificateParams::new(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
        params.subject_alt_names.push(SanType::URI("spiffe://cluster/apiserver".try_into().unwrap()));
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, "system:masters");
        params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        params.not_before = date_time_ymd(2026, 1, 1);
        params.not_after = date_time_ymd(year, 2, 3);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    #[test]
    fn reads_both_forms_of_time() {
        for year in [2027, 2049, 2050, 2200] {
            let (start, end) = validity(&certificate(year)).unwrap();
            assert_eq!(start.to_string(), "2026-01-01T00:00:00Z");
            assert_eq!(end.to_string(), format!("{year}-02-03T00:00:00Z"));
        }
    }

    #[test]
    fn reads_names_that_are_text() {
        assert_eq!(names(&certificate(2027)), ["kube-apiserver", "localhost", "spiffe://cluster/apiserver"]);
        let bare = CertificateParams::default().self_signed(&KeyPair::generate().unwrap()).unwrap();
        assert_eq!(names(bare.der()), ["rcgen self signed cert"]);
    }

    #[test]
    fn what_is_cut_off_or_damaged_says_nothing() {
        let whole = certificate(2027);
        let end = whole.windows(13).position(|bytes| bytes == b"270203000000Z").unwrap();
        for length in 0..whole.len() {
            assert_eq!((validity(&whole[..length]), names(&whole[..length])), (None, vec![]), "{length}");
        }
        let mut damaged = whole;
        damaged[end] = 0xff;
        assert_eq!(validity(&damaged), None);
        assert_eq!(validity(&[0x30, 0x88, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]), None);
    }
}
