//! Seeds: which ones a test runs, how to replay one, how to run more.
//!
//! `ANTEROOM_SEED=n` runs exactly seed n, `ANTEROOM_SEEDS=n` runs the seeds 1 to n.

use std::env;

/// Runs `test` with the seeds 1 to `count`, or those that the environment asks for.
pub fn seeds(count: u64, test: impl Fn(u64)) {
    if let Some(seed) = number("ANTEROOM_SEED") {
        return test(seed);
    }
    for seed in 1..=number("ANTEROOM_SEEDS").unwrap_or(count) {
        test(seed);
    }
}

/// The seed of a test that needs only one.
pub fn seed() -> u64 {
    number("ANTEROOM_SEED").unwrap_or(1)
}

fn number(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    match text.parse() {
        Ok(number) => Some(number),
        Err(_) => panic!("{name} is not a number: {text}"),
    }
}
