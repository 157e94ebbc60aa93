//! The file as an operator may find it.

use std::error::Error as _;
use std::fs;
use std::path::Path;

use super::super::StoreError;
use super::*;

fn refusal(path: &Path) -> StoreError {
    match Store::open(path) {
        Ok(store) => panic!("{path:?} is taken for {store:?}"),
        Err(error) => error,
    }
}

#[test]
fn what_was_registered_is_there_after_a_restart() {
    let folder = Folder::new();
    filled(&folder.file(), 20);
    let mut desk = Desk::new(Store::open(folder.file()).expect("the file"));
    assert!(desk.accounts.store().is_file());
    assert_eq!(desk.accounts.store().len(), 20);
    assert_eq!(desk.login("user7", "password7"), Answer::LoggedIn);
    assert_eq!(desk.login("user7", "password8"), Answer::Wrong);
    assert_eq!(desk.register("user7", "password9"), Answer::Taken);
    assert_eq!(desk.register("user20", "password20"), Answer::Registered);
}

#[cfg(unix)]
#[test]
fn a_new_file_is_its_owners_alone_and_nothing_lies_beside_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    let _store = Store::open(folder.file()).expect("a new file");
    let mode = fs::metadata(folder.file())
        .expect("it")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(fs::read_dir(&folder.0).expect("the folder").count(), 1);
}

#[test]
fn a_start_that_was_interrupted_is_begun_anew() {
    for rest in [
        &b""[..],
        &[0; 5_000],
        b"redb\x1A\x0A\xA9\x0D\x0A and half a header",
    ] {
        let folder = Folder::new();
        let unfinished = folder.0.join("accounts.new");
        fs::write(&unfinished, rest).expect("written");
        filled(&folder.file(), 1);
        assert!(!unfinished.exists());
        assert_eq!(Store::open(folder.file()).expect("the file").len(), 1);
    }
}

#[test]
fn an_empty_file_is_a_new_one() {
    let folder = Folder::new();
    fs::write(folder.file(), b"").expect("written");
    filled(&folder.file(), 1);
    assert_eq!(Store::open(folder.file()).expect("the file").len(), 1);
}

#[test]
fn a_file_in_use_is_refused_and_works_on() {
    let folder = Folder::new();
    let mut desk = Desk::new(Store::open(folder.file()).expect("a new file"));
    let error = refusal(&folder.file());
    assert!(matches!(error, StoreError::Locked { .. }), "{error:?}");
    assert!(error.source().is_some());
    assert!(error.to_string().contains("another server"), "{error}");
    assert_eq!(desk.register("axel", "password"), Answer::Registered);
    drop(desk);
    assert_eq!(Store::open(folder.file()).expect("free now").len(), 1);
}

#[test]
fn a_file_being_made_is_refused() {
    let folder = Folder::new();
    let unfinished = folder.0.join("accounts.new");
    let other = fs::File::create(&unfinished).expect("made");
    other.try_lock().expect("locked");
    let error = refusal(&folder.file());
    assert!(matches!(error, StoreError::Locked { .. }), "{error:?}");
}

#[test]
fn what_is_no_file_is_refused_and_left_alone() {
    let folder = Folder::new();
    fs::create_dir(folder.file()).expect("a folder");
    for path in [&*folder.file(), Path::new("/dev/null")] {
        let error = refusal(path);
        assert!(matches!(error, StoreError::NotAFile { .. }), "{error:?}");
    }
    assert!(folder.file().is_dir());
    let nowhere = folder.0.join("nowhere").join("accounts");
    let error = refusal(&nowhere);
    assert!(matches!(error, StoreError::Io { .. }), "{error:?}");
    assert!(error.to_string().contains("nowhere"), "{error}");
}

