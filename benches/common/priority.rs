//! Who runs first where threads share the processors.

use rustix::process::setpriority_process;

/// As much more than others: nine parts of a processor to their one.
const NICE: i32 = -10;

/// Asks that this thread need not wait for others who use the machine. Not every user may; then
/// nothing changes.
pub fn prefer_this_thread() {
    let _ = setpriority_process(None, NICE);
}
