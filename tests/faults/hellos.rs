//! Floods of first hellos: short ones. The long ones are run by `cargo bench`.

use std::time::Duration;

use crate::flood::siege::Siege;

#[test]
fn twenty_thousand_hellos_a_second_leave_nothing_and_keep_nobody_out() {
    let _alone = crate::alone();
    let outcome = Siege {
        rate: Some(20_000),
        hellos: 40_000,
        honest: 1,
        head_start: Duration::ZERO,
        within: Duration::from_secs(1),
    }
    .lay();
    println!("{outcome}");
    outcome.assert_harmless();
}

#[test]
fn as_many_hellos_as_can_be_sent_leave_nothing_and_somebody_gets_in() {
    let _alone = crate::alone();
    let outcome = Siege {
        rate: None,
        hellos: 200_000,
        honest: 4,
        head_start: Duration::from_secs(2),
        within: Duration::from_secs(30),
    }
    .lay();
    println!("{outcome}");
    outcome.assert_harmless();
}
