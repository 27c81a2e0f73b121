//! Texts as they are kept in a Secret: compressed, and read back only as far as they may be large.
//!
//! Invariant: what comes out is never larger than the limit that was given, whatever goes in.

use std::io::{Read as _, Write as _};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

/// Compresses a text. The same text gives the same bytes.
pub(super) fn pack(text: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text)?;
    encoder.finish()
}

/// What was compressed, if it is whole and no larger than this.
pub(super) fn unpack(bytes: &[u8], limit: usize) -> Result<Vec<u8>, String> {
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    let mut text = Vec::new();
    GzDecoder::new(bytes).take(most).read_to_end(&mut text).map_err(|error| format!("it is no gzip: {error}"))?;
    if text.len() > limit {
        return Err(format!("it is larger than {limit} bytes once it is decompressed"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_out_again_and_nothing_larger_than_the_limit() {
        let text = b"package a\n".repeat(1_000);
        let packed = pack(&text).unwrap();
        assert!(packed.len() < text.len() / 10);
        assert_eq!(pack(&text).unwrap(), packed);
        assert_eq!(unpack(&packed, text.len()).unwrap(), text);
        assert!(unpack(&packed, text.len() - 1).unwrap_err().contains("larger than 9999 bytes"));
        // A thousand times its size is the most that this form of compression makes, and it stops at the limit.
        let bomb = pack(&vec![0; 64 << 20]).unwrap();
        assert!(bomb.len() < 100_000);
        assert!(unpack(&bomb, 1 << 20).unwrap_err().contains("larger than"));
    }

    #[test]
    fn what_is_broken_is_told() {
        let packed = pack(b"package a").unwrap();
        let mut flipped = packed.clone();
        let last = flipped.len() - 5;
        flipped[last] ^= 1;
        for bytes in [&b"package a"[..], &packed[..packed.len() - 3], &flipped, b""] {
            assert!(unpack(bytes, 1 << 20).unwrap_err().starts_with("it is no gzip"), "{bytes:?}");
        }
    }
}
