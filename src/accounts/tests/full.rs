//! A disk without space: nobody registers, everybody logs in, and it goes on when there is space.

use std::env;
use std::ffi::OsStr;
use std::process::{Command, Output};

use super::super::StoreError;
use super::*;

/// Set in the process that meets the full disk, to its folder.
const INSIDE: &str = "ANTEROOM_TEST_FULL";
/// More accounts than there is ever space for.
const MANY: usize = 2_000;

/// This very test as a process of its own, started by a shell's `script`, in which `$DIR` is the
/// folder and `"$@"` the process.
fn inside(script: &str, test: &str, folder: &OsStr) -> Output {
    Command::new("sh")
        .args(["-c", script, "sh"])
        .arg(env::current_exe().expect("this program"))
        .args(["--exact", &format!("accounts::tests::full::{test}")])
        .arg("--nocapture")
        .env("DIR", folder)
        .env(INSIDE, folder)
        .output()
        .expect("a shell")
}

fn assert_passed(output: &Output) {
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(text.contains("1 passed"), "{text}");
}

/// Registers until it is refused; how many it was.
fn fill(desk: &mut Desk) -> usize {
    let refused = (0..MANY).find(|n| {
        let answer = desk.register(&format!("user{n}"), "password");
        assert!(matches!(answer, Answer::Registered | Answer::Busy));
        answer == Answer::Busy
    });
    refused.expect("it is full some time")
}

/// What holds while nothing can be written.
fn assert_goes_on(desk: &mut Desk, count: usize) {
    let failures = desk.stat("accounts-failures");
    assert!(failures > 0);
    for n in 0..3 {
        let user = format!("late{n}");
        assert_eq!(desk.register(&user, "password"), Answer::Busy);
        assert_eq!(desk.login(&user, "password"), Answer::Wrong);
        assert_eq!(desk.register("user0", "password"), Answer::Taken);
    }
    assert_eq!(desk.stat("accounts-failures"), failures + 3);
    assert_eq!(desk.accounts.store().len(), count);
    assert_all_log_in(desk, count);
}

fn assert_all_log_in(desk: &mut Desk, count: usize) {
    for n in 0..count {
        let answer = desk.login(&format!("user{n}"), "password");
        assert_eq!(answer, Answer::LoggedIn, "user{n} of {count}");
    }
}

#[test]
fn a_disk_that_runs_full_stops_nobody_from_logging_in() {
    if let Some(folder) = env::var_os(INSIDE) {
        return on_a_small_disk(Path::new(&folder));
    }
    let folder = Folder::new();
    let mount = "mount -t tmpfs -o size=1m none \"$DIR\"";
    let try_mount = Command::new("unshare")
        .args(["-m", "sh", "-c", mount])
        .env("DIR", &folder.0)
        .output();
    if !try_mount.is_ok_and(|output| output.status.success()) {
        println!("skipped: no small disk can be mounted here");
        return;
    }
    let script = format!("exec unshare -m sh -c '{mount} && exec \"$@\"' sh \"$@\"");
    let name = "a_disk_that_runs_full_stops_nobody_from_logging_in";
    assert_passed(&inside(&script, name, folder.0.as_os_str()));
}

fn on_a_small_disk(folder: &Path) {
    let (path, ballast) = (folder.join("accounts"), folder.join("ballast"));
    let mut desk = Desk::new(Store::open(&path).expect("a new file"));
    let left = 1024 * 1024 - fs::metadata(&path).expect("the file").len() as usize;
    fs::write(&ballast, vec![1; left - 100_000]).expect("so much fits");
    let count = fill(&mut desk);
    // What space the failed ones gave back is taken, too.
    let _ = fs::write(folder.join("more"), vec![1; 1024 * 1024]);
    assert_goes_on(&mut desk, count);

    let other = folder.join("other");
    let error = Store::open(&other).expect_err("there is no space");
    assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
    assert!(error.to_string().contains("no space left"), "{error}");
    assert!(!other.exists() && !folder.join("other.new").exists());

    fs::remove_file(folder.join("more")).expect("removed");
    fs::remove_file(&ballast).expect("removed");
    assert_no_other_file_will_do(&mut desk, &path);
    assert_eq!(desk.register("later", "password"), Answer::Registered);
    assert_all_log_in(&mut desk, count);
    drop(desk);
    let mut desk = Desk::new(Store::open(&path).expect("a sound file"));
    assert_all_log_in(&mut desk, count);
    assert_eq!(desk.login("later", "password"), Answer::LoggedIn);
}

/// There is space again, but the file is gone, or it is one without the accounts.
fn assert_no_other_file_will_do(desk: &mut Desk, path: &Path) {
    let away = path.with_extension("away");
    fs::rename(path, &away).expect("renamed");
    assert_eq!(desk.register("later", "password"), Answer::Busy);
    assert!(!path.exists());
    drop(Store::open(path).expect("a new file"));
    assert_eq!(desk.register("later", "password"), Answer::Busy);
    assert_eq!(desk.login("user0", "password"), Answer::LoggedIn);
    fs::rename(&away, path).expect("renamed");
}

/// As it is where a file may not grow beyond a limit, which needs no rights to set up.
#[test]
fn a_file_that_may_not_grow_loses_nobody() {
    const NAME: &str = "a_file_that_may_not_grow_loses_nobody";
    if let Some(folder) = env::var_os(INSIDE) {
        let path = Path::new(&folder).join("accounts");
        let mut desk = Desk::new(Store::open(path).expect("a new file"));
        let count = fill(&mut desk);
        assert!(count > 10, "{count}");
        return assert_goes_on(&mut desk, count);
    }
    let folder = Folder::new();
    // Blocks of 512 bytes; without the signal it is an error like others.
    let script = "trap '' XFSZ; ulimit -f 250 && exec \"$@\"";
    assert_passed(&inside(script, NAME, folder.0.as_os_str()));
    let mut desk = Desk::new(Store::open(folder.file()).expect("a sound file"));
    let count = desk.accounts.store().len();
    assert_eq!(desk.register("later", "password"), Answer::Registered);
    assert_all_log_in(&mut desk, count);
}

#[test]
fn a_file_that_cannot_be_made_for_want_of_space_says_so() {
    const NAME: &str = "a_file_that_cannot_be_made_for_want_of_space_says_so";
    if let Some(folder) = env::var_os(INSIDE) {
        let path = Path::new(&folder).join("accounts");
        let error = Store::open(path).expect_err("there is no space");
        assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
        return;
    }
    let folder = Folder::new();
    let script = "trap '' XFSZ; ulimit -f 20 && exec \"$@\"";
    assert_passed(&inside(script, NAME, folder.0.as_os_str()));
    assert_eq!(fs::read_dir(&folder.0).expect("the folder").count(), 0);
}
