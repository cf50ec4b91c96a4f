//! Paths in JSON.
//!
//! JSON holds text, paths are bytes. A path that is UTF-8 is a string; any other is
//! `{"bytes":"<base64>"}` (standard alphabet, padded). The form stands in `--json` records and in
//! the metadata of a revision's commit, so both directions are here, at the bottom of the house.
//!
//! Invariant: `path_from_json(&json_path(p)) == Some(p)` for every `p`.

use bstr::{BStr, BString, ByteSlice};
use serde_json::{Map, Value};

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Renders a path as a string, or as `{"bytes":"<base64>"}` if it is not UTF-8.
#[must_use]
pub fn json_path(path: &BStr) -> Value {
    match path.to_str() {
        Ok(text) => Value::String(text.to_owned()),
        Err(_) => {
            let mut object = Map::new();
            object.insert("bytes".to_owned(), Value::String(encode_base64(path)));
            Value::Object(object)
        }
    }
}

/// Reads a path in either form of [`json_path`]; `None` if the value has neither.
///
/// The bytes form is read for any bytes, UTF-8 or not, so that a writer without a UTF-8 check can
/// use it throughout. The path is not validated: that is `RepoPath`'s business.
#[must_use]
pub fn path_from_json(value: &Value) -> Option<BString> {
    match value {
        Value::String(text) => Some(BString::from(text.as_str())),
        Value::Object(object) if object.len() == 1 => {
            decode_base64(object.get("bytes")?.as_str()?.as_bytes()).map(BString::from)
        }
        _ => None,
    }
}

/// Encodes bytes in base64 (RFC 4648, section 4), with padding.
#[must_use]
pub fn encode_base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |i: usize| u32::from(group.get(i).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for i in 0..4 {
            let index = (bits >> (18 - 6 * i) & 63) as usize;
            out.push(if i <= group.len() {
                char::from(ALPHABET[index])
            } else {
                '='
            });
        }
    }
    out
}

/// Decodes padded base64; `None` for anything that [`encode_base64`] would not have written.
#[must_use]
pub fn decode_base64(text: &[u8]) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let padding = text.iter().rev().take_while(|c| **c == b'=').count();
    if padding > 2 {
        return None;
    }
    let digits = &text[..text.len() - padding];
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut held) = (0_u32, 0);
    for digit in digits {
        bits = bits << 6 | u32::try_from(ALPHABET.find_byte(*digit)?).ok()?;
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push((bits >> held & 0xff) as u8);
        }
    }
    // Left-over bits that are not zero would give one byte string two spellings.
    (bits & ((1 << held) - 1) == 0).then_some(out)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn base64_as_in_the_rfc() {
        let table = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (raw, encoded) in table {
            assert_eq!(encode_base64(raw.as_bytes()), encoded);
            assert_eq!(decode_base64(encoded.as_bytes()).unwrap(), raw.as_bytes());
        }
        for bad in [
            "Z", "Zg", "Zg=", "Zh==", "Zm9=", "Z===", "====", "Zg==Zg==", "Zm 9", "Zm9-", "Zg==\n",
        ] {
            assert_eq!(decode_base64(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn a_path_is_a_string_or_bytes() {
        assert_eq!(json_path("d/\u{fc}\n".into()), json!("d/\u{fc}\n"));
        assert_eq!(json_path(b"\xff\xfe".as_bstr()), json!({"bytes": "//4="}));
        assert_eq!(path_from_json(&json!({"bytes": "YQ=="})).unwrap(), "a");
        let bad = [
            json!(null),
            json!(7),
            json!(["a"]),
            json!({}),
            json!({"bytes": 7}),
            json!({"bytes": "Y"}),
            json!({"byte": "YQ=="}),
            json!({"bytes": "YQ==", "more": 1}),
        ];
        for value in bad {
            assert_eq!(path_from_json(&value), None, "{value}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_survive(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let value: Value = serde_json::from_str(&json_path(bytes.as_bstr()).to_string()).unwrap();
            prop_assert_eq!(path_from_json(&value).unwrap(), bytes);
        }

        #[test]
        fn base64_has_one_spelling(text in "[A-Za-z0-9+/]{0,10}={0,3}") {
            if let Some(bytes) = decode_base64(text.as_bytes()) {
                prop_assert_eq!(encode_base64(&bytes), text);
            }
        }
    }
}
