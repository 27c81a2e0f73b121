//! When a certificate ends.
//!
//! What it does: walks the few fields of a certificate that stand before its validity. What it does not: check anything; TLS
//! libraries do that. Invariant: whatever the bytes are, the answer is a moment or nothing.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

const INTEGER: u8 = 0x02;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
/// The version's tag, which certificates of the first version lack.
const VERSION: u8 = 0xa0;

/// The end of the validity of a certificate in DER.
pub(super) fn not_after(certificate: &[u8]) -> Option<Timestamp> {
    let (signed, _) = element(certificate, SEQUENCE)?;
    let (fields, _) = element(signed, SEQUENCE)?;
    let fields = element(fields, VERSION).map_or(fields, |(_, rest)| rest);
    let (_serial, fields) = element(fields, INTEGER)?;
    let (_algorithm, fields) = element(fields, SEQUENCE)?;
    let (_issuer, fields) = element(fields, SEQUENCE)?;
    let (validity, _) = element(fields, SEQUENCE)?;
    let (_, end) = element(validity, UTC_TIME).or_else(|| element(validity, GENERALIZED_TIME))?;
    if let Some((text, _)) = element(end, GENERALIZED_TIME) {
        return moment(std::str::from_utf8(text).ok()?);
    }
    let text = std::str::from_utf8(element(end, UTC_TIME)?.0).ok()?;
    // Two digits of a year mean 1950 to 2049.
    let century = if text.get(..2)?.parse::<u8>().ok()? < 50 { "20" } else { "19" };
    moment(&format!("{century}{text}"))
}

fn moment(text: &str) -> Option<Timestamp> {
    let time = DateTime::strptime("%Y%m%d%H%M%SZ", text).ok()?;
    Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp())
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
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    fn certificate(year: i32) -> Vec<u8> {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.not_before = date_time_ymd(2026, 1, 1);
        params.not_after = date_time_ymd(year, 2, 3);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    #[test]
    fn reads_both_forms_of_time() {
        for year in [2027, 2049, 2050, 2200] {
            let end = not_after(&certificate(year)).unwrap();
            assert_eq!(end.to_string(), format!("{year}-02-03T00:00:00Z"));
        }
    }

    #[test]
    fn what_is_cut_off_or_damaged_has_no_end() {
        let whole = certificate(2027);
        let end = whole.windows(13).position(|bytes| bytes == b"270203000000Z").unwrap();
        for length in 0..end {
            assert_eq!(not_after(&whole[..length]), None, "{length}");
        }
        let mut damaged = whole;
        damaged[end] = 0xff;
        assert_eq!(not_after(&damaged), None);
        assert_eq!(not_after(&[0x30, 0x88, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]), None);
    }
}
