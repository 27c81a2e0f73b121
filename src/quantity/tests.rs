use super::*;

fn count(text: &str) -> Result<u128, CountError> {
    Quantity::parse(text).unwrap().count()
}

#[test]
fn spellings_of_one() {
    for text in [
        "1",
        "01",
        "+1",
        "1.0",
        "1.",
        "1000m",
        "1000000u",
        "1000000000n",
        "1e0",
        "10e-1",
        "0.1e1",
        "0.001k",
        "0.0009765625Ki",
        " 1",
        "1E0",
        "1e+0",
        "\t1\u{a0}",
    ] {
        assert_eq!(Quantity::parse(text), Quantity::parse("1"), "{text:?}");
        assert_eq!(count(text), Ok(1), "{text:?}");
    }
}

#[test]
fn spellings_of_zero() {
    for text in ["0", "-0", "0m", "0.0", "+", "-", ".", "m", "Ki", "0e99999", "000"] {
        assert_eq!(Quantity::parse(text), Ok(Quantity::ZERO), "{text:?}");
    }
}

#[test]
fn nothing_wraps() {
    assert_eq!(count("4294967297"), Ok(4_294_967_297));
    assert_eq!(count("18446744073709551617"), Ok(18_446_744_073_709_551_617));
    assert_eq!(count("1Ei"), Ok(1 << 60));
    assert_eq!(count("1E"), Ok(1_000_000_000_000_000_000));
    for text in ["1e400", "1e2147483647", "1e4294967296", "1e9223372036854775807"] {
        assert_eq!(count(text), Ok(u128::MAX), "{text}");
    }
}

#[test]
fn what_is_not_whole_or_negative_says_so() {
    for text in ["1999999u", "1.5", ".5", "1n", "1e-2147483648", "1.0000000001", "0.5"] {
        assert_eq!(count(text), Err(CountError::Fractional), "{text}");
    }
    assert_eq!(count("-1"), Err(CountError::Negative));
}

#[test]
fn rounds_up_as_the_scheduler_does() {
    for (text, up) in [("1999999u", 2), ("1n", 1), ("1e-2147483648", 1), ("2", 2), ("1.0000000001", 2)] {
        assert_eq!(Quantity::parse(text).unwrap().ceil(), Some(up), "{text}");
    }
    assert_eq!(Quantity::parse("-1").unwrap().ceil(), None);
}

#[test]
fn what_kubernetes_cannot_read_is_an_error() {
    for text in ["two", "1K", "1ki", "1e", "0x1", "1_0", "1,0", "NaN", "Inf", "\u{ff11}", "1\0", "1 2", "1e+", "m1"] {
        assert_eq!(Quantity::parse(text), Err(QuantityError::Grammar), "{text:?}");
    }
    assert_eq!(Quantity::parse("  "), Err(QuantityError::Empty));
    assert_eq!(Quantity::parse("1e9223372036854775808"), Err(QuantityError::TooLong));
    assert_eq!(Quantity::parse(&"7".repeat(39)), Err(QuantityError::TooLong));
    assert_eq!(Quantity::parse("126999999999999999999Ei"), Err(QuantityError::TooLong));
}

#[test]
fn shows_a_short_canonical_form() {
    for (text, shown) in [("2000m", "2"), ("1.5", "15e-1"), ("-2", "-2"), ("1e30", "1e30"), ("-20", "-2e1")] {
        assert_eq!(Quantity::parse(text).unwrap().to_string(), shown);
    }
}
