//! Any bytes as everything that RTYP could take them for.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| anteroom::protocol::rtyp::wire::fuzz(bytes));