/// Is what the file has become refused as damaged, and left as it is?
fn assert_refused(path: &Path, bytes: &[u8], what: &str) {
    fs::write(path, bytes).expect("written");
    let error = refusal(path);
    assert!(
        matches!(error, StoreError::Damaged { .. }),
        "{what}: {error:?}"
    );
    assert!(error.source().is_some(), "{what}");
    assert!(fs::read(path).expect("read") == bytes, "{what}: changed");
}

#[test]
fn garbage_is_refused() {
    let folder = Folder::new();
    let mut dice = Seeded::new(1);
    let random: Vec<u8> = (0..50_000).map(|_| dice.next_u64() as u8).collect();
    let zeros = vec![0; 50_000];
    for bytes in [&b"user: password\n"[..], &random, &zeros, b"\0", b"redb"] {
        assert_refused(&folder.file(), bytes, &format!("{} bytes", bytes.len()));
    }
    let headed = [b"redb\x1A\x0A\xA9\x0D\x0A", &random[..]].concat();
    assert_refused(&folder.file(), &headed, "garbage with a right beginning");
}

#[test]
fn another_database_is_refused() {
    use redb::{Database, TableDefinition};
    let folder = Folder::new();
    let names: TableDefinition<'_, &str, u64> = TableDefinition::new("accounts");
    let others: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("others");
    let rows: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("accounts");
    let phc = "$argon2id$v=19$m=8,t=1,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";
    for what in 0..5 {
        let database = Database::create(folder.file()).expect("a database");
        let write = database.begin_write().expect("begun");
        match what {
            0 => drop(write.open_table(names).expect("a table")),
            1 => drop(write.open_table(others).expect("a table")),
            _ => {
                let row: (&[u8], &[u8]) = match what {
                    2 => (b"axel", b"$argon2id$v=19$m=8,t=1,p=1$c29tZXNhbHQ"),
                    3 => (b"axel", b"\xFF"),
                    _ => (b"a name far too long", phc.as_bytes()),
                };
                let mut table = write.open_table(rows).expect("a table");
                table.insert(row.0, row.1).expect("inserted");
            }
        }
        write.commit().expect("committed");
        drop(database);
        let error = refusal(&folder.file());
        assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
        fs::remove_file(folder.file()).expect("removed");
    }
}

#[test]
fn a_truncated_file_is_refused() {
    let folder = Folder::new();
    filled(&folder.file(), 50);
    let whole = fs::read(folder.file()).expect("read");
    for len in [
        1,
        8,
        9,
        100,
        319,
        320,
        4_095,
        4_096,
        4_097,
        10_000,
        whole.len() / 2,
    ] {
        assert_refused(&folder.file(), &whole[..len], &format!("{len} bytes"));
    }
    for less in [1, 4_095, 4_096, 4_097, 50_000] {
        let len = whole.len() - less;
        assert_refused(&folder.file(), &whole[..len], &format!("{less} bytes less"));
    }
}

/// Of the header each byte, of the rest some that are in use, each with one bit flipped.
#[test]
fn a_flipped_bit_loses_nobody_silently() {
    const HEADER: usize = 320;
    let folder = Folder::new();
    filled(&folder.file(), 50);
    let whole = fs::read(folder.file()).expect("read");
    let mut dice = Seeded::new(1);
    let in_use: Vec<usize> = (HEADER..whole.len()).filter(|at| whole[*at] != 0).collect();
    let anywhere = (0..200).map(|_| in_use[dice.below(in_use.len() as u64) as usize]);
    let places: Vec<usize> = (0..HEADER).chain(anywhere).collect();
    let mut refused = 0;
    for at in places {
        let bit = dice.below(8);
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << bit;
        fs::write(folder.file(), &bytes).expect("written");
        match Store::open(folder.file()) {
            Ok(store) => assert_eq!(store.len(), 50, "byte {at}, bit {bit}"),
            Err(StoreError::Damaged { .. }) => refused += 1,
            Err(error) => panic!("byte {at}, bit {bit}: {error}"),
        }
    }
    assert!(refused > 200, "only {refused}");
}
