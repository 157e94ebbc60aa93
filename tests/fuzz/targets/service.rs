//! Any bytes as a script of what happens to the whole rtyp service.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../service/mod.rs"]
mod service;

fuzz_target!(|script: &[u8]| {
    service::run(script);
});
