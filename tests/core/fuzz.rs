//! The bodies of the fuzz targets, on their seeds, on damaged seeds and on any bytes.
//!
//! With `FUZZ_SEEDS=FOLDER` the seeds are written there, a folder for each target, for `cargo fuzz`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use proptest::prelude::*;
use proptest::sample::Index;

use crate::bodies;
use crate::seeds;

type Body = fn(&[u8]);

const BODIES: [(&str, Body); 6] = [
    ("answer", bodies::answer::body),
    ("configuration", bodies::configuration::body),
    ("patch", bodies::patch::body),
    ("policy", bodies::policy::body),
    ("quantity", bodies::quantity::body),
    ("review", bodies::review::body),
];

fn all() -> &'static BTreeMap<&'static str, Vec<Vec<u8>>> {
    static SEEDS: OnceLock<BTreeMap<&'static str, Vec<Vec<u8>>>> = OnceLock::new();
    SEEDS.get_or_init(seeds::all)
}

#[test]
fn the_seeds_hold() {
    for (name, body) in BODIES {
        let seeds = &all()[name];
        assert!(seeds.len() >= 16, "{name} has {} seeds", seeds.len());
        for (place, seed) in seeds.iter().enumerate() {
            body(seed);
            if let Some(folder) = std::env::var_os("FUZZ_SEEDS") {
                let folder = Path::new(&folder).join(name);
                fs::create_dir_all(&folder).unwrap();
                fs::write(folder.join(format!("seed-{place:04}")), seed).unwrap();
            }
        }
    }
}

/// A part of a seed that is written over, cut out, or doubled.
fn damage() -> impl Strategy<Value = Vec<(Index, Index, u8, Vec<u8>)>> {
    let bytes = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..6),
        prop::sample::select(vec![
            "\"", "null", "{", "[", "0", "-1", "1e999", "\n", ": ", "\\u0000", "~1", "*", "&a ", "\u{202e}"
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
    ];
    prop::collection::vec((any::<Index>(), any::<Index>(), 0_u8..4, bytes), 1..5)
}

fn damaged(seed: &[u8], damage: &[(Index, Index, u8, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for (from, length, how, new) in damage {
        let from = from.index(bytes.len() + 1);
        let to = from + length.index((bytes.len() - from).min(40) + 1);
        match how {
            0 => drop(bytes.splice(from..from, new.iter().copied())),
            1 => drop(bytes.drain(from..to)),
            2 => drop(bytes.splice(from..to, new.iter().copied())),
            _ => {
                let part = bytes[from..to].to_vec();
                drop(bytes.splice(from..from, part));
            }
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_seeds_hold(which in any::<Index>(), damage in damage()) {
        for (name, body) in BODIES {
            let seeds = &all()[name];
            body(&damaged(&seeds[which.index(seeds.len())], &damage));
        }
    }

    #[test]
    fn any_bytes_hold(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        for (_, body) in BODIES {
            body(&bytes);
        }
    }
}
